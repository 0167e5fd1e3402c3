// Package document is the text of a configuration: Read takes a file apart into
// the nodes of its YAML and tells where each stands, Edit changes a value in it and
// leaves every other byte alone.
//
// parse.go reads YAML within bounds, with the library; quick.go and quickflow.go
// read the plain part of it that large files are written in, several times as
// fast; outline.go finds the entries of such a file without parsing them, so that
// those whose text is known need no parsing at all. node.go is what the nodes mean.
//
// edit.go is an edit from its path to the proof that it did what was wanted:
// value.go compares what texts say and writes values, span.go finds where a node
// ends, splice.go the change of the text that brings it nearer to what is wanted.
//
// It does not know what a configuration may hold: that is package config.
package document

import (
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/schema"
)

// Document is a file as it was read. It is not changed and may be used by several
// goroutines at once.
type Document struct {
	name    string
	text    string
	root    *yaml.Node
	entries map[place]*Entry
}

// place is where an entry stands: a key of the outermost object, and a name below
// it.
type place struct{ section, name string }

// Entry is what stands at a key of the outermost object (Section is "" then), or at
// a name below one that is a section: an object of a configuration.
type Entry struct {
	// Section and Name are the keys that lead to it.
	Section, Name string
	// Line and Column are where its key stands, from 1.
	Line, Column int
	// Text is the lines that the entry is on, its key's first, with the comments
	// below it. It is "" where the file is not plain enough to tell.
	Text string

	start  int // of Text in the file
	indent int
	value  *yaml.Node
	known  bool // not parsed, as the reader knows what the text says
}

// Outline tells Read how to take a file apart.
type Outline struct {
	// Section reports whether what stands at a key of the outermost object has
	// entries of its own.
	Section func(key string) bool
	// Known reports whether the reader knows already what the entry's text says, so
	// that it is not parsed. It may be nil. The entries were parsed before, in the
	// same section.
	Known func(e *Entry) bool
}

// Read reads a file. Name is what problems call it; data is not kept. The problem
// says why the file is not YAML, or out of bounds.
func Read(name string, data []byte, o Outline) (*Document, *schema.Problem) {
	if p := checkSize(name, data); p != nil {
		return nil, p
	}
	d := &Document{name: name, text: string(data)}
	if d.readOutline(o) {
		return d, nil
	}
	root, p := Tree(name, data)
	if p != nil {
		return nil, p
	}
	d.root = root
	d.list(o)
	return d, nil
}

// list notes the entries of a tree that was read as a whole.
func (d *Document) list(o Outline) {
	d.entries = map[place]*Entry{}
	eachField(d.root, func(key, value *yaml.Node) {
		d.enter(&Entry{Name: key.Value, Line: key.Line, Column: key.Column, value: value})
		if o.Section == nil || !o.Section(key.Value) {
			return
		}
		d.listSection(key.Value, value)
	})
}

// listSection notes the entries of a section whose value was parsed as a whole.
func (d *Document) listSection(section string, n *yaml.Node) {
	eachField(Resolved(n), func(key, value *yaml.Node) {
		d.enter(&Entry{Section: section, Name: key.Value, Line: key.Line, Column: key.Column, value: value})
	})
}

// enter notes an entry, unless there is one at its place.
func (d *Document) enter(e *Entry) {
	at := place{e.Section, e.Name}
	if d.entries[at] == nil {
		d.entries[at] = e
	}
}

// eachField calls visit for each field of a mapping.
func eachField(n *yaml.Node, visit func(key, value *yaml.Node)) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		visit(n.Content[i], n.Content[i+1])
	}
}

// Name returns the file's name, as it was given to Read.
func (d *Document) Name() string { return d.name }

// Text returns the file's content.
func (d *Document) Text() string { return d.text }

// Root returns the tree of the file. Entries that were known have an empty object
// in their place.
func (d *Document) Root() *yaml.Node { return d.root }

// Entry returns the entry at a place, or nil. Section is "" for one of the
// outermost object.
func (d *Document) Entry(section, name string) *Entry { return d.entries[place{section, name}] }

// node returns the tree of an entry, which is parsed now if it was not.
func (e *Entry) node() *yaml.Node {
	if e.known {
		if _, value := new(quick).entry(e); value != nil {
			return value
		}
	}
	return e.value
}

// Position returns line and column, from 1, of the value of the field with this
// path: "proxies.shop.routes[0].path". For a field that is not in the file it
// is the place of the nearest object around it; 0, 0 in an empty file.
func (d *Document) Position(path string) (line, column int) {
	n := d.root
	if n == nil {
		return 0, 0
	}
	section := ""
	line, column = n.Line, n.Column
	for depth := 0; path != ""; depth++ {
		var step Step
		step, path = CutStep(path)
		key, value := step.Find(Resolved(n))
		if value == nil {
			break
		}
		if depth == 1 && step.Index < 0 {
			if e := d.Entry(section, step.Name); e != nil && e.known {
				value = e.node()
			}
		}
		section = step.Name
		n = value
		if line, column = n.Line, n.Column; key != nil && Resolved(n).Kind != yaml.ScalarNode && n.Style&yaml.FlowStyle == 0 {
			line, column = key.Line, key.Column
		}
	}
	return line, column
}

// Holds reports whether the file has the object or field of the outermost object
// that a path leads to.
func (d *Document) Holds(path string) bool {
	first, rest := CutStep(path)
	if rest != "" {
		if second, _ := CutStep(rest); d.Entry(first.Name, second.Name) != nil {
			return true
		}
		if d.hasSection(first.Name) {
			return false
		}
	}
	return d.Entry("", first.Name) != nil
}

// hasSection reports whether the entries of a key were taken apart.
func (d *Document) hasSection(key string) bool {
	e := d.Entry("", key)
	if e == nil {
		return false
	}
	n := Resolved(e.value)
	return n.Kind == yaml.MappingNode && len(n.Content) > 1 && d.Entry(key, n.Content[0].Value) != nil
}

// Known reports whether the entry was known, so that it was not parsed.
func (e *Entry) Known() bool { return e.known }

// HasVariable reports whether there is ${…} in the entry's text.
func (e *Entry) HasVariable() bool { return strings.Contains(e.Text, "${") }
