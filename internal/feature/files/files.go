// Package files serves the files of a folder as the source of a route: a landing page, a
// single-page application, downloads.
//
// name.go maps the path of a request to a name below the root, folder.go opens it through
// os.Root, find.go decides which file that is, conditions.go and ranges.go decide what of
// it is sent, and body.go sends it. Whatever is not a regular file below the root is not
// found. The package changes no files and runs no programs.
package files

import (
	"path/filepath"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// source serves the files of one folder. It is immutable; folder has its own state.
type source struct {
	folder        *folder
	prefix        string // of the route, to be stripped; "" if it is not
	index         []string
	spa           bool
	listing       bool
	precompressed []coding
	cacheControl  string
	clock         func() time.Time
}

// Compile returns the source of a route. Relative paths begin in dir. Settings that were
// checked give no error.
func Compile(c *Config, dir string, route exchange.Route, env exchange.Env) (exchange.Source, error) {
	root := c.Root
	if !filepath.IsAbs(root) {
		root = filepath.Join(dir, root)
	}
	s := &source{
		index: c.index(), spa: c.SPA, listing: c.Listing, cacheControl: c.CacheControl, clock: env.Clock,
		folder: exchange.Keep(env, "folder of files", root, func() *folder { return newFolder(root, shared(env)) }),
	}
	if s.clock == nil {
		s.clock = time.Now
	}
	if route.Strip {
		s.prefix = route.Prefix
	}
	for _, name := range c.Precompressed {
		s.precompressed = append(s.precompressed, codingOf(name))
	}
	return s, nil
}

// Describe returns "files" and the folder.
func (s *source) Describe() string { return "files(" + s.folder.path + ")" }

// methods are the methods that files have.
const methods = "GET, HEAD"

var notAllowed = &exchange.Answer{
	Reason: exchange.MethodRefused, Cause: "files can only be read",
	Fields: []header.Field{{ID: header.Allow, Name: header.Allow.String(), Value: methods}},
}

// Respond serves the file that the path of ex names.
func (s *source) Respond(ex *exchange.Exchange) *exchange.Answer {
	if m := ex.Request.Method; m != "GET" && m != "HEAD" {
		return notAllowed
	}
	rest := strings.TrimPrefix(ex.Request.Path, s.prefix)
	name, slash, ok := nameOf(&ex.Text, rest)
	if !ok {
		return exchange.Fail(exchange.NotFound, "files: the path names no file that is served")
	}
	f, answer := s.find(ex, name, slash)
	if answer != nil {
		return answer
	}
	if f == nil {
		return nil // a listing
	}
	if ex.Rehearsal {
		ex.Note("file " + filepath.Join(s.folder.path, filepath.FromSlash(f.name)))
	}
	return s.serve(ex, f)
}

// serve makes the response for a file, and owns it.
func (s *source) serve(ex *exchange.Exchange, f *found) *exchange.Answer {
	rs := &ex.Response
	rs.Reset()
	rs.Status, rs.Ours, rs.Length = statusOK, true, f.size
	now := s.clock()
	v := validatorsOf(&ex.Text, f, now)
	switch check(&ex.Request, v) {
	case failed:
		f.Close()
		return exchange.Fail(exchange.PreconditionFailed, "files: "+f.name+" does not match If-Match or If-Unmodified-Since")
	case notModified:
		f.Close()
		rs.Status, rs.Length = statusNotModified, -1
		s.describe(ex, f, v)
		return nil
	}
	s.describe(ex, f, v)
	kind := typeOf(f.name)
	if f.coding != identity {
		rs.Header.Add(header.ContentEncoding, f.coding.name())
	}
	rs.Header.Add(header.AcceptRanges, "bytes")
	var ranges []byteRange
	if ex.Request.Method == "GET" && mayUseRange(&ex.Request, v, now) {
		var satisfiable bool
		if ranges, satisfiable = parseRanges(ex.Request.Header.Get(header.Range), f.size); !satisfiable {
			f.Close()
			return notSatisfiable(ex, f.size)
		}
	}
	if len(ranges) > 0 {
		rs.Status = statusPartial
	}
	b := &body{file: f, parts: make([]part, 0, 1)}
	switch len(ranges) {
	case 0:
		rs.Header.Add(header.ContentType, kind)
		b.parts = append(b.parts, part{off: 0, left: f.size})
	case 1:
		rs.Header.Add(header.ContentType, kind)
		rs.Header.Add(header.ContentRange, ranges[0].contentRange(&ex.Text, f.size))
		b.parts = append(b.parts, part{off: ranges[0].start, left: ranges[0].length})
		rs.Length = ranges[0].length
	default:
		rs.Header.Add(header.ContentType, multipart(b, ranges, kind, f.size))
		rs.Length = b.length()
	}
	if ex.Request.Method == "HEAD" || rs.Length == 0 {
		f.Close()
		return nil
	}
	rs.Body = b
	return nil
}

// describe adds the fields that a 200 and a 304 have in common (RFC 9110, section 15.4.5).
func (s *source) describe(ex *exchange.Exchange, f *found, v validators) {
	h := &ex.Response.Header
	if v.tag != "" {
		h.Add(header.ETag, v.tag)
		h.Add(header.LastModified, v.date)
	}
	if s.cacheControl != "" {
		h.Add(header.CacheControl, s.cacheControl)
	}
	if len(s.precompressed) > 0 {
		h.Add(header.Vary, "Accept-Encoding")
	}
}

// The statuses of responses that are no errors.
const (
	statusOK          = 200
	statusPartial     = 206
	statusMoved       = 301
	statusNotModified = 304
)
