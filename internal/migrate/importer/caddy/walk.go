package caddy

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// walker goes through the routes of a server for the requests of one host, and notes a step
// for what each handler does to them.
type walker struct {
	s     *server
	t     *translator
	host  string
	steps []step
	notes map[*value]string // of handlers, where their routes take other requests
	later []*value          // what only a route that serves files uses
}

// step is what one handler does to the requests that come to it.
type step struct {
	when rules.Condition
	by   *value
	// act changes what becomes of the requests of a region.
	act func(*result)
	// partly is for what can be bound to an expression on the path, such as a redirect: it
	// replaces act, and expr is empty if it applies to all requests of the region.
	partly func(o *result, expr string)
}

// change is how a handler has changed the path that later matchers see.
type change struct {
	when rules.Condition
	kind changeKind
	text string
}

type changeKind uint8

const (
	stripped changeKind = iota // the text is removed from the front
	prefixed                   // the text is put in front
	replaced                   // the path is the text
	unknown                    // not determined
)

// walk goes through a list of routes whose requests meet a condition. It returns the changes
// of the path that later routes see.
func (w *walker) walk(list *value, when rules.Condition, view []change, depth int) []change {
	if depth > maxDepth {
		w.t.sayValue(list, importer.Impossible, "nested too deep")
		return view
	}
	before := map[string]rules.Condition{} // by group: that no earlier route matched
	scriptRoutes := 0                      // those that are left of php_fastcgi
	for i, r := range list.list {
		if scriptRoutes > 0 {
			scriptRoutes--
			w.s.reached[r] = true
			continue
		}
		if h, n := phpRoutes(list.list[i:]); n > 0 {
			w.s.reached[r] = true
			w.php(h, when, list.list[i:i+n])
			scriptRoutes = n - 1
			continue
		}
		here := when
		group := r.get("group")
		if group.is() {
			if earlier, ok := before[group.text]; ok {
				here = when.And(earlier)
			}
			w.t.structure(group, "the first route of a group that matches")
		}
		own := w.matched(r.get("match"), view, here)
		if own.Problem != "" {
			w.lost(r, own.Problem)
			continue
		}
		c := here.And(own)
		if c.Problem != "" {
			w.lost(r, c.Problem)
			continue
		}
		if len(c.Any) == 0 {
			continue
		}
		w.s.reached[r] = true
		if group.is() {
			earlier, ok := before[group.text]
			if !ok {
				earlier = rules.Holds()
			}
			before[group.text] = earlier.And(own.Not())
		}
		for _, h := range r.get("handle").list {
			view = w.handler(h, c, view, depth)
		}
		if end := r.get("terminal"); end.is() {
			w.t.structure(end, "no later route gets these requests")
			if end.text == "true" {
				w.add(end, c, func(o *result) { o.answer(fixedStatus(200)) })
				if when = when.And(c.Not()); len(when.Any) == 0 {
					break
				}
			}
		}
	}
	return view
}

// lost notes a route that cannot be written.
func (w *walker) lost(r *value, why string) { w.t.lost(r, why) }

func (t *translator) lost(r *value, why string) {
	t.sayValue(r, importer.Impossible, "%s", why)
	what := "a route"
	if d := r.directive(); d != nil {
		what = d.Text()
	}
	t.Check("%s:%d: %s was left out: %s", r.File, r.Line, what, why)
}

func (w *walker) add(by *value, when rules.Condition, act func(*result)) {
	w.steps = append(w.steps, step{when: when, by: by, act: act})
}

// routable adds a step for a condition that routes can be chosen by.
func (w *walker) routable(h *value, c rules.Condition, act func(*result)) bool {
	if c = byPrefixes(c); c.Problem != "" {
		w.lost(h, c.Problem)
		return false
	}
	w.noted(h, c)
	w.add(h, c, act)
	return true
}

// noted reports that the route of a handler gets other requests than in Caddy. A handler
// that protects and gets fewer of them needs a check by a person.
func (w *walker) noted(h *value, c rules.Condition) {
	if len(c.Notes) == 0 {
		return
	}
	w.notes[h] = strings.Join(c.Notes, "; ")
	if !guards(h) {
		return
	}
	c.Atoms(func(a *rules.Atom) {
		if a.Kind == rules.Path && a.Name == open {
			w.t.Check("%s:%d: %s guards %s and what is below it; in Caddy it also guards paths such as %sx", h.File, h.Line, h.label(), a.Value, a.Value)
		}
	})
}

// guards reports whether a handler keeps clients out.
func guards(h *value) bool {
	switch h.get("handler").text {
	case "authentication", "error":
		return true
	case "static_response":
		status := h.get("status_code").text
		return h.get("abort").text == "true" || status == "401" || status == "403" || status == "404"
	}
	return h.get("rewrite", "method").text == "GET"
}

// label names a value for people.
func (v *value) label() string {
	if d := v.directive(); d != nil {
		return d.Text()
	}
	return v.path
}

// byExpression adds a step that can be bound to an expression on the path.
func (w *walker) byExpression(h *value, c rules.Condition, partly func(o *result, expr string)) {
	w.steps = append(w.steps, step{when: c, by: h, partly: partly})
	for _, list := range c.Any { // the path that is left out is one with all below it
		if len(c.Notes) > 0 && slices.ContainsFunc(list, func(l rules.Literal) bool { return l.Not && l.Kind == rules.Path }) {
			w.notes[h] = strings.Join(c.Notes, "; ")
		}
	}
}

// handler notes what a handler does, and returns the changes of the path after it.
func (w *walker) handler(h *value, c rules.Condition, view []change, depth int) []change {
	name := h.get("handler")
	switch name.text {
	case "subroute":
		view = w.walk(h.get("routes"), c, view, depth+1)
		w.t.errorRoutes(h.get("errors"))
	case "static_response":
		w.answer(h, c, within(c, view))
	case "reverse_proxy":
		w.proxy(h, c, within(c, view))
	case "headers":
		w.headerRules(h, c, within(c, view))
	case "rewrite":
		view = w.rewrite(h, c, view)
	case "encode":
		set := importer.NewObject().Set("compression", importer.NewObject().Set("enabled", true).Flow())
		w.routable(h, c, func(o *result) { o.o.Merge(set) })
		w.t.Became(h, importer.Close, set.Field("compression"), "compression, with zstd, br and gzip as the client prefers")
	case "authentication":
		w.authentication(h, c)
	case "request_body":
		size := h.get("max_size")
		if size.is() {
			set := importer.NewObject().Set("request_body_limit", size.text+"B")
			w.routable(h, c, func(o *result) { o.o.Merge(set) })
			w.t.Became(size, importer.Same, set.Field("request_body_limit"), "request_body_limit")
		}
	case "error":
		w.t.Became(h, importer.Same, w.answers(h, c, fixedStatus(errorStatus(h))), "fixed_response")
	case "vars":
		w.vars(h, c)
	case "file_server":
		w.fileServer(h, c)
	case "try_files":
		w.tryFiles(h, c)
	case "tracing", "metrics", "log_append", "copy_response", "copy_response_headers", "push":
		w.t.sayValue(h, importer.Ignored, "requests of all hosts are logged and measured")
	case "map", "intercept", "invoke", "fs": // they answer nothing themselves
		w.t.lost(h, "headgate has nothing like "+name.text)
	case "php_fastcgi":
		w.php(h, c, nil)
	default: // templates, plugins
		w.noHandler(h, c, "headgate has no handler like "+name.text+": use a server that does it; here it answers 404")
	}
	if name.text != "file_server" { // known when the routes are written
		w.t.structure(name, "the handler; its fields have the verdict")
	}
	for of, note := range w.notes {
		w.t.amend(of, note)
	}
	clear(w.notes)
	return view
}

// noHandler makes the requests of a handler that headgate does not have get 404.
func (w *walker) noHandler(h *value, c rules.Condition, why string) {
	w.routable(h, c, func(o *result) { o.answer(fixedStatus(404)) })
	w.t.sayValue(h, importer.Impossible, "%s", why)
	w.t.Check("%s:%d: %s cannot be translated; its requests get 404", h.File, h.Line, strings.TrimSuffix("the handler "+h.get("handler").text, " "))
}

// errorRoutes are the routes for what handlers refuse.
func (t *translator) errorRoutes(v *value) {
	if v.is() {
		t.sayValue(v, importer.Impossible, "write the pages in error_pages, with upstream: true for what servers answer")
		t.Check("%s:%d: the routes for errors were left out: write the pages in error_pages", v.File, v.Line)
	}
}

func fixedStatus(status int) importer.Object { return importer.NewObject().Set("status", status) }
