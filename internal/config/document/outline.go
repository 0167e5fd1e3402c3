package document

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// outline finds the entries of a plain file by its lines: those of the outermost
// object, and of sections those on the next level. It looks at indentation and keys
// only, which is enough as the plain part of YAML has no value that goes over
// several lines. Whether an entry is plain is found when it is parsed; if one is
// not, the library reads the whole file.
type outline struct {
	text    string
	section func(string) bool
	entries []*Entry

	in     string // the section, "" outside of one
	indent int    // of its entries, -1 before the first
	open   *Entry
	at     int
	line   int
}

// readOutline reads a plain file entry by entry. It returns false for a file that
// is not for it.
func (d *Document) readOutline(o Outline) bool {
	if o.Section == nil {
		return false
	}
	found := outline{text: d.text, section: o.Section, indent: -1}
	if !found.scan() {
		return false
	}
	d.entries = make(map[place]*Entry, len(found.entries))
	d.root = &yaml.Node{Kind: yaml.MappingNode, Line: found.entries[0].Line, Column: 1}
	var section *yaml.Node
	var q quick
	for i, e := range found.entries {
		at := place{e.Section, e.Name}
		if d.entries[at] != nil {
			return false
		}
		d.entries[at] = e
		if e.Section == "" && i+1 < len(found.entries) && found.entries[i+1].Section != "" && o.Section(e.Name) {
			first := found.entries[i+1]
			section = &yaml.Node{Kind: yaml.MappingNode, Line: first.Line, Column: first.Column}
			e.value = section
			d.root.Content = append(d.root.Content, keyNode(e), section)
			continue
		}
		into := d.root
		if e.Section != "" {
			into = section
		}
		if o.Known != nil && e.Section != "" && o.Known(e) {
			e.known, e.value = true, &yaml.Node{Kind: yaml.MappingNode, Line: e.Line, Column: e.Column}
			into.Content = append(into.Content, keyNode(e), e.value)
			continue
		}
		key, value := q.entry(e)
		if value == nil {
			return false
		}
		e.value = value
		into.Content = append(into.Content, key, value)
		if e.Section == "" && o.Section(e.Name) {
			d.listSection(e.Name, value)
		}
	}
	return true
}

func keyNode(e *Entry) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: e.Name, Line: e.Line, Column: e.Column}
}

// entry parses the text of one entry. The nodes share no text with the file, so
// that what is made of them does not keep the file. It returns nil for a text that
// is not plain.
func (q *quick) entry(e *Entry) (key, value *yaml.Node) {
	q.depth = 0
	if e.Section != "" {
		q.depth = 1
	}
	root := q.mappingOf(strings.Clone(e.Text), e.Line, e.indent)
	if root == nil || len(root.Content) != 2 {
		return nil, nil
	}
	return root.Content[0], root.Content[1]
}

// scan finds the entries. It returns false for a file that is not plain.
func (o *outline) scan() bool {
	for o.at < len(o.text) {
		o.line++
		start := o.at
		end := len(o.text)
		if i := strings.IndexByte(o.text[start:], '\n'); i >= 0 {
			end = start + i
			o.at = end + 1
		} else {
			o.at = end
		}
		line := o.text[start:end]
		indent := 0
		for indent < len(line) && line[indent] == ' ' {
			indent++
		}
		rest := line[indent:]
		if rest == "" || rest[0] == '#' {
			if o.open == nil && !printable(rest) {
				return false
			}
			continue
		}
		if !o.entry(rest, indent, start) {
			return false
		}
	}
	o.close(len(o.text))
	return len(o.entries) > 0
}

// entry looks at a line that is neither blank nor a comment.
func (o *outline) entry(rest string, indent, start int) bool {
	switch {
	case indent > 0 && o.in == "":
		return o.open != nil
	case indent > 0 && o.indent < 0:
		o.indent = indent
	case indent > 0 && indent < o.indent:
		return false
	}
	if indent > 0 && indent > o.indent {
		return o.open != nil
	}
	length := KeyLength(rest)
	if length == 0 {
		return false
	}
	o.close(start)
	e := &Entry{Name: strings.Clone(rest[:length]), Line: o.line, Column: indent + 1, start: start, indent: indent}
	o.entries = append(o.entries, e)
	if indent > 0 {
		e.Section, o.open = o.in, e
		return true
	}
	o.in, o.indent = "", -1
	if after := strings.TrimLeft(rest[length+1:], " "); o.section(e.Name) && (after == "" || after[0] == '#') {
		o.in = e.Name
		return printable(rest)
	}
	o.open = e
	return true
}

// close ends the entry that is open.
func (o *outline) close(end int) {
	if o.open != nil {
		o.open.Text = o.text[o.open.start:end]
		o.open = nil
	}
}

// plainText reports whether a text holds nothing but printable ASCII.
func plainText(text string) bool {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
