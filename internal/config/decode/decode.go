// Package decode reads the tree of a YAML document into the Go values that a schema
// describes: Decoder.Object fills a struct, with its defaults first, and reports all problems
// at once with their positions. Expander replaces ${…} in values, Foreign recognizes the
// configurations of other proxies.
//
// It does not know the objects of a configuration. Package config has them, and the sections
// of its documents.
package decode

import (
	"fmt"
	"reflect"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// Decoder reads a tree into the objects it describes. It continues after a problem, so that
// all are reported at once. It belongs to one goroutine.
type Decoder struct {
	// Root describes the outermost object, for remedies that name where a key belongs.
	Root *schema.Object
	// Hint returns the remedy for a key that an object does not have, "" for none of its
	// own. It may be nil.
	Hint func(object reflect.Type, key string) string
	// Expander replaces ${…} in values. It is not used for labels.
	Expander *Expander
	// Labels is whether container labels are decoded, in which ${ has no special meaning.
	Labels bool
	// Expanded are the texts in which something was replaced, by path.
	Expanded map[string]string
}

// Entry is a key of a mapping with its value.
type Entry struct{ Key, Value *yaml.Node }

// problem reports a problem at n.
func (d *Decoder) problem(n *yaml.Node, at schema.Place, what, remedy string) {
	at.ProblemAt(n.Line, n.Column, what, remedy)
}

// broken reports a value that cannot be decoded.
func (d *Decoder) broken(n *yaml.Node, at schema.Place, what, remedy string) {
	at.Broken(n.Line, n.Column, what, remedy)
}

// Object reads a mapping into v, which gets the object's defaults first.
func (d *Decoder) Object(n *yaml.Node, o *schema.Object, v reflect.Value, at schema.Place) {
	o.Fill(v)
	entries, ok := d.Entries(n, at, o)
	if !ok {
		return
	}
	for _, e := range entries {
		f := o.Field(e.Key.Value)
		if f == nil {
			d.Unknown(e.Key, o, at)
			continue
		}
		d.Field(e.Value, f, v.FieldByIndex(f.Index), at.Field(f.Name))
	}
	for _, f := range o.Fields {
		if f.Required && !Has(entries, f.Name) {
			remedy := ""
			if f.Example != "" {
				remedy = fmt.Sprintf("add %s: %s", f.Name, f.Example)
			}
			d.problem(n, at.Field(f.Name), "missing", remedy)
		}
	}
}

// Field reads a value into v. A null leaves what v has.
func (d *Decoder) Field(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	value := document.Resolved(n)
	if document.IsNull(value) {
		return
	}
	if f.Type.Pointer {
		v.Set(reflect.New(f.Type.Go))
		v = v.Elem()
	}
	switch f.Type.Kind {
	case schema.Struct:
		d.Object(n, f.Type.Object, v, at)
	case schema.List:
		d.list(n, f, v, at)
	case schema.Map:
		d.names(n, f, v, at)
	default:
		d.scalar(n, f, f.Type, v, at)
	}
}

// list reads a sequence.
func (d *Decoder) list(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	value := document.Resolved(n)
	if value.Kind != yaml.SequenceNode || !document.PlainTag(value) {
		remedy := ""
		if value.Kind == yaml.ScalarNode && document.LookOf(value) != document.LooksBool && f.Type.Elem.Kind == schema.Text {
			remedy = fmt.Sprintf("write [%q]", value.Value)
		}
		d.broken(n, at, fmt.Sprintf("found %s, expected a list", found(value)), remedy)
		return
	}
	v.Set(reflect.MakeSlice(f.Type.Go, len(value.Content), len(value.Content)))
	for i, child := range value.Content {
		d.element(child, f, v.Index(i), at.Index(i))
	}
	d.check(n, f, v, at)
}

// names reads a mapping from names to objects.
func (d *Decoder) names(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	entries, ok := d.Entries(n, at, nil)
	if !ok {
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(f.Type.Go, len(entries)))
	}
	for _, e := range entries {
		if value, ok := d.Named(e, f, at); ok {
			v.SetMapIndex(reflect.ValueOf(e.Key.Value), value)
		}
	}
	d.check(n, f, v, at)
}

// Named reads an element of the mapping f whose key is its name. It returns false, with a
// problem added, if the value cannot be one.
func (d *Decoder) Named(e Entry, f *schema.Field, at schema.Place) (reflect.Value, bool) {
	value := reflect.New(f.Type.Go.Elem()).Elem()
	place := at.Field(e.Key.Value)
	if fault := CheckName(e.Key.Value); fault != nil {
		d.problem(e.Key, place, fault.What, fault.Remedy)
	}
	if document.IsNull(document.Resolved(e.Value)) {
		e.Value = &yaml.Node{Kind: yaml.MappingNode, Line: e.Key.Line, Column: e.Key.Column}
	}
	if o := f.Type.Elem.Object; o != nil && o.Field(e.Key.Value) != nil && document.Resolved(e.Value).Kind != yaml.MappingNode {
		d.broken(e.Value, place, fmt.Sprintf("expected a name, found the field %s", e.Key.Value), "indent it below the name of its object")
		return value, false
	}
	d.element(e.Value, f, value, place)
	return value, true
}

// element reads an element of the list or mapping f.
func (d *Decoder) element(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	elem := f.Type.Elem
	if elem.Pointer {
		v.Set(reflect.New(elem.Go))
		v = v.Elem()
	}
	switch {
	case elem.Kind == schema.Struct:
		d.Object(n, elem.Object, v, at.Called(f.Called, called(n, f, at)))
	case document.IsNull(document.Resolved(n)):
		d.problem(n, at, "the entry is empty", "write a value or remove it")
	default:
		d.scalar(n, f, elem, v, at)
	}
}

// called returns the name of an element: its key, or the value of the field that identifies
// it.
func called(n *yaml.Node, f *schema.Field, at schema.Place) string {
	if f.CalledBy == "" {
		return at.Name()
	}
	if _, value := (document.Step{Name: f.CalledBy, Index: -1}).Find(document.Resolved(n)); value != nil {
		return Shorten(document.Resolved(value).Value)
	}
	if by := f.Type.Elem.Object.Field(f.CalledBy); by != nil {
		return by.Default
	}
	return ""
}
