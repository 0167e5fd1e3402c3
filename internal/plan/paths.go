package plan

import (
	"slices"
	"strings"
)

// paths is a path table: a tree of segments. It finds the route with the longest
// path that is a prefix of whole segments. The zero value has no routes.
type paths struct {
	root  node
	loose *loosePaths // nil where no route is stricter than another
}

// node is one segment of the tree. Its children are in the order of their names.
type node struct {
	name     string
	route    *Route
	children []node
}

// few is how many children are looked at one after the other.
const few = 8

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
	if len(n.children) <= few {
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
// the same path; the first stays.
func newPaths(routes []*Route, clash func(first, second *Route)) *paths {
	if !slices.IsSortedFunc(routes, compareRoutes) {
		routes = slices.Clone(routes)
		slices.SortStableFunc(routes, compareRoutes)
	}
	p := &paths{}
	for i, r := range routes {
		if i > 0 && routes[i-1].prefix == r.prefix {
			clash(routes[i-1], r)
			continue
		}
		p.root.insert(r)
	}
	return p
}

// insert puts a route in its place. Routes come in order, so that a segment is
// either the last child already or becomes it.
func (n *node) insert(r *Route) {
	for rest := r.prefix; rest != ""; {
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
	n.route = r
}

// compareRoutes orders routes by the segments of their paths: a slash comes
// before every other character.
func compareRoutes(a, b *Route) int { return compareSegments(a.prefix, b.prefix) }

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
