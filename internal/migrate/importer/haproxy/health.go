package haproxy

import (
	"bytes"
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/setting/password"
)

// health makes a health check of the option httpchk and of the servers' check.
func (t *translator) health(s *section, o importer.Object) {
	var checked []string // the words of servers that are checked
	for _, d := range append(s.own("server", "server-template"), s.find("default-server")...) {
		if d.has("check") {
			checked = append(checked, d.words...)
		}
	}
	chk := s.find("option httpchk")
	if len(checked) == 0 {
		for _, d := range slices.Concat(chk, s.find("http-check", "timeout check")) {
			t.AddVerdict(d, importer.Ignored, "no server is checked")
		}
		return
	}
	h := importer.NewObject()
	for _, d := range chk {
		note := httpchk(h, d.words[2:])
		t.Became(d, verdictOf(note), h.As("health_check"), "%s", cmp.Or(note, "health_check"))
	}
	for _, d := range s.find("http-check") {
		if len(chk) == 0 {
			t.AddVerdict(d, importer.Ignored, "without option httpchk no request is sent")
			continue
		}
		t.httpCheck(h, d)
	}
	for _, d := range s.find("timeout check") {
		v, ok := duration(d.arg(1))
		if !ok {
			t.AddVerdict(d, importer.Impossible, "not a time")
			continue
		}
		t.Became(d, importer.Same, h.Set("timeout", v).Field("timeout"), "health_check: {timeout}")
	}
	t.lostChecks(s)
	for _, option := range [][2]string{{"inter", "interval"}, {"fastinter", "unhealthy_interval"}, {"rise", "rise"}, {"fall", "fall"}} {
		word, field := option[0], option[1]
		i := slices.Index(checked, word)
		if i < 0 || i+1 >= len(checked) {
			continue
		}
		if v, ok := duration(checked[i+1]); ok && field != "rise" && field != "fall" {
			h.Set(field, v)
		} else if n, err := strconv.Atoi(checked[i+1]); err == nil && n > 0 && (field == "rise" || field == "fall") {
			h.Set(field, n)
		}
	}
	if len(chk) > 0 && !h.Has("path") {
		h.Set("path", "/")
	}
	o.Set("health_check", h)
}

// lostChecks reports what a check tests beyond a connection and HTTP: servers that it
// keeps out of service, such as the replicas of a database, get requests here.
func (t *translator) lostChecks(s *section) {
	checked := slices.ContainsFunc(append(s.own("server", "server-template"), s.find("default-server")...), func(d *directive) bool { return d.has("check") })
	for _, d := range s.find("tcp-check", "option mysql-check", "option pgsql-check", "option redis-check", "option smtpchk", "option ldap-check", "option external-check", "external-check") {
		if !checked {
			t.AddVerdict(d, importer.Ignored, "no server is checked")
		} else if t.AddVerdict(d, importer.Impossible, "servers are checked by a connection, or a request of HTTP or gRPC") && !d.has("connect") && d.arg(0) != "comment" {
			t.Check("%s:%d: %s is left out: a server counts as healthy that accepts connections; look whether it keeps servers away that must get none", d.File, d.Line, d.Text())
		}
	}
}

// httpchk reads [METHOD] URI [VERSION].
func httpchk(h importer.Object, words []string) (note string) {
	switch {
	case len(words) == 0:
		h.Set("method", "OPTIONS")
	case strings.HasPrefix(words[0], "/"):
		h.Set("method", "OPTIONS").Set("path", words[0])
	default:
		if m := words[0]; m == "GET" || m == "HEAD" || m == "OPTIONS" {
			h.Set("method", m)
		} else {
			note = "health checks use GET, HEAD or OPTIONS"
		}
		if len(words) > 1 {
			h.Set("path", words[1])
		}
		if i := slices.IndexFunc(words, func(w string) bool { return strings.Contains(w, "Host:") }); i > 0 {
			_, host, _ := strings.Cut(words[i], "Host:")
			if host = strings.TrimSpace(host); host == "" && i+1 < len(words) {
				host = words[i+1]
			}
			h.Set("host", host)
		}
	}
	return note
}

// httpCheck reads http-check send and expect.
func (t *translator) httpCheck(h importer.Object, d *directive) {
	switch d.arg(0) {
	case "send":
		note := ""
		for i := 2; i+1 < len(d.words); i++ {
			switch value := d.words[i+1]; d.words[i] {
			case "meth":
				if value != "GET" && value != "HEAD" && value != "OPTIONS" {
					note = "health checks use GET, HEAD or OPTIONS"
					continue
				}
				h.Set("method", value)
			case "uri":
				h.Set("path", value)
			case "hdr":
				if i+2 < len(d.words) && strings.EqualFold(value, "host") {
					h.Set("host", d.words[i+2])
				} else {
					note = "other headers than Host are left out"
				}
				i++
			case "body":
				note = "checks have no body"
			}
		}
		became := importer.Field{}
		for _, name := range []string{"method", "path", "host"} {
			became = became.Or(h.Field(name))
		}
		t.Became(d, verdictOf(note), became, "%s", note)
	case "expect":
		t.expect(h, d)
	case "disable-on-404":
		t.AddVerdict(d, importer.Impossible, "an answer of 404 counts as others do")
	}
}

// expectOptions are the options of http-check expect that have a value.
var expectOptions = []string{"min-recv", "ok-status", "error-status", "tout-status", "on-success", "on-error", "status-code", "comment"}

// expect reads http-check expect: a status, or a text or expression in the body.
func (t *translator) expect(h importer.Object, d *directive) {
	words := slices.DeleteFunc(slices.Clone(d.words[2:]), func(w string) bool { return w == "" })
	for len(words) > 2 && slices.Contains(expectOptions, words[0]) {
		words = words[2:]
	}
	if len(words) < 2 || words[0] == "!" {
		t.AddVerdict(d, importer.Impossible, "a check expects a status or a text in the body, not their absence")
		t.Check("%s:%d: %s could not be translated: health checks pass by their status alone", d.File, d.Line, d.Text())
		return
	}
	value, field := strings.Join(words[1:], " "), "body"
	switch words[0] {
	case "status":
		field, value = "status", words[1]
	case "rstatus":
		if field, value = "status", statuses(value); value == "" {
			t.AddVerdict(d, importer.Impossible, "the expression matches no status")
			return
		}
	case "string":
		value = regexp.QuoteMeta(value)
	case "rstring":
		if what := checkRegex(value); what != "" {
			t.AddVerdict(d, importer.Impossible, "%s", what)
			return
		}
	default:
		t.AddVerdict(d, importer.Impossible, "a check expects a status or a text in the body, not a header")
		return
	}
	if h.Has(field) {
		t.AddVerdict(d, importer.Impossible, "a check expects one status and one text; this is another")
		return
	}
	t.Became(d, importer.Same, h.Set(field, value).Field(field), "health_check: {%s}", field)
}

// statuses writes the statuses that an expression matches as ranges, "" if it matches none
// or cannot be used.
func statuses(expr string) string {
	re, err := regexp.Compile(expr)
	if err != nil {
		return ""
	}
	var all []string
	for from := 100; from < 600; from++ {
		to := from
		for to < 600 && re.MatchString(strconv.Itoa(to)) {
			to++
		}
		switch {
		case to == from+1:
			all = append(all, strconv.Itoa(from))
		case to > from:
			all = append(all, strconv.Itoa(from)+"-"+strconv.Itoa(to-1))
		}
		from = to
	}
	return strings.Join(all, ",")
}

// pages makes error pages of errorfile.
func (t *translator) pages(s *section, o importer.Object) {
	for _, d := range s.find("errorfile") {
		data, err := t.read(t.path(d, d.arg(1)))
		switch {
		case d.arg(1) == "/dev/null":
			t.AddVerdict(d, importer.Impossible, "an answer is not left out")
			continue
		case err != nil || len(data) > maxPage:
			t.AddVerdict(d, importer.Impossible, "the page cannot be read here, or is larger than 64 KiB; name it in error_pages")
			t.Check("%s:%d: the page %s cannot be read: name it in error_pages", d.File, d.Line, d.arg(1))
			continue
		}
		head, body, _ := bytes.Cut(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")), []byte("\n\n"))
		p := importer.NewObject().Set("status", []string{d.arg(0)}).Set("body", literalText(string(body)))
		for line := range strings.Lines(string(head)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.EqualFold(name, "content-type") {
				p.Set("content_type", strings.TrimSpace(value))
			}
		}
		o.Append("error_pages", p)
		t.Became(d, importer.Close, o.LastOf("error_pages"), "the body and its type; other headers of the file are left out, and the answers of deny have no page")
	}
}

// maxUsers limits the passwords that are hashed: each takes about 50 ms.
const maxUsers = 200

// userlist makes basic_auth of a userlist.
func (t *translator) userlist(d *directive, name string) (auth importer.Object, note string) {
	auth = importer.NewObject()
	if realm := d.after("realm"); realm != "" {
		auth.Set("realm", realm)
	}
	list, left := t.users[name], 0
	if list == nil {
		return auth, "there is no userlist " + name
	}
	for _, u := range list.own("user") {
		hash, what := "", ""
		switch plain, crypt := u.after("insecure-password"), u.after("password"); {
		case strings.HasPrefix(crypt, "$2"):
			hash = crypt
		case crypt != "":
			what = "its password hash (" + scheme(crypt) + ") is not one of bcrypt or argon2id: make a new one with headgate hash-password"
		case left >= maxUsers || plain == "":
			what = "make a hash of its password with headgate hash-password"
		default:
			var err error
			if hash, err = password.Argon2id(plain); err != nil {
				what = "the password cannot be used: " + err.Error()
			}
		}
		if what != "" {
			t.AddVerdict(u, importer.Impossible, "%s", what)
			t.Check("%s:%d: the user %s was left out: %s", u.File, u.Line, u.arg(0), what)
			left++
			continue
		}
		auth.Append("users", importer.NewObject().Set("name", u.arg(0)).Set("password_hash", hash).Flow())
		t.Became(u, importer.Same, auth.LastOf("users"), "a user of basic_auth")
	}
	for _, g := range list.own("group") {
		t.AddVerdict(g, importer.Ignored, "http_auth lets in all users of its list; users have no groups here")
	}
	if !auth.Has("users") {
		return importer.Object{}, "none of the users of " + name + " can be translated"
	}
	if left > 0 {
		note = strconv.Itoa(left) + " users have passwords that cannot be translated"
	}
	return auth, note
}

// scheme names the hash of crypt(3).
func scheme(hash string) string {
	for prefix, name := range map[string]string{"$1$": "MD5", "$5$": "SHA-256", "$6$": "SHA-512", "$y$": "yescrypt"} {
		if strings.HasPrefix(hash, prefix) {
			return name
		}
	}
	return "DES"
}
