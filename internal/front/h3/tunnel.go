package h3

import (
	"errors"
	"io"
	"os"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/tunnel"
	"headgate/internal/netconn"
)

// sendTunnel sends the head and then carries bytes both ways, in DATA frames (RFC
// 9220, section 3; RFC 9114, section 4.4).
func (s *stream) sendTunnel(ex *exchange.Exchange, head []byte) error {
	if err := s.write(head); err != nil {
		return err
	}
	s.quic.SetReadDeadline(time.Time{})
	tunnel.Join(ex, &clientStream{s: s}, ex.Response.Tunnel, ex.Limits.TunnelIdle)
	return nil
}

// clientStream is the client's side of a tunnel.
type clientStream struct {
	s      *stream
	closed atomic.Bool // our direction has ended in order
}

// Read reads what the client sends.
func (t *clientStream) Read(p []byte) (int, error) {
	b := &t.s.body
	if b.ended {
		return 0, io.EOF
	}
	if t.s.tunnelIdle > 0 {
		t.s.quic.SetReadDeadline(time.Now().Add(t.s.tunnelIdle))
	}
	for b.left == 0 {
		switch err := b.advance(); {
		case err != nil:
			return 0, t.fault(err)
		case b.ended:
			return 0, io.EOF
		}
	}
	n, err := b.data(p)
	if err != nil {
		err = t.fault(err)
	}
	return n, err
}

// fault converts an error for the tunnel. A violation of the connection's rules
// ends the connection.
func (t *clientStream) fault(err error) error {
	var rule *connError
	switch {
	case errors.As(err, &rule):
		t.s.conn.fail(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return netconn.ErrTimeout
	}
	return err
}

// Write sends to the client, in one frame.
func (t *clientStream) Write(p []byte) (int, error) {
	short := shortBuffers.Get().(*[shortSize]byte)
	defer shortBuffers.Put(short)
	for done := 0; done < len(p); {
		n := copy(short[dataRoom:], p[done:])
		if err := t.s.write(piece(short[:0], n)); err != nil {
			return done, err
		}
		done += n
	}
	return len(p), nil
}

// CloseWrite signals the end of the data to the client.
func (t *clientStream) CloseWrite() error {
	t.closed.Store(true)
	t.s.whole = true
	return t.s.quic.Close()
}

// SetIdle sets how long Read and Write may wait.
func (t *clientStream) SetIdle(d time.Duration) { t.s.tunnelIdle = d }

// Close resets both directions: only its server ends a tunnel in order.
func (t *clientStream) Close() error { return t.Abort() }

// Abort resets both directions (RFC 9220, section 3), except one that has ended: a reset
// would discard what the client has not received yet.
func (t *clientStream) Abort() error {
	t.s.quic.CancelRead(requestCancelled.stream())
	if !t.closed.Load() {
		t.s.quic.CancelWrite(requestCancelled.stream())
	}
	return nil
}
