// Package fixed makes a route answer by itself: a status, and a body if there is
// one, with no upstream behind it.
package fixed

import (
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/page"
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
		s.escape = page.Escaping(c.ContentType)
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
		rs.Text = []byte(ex.Text.End(s.body.AppendEscaped(ex.Text.Buffer(), ex, s.escape)))
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
