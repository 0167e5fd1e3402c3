package plan

import (
	"slices"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/matchers"
)

// paths is a path table: a tree of segments. It finds the route with the longest
// path that is a prefix of whole segments. The zero value has no routes.
type paths struct {
	root  node
	loose *loosePaths // nil where no route is stricter than another
	// matched says that a route of the table has matchers.
	matched bool
}

// node is one segment of the tree. Its children are in the order of their names.
type node struct {
	name     string
	route    *Route // the one that takes all requests
	choices  *choices
	children []node
}

// choices are the routes of one path, where some have matchers: those with the most
// come first.
type choices struct {
	routes []*Route
	above  *node // with the next shorter path that has routes; nil if none has
}

// linear is the maximum number of children for a linear search.
const linear = 8

// find returns the route for a request: that with the longest prefix of its path, and of
// those the one with the most matchers. If none of them matches, shorter paths are tried.
func (p *paths) find(ex *exchange.Exchange, path string) *Route {
	if !p.matched {
		return p.longest(path)
	}
	for n := p.deepest(path); n != nil; n = n.choices.above {
		if n.choices == nil {
			return n.route
		}
		for _, r := range n.choices.routes {
			if r.matchers.Match(ex) {
				return r
			}
		}
	}
	return nil
}

// deepest returns the node with routes whose path is the longest prefix of path, or nil.
func (p *paths) deepest(path string) (best *node) {
	n := &p.root
	for {
		if n.route != nil || n.choices != nil {
			best = n
		}
		if len(n.children) == 0 || len(path) <= 1 {
			return best
		}
		end := 1
		for end < len(path) && path[end] != '/' {
			end++
		}
		if n = n.child(path[1:end]); n == nil {
			return best
		}
		path = path[end:]
	}
}

// longest returns the route with the longest prefix of path, or nil. The path
// begins with a slash and is in its one form; "*", the target of OPTIONS for the
// server as a whole, belongs to the route of all paths (RFC 9110, section
// 9.3.7).
func (p *paths) longest(path string) *Route {
	n := &p.root
	best := n.route
	for len(n.children) > 0 && len(path) > 1 {
		end := 1
		for end < len(path) && path[end] != '/' {
			end++
		}
		if n = n.child(path[1:end]); n == nil {
			break
		}
		if n.route != nil {
			best = n.route
		}
		path = path[end:]
	}
	return best
}

func (n *node) child(name string) *node {
	if len(n.children) <= linear {
		for i := range n.children {
			if n.children[i].name == name {
				return &n.children[i]
			}
		}
		return nil
	}
	if i, found := slices.BinarySearchFunc(n.children, name, compareName); found {
		return &n.children[i]
	}
	return nil
}

func compareName(n node, name string) int { return strings.Compare(n.name, name) }

// newPaths returns the table of routes. clash is called for two routes that have
// the same path and would take the same requests; the first stays.
func newPaths(routes []*Route, clash func(first, second *Route)) *paths {
	if !slices.IsSortedFunc(routes, compareRoutes) {
		routes = slices.Clone(routes)
		slices.SortStableFunc(routes, compareRoutes)
	}
	p := &paths{}
	for len(routes) > 0 {
		n := 1
		for n < len(routes) && routes[n].prefix == routes[0].prefix {
			n++
		}
		same := withoutClashes(routes[:n], clash)
		at := p.root.insert(routes[0].prefix)
		if len(same) == 1 && same[0].matchers == nil {
			at.route = same[0]
		} else {
			at.choices, p.matched = &choices{routes: same}, true
		}
		routes = routes[n:]
	}
	if p.matched {
		p.root.link(nil)
	}
	return p
}

// withoutClashes returns the routes of one path, in their order, without those that would
// take the requests of an earlier one. Two with as many matchers may meet where one with
// more, which comes before them, takes the requests of both.
func withoutClashes(routes []*Route, clash func(first, second *Route)) []*Route {
	kept := routes[:1:1]
	for _, r := range routes[1:] {
		i := slices.IndexFunc(kept, func(first *Route) bool {
			return first.matchers.Count() == r.matchers.Count() && matchers.Overlap(first.settings.Matchers, r.settings.Matchers) &&
				!slices.ContainsFunc(kept, func(c *Route) bool {
					return matchers.Covers(c.settings.Matchers, first.settings.Matchers, r.settings.Matchers)
				})
		})
		if i >= 0 {
			clash(kept[i], r)
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// link connects the choices below n to the routes that follow them.
func (n *node) link(above *node) {
	if n.choices != nil {
		n.choices.above = above
	}
	if n.route != nil || n.choices != nil {
		above = n
	}
	for i := range n.children {
		n.children[i].link(above)
	}
}

// insert returns the place of a path. Paths come in order, so that a segment is either
// the last child already or becomes it. The place holds until the next insert.
func (n *node) insert(prefix string) *node {
	for rest := prefix; rest != ""; {
		name := rest[1:]
		rest = ""
		if i := strings.IndexByte(name, '/'); i >= 0 {
			name, rest = name[:i], name[i:]
		}
		last := len(n.children) - 1
		if last < 0 || n.children[last].name != name {
			n.children = append(n.children, node{name: name})
			last++
		}
		n = &n.children[last]
	}
	return n
}

// compareRoutes orders routes by the segments of their paths: a slash comes
// before every other character. Of one path those with the most matchers come first.
func compareRoutes(a, b *Route) int {
	if c := compareSegments(a.prefix, b.prefix); c != 0 {
		return c
	}
	return b.matchers.Count() - a.matchers.Count()
}

func compareSegments(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if x, y := a[i], b[i]; x != y {
			switch {
			case x == '/':
				return -1
			case y == '/':
				return 1
			case x < y:
				return -1
			}
			return 1
		}
	}
	return len(a) - len(b)
}
