package document

import (
	"sort"
	"strings"
)

// reread reuses the entries of the previous version outside of the range in which the two
// texts differ, and parses only that range. It returns false if the outline has to be
// computed again.
func (d *Document) reread(o Outline) bool {
	b := o.Before
	if b.list == nil {
		return false
	}
	same := commonPrefix(b.text, d.text)
	line := strings.LastIndexByte(d.text[:same], '\n') + 1
	end := len(b.text) - commonSuffix(b.text[same:], d.text[same:])
	// The range begins at the last entry that begins before the first changed line, and
	// ends at the first one after the last changed line.
	first := sort.Search(len(b.list), func(i int) bool { return b.list[i].start >= line }) - 1
	if first < 0 {
		return false
	}
	behind := first + 1 + sort.Search(len(b.list)-first-1, func(i int) bool { return b.list[first+1+i].start > end })
	longer := len(d.text) - len(b.text)
	stop := len(d.text)
	if behind < len(b.list) {
		stop = b.list[behind].start + longer
	}
	e := &b.list[first]
	found := outline{text: d.text[:stop], section: o.Section, at: e.start, line: e.Line - 1, in: e.Section, indent: e.indent}
	if e.Section == "" {
		found.indent = -1
	}
	if !found.scan() || behind < len(b.list) && !found.leadsTo(&b.list[behind]) {
		return false
	}
	d.list = make([]Entry, 0, first+len(found.entries)+len(b.list)-behind)
	for i := range b.list[:first] {
		d.carry(&b.list[i], 0, 0)
	}
	d.list = append(d.list, found.entries...)
	d.know(first, b)
	if behind < len(b.list) {
		lines := found.line + 1 - b.list[behind].Line
		for i := range b.list[behind:] {
			d.carry(&b.list[behind+i], longer, lines)
		}
	}
	if len(d.list) == len(b.list) && samePlaces(d.list[first:behind], b.list[first:behind]) {
		d.index = b.index
	}
	return true
}

// leadsTo reports whether an entry of the document before can follow on what was found.
func (o *outline) leadsTo(e *Entry) bool {
	return e.Section == "" || o.in == e.Section && (o.indent == e.indent || o.indent < 0)
}

// carry reuses an entry that moved by so many bytes and lines. Its text is a part of the
// new document, so that the previous one can be freed.
func (d *Document) carry(was *Entry, bytes, lines int) {
	e := *was
	e.start += bytes
	e.Line += lines
	e.Text = d.text[e.start : e.start+len(e.Text)]
	e.value = nil
	e.knowAs(was)
	d.list = append(d.list, e)
}

// samePlaces reports whether entries are at the same places.
func samePlaces(a, b []Entry) bool {
	for i := range a {
		if a[i].place() != b[i].place() {
			return false
		}
	}
	return true
}

// block is how many bytes are compared at once.
const block = 4096

// commonPrefix returns how many bytes two texts begin with alike.
func commonPrefix(a, b string) int {
	n, i := min(len(a), len(b)), 0
	for i+block <= n && a[i:i+block] == b[i:i+block] {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

// commonSuffix returns how many bytes two texts end with alike.
func commonSuffix(a, b string) int {
	n, i := min(len(a), len(b)), 0
	for i+block <= n && a[len(a)-i-block:len(a)-i] == b[len(b)-i-block:len(b)-i] {
		i += block
	}
	for i < n && a[len(a)-i-1] == b[len(b)-i-1] {
		i++
	}
	return i
}
