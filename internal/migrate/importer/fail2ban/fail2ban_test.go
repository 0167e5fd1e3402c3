package fail2ban

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/migrate/importer"
)

// imported imports files by their names and texts, of which the names in sources are read.
func imported(t *testing.T, sources []string, files ...string) (string, *importer.Report, map[string]importer.Entry) {
	t.Helper()
	given := map[string][]byte{}
	for i := 0; i < len(files); i += 2 {
		given[files[i]] = []byte(files[i+1])
	}
	doc, report, err := Import(sources, importer.Given(given))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, problems := config.Load("x.yaml", doc); len(problems) > 0 {
		t.Errorf("%v\n%s", problems, doc)
	}
	entries := map[string]importer.Entry{}
	for _, e := range report.Entries {
		if (e.Verdict == importer.Same || e.Verdict == importer.Close) && len(e.Became) == 0 {
			t.Errorf("%s is %s and names no field", e.Directive, e.Verdict)
		}
		entries[e.Directive] = e
	}
	return string(doc), report, entries
}

// TestJailsBecomeBans holds that each jail for requests is a ban rule that observes, and
// that each setting has a verdict.
func TestJailsBecomeBans(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, source, setting string
		want                  importer.Verdict
		document              string
	}{
		{"wrong passwords", "[nginx-http-auth]\nenabled = true\nfilter = nginx-http-auth\nmaxretry = 3\nfindtime = 1h\nbantime = 1d\n", "maxretry = 3", importer.Same,
			"  nginx-http-auth:\n    when:\n      - {status: [401], count: 3}\n    within: 1h\n    ban: {first: 24h, factor: 1, max: 24h}\n    mode: observe\n"},
		{"the name of the jail is that of its filter", "[nginx-limit-req]\nenabled = true\n", "[nginx-limit-req]", importer.Close, "- {reason: rate_limited, count: 5}"},
		{"settings of all jails", "[DEFAULT]\nfindtime = 600\nmaxretry = 7\n[nginx-bad-request]\nenabled = yes\n", "maxretry = 7", importer.Same, "count: 7}\n    within: 10m\n"},
		{"exempt addresses", "[DEFAULT]\nignoreip = 127.0.0.1/8 ::1 192.0.2.0/24, 198.51.100.7\n[nginx-botsearch]\nenabled = true\n", "ignoreip = 127.0.0.1/8 ::1 192.0.2.0/24, 198.51.100.7", importer.Same, "exempt: [192.0.2.0/24, 198.51.100.7]"},
		{"an exempt name", "[nginx-botsearch]\nenabled = true\nignoreip = home.example.net\n", "ignoreip = home.example.net", importer.Same, "exempt: ['list:trusted']"},
		{"bans that grow", "[nginx-botsearch]\nenabled = true\nbantime = 10m\nbantime.increment = true\nbantime.maxtime = 5w\n", "bantime.maxtime = 5w", importer.Same, "ban: {first: 10m, factor: 2, max: 840h}"},
		{"a ban for ever", "[nginx-botsearch]\nenabled = true\nbantime = -1\n", "bantime = -1", importer.Close, "ban: {first: 720h, factor: 100, max: 8760h}"},
		{"a jail that is off", "[nginx-botsearch]\nenabled = false\nmaxretry = 2\n[nginx-http-auth]\nenabled = true\n", "maxretry = 2", importer.Ignored, ""},
		{"a jail for something else", "[sshd]\nenabled = true\nmaxretry = 2\n[nginx-http-auth]\nenabled = true\n", "maxretry = 2", importer.Ignored, ""},
		{"a filter that is not there", "[mine]\nenabled = true\nfilter = mine\n[nginx-http-auth]\nenabled = true\n", "[mine]", importer.Impossible, ""},
		{"own statuses", "[mine]\nenabled = true\nfailregex = ^<HOST> .* \"(GET|POST|HEAD).*\" (403|404|444) .*$\n", "[mine]", importer.Close, "- {status: [403, 404], count: 5}"},
		{"own paths", "[wp]\nenabled = true\nmaxretry = 4\nfailregex = ^<HOST> -.*\"POST /(?:wp-login|xmlrpc)\\.php\n", "[wp]", importer.Close, "- {path: [/wp-login.php, /xmlrpc.php], count: 4}"},
		{"every request", "[ddos]\nenabled = true\nfailregex = ^<HOST> -.*\"(GET|POST).*\n", "[ddos]", importer.Impossible, ""},
		{"an expression that RE2 lacks", "[x]\nenabled = true\nfailregex = ^<HOST> (?!x) 404\n", "[x]", importer.Impossible, ""},
		{"a setting that is not known", "[nginx-http-auth]\nenabled = true\nfrobnicate = 1\n", "frobnicate = 1", importer.Impossible, ""},
		{"mail", "[DEFAULT]\naction = %(action_mw)s\n[nginx-http-auth]\nenabled = true\n", "action = %(action_mw)s", importer.Impossible, ""},
		{"a firewall", "[nginx-http-auth]\nenabled = true\nport = http,https\nlogpath = %(nginx_error_log)s\n", "port = http,https", importer.Ignored, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			doc, report, entries := imported(t, []string{"/etc/fail2ban/jail.local"}, "/etc/fail2ban/jail.local", test.source)
			if e := entries[test.setting]; e.Verdict != test.want {
				t.Errorf("%s is %q (%s), want %q", test.setting, e.Verdict, e.Note, test.want)
			}
			if !strings.Contains(doc, test.document) {
				t.Errorf("the document has no %q:\n%s", test.document, doc)
			}
			if strings.Contains(doc, "bans:") && !strings.Contains(fmt.Sprint(report.Check), "only observes") {
				t.Errorf("nothing says that the rules only observe: %v", report.Check)
			}
			lines := 0
			for line := range strings.Lines(test.source) {
				if !strings.HasPrefix(line, "[DEFAULT]") {
					lines++
				}
			}
			if len(report.Entries) != lines {
				t.Errorf("%d verdicts for %d lines: %v", len(report.Entries), lines, report.Entries)
			}
		})
	}
}

// TestFolderIsReadAsFail2banDoes holds the order of files, and that filters beside the jails
// are read.
func TestFolderIsReadAsFail2banDoes(t *testing.T) {
	t.Parallel()
	doc, _, entries := imported(t, []string{"/etc/fail2ban"},
		"/etc/fail2ban/jail.conf", "[INCLUDES]\nbefore = paths-debian.conf\n[DEFAULT]\nmaxretry = 5\nfindtime = 10m\n[scan]\nfilter = scan\nport = http\n[sshd]\n",
		"/etc/fail2ban/jail.d/defaults-debian.conf", "[sshd]\nenabled = true\n",
		"/etc/fail2ban/jail.local", "[DEFAULT]\nmaxretry = 9\n[scan]\nenabled = true\n",
		"/etc/fail2ban/filter.d/sshd.conf", "[Definition]\nfailregex = ^(?!x)<HOST> failed\n",
		"/etc/fail2ban/filter.d/scan.conf", "[Definition]\nend = .*$\nfailregex = ^<HOST> -.*\"(?:GET|HEAD) \\S+ HTTP/1\\.1\" 404 %(end)s\n            ^<HOST> -.* 410 .*$\nignoreregex =\n")
	if !strings.Contains(doc, "- {status: [404, 410], count: 9}") || strings.Contains(doc, "sshd") {
		t.Error(doc)
	}
	if e := entries["[sshd]"]; e.Verdict != importer.Ignored {
		t.Errorf("%v", e)
	}
	if e := entries["maxretry = 5"]; e.Verdict != importer.Ignored {
		t.Errorf("%v", e)
	}
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"600": 10 * time.Minute, "10m": 10 * time.Minute, "1d 12h": 36 * time.Hour, "1h30m": 90 * time.Minute, "2 weeks": 336 * time.Hour, "99999999999y": 0, "999999y": maxTime, "soon": 0, "": 0, "-1": 0} {
		if got, ok := duration(text); got != want || ok != (want > 0) {
			t.Errorf("%q: %v, %v", text, got, ok)
		}
	}
}

// FuzzImport holds that no file makes the importer fail otherwise than by an error, and that
// what it writes can be read.
func FuzzImport(f *testing.F) {
	f.Add("[DEFAULT]\nbantime = 1h\n[nginx-http-auth]\nenabled = true\nmaxretry = 3\n")
	f.Add("[x]\nenabled = true\nfailregex = ^<HOST> \"GET (/a|/b)\" 404\n  %(x)s\nx = %(failregex)s\n")
	f.Add("[x\n=\n")
	f.Fuzz(func(t *testing.T, text string) {
		doc, report, err := Import([]string{"jail.local"}, importer.Given(map[string][]byte{"jail.local": []byte(text)}))
		if err != nil {
			return
		}
		if _, _, problems := config.Load("x.yaml", doc); len(problems) > 0 {
			t.Errorf("%v\n%s", problems, doc)
		}
		if len(report.Entries) == 0 {
			t.Error("no verdict")
		}
	})
}
