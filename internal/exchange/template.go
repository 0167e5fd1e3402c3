package exchange

import (
	"fmt"
	"strings"
)

// Template is a text with variables, compiled from settings: `{host}` stands
// for the host of the request, `{{` for a brace. It is immutable; the zero
// value is the empty text.
type Template struct {
	parts []part
}

// part is a piece of text, or a variable if fill is set.
type part struct {
	text string
	name string // of the variable
	fill func([]byte, *Exchange) []byte
}

// variables are what a template may name.
var variables = []struct {
	name string
	fill func([]byte, *Exchange) []byte
}{
	{"client_ip", func(b []byte, ex *Exchange) []byte { return ex.ClientIP.AppendTo(b) }},
	{"host", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Host...) }},
	{"scheme", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Scheme...) }},
	{"method", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Method...) }},
	{"path", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Path...) }},
	{"query", func(b []byte, ex *Exchange) []byte { return append(b, strings.TrimPrefix(ex.Request.Query, "?")...) }},
	{"request_id", func(b []byte, ex *Exchange) []byte { return append(b, ex.ID()...) }},
	{"proxy", func(b []byte, ex *Exchange) []byte { return append(b, ex.Place.Proxy...) }},
	{"route", func(b []byte, ex *Exchange) []byte { return append(b, ex.Place.Route...) }},
	{"user", func(b []byte, ex *Exchange) []byte { return append(b, ex.User...) }},
	{"client_cert_subject", func(b []byte, ex *Exchange) []byte { return append(b, ex.Conn.ClientSubject...) }},
	{"client_cert_fingerprint", func(b []byte, ex *Exchange) []byte { return append(b, ex.Conn.ClientFingerprint...) }},
}

// Variables returns the names that a template may use.
func Variables() []string {
	names := make([]string, len(variables))
	for i := range variables {
		names[i] = variables[i].name
	}
	return names
}

// ParseTemplate compiles a text. The error names a variable that is not known,
// or a brace that is never closed.
func ParseTemplate(text string) (Template, error) {
	var t Template
	for text != "" {
		i := strings.IndexByte(text, '{')
		switch {
		case i < 0:
			t.addText(text)
			return t, nil
		case strings.HasPrefix(text[i:], "{{"):
			t.addText(text[:i+1])
			text = text[i+2:]
			continue
		}
		t.addText(text[:i])
		name, rest, closed := strings.Cut(text[i+1:], "}")
		if !closed {
			return Template{}, fmt.Errorf("%q has no closing brace; write {{ for a brace", text[i:])
		}
		if !t.addVariable(name) {
			return Template{}, fmt.Errorf("unknown variable {%s}; known are %s; write {{ for a brace", name, strings.Join(Variables(), ", "))
		}
		text = rest
	}
	return t, nil
}

func (t *Template) addText(s string) {
	if s != "" {
		t.parts = append(t.parts, part{text: s})
	}
}

func (t *Template) addVariable(name string) bool {
	for i := range variables {
		if variables[i].name == name {
			t.parts = append(t.parts, part{name: name, fill: variables[i].fill})
			return true
		}
	}
	return false
}

// Fixed reports whether the text has no variables, and returns it.
func (t *Template) Fixed() (string, bool) {
	var b strings.Builder
	for i := range t.parts {
		if t.parts[i].fill != nil {
			return "", false
		}
		b.WriteString(t.parts[i].text)
	}
	return b.String(), true
}

// Append appends the text with the values of ex.
func (t *Template) Append(b []byte, ex *Exchange) []byte {
	for i := range t.parts {
		if p := &t.parts[i]; p.fill != nil {
			b = p.fill(b, ex)
		} else {
			b = append(b, p.text...)
		}
	}
	return b
}

// AppendLimited is Append that ends early when b is longer than limit bytes, and
// reports whether it is not.
func (t *Template) AppendLimited(b []byte, ex *Exchange, limit int) ([]byte, bool) {
	for i := range t.parts {
		if p := &t.parts[i]; p.fill != nil {
			b = p.fill(b, ex)
		} else {
			b = append(b, p.text...)
		}
		if len(b) > limit {
			return b, false
		}
	}
	return b, true
}

// AppendEscaped is Append for a text in a language of its own, such as HTML:
// escape is called with what was appended so far and with where the value of a
// variable begins in it, and returns it with the value escaped.
func (t *Template) AppendEscaped(b []byte, ex *Exchange, escape func(b []byte, from int) []byte) []byte {
	for i := range t.parts {
		if p := &t.parts[i]; p.fill != nil {
			b = escape(p.fill(b, ex), len(b))
		} else {
			b = append(b, p.text...)
		}
	}
	return b
}
