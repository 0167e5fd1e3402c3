package caddy

import (
	"net/http"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
)

// feature sets what a directive other than those that answer does.
func (t *translator) feature(s *site, d *directive, o, main importer.Object, base string, top bool) {
	switch d.name() {
	case "encode":
		o.Set("compression", importer.NewObject().Set("enabled", true).Flow())
		t.sayAll(d, importer.Same, "compression with zstd, br and gzip")
	case "redir":
		t.redirect(s, d, o, base)
	case "header", "request_header":
		t.headers(s, d, o, base)
	case "basic_auth", "basicauth":
		t.basicAuth(s, d, o, base)
	case "forward_auth":
		t.forwardAuth(s, d, o, base)
	case "request_body":
		for _, c := range d.block {
			if c.name() == "max_size" {
				o.Set("request_body_limit", size(c.arg(0)))
				t.Say(c, importer.Same, "request_body_limit")
			}
		}
		t.Say(d, importer.Same, "")
	case "uri":
		t.uri(d, o, base)
	case "rewrite":
		t.Say(d, importer.Impossible, "write it as rewrite of the route: {regex, replacement}")
		t.Check("%s:%d: %s was left out: requests reach the server with their own path", d.File, d.Line, d.Text())
	case "tls":
		t.tls(d, s)
	case "log", "log_skip", "skip_log", "log_append", "log_name", "tracing", "metrics", "push":
		t.sayAll(d, importer.Ignored, "requests of all hosts are logged and measured")
	case "bind":
		t.Say(d, importer.Close, "the address stands at the port")
		t.Check("%s:%d: bind %s: set the address of the ports", d.File, d.Line, strings.Join(d.args(), " "))
	case "file_server", "root", "php_fastcgi", "try_files", "templates", "browse":
		t.sayAll(d, importer.Impossible, "headgate serves no files: give it a server that does")
		t.Check("%s:%d: %s: headgate serves no files", d.File, d.Line, d.Text())
	}
}

// size writes 10MB as headgate does.
func size(text string) string {
	text = strings.TrimSpace(text)
	for _, unit := range []string{"KiB", "MiB", "GiB", "KB", "MB", "GB"} {
		if n, ok := strings.CutSuffix(strings.ToUpper(text), strings.ToUpper(unit)); ok {
			return strings.TrimSpace(n) + unit
		}
	}
	if strings.Trim(text, "0123456789") == "" {
		return text + "B"
	}
	return text
}

// redirect makes redir a rule. The placeholders of Caddy that stand for the request are
// variables of headgate.
func (t *translator) redirect(s *site, d *directive, o importer.Object, base string) {
	t.matched(s, d, base, func(path string, exact bool, words []string) {
		if len(words) == 0 {
			return
		}
		status := 302
		if len(words) > 1 {
			switch words[1] {
			case "permanent":
				status = http.StatusMovedPermanently
			case "temporary":
			case "html":
				t.Check("%s:%d: %s: a page that redirects became a redirect", d.File, d.Line, d.Text())
			default:
				if n, err := strconv.Atoi(words[1]); err == nil && n >= 301 && n <= 308 {
					status = n
				}
			}
		}
		regex := "^"
		if path != "/" {
			regex = "^" + quote(path) + "(?:/|$)"
			if exact {
				regex = "^" + quote(path) + "$"
			}
		}
		o.Append("redirects", importer.NewObject().Set("regex", regex).Set("target", variables(words[0])).Set("status", status))
	})
}

// quote escapes a path for an expression.
func quote(path string) string {
	var b strings.Builder
	for _, c := range path {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, c) {
			b.WriteByte('\\')
		}
		b.WriteRune(c)
	}
	return b.String()
}

// variables writes placeholders of Caddy in headgate's words. {uri} is path and query;
// the query is kept by a redirect rule anyway.
func variables(text string) string {
	return strings.NewReplacer("{uri}", "{path}", "{http.request.uri}", "{path}", "{host}", "{host}", "{hostport}", "{authority}", "{http.request.host}", "{host}",
		"{path}", "{path}", "{http.request.uri.path}", "{path}", "{query}", "{query}", "{scheme}", "{scheme}", "{method}", "{method}", "{http.request.method}", "{method}",
		"{client_ip}", "{client_ip}", "{remote_host}", "{client_ip}", "{remote}", "{client_ip}", "{http.request.remote.host}", "{client_ip}", "{http.request.uuid}", "{request_id}",
		"{http.request.hostport}", "{authority}", "{http.request.scheme}", "{scheme}", "{http.request.uri.query}", "{query}",
		"{http.request.remote}", "{client_ip}", "{http.vars.client_ip}", "{client_ip}", "{http.auth.user.id}", "{user}", "{$", "${").Replace(text)
}

// headers makes header and request_header rules.
func (t *translator) headers(s *site, d *directive, o importer.Object, base string) {
	direction := map[string]string{"header": "response", "request_header": "request"}[d.name()]
	t.matched(s, d, base, func(path string, _ bool, words []string) {
		if path != base {
			t.Say(d, importer.Close, "the rule is for all paths of its route")
			t.Check("%s:%d: %s is for the path %s only; here it is for the whole route", d.File, d.Line, d.Text(), path)
		}
		if len(words) > 0 {
			t.headerRule(d, o, direction, words)
		}
		for _, c := range d.block {
			if c.name() == "defer" {
				t.Say(c, importer.Same, "rules for responses come last")
				continue
			}
			t.headerRule(c, o, direction, c.words)
		}
	})
}

// headerRule makes one rule of [+|-|?]NAME [VALUE [REPLACEMENT]].
func (t *translator) headerRule(d *directive, o importer.Object, direction string, words []string) {
	if len(words) == 0 {
		return
	}
	name, operation := words[0], ""
	switch name[:min(1, len(name))] {
	case "+":
		name, operation = name[1:], "append"
	case "-":
		name, operation = name[1:], "remove"
	case "?":
		name, operation = name[1:], "set_if_absent"
	case ">":
		name = name[1:]
	}
	if strings.EqualFold(name, "Host") && direction == "request" {
		t.Say(d, importer.Close, "host_header of the proxy")
		t.Check("%s:%d: set host_header of the proxy: %s", d.File, d.Line, d.Text())
		return
	}
	if len(words) > 2 || strings.Contains(name, "*") || name == "" {
		t.Say(d, importer.Impossible, "rules set, append or remove one header; write a replacement as operation: replace")
		t.Check("%s:%d: %s was left out", d.File, d.Line, d.Text())
		return
	}
	known := []string{"x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"}
	for _, k := range known {
		if direction == "request" && strings.EqualFold(name, k) && operation != "remove" {
			t.Say(d, importer.Ignored, "it is sent by itself")
			return
		}
	}
	rule := importer.NewObject().Set("direction", direction).Set("name", name)
	if operation != "" {
		rule.Set("operation", operation)
	}
	if operation != "remove" {
		value := ""
		if len(words) > 1 {
			value = variables(words[1])
		}
		rule.Set("value", value)
	}
	o.Append("headers", rule)
	t.Say(d, importer.Same, "a header rule")
}

// basicAuth takes users with the hashes that they have.
func (t *translator) basicAuth(s *site, d *directive, o importer.Object, base string) {
	t.matched(s, d, base, func(path string, _ bool, _ []string) {
		if path != base {
			t.Check("%s:%d: %s is for the path %s only; here it is for the whole route, which is stricter", d.File, d.Line, d.Text(), path)
		}
		var users []importer.Object
		for _, c := range d.block {
			if strings.HasPrefix(c.arg(0), "$2") || strings.HasPrefix(c.arg(0), "$argon2id$") {
				users = append(users, importer.NewObject().Set("name", c.name()).Set("password_hash", c.arg(0)))
				t.Say(c, importer.Same, "a user")
				continue
			}
			t.Say(c, importer.Impossible, "the hash is not bcrypt or argon2id: make one by headgate hash-password")
			t.Check("%s:%d: the user %s was left out: its hash is not bcrypt or argon2id", c.File, c.Line, c.name())
		}
		o.Set("basic_auth", importer.NewObject().Set("users", users))
	})
}

// forwardAuth makes forward_auth of it. A header that is renamed is not possible.
func (t *translator) forwardAuth(s *site, d *directive, o importer.Object, base string) {
	t.matched(s, d, base, func(path string, _ bool, words []string) {
		if path != base {
			t.Check("%s:%d: %s is for the path %s only; here it is for the whole route, which is stricter", d.File, d.Line, d.Text(), path)
		}
		address := ""
		if len(words) > 0 {
			address, _ = serverURL(words[0])
		}
		auth, uri := importer.NewObject(), "/"
		var copied []string
		for _, c := range d.block {
			switch c.name() {
			case "uri":
				uri = c.arg(0)
				t.Say(c, importer.Same, "forward_auth.url")
			case "copy_headers":
				names := append(append([]string{}, c.args()...), wordsOf(c.block)...)
				for _, name := range names {
					before, _, renamed := strings.Cut(name, ">")
					if renamed {
						t.Check("%s:%d: copy_headers %s: headers keep their names", c.File, c.Line, name)
					}
					copied = append(copied, before)
				}
				t.sayAll(c, importer.Same, "forward_auth.response_headers")
			}
		}
		auth.Set("url", address+uri)
		if len(copied) > 0 {
			auth.Set("response_headers", copied)
		}
		o.Set("forward_auth", auth)
	})
}

func wordsOf(list []*directive) (all []string) {
	for _, d := range list {
		all = append(all, strings.Join(d.words, ""))
	}
	return all
}

// uri strips a prefix, which a route does by itself.
func (t *translator) uri(d *directive, o importer.Object, base string) {
	args := d.args()
	if len(args) > 0 && (args[0] == "*" || strings.HasPrefix(args[0], "/") || strings.HasPrefix(args[0], "@")) {
		args = args[1:]
	}
	if len(args) == 2 && args[0] == "strip_prefix" && strings.TrimSuffix(args[1], "/") == base {
		o.Set("strip_prefix", true)
		t.Say(d, importer.Same, "strip_prefix")
		return
	}
	if len(args) == 3 && args[0] == "path_regexp" {
		o.Set("rewrite", importer.NewObject().Set("regex", args[1]).Set("replacement", args[2]))
		t.Say(d, importer.Same, "rewrite")
		return
	}
	t.Say(d, importer.Impossible, "write it as rewrite: {regex, replacement}")
	t.Check("%s:%d: %s was left out", d.File, d.Line, d.Text())
}

// tls takes certificates of files along, and says what is done about others.
func (t *translator) tls(d *directive, s *site) {
	args := d.args()
	switch {
	case len(args) == 2:
		pair := [2]string{args[0], args[1]}
		name, known := t.pairs[pair]
		if !known {
			name = "caddy-" + strconv.Itoa(t.Certificates.Len()+1)
			t.Certificates.Set(name, importer.NewObject().Set("cert_file", args[0]).Set("key_file", args[1]))
			t.pairs[pair] = name
		}
		t.Say(d, importer.Same, "certificates.%s", name)
	case len(args) == 1 && args[0] == "internal":
		t.Say(d, importer.Close, "the self-signed certificate of headgate")
	case len(args) == 1 && strings.Contains(args[0], "@"):
		t.email, t.wantACME = args[0], true
		s.o.Set("acme", "main")
		t.Say(d, importer.Same, "acme.main.email")
	default:
		t.wantACME = true
		s.o.Set("acme", "main")
		t.Say(d, importer.Close, "acme: main")
	}
	for _, c := range d.block {
		switch c.name() {
		case "dns":
			t.Say(c, importer.Close, "give acme.main.dns the provider and its credentials")
			t.Check("%s:%d: the certificate came by DNS at %s: set acme.main.dns", c.File, c.Line, c.arg(0))
		case "protocols":
			t.Say(c, importer.Close, "tls.min_version of the port")
		case "client_auth":
			t.sayAll(c, importer.Impossible, "set tls.client_auth and tls.client_ca of the https port")
			t.Check("%s:%d: clients had to show a certificate: set tls.client_auth of the https port", c.File, c.Line)
		}
	}
}

// fixed makes the answer of respond, error or abort.
func fixed(d *directive, words []string) importer.Object {
	status, body := 200, ""
	if d.name() == "error" {
		status = 500
	}
	if d.name() == "abort" {
		status = 403
	}
	for i, w := range words {
		if n, err := strconv.Atoi(w); err == nil && n >= 200 && n <= 599 && (i > 0 || len(words) == 1) {
			status = n
		} else if i == 0 {
			body = variables(w)
		}
	}
	for _, c := range d.block {
		if c.name() == "body" {
			body = variables(c.arg(0))
		}
	}
	o := importer.NewObject().Set("status", status)
	if body != "" {
		o.Set("body", body)
	}
	return o
}
