// Package compression compresses the bodies of responses for clients that can read
// that. It wraps the source of a route, so that a cache in front of it keeps what
// is compressed.
//
// accept.go reads what the client can, worth.go says what is worth it, body.go
// compresses as the body comes, encoders.go holds the encoders and bounds their
// memory. Bodies that carry their own coding pass as they are.
package compression

import (
	"io"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// Wrap returns a source that answers as inner does, compressed. Settings that were
// checked give no error.
func Wrap(c *Config, inner exchange.Source, env exchange.Env) (exchange.Source, error) {
	s := &source{inner: inner, types: newTypes(c.Types), least: c.MinSize.Int64(), encoders: shared(env)}
	list := c.Algorithms
	if len(list) == 0 {
		list = usual
	}
	for _, name := range list {
		s.order = append(s.order, named(name))
	}
	return s, nil
}

// source wraps another. It is immutable but for its encoders.
type source struct {
	inner    exchange.Source
	order    []algorithm
	types    *types
	least    int64
	encoders *encoders
}

// Describe returns "compression" and what is behind it.
func (s *source) Describe() string { return "compression → " + s.inner.Describe() }

// The statuses that say something about the body.
const (
	noContent    = 204
	resetContent = 205
	partial      = 206
	notModified  = 304
	minStatus    = 200
)

// Respond asks the wrapped source and compresses what comes.
func (s *source) Respond(ex *exchange.Exchange) *exchange.Answer {
	if answer := s.inner.Respond(ex); answer != nil {
		return answer
	}
	if s.cutsOtherBody(ex) {
		// Without the condition and the range, the whole is sent.
		ex.Response.Body.Close()
		ex.Response.Reset()
		ex.Request.Header.Del(header.Range)
		ex.Request.Header.Del(header.IfRange)
		if answer := s.inner.Respond(ex); answer != nil {
			return answer
		}
	}
	if ex.Response.Status == notModified {
		s.revalidated(ex)
		return nil
	}
	s.compress(ex)
	return nil
}

// cutsOtherBody reports whether a range was cut out of the plain body for a client
// that has a piece of the compressed one: it has no strong tag of that, and a date
// in If-Range does not tell one from the other (RFC 9110, section 13.1.5). Only a
// GET has ranges, and can be sent twice.
func (s *source) cutsOtherBody(ex *exchange.Exchange) bool {
	rq, rs := &ex.Request, &ex.Response
	if rs.Status != partial || rq.Method != "GET" || rq.Body != nil || rs.Body == nil || !rq.Header.Has(header.IfRange) || strings.HasSuffix(rq.Header.Get(header.IfRange), `"`) {
		return false
	}
	return !rs.Header.Has(header.ContentEncoding) && s.types.has(rs.Header.Get(header.ContentType)) && wishOf(&rq.Header, s.order).best != identity
}

// revalidated makes a 304 name the tag that the client has, when that is the weak
// one of a compressed body.
func (s *source) revalidated(ex *exchange.Exchange) {
	h := &ex.Response.Header
	tag := h.Get(header.ETag)
	if !strings.HasPrefix(tag, `"`) || !strings.Contains(ex.Request.Header.Get(header.IfNoneMatch), "W/"+tag) {
		return
	}
	h.Set(header.ETag, ex.Text.Join("W/", tag))
	h.VaryBy("Accept-Encoding")
}

// compress replaces the body, if it is one to compress and the client can read it.
func (s *source) compress(ex *exchange.Exchange) {
	rq, rs := &ex.Request, &ex.Response
	if !hasBody(ex) {
		return
	}
	worth := (rs.Length < 0 || rs.Length >= s.least) && s.types.has(rs.Header.Get(header.ContentType))
	if !worth && !strings.Contains(rq.Header.Get(header.AcceptEncoding), "=0") {
		return // and the client accepts the plain body
	}
	w := wishOf(&rq.Header, s.order)
	switch {
	case !worth && (w.plain || w.best == identity), !changeable(ex):
	case w.best == identity:
		rs.Header.VaryBy("Accept-Encoding")
	case rq.Method == "HEAD":
		rs.Header.VaryBy("Accept-Encoding")
		announce(ex, w.best)
	default:
		s.startEncoder(ex, w)
	}
}

// hasBody reports whether there is a body, or would be if it were not for HEAD.
func hasBody(ex *exchange.Exchange) bool {
	rs := &ex.Response
	switch {
	case rs.Status < minStatus, rs.Status == noContent, rs.Status == resetContent, rs.Status == partial, rs.Tunnel != nil, rs.Length == 0:
		return false
	}
	return ex.Request.Method == "HEAD" || rs.Body != nil || len(rs.Text) > 0
}

// changeable reports whether nothing forbids to change the body.
func changeable(ex *exchange.Exchange) bool {
	h := &ex.Response.Header
	switch {
	case h.Has(header.ContentRange):
		return false
	case h.Has(header.ContentEncoding) && !header.EqualFold(h.Get(header.ContentEncoding), names[identity]):
		return false
	case h.HasToken(header.CacheControl, "no-transform") || ex.Request.Header.HasToken(header.CacheControl, "no-transform"):
		return false
	}
	all := h.All()
	for i := range all {
		if f := &all[i]; f.ID == header.Other && isHash(f) {
			return false
		}
	}
	return true
}

// isHash reports whether a field tells the hash of the body with its coding (RFC
// 9530).
func isHash(f *header.Field) bool {
	return f.Is("Content-Digest") || f.Is("Repr-Digest") || f.Is("Digest") || f.Is("Content-MD5")
}

// startEncoder puts the encoder in front of the body.
func (s *source) startEncoder(ex *exchange.Exchange, w wish) {
	rs := &ex.Response
	r := rooms.Get().(*room)
	held := 0
	if rs.Length < 0 && rs.Text == nil && w.plain {
		var whole bool
		if held, whole = s.hold(rs, r); whole {
			return
		}
	}
	rs.Header.VaryBy("Accept-Encoding")
	k := kindOf(w.best, rs.Length)
	enc := s.encoders.acquire(k, r)
	if enc == nil {
		rs.Makeshift = true
		s.unchanged(rs, r, held)
		return
	}
	plain := rs.Body
	if rs.Text != nil {
		plain = &text{rs.Text}
		rs.Text = nil
	}
	rs.Body = &body{plain: plain, response: rs, front: ex.Front, encoders: s.encoders, kind: k, stream: rs.Length < 0, room: r, encoder: enc, held: held}
	announce(ex, w.best)
}

// hold reads what is at hand of a body of unknown length, up to the size from which
// on it is worth to compress it. It reports whether that was all of it; then the
// body is sent as it is, with its length.
func (s *source) hold(rs *exchange.Response, r *room) (held int, whole bool) {
	least := int(min(s.least, readSize))
	for held < least && rs.Body.Ready() {
		n, err := rs.Body.Read(r.in[held:least])
		held += n
		if err != nil {
			rs.Body = &short{room: r, rest: r.in[:held], end: err, plain: rs.Body}
			if err == io.EOF && rs.Trailer.Len() == 0 {
				rs.Length = int64(held)
			}
			return held, true
		}
	}
	return held, false
}

// unchanged sends a body as it is, of which some was read.
func (s *source) unchanged(rs *exchange.Response, r *room, held int) {
	if held == 0 {
		r.leave()
		return
	}
	rs.Body = &resumed{short{room: r, rest: r.in[:held], plain: rs.Body}}
}

// kindOf returns the kind of encoder for a body of this length, -1 for unknown.
func kindOf(a algorithm, length int64) kind {
	switch {
	case a == gzipped:
		return gzipKind
	case a == zstandard:
		return zstdKind
	case length >= brotliBlock:
		return longBrotliKind
	}
	return brotliKind
}

// announce changes the head for a body with a coding.
func announce(ex *exchange.Exchange, a algorithm) {
	rs := &ex.Response
	rs.Length = -1
	h := &rs.Header
	h.Del(header.AcceptRanges) // those were ranges of the plain body
	h.Del(header.ContentLength)
	h.Set(header.ContentEncoding, names[a])
	// The bytes differ, so a strong tag would lie (RFC 9110, section 8.8.1).
	if tag := h.Get(header.ETag); strings.HasPrefix(tag, `"`) {
		h.Set(header.ETag, ex.Text.Join("W/", tag))
	}
}
