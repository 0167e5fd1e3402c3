package caddy

import (
	"cmp"
	"slices"
	"strings"

	"headgate/internal/migrate/importer"
)

// adapter makes Caddy's JSON of a Caddyfile, as "caddy adapt" does: sites become servers,
// directives are sorted, and mutually exclusive ones share a group. Each value of the tree
// knows the directive that it was made from, which gets the verdict.
type adapter struct {
	t      *translator
	order  []string
	groups int
}

// directiveOrder is the order in which Caddy runs directives.
var directiveOrder = strings.Fields(`tracing map vars fs root log_append skip_log log_skip log_name header copy_response_headers request_body
	redir method rewrite uri try_files basicauth basic_auth forward_auth request_header encode push intercept templates
	invoke handle handle_path route abort error copy_response respond metrics reverse_proxy php_fastcgi file_server acme_server`)

// newAdapter returns an adapter with the order of the global options.
func newAdapter(t *translator) *adapter { return &adapter{t: t, order: slices.Clone(directiveOrder)} }

// reorder handles the global option order: NAME first|last, or before|after
// OTHER.
func (a *adapter) reorder(d *directive) {
	name, where, other := d.arg(0), d.arg(1), d.arg(2)
	a.order = slices.DeleteFunc(a.order, func(s string) bool { return s == name })
	at := slices.Index(a.order, other)
	switch {
	case where == "first":
		a.order = slices.Insert(a.order, 0, name)
	case where == "before" && at >= 0:
		a.order = slices.Insert(a.order, at, name)
	case where == "after" && at >= 0:
		a.order = slices.Insert(a.order, at+1, name)
	default:
		a.order = append(a.order, name)
	}
}

// entry is a route that a directive makes, or several that stay together.
type entry struct {
	directive string
	by        *directive
	set       *value   // its matchers; nil for none
	handlers  []*value // in one route
	together  []entry  // in the place of set and handlers
	group     string
	path      string // the one path that the matchers have
}

// block is a list of directives with the named matchers that they can use.
type block struct {
	a        *adapter
	matchers map[string]*value
	errors   []*directive // handle_errors
}

func (a *adapter) block(outer *block) *block {
	b := &block{a: a, matchers: map[string]*value{}}
	if outer != nil {
		for name, m := range outer.matchers {
			b.matchers[name] = m
		}
	}
	return b
}

// routes makes the routes of a list of directives, sorted unless they are in a route.
func (b *block) routes(list []*directive, sorted bool) []entry {
	b.define(list)
	var all []entry
	for _, d := range list {
		if strings.HasPrefix(d.name(), "@") {
			continue
		}
		made := b.directive(d)
		for i := range made {
			if made[i].directive = d.name(); d.name() == "handle_path" {
				made[i].directive = "handle"
			}
		}
		all = append(all, made...)
	}
	if sorted {
		slices.SortStableFunc(all, b.a.compare)
	}
	b.a.group(all)
	return consolidated(all)
}

// define reads the named matchers of a list.
func (b *block) define(list []*directive) {
	lines := map[string][]*directive{}
	var names []string
	for _, d := range list {
		if !strings.HasPrefix(d.name(), "@") {
			continue
		}
		if lines[d.name()] == nil {
			names = append(names, d.name())
		}
		if d.open {
			lines[d.name()] = append(lines[d.name()], d.block...)
		} else {
			lines[d.name()] = append(lines[d.name()], &directive{Origin: importer.Origin{File: d.File, Line: d.Line}, words: d.args(), of: d})
		}
		b.a.t.sayAll(d, importer.Ignored, "a matcher; the directives that use it have the verdict")
	}
	for _, name := range names {
		b.matchers[name] = matcherSet(lines[name])
	}
}

// compare sorts directives as Caddy does: by their kind, then the longer path first.
func (a *adapter) compare(x, y entry) int {
	if x.directive != y.directive {
		return cmp.Compare(a.rank(x.directive), a.rank(y.directive))
	}
	before := 0
	switch px, py := strings.TrimSuffix(x.path, "*"), strings.TrimSuffix(y.path, "*"); {
	case x.path != "" && y.path != "" && px == py:
		before = cmp.Compare(len(x.path), len(y.path))
	case x.path != "" && y.path != "":
		before = cmp.Compare(len(y.path), len(x.path))
	case x.set != nil && y.set == nil:
		before = -1
	case x.set == nil && y.set != nil:
		before = 1
	}
	if x.directive == "vars" {
		before = -before
	}
	return before
}

func (a *adapter) rank(name string) int {
	if i := slices.Index(a.order, name); i >= 0 {
		return i
	}
	return len(a.order)
}

// exclusive are the directives of which only the first that matches runs.
var exclusive = []string{"rewrite", "handle", "root"}

// group puts directives that exclude each other into one group.
func (a *adapter) group(all []entry) {
	for _, name := range exclusive {
		n := 0
		for i := range all {
			if all[i].directive == name {
				n++
			}
		}
		if n < 2 {
			continue
		}
		a.groups++
		for i := range all {
			if all[i].directive == name {
				all[i].group = name + "-" + strings.Repeat("i", a.groups)
			}
		}
	}
}

// consolidated splits what is not grouped, and makes one route of neighbors with the same
// matchers.
func consolidated(all []entry) (out []entry) {
	for _, e := range all {
		some := e.together
		if some == nil {
			some = []entry{e}
		}
		for _, one := range some {
			if e.group != "" {
				one.group = e.group
			}
			if n := len(out) - 1; n >= 0 && out[n].group == one.group && out[n].set.equal(one.set) {
				out[n].handlers = append(slices.Clone(out[n].handlers), one.handlers...)
				continue
			}
			out = append(out, one)
		}
	}
	return out
}

// list writes routes as Caddy's JSON has them.
func (b *block) list(by *directive, routes []entry) *value {
	out := list(by)
	for _, e := range routes {
		r := object(cmp.Or(e.by, by))
		if e.set != nil {
			r.set("match", list(e.by, e.set))
		}
		if e.group != "" {
			r.set("group", text(e.by, e.group))
		}
		out.list = append(out.list, r.set("handle", list(e.by, e.handlers...)))
	}
	return out
}

// subroute is the handler of a block.
func (b *block) subroute(by *directive, directives []*directive, sorted bool) *value {
	inner := b.a.block(b)
	routes := inner.list(by, inner.routes(directives, sorted))
	return handler(by, "subroute").set("routes", routes)
}

// handler returns a handler of a name.
func handler(by *directive, name string) *value { return object(by).set("handler", text(by, name)) }

// object and list return values that a directive is for.
func object(by *directive) *value {
	return &value{Origin: importer.Origin{File: by.File, Line: by.Line}, by: by, object: true, fields: map[string]*value{}}
}

func list(by *directive, all ...*value) *value {
	return &value{Origin: importer.Origin{File: by.File, Line: by.Line}, by: by, isList: true, list: all}
}

// text returns a single value that a directive is for.
//
//go:noinline
func text(by *directive, s string) *value {
	return &value{Origin: importer.Origin{File: by.File, Line: by.Line}, by: by, text: s}
}

func texts(by *directive, all []string) *value {
	out := list(by)
	for _, s := range all {
		out.list = append(out.list, text(by, s))
	}
	return out
}

// set sets a field and returns v. Inlined, it and text make the binary 100 kB larger.
//
//go:noinline
func (v *value) set(name string, to *value) *value {
	if v.fields[name] == nil {
		v.keys = append(v.keys, name)
	}
	v.fields[name] = to
	return v
}

// put is set for a single value, which is left out where it is empty.
func (v *value) put(by *directive, name, s string) *value {
	if s != "" {
		v.set(name, text(by, s))
	}
	return v
}

// at returns the object in a field, which is made if there is none.
func (v *value) at(by *directive, names ...string) *value {
	for _, name := range names {
		if v.fields[name] == nil {
			v.set(name, object(by))
		}
		v = v.fields[name]
	}
	return v
}

// add appends a text to the list in a field.
func (v *value) add(by *directive, name, s string) *value {
	if v.fields[name] == nil {
		v.set(name, list(by))
	}
	l := v.fields[name]
	l.list = append(l.list, text(by, s))
	return v
}

// equal reports whether two values hold the same. Nil is equal to nil.
func (v *value) equal(o *value) bool {
	if v == nil || o == nil || v == o {
		return v == o
	}
	if v.text != o.text || v.object != o.object || !slices.Equal(v.keys, o.keys) || len(v.list) != len(o.list) {
		return false
	}
	for i := range v.list {
		if !v.list[i].equal(o.list[i]) {
			return false
		}
	}
	return !slices.ContainsFunc(v.keys, func(k string) bool { return !v.fields[k].equal(o.fields[k]) })
}
