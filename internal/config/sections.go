package config

import (
	"fmt"
	"maps"
	"reflect"
	"strings"

	"headgate/internal/config/decode"
	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// sectionReader reads documents into a configuration: their sections, whose objects are those of
// the previous configuration if they have not changed. Package decode reads the values.
type sectionReader struct {
	values *decode.Decoder
	// config is what is read into, doc the document that is read, before what was
	// loaded last.
	config *Config
	doc    *document.Document
	before *Loaded
	// placed are the objects that were read, by kind and name.
	placed map[[2]string]placed
	// alone is whether there is one document, in which every place is there once.
	alone bool
	// proxies are the names of the decoded proxies. Cloned is whether all others are those
	// of the previous configuration.
	proxies []string
	cloned  bool
}

// newSectionReader returns a reader into c. Alone is whether there is one document.
func newSectionReader(c *Config, l loader, alone bool) *sectionReader {
	return &sectionReader{values: newDecoder(l.expand), alone: alone, before: l.before, config: c}
}

// newDecoder returns a decoder of the objects of a configuration.
func newDecoder(expand *decode.Expander) *decode.Decoder {
	return &decode.Decoder{Root: model().config, Hint: forPeerWord, Expander: expand}
}

// whole reads a document into the configuration.
func (d *sectionReader) whole(doc *document.Document, at schema.Place) {
	d.doc = doc
	o, v := model().config, reflect.ValueOf(d.config).Elem()
	entries, ok := d.values.Entries(doc.Root(), at, o)
	if !ok {
		return
	}
	for _, e := range entries {
		f := o.Field(e.Key.Value)
		switch {
		case f == nil && strings.HasPrefix(e.Key.Value, "x-"):
		case f == nil:
			d.values.Unknown(e.Key, o, at)
		case isSection(f.Name):
			d.section(e, f, v.FieldByIndex(f.Index), at.Field(f.Name))
		case f.Name == "version" || d.first(f.Name, "", e.Key.Line, e.Key.Column, at.Field(f.Name)):
			d.values.Field(e.Value, f, v.FieldByIndex(f.Index), at.Field(f.Name))
		}
	}
	if !decode.Has(entries, "version") {
		at.Field("version").ProblemAt(doc.Root().Line, doc.Root().Column, "missing", "add version: 1")
	}
}

// section reads the objects of a section.
func (d *sectionReader) section(e decode.Entry, f *schema.Field, v reflect.Value, at schema.Place) {
	if document.IsNull(document.Resolved(e.Value)) {
		return
	}
	if list, ok := d.doc.Objects(f.Name); ok {
		d.objects(list, f, v, at)
	} else if entries, ok := d.values.Entries(e.Value, at, nil); ok {
		makeMap(f, v, len(entries))
		for _, e := range entries {
			if d.first(f.Name, e.Key.Value, e.Key.Line, e.Key.Column, at) {
				d.named(e, f, v, at)
			}
		}
	} else {
		return
	}
	if what, remedy := f.Check(v); what != "" {
		at.ProblemAt(e.Value.Line, e.Value.Column, what, remedy)
	}
}

// objects reads the objects of a section that the document's outline has found. Those
// that are known are those of the configuration before.
func (d *sectionReader) objects(list []document.Entry, f *schema.Field, v reflect.Value, at schema.Place) {
	kind := KindOf(f.Name)
	cloned := d.clone(f.Name)
	makeMap(f, v, len(list))
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
		d.named(decode.Entry{Key: key, Value: value}, f, v, at)
	}
}

// clone copies all proxies of the previous configuration, with the features that they have
// from elsewhere, if the document has proxies of the same names as before and is the only
// one. It reports whether it did.
func (d *sectionReader) clone(section string) bool {
	if section != "proxies" || !d.alone || d.before == nil || len(d.before.docs) != 1 || !d.doc.SamePlaces(d.before.docs[0]) {
		return false
	}
	d.config.Proxies, d.cloned = maps.Clone(d.before.config.Proxies), true
	return true
}

// makeMap makes the map v if it is nil.
func makeMap(f *schema.Field, v reflect.Value, n int) {
	if v.IsNil() {
		v.Set(reflect.MakeMapWithSize(f.Type.Go, n))
	}
}

// named reads an object into the map v.
func (d *sectionReader) named(e decode.Entry, f *schema.Field, v reflect.Value, at schema.Place) {
	value, ok := d.values.Named(e, f, at)
	if !ok {
		return
	}
	name := e.Key.Value
	value.Interface().(Named).Info().Name = name
	v.SetMapIndex(reflect.ValueOf(name), d.same(f.Name, name, value))
}

// first reports whether no previous document defines an object of a section, or the single
// object for which name is ""; otherwise it adds a problem.
func (d *sectionReader) first(section, name string, line, column int, at schema.Place) bool {
	if d.alone {
		return true
	}
	id := [2]string{section, name}
	if by, twice := d.placed[id]; twice && by.doc != d.doc {
		if name != "" {
			at = at.Field(name)
		}
		at.ProblemAt(line, column, fmt.Sprintf("is also defined in %s:%d:%d", by.doc.Name(), by.line, by.column), "remove one of them, or choose another name")
		return false
	}
	if d.placed == nil {
		d.placed = map[[2]string]placed{}
	}
	d.placed[id] = placed{d.doc, line, column}
	return true
}

// placed is the position of an object.
type placed struct {
	doc          *document.Document
	line, column int
}

// same returns the object of the configuration before if it is like the one that
// was read, which is v, so that what looks at pointers sees no difference.
func (d *sectionReader) same(section, name string, v reflect.Value) reflect.Value {
	if d.before == nil {
		return v
	}
	was := KindOf(section).Find(d.before.config, name)
	if was == nil {
		return v
	}
	if before := reflect.ValueOf(was); reflect.DeepEqual(was, v.Interface()) {
		return before
	}
	return v
}
