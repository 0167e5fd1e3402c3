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
	"go.yaml.in/yaml/v4"

	"headgate/internal/schema"
)

// Document is a file as it was read. It is not changed and may be used by several
// goroutines at once.
type Document struct {
	name string
	text string
	root *yaml.Node
	// list are the entries that the outline has found, in their order, and index says
	// where in it they are. It is nil for a file that was read as a whole.
	list  []Entry
	index map[place]int
	// forgot says that Forget was called.
	forgot bool
	// others are the entries that the outline did not find: those of sections that
	// stand in brackets, or all.
	others map[place]*Entry
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

	start    int // of Text in the file
	indent   int
	value    *yaml.Node // nil where the text is known
	known    bool       // not parsed, as the document before has the same text
	edited   bool       // though known, as that was edited and not loaded
	variable bool       // there is ${ in Text
}

// Outline tells Read how to take a file apart.
type Outline struct {
	// Section reports whether what stands at a key of the outermost object has
	// entries of its own.
	Section func(key string) bool
	// Before is the file as it was read before, or nil. Entries of sections that have
	// the text that they had then are known: they are not parsed, unless there is a
	// variable in them. Where the file is the same but for one stretch, only that is
	// looked at.
	Before *Document
}

// Read reads a file. Name is what problems call it; data is not kept. The problem
// says why the file is not YAML, or out of bounds.
func Read(name string, data []byte, o Outline) (*Document, *schema.Problem) {
	return ReadText(name, string(data), o)
}

// ReadText is Read for a text, which is kept.
func ReadText(name, text string, o Outline) (*Document, *schema.Problem) {
	if p := checkSize(name, text); p != nil {
		return nil, p
	}
	d := &Document{name: name, text: text}
	if d.readOutline(o) {
		return d, nil
	}
	root, p := Tree(name, []byte(text))
	if p != nil {
		return nil, p
	}
	d = &Document{name: name, text: d.text, root: root, others: map[place]*Entry{}}
	d.enterAll(o)
	return d, nil
}

// enterAll notes the entries of a tree that was read as a whole.
func (d *Document) enterAll(o Outline) {
	eachField(d.root, func(key, value *yaml.Node) {
		d.enter(&Entry{Name: key.Value, Line: key.Line, Column: key.Column, value: value})
		if o.Section == nil || !o.Section(key.Value) {
			return
		}
		d.enterSection(key.Value, value)
	})
}

// enterSection notes the entries of a section whose value was parsed as a whole.
func (d *Document) enterSection(section string, n *yaml.Node) {
	eachField(Resolved(n), func(key, value *yaml.Node) {
		d.enter(&Entry{Section: section, Name: key.Value, Line: key.Line, Column: key.Column, value: value})
	})
}

// enter notes an entry, unless there is one at its place.
func (d *Document) enter(e *Entry) {
	at := place{e.Section, e.Name}
	if d.others[at] == nil {
		d.others[at] = e
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

// Root returns the tree of the file. A section of which Objects returns the entries
// is an empty object there.
func (d *Document) Root() *yaml.Node { return d.root }

// Entry returns the entry at a place, or nil. Section is "" for one of the
// outermost object.
func (d *Document) Entry(section, name string) *Entry {
	at := place{section, name}
	if i, ok := d.index[at]; ok {
		return &d.list[i]
	}
	return d.others[at]
}

// Objects returns the entries of a section in their order. It returns false for one that
// stands in the tree with all that is in it. The entries are not changed.
func (d *Document) Objects(section string) ([]Entry, bool) {
	i, ok := d.index[place{"", section}]
	if !ok || d.list[i].Text != "" {
		return nil, false
	}
	first := i + 1
	for i = first; i < len(d.list) && d.list[i].Section == section; i++ {
	}
	return d.list[first:i], true
}

// SamePlaces reports whether the outline has found entries at the same places in the same
// order in another document, with other texts maybe.
func (d *Document) SamePlaces(other *Document) bool {
	return len(d.list) == len(other.list) && samePlaces(d.list, other.list)
}

// Forget gives up the trees of the entries that can be parsed again from their text. It
// is for whoever has read the document, before others do.
func (d *Document) Forget() {
	d.forgot = true
	for i := range d.list {
		if e := &d.list[i]; e.Section != "" {
			e.known, e.edited, e.value = !e.variable, false, nil
		}
	}
}

// Forgot reports whether Forget was called. From then on Known is of the document itself,
// and no more of the one before.
func (d *Document) Forgot() bool { return d.forgot }

// Nodes returns the key and the tree of an entry. That of one that is known is parsed
// now.
func (e *Entry) Nodes() (key, value *yaml.Node) {
	if e.value == nil {
		if key, value = new(quick).entry(e); value != nil {
			return key, value
		}
		return keyNode(e), &yaml.Node{Kind: yaml.MappingNode, Line: e.Line, Column: e.Column}
	}
	return keyNode(e), e.value
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
		if depth == 1 && step.Index < 0 && value == nil {
			if e := d.Entry(section, step.Name); e != nil {
				key, value = e.Nodes()
			}
		}
		if value == nil {
			break
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
	if _, ok := d.Objects(key); ok {
		return true
	}
	e := d.others[place{"", key}]
	if e == nil {
		if e = d.Entry("", key); e == nil {
			return false
		}
	}
	n := Resolved(e.value)
	return n.Kind == yaml.MappingNode && len(n.Content) > 1 && d.Entry(key, n.Content[0].Value) != nil
}

// Known reports whether the entry has the text that it has in the document before: of one
// that edits were made of, in the one before the first of them.
func (e *Entry) Known() bool { return e.known && !e.edited }
