package nginx

import (
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
	"headgate/internal/migrate/importer/rules"
)

// location is a block location.
type location struct {
	d      *directive
	kind   locationKind
	path   string // or the expression, or the name
	around *location
	inner  []*location

	prefixes []rules.Prefix // of an expression
	anywhere bool           // the expression matches not only at the beginning of the path
}

// locationKind is how a location is chosen.
type locationKind uint8

const (
	byPrefix   locationKind = iota
	byPrefixAt              // ^~: before expressions
	byExact
	byExpr
	byName
)

// newLocations reads the locations of a block.
func (t *translator) newLocations(block []*directive, around *location) (all []*location) {
	for _, d := range block {
		if d.name != "location" {
			continue
		}
		l := &location{d: d, path: d.arg(0), around: around}
		modifier := ""
		if len(d.args) > 1 {
			modifier, l.path = d.arg(0), d.arg(1)
		} else {
			for _, m := range []string{"~*", "~", "^~", "="} {
				if rest, ok := strings.CutPrefix(l.path, m); ok {
					modifier, l.path = m, rest
					break
				}
			}
		}
		switch {
		case strings.HasPrefix(l.path, "@"):
			l.kind = byName
		case modifier == "=":
			l.kind = byExact
		case modifier == "^~":
			l.kind = byPrefixAt
		case modifier != "":
			l.kind = byExpr
			if modifier == "~*" {
				l.path = "(?i)" + l.path
			}
			expr := strings.TrimPrefix(l.path, "(?i)")
			if l.prefixes, _ = rules.Prefixes(expr); len(l.prefixes) == 0 && !strings.HasPrefix(expr, "^") {
				l.prefixes, l.anywhere = rules.Prefixes("^(?:" + expr + ")")
			}
			if modifier == "~*" {
				for i := range l.prefixes {
					l.prefixes[i].Note = join(l.prefixes[i].Note, "paths are compared in the letters in which they are written")
				}
			}
		case !strings.HasPrefix(l.path, "/") && l.path != "":
			t.AddVerdict(d, importer.Impossible, "a path starts with /")
			continue
		}
		if strings.HasPrefix(l.path, acmePath) {
			ignoreAll(t, []*directive{d}, "with an acme entry headgate answers these itself; else they go the way of the path /")
			continue
		}
		l.inner = t.newLocations(d.block, l)
		all = append(all, l)
	}
	return all
}

// clean is the path of the route for a location, "" for /.
func (l *location) clean() string { return strings.TrimSuffix(l.path, "/") }

// scope are the blocks around and the location's own.
func (l *location) scope(server scope) scope {
	var out scope
	for ; l != nil; l = l.around {
		out = append(out, l.d)
	}
	return append(out, server...)
}

// find returns the location that nginx uses for the paths below a route's. final means
// that no expression around it is evaluated any more. before is called with the
// expressions that are evaluated before it.
func find(list []*location, path string, before func(*location)) (best *location, final bool) {
	for _, l := range list {
		if (l.kind == byPrefix || l.kind == byPrefixAt) && strings.HasPrefix(path, l.path) && (best == nil || len(l.path) > len(best.path)) {
			best = l
		}
	}
	stop := best != nil && best.kind == byPrefixAt
	if best != nil && len(best.inner) > 0 {
		if inner, last := find(best.inner, path, before); inner != nil {
			if best = inner; last {
				return best, true
			}
		}
	}
	if stop {
		return best, false
	}
	for _, l := range list {
		if l.kind != byExpr {
			continue
		}
		if slices.ContainsFunc(l.prefixes, func(p rules.Prefix) bool { return rules.Below(strings.TrimSuffix(path, "/"), p.Path) }) && !l.redirects() {
			return l, true
		}
		before(l)
	}
	return best, false
}

// redirects reports whether all that a location does is to send clients elsewhere, which
// a rule does for any expression.
func (l *location) redirects() bool {
	found := false
	for _, d := range l.d.block {
		switch d.name {
		case "return":
			code, text := returned(d)
			found = isRedirect(code) && text != "" || found
		case "rewrite":
			found = d.arg(2) == "permanent" || d.arg(2) == "redirect" || found
		case "proxy_pass", "grpc_pass", "if", "fastcgi_pass", "uwsgi_pass", "root", "alias", "location":
			return false
		}
	}
	return found
}

// every calls each with all locations.
func every(list []*location, each func(*location)) {
	for _, l := range list {
		each(l)
		every(l.inner, each)
	}
}
