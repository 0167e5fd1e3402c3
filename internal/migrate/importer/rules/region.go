package rules

import (
	"cmp"
	"slices"
	"strings"

	"headgate/internal/matchers"
	"headgate/internal/migrate/importer"
)

// Region is the requests of a route: a path with all below it, and matchers.
//
// Another proxy evaluates rules in order, and headgate uses the most exact route. The
// result is the same when there is a route for every region in which rules meet: a
// request belongs to the smallest region that contains it, in which every condition of
// every rule has one value, and the first rule that matches there is the first one that
// matches the request.
type Region struct {
	// Path has no slash at its end; "" is every path.
	Path string
	// Method is one method; "" is every method.
	Method string
	// Asks are the headers and parameters, in order of their keys.
	Asks []*Atom
}

// maxRegions bounds the routes of one proxy.
const maxRegions = 400

// regions are all in which atoms meet, below the path. Those that no route can be
// written for are left out, and full reports it.
func regions(path string, atoms []*Atom) (all []Region, full bool) {
	all = []Region{{Path: path}}
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
	slices.SortStableFunc(all, func(a, b Region) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.count(), b.count()))
	})
	return all, full
}

func (r Region) key() string {
	text := r.Path + "\x00" + r.Method
	for _, a := range r.Asks {
		text += "\x00" + a.Key()
	}
	return text
}

// count is how many matchers there are, as headgate counts them.
func (r Region) count() int { return min(len(r.Method), 1) + len(r.Asks) }

// meet returns what of r an atom holds for. lost says that there is such a part, and no
// route can be written for it.
func (r Region) meet(a *Atom) (out Region, ok, lost bool) {
	out = r
	switch a.Kind {
	case Path:
		switch {
		case Below(a.Value, r.Path):
			out.Path = a.Value
		case !Below(r.Path, a.Value):
			return out, false, false
		}
	case Method:
		if r.Method != "" && r.Method != a.Value {
			return out, false, false
		}
		out.Method = a.Value
	default:
		return r.addAtom(a)
	}
	return out, true, false
}

// addAtom adds a header or parameter, which may be present already.
func (r Region) addAtom(a *Atom) (out Region, ok, lost bool) {
	out = r
	out.Asks = slices.Clone(r.Asks)
	i := slices.IndexFunc(out.Asks, func(b *Atom) bool { return b.Kind == a.Kind && strings.EqualFold(b.Name, a.Name) })
	if i < 0 {
		out.Asks = append(out.Asks, a)
		slices.SortFunc(out.Asks, func(a, b *Atom) int { return cmp.Compare(a.Key(), b.Key()) })
		return out, true, false
	}
	switch b := out.Asks[i]; {
	case b.implies(a):
	case a.implies(b):
		out.Asks[i] = a
	default:
		return out, false, !a.excludes(b)
	}
	return out, true, false
}

// Within reports whether an atom holds for all of r.
func (r Region) Within(a *Atom) bool {
	switch a.Kind {
	case Always:
		return true
	case Path:
		return Below(r.Path, a.Value)
	case Method:
		return r.Method == a.Value
	}
	return slices.ContainsFunc(r.Asks, func(b *Atom) bool { return b.Kind == a.Kind && strings.EqualFold(b.Name, a.Name) && b.implies(a) })
}

// holds reports whether r has all of a smaller one.
func (r Region) holds(s Region) bool {
	return Below(s.Path, r.Path) && (r.Method == "" || r.Method == s.Method) && !slices.ContainsFunc(r.Asks, func(a *Atom) bool { return !s.Within(a) })
}

// Below reports whether a path is a prefix or below it, by whole segments. "" is above
// all.
func Below(path, prefix string) bool {
	return path == prefix || strings.HasPrefix(path, prefix) && path[len(prefix)] == '/'
}

// Label names the region for people.
func (r Region) Label() string {
	text := r.Path + "/"
	if r.Method != "" {
		text += " " + r.Method
	}
	for _, a := range r.Asks {
		text += " " + a.Name
	}
	return text
}

// Piece is a region with what becomes of its requests.
type Piece[O any] struct {
	Region
	// Methods are those of the region, and of regions of which the same becomes.
	Methods []string
	Out     O
	text    string // of the outcome, to compare by
}

// Routes returns the routes that are needed below a path so that each request gets the
// outcome that decide returns for its region. Decide also returns a text, which is the
// same for equal outcomes. lost is called with every piece that headgate cannot
// distinguish from another one, which is there; full means that there were more regions
// than routes can be written for.
func Routes[O any](path string, atoms []*Atom, decide func(Region) (O, string), lost func(left, other Piece[O])) (out []Piece[O], full bool) {
	all, full := regions(path, atoms)
	pieces := make([]Piece[O], len(all))
	for i, at := range all {
		o, text := decide(at)
		pieces[i] = Piece[O]{Region: at, Out: o, text: text}
		if at.Method != "" {
			pieces[i].Methods = []string{at.Method}
		}
	}
	pieces = needed(pieces)
	if fewer := joined(pieces); len(unambiguous(fewer, func(Piece[O], Piece[O]) {})) == len(fewer) {
		return fewer, full
	}
	return unambiguous(pieces, lost), full
}

// matchers is how many there are, as headgate counts them.
func (p Piece[O]) matchers() int { return min(len(p.Methods), 1) + len(p.Asks) }

// distinct reports whether no request can be in both, as far as headgate's check knows.
func (p Piece[O]) distinct(o Piece[O]) bool { return !matchers.Overlap(p.config(), o.config()) }

// Set writes path and matchers of a route.
func (p Piece[O]) Set(o importer.Object) {
	if p.Path != "" {
		o.Set("path", p.Path)
	}
	if m := importer.Matchers(p.config()); !m.Empty() {
		o.Set("matchers", m)
	}
}

// joined makes one route of those that differ in their method alone.
func joined[O any](all []Piece[O]) (out []Piece[O]) {
	for _, p := range all {
		i := slices.IndexFunc(out, func(o Piece[O]) bool {
			return p.Method != "" && o.Method != "" && o.text == p.text && Region{Path: o.Path, Asks: o.Asks}.key() == Region{Path: p.Path, Asks: p.Asks}.key()
		})
		if i < 0 {
			out = append(out, p)
			continue
		}
		out[i].Methods = append(out[i].Methods, p.Method)
	}
	return out
}

// needed leaves out the pieces without which every region keeps its outcome.
func needed[O any](all []Piece[O]) []Piece[O] {
	within := make([][]int, len(all)) // by piece: those that have all of it
	of := make([][]int, len(all))     // by piece: those that it has all of
	for i := range all {
		for j := range all {
			if all[j].holds(all[i].Region) {
				within[i], of[j] = append(within[i], j), append(of[j], i)
			}
		}
	}
	kept := make([]bool, len(all))
	for i := range kept {
		kept[i] = true
	}
	for changed := true; changed; {
		changed = false
		for i := len(all) - 1; i > 0; i-- {
			if !kept[i] {
				continue
			}
			kept[i] = false
			if slices.ContainsFunc(of[i], func(q int) bool { return !served(all, kept, within[q], q) }) {
				kept[i] = true
				continue
			}
			changed = true
		}
	}
	var out []Piece[O]
	for i, p := range all {
		if kept[i] {
			out = append(out, p)
		}
	}
	return out
}

// served reports whether the requests of a region get its outcome from the pieces that
// are kept: from the one with the longest path and the most matchers, which has to be one.
func served[O any](all []Piece[O], kept []bool, within []int, q int) bool {
	best, tie := -1, false
	for _, i := range within {
		if !kept[i] {
			continue
		}
		c := 1
		if best >= 0 {
			c = cmp.Or(cmp.Compare(len(all[i].Path), len(all[best].Path)), cmp.Compare(all[i].count(), all[best].count()))
		}
		if c > 0 {
			best = i
		}
		if c >= 0 {
			tie = c == 0
		}
	}
	return best >= 0 && !tie && all[best].text == all[q].text
}

// unambiguous leaves out pieces that headgate cannot distinguish from others: those of
// one path with as many matchers, which a request may match both, unless a piece with
// the matchers of both matches it.
func unambiguous[O any](all []Piece[O], lost func(left, other Piece[O])) (out []Piece[O]) {
	for _, p := range all {
		i := slices.IndexFunc(out, func(o Piece[O]) bool {
			return o.Path == p.Path && o.matchers() == p.matchers() && !o.distinct(p) && !met(all, o, p)
		})
		if i < 0 {
			out = append(out, p)
			continue
		}
		lost(p, out[i])
	}
	return out
}

// met reports whether a piece gets the requests of two others.
func met[O any](all []Piece[O], a, b Piece[O]) bool {
	x, y := a.config(), b.config()
	return slices.ContainsFunc(all, func(c Piece[O]) bool {
		return c.Path == a.Path && c.matchers() > a.matchers() && matchers.Covers(c.config(), x, y)
	})
}

// config is the matchers of the piece as headgate has them.
func (p Piece[O]) config() *matchers.Config {
	c := &matchers.Config{Methods: p.Methods}
	for _, a := range p.Asks {
		one := matchers.Condition{Name: a.Name, Value: a.Value, Regex: a.Regex}
		if a.Kind == Header {
			c.Headers = append(c.Headers, one)
		} else {
			c.Query = append(c.Query, one)
		}
	}
	return c
}
