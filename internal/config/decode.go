package config

import (
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/document"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// decoder reads a tree into the objects it describes. It goes on after a
// problem, so that all come out at once.
type decoder struct {
	expand *expander
	model  *schema.Object
	// expanded are the texts in which something was put, by path.
	expanded map[string]string
	// config is what is read into, doc the document that is read, before what was
	// loaded last.
	config *Config
	doc    *document.Document
	before *Loaded
	// placed are the objects that were read, by kind and name.
	placed map[[2]string]placed
	// alone is whether there is one document, in which every place is there once.
	alone bool
	// labels is whether container labels are decoded, in which ${ has no special meaning.
	labels bool
	// proxies are the names of the decoded proxies. Cloned is whether all others are those
	// of the previous configuration.
	proxies []string
	cloned  bool
}

// entry is a key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// problem reports a problem at n.
func (d *decoder) problem(n *yaml.Node, at schema.Place, what, remedy string) {
	at.ProblemAt(n.Line, n.Column, what, remedy)
}

// broken reports a value that cannot be decoded.
func (d *decoder) broken(n *yaml.Node, at schema.Place, what, remedy string) {
	at.Broken(n.Line, n.Column, what, remedy)
}

// object reads a mapping into v, which gets the object's defaults first.
func (d *decoder) object(n *yaml.Node, o *schema.Object, v reflect.Value, at schema.Place) {
	o.Fill(v)
	entries, ok := d.entries(n, at, o)
	if !ok {
		return
	}
	for _, e := range entries {
		f := o.Field(e.key.Value)
		if f == nil {
			d.unknown(e.key, o, at)
			continue
		}
		d.field(e.value, f, v.FieldByIndex(f.Index), at.Field(f.Name))
	}
	for _, f := range o.Fields {
		if f.Required && !has(entries, f.Name) {
			remedy := ""
			if f.Example != "" {
				remedy = fmt.Sprintf("add %s: %s", f.Name, f.Example)
			}
			d.problem(n, at.Field(f.Name), "missing", remedy)
		}
	}
}

// unknown reports a key that o does not have.
func (d *decoder) unknown(key *yaml.Node, o *schema.Object, at schema.Place) {
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
	if remedy = forPeerWord(o.Go, name); remedy != "" {
		d.problem(key, at.Field(shorten(name)), "unknown key", remedy)
		return
	}
	known := o.Names()
	if d.labels {
		known = o.LabelNames()
	}
	if near := schema.Nearest(name, known); near != "" {
		remedy = fmt.Sprintf("did you mean %q?", near)
	} else if d.labels {
		remedy = "known are " + strings.Join(known, ", ")
	} else if owners := d.owners(name); len(owners) > 0 {
		remedy = fmt.Sprintf("%s is a key of %s", name, strings.Join(owners, ", "))
	} else if near := schema.Nearest(name, o.Later); near != "" {
		remedy = fmt.Sprintf("%s is not in this version yet", near)
	} else {
		remedy = "known are " + strings.Join(o.Names(), ", ")
	}
	d.problem(key, at.Field(shorten(name)), "unknown key", remedy)
}

// owners returns the settings that have a field of this name.
func (d *decoder) owners(name string) []string {
	var out []string
	if d.model.Field(name) != nil {
		out = append(out, "the outermost level")
	}
	for _, o := range d.model.Objects() {
		for _, f := range o.Fields {
			if held := f.Type.Innermost().Object; held != nil && held.Field(name) != nil && !slices.Contains(out, f.Name) {
				out = append(out, f.Name)
			}
		}
	}
	return out
}

// has reports whether a field has a value.
func has(entries []entry, name string) bool {
	for _, e := range entries {
		if e.key.Value == name && !document.IsNull(e.value) {
			return true
		}
	}
	return false
}

// entries returns the entries of a mapping, in its order, followed by the mappings of its
// merge keys. Duplicate keys and keys that are not names are reported and omitted. It
// returns false if n is not a mapping. O is the expected object, nil if keys are names.
func (d *decoder) entries(n *yaml.Node, at schema.Place, o *schema.Object) ([]entry, bool) {
	n = document.Resolved(n)
	if document.IsNull(n) {
		return nil, true
	}
	if n.Kind != yaml.MappingNode || !document.PlainTag(n) {
		want, remedy := "an object whose keys are names", ""
		if o != nil {
			want, remedy = "an object with the fields "+strings.Join(o.Names(), ", "), asObject(n, o)
		}
		d.broken(n, at, fmt.Sprintf("found %s, expected %s", found(n), want), remedy)
		return nil, false
	}
	out := make([]entry, 0, len(n.Content)/2)
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
		out = append(out, entry{key, n.Content[i+1]})
	}
	return d.merge(n, out), true
}

// firstOf returns the key of this name that came before, or nil.
func firstOf(name string, out []entry, seen map[string]*yaml.Node) *yaml.Node {
	if seen != nil {
		return seen[name]
	}
	for _, e := range out {
		if e.key.Value == name {
			return e.key
		}
	}
	return nil
}

// merge adds what the merge keys of n pull in and is not there yet.
func (d *decoder) merge(n *yaml.Node, out []entry) []entry {
	sources := document.Merged(n)
	if len(sources) == 0 {
		return out
	}
	seen := make(map[string]bool, len(out))
	for _, e := range out {
		seen[e.key.Value] = true
	}
	for _, source := range sources {
		// Problems of the keys of the source are reported at the source.
		pulled, _ := d.entries(source, schema.NewReport("", nil).Root(), nil)
		for _, e := range pulled {
			if !seen[e.key.Value] {
				seen[e.key.Value] = true
				out = append(out, e)
			}
		}
	}
	return out
}

// checkMerge reports a merge key whose value is not a mapping.
func (d *decoder) checkMerge(value *yaml.Node, at schema.Place) {
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

// field reads a value into v. A null leaves what v has.
func (d *decoder) field(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
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
		d.object(n, f.Type.Object, v, at)
	case schema.List:
		d.list(n, f, v, at)
	case schema.Map:
		d.names(n, f, v, at)
	default:
		d.scalar(n, f, f.Type, v, at)
	}
}

// list reads a sequence.
func (d *decoder) list(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	value := document.Resolved(n)
	if value.Kind != yaml.SequenceNode || !document.PlainTag(value) {
		remedy := ""
		if value.Kind == yaml.ScalarNode && f.Type.Elem.Kind == schema.Text {
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
func (d *decoder) names(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	section := f.Owner == d.model.Go
	if section {
		if list, ok := d.doc.Objects(f.Name); ok {
			d.objects(list, f, v, at)
			d.check(n, f, v, at)
			return
		}
	}
	entries, ok := d.entries(n, at, nil)
	if !ok {
		return
	}
	d.makeMap(f, v, len(entries))
	for _, e := range entries {
		if !section || d.first(f.Name, e.key.Value, e.key.Line, e.key.Column, at) {
			d.named(e, f, v, at, section)
		}
	}
	d.check(n, f, v, at)
}

// objects reads the objects of a section that the document's outline has found. Those
// that are known are those of the configuration before.
func (d *decoder) objects(list []document.Entry, f *schema.Field, v reflect.Value, at schema.Place) {
	kind := KindOf(f.Name)
	cloned := d.clone(f.Name)
	d.makeMap(f, v, len(list))
	for i := range list {
		e := &list[i]
		if cloned && e.Known() || !d.first(f.Name, e.Name, e.Line, e.Column, at) {
			continue
		}
		if e.Known() && kind.carry(d.before.config, d.config, e.Name) {
			continue
		}
		if f.Name == "proxies" {
			d.proxies = append(d.proxies, e.Name)
		}
		key, value := e.Nodes()
		d.named(entry{key, value}, f, v, at, true)
	}
}

// clone takes over all proxies of the configuration before, as they are with what they have
// from elsewhere, if the document has proxies of the same names as before and is the only
// one. It reports whether it did.
func (d *decoder) clone(section string) bool {
	if section != "proxies" || !d.alone || d.before == nil || len(d.before.docs) != 1 || !d.doc.SamePlaces(d.before.docs[0]) {
		return false
	}
	d.config.Proxies, d.cloned = maps.Clone(d.before.config.Proxies), true
	return true
}

// makeMap makes the map v if it is nil.
func (d *decoder) makeMap(f *schema.Field, v reflect.Value, n int) {
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(f.Type.Go, n))
	}
}

// named reads an object that has a name into the map v. Section is whether it is an
// object of the configuration.
func (d *decoder) named(e entry, f *schema.Field, v reflect.Value, at schema.Place, section bool) {
	value := reflect.New(f.Type.Go.Elem()).Elem()
	place := at.Field(e.key.Value)
	if fault := checkName(e.key.Value); fault != nil {
		d.problem(e.key, place, fault.What, fault.Remedy)
	}
	if document.IsNull(document.Resolved(e.value)) {
		e.value = &yaml.Node{Kind: yaml.MappingNode, Line: e.key.Line, Column: e.key.Column}
	}
	if o := f.Type.Elem.Object; o != nil && o.Field(e.key.Value) != nil && document.Resolved(e.value).Kind != yaml.MappingNode {
		d.broken(e.value, place, fmt.Sprintf("expected a name, found the field %s", e.key.Value), "indent it below the name of its object")
		return
	}
	d.element(e.value, f, value, place)
	if section {
		value.Interface().(Named).Info().Name = e.key.Value
		value = d.same(f.Name, e.key.Value, value)
	}
	v.SetMapIndex(reflect.ValueOf(e.key.Value), value)
}

// element reads an element of the list or mapping f.
func (d *decoder) element(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	elem := f.Type.Elem
	if elem.Pointer {
		v.Set(reflect.New(elem.Go))
		v = v.Elem()
	}
	switch {
	case elem.Kind == schema.Struct:
		d.object(n, elem.Object, v, at.Called(f.Called, called(n, f, at)))
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
		return shorten(document.Resolved(value).Value)
	}
	if by := f.Type.Elem.Object.Field(f.CalledBy); by != nil {
		return by.Default
	}
	return ""
}

// scalar reads a plain value of type t, which is f's or that of its elements.
func (d *decoder) scalar(n *yaml.Node, f *schema.Field, t *schema.Type, v reflect.Value, at schema.Place) {
	value := document.Resolved(n)
	if value.Kind != yaml.ScalarNode || !document.PlainTag(value) {
		d.broken(n, at, fmt.Sprintf("found %s, expected %s", found(value), expected(t)), "")
		return
	}
	text := value.Value
	if !f.NoExpand && !d.labels && strings.Contains(text, "${") {
		expanded, fault := d.expand.text(text)
		if fault != nil {
			d.problem(n, at, fault.What, fault.Remedy)
			return
		}
		if d.expanded == nil {
			d.expanded = map[string]string{}
		}
		d.expanded[at.Path()] = text
		text = expanded
	} else if fault := wrongType(value, t); fault != nil {
		d.problem(n, at, fault.What, fault.Remedy)
		return
	}
	if t.Kind == schema.Bool {
		text = strings.ToLower(text)
	}
	if fault := setScalar(v, t, text); fault != nil {
		d.problem(n, at, fault.What, fault.Remedy)
		return
	}
	if t == f.Type {
		d.check(n, f, v, at)
	}
}

// check reports a value that is outside the bounds of its field.
func (d *decoder) check(n *yaml.Node, f *schema.Field, v reflect.Value, at schema.Place) {
	if what, remedy := f.Check(v); what != "" {
		d.problem(n, at, what, remedy)
	}
}

// setScalar sets v from text.
func setScalar(v reflect.Value, t *schema.Type, text string) *fault {
	if t.Go == reflect.TypeFor[netip.AddrPort]() {
		address, f := parseAddress(text)
		v.Set(reflect.ValueOf(address))
		return f
	}
	if t.Go == reflect.TypeFor[unit.AddressRange]() {
		addresses, f := parseAddressRange(text)
		v.Set(reflect.ValueOf(addresses))
		return f
	}
	if err := t.SetText(v, text); err != nil {
		return &fault{What: err.Error()}
	}
	return nil
}
