package h2

import (
	"errors"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/tunnel"
	"headgate/internal/netconn"
	"headgate/internal/proto/http2"
)

// sendTunnel sends the head and then carries bytes both ways, in DATA frames (RFC
// 8441, section 5).
func (s *stream) sendTunnel(ex *exchange.Exchange, head []byte) error {
	if err := s.push(head, nil, false); err != nil {
		return err
	}
	s.conn.mu.Flush()
	client := &clientStream{s: s}
	tunnel.Join(ex, client, ex.Response.Tunnel, ex.Limits.TunnelIdle)
	client.giveBack()
	return nil
}

// clientStream is the client's side of a tunnel.
type clientStream struct {
	s   *stream
	has *http2.Chunk // what Next has returned
}

// Next waits for what the client sends and returns it. While it waits it holds no
// memory.
func (t *clientStream) Next() ([]byte, error) {
	b := &t.s.body
	t.giveBack()
	b.begun = true
	k, err := b.Next(&t.s.conn.mu.Writer, (*receiver)(b))
	if err != nil {
		return nil, ended(err)
	}
	t.has = k
	return k.Rest(), nil
}

// giveBack releases what Next has returned.
func (t *clientStream) giveBack() {
	if t.has != nil {
		t.has.Release()
		t.has = nil
	}
}

// Read reads what the client sends.
func (t *clientStream) Read(p []byte) (int, error) {
	n, err := t.s.body.Read(p)
	return n, ended(err)
}

// ended converts an error of the body for the tunnel.
func ended(err error) error {
	var e *exchange.Error
	if errors.As(err, &e) && e.Reason == exchange.RequestTimeout {
		return netconn.ErrTimeout
	}
	return err
}

// Write sends to the client.
func (t *clientStream) Write(p []byte) (int, error) {
	if err := t.s.push(nil, p, false); err != nil {
		return 0, err
	}
	t.s.conn.mu.Flush()
	return len(p), nil
}

// CloseWrite signals the end of the data to the client.
func (t *clientStream) CloseWrite() error {
	err := t.s.push(nil, nil, true)
	t.s.conn.mu.Flush()
	return err
}

// SetIdle sets how long Next, Read and Write may wait.
func (t *clientStream) SetIdle(d time.Duration) { t.s.tunnelIdle = d }

// Abort resets the stream (RFC 8441, section 5).
func (t *clientStream) Abort() error { return t.Close() }

// Close resets the stream: only its server ends a tunnel in order.
func (t *clientStream) Close() error {
	c := t.s.conn
	c.mu.Lock()
	if t.s.gone == nil {
		c.resetLocked(t.s, http2.Cancel, errTunnel)
	}
	c.mu.Unlock()
	c.mu.Flush()
	return nil
}

var errTunnel = errors.New("the tunnel has ended")
