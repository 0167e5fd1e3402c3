package fail2ban

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// counts is what the filter of a jail counts.
type counts struct {
	conditions []importer.Object
	note       string
	other      bool   // it is not about requests
	what       string // why it cannot be counted
}

// shipped are the filters of fail2ban itself that are about requests. The expressions of
// those that read an error log are not tried: what they match is known.
var shipped = map[string]func() counts{
	"nginx-http-auth":   statuses("a request with a wrong password; one without credentials is not counted", 401),
	"apache-auth":       statuses("a request with a wrong password; one without credentials is not counted", 401),
	"haproxy-http-auth": statuses("a request with a wrong password; one without credentials is not counted", 401),
	"traefik-auth":      statuses("a request with a wrong password; one without credentials is not counted", 401),
	"nginx-forbidden":   statuses("every 403 is counted, whatever its source", 403),
	"nginx-bad-request": statuses("", 400),
	"nginx-limit-req": func() counts {
		return counts{conditions: []importer.Object{importer.NewObject().Set("reason", "rate_limited").Flow()}, note: "what rate_limit refuses"}
	},
	"nginx-botsearch":  botSearch,
	"apache-botsearch": botSearch,
}

func statuses(note string, all ...int) func() counts {
	return func() counts {
		return counts{conditions: []importer.Object{importer.NewObject().Set("status", all).Flow()}, note: note}
	}
}

// botSearch contains the paths that vulnerability scanners request.
func botSearch() counts {
	return counts{conditions: []importer.Object{importer.NewObject().Set("path", []string{"/roundcube*", "/mail*", "/extmail*", "/horde*", "/webmail*", "/vwebmail*", "/v-webmail*",
		"/phpmyadmin*", "/phpMyAdmin*", "/myadmin*", "/pma*", "/typo3/*", "/xampp/*", "/admin/pma*", "/admin/phpmyadmin*", "/wp-login.php*", "/wp-signup.php*", "/wp-admin.php*", "/cgi-bin*", "/mysqladmin*"}).Set("status", []int{404}).Flow()},
		note: "the usual paths that programs look for, where they are not there"}
}

// elsewhere are beginnings of the names of filters that read logs of other programs.
var elsewhere = strings.Fields("sshd dropbear selinux pam recidive postfix dovecot sendmail exim proftpd pure-ftpd vsftpd wuftpd gssftpd named mysqld mongodb murmur asterisk freeswitch qmail courier cyrus sieve uwimap perdition solid-pop3d squirrelmail " +
	"stunnel screensharingd znc ejabberd counter-strike kerio xinetd softethervpn slapd bitwarden portsentry nsd assp directadmin monit openwebmail horde groupoffice tine20 drupal guacamole oracleims 3proxy squid lighttpd nagios webmin")

// count says what the filter of a jail counts.
func (t *translator) count(s *section, filter string) counts {
	if known := shipped[filter]; known != nil {
		return known()
	}
	if t.get(s, "failregex") == nil && slices.ContainsFunc(elsewhere, func(name string) bool { return strings.HasPrefix(filter, name) }) {
		return counts{other: true}
	}
	exprs := t.expressions(s, filter)
	if len(exprs) == 0 {
		return counts{what: fmt.Sprintf("the filter %s is not known, and filter.d/%s.conf is not beside the jails: write what it counts in bans", filter, filter)}
	}
	return tried(exprs)
}

// expressions are those of failregex: of the jail itself, or of its filter.
func (t *translator) expressions(s *section, filter string) (out []string) {
	if e := t.get(s, "failregex"); e != nil {
		return lines(t.value(s, e))
	}
	for _, dir := range t.dirs {
		for _, above := range []string{dir, filepath.Dir(dir)} {
			for _, end := range []string{".conf", ".local"} {
				name := filepath.Join(above, "filter.d", filter+end)
				if found, err := t.files.Glob(name); err != nil || len(found) == 0 {
					continue
				}
				f := &translator{Translation: importer.NewTranslation("fail2ban"), files: t.files, sections: map[string]*section{}}
				if f.file(name) != nil {
					continue
				}
				definition := f.sections["Definition"]
				if e := definition.get("failregex"); e != nil {
					out = lines(f.resolve(definition, e.value, 0))
				}
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return nil
}

func lines(text string) (out []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// marks are the words of fail2ban in expressions.
var marks = strings.NewReplacer("<HOST>", `(?:203\.0\.113\.9)`, "<ADDR>", `(?:203\.0\.113\.9)`, "<IP4>", `(?:203\.0\.113\.9)`, "<SUBNET>", `(?:203\.0\.113\.9)`, "<CIDR>", `(?:203\.0\.113\.9)`,
	"<F-USER>", "(?:", "</F-USER>", ")", "<F-ALT_USER>", "(?:", "</F-ALT_USER>", ")", "<F-NOFAIL>", "(?:", "</F-NOFAIL>", ")", "<F-CONTENT>", "(?:", "</F-CONTENT>", ")", "%%", "%")

// probes are paths to try expressions on: no rule is about the first one.
var probes = []string{"/a8Zk3", "/.env", "/.git/config", "/wp-login.php", "/xmlrpc.php", "/wp-admin/setup.php", "/phpmyadmin/index.php", "/pma/", "/admin/", "/login", "/index.php", "/cgi-bin/test.cgi", "/shell.php",
	"/vendor/phpunit/phpunit/src/Util/PHP/eval-stdin.php", "/boaform/admin/formLogin", "/manager/html", "/solr/", "/actuator/health", "/HNAP1", "/config.json", "/server-status", "/owa/", "/remote/login", "/.aws/credentials", "/.ssh/id_rsa", "/backup.sql"}

// tried says what expressions count by the lines of an access log that they match.
func tried(exprs []string) counts {
	var all []*regexp.Regexp
	for _, text := range exprs {
		re, err := regexp.Compile(marks.Replace(text))
		if err != nil {
			return counts{what: "the expression of its filter cannot be read here: write what it counts in bans"}
		}
		all = append(all, re)
	}
	matches := func(method, path string, status int) bool {
		line := fmt.Sprintf(`203.0.113.9 - - [] "%s %s HTTP/1.1" %d 153 "-" "Mozilla/5.0"`, method, path, status)
		dated := strings.Replace(line, "[]", "[27/Nov/2026:10:00:00 +0000]", 1)
		return slices.ContainsFunc(all, func(re *regexp.Regexp) bool { return re.MatchString(line) || re.MatchString(dated) })
	}
	any := func(path string, status int) bool {
		return matches("GET", path, status) || matches("POST", path, status) || matches("HEAD", path, status)
	}
	if any(probes[0], 200) {
		return counts{what: "its filter matches every request, or matches what a ban rule cannot count, such as the User-Agent: rate_limit limits requests"}
	}
	var statuses []int
	for status := 400; status < 600; status++ {
		if http.StatusText(status) != "" && any(probes[0], status) {
			statuses = append(statuses, status)
		}
	}
	const note = "the expression of the filter was tried at lines of an access log"
	if len(statuses) > 0 {
		out := counts{note: note}
		for part := range slices.Chunk(statuses, maxStatuses) {
			out.conditions = append(out.conditions, importer.NewObject().Set("status", part).Flow())
		}
		if len(out.conditions) > 1 {
			out.note += "; what it counts is in several conditions, each of which is counted for itself"
		}
		return out
	}
	paths, with, always := matchedPaths(any)
	if len(paths) == 0 {
		return counts{what: "its filter matches no usual line of an access log: write what it counts in bans"}
	}
	o := importer.NewObject().Set("path", paths).Flow()
	if !always {
		o.Set("status", with)
	}
	return counts{conditions: []importer.Object{o}, note: note + " with usual paths: add those that you know of; headgate counts all methods"}
}

// matchedPaths returns the probes that are counted, the statuses with which they are, sorted,
// and whether one is with status 200, too.
func matchedPaths(counted func(path string, status int) bool) (paths []string, with []int, always bool) {
	for _, path := range probes[1:] {
		ok := counted(path, 200)
		always = always || ok
		for _, status := range []int{400, 401, 403, 404, 405, 429} {
			if counted(path, status) {
				if ok = true; !slices.Contains(with, status) {
					with = append(with, status)
				}
			}
		}
		if ok {
			paths = append(paths, path)
		}
	}
	slices.Sort(with)
	return paths, with, always
}

// maxStatuses is how many statuses a condition of a ban rule has.
const maxStatuses = 32
