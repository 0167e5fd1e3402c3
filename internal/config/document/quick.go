package document

import (
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// quick reads the plain part of YAML that large configurations are written in
// (by programs, mostly): blocks of names, lists and scalars on one line each,
// with comments. It is several times as fast as the library, which a change of
// ten thousand proxies needs. It gives up at whatever else it meets, and then
// the library reads the file; where it does not give up, its tree is the
// library's, comments aside. A differential fuzz test holds it to that.
type quick struct {
	lines []quickLine
	at    int
	depth int
	slab  []yaml.Node
	links []*yaml.Node
}

// quickLine is a line with something on it.
type quickLine struct {
	text   string // without the indentation
	indent int
	number int
}

// giveUp is what a quick panics with, to come back from its depth at once. It
// never leaves parseQuick.
type giveUp struct{}

// quickDepth bounds the depth at which the library takes over. It is below
// maxDepth.
const quickDepth = 32

// parseQuick reads a file, or returns nil when it is not for quick.
func parseQuick(data []byte) *yaml.Node { return new(quick).mappingOf(string(data), 1, 0) }

// mappingOf parses lines of a file as a mapping that is indented by indent; first is the
// number of the first line. It returns nil if they are not in the plain subset; q must not
// be used afterwards.
func (q *quick) mappingOf(text string, first, indent int) (root *yaml.Node) {
	if !q.split(text, first) {
		return nil
	}
	defer func() {
		if v := recover(); v != nil {
			if _, ok := v.(giveUp); !ok {
				panic(v)
			}
			root = nil
		}
	}()
	if q.lines[0].indent != indent {
		return nil
	}
	root = q.block(indent)
	if q.at != len(q.lines) || root.Kind != yaml.MappingNode {
		return nil
	}
	return root
}

// split takes the file apart into lines and leaves out blank and comment lines.
func (q *quick) split(text string, first int) bool {
	if !printable(text) {
		return false
	}
	q.at, q.lines = 0, q.lines[:0]
	number := first - 1
	for line := range strings.SplitSeq(text, "\n") {
		number++
		trimmed := strings.TrimLeft(line, " ")
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		indent := len(line) - len(trimmed)
		if indent == 0 && (strings.HasPrefix(line, "---") || strings.HasPrefix(line, "...")) {
			return false
		}
		q.lines = append(q.lines, quickLine{strings.TrimRight(trimmed, " "), indent, number})
	}
	return len(q.lines) > 0
}

// printable reports whether a text holds nothing but ends of lines and what every
// reading of YAML takes for a character and for no end of a line.
func printable(text string) bool {
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			if c < ' ' && c != '\n' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case size == 1, r < 0xa0, r == '\u2028', r == '\u2029', r == '\ufeff', r == '\ufffe', r == '\uffff':
			return false
		}
		i += size
	}
	return true
}

// node returns a new node. Nodes are made many at a time.
func (q *quick) node(kind yaml.Kind, line, column int) *yaml.Node {
	if len(q.slab) == 0 {
		q.slab = make([]yaml.Node, max(32, min(512, 8*len(q.lines))))
	}
	n := &q.slab[0]
	q.slab = q.slab[1:]
	n.Kind, n.Line, n.Column = kind, line, column
	return n
}

// block reads the lines that are indented by exactly indent.
func (q *quick) block(indent int) *yaml.Node {
	if q.depth++; q.depth > quickDepth {
		panic(giveUp{})
	}
	defer func() { q.depth-- }()
	line := &q.lines[q.at]
	if isEntry(line.text) {
		return q.sequence(indent)
	}
	return q.mapping(indent)
}

// isEntry reports whether a line is an entry of a list.
func isEntry(text string) bool { return strings.HasPrefix(text, "- ") }

// sequence reads the entries of a list.
func (q *quick) sequence(indent int) *yaml.Node {
	n := q.node(yaml.SequenceNode, q.lines[q.at].number, indent+1)
	start := len(q.links)
	for q.at < len(q.lines) && q.lines[q.at].indent == indent && isEntry(q.lines[q.at].text) {
		line := &q.lines[q.at]
		rest := strings.TrimLeft(line.text[1:], " ")
		column := indent + len(line.text) - len(rest)
		if KeyLength(rest) > 0 {
			// The entry is an object whose first field follows the dash.
			line.text, line.indent = rest, column
			q.links = append(q.links, q.block(column))
			continue
		}
		value := q.inline(rest, line.number, column)
		q.at++
		q.notDeeper(indent)
		q.links = append(q.links, value)
	}
	n.Content = q.popSince(start)
	return n
}

// mapping reads the fields of an object.
func (q *quick) mapping(indent int) *yaml.Node {
	n := q.node(yaml.MappingNode, q.lines[q.at].number, indent+1)
	start := len(q.links)
	for q.at < len(q.lines) && q.lines[q.at].indent == indent {
		line := q.lines[q.at]
		length := KeyLength(line.text)
		if length == 0 {
			break
		}
		key := q.node(yaml.ScalarNode, line.number, indent+1)
		key.Value = line.text[:length]
		q.links = append(q.links, key)
		rest := strings.TrimLeft(line.text[length+1:], " ")
		q.at++
		if rest == "" || rest[0] == '#' {
			q.links = append(q.links, q.below(indent))
			continue
		}
		q.links = append(q.links, q.inline(rest, line.number, indent+len(line.text)-len(rest)))
		q.notDeeper(indent)
	}
	if len(q.links) == start {
		panic(giveUp{})
	}
	n.Content = q.popSince(start)
	return n
}

// below reads the value of a field whose line holds nothing else.
func (q *quick) below(indent int) *yaml.Node {
	if q.at == len(q.lines) {
		panic(giveUp{})
	}
	next := &q.lines[q.at]
	if next.indent < indent || next.indent == indent && !isEntry(next.text) {
		panic(giveUp{})
	}
	value := q.block(next.indent)
	q.notDeeper(indent)
	return value
}

// notDeeper gives up when the next line is indented more than the field or
// entry before it: it would go on with a text, or be a mistake.
func (q *quick) notDeeper(indent int) {
	if q.at < len(q.lines) && q.lines[q.at].indent > indent {
		panic(giveUp{})
	}
}

// popSince returns the links that were added since start, and forgets them.
func (q *quick) popSince(start int) []*yaml.Node {
	out := append(make([]*yaml.Node, 0, len(q.links)-start), q.links[start:]...)
	q.links = q.links[:start]
	return out
}

// KeyLength returns the length of the plain key that begins text and is
// followed by a colon and a blank or the end; 0 when there is none.
func KeyLength(text string) int {
	const longest = 128
	for i := range min(len(text), longest) {
		switch c := text[i]; {
		case c == ':':
			if i+1 == len(text) || text[i+1] == ' ' {
				return i
			}
			return 0
		case !wordByte(c) && c != '.' && c != '-' || i == 0 && !wordByte(c):
			return 0
		}
	}
	return 0
}

// wordByte reports whether c is a letter, a digit or an underscore.
func wordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// inline reads a value on one line, which only a comment may follow. Column counts from 0.
func (q *quick) inline(text string, line, column int) *yaml.Node {
	f := quickFlow{q: q, text: text, line: line, column: column}
	var n *yaml.Node
	switch text[0] {
	case '[', '{', '"', '\'':
		n = f.value()
	default:
		return f.plainBlock()
	}
	if rest := strings.TrimLeft(f.text[f.i:], " "); rest != "" && (rest[0] != '#' || f.text[f.i] != ' ') {
		panic(giveUp{})
	}
	return n
}
