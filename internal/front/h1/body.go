package h1

import (
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/wire"
)

// continueLine is the interim response that lets a client send its body.
const continueLine = "HTTP/1.1 100 Continue\r\n\r\n"

// requestBody is the body of a request. One goroutine reads it, which need not
// be the one that serves the connection; Close may be called by another.
type requestBody struct {
	stream *wire.Body // nil until a request has a body
	conn   *Conn
	limits http1.Limits
	wait   bool // the client waits for 100 (Continue)
	atHand bool // the body came whole, along with its head

	begun  atomic.Bool // someone has read
	done   atomic.Bool // the end was read
	closed atomic.Bool
}

// reset readies the body for the request at hand.
func (b *requestBody) reset(c *Conn, w *work) {
	b.conn = c
	b.wait = w.head.ExpectContinue
	b.begun.Store(false)
	b.closed.Store(false)
	b.done.Store(w.head.Framing == http1.NoBody)
	if w.head.Framing == http1.NoBody {
		b.atHand = true
		return
	}
	if b.stream == nil {
		b.stream = &wire.Body{}
	}
	b.limits = http1.Limits{HeadSize: c.port.HeadSize, Fields: c.port.HeadFields}
	b.stream.Reset(c.nc, &c.buf, w.head.Framing, w.head.ContentLength, &b.limits, &w.ex.Request.Trailer)
	_, b.atHand = b.stream.Whole()
}

// Read reads from the body. Before the first byte it sends 100 Continue to a client that
// waits for it.
func (b *requestBody) Read(p []byte) (int, error) {
	if b.closed.Load() {
		return 0, &exchange.Error{Reason: exchange.ClientClosed, Err: errGivenUp}
	}
	if !b.begun.Swap(true) {
		b.conn.nc.SetReadWait(b.conn.port.Limits.BodyIdle)
		if b.wait && !b.atHand {
			if err := b.conn.letGo(); err != nil {
				return 0, &exchange.Error{Reason: exchange.ClientClosed, Err: err}
			}
		}
	}
	for {
		n, err := b.stream.Read(p)
		switch {
		case err == io.EOF:
			b.done.Store(true)
			return n, err
		case errors.Is(err, netconn.ErrKicked) && !b.closed.Load():
			b.stream.Resume() // interrupted by a drain: the body still has its time
			continue
		case err != nil:
			return n, clientError(err)
		}
		return n, nil
	}
}

// readable reports whether what is left of the body, if anything, can be
// skipped without waiting for the client. Another goroutine may be reading.
func (b *requestBody) readable() bool {
	return b.done.Load() || !b.begun.Load() && !b.wait && b.atHand
}

// continueLook is how long to wait for the first byte of a body whose client may send it
// without 100 Continue, where that cannot be detected without waiting.
const continueLook = time.Millisecond

// Ready reports whether Read would not wait.
func (b *requestBody) Ready() bool {
	if b.wait && !b.begun.Load() {
		return b.stream.ReadyWithin(continueLook)
	}
	return b.stream.Ready()
}

// Whole returns the body if all of it is at hand.
func (b *requestBody) Whole() ([]byte, bool) {
	if b.begun.Load() {
		return nil, false
	}
	return b.stream.Whole()
}

// Close closes the body. A Read that waits returns.
func (b *requestBody) Close() error {
	if !b.closed.Swap(true) && !b.done.Load() {
		b.conn.nc.Kick()
	}
	return nil
}

// finish skips a body that has arrived and reports whether the connection is
// at the start of the next request.
func (b *requestBody) finish() bool {
	if b.done.Load() {
		return true
	}
	if b.stream.Err() != nil || b.closed.Load() && b.begun.Load() {
		return false
	}
	_, whole := b.stream.Whole()
	if whole {
		b.stream.Consume()
	}
	return whole
}

var errGivenUp = errors.New("the body is no longer needed")

// clientError assigns a reason to an error of the client's body.
func clientError(err error) error {
	var rule http1.Error
	switch {
	case errors.As(err, &rule) && rule.Status() == 431:
		return &exchange.Error{Reason: exchange.HeadTooLarge, Err: err}
	case errors.As(err, &rule):
		return &exchange.Error{Reason: exchange.BadRequest, Err: err}
	case errors.Is(err, netconn.ErrTimeout):
		return &exchange.Error{Reason: exchange.RequestTimeout, Err: errors.New("the request body paused for too long")}
	}
	return &exchange.Error{Reason: exchange.ClientClosed, Err: fmt.Errorf("read request body: %w", err)}
}
