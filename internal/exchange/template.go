package exchange

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"headgate/internal/proto/header"
)

// Template is a text with variables, compiled from settings: `{host}` is replaced by the
// host of the request, `{{` is a brace. It is immutable; the zero value is the empty text.
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
	{"host", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.HostName()...) }},
	{"authority", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Host...) }},
	{"scheme", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Scheme...) }},
	{"method", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Method...) }},
	{"path", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Path...) }},
	{"query", func(b []byte, ex *Exchange) []byte { return append(b, strings.TrimPrefix(ex.Request.Query, "?")...) }},
	{"request_uri", func(b []byte, ex *Exchange) []byte { return append(append(b, ex.Request.Path...), ex.Request.Query...) }},
	{"port", func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.port()...) }},
	{"server_port", func(b []byte, ex *Exchange) []byte { return appendPort(b, ex.Conn.Local) }},
	{"request_id", func(b []byte, ex *Exchange) []byte { return append(b, ex.ID()...) }},
	{"proxy", func(b []byte, ex *Exchange) []byte { return append(b, ex.Place.Proxy...) }},
	{"route", func(b []byte, ex *Exchange) []byte { return append(b, ex.Place.Route...) }},
	{"user", func(b []byte, ex *Exchange) []byte { return append(b, ex.User...) }},
	{"client_cert_subject", func(b []byte, ex *Exchange) []byte { return append(b, ex.Conn.ClientSubject...) }},
	{"status", func(b []byte, ex *Exchange) []byte { return appendStatus(b, ex.Response.Status) }},
	{"reason", func(b []byte, ex *Exchange) []byte { return append(b, ex.Reason.String()...) }},
	{"country", func(b []byte, ex *Exchange) []byte { return append(b, ex.Country()...) }},
	{"asn", func(b []byte, ex *Exchange) []byte { return appendASN(b, ex.ASN()) }},
	{"client_cert_fingerprint", func(b []byte, ex *Exchange) []byte { return append(b, ex.Conn.ClientFingerprint...) }},
}

// ofHeader begins the name of a variable for a field of the request: {header.X-User}.
const ofHeader = "header."

// Variables returns the names that a template can use; header.NAME is any header of a
// request.
func Variables() []string {
	names := make([]string, len(variables), len(variables)+1)
	for i := range variables {
		names[i] = variables[i].name
	}
	return append(names, ofHeader+"NAME")
}

// fieldOf returns what appends the values of a field of the request: several lines are
// one value, as a server reads them (RFC 9110, section 5.3). It is nil for what is no
// name of a field.
func fieldOf(name string) func([]byte, *Exchange) []byte {
	id := header.Lookup(name)
	switch {
	case !header.ValidName(name):
		return nil
	case id == header.Host:
		return func(b []byte, ex *Exchange) []byte { return append(b, ex.Request.Host...) }
	}
	separator := ", "
	if id == header.Cookie {
		separator = "; "
	}
	return func(b []byte, ex *Exchange) []byte {
		all, more := ex.Request.Header.All(), false
		for i := range all {
			if f := &all[i]; f.ID != id || id == header.Other && !f.Is(name) {
				continue
			}
			if more {
				b = append(b, separator...)
			}
			b, more = append(b, all[i].Value...), true
		}
		return b
	}
}

// port is the port of the authority, or the scheme's own where it names none.
func (rq *Request) port() string {
	if port := strings.TrimPrefix(rq.Host[len(rq.HostName()):], ":"); port != "" {
		return port
	}
	if rq.Scheme == "https" {
		return "443"
	}
	return "80"
}

// appendPort appends the port of an address; a request of our own may have none.
func appendPort(b []byte, a netip.AddrPort) []byte {
	if a.Port() == 0 {
		return b
	}
	return strconv.AppendUint(b, uint64(a.Port()), 10)
}

// appendASN appends the number of a network; 0 is not known.
func appendASN(b []byte, asn uint32) []byte {
	if asn == 0 {
		return b
	}
	return strconv.AppendUint(b, uint64(asn), 10)
}

// appendStatus appends a status; there is none on the way in.
func appendStatus(b []byte, status int) []byte {
	if status == 0 {
		return b
	}
	return strconv.AppendInt(b, int64(status), 10)
}

// maxVariables limits the variables in a text, and with that its length.
const maxVariables = 64

var errTooMany = fmt.Errorf("the text has more than %d variables; write fewer of them", maxVariables)

// ParsePage compiles the text of a page, in which braces have other uses: only known
// variables are replaced, and everything else stays. It returns an error if there are too
// many.
func ParsePage(text string) (Template, error) {
	var t Template
	from := 0
	for i := 0; i < len(text); i++ {
		if text[i] != '{' {
			continue
		}
		name, _, closed := strings.Cut(text[i+1:], "}")
		if !closed {
			break
		}
		n := len(t.parts)
		if t.addVariable(name) {
			variable := t.parts[n]
			t.parts = t.parts[:n]
			t.addText(text[from:i])
			t.parts = append(t.parts, variable)
			i += len(name) + 1
			from = i + 1
		}
	}
	t.addText(text[from:])
	return t, t.bounded()
}

// bounded returns an error when there are too many variables.
func (t *Template) bounded() error {
	n := 0
	for i := range t.parts {
		if t.parts[i].fill != nil {
			n++
		}
	}
	if n > maxVariables {
		return errTooMany
	}
	return nil
}

// ParseTemplate compiles a text. The error names an unknown variable, or a brace that is
// never closed, or means that there are too many variables.
func ParseTemplate(text string) (Template, error) {
	var t Template
	for text != "" {
		i := strings.IndexByte(text, '{')
		switch {
		case i < 0:
			t.addText(text)
			return t, t.bounded()
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
	return t, t.bounded()
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
	if field, ok := strings.CutPrefix(name, ofHeader); ok {
		if fill := fieldOf(field); fill != nil {
			t.parts = append(t.parts, part{name: name, fill: fill})
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

// Has reports whether the text contains a variable for which wanted is true.
func (t *Template) Has(wanted func(variable string) bool) bool {
	for i := range t.parts {
		if p := &t.parts[i]; p.fill != nil && wanted(p.name) {
			return true
		}
	}
	return false
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
