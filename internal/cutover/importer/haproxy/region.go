package haproxy

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/cutover/importer"
)

// region is the requests that a route takes: a path with all below it, and matchers.
//
// HAProxy asks rules in order, and headgate takes the most exact route. Both decide
// alike when there is a route for every region in which rules meet: a request belongs to
// the smallest region that has it, in which every question of every rule has one answer,
// and the first rule that fits there is the first one that fits the request.
type region struct {
	path   string // without a slash at its end; "" is every path
	method string // "" is every method
	asks   []*atom
}

// maxRegions bounds the routes of one proxy.
const maxRegions = 400

// regions are all in which atoms meet. Those that no route can be written for are left
// out, and full reports it.
func regions(atoms []*atom) (all []region, full bool) {
	all = []region{{}}
	seen := map[string]bool{all[0].key(): true}
	for _, a := range atoms {
		for _, r := range slices.Clone(all) {
			m, ok, lost := r.meet(a)
			full = full || lost
			if !ok || seen[m.key()] {
				continue
			}
			if len(all) >= maxRegions {
				return all, true
			}
			seen[m.key()] = true
			all = append(all, m)
		}
	}
	slices.SortStableFunc(all, func(a, b region) int {
		return cmp.Or(cmp.Compare(a.path, b.path), cmp.Compare(a.count(), b.count()))
	})
	return all, full
}

func (r region) key() string {
	text := r.path + "\x00" + r.method
	for _, a := range r.asks {
		text += "\x00" + a.key()
	}
	return text
}

// count is how many matchers there are, as headgate counts them.
func (r region) count() int { return min(len(r.method), 1) + len(r.asks) }

// meet returns what of r an atom holds for. lost says that there is such a part, and no
// route can be written for it.
func (r region) meet(a *atom) (out region, ok, lost bool) {
	out = r
	switch a.kind {
	case byPath:
		switch {
		case below(a.value, r.path):
			out.path = a.value
		case !below(r.path, a.value):
			return out, false, false
		}
	case byMethod:
		if r.method != "" && r.method != a.value {
			return out, false, false
		}
		out.method = a.value
	default:
		return r.ask(a)
	}
	return out, true, false
}

// ask adds a header or parameter, which may be asked for already.
func (r region) ask(a *atom) (out region, ok, lost bool) {
	out = r
	out.asks = slices.Clone(r.asks)
	i := slices.IndexFunc(out.asks, func(b *atom) bool { return b.kind == a.kind && strings.EqualFold(b.name, a.name) })
	if i < 0 {
		out.asks = append(out.asks, a)
		slices.SortFunc(out.asks, func(a, b *atom) int { return cmp.Compare(a.key(), b.key()) })
		return out, true, false
	}
	switch b := out.asks[i]; {
	case b.implies(a):
	case a.implies(b):
		out.asks[i] = a
	default:
		return out, false, a.regex != "" && b.regex != ""
	}
	return out, true, false
}

// implies reports whether whatever has a has b: a value is there, and may match an
// expression.
func (a *atom) implies(b *atom) bool {
	switch {
	case b.value == "" && b.regex == "", a.key() == b.key():
		return true
	case a.value != "" && b.regex != "":
		re, err := regexp.Compile(b.regex)
		return err == nil && re.MatchString(a.value)
	}
	return false
}

// within reports whether an atom holds for all of r.
func (r region) within(a *atom) bool {
	switch a.kind {
	case always:
		return true
	case byPath:
		return below(r.path, a.value)
	case byMethod:
		return r.method == a.value
	}
	return slices.ContainsFunc(r.asks, func(b *atom) bool { return b.kind == a.kind && strings.EqualFold(b.name, a.name) && b.implies(a) })
}

// holds reports whether r has all of a smaller one.
func (r region) holds(s region) bool {
	return below(s.path, r.path) && (r.method == "" || r.method == s.method) && !slices.ContainsFunc(r.asks, func(a *atom) bool { return !s.within(a) })
}

// below reports whether a path is a prefix or below it.
func below(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix) && path[len(prefix)] == '/'
}

// matchers is how many there are, as headgate counts them.
func (p piece) matchers() int { return min(len(p.methods), 1) + len(p.asks) }

// distinct reports whether no request can be in both, as far as headgate's check knows.
func (r piece) distinct(s piece) bool {
	if len(r.methods) > 0 && len(s.methods) > 0 && !slices.ContainsFunc(r.methods, func(m string) bool { return slices.Contains(s.methods, m) }) {
		return true
	}
	for _, a := range r.asks {
		for _, b := range s.asks {
			if a.kind == b.kind && strings.EqualFold(a.name, b.name) && a.value != "" && b.value != "" && a.value != b.value {
				return true
			}
		}
	}
	return false
}

// set writes path and matchers of a route.
func (r piece) set(o importer.Object) {
	if r.path != "" {
		o.Set("path", r.path)
	}
	if r.count() == 0 {
		return
	}
	m := importer.NewObject()
	if len(r.methods) > 0 {
		m.Set("methods", r.methods)
	}
	for _, a := range r.asks {
		c := importer.NewObject().Set("name", a.name)
		if a.value != "" {
			c.Set("value", a.value)
		} else if a.regex != "" {
			c.Set("regex", a.regex)
		}
		m.Append(map[kind]string{byHeader: "headers", byQuery: "query"}[a.kind], c.Flow())
	}
	o.Set("matchers", m)
}

// others are the methods that a route names in place of all: headgate tells two routes
// with as many matchers apart when they have no method in common.
var others = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH"}

// spread gives pieces that ask for headers or parameters all other methods, where a piece
// of the same path asks for methods.
func spread(all []piece) {
	used := map[string][]string{}
	for _, p := range all {
		if p.method != "" {
			used[p.path] = append(used[p.path], p.method)
		}
	}
	for i, p := range all {
		if p.method == "" && len(p.asks) > 0 && len(used[p.path]) > 0 {
			for _, m := range others {
				if !slices.Contains(used[p.path], m) {
					all[i].methods = append(all[i].methods, m)
				}
			}
		} else if p.method != "" {
			all[i].methods = []string{p.method}
		}
	}
}

// joined makes one route of those that differ in their method alone.
func joined(all []piece) (out []piece) {
	for _, p := range all {
		i := slices.IndexFunc(out, func(o piece) bool {
			return p.method != "" && o.method != "" && o.text == p.text && region{path: o.path, asks: o.asks}.key() == region{path: p.path, asks: p.asks}.key()
		})
		if i < 0 {
			out = append(out, p)
			continue
		}
		out[i].methods = append(out[i].methods, p.method)
	}
	return out
}

// piece is a region with what becomes of its requests.
type piece struct {
	region
	methods []string // of the region, and of those that do the same
	text    string   // of the outcome, to compare by
	out     *outcome
}

// needed leaves out the pieces without which every region keeps its outcome.
func needed(all []piece) []piece {
	kept := slices.Clone(all)
	for before := -1; before != len(kept); {
		before = len(kept)
		for i := len(kept) - 1; i > 0; i-- {
			without := slices.Delete(slices.Clone(kept), i, i+1)
			if !slices.ContainsFunc(all, func(q piece) bool { return kept[i].holds(q.region) && !served(without, q) }) {
				kept = without
			}
		}
	}
	return kept
}

// served reports whether the requests of a region get its outcome from pieces: from the
// one with the longest path and the most matchers.
func served(pieces []piece, q piece) bool {
	var best *piece
	same := true
	for i := range pieces {
		p := &pieces[i]
		if !p.holds(q.region) {
			continue
		}
		c := 1
		if best != nil {
			c = cmp.Or(cmp.Compare(len(p.path), len(best.path)), cmp.Compare(p.count(), best.count()))
		}
		if c > 0 {
			best, same = p, true
		}
		if c >= 0 {
			same = same && p.text == q.text
		}
	}
	return best != nil && same
}
