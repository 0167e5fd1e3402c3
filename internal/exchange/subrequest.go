package exchange

import (
	"errors"
	"io"
	"net/netip"
	"time"

	"headgate/internal/proto/header"
)

// Subrequest is a request of our own: the question to an auth service, a health
// check, the copy of a request for a mirror. A Source answers it over the same
// connections, with the same limits, as it answers clients.
//
// It belongs to one goroutine at a time and may be used again after Close.
type Subrequest struct {
	// Exchange is the request that Begin started, for its owner to fill, and the
	// response that Ask brought.
	Exchange

	conn Conn
	gone func() bool
	// until is when a body has to be there; 0 is never.
	until int64
}

// Start starts a request without a body. target is the path, and query is ""
// or begins with "?". timeout bounds the time to the response head, and the pauses in
// its body, which has twice that time in all; 0 is no bound. Everything that is sent beside the Host is for the owner
// to add to Request.
func (e *Subrequest) Start(method, target, query string, timeout time.Duration) {
	e.conn = Conn{Remote: local, Local: local, Peer: local.Addr().String(), Scheme: "http"}
	e.Exchange.Reset(&e.conn, subrequestFront{e})
	e.gone, e.until = nil, 0
	e.Place, e.ClientIP, e.Times.Start = &nowhere, local.Addr(), Now()
	e.Limits = Limits{RequestTimeout: timeout, ConnectTimeout: timeout, BodyIdle: timeout}
	if timeout > 0 {
		e.until = e.Times.Start + 2*int64(timeout)
	}
	rq := &e.Request
	rq.Method, rq.Scheme, rq.Path, rq.Target, rq.Query, rq.Proto = method, "http", target, target, query, HTTP11
}

var (
	local   = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), 0)
	nowhere = Place{}
)

// WhileWanted makes a wait for the response end soon after gone says true, as it
// does when a client leaves.
func (e *Subrequest) WhileWanted(gone func() bool) { e.gone = gone }

// Send sends the request and returns when the head of the response is there. An
// Answer says that there is none, and why. Close must follow in both cases.
func (e *Subrequest) Send(source Source) *Answer { return source.Respond(&e.Exchange) }

// ErrTooLong says that a body has more bytes than its reader wanted.
var ErrTooLong = errors.New("the body is longer than is read of it")

// errTooSlow says that a body did not come in the time that its request had.
var errTooSlow = errors.New("the body did not come in time")

// AppendBody appends the body of the response to b. It reads no more than limit
// bytes; the error is ErrTooLong for a longer one, of which that many came.
func (e *Subrequest) AppendBody(b []byte, limit int) ([]byte, error) {
	rs := &e.Response
	if rs.Body == nil {
		if len(rs.Text) > limit {
			return append(b, rs.Text[:limit]...), ErrTooLong
		}
		return append(b, rs.Text...), nil
	}
	start := len(b)
	for {
		if len(b)-start > limit {
			return b[:start+limit], ErrTooLong
		}
		if cap(b) == len(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := rs.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == nil && e.until != 0 && Now() > e.until {
			err = &Error{Reason: UpstreamTimeout, Err: errTooSlow}
		}
		switch {
		case err == io.EOF && len(b)-start > limit:
			return b[:start+limit], ErrTooLong
		case err == io.EOF:
			return b, nil
		case err != nil:
			return b, err
		}
	}
}

// Close gives the connection of the response back. Its head is gone then.
func (e *Subrequest) Close() {
	rs := &e.Response
	if rs.Tunnel != nil {
		rs.Tunnel.Close()
	}
	if rs.Body != nil {
		rs.Body.Close()
	}
	rs.Reset()
}

// subrequestFront is the front of a request that no client sent.
type subrequestFront struct{ e *Subrequest }

func (f subrequestFront) Send(*Exchange) error                      { return nil }
func (f subrequestFront) Inform(*Exchange, int, *header.List) error { return nil }
func (f subrequestFront) Abort(*Exchange)                           {}
func (f subrequestFront) Gone() bool                                { return f.e.gone != nil && f.e.gone() }
