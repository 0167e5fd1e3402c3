package decode

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// Has reports whether a field has a value.
func Has(entries []Entry, name string) bool {
	for _, e := range entries {
		if e.Key.Value == name && !document.IsNull(e.Value) {
			return true
		}
	}
	return false
}

// Entries returns the entries of a mapping, in its order, followed by the mappings of its
// merge keys. Duplicate keys and keys that are not names are reported and omitted. It
// returns false if n is not a mapping. O is the expected object, nil if keys are names.
func (d *Decoder) Entries(n *yaml.Node, at schema.Place, o *schema.Object) ([]Entry, bool) {
	n = document.Resolved(n)
	if document.IsNull(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode || !document.PlainTag(n) {
		want, remedy := "an object whose keys are names", ""
		if o != nil {
			want, remedy = "an object with the fields "+strings.Join(o.Names(), ", "), d.asObject(n, o)
		}
		d.broken(n, at, fmt.Sprintf("found %s, expected %s", found(n), want), remedy)
		return nil, false
	}
	out := make([]Entry, 0, len(n.Content)/2)
	var seen map[string]*yaml.Node
	if len(n.Content) > 2*16 {
		seen = make(map[string]*yaml.Node, len(n.Content)/2)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if document.IsMerge(key) {
			d.checkMerge(n.Content[i+1], at)
			continue
		}
		if k := document.Resolved(key); k.Kind != yaml.ScalarNode || !document.PlainTag(k) {
			d.problem(key, at, "found "+found(k)+" as a key, expected a name", "")
			continue
		} else if k != key {
			key = &yaml.Node{Kind: yaml.ScalarNode, Value: k.Value, Line: key.Line, Column: key.Column}
		}
		if first := firstOf(key.Value, out, seen); first != nil {
			d.problem(key, at.Field(key.Value), fmt.Sprintf("duplicate key, first defined at line %d", first.Line), "remove one of them")
			continue
		}
		if seen != nil {
			seen[key.Value] = key
		}
		out = append(out, Entry{key, n.Content[i+1]})
	}
	return d.merge(n, out), true
}

// firstOf returns the key of this name that came before, or nil.
func firstOf(name string, out []Entry, seen map[string]*yaml.Node) *yaml.Node {
	if seen != nil {
		return seen[name]
	}
	for _, e := range out {
		if e.Key.Value == name {
			return e.Key
		}
	}
	return nil
}

// merge adds what the merge keys of n pull in and is not there yet.
func (d *Decoder) merge(n *yaml.Node, out []Entry) []Entry {
	sources := document.Merged(n)
	if len(sources) == 0 {
		return out
	}
	seen := make(map[string]bool, len(out))
	for _, e := range out {
		seen[e.Key.Value] = true
	}
	for _, source := range sources {
		// Problems of the keys of the source are reported at the source.
		pulled, _ := d.Entries(source, schema.NewReport("", nil).Root(), nil)
		for _, e := range pulled {
			if !seen[e.Key.Value] {
				seen[e.Key.Value] = true
				out = append(out, e)
			}
		}
	}
	return out
}

// checkMerge reports a merge key whose value is not a mapping.
func (d *Decoder) checkMerge(value *yaml.Node, at schema.Place) {
	sources := []*yaml.Node{value}
	if v := document.Resolved(value); v.Kind == yaml.SequenceNode {
		sources = v.Content
	}
	for _, s := range sources {
		if r := document.Resolved(s); r.Kind != yaml.MappingNode {
			d.problem(s, at.Field("<<"), fmt.Sprintf("found %s, expected an alias of an object", found(r)), "")
		}
	}
}

// Unknown reports a key that o does not have.
func (d *Decoder) Unknown(key *yaml.Node, o *schema.Object, at schema.Place) {
	name, remedy := key.Value, ""
	if at.Full() {
		d.problem(key, at, "unknown key", "")
		return
	}
	if slices.Contains(o.Later, name) {
		d.problem(key, at.Field(name), "is not in this version yet", "remove it")
		return
	}
	if now := o.Was[name]; now != "" {
		d.problem(key, at.Field(name), "is now called "+now, fmt.Sprintf("write %s: in its place", now))
		return
	}
	if d.Hint != nil {
		if remedy = d.Hint(o.Go, name); remedy != "" {
			d.problem(key, at.Field(Shorten(name)), "unknown key", remedy)
			return
		}
	}
	known := o.Names()
	if d.Labels {
		known = o.LabelNames()
	}
	if near := schema.Nearest(name, known); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	} else if d.Labels {
		remedy = "known are " + strings.Join(known, ", ")
	} else if owners := d.owners(name); len(owners) > 0 {
		remedy = fmt.Sprintf("%s is a key of %s", name, strings.Join(owners, ", "))
	} else if near := schema.Nearest(name, o.Later); near != "" {
		remedy = fmt.Sprintf("%s is not in this version yet", near)
	} else {
		remedy = "known are " + strings.Join(o.Names(), ", ")
	}
	d.problem(key, at.Field(Shorten(name)), "unknown key", remedy)
}

// owners returns the settings that have a field of this name.
func (d *Decoder) owners(name string) []string {
	var out []string
	if d.Root.Field(name) != nil {
		out = append(out, "the outermost level")
	}
	for _, o := range d.Root.Objects() {
		for _, f := range o.Fields {
			if held := f.Type.Innermost().Object; held != nil && held.Field(name) != nil && !slices.Contains(out, f.Name) {
				out = append(out, f.Name)
			}
		}
	}
	return out
}
