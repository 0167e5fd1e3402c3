// Package fixed makes a route answer by itself: a status, and a body if there is
// one, with no upstream behind it.
package fixed

import (
	"mime"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/header"
)

// source makes the response. It is immutable.
type source struct {
	status      int
	contentType string
	body        exchange.Template
	text        []byte // the body, when no variable is in it
	varies      bool
	escape      func(b []byte, from int) []byte
}

// Compile returns the source. Settings that were checked give no error.
func Compile(c *Config) (exchange.Source, error) {
	body, err := exchange.ParseTemplate(c.Body)
	if err != nil {
		return nil, err
	}
	s := &source{status: c.Status, body: body}
	if c.Body != "" {
		s.contentType = c.ContentType
		s.escape = escaping(c.ContentType)
	}
	if text, ok := body.Fixed(); ok {
		s.text = []byte(text)
	} else {
		s.varies = true
	}
	return s, nil
}

// Respond makes the response of ex.
func (s *source) Respond(ex *exchange.Exchange) *exchange.Answer {
	rs := &ex.Response
	rs.Reset()
	rs.Status, rs.Ours, rs.Text = s.status, true, s.text
	if s.varies {
		rs.Text = []byte(ex.Text.End(s.body.AppendEscaped(ex.Text.Begin(), ex, s.escape)))
	}
	rs.Length = int64(len(rs.Text))
	if s.status == notModified {
		rs.Length = -1
	}
	if s.contentType != "" {
		rs.Header.Add(header.ContentType, s.contentType)
	}
	return nil
}

// Describe returns "fixed_response".
func (s *source) Describe() string { return "fixed_response" }

// notModified is the status whose Content-Length would be that of another
// response (RFC 9110, section 8.6).
const notModified = 304

// escaping returns what makes the value of a variable harmless in a text of this
// media type. What a client writes in a path or query must not become a part of
// a page.
func escaping(mediaType string) func([]byte, int) []byte {
	kind, _, _ := mime.ParseMediaType(mediaType)
	switch {
	case strings.Contains(kind, "html"), strings.Contains(kind, "xml"):
		return escapeMarkup
	case strings.Contains(kind, "json"), strings.Contains(kind, "javascript"):
		return escapeJSON
	}
	return func(b []byte, _ int) []byte { return b }
}

func escapeMarkup(b []byte, from int) []byte {
	return replace(b, from, func(c byte) string {
		switch c {
		case '&':
			return "&amp;"
		case '<':
			return "&lt;"
		case '>':
			return "&gt;"
		case '"':
			return "&#34;"
		case '\'':
			return "&#39;"
		}
		return ""
	})
}

func escapeJSON(b []byte, from int) []byte {
	return replace(b, from, func(c byte) string {
		const hex = "0123456789abcdef"
		if c < ' ' || strings.IndexByte("\"\\<>&'", c) >= 0 {
			return string([]byte{'\\', 'u', '0', '0', hex[c>>4], hex[c&15]})
		}
		return ""
	})
}

// replace puts what with returns in the place of bytes of b from an index on; ""
// keeps the byte.
func replace(b []byte, from int, with func(byte) string) []byte {
	value := string(b[from:])
	b = b[:from]
	for i := range len(value) {
		if s := with(value[i]); s != "" {
			b = append(b, s...)
		} else {
			b = append(b, value[i])
		}
	}
	return b
}
