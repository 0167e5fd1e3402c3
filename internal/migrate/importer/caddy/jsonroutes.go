package caddy

import (
	"regexp"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// walk goes through a list of routes, and notes a step for each handler. strip is what
// was taken away from the beginning of the path before.
func (s *server) walk(list *value, when rules.Condition, strip string, depth int) {
	if depth > maxDepth {
		s.t.sayValue(list, importer.Impossible, "nested too deep")
		return
	}
	before := map[string]rules.Condition{} // by group: that no earlier route matched
	for _, r := range list.list {
		c := s.matched(r.get("match"), strip)
		if group := r.get("group"); group.is() {
			earlier, ok := before[group.text]
			if !ok {
				earlier = rules.Holds()
			}
			before[group.text] = earlier.And(c.Not())
			c = earlier.And(c)
			s.t.sayValue(group, importer.Same, "the first of a group that matches")
		}
		if c = when.And(c); c.Problem != "" {
			s.lost(r, c.Problem)
			continue
		}
		for _, h := range r.get("handle").list {
			if stripped := s.handler(h, c, strip, depth); stripped != "" {
				strip = stripped
			}
		}
		if end := r.get("terminal"); end.is() {
			s.t.sayValue(end, importer.Same, "no later route is asked")
			if end.text == "true" {
				s.add(end, c, func(o *result) {
					o.o.Set("fixed_response", importer.NewObject().Set("status", 200).Flow())
					o.over = true
				})
			}
		}
	}
}

// lost tells of a route that cannot be chosen.
func (s *server) lost(r *value, why string) {
	s.t.sayValue(r, importer.Impossible, "%s", why)
	s.t.Check("%s:%d: a route was left out: %s", r.File, r.Line, why)
}

func (s *server) add(by *value, when rules.Condition, act func(*result)) {
	s.steps = append(s.steps, step{when: when, by: by, act: act})
}

// handler notes what a handler does. stripped is a prefix that it takes away.
func (s *server) handler(h *value, c rules.Condition, strip string, depth int) (stripped string) {
	name := h.get("handler")
	known := true
	switch name.text {
	case "subroute":
		s.walk(h.get("routes"), c, strip, depth+1)
		if e := h.get("errors"); e.is() {
			s.t.sayValue(e, importer.Impossible, "write the pages in error_pages")
			s.t.Check("%s:%d: the routes for errors were left out: write the pages in error_pages", e.File, e.Line)
		}
	case "static_response":
		s.answer(h, c)
	case "reverse_proxy":
		s.proxy(h, c)
	case "headers":
		s.headerRules(h, c)
	case "rewrite":
		stripped = s.rewrite(h, c, strip)
	case "encode":
		s.routable(h, c, func(o *result) { o.o.Set("compression", importer.NewObject().Set("enabled", true).Flow()) })
		s.t.sayValue(h, importer.Close, "compression with zstd, br and gzip, as the client prefers")
	case "authentication":
		s.authentication(h, c)
	case "request_body":
		size := h.get("max_size")
		s.routable(h, c, func(o *result) { o.o.Set("request_body_limit", size.text+"B") })
		s.t.sayValue(size, importer.Same, "request_body_limit")
	case "error":
		status, err := strconv.Atoi(h.get("status_code").text)
		if err != nil || status < 400 || status > 599 {
			status = 500
		}
		s.refusal(h, c, importer.NewObject().Set("status", status))
		s.t.sayValue(h, importer.Same, "fixed_response")
	case "vars", "tracing", "metrics", "log_append", "copy_response", "copy_response_headers", "push":
		s.t.sayValue(h, importer.Ignored, "requests of all hosts are logged and measured, and there are no variables")
	default: // file_server, templates, php, plugins
		known = false
		s.routable(h, c, func(o *result) {
			o.o.Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
			o.over = true
		})
		s.t.sayValue(h, importer.Impossible, "headgate has no handler like %s: give it a server that does it, here it answers 404", name.text)
		s.t.Check("%s:%d: the handler %s cannot be taken over; its requests get 404", h.File, h.Line, name.text)
	}
	if known {
		s.t.Say(name, importer.Same, "")
	}
	return stripped
}

// routable adds a step, unless it depends on the client's address, which no route does.
func (s *server) routable(h *value, c rules.Condition, act func(*result)) bool {
	byClient := false
	c.Atoms(func(a *rules.Atom) { byClient = byClient || a.Kind == rules.Client })
	if byClient {
		s.lost(h, "a route is not chosen by the client's address; ip_filter says who is let in")
		return false
	}
	s.add(h, c, act)
	return true
}

// refusal answers by a status; for some of them it may depend on the client's address.
func (s *server) refusal(h *value, c rules.Condition, fixed importer.Object) {
	status, _ := strconv.Atoi(fixed.Text("status"))
	act := func(o *result) {
		o.o.Set("fixed_response", fixed.Flow())
		o.over = true
	}
	if status == 401 || status == 403 || status == 404 {
		s.add(h, c, act)
		return
	}
	s.routable(h, c, act)
}

// answer takes a fixed response or a redirect.
func (s *server) answer(h *value, c rules.Condition) {
	t := s.t
	status := 200
	if n, err := strconv.Atoi(h.get("status_code").text); err == nil && n >= 200 && n <= 599 {
		status = n
	}
	if h.get("abort").text == "true" {
		s.refusal(h, c, importer.NewObject().Set("status", 403))
		t.sayValue(h.get("abort"), importer.Close, "connections are not closed without an answer; 403 is sent")
		return
	}
	t.sayValue(h.get("close"), importer.Ignored, "connections are headgate's own")
	location := h.get("headers", "Location")
	if to := location.texts(); len(to) > 0 && status >= 300 && status <= 308 {
		target, ok := placeholders(to[0])
		if !ok || status != 301 && status != 302 && status != 303 && status != 307 && status != 308 {
			s.lost(h, "the target of the redirect cannot be taken over: "+to[0])
			return
		}
		if !strings.Contains(to[0], "uri") && !strings.Contains(to[0], "query") && !strings.Contains(target, "?") {
			target += "?" // Caddy sends it as it is written
		}
		rule := importer.NewObject().Set("regex", "^").Set("target", strings.ReplaceAll(target, "$", "$$")).Set("status", status).Flow()
		s.routable(h, c, func(o *result) {
			o.o.Set("redirects", []importer.Object{rule}).Set("fixed_response", importer.NewObject().Set("status", 404).Flow())
			o.over = true
		})
		note := ""
		if strings.Contains(to[0], "uri") {
			note = "the path is sent in its normal form: dot segments resolved, // merged"
		}
		t.sayNote(h, note)
		return
	}
	body, ok := placeholders(h.get("body").text)
	if !ok {
		s.lost(h, "the body has placeholders that headgate has no variable for")
		return
	}
	fixed := importer.NewObject().Set("status", status)
	if body != "" {
		fixed.Set("body", body)
	}
	for _, name := range h.get("headers").keys {
		values := h.get("headers", name)
		text, ok := placeholders(strings.Join(values.texts(), ", "))
		if !ok {
			t.sayValue(values, importer.Impossible, "the header has placeholders that headgate has no variable for")
			continue
		}
		if strings.EqualFold(name, "Content-Type") {
			fixed.Set("content_type", text)
			continue
		}
		rule := importer.NewObject().Set("direction", "response").Set("name", name).Set("value", text).Flow()
		s.routable(h, c, func(o *result) { o.responses = append(o.responses, rule) })
	}
	s.refusal(h, c, fixed)
	t.sayValue(h, importer.Same, "fixed_response")
}

// placeholders writes Caddy's placeholders in headgate's words. It reports false where
// one is left that headgate has no variable for.
func placeholders(text string) (string, bool) {
	out := variables(text)
	rest := out
	for _, known := range []string{"{host}", "{authority}", "{path}", "{query}", "{scheme}", "{method}", "{client_ip}", "{request_id}", "{user}", "{{"} {
		rest = strings.ReplaceAll(rest, known, "")
	}
	return out, !strings.Contains(rest, "{")
}

// headerRules takes the rules of a handler headers.
func (s *server) headerRules(h *value, c rules.Condition) {
	for _, direction := range []string{"request", "response"} {
		ops := h.get(direction)
		made, host := s.t.headerOps(ops, direction)
		if len(made) == 0 && host == "" {
			continue
		}
		s.routable(h, c, func(o *result) {
			if direction == "request" {
				o.requests = append(o.requests, made...)
			} else {
				o.responses = append(o.responses, made...)
			}
			if host != "" {
				o.host = host
			}
		})
	}
}

// headerOps makes header rules of the operations add, set, delete and replace. host is
// the Host that a request gets.
func (t *translator) headerOps(ops *value, direction string) (made []importer.Object, host string) {
	for _, name := range ops.get("delete").list {
		if strings.Contains(name.text, "*") {
			t.sayValue(name, importer.Impossible, "a header is removed by its whole name")
			continue
		}
		made = append(made, importer.NewObject().Set("direction", direction).Set("operation", "remove").Set("name", name.text).Flow())
		t.sayValue(name, importer.Same, "a header rule")
	}
	for _, kind := range []string{"set", "add"} {
		list := ops.get(kind)
		for _, name := range list.keys {
			v := list.fields[name]
			text, ok := placeholders(strings.Join(v.texts(), ", "))
			switch {
			case direction == "request" && strings.EqualFold(name, "Host"):
				switch value := strings.Join(v.texts(), ""); {
				case value == "{http.reverse_proxy.upstream.hostport}" || value == "{http.reverse_proxy.upstream.host}":
					host = "upstream"
				case strings.Contains(value, "{"):
					if value != "{http.request.host}" && value != "{http.request.hostport}" {
						t.sayValue(v, importer.Impossible, "host_header is preserve, upstream or a fixed value")
						continue
					}
				default:
					host = value
				}
				t.sayValue(v, importer.Same, "host_header")
				continue
			case direction == "request" && sentByItself(name):
				t.sayValue(v, importer.Close, "it is sent by itself, as client_ip finds it")
				continue
			case !ok:
				t.sayValue(v, importer.Impossible, "the value has placeholders that headgate has no variable for")
				t.Check("%s:%d: the header %s was left out: its value has placeholders that headgate has no variable for", v.File, v.Line, name)
				continue
			}
			rule := importer.NewObject().Set("direction", direction)
			if kind == "add" {
				rule.Set("operation", "append")
			} else if ops.get("require").is() && direction == "response" {
				rule.Set("operation", "set_if_absent")
			}
			made = append(made, rule.Set("name", name).Set("value", text).Flow())
			note := ""
			if direction == "response" && ops.get("deferred").text != "true" && kind == "set" {
				note = "it is set last, in the place of what a server says, too"
			}
			t.sayNote(v, note)
		}
	}
	replace := ops.get("replace")
	for _, name := range replace.keys {
		for _, one := range replace.fields[name].list {
			expr := one.get("search_regexp").text
			if search := one.get("search"); search.is() {
				expr = regexp.QuoteMeta(search.text)
			}
			text, ok := placeholders(one.get("replace").text)
			if _, err := regexp.Compile(expr); err != nil || expr == "" || !ok {
				t.sayValue(one, importer.Impossible, "the replacement has an expression or placeholders that cannot be used")
				continue
			}
			made = append(made, importer.NewObject().Set("direction", direction).Set("operation", "replace").Set("name", name).Set("regex", expr).Set("value", text).Flow())
			t.sayValue(one, importer.Same, "a header rule")
		}
	}
	t.sayValue(ops.get("deferred"), importer.Same, "rules for responses come last")
	t.sayValue(ops.get("require"), importer.Close, "set_if_absent, where it asks for the header's absence")
	return made, host
}

func sentByItself(name string) bool {
	switch strings.ToLower(name) {
	case "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host":
		return true
	}
	return false
}

// rewrite changes the path that servers get.
func (s *server) rewrite(h *value, c rules.Condition, strip string) (stripped string) {
	t := s.t
	if m := h.get("method"); m.is() {
		t.sayValue(m, importer.Impossible, "the method is passed on as it came")
	}
	set := func(expr, replacement string) func(*result) {
		return func(o *result) {
			o.o.Set("rewrite", importer.NewObject().Set("regex", expr).Set("replacement", replacement).Set("rewrite_response", false).Flow())
		}
	}
	note := "paths of later matchers are compared as the client sent them"
	if p := h.get("strip_path_prefix"); p.is() {
		whole := strip + strings.TrimSuffix(p.text, "/")
		if !s.routable(h, c, func(o *result) { o.strip = whole }) {
			return ""
		}
		t.sayValue(p, importer.Close, "strip_prefix; Location and cookies of servers are mapped back")
		return whole
	}
	if uri := h.get("uri"); uri.is() {
		prefix, keeps := strings.CutSuffix(uri.text, "{http.request.uri}")
		switch {
		case keeps && strings.HasPrefix(prefix, "/") && !strings.Contains(prefix, "{"):
			s.routable(h, c, set("^", strings.ReplaceAll(strings.TrimSuffix(prefix, "/"), "$", "$$")))
			t.sayValue(uri, importer.Close, "%s", note)
		case strings.HasPrefix(uri.text, "/") && !strings.ContainsAny(uri.text, "{?"):
			s.routable(h, c, set("^.*$", strings.ReplaceAll(uri.text, "$", "$$")))
			t.sayValue(uri, importer.Close, "%s", note)
		default:
			s.lost(h, "a rewrite changes the path alone: by a text, a prefix or an expression")
		}
	}
	for i, one := range h.get("path_regexp").list {
		expr := one.get("find").text
		if _, err := regexp.Compile(expr); err != nil || i > 0 {
			t.sayValue(one, importer.Impossible, "a route has one rewrite, by an expression of RE2")
			continue
		}
		s.routable(h, c, set(expr, one.get("replace").text))
		t.sayValue(one, importer.Close, "%s", note)
	}
	for i, one := range h.get("uri_substring").list {
		if i > 0 || one.get("limit").is() {
			t.sayValue(one, importer.Impossible, "a route has one rewrite, of all places")
			continue
		}
		s.routable(h, c, set(regexp.QuoteMeta(one.get("find").text), strings.ReplaceAll(one.get("replace").text, "$", "$$")))
		t.sayValue(one, importer.Close, "%s; the query is left alone", note)
	}
	return ""
}

// authentication takes users with the hashes that they have.
func (s *server) authentication(h *value, c rules.Condition) {
	basic := h.get("providers", "http_basic")
	var users []importer.Object
	for _, a := range basic.get("accounts").list {
		hash := a.get("password").text
		if !strings.HasPrefix(hash, "$2") && !strings.HasPrefix(hash, "$argon2id$") {
			s.t.sayValue(a, importer.Impossible, "the hash is not bcrypt or argon2id: make one by headgate hash-password")
			s.t.Check("%s:%d: the user %s was left out: its hash is not bcrypt or argon2id", a.File, a.Line, a.get("username").text)
			continue
		}
		users = append(users, importer.NewObject().Set("name", a.get("username").text).Set("password_hash", hash))
		s.t.sayValue(a, importer.Same, "a user of basic_auth")
	}
	if len(users) == 0 {
		s.refusal(h, c, importer.NewObject().Set("status", 403))
		s.t.sayValue(h, importer.Impossible, "nobody of its users can sign in at headgate: 403 is sent; write basic_auth or forward_auth")
		s.t.Check("%s:%d: nobody can sign in before basic_auth has users", h.File, h.Line)
		return
	}
	// As Caddy passes them on, and calls it.
	auth := importer.NewObject().Set("users", users).Set("forward_credentials", true).Set("realm", "restricted")
	if realm := basic.get("realm"); realm.is() {
		auth.Set("realm", realm.text)
		s.t.sayValue(realm, importer.Same, "basic_auth.realm")
	}
	s.routable(h, c, func(o *result) { o.o.Set("basic_auth", auth) })
	s.t.sayValue(basic, importer.Close, "the challenge names UTF-8, and an address with many wrong passwords gets 429 for a while")
}
