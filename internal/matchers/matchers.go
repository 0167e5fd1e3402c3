package matchers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Matchers are the compiled form of a Config. They are immutable and may be asked by any
// number of goroutines. Nil matches every request.
type Matchers struct {
	count   int
	methods []string
	headers []condition
	query   []condition
}

type condition struct {
	id    header.ID // of a header field
	name  string
	value string
	regex *regexp.Regexp // nil without one
}

// Compile returns the matchers of checked settings, nil for nil.
func Compile(c *Config) (*Matchers, error) {
	if c == nil {
		return nil, nil
	}
	m := &Matchers{count: c.Count(), methods: c.Methods}
	var err error
	if m.headers, err = compile(c.Headers); err != nil {
		return nil, err
	}
	m.query, err = compile(c.Query)
	return m, err
}

func compile(all []Condition) ([]condition, error) {
	out := make([]condition, len(all))
	for i, c := range all {
		out[i] = condition{id: header.Lookup(c.Name), name: c.Name, value: c.Value}
		if c.Regex == "" {
			continue
		}
		expr, err := regexp.Compile(c.Regex)
		if err != nil {
			return nil, err
		}
		out[i].regex = expr
	}
	return out, nil
}

// Count returns how many matchers there are.
func (m *Matchers) Count() int {
	if m == nil {
		return 0
	}
	return m.count
}

// Match reports whether a request matches. It uses the text buffer of the exchange, and
// does not allocate.
func (m *Matchers) Match(ex *exchange.Exchange) bool {
	if m == nil {
		return true
	}
	rq := &ex.Request
	if len(m.methods) > 0 && !slices.Contains(m.methods, rq.Method) {
		return false
	}
	for i := range m.headers {
		c := &m.headers[i]
		if value, there := c.header(ex); !there || !c.matchesValue(value) {
			return false
		}
	}
	for i := range m.query {
		c := &m.query[i]
		if value, there := c.parameter(ex); !there || !c.matchesValue(value) {
			return false
		}
	}
	return true
}

// Miss returns why a request does not match, "" if it does.
func (m *Matchers) Miss(ex *exchange.Exchange) string {
	if m == nil {
		return ""
	}
	if len(m.methods) > 0 && !slices.Contains(m.methods, ex.Request.Method) {
		return fmt.Sprintf("the method %s is not among %s", ex.Request.Method, strings.Join(m.methods, ", "))
	}
	for i := range m.headers {
		value, there := m.headers[i].header(ex)
		if why := m.headers[i].miss("header", value, there); why != "" {
			return why
		}
	}
	for i := range m.query {
		value, there := m.query[i].parameter(ex)
		if why := m.query[i].miss("query parameter", value, there); why != "" {
			return why
		}
	}
	return ""
}

func (c *condition) miss(noun, value string, there bool) string {
	switch {
	case !there:
		return fmt.Sprintf("the request has no %s %s", noun, c.name)
	case c.matchesValue(value):
		return ""
	case secret(c.name):
		return fmt.Sprintf("the %s %s has another value", noun, c.name)
	case c.regex != nil:
		return fmt.Sprintf("the %s %s is %q, which %s does not match", noun, c.name, value, c.regex)
	}
	return fmt.Sprintf("the %s %s is %q, not %q", noun, c.name, value, c.value)
}

func (c *condition) matchesValue(value string) bool {
	switch {
	case c.regex != nil:
		return c.regex.MatchString(value)
	case c.value == "":
		return true
	case c.id == header.Upgrade:
		return header.EqualFold(value, c.value)
	}
	return value == c.value
}

// header returns the value of the field, those of several with ", " in between (RFC 9110,
// section 5.3). Upgrade is no field any more when routes are chosen, and none of HTTP/2
// and HTTP/3 at all: what counts is the protocol that the client asks for.
func (c *condition) header(ex *exchange.Exchange) (value string, there bool) {
	if c.id == header.Upgrade {
		return ex.Request.Upgrade, ex.Request.Upgrade != ""
	}
	if c.id != header.Other && !ex.Request.Header.Has(c.id) {
		return "", false
	}
	all := ex.Request.Header.All()
	for i := range all {
		f := &all[i]
		switch {
		case f.ID != c.id || c.id == header.Other && !f.Is(c.name):
		case there:
			value = ex.Text.Join(value, ", ", f.Value)
		default:
			value, there = f.Value, true
		}
	}
	return value, there
}

// parameter returns the first value of the parameter, decoded.
func (c *condition) parameter(ex *exchange.Exchange) (value string, there bool) {
	for rest := strings.TrimPrefix(ex.Request.Query, "?"); rest != ""; {
		pair, after, _ := strings.Cut(rest, "&")
		rest = after
		name, value, _ := strings.Cut(pair, "=")
		if decode(&ex.Text, name) == c.name {
			return decode(&ex.Text, value), true
		}
	}
	return "", false
}

// decode returns a part of a query as forms write it: a plus is a blank. An encoding that
// is none stays as it is.
func decode(text *exchange.Text, s string) string {
	if strings.IndexByte(s, '%') < 0 && strings.IndexByte(s, '+') < 0 {
		return s
	}
	b := text.Buffer()
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '+' {
			c = ' '
		} else if c == '%' && i+2 < len(s) {
			high, ok := digit(s[i+1])
			low, okay := digit(s[i+2])
			if ok && okay {
				c = high<<4 | low
				i += 2
			}
		}
		b = append(b, c)
	}
	return text.End(b)
}

func digit(c byte) (value byte, ok bool) {
	switch {
	case c-'0' < 10:
		return c - '0', true
	case c|0x20 >= 'a' && c|0x20 <= 'f':
		return c | 0x20 - 'a' + 10, true
	}
	return 0, false
}
