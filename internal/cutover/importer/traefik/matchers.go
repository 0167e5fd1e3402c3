package traefik

import (
	"cmp"
	"slices"
	"strings"

	"headgate/internal/cutover/importer"
	"headgate/internal/plan/matchers"
)

// narrow adds what a match asks for to the matchers of a condition. It reports whether
// that can be asked.
func (c *condition) narrow(m match) bool {
	value := func(i int) string {
		if i < len(m.args) {
			return m.args[i]
		}
		return ""
	}
	switch m.name {
	case "method":
		var methods []string
		for _, a := range m.args {
			methods = append(methods, strings.ToUpper(a))
		}
		if len(c.matchers.Methods) > 0 { // both have to hold
			methods = slices.DeleteFunc(methods, func(a string) bool { return !slices.Contains(c.matchers.Methods, a) })
			if len(methods) == 0 {
				return false
			}
		}
		c.matchers.Methods = methods
		return len(methods) > 0
	case "header", "headers", "headerregexp", "headersregexp":
		one := matchers.Condition{Name: value(0), Value: value(1)}
		if strings.HasSuffix(m.name, "regexp") {
			one.Value, one.Regex = "", value(1)
		}
		return len(m.args) == 2 && importer.AddMatcher(&c.matchers.Headers, one)
	case "queryregexp":
		return len(m.args) == 2 && importer.AddMatcher(&c.matchers.Query, matchers.Condition{Name: value(0), Regex: value(1)})
	case "query":
		if name, v, old := strings.Cut(value(0), "="); old { // version 2: Query(`name=value`)
			return len(m.args) == 1 && importer.AddMatcher(&c.matchers.Query, matchers.Condition{Name: name, Value: v})
		}
		return (len(m.args) == 1 || len(m.args) == 2) && importer.AddMatcher(&c.matchers.Query, matchers.Condition{Name: value(0), Value: value(1)})
	}
	return false
}

// priority is what Traefik goes by: the number, else the length of the rule.
func (r *router) priority() int {
	if p := r.n.get("priority").number(0); p != 0 {
		return p
	}
	return len(r.n.get("rule").text())
}

// maxCompared bounds the routers of one proxy whose order is looked at.
const maxCompared = 500

// inOrder returns the routers of one proxy that can stand beside each other, and tells
// where Traefik would choose another one: it goes by priority, headgate by the longest
// path and then by the number of matchers.
func (t *translator) inOrder(routers []*router) []*router {
	byRank := slices.Clone(routers)
	slices.SortStableFunc(byRank, func(a, b *router) int { return cmp.Compare(b.priority(), a.priority()) })
	if len(byRank) > maxCompared {
		t.Check("%d routers have the same hosts; their priorities were not compared: check them with headgate explain", len(byRank))
	}
	out := map[*router]bool{}
	var kept []*router
	for i, r := range byRank {
		lost := ""
		for _, before := range byRank[:min(i, maxCompared)] {
			if !matchers.Overlap(&before.when.matchers, &r.when.matchers) {
				continue
			}
			same := before.when.path == r.when.path
			switch {
			case same && before.when.matchers.Count() == r.when.matchers.Count():
				lost = before.name
			case (same && r.when.matchers.Count() > before.when.matchers.Count() || !same && below(r.when.path, before.when.path)) && out[before]:
				t.Amend(r.n.get("rule"), importer.Close, "Traefik gives what both match to router "+before.name+", by its priority; headgate to this one, whose path is longer or which has more matchers")
				t.Check("routers %s and %s: Traefik prefers %s by its priority, headgate %s, which is narrower: check them with headgate explain", before.name, r.name, before.name, r.name)
			}
		}
		if lost != "" {
			t.Amend(r.n.get("rule"), importer.Impossible, "router "+lost+" has the same hosts, path and number of matchers, and a request could match both")
			t.Check("routers %s and %s have the same hosts and path; only %s was taken over", lost, r.name, lost)
			continue
		}
		out[r] = true
		kept = append(kept, r)
	}
	return slices.DeleteFunc(slices.Clone(routers), func(r *router) bool { return !slices.Contains(kept, r) })
}

// below reports whether a path is below another one, by whole segments.
func below(path, of string) bool {
	return of == "/" || strings.HasPrefix(path, strings.TrimSuffix(of, "/")+"/")
}
