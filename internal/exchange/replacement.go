package exchange

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Replacement is a Template in which $1 and ${name} are also replaced by groups of a
// regular expression; `$$` is a dollar sign. It is immutable; the zero value is the empty
// text.
type Replacement struct {
	parts []Part
}

// Part is a part of a Replacement: a text as it is written, a variable, or what a
// group matched.
type Part struct {
	// Text is the text, when Variable is "" and Group is -1.
	Text string
	// Variable is the name of a variable, or "".
	Variable string
	// Group is the number of a group, or -1.
	Group int

	fill func([]byte, *Exchange) []byte
}

// ParseReplacement compiles a text whose groups are those of expr. The error
// names a group or variable that is not known.
func ParseReplacement(text string, expr *regexp.Regexp) (Replacement, error) {
	var r Replacement
	var plain strings.Builder
	for text != "" {
		i := strings.IndexByte(text, '$')
		if i < 0 {
			plain.WriteString(text)
			break
		}
		plain.WriteString(text[:i])
		text = text[i+1:]
		if strings.HasPrefix(text, "$") {
			plain.WriteByte('$')
			text = text[1:]
			continue
		}
		group, rest, err := cutGroup(text, expr)
		if err != nil {
			return Replacement{}, err
		}
		if err := r.add(plain.String(), group); err != nil {
			return Replacement{}, err
		}
		plain.Reset()
		text = rest
	}
	if plain.Len() == 0 {
		return r, nil
	}
	return r, r.add(plain.String(), -1)
}

func (r *Replacement) add(text string, group int) error {
	t, err := ParseTemplate(text)
	for i := range t.parts {
		p := &t.parts[i]
		r.parts = append(r.parts, Part{Text: p.text, Variable: p.name, Group: -1, fill: p.fill})
	}
	if group >= 0 {
		r.parts = append(r.parts, Part{Group: group})
	}
	return err
}

// cutGroup takes a group off a text that followed a dollar sign.
func cutGroup(s string, expr *regexp.Regexp) (group int, rest string, err error) {
	braced := strings.HasPrefix(s, "{")
	s = strings.TrimPrefix(s, "{")
	end := 0
	for end < len(s) && (s[end] == '_' || s[end]-'0' < 10 || s[end]|0x20-'a' < 26) {
		end++
	}
	name, rest := s[:end], s[end:]
	if braced {
		var closed bool
		if rest, closed = strings.CutPrefix(rest, "}"); !closed {
			name = ""
		}
	}
	if name == "" {
		return 0, "", fmt.Errorf("a $ is not followed by a group; write $1, ${name}, or $$ for a dollar sign")
	}
	group, err = strconv.Atoi(name)
	if err != nil {
		group = expr.SubexpIndex(name)
	}
	if group < 0 || group > expr.NumSubexp() {
		return 0, "", fmt.Errorf("the expression has no group %q; write one of its %d groups, and ${1}x when letters follow one", name, expr.NumSubexp())
	}
	return group, rest, nil
}

// Parts returns the parts in order. The slice is the Replacement's own.
func (r *Replacement) Parts() []Part { return r.parts }

// Fixed reports whether the text has neither variables nor groups, and returns
// it.
func (r *Replacement) Fixed() (string, bool) {
	var b strings.Builder
	for i := range r.parts {
		if p := &r.parts[i]; p.fill != nil || p.Group >= 0 {
			return "", false
		}
		b.WriteString(r.parts[i].Text)
	}
	return b.String(), true
}

// Append appends the part with the values of ex and of a match in subject, as
// regexp.Regexp.FindStringSubmatchIndex returns it.
func (p *Part) Append(b []byte, ex *Exchange, subject string, match []int) []byte {
	switch {
	case p.Group >= 0:
		if from := match[2*p.Group]; from >= 0 {
			return append(b, subject[from:match[2*p.Group+1]]...)
		}
		return b
	case p.fill != nil:
		return p.fill(b, ex)
	}
	return append(b, p.Text...)
}

// Append appends the text with the values of ex and of a match in subject, and
// reports whether b is then no longer than limit bytes. It ends early when b is.
func (r *Replacement) Append(b []byte, ex *Exchange, subject string, match []int, limit int) ([]byte, bool) {
	for i := range r.parts {
		if b = r.parts[i].Append(b, ex, subject, match); len(b) > limit {
			return b, false
		}
	}
	return b, true
}
