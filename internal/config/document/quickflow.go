package document

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// quickFlow reads the values of one line for a quick.
type quickFlow struct {
	q            *quick
	text         string
	i            int
	line, column int
}

// node returns a new node at the current place.
func (f *quickFlow) node(kind yaml.Kind) *yaml.Node {
	return f.q.node(kind, f.line, f.column+f.i+1)
}

// wide moves the column by the characters of a value that have several bytes: columns
// count characters.
func (f *quickFlow) wide(value string) { f.column -= len(value) - utf8.RuneCountInString(value) }

// plainBlock reads a scalar without quotes up to the end of the line.
func (f *quickFlow) plainBlock() *yaml.Node {
	c := f.text[0]
	if !wordByte(c) && c < utf8.RuneSelf && strings.IndexByte("/.^$~(+", c) < 0 {
		panic(giveUp{})
	}
	text := f.text
	if i := strings.Index(text, " #"); i >= 0 {
		text = strings.TrimRight(text[:i], " ")
	}
	if strings.Contains(text, ": ") || text[len(text)-1] == ':' {
		panic(giveUp{})
	}
	n := f.node(yaml.ScalarNode)
	n.Value = text
	return n
}

// peek returns the byte at the current place, 0 at the end of the line.
func (f *quickFlow) peek() byte {
	if f.i < len(f.text) {
		return f.text[f.i]
	}
	return 0
}

func (f *quickFlow) blanks() {
	for f.peek() == ' ' {
		f.i++
	}
}

// value reads a value in flow style.
func (f *quickFlow) value() *yaml.Node {
	switch f.peek() {
	case '[':
		return f.list()
	case '{':
		return f.object()
	case '"', '\'':
		return f.quoted()
	}
	return f.plain()
}

// quoted reads a text in quotes that has nothing to unescape.
func (f *quickFlow) quoted() *yaml.Node {
	n := f.node(yaml.ScalarNode)
	quote := f.text[f.i]
	end := strings.IndexByte(f.text[f.i+1:], quote)
	if end < 0 {
		panic(giveUp{})
	}
	n.Value = f.text[f.i+1 : f.i+1+end]
	f.i += end + 2
	f.wide(n.Value)
	n.Style = yaml.DoubleQuotedStyle
	if quote == '\'' {
		n.Style = yaml.SingleQuotedStyle
	}
	if quote == '"' && strings.IndexByte(n.Value, '\\') >= 0 || f.peek() != 0 && strings.IndexByte(" ,]}", f.peek()) < 0 {
		panic(giveUp{})
	}
	return n
}

// plain reads a scalar without quotes within a list or object.
func (f *quickFlow) plain() *yaml.Node {
	n := f.node(yaml.ScalarNode)
	start := f.i
	for ; f.i < len(f.text); f.i++ {
		c := f.text[f.i]
		if wordByte(c) || c >= utf8.RuneSelf || strings.IndexByte("/.^$~(", c) >= 0 {
			continue
		}
		if f.i == start || strings.IndexByte("-+=)@*:", c) < 0 {
			break
		}
		if c == ':' && (f.i+1 == len(f.text) || !wordByte(f.text[f.i+1]) && f.text[f.i+1] != '/') {
			panic(giveUp{})
		}
	}
	n.Value = f.text[start:f.i]
	if n.Value == "" {
		panic(giveUp{})
	}
	f.wide(n.Value)
	f.blanks()
	if c := f.peek(); c != ',' && c != ']' && c != '}' {
		panic(giveUp{})
	}
	return n
}

// enter goes one level down.
func (f *quickFlow) enter(kind yaml.Kind) *yaml.Node {
	if f.q.depth++; f.q.depth > quickDepth {
		panic(giveUp{})
	}
	n := f.node(kind)
	n.Style = yaml.FlowStyle
	f.i++
	f.blanks()
	return n
}

// leave ends the list or object n, whose parts were linked since start.
func (f *quickFlow) leave(n *yaml.Node, start int) *yaml.Node {
	f.i++
	f.q.depth--
	n.Content = f.q.popSince(start)
	return n
}

// next goes on to the next part, and reports whether there is one.
func (f *quickFlow) next(closing byte) bool {
	f.blanks()
	switch f.peek() {
	case closing:
		return false
	case ',':
		f.i++
		f.blanks()
		if c := f.peek(); c != ',' && c != closing {
			return true
		}
	}
	panic(giveUp{})
}

func (f *quickFlow) list() *yaml.Node {
	n, start := f.enter(yaml.SequenceNode), len(f.q.links)
	for more := f.peek() != ']'; more; more = f.next(']') {
		f.q.links = append(f.q.links, f.value())
	}
	return f.leave(n, start)
}

func (f *quickFlow) object() *yaml.Node {
	n, start := f.enter(yaml.MappingNode), len(f.q.links)
	for more := f.peek() != '}'; more; more = f.next('}') {
		length := KeyLength(f.text[f.i:])
		if length == 0 {
			panic(giveUp{})
		}
		key := f.node(yaml.ScalarNode)
		key.Value = f.text[f.i : f.i+length]
		f.i += length + 1
		f.blanks()
		f.q.links = append(f.q.links, key)
		f.q.links = append(f.q.links, f.value())
	}
	return f.leave(n, start)
}
