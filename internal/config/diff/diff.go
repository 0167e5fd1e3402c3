// Package diff returns the differences of two configurations as data: Compare, field by
// field, and NewHostValues, the values that access the machine and are new.
package diff

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/schema"
)

// Verb is what became of an object or a field.
type Verb string

// The verbs.
const (
	Added   Verb = "added"
	Changed Verb = "changed"
	Removed Verb = "removed"
	// Moved is of a list that has the same elements in another order.
	Moved Verb = "moved"
)

// Difference is what changed between two configurations, as data: the source of the log,
// metrics, events, the audit log and the description of a plan. It contains no secrets: no
// password hashes, and no values of ${…}.
type Difference struct {
	// Objects are the changed objects, by kind in the order of Kinds, and by name.
	Objects []ObjectChange `json:"objects"`
}

// ObjectChange is what became of one object.
type ObjectChange struct {
	// Kind is the name of the object's kind: "proxies".
	Kind string `json:"kind"`
	// Name is the object's name, "" for a single object such as admin.
	Name string `json:"name,omitempty"`
	// Change is added, changed or removed.
	Change Verb `json:"change"`
	// Origin is where the object comes from, or came from if it was removed. It is
	// absent for one that no document mentions.
	Origin *config.Origin `json:"origin,omitempty"`
	// Fields are the fields of a changed object that are not the same.
	Fields []FieldChange `json:"fields,omitempty"`
}

// FieldChange is what became of one field.
type FieldChange struct {
	// Path is the path of the field in its object: "routes[0].servers[1].weight". For a
	// removed field it is its former path.
	Path string `json:"path"`
	// Within identifies the parts of the object around the field: "route /api, server
	// http://10.0.0.7:3000". An index in a path does not identify an element that moved.
	Within string `json:"within,omitempty"`
	// Change is added, changed, removed or moved.
	Change Verb `json:"change"`
	// Before is the value before as JSON in its canonical form. It is absent where
	// there was none, and for a secret.
	Before json.RawMessage `json:"before,omitempty"`
	// After is the value after, in the same form.
	After json.RawMessage `json:"after,omitempty"`
	// Secret is whether the value is withheld: a password hash, or the value of ${…}. For
	// the latter, Before and After contain the text with ${…}.
	Secret bool `json:"secret,omitempty"`
}

// Empty reports whether the configurations are equal.
func (d *Difference) Empty() bool { return len(d.Objects) == 0 }

// Of returns the changes of objects of one kind.
func (d *Difference) Of(kind string) []ObjectChange {
	first := slices.IndexFunc(d.Objects, func(o ObjectChange) bool { return o.Kind == kind })
	if first < 0 {
		return nil
	}
	end := first
	for end < len(d.Objects) && d.Objects[end].Kind == kind {
		end++
	}
	return d.Objects[first:end]
}

// Compare returns what after has otherwise than before, either of which may be nil
// for an empty configuration. Objects that both share, as those that Load carried
// over, cost nothing but a look.
func Compare(before, after *config.Config) *Difference {
	if before == nil {
		before = config.New()
	}
	if after == nil {
		after = config.New()
	}
	d := &Difference{Objects: []ObjectChange{}}
	for _, k := range config.Kinds() {
		cmp := comparison{kind: k, before: before, after: after}
		if k.Single {
			cmp.single(d)
		} else {
			cmp.named(d)
		}
	}
	for i := range d.Objects {
		o := &d.Objects[i]
		for _, c := range []*config.Config{after, before} {
			if origin, ok := c.Origin(o.Kind, o.Name); ok {
				o.Origin = &origin
				break
			}
		}
	}
	return d
}

// comparison compares the objects of one kind.
type comparison struct {
	kind          *config.Kind
	before, after *config.Config
	fields        []FieldChange
}

// single compares the one object of a kind.
func (c *comparison) single(d *Difference) {
	f := config.Describe().Field(c.kind.Name)
	a := reflect.ValueOf(c.before).Elem().FieldByIndex(f.Index)
	b := reflect.ValueOf(c.after).Elem().FieldByIndex(f.Index)
	if fields := c.compare(a, b, c.kind.Name); len(fields) > 0 {
		d.Objects = append(d.Objects, ObjectChange{Kind: c.kind.Name, Change: Changed, Fields: fields})
	}
}

// named compares the objects of a kind by name.
func (c *comparison) named(d *Difference) {
	first := len(d.Objects)
	c.kind.Changed(c.before, c.after, func(name string, was, is config.Named) {
		switch {
		case was == nil:
			d.Objects = append(d.Objects, ObjectChange{Kind: c.kind.Name, Name: name, Change: Added})
		case is == nil:
			d.Objects = append(d.Objects, ObjectChange{Kind: c.kind.Name, Name: name, Change: Removed})
		case was != is:
			a, b := reflect.ValueOf(was).Elem(), reflect.ValueOf(is).Elem()
			if fields := c.compare(a, b, schema.JoinPath(c.kind.Name, name)); len(fields) > 0 {
				d.Objects = append(d.Objects, ObjectChange{Kind: c.kind.Name, Name: name, Change: Changed, Fields: fields})
			}
		}
	})
	slices.SortFunc(d.Objects[first:], func(a, b ObjectChange) int { return strings.Compare(a.Name, b.Name) })
}

// compare returns the fields in which two objects at path are not the same.
func (c *comparison) compare(a, b reflect.Value, path string) []FieldChange {
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return nil
	}
	c.fields = nil
	at := spot{a: path, b: path, prefix: len(path) + 1}
	c.object(c.kind.Schema(), a, b, at)
	return c.fields
}

// spot is the current position of a comparison: the paths on both sides, which differ below
// a list whose elements moved, and a description of the parts around it.
type spot struct {
	a, b   string
	within string
	prefix int // of the paths, which names the object itself
}

func (s spot) field(name string) spot {
	s.a, s.b = schema.JoinPath(s.a, name), schema.JoinPath(s.b, name)
	return s
}

// element goes to elements of a list, of which one may be absent: -1.
func (s spot) element(i, j int, words string) spot {
	s.a, s.b = fmt.Sprintf("%s[%d]", s.a, i), fmt.Sprintf("%s[%d]", s.b, j)
	return s.inside(words)
}

// inside enters a part of the object with this description.
func (s spot) inside(words string) spot {
	if s.within != "" && words != "" {
		words = s.within + ", " + words
	}
	if words != "" {
		s.within = words
	}
	return s
}

// object compares two objects of o's type.
func (c *comparison) object(o *schema.Object, a, b reflect.Value, at spot) {
	for _, f := range o.Fields {
		here := at.field(f.Name)
		if f.MaybeSecret && (hides(f, a, c.before, here.a) || hides(f, b, c.after, here.b)) {
			f = f.Hidden()
		}
		c.field(f, a.FieldByIndex(f.Index), b.FieldByIndex(f.Index), here)
	}
}

// hides reports whether the value of f in the object v is a secret; one that comes from
// ${…} is shown by that.
func hides(f *schema.Field, v reflect.Value, cfg *config.Config, path string) bool {
	if !schema.Hides(f, v) {
		return false
	}
	_, written := cfg.Written(path)
	return !written
}

// field compares two values of f.
func (c *comparison) field(f *schema.Field, a, b reflect.Value, at spot) {
	t := f.Type
	if t.Pointer {
		switch {
		case a.IsNil() && b.IsNil() || a.Pointer() == b.Pointer():
			return
		case a.IsNil() || b.IsNil():
			c.add(f, a, b, at)
			return
		}
		a, b = a.Elem(), b.Elem()
	}
	switch {
	case t.Kind == schema.Struct:
		c.object(t.Object, a, b, at)
	case t.Kind == schema.List && t.Elem.Kind == schema.Struct && a.IsNil() == b.IsNil():
		c.list(f, a, b, at)
	case t.Kind == schema.Map && t.Elem.Kind == schema.Struct:
		c.entries(f, a, b, at)
	case t.Kind == schema.List && a.Len() == 0 && b.Len() == 0 && !t.Optional():
	case !schema.SameValue(a, b):
		c.add(f, a, b, at)
	}
}

// add notes that a field is not the same.
func (c *comparison) add(f *schema.Field, a, b reflect.Value, at spot) {
	ch := FieldChange{Path: at.b[at.prefix:], Within: at.within, Change: Changed}
	hasBefore, hasAfter := present(a), present(b)
	switch {
	case !hasBefore:
		ch.Change = Added
	case !hasAfter:
		ch.Change, ch.Path = Removed, at.a[at.prefix:]
	}
	if ch.Secret = f.Secret; !f.Secret {
		if hasBefore {
			ch.Before = f.AppendJSON(nil, a, at.a, c.form(c.before, &ch))
		}
		if hasAfter {
			ch.After = f.AppendJSON(nil, b, at.b, c.form(c.after, &ch))
		}
	}
	c.fields = append(c.fields, ch)
}

// form returns how values of a configuration are shown: without values of ${…} and without
// secrets.
func (c *comparison) form(cfg *config.Config, ch *FieldChange) schema.Form {
	return schema.Form{Mask: true, Written: func(path string) (string, bool) {
		text, ok := cfg.Written(path)
		ch.Secret = ch.Secret || ok
		return text, ok
	}}
}

// present reports whether a value is there at all: absent are nil, and a text or
// list without anything in it.
func present(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map:
		return !v.IsNil()
	case reflect.Slice:
		return !v.IsNil()
	case reflect.String:
		return v.Len() > 0
	}
	return v.IsValid()
}

// list compares two lists of objects. Elements with the same name are the same
// element; where names are not unique, those with the same label, and where there are no
// labels those at the same place.
func (c *comparison) list(f *schema.Field, a, b reflect.Value, at spot) {
	before, after := elementNames(f, a), elementNames(f, b)
	if before == nil || after == nil {
		before, after = elementLabels(f, a), elementLabels(f, b)
	}
	if before == nil || after == nil {
		before, after = placeNames(a.Len()), placeNames(b.Len())
	}
	where := make(map[string]int, len(before))
	for i, name := range before {
		where[name] = i
	}
	last, moved := -1, false
	for j, name := range after {
		i, ok := where[name]
		if !ok {
			c.one(f, reflect.Value{}, b.Index(j), at.element(j, j, words(f, name)))
			continue
		}
		moved, last = moved || i < last, max(i, last)
		delete(where, name)
		x, y := a.Index(i), b.Index(j)
		if x.Kind() == reflect.Pointer {
			if x.Pointer() == y.Pointer() {
				continue
			}
			x, y = x.Elem(), y.Elem()
		}
		c.object(f.Type.Elem.Object, x, y, at.element(i, j, words(f, name)))
	}
	for i, name := range before {
		if _, gone := where[name]; gone {
			c.one(f, a.Index(i), reflect.Value{}, at.element(i, i, words(f, name)))
		}
	}
	if moved && !f.Unordered {
		c.fields = append(c.fields, FieldChange{Path: at.b[at.prefix:], Within: at.within, Change: Moved})
	}
}

// entries compares two maps from names to objects.
func (c *comparison) entries(f *schema.Field, a, b reflect.Value, at spot) {
	names := map[string]bool{}
	for _, key := range append(a.MapKeys(), b.MapKeys()...) {
		names[key.String()] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		key := reflect.ValueOf(name)
		at := at.field(name).inside(words(f, name))
		x, y := a.MapIndex(key), b.MapIndex(key)
		if !x.IsValid() || !y.IsValid() {
			c.one(f, x, y, at)
			continue
		}
		c.object(f.Type.Elem.Object, reflect.Indirect(x), reflect.Indirect(y), at)
	}
}

// one notes an element that is in one of two lists only.
func (c *comparison) one(f *schema.Field, a, b reflect.Value, at spot) {
	ch := FieldChange{Path: at.b[at.prefix:], Within: at.within, Change: Added}
	if b.IsValid() {
		ch.After = f.AppendElement(nil, b, at.b, c.form(c.after, &ch))
	} else {
		ch.Change, ch.Path = Removed, at.a[at.prefix:]
		ch.Before = f.AppendElement(nil, a, at.a, c.form(c.before, &ch))
	}
	c.fields = append(c.fields, ch)
}

// elementNames returns the names of the elements of a list, nil if they have none or a name
// occurs twice.
func elementNames(f *schema.Field, v reflect.Value) []string {
	if f.CalledBy == "" {
		return nil
	}
	by := f.Type.Elem.Object.Field(f.CalledBy)
	names, seen := make([]string, v.Len()), make(map[string]bool, v.Len())
	for i := range v.Len() {
		e := v.Index(i)
		if e.Kind() == reflect.Pointer {
			e = e.Elem()
		}
		names[i] = e.FieldByIndex(by.Index).String()
		if seen[names[i]] {
			return nil
		}
		seen[names[i]] = true
	}
	return names
}

// elementLabels returns the labels of the elements of a list, which distinguish routes with
// one path; nil if the elements have none, or a label occurs twice.
func elementLabels(f *schema.Field, v reflect.Value) []string {
	labels, seen := make([]string, v.Len()), make(map[string]bool, v.Len())
	for i := range v.Len() {
		e, ok := v.Index(i).Interface().(interface{ Label() string })
		if !ok {
			return nil
		}
		labels[i] = e.Label()
		if seen[labels[i]] {
			return nil
		}
		seen[labels[i]] = true
	}
	return labels
}

// placeNames returns names for elements that have none but their place.
func placeNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("#%d", i+1)
	}
	return names
}

// words returns the description of an element: "route /api".
func words(f *schema.Field, name string) string {
	if f.Called == "" {
		return ""
	}
	return f.Called + " " + name
}
