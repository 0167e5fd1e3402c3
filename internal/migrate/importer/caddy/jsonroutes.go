package caddy

import (
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// errorStatus is the status of a handler error.
func errorStatus(h *value) int {
	if status, err := strconv.Atoi(h.get("status_code").text); err == nil && status >= 400 && status <= 599 {
		return status
	}
	return http.StatusInternalServerError
}

// answers adds the step of a response and returns its field.
func (w *walker) answers(h *value, c rules.Condition, fixed importer.Object) importer.Field {
	set := importer.NewObject().Set("fixed_response", fixed.Flow())
	w.routable(h, c, func(o *result) {
		o.o.Merge(set)
		o.over = true
	})
	return set.Field("fixed_response")
}

// answer translates a fixed response or a redirect.
func (w *walker) answer(h *value, c rules.Condition, view []change) {
	t := w.t
	status := http.StatusOK
	if n, err := strconv.Atoi(h.get("status_code").text); err == nil && n >= 200 && n <= 599 {
		status = n
	}
	if h.get("abort").text == "true" {
		t.Became(h.get("abort"), importer.Close, w.answers(h, c, fixedStatus(http.StatusForbidden)), "fixed_response: connections are not closed without an answer; 403 is sent")
		return
	}
	t.sayValue(h.get("close"), importer.Ignored, "connections are headgate's own")
	if to := h.get("headers", "Location").texts(); len(to) > 0 && status >= 300 && status <= 308 {
		w.redirect(h, c, view, to[0], status)
		return
	}
	body, missing := words{changed: len(view) > 0}.write(h.get("body").text)
	if missing != "" {
		t.Became(h, importer.Close, w.answers(h, c, fixedStatus(status)), "fixed_response without the body: headgate has no variable for %s", missing)
		t.Check("%s:%d: the body of %s was left out: headgate has no variable for %s", h.File, h.Line, h.label(), missing)
		return
	}
	fixed := fixedStatus(status)
	if body != "" && status != http.StatusNoContent && status != http.StatusResetContent && status != http.StatusNotModified {
		fixed.Set("body", body)
	}
	for _, name := range h.get("headers").keys {
		values := h.get("headers", name)
		text, missing := words{changed: len(view) > 0}.write(strings.Join(values.texts(), ", "))
		if missing != "" {
			t.sayValue(values, importer.Impossible, "headgate has no variable for %s", missing)
			t.Check("%s:%d: the header %s was left out: headgate has no variable for %s", values.File, values.Line, name, missing)
			continue
		}
		if strings.EqualFold(name, "Content-Type") {
			fixed.Set("content_type", text)
			t.Became(values, importer.Same, fixed.Field("content_type"), "fixed_response.content_type")
			continue
		}
		rule := importer.NewObject().Set("direction", "response").Set("name", name).Set("value", text).Flow()
		w.add(h, byPrefixes(c), func(o *result) { o.responses = append(o.responses, rule) })
		t.Became(values, importer.Same, rule.Field("value"), "headers")
	}
	if strings.Contains(h.get("body").text, "{http.request.uri.path}") {
		t.Became(h, importer.Close, w.answers(h, c, fixed), "fixed_response: {path} is percent-encoded, as it was sent")
		return
	}
	t.Became(h, importer.Same, w.answers(h, c, fixed), "fixed_response")
}

// redirect makes a rule of a redirect. It is bound to an expression where it is for a part
// of the paths of a route, such as an exact path.
func (w *walker) redirect(h *value, c rules.Condition, view []change, to string, status int) {
	if status == 300 || status == 304 || status == 305 || status == 306 {
		w.lost(h, "a redirect has one of the statuses 301, 302, 303, 307 and 308")
		return
	}
	rule, why := redirectTarget(c, view, to)
	if why != "" {
		w.lost(h, why)
		return
	}
	made := func(expr string) importer.Object {
		one := importer.NewObject().Set("regex", expr).Set("target", rule.target).Set("status", status).Flow()
		w.t.Became(h, importer.Same, one.Field("regex"), "redirects")
		return one
	}
	w.byExpression(h, c, func(o *result, expr string) {
		switch {
		case rule.expr != "" && expr != "" && expr != rule.within:
			w.lost(h, "the redirect is for a part of the paths, and its target has what was stripped")
			return
		case rule.expr != "":
			o.redirects = append(o.redirects, made(rule.expr))
		case expr == "":
			o.redirects = append(o.redirects, made("^"))
		default:
			o.redirects = append(o.redirects, made(expr))
			return
		}
		if expr == "" {
			o.answer(fixedStatus(http.StatusNotFound))
		}
	})
	if strings.Contains(to, "uri") {
		w.t.Became(h, importer.Close, importer.Field{}, "redirects: the path is written in its normal form, and a ? without a query is left out")
		return
	}
	w.t.Became(h, importer.Same, importer.Field{}, "redirects")
}

// target is the target of a redirect, with the expression that its groups need.
//
// within is the expression of the paths that the prefix was removed from.
type target struct{ expr, within, target string }

// redirectTarget writes the target of a redirect in headgate's words, or says why it cannot
// be. Caddy sends it as it is written; a rule keeps the query unless the target has one.
func redirectTarget(c rules.Condition, view []change, to string) (out target, why string) {
	own := map[string]string{"http.request.uri": "{path}", "http.request.orig_uri": "{path}"}
	keeps := strings.Contains(to, "{http.request.uri}") || strings.Contains(to, "{http.request.orig_uri}")
	strips := len(view) > 0
	if strips {
		if len(view) == 1 && view[0].kind == stripped {
			out.within = "(?i)^" + regexp.QuoteMeta(view[0].text) + "/"
			out.expr = "(?i)^" + regexp.QuoteMeta(view[0].text) + "(/.*)$"
			own["http.request.uri"], own["http.request.uri.path"] = "\x00", "\x00"
		} else {
			delete(own, "http.request.uri")
		}
	}
	c.Atoms(func(a *rules.Atom) {
		if a.Kind == rules.Path && a.Name == byRegex {
			for i := range 10 {
				for _, name := range []string{a.Value, ""} {
					own[strings.TrimSuffix("http.regexp."+name, ".")+"."+strconv.Itoa(i)] = "\x01" + strconv.Itoa(i)
				}
			}
		}
	})
	text, missing := words{changed: strips, own: own}.write(to)
	if missing != "" {
		return out, "headgate has no variable for " + missing
	}
	uses := strings.Contains(text, "\x00")
	if out.expr != "" && !uses {
		out.expr = ""
	}
	text = strings.ReplaceAll(text, "$", "$$")
	text = strings.ReplaceAll(text, "$${", "${") // of the environment
	for i := range 10 {
		text = strings.ReplaceAll(text, "\x01"+strconv.Itoa(i), "${"+strconv.Itoa(i)+"}")
	}
	text = strings.ReplaceAll(text, "\x00", "${1}")
	head, _, fragment := strings.Cut(text, "#")
	switch {
	case keeps && strings.Contains(head, "?") && !strings.HasSuffix(head, "?{query}"):
		return out, "the query of the request cannot be joined with another one"
	case strings.Contains(text, "${1}") && strings.Contains(text, "\x00"):
		return out, "the target has groups of two expressions"
	case strings.HasSuffix(head, "?{query}") && !keeps:
		text = strings.Replace(text, "?{query}", "", 1) // a rule keeps it by itself
	case !keeps && !strings.Contains(head, "?") && !fragment:
		text += "?"
	case !keeps && !strings.Contains(head, "?"):
		text = head + "?#" + text[len(head)+1:]
	}
	if !strings.HasPrefix(text, "/") && !strings.Contains(text, "://") {
		return out, "the target " + to + " is neither a path nor a URL"
	}
	out.target = text
	return out, ""
}

// headerRules translates the rules of a handler headers.
func (w *walker) headerRules(h *value, c rules.Condition, view []change) {
	for _, direction := range []string{"request", "response"} {
		made, host := w.t.headerOps(h.get(direction), direction, len(view) > 0)
		if len(made) == 0 && host == "" {
			continue
		}
		w.routable(h, c, func(o *result) {
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
func (t *translator) headerOps(ops *value, direction string, changed bool) (made []importer.Object, host string) {
	made = t.removedHeaders(ops, direction)
	for _, kind := range []string{"set", "add"} {
		list := ops.get(kind)
		for _, name := range list.keys {
			v := list.fields[name]
			if direction == "request" && strings.EqualFold(name, "Host") {
				host = t.hostHeader(v, host)
			} else if rule := t.headerRule(ops, kind, name, v, direction, changed); !rule.Empty() {
				made = append(made, rule)
			}
		}
	}
	made = append(made, t.replacedHeaders(ops, direction, changed)...)
	t.sayValue(ops.get("deferred"), importer.Ignored, "headers: rules for responses come last")
	t.sayValue(ops.get("require"), importer.Ignored, "set_if_absent, if it requires the header's absence")
	return made, host
}

func (t *translator) removedHeaders(ops *value, direction string) (made []importer.Object) {
	for _, name := range ops.get("delete").list {
		if strings.Contains(name.text, "*") {
			t.sayValue(name, importer.Impossible, "a header is removed by its whole name")
			continue
		}
		rule := importer.NewObject().Set("direction", direction).Set("operation", "remove").Set("name", name.text).Flow()
		made = append(made, rule)
		t.Became(name, importer.Same, rule.Field("name"), "headers")
	}
	return made
}

// hostHeader reads the Host that a request gets, which is otherwise what it was before.
func (t *translator) hostHeader(v *value, host string) string {
	switch value := strings.Join(v.texts(), ""); {
	case value == "{http.reverse_proxy.upstream.hostport}" || value == "{http.reverse_proxy.upstream.host}":
		host = "upstream"
	case !strings.Contains(strings.ReplaceAll(value, "${", ""), "{"):
		host = value
	case value != "{http.request.host}" && value != "{http.request.hostport}":
		t.sayValue(v, importer.Impossible, "host_header is preserve, upstream or a fixed value")
		t.Check("%s:%d: the header Host was left out: host_header is preserve, upstream or a fixed value", v.File, v.Line)
		return host
	}
	if host == "" {
		t.Became(v, importer.Same, importer.ByItself(), "host_header: preserve")
	} else {
		t.Became(v, importer.Same, importer.Value("host_header", host), "host_header")
	}
	return host
}

// headerRule makes a rule of a header that is set or added, the zero Object if there is
// none.
func (t *translator) headerRule(ops *value, kind, name string, v *value, direction string, changed bool) importer.Object {
	text, missing := words{changed: changed, required: true}.write(strings.Join(v.texts(), ", "))
	switch {
	case direction == "request" && sentByItself(name):
		t.Became(v, importer.Close, importer.ByItself(), "forwarded_style: it is sent by itself, as client_ip finds it")
		return importer.Object{}
	case missing != "":
		t.sayValue(v, importer.Impossible, "headgate has no variable for %s", missing)
		t.Check("%s:%d: the header %s was left out: headgate has no variable for %s", v.File, v.Line, name, missing)
		return importer.Object{}
	case direction == "request" && connectionOnly(name):
		t.sayValue(v, importer.Ignored, "headgate sends %s itself, and passes upgrades on", name)
		return importer.Object{}
	}
	rule := importer.NewObject().Set("direction", direction)
	if kind == "add" {
		rule.Set("operation", "append")
	} else if ops.get("require").is() && direction == "response" {
		rule.Set("operation", "set_if_absent")
	}
	rule.Set("name", name).Set("value", text).Flow()
	if direction == "response" && ops.get("deferred").text != "true" && kind == "set" {
		t.Became(v, importer.Close, rule.Field("name"), "headers: it is set last, in the place of what a server says, too")
	} else {
		t.Became(v, importer.Same, rule.Field("name"), "headers")
	}
	return rule
}

func (t *translator) replacedHeaders(ops *value, direction string, changed bool) (made []importer.Object) {
	replace := ops.get("replace")
	for _, name := range replace.keys {
		for _, one := range replace.fields[name].list {
			expr := one.get("search_regexp").text
			if search := one.get("search"); search.is() {
				expr = regexp.QuoteMeta(search.text)
			}
			text, missing := words{changed: changed}.write(one.get("replace").text)
			if _, err := regexp.Compile(expr); err != nil || expr == "" || missing != "" {
				t.sayValue(one, importer.Impossible, "the replacement has an expression or placeholders that cannot be used")
				continue
			}
			rule := importer.NewObject().Set("direction", direction).Set("operation", "replace").Set("name", name).Set("regex", expr).Set("value", text).Flow()
			made = append(made, rule)
			t.Became(one, importer.Same, rule.Field("name"), "headers")
		}
	}
	return made
}

// connectionOnly reports whether a field belongs to one connection: headgate writes it for
// its own connections to servers.
func connectionOnly(name string) bool {
	switch strings.ToLower(name) {
	case "connection", "upgrade", "keep-alive", "te", "transfer-encoding", "proxy-connection", "content-length":
		return true
	}
	return false
}

func sentByItself(name string) bool {
	switch strings.ToLower(name) {
	case "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host":
		return true
	}
	return false
}

// rewrite changes the path that servers get, and that later matchers see.
func (w *walker) rewrite(h *value, c rules.Condition, view []change) []change {
	t := w.t
	if m := h.get("method"); m.is() {
		t.lost(m, "the method is passed on as it came")
	}
	if p := h.get("strip_path_prefix"); p.is() {
		return w.strip(p, c, view)
	}
	if p := h.get("strip_path_suffix"); p.is() {
		return w.replacing(p, c, view, regexp.QuoteMeta(p.text)+"$", "")
	}
	if uri := h.get("uri"); uri.is() {
		return w.rewriteURI(uri, c, view)
	}
	for i, one := range h.get("path_regexp").list {
		if i > 0 {
			t.lost(one, "a route has one rewrite")
			continue
		}
		view = w.replacing(one, c, view, one.get("find").text, one.get("replace").text)
	}
	for i, one := range h.get("uri_substring").list {
		if i > 0 || one.get("limit").is() {
			t.lost(one, "a route has one rewrite, of all places")
			continue
		}
		view = w.replacing(one, c, view, regexp.QuoteMeta(one.get("find").text), strings.ReplaceAll(one.get("replace").text, "$", "$$"))
	}
	return view
}

// strip removes a prefix.
func (w *walker) strip(p *value, c rules.Condition, view []change) []change {
	prefix := strings.TrimSuffix(p.text, "/")
	if strings.ContainsAny(prefix, "{*%") || prefix == "" {
		w.lost(p, "a prefix that is removed is a path")
		return append(slices.Clip(view), change{when: c, kind: unknown})
	}
	whole := prefix
	for _, ch := range view {
		if both := c.And(ch.when); both.Problem == "" && len(both.Any) == 0 {
			continue
		}
		if ch.kind != stripped {
			w.lost(p, "a prefix is removed from the path that the client has sent")
			return append(slices.Clip(view), change{when: c, kind: unknown})
		}
		whole = ch.text + whole
	}
	here := c.And(patternOf(whole + "/*").condition())
	if w.routable(p, here, func(o *result) { o.strip, o.stripBy = whole, p }) {
		w.t.Became(p, importer.Close, importer.Field{}, "strip_prefix: Location and cookies of servers are mapped back")
	}
	return append(slices.Clip(view), change{when: here, kind: stripped, text: prefix})
}

// rewriteURI writes the path anew: with a prefix, or as a text.
func (w *walker) rewriteURI(uri *value, c rules.Condition, view []change) []change {
	prefix, keeps := strings.CutSuffix(uri.text, "{http.request.uri}")
	if !keeps {
		prefix, keeps = strings.CutSuffix(uri.text, "{http.request.uri.path}")
	}
	path := strings.TrimSuffix(uri.text, "?{http.request.uri.query}")
	switch {
	case keeps && strings.HasPrefix(prefix, "/") && !strings.Contains(prefix, "{"):
		prefix = strings.TrimSuffix(prefix, "/")
		w.rewritten(uri, c, "^", strings.ReplaceAll(prefix, "$", "$$"))
		return append(slices.Clip(view), change{when: c, kind: prefixed, text: prefix})
	case strings.HasPrefix(path, "/") && !strings.ContainsAny(path, "{?#"):
		w.rewritten(uri, c, "^.*$", strings.ReplaceAll(path, "$", "$$"))
		return append(slices.Clip(view), change{when: c, kind: replaced, text: path})
	}
	w.lost(uri, "a rewrite changes the path alone: by a text, a prefix or an expression")
	return append(slices.Clip(view), change{when: c, kind: unknown})
}

// replacing replaces what an expression finds in the path.
func (w *walker) replacing(by *value, c rules.Condition, view []change, expr, replacement string) []change {
	if _, err := regexp.Compile(expr); err != nil || expr == "" || strings.ContainsAny(replacement, "{?#") {
		w.lost(by, "a rewrite is by an expression of RE2, and changes the path alone")
	} else {
		w.rewritten(by, c, expr, replacement)
	}
	return append(slices.Clip(view), change{when: c, kind: unknown})
}

// rewritten adds the step of a rewrite. It is bound to an expression where it is for a part
// of the paths of a route.
func (w *walker) rewritten(by *value, c rules.Condition, expr, replacement string) {
	w.t.Became(by, importer.Same, importer.Field{}, "rewrite")
	act := func(o *result, expr, replacement string) {
		if o.rewrite.Len() > 0 {
			w.lost(by, "a route has one rewrite")
			return
		}
		o.rewrite = importer.NewObject().Set("regex", expr).Set("replacement", replacement).Set("rewrite_response", false).Flow()
		w.t.Became(by, importer.Same, o.rewrite.Field("regex"), "rewrite")
	}
	if expr != "^" && expr != "^.*$" {
		w.routable(by, c, func(o *result) { act(o, expr, replacement) })
		return
	}
	w.byExpression(by, c, func(o *result, bound string) {
		switch inner, anchored := strings.CutPrefix(bound, "(?i)^"); {
		case bound == "":
			act(o, expr, replacement)
		case !anchored:
			w.lost(by, "a rewrite is for paths by their end")
		case expr == "^":
			act(o, "(?i)^("+inner+")", replacement+"${1}")
		default:
			if !strings.HasSuffix(bound, "$") {
				bound += ".*$"
			}
			act(o, bound, replacement)
		}
	})
}

// authentication translates users with their present hashes.
func (w *walker) authentication(h *value, c rules.Condition) {
	basic := h.get("providers", "http_basic")
	var users []importer.Object
	for _, a := range basic.get("accounts").list {
		hash := a.get("password").text
		if !strings.HasPrefix(hash, "$2") && !strings.HasPrefix(hash, "$argon2id$") {
			w.t.sayValue(a, importer.Impossible, "the hash is not bcrypt or argon2id: make one by headgate hash-password")
			w.t.Check("%s:%d: the user %s was left out: its hash is not bcrypt or argon2id", a.File, a.Line, a.get("username").text)
			continue
		}
		user := importer.NewObject().Set("name", a.get("username").text).Set("password_hash", hash)
		users = append(users, user)
		w.t.Became(a, importer.Same, user.Field("name"), "basic_auth.users")
	}
	if len(users) == 0 {
		w.routable(h, c, func(o *result) { o.answer(fixedStatus(http.StatusForbidden)) })
		w.t.sayValue(h, importer.Impossible, "none of its users can sign in: headgate sends 403; write basic_auth or forward_auth")
		w.t.Check("%s:%d: no user can sign in until basic_auth has users", h.File, h.Line)
		return
	}
	// As Caddy passes them on, and calls it.
	auth := importer.NewObject().Set("users", users).Set("forward_credentials", true).Set("realm", "restricted")
	if realm := basic.get("realm"); realm.is() {
		auth.Set("realm", realm.text)
		w.t.Became(realm, importer.Same, auth.Field("realm"), "basic_auth.realm")
	}
	set := importer.NewObject().Set("basic_auth", auth)
	w.routable(h, c, func(o *result) { o.o.Merge(set) })
	w.t.Became(h, importer.Close, set.Field("basic_auth"), "basic_auth: the challenge names UTF-8, and an address with many wrong passwords gets 429 for a while")
}
