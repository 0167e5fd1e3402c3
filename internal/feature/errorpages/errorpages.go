// Package errorpages puts pages of the operator in the place of the bodies of error
// responses: of our own answers and, if asked, of what servers answer.
//
// It sees every response of a route, also to requests that other filters refused,
// and changes the body and the fields that tell of it; the status only if asked.
package errorpages

import (
	"io"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/schema"
	"headgate/internal/setting/page"
)

// FileError reports a page whose file cannot be read.
type FileError struct {
	// Page is the number of the page in its list.
	Page int
	// Err is what is wrong with the file.
	Err error
}

// Error returns what is wrong with the file.
func (e *FileError) Error() string { return e.Err.Error() }

// Place returns the place of the file below that of the pages.
func (e *FileError) Place(pages schema.Place) schema.Place {
	return pages.Index(e.Page).Field("file")
}

// Compile returns the filter. Settings that were checked give no error but a
// *FileError.
func Compile(c Config, env exchange.Env) (exchange.Filter, error) {
	s := &set{pages: make([]compiled, len(c))}
	for i := range c {
		text, err := page.Compile(&c[i].Config, env)
		if err != nil {
			return exchange.Filter{}, &FileError{i, err}
		}
		s.pages[i] = compiled{text, c[i].Upstream, c[i].SendStatus}
	}
	for i := range c { // one status wins over its class
		s.fill(i, c[i].Status, func(t Status) bool { return t[1] == 'x' })
	}
	for i := range c {
		s.fill(i, c[i].Status, func(t Status) bool { return t[1] != 'x' })
	}
	return exchange.Filter{Name: "error_pages", Response: s.response}, nil
}

// set are the pages of a route. It is immutable.
type set struct {
	pages []compiled
	// of is the page for each status, by slot; counted from 1, 0 is none.
	of [200]uint16
}

type compiled struct {
	page     *page.Page
	upstream bool
	send     int
}

// slot returns where an error status stands, -1 for other statuses.
func slot(status int) int {
	if class := status / 100; class == 4 || class == 5 {
		return (class-4)*100 + status%100
	}
	return -1
}

// fill notes the statuses of a page that are of one form.
func (s *set) fill(i int, all []Status, of func(Status) bool) {
	for _, t := range all {
		if !of(t) {
			continue
		}
		class := int(t[0] - '0')
		from, to := 0, 99
		if t[1] != 'x' {
			from = int(t[1]-'0')*10 + int(t[2]-'0')
			to = from
		}
		for rest := from; rest <= to; rest++ {
			s.of[slot(class*100+rest)] = uint16(i + 1)
		}
	}
}

func (s *set) response(ex *exchange.Exchange) {
	rs := &ex.Response
	at := slot(rs.Status)
	if at < 0 || s.of[at] == 0 || rs.Tunnel != nil || ex.Reason == exchange.ClientClosed {
		return
	}
	p := &s.pages[s.of[at]-1]
	switch {
	case rs.Usual:
	case rs.Ours && ex.Reason != exchange.None:
		return // an answer with a body of its own
	case !p.upstream:
		return
	}
	if ex.Request.GRPC() {
		return // its client reads no page
	}
	if !rs.Usual {
		rs.Header.VaryBy("Accept")
	}
	if ex.Request.PrefersJSON() && !p.page.JSON() {
		return
	}
	p.put(ex)
}

// put puts the page in the place of the body.
func (p *compiled) put(ex *exchange.Exchange) {
	rs := &ex.Response
	if p.send != 0 {
		rs.Status = p.send
	}
	text := p.page.Text(ex)
	rs.Header.DeleteFunc(ofBody)
	rs.Header.Add(header.ContentType, p.page.ContentType())
	rs.Length, rs.Usual = int64(len(text)), false
	if rs.Body == nil {
		rs.Text = text
		return
	}
	rs.Text, rs.Body = nil, &instead{rest: text, of: rs.Body}
}

// ofBody reports whether a field describes the replaced body.
func ofBody(f *header.Field) bool {
	switch f.ID {
	case header.ContentType, header.ContentLength, header.ContentEncoding, header.ContentLanguage, header.ContentLocation,
		header.AcceptRanges, header.ETag, header.LastModified:
		return true
	case header.Other:
		return f.Is("Content-Disposition") || f.Is("Content-MD5") || f.Is("Content-Digest") || f.Is("Repr-Digest") || f.Is("Digest")
	}
	return false
}

// instead is a page in the place of a body, which is closed behind it: until then
// the head is in use.
type instead struct {
	rest []byte
	of   exchange.Body
}

func (b *instead) Read(p []byte) (int, error) {
	n := copy(p, b.rest)
	if b.rest = b.rest[n:]; len(b.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (b *instead) Ready() bool { return true }

func (b *instead) Close() error {
	b.rest = nil
	return b.of.Close()
}
