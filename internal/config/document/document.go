// Package document is the text of a configuration file: Read parses it into YAML nodes with
// their positions; Edit changes a value and leaves every other byte as it is.
//
// parse.go reads YAML within limits, with the library; quick.go and quickflow.go read the
// plain subset that large files are written in, several times as fast; outline.go finds the
// entries of such a file without parsing them, so that unchanged entries need no parsing.
// node.go defines the meaning of nodes.
//
// edit.go makes an edit and verifies its result: value.go compares and writes values,
// span.go finds the end of a node, splice.go computes the changes of the text.
//
// The package does not know the settings: those are in package config.
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
	// list are the entries that the outline has found, in order, and index their positions
	// in it. It is nil for a file that was parsed as a whole.
	list  []Entry
	index map[place]int
	// forgot is set by Forget.
	forgot bool
	// others are the entries that are not in the outline: those of sections in flow style,
	// or all.
	others map[place]*Entry
}

// place identifies an entry: a top-level key, and a name below it.
type place struct{ section, name string }

// Entry is the value of a top-level key (Section is "" then), or of a name below a section:
// an object of a configuration.
type Entry struct {
	// Section and Name are the keys of the entry.
	Section, Name string
	// Line and Column are the position of its key, from 1.
	Line, Column int
	// Text are the lines of the entry, beginning with its key, with the comments below it.
	// It is "" if the outline cannot determine it.
	Text string

	start    int // of Text in the file
	indent   int
	value    *yaml.Node // nil where the text is known
	known    bool       // not parsed, as the document before has the same text
	edited   bool       // though known, as that was edited and not loaded
	variable bool       // there is ${ in Text
}

// Outline are the options of Read.
type Outline struct {
	// Section reports whether the value of a top-level key consists of entries.
	Section func(key string) bool
	// Before is the previous version of the file, or nil. Entries whose text has not
	// changed are not parsed again, unless they contain a variable. If the files differ in
	// one range only, nothing else is read.
	Before *Document
}

// Read parses a file. Name is its name in problems; data is not kept. The problem describes
// why the file is not YAML, or exceeds a limit.
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

// Objects returns the entries of a section in order. It returns false if the section was
// parsed as a whole. The caller must not change the entries.
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

// Forget releases the trees of entries that can be parsed again from their text. It must be
// called before the document is shared.
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

// Holds reports whether the file has the object or top-level field of a path.
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
