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
	entries []Entry

	in     string // the section, "" outside of one
	indent int    // of its entries, -1 before the first
	open   bool   // the last entry has not ended
	at     int
	line   int
}

// readOutline reads a plain file entry by entry. It returns false for a file that
// is not for it.
func (d *Document) readOutline(o Outline) bool {
	if o.Section == nil {
		return false
	}
	if o.Before == nil || !d.reread(o) {
		found := outline{text: d.text, section: o.Section, indent: -1}
		if !found.scan() {
			return false
		}
		d.list, d.index = found.entries, nil
		d.know(0, o.Before)
	}
	return d.number() && d.parse(o)
}

// know marks the entries from first on whose text the document before has.
func (d *Document) know(first int, before *Document) {
	for i := range d.list[first:] {
		e := &d.list[first+i]
		if e.variable = strings.Contains(e.Text, "${"); e.variable || before == nil || e.Section == "" {
			continue
		}
		if was := before.Entry(e.Section, e.Name); was != nil && was.Text == e.Text {
			e.knowAs(was)
		}
	}
}

// knowAs marks the entry as one whose text the document before has in was.
func (e *Entry) knowAs(was *Entry) {
	e.known = e.Section != "" && !e.variable
	e.edited = !was.Known()
}

// number makes the index, if it is not that of the document before. It returns false if
// two entries are at one place.
func (d *Document) number() bool {
	if d.index != nil {
		return true
	}
	d.index = make(map[place]int, len(d.list))
	for i := range d.list {
		d.index[d.list[i].place()] = i
	}
	return len(d.index) == len(d.list)
}

// parse makes the tree of the file, and those of the entries that are not known. Nodes
// are made many at a time, so those that stay with the document are not made together
// with those that Forget gives up: one of them would keep all.
func (d *Document) parse(o Outline) bool {
	d.root = &yaml.Node{Kind: yaml.MappingNode, Line: d.list[0].Line, Column: 1}
	var stay, leave quick
	for i := range d.list {
		e := &d.list[i]
		switch {
		case e.known:
			continue
		case e.Text == "": // a section
			if i+1 == len(d.list) || d.list[i+1].Section == "" {
				return false
			}
			e.value = &yaml.Node{Kind: yaml.MappingNode, Line: d.list[i+1].Line, Column: d.list[i+1].Column}
		default:
			q := &stay
			if e.Section != "" {
				q = &leave
			}
			if _, e.value = q.entry(e); e.value == nil {
				return false
			}
		}
		if e.Section != "" {
			continue
		}
		d.root.Content = append(d.root.Content, keyNode(e), e.value)
		if e.Text != "" && o.Section(e.Name) {
			if d.others == nil {
				d.others = map[place]*Entry{}
			}
			d.enterSection(e.Name, e.value)
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
			if !o.open && !printable(rest) {
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
		return o.open
	case indent > 0 && o.indent < 0:
		o.indent = indent
	case indent > 0 && indent < o.indent:
		return false
	}
	if indent > 0 && indent > o.indent {
		return o.open
	}
	length := KeyLength(rest)
	if length == 0 {
		return false
	}
	o.close(start)
	o.entries = append(o.entries, Entry{Name: strings.Clone(rest[:length]), Line: o.line, Column: indent + 1, start: start, indent: indent})
	e := &o.entries[len(o.entries)-1]
	if indent > 0 {
		e.Section, o.open = o.in, true
		return true
	}
	o.in, o.indent = "", -1
	if after := strings.TrimLeft(rest[length+1:], " "); o.section(e.Name) && (after == "" || after[0] == '#') {
		o.in = e.Name
		return printable(rest)
	}
	o.open = true
	return true
}

// close ends the entry that is open.
func (o *outline) close(end int) {
	if o.open {
		e := &o.entries[len(o.entries)-1]
		e.Text = o.text[e.start:end]
		o.open = false
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
