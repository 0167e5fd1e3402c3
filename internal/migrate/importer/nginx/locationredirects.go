package nginx

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// exactRedirects adds rules for exact paths, which belong to the longest path above them,
// and sends clients to the path with a slash as nginx does.
func (w *writer) exactRedirects(v *view, f *flow, path string) {
	every(w.locations, func(l *location) {
		if l.kind == byExact && l.redirects() && w.home(l.path) == path {
			w.rules(v, f, l, "^"+quote(l.path)+"$")
		}
	})
	every(w.locations, func(l *location) {
		if l.beside(w) && l.path == path {
			w.t.Became(l.d, importer.Close, importer.Through(l.d.block...), "a path matches whole segments: %sx is not below %s", path, path)
			w.rules(v, f, l, "^"+quote(l.path)+"$")
		}
	})
	every(w.locations, func(l *location) {
		if l.clean() != path || path == "" || !l.slash() || w.has(path) {
			return
		}
		f.redirects = append(f.redirects, redirect("^"+quote(path)+"$", path+"/", 301))
	})
}

// beside reports whether a location only sends clients elsewhere, and another one has its
// path with a slash: location /x { return 301 /x/; } beside location /x/. The route of the
// path is that of the other one, and this one is a rule of it.
func (l *location) beside(w *writer) bool {
	return l.kind == byPrefix && l.path != "" && !strings.HasSuffix(l.path, "/") && l.redirects() && w.has(l.path+"/")
}

// slash reports whether nginx sends clients from the path without a slash to this one.
func (l *location) slash() bool {
	return (l.kind == byPrefix || l.kind == byPrefixAt) && strings.HasSuffix(l.path, "/") && len(l.d.find("proxy_pass", "grpc_pass")) > 0
}

// has reports whether a location has exactly a path.
func (w *writer) has(path string) (found bool) {
	every(w.locations, func(l *location) { found = found || l.kind != byExpr && l.kind != byName && l.path == path })
	return found
}

// home is the longest of the paths that have a route and are above a path.
func (w *writer) home(path string) (best string) {
	for _, p := range w.paths {
		if rules.Below(strings.TrimSuffix(path, "/"), p) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// exprRedirects adds the rules of a location by an expression.
func (w *writer) exprRedirects(v *view, f *flow, l *location) {
	if what := checkRegex(l.path); what != "" {
		w.t.AddVerdict(l.d, importer.Impossible, "%s", what)
		return
	}
	w.rules(v, f, l, l.path)
}

// rules adds what a location that only sends clients elsewhere does.
func (w *writer) rules(v *view, f *flow, l *location, expr string) {
	for _, d := range l.d.block {
		switch d.name {
		case "rewrite":
			inner := &flow{}
			v.redirectRule(inner, d)
			f.redirects = append(f.redirects, inner.redirects...)
		case "return":
			code, text := returned(d)
			target, note, what := v.target(text, true)
			if what != "" {
				w.t.AddVerdict(d, importer.Impossible, "%s", what)
				return
			}
			rule := redirect(expr, target, code)
			f.redirects = append(f.redirects, rule)
			w.t.Became(d, verdictOf(note), rule.As("redirects"), "%s", note)
		default:
			w.t.known(d)
		}
	}
	w.t.Became(l.d, importer.Same, importer.Through(l.d.block...), "a redirect rule")
}

// rewritten is the location to which a rewrite of the server leads.
func (w *writer) rewritten(f *flow, path string, l *location) *location {
	all, ok := rules.Prefixes(f.rewrite.arg(0))
	if ok && !slices.ContainsFunc(all, func(p rules.Prefix) bool { return rules.Below(path, p.Path) }) {
		f.rewrite = nil // no path below matches it
		return l
	}
	if w.withoutQuery(f) || !ok || f.rewrite.arg(2) == "break" {
		return l
	}
	if to := w.led(f.rewrite.arg(1)); to != nil {
		return to
	}
	return l
}

// withoutQuery leaves a rewrite out that writes a query, which headgate sends as it came,
// if there are paths that it does not match: those are sent as ever. It reports whether it
// did.
func (w *writer) withoutQuery(f *flow) bool {
	d := f.rewrite
	if d == nil || !strings.Contains(strings.TrimSuffix(d.arg(1), "?"), "?") || slices.Contains(takesAll, d.arg(0)) {
		return false
	}
	f.rewrite = nil
	w.t.AddVerdict(d, importer.Impossible, "the query is sent as it came: a rewrite changes the path alone; paths that it matches are sent as they are")
	w.t.Check("%s:%d: %s was left out, since headgate sends the query as it came: the paths that it matches reach the server as they are", d.File, d.Line, d.Text())
	return true
}

// led is the location for a replacement, judging by its literal start.
func (w *writer) led(replacement string) *location {
	literal, _, _ := strings.Cut(replacement, "$")
	if !strings.HasPrefix(literal, "/") {
		return nil
	}
	l, _ := find(w.locations, literal, func(*location) {})
	every(w.locations, func(e *location) {
		if e.kind == byExact && e.path == replacement && e.answers() {
			l = e
		}
	})
	return l
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
