package upstream

import (
	"errors"
	"strconv"
	"sync"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http2"
	"headgate/internal/upstream/h2"
)

// maxRepeats limits how often a request is sent again to a server that has not processed
// it. From the second time on there is a pause before. None starts after the request
// timeout.
const maxRepeats = 10

// maxShared is how many connections may end under a request before it gets one of its
// own, on which it is the first: on shared connections others start before it, and a
// server that closes its connections often may process only those.
const maxShared = 2

// Ended ends an exchange whose response was closed. It is for the connection that
// carried it, and called once.
func (s *Server) Ended() { s.released() }

// Broke is Ended for a response that the server broke off.
func (s *Server) Broke(err error) { s.broke(err) }

// attemptShared makes one attempt at one server that may use HTTP/2. A request that the
// server has not processed, because it ended the connection, is sent over another one.
func (s *Servers) attemptShared(ex *exchange.Exchange, srv *Server) *exchange.Error {
	began := attemptBegan(ex)
	stream := h2.NewStream(ex, began, srv)
	var reserved *h2.Conn // on which the stream has a place, or none if it is nil
	defer func() {
		if stream != nil { // something panics
			stream.Abandon(reserved)
		}
	}()
	end := func() (kept bool) {
		kept, stream = stream.End(), nil
		return kept
	}
	if mustBeQuiet(ex) {
		stream.Careful()
	}
	block := blocks.Get().(*[]byte)
	defer blocks.Put(block)
	for repeats, ended := 0, 0; ; repeats++ {
		o, err := srv.pool.open(ex, ended >= maxShared)
		if errors.Is(err, h2.ErrUnprocessed) && mayGoOn(ex, began, repeats) {
			pause(repeats + 1)
			continue
		}
		if err != nil {
			return finalError(ex, refusal(err), end())
		}
		if o.plain != nil {
			return s.fallBack(ex, srv, end(), o)
		}
		reserved = o.multi
		*block = AppendBlock((*block)[:0], ex, srv, s.host, srv.pool.tls != nil)
		if err = stream.Do(o.multi, *block); err == nil {
			stream = nil // the response has it
			return nil
		}
		reserved = nil
		again := errors.Is(err, h2.ErrUnprocessed) || errors.Is(err, h2.ErrLost) && !o.fresh && idempotent(ex)
		if again && stream.Repeatable() && mayGoOn(ex, began, repeats) {
			if !o.multi.Usable() {
				ended++
			}
			if repeats > 0 {
				pause(repeats)
			}
			continue
		}
		kept := end()
		if errors.Is(err, h2.ErrHTTP1) && kept && afresh(ex) {
			return s.attemptPlain(ex, srv) // the server wants that for this one
		}
		known := classify(err)
		if errors.Is(err, h2.ErrUnprocessed) {
			known = &exchange.Error{Reason: known.Reason, Err: &unseen{known.Reason, known.Err}}
		}
		return finalError(ex, known, kept)
	}
}

// mayGoOn reports whether a request that was repeated so often, since an attempt
// started, may be repeated once more.
func mayGoOn(ex *exchange.Exchange, began int64, repeats int) bool {
	limit := int64(ex.Limits.RequestTimeout)
	return repeats < maxRepeats && (limit <= 0 || exchange.Now()-began < limit) && !ex.Left()
}

// refusal assigns a reason to a connection that could not be opened.
func refusal(err error) *exchange.Error {
	var known *exchange.Error
	var unseen *unseen
	switch {
	case errors.As(err, &unseen):
		return &exchange.Error{Reason: unseen.reason, Err: err}
	case errors.As(err, &known):
		return known
	}
	return &exchange.Error{Reason: dialReason(err), Err: err}
}

// fallBack sends a request over HTTP/1.1, as the server prefers that. One of which
// a part was sent over HTTP/2 before cannot be, unless that was kept.
func (s *Servers) fallBack(ex *exchange.Exchange, srv *Server, kept bool, o opened) *exchange.Error {
	if !kept || !afresh(ex) {
		o.plain.close()
		return &exchange.Error{Reason: exchange.UpstreamReset, Err: errors.New("server " + srv.pool.address + " went back to HTTP/1.1 in the middle of a request")}
	}
	err := o.plain.roundTrip(ex, srv, s.host)
	if err == nil {
		return nil
	}
	o.plain.close()
	if !o.fresh && errors.Is(err, errStale) && mayRepeat(ex) {
		return s.attemptPlain(ex, srv)
	}
	return finalError(ex, classify(err), true)
}

var blocks = sync.Pool{New: func() any { b := make([]byte, 0, 1<<10); return &b }}

// AppendBlock appends the field block of the request that srv gets over HTTP/2
// (RFC 9113, section 8.3.1).
func AppendBlock(b []byte, ex *exchange.Exchange, srv *Server, host HostField, secure bool) []byte {
	rq := &ex.Request
	switch rq.Method {
	case "GET":
		b = http2.AppendIndexed(b, http2.MethodGet)
	case "POST":
		b = http2.AppendIndexed(b, http2.MethodPost)
	default:
		b = http2.AppendNamed(b, http2.NameMethod, rq.Method)
	}
	scheme := byte(http2.SchemeHTTP)
	if secure {
		scheme = http2.SchemeHTTPS
	}
	b = http2.AppendIndexed(b, scheme)
	b = http2.AppendNamed(b, http2.NameAuthority, hostOf(rq, srv, host))
	var scratch [512]byte
	b = http2.AppendNamed(b, http2.NamePath, AppendTarget(scratch[:0], srv, rq))
	for i := range rq.Header.All() {
		f := &rq.Header.All()[i]
		if f.ID == header.Host || f.ID == header.ContentLength || f.ID == header.Expect || f.ID.HopByHop() {
			continue
		}
		b = http2.AppendField(b, f.ID, f.Name, f.Value)
	}
	if rq.Length > 0 || rq.Length == 0 && (rq.Method == "POST" || rq.Method == "PUT" || rq.Method == "PATCH") {
		var digits [20]byte
		b = http2.AppendNamed(b, http2.NameContentLength, strconv.AppendInt(digits[:0], rq.Length, 10))
	}
	if rq.Continue && rq.Body != nil {
		b = http2.AppendField(b, header.Expect, "expect", "100-continue")
	}
	if rq.AcceptsTrailers {
		b = http2.AppendField(b, header.TE, "te", "trailers")
	}
	return b
}
