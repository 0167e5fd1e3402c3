package document

import (
	"sort"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// source is a text with the places of its lines, in which nodes have a begin and an
// end.
type source struct {
	text    string
	entries []Entry // of the text, in their order, from which lines are counted; may be nil
	lines   []int   // where each line begins, of a text without entries
}

func newSource(d *Document) *source {
	s := &source{text: d.text, entries: d.list}
	if len(s.entries) > 0 {
		return s
	}
	s.lines = make([]int, 1, strings.Count(s.text, "\n")+1)
	for i := strings.IndexByte(s.text, '\n'); i >= 0; {
		s.lines = append(s.lines, i+1)
		next := strings.IndexByte(s.text[i+1:], '\n')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return s
}

// lineBegin returns where a line begins that has this number, from 1; the end of the text
// if there is none.
func (s *source) lineBegin(number int) int {
	if s.lines != nil {
		if number < 1 || number > len(s.lines) {
			return len(s.text)
		}
		return s.lines[number-1]
	}
	at, line := 0, 1
	if i := sort.Search(len(s.entries), func(i int) bool { return s.entries[i].Line > number }) - 1; i >= 0 {
		at, line = s.entries[i].start, s.entries[i].Line
	}
	for ; line < number; line++ {
		next := strings.IndexByte(s.text[at:], '\n')
		if next < 0 {
			return len(s.text)
		}
		at += next + 1
	}
	if number < 1 {
		return len(s.text)
	}
	return at
}

// startOf returns where a node begins.
func (s *source) startOf(n *yaml.Node) int {
	at := s.lineBegin(n.Line)
	if at == len(s.text) {
		return at
	}
	for range n.Column - 1 {
		_, size := utf8.DecodeRuneInString(s.text[at:])
		at += size
	}
	return at
}

// lineStart and lineEnd return where the line of a place begins and ends, without
// its line feed.
func (s *source) lineStart(at int) int {
	return strings.LastIndexByte(s.text[:at], '\n') + 1
}

func (s *source) lineEnd(at int) int {
	if i := strings.IndexByte(s.text[at:], '\n'); i >= 0 {
		return at + i
	}
	return len(s.text)
}

// afterColon returns the offset after the colon of a key.
func (s *source) afterColon(key *yaml.Node) int {
	at := s.end(key, 0)
	if i := strings.IndexByte(s.text[at:], ':'); i >= 0 {
		return at + i + 1
	}
	return len(s.text)
}

// end returns the offset after a node. Parent is the indentation of its parent, which ends
// a text of several lines.
func (s *source) end(n *yaml.Node, parent int) int {
	at := s.startOf(n)
	switch {
	case n.Kind == yaml.AliasNode:
		return at + len(s.text[at:]) - len(strings.TrimLeft(s.text[at:], "*")) + len(n.Value)
	case n.Kind == yaml.ScalarNode:
		return s.scalarEnd(n, at, parent)
	case n.Style&yaml.FlowStyle != 0:
		if i := strings.IndexAny(s.text[at:], "[{"); i >= 0 {
			return s.flowEnd(at + i)
		}
		return at
	case len(n.Content) == 0:
		return at
	}
	last := n.Content[len(n.Content)-1]
	if n.Kind == yaml.MappingNode {
		key := n.Content[len(n.Content)-2]
		if isEmpty(last) {
			return s.afterColon(key)
		}
		return s.end(last, key.Column-1)
	}
	return s.end(last, n.Column-1)
}

// isEmpty reports whether a value has no text.
func isEmpty(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Value == "" && n.Style&Quoted == 0 && n.Anchor == ""
}

func (s *source) scalarEnd(n *yaml.Node, at, parent int) int {
	switch {
	case n.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		if i := strings.IndexAny(s.text[at:], `"'`); i >= 0 {
			return s.quotedEnd(at + i)
		}
		return at
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return s.literalEnd(at, parent)
	}
	return s.plainEnd(at, n.Value)
}

// plainEnd returns the end of a text without quotes, in which a line end is equivalent to a
// space.
func (s *source) plainEnd(at int, text string) int {
	for i := 0; i < len(text) && at < len(s.text); {
		if strings.IndexByte(" \n", text[i]) >= 0 {
			for i < len(text) && strings.IndexByte(" \n", text[i]) >= 0 {
				i++
			}
			for at < len(s.text) && strings.IndexByte(" \t\r\n", s.text[at]) >= 0 {
				at++
			}
			continue
		}
		i, at = i+1, at+1
	}
	return at
}

// quotedEnd returns the offset after a quoted text that begins at at.
func (s *source) quotedEnd(at int) int {
	mark := s.text[at]
	for i := at + 1; i < len(s.text); i++ {
		switch {
		case s.text[i] == '\\' && mark == '"':
			i++
		case s.text[i] == mark && mark == '\'' && i+1 < len(s.text) && s.text[i+1] == mark:
			i++
		case s.text[i] == mark:
			return i + 1
		}
	}
	return len(s.text)
}

// literalEnd returns the end of the lines below a | or >, which are indented more
// than parent.
func (s *source) literalEnd(at, parent int) int {
	end := s.lineEnd(at)
	for next := end + 1; next < len(s.text); {
		stop := s.lineEnd(next)
		line := s.text[next:stop]
		bare := strings.TrimLeft(line, " ")
		if bare != "" && len(line)-len(bare) <= parent {
			break
		}
		if bare != "" {
			end = stop
		}
		next = stop + 1
	}
	return end
}

// flowEnd returns the offset after the bracket that closes the one at at.
func (s *source) flowEnd(at int) int {
	depth := 0
	for i := at; i < len(s.text); i++ {
		switch c := s.text[i]; c {
		case '[', '{':
			depth++
		case ']', '}':
			if depth--; depth == 0 {
				return i + 1
			}
		case '"', '\'':
			if strings.IndexByte(" \t\n,[{:", s.text[i-1]) >= 0 {
				i = s.quotedEnd(i) - 1
			}
		case '#':
			if strings.IndexByte(" \t\n", s.text[i-1]) >= 0 {
				i = s.lineEnd(i)
			}
		}
	}
	return len(s.text)
}
