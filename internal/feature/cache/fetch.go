package cache

import (
	"io"
	"strings"
	"sync/atomic"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// fetch is a request of the cache itself to the servers, made from one that
// missed. It does not end with its client: others may be waiting for the same
// response.
type fetch struct {
	ex    exchange.Exchange
	conn  exchange.Conn
	store *store
	begun uint64 // how many sweeps there were

	// leader is the exchange that the fetch is made for, nil once the head is here and the
	// body is shared.
	leader atomic.Pointer[exchange.Exchange]
	flight *flight // that others wait for, or nil; constant
}

// flight is a fetch whose head is not here yet, for those who wait for it.
type flight struct {
	key     []byte
	waiting atomic.Int32
	landed  chan struct{}
	// failed means that the servers failed, and failure is the answer if there was
	// no response. Written before landed is closed.
	failed  bool
	failure *exchange.Answer
}

// newFetch makes a fetch of the request of ex.
func (c *Cache) newFetch(ex *exchange.Exchange, fl *flight) *fetch {
	f := &fetch{store: c.store, flight: fl, conn: ex.Conn.Copy(), begun: c.store.sweeps.Load()}
	f.leader.Store(ex)
	f.ex.Reset(&f.conn, f)
	f.ex.Place, f.ex.ClientIP, f.ex.User, f.ex.Personal = ex.Place, ex.ClientIP, ex.User, ex.Personal
	f.ex.Limits = ex.Limits
	ex.CarrySlots(&f.ex)
	f.ex.Times.Start = exchange.Now()
	rq, to := &ex.Request, &f.ex.Request
	to.Method, to.Scheme, to.Host, to.Path, to.Query = "GET", rq.Scheme, rq.Host, rq.Path, rq.Query
	to.Target, to.Proto = rq.Target, rq.Proto
	rq.Header.CopyTo(&to.Header)
	c.reshape(to)
	return f
}

// reshape turns a request into one for the whole of what is to be stored: without
// conditions and ranges, and without what makes no difference.
func (c *Cache) reshape(rq *exchange.Request) {
	rq.Header.DeleteFunc(func(x *header.Field) bool { return isPrecondition(x.ID) })
	if len(c.ignored.names)+len(c.ignored.prefixes) > 0 {
		rq.Query = string(c.ignored.appendQuery(nil, rq.Query))
	}
}

// condition turns a request into a validation of an entry (RFC 9111, section
// 4.3.1).
func condition(h *header.List, e *entry) {
	if e == nil {
		return
	}
	if e.etag != "" {
		h.Add(header.IfNoneMatch, e.etag)
	}
	if e.lastMod != "" {
		h.Add(header.IfModifiedSince, e.lastMod)
	}
}

func isPrecondition(id header.ID) bool {
	switch id {
	case header.IfNoneMatch, header.IfModifiedSince, header.IfMatch, header.IfUnmodifiedSince, header.IfRange, header.Range:
		return true
	}
	return false
}

// send sends the request. An entry that may still be good makes it conditional.
func (f *fetch) send(source exchange.Source, e *entry) *exchange.Answer {
	condition(&f.ex.Request.Header, e)
	answer := source.Respond(&f.ex)
	if ex := f.leader.Load(); ex != nil {
		ex.Server, ex.Attempts = f.ex.Server, f.ex.Attempts
		f.ex.CarrySlots(ex)
		ex.Times.Tried, ex.Times.Dialed = f.ex.Times.Tried, f.ex.Times.Dialed
		ex.Times.Connected, ex.Times.Head = f.ex.Times.Connected, f.ex.Times.Head
	}
	return answer
}

// detach makes the body independent of the leader's exchange, which is no longer used.
func (f *fetch) detach() {
	f.leader.Store(nil)
	f.ex.Request.Header.Reset()
	rq := &f.ex.Request
	rq.Host, rq.Path, rq.Query, rq.Target = "", "", "", ""
	f.ex.User = ""
}

func (f *fetch) body() exchange.Body {
	if b := f.ex.Response.Body; b != nil {
		return b
	}
	f.ex.Response.Body = &textBody{rest: f.ex.Response.Text}
	return f.ex.Response.Body
}

// close releases the connection.
func (f *fetch) close() {
	rs := &f.ex.Response
	if rs.Tunnel != nil {
		rs.Tunnel.Close()
	}
	if rs.Body != nil {
		rs.Body.Close()
	}
	rs.Reset()
}

// Send is part of exchange.Front; a source does not call it.
func (f *fetch) Send(*exchange.Exchange) error { return nil }

// Abort is part of exchange.Front; a source does not call it.
func (f *fetch) Abort(*exchange.Exchange) {}

// Inform passes an interim response on to the client that the fetch is made for.
func (f *fetch) Inform(_ *exchange.Exchange, status int, fields *header.List) error {
	leader := f.leader.Load()
	if leader == nil {
		return nil
	}
	err := leader.Inform(status, fields)
	if err != nil && f.flight != nil && f.flight.waiting.Load() > 0 {
		return nil // others want the answer still
	}
	return err
}

// Gone reports whether no client waits for the response any more.
func (f *fetch) Gone() bool {
	leader := f.leader.Load()
	if leader == nil || f.flight != nil && f.flight.waiting.Load() > 0 {
		return false
	}
	return leader.Front.Gone()
}

// handed is the body of a response that is not stored, in the hands of the one
// client that it is for.
type handed struct {
	exchange.Body
	from, to *exchange.Exchange
}

// hand makes the response of a fetch that of its leader, as it is.
func (f *fetch) hand() {
	ex, rs := f.leader.Load(), &f.ex.Response
	header, trailer := ex.Response.Header, ex.Response.Trailer
	ex.Response = *rs
	rs.Header, rs.Trailer = header, trailer
	if ex.Response.Body != nil {
		ex.Response.Body = &handed{Body: ex.Response.Body, from: &f.ex, to: ex}
	}
}

// Read reads on, and moves the trailers at the end.
func (b *handed) Read(p []byte) (int, error) {
	n, err := b.Body.Read(p)
	if err != nil && b.from.Response.Trailer.Len() > 0 {
		b.from.Response.Trailer.CopyTo(&b.to.Response.Trailer)
	}
	return n, err
}

// textBody is a body that is at hand.
type textBody struct{ rest []byte }

func (b *textBody) Ready() bool  { return true }
func (b *textBody) Close() error { return nil }

func (b *textBody) Read(p []byte) (int, error) {
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	if len(b.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

// cloneRequest makes dst an exchange with the request of src, which shares no
// memory with it.
func cloneRequest(dst, src *exchange.Exchange, conn *exchange.Conn, front exchange.Front) {
	*conn = src.Conn.Copy()
	dst.Reset(conn, front)
	dst.Place, dst.ClientIP, dst.User, dst.Personal = src.Place, src.ClientIP, strings.Clone(src.User), src.Personal
	dst.Limits = src.Limits
	src.CarrySlots(dst)
	dst.Times.Start = exchange.Now()
	rq, to := &src.Request, &dst.Request
	to.Method, to.Proto = "GET", rq.Proto
	to.Scheme, to.Host, to.Path = strings.Clone(rq.Scheme), strings.Clone(rq.Host), strings.Clone(rq.Path)
	to.Query, to.Target = strings.Clone(rq.Query), strings.Clone(rq.Target)
	for _, f := range rq.Header.All() {
		if !isPrecondition(f.ID) {
			to.Header.AddKnown(f.ID, strings.Clone(f.Name), strings.Clone(f.Value))
		}
	}
}

// quiet is the front of a request without a client.
type quiet struct{ store *store }

func (quiet) Send(*exchange.Exchange) error                      { return nil }
func (quiet) Inform(*exchange.Exchange, int, *header.List) error { return nil }
func (quiet) Abort(*exchange.Exchange)                           {}
func (q quiet) Gone() bool                                       { return q.store.closed.Load() }
