package h1

import (
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/tunnel"
	"headgate/internal/netconn"
	"headgate/internal/proto/http1"
)

// sendTunnel sends the 101 and readies a tunnel that carries bytes both ways until both
// sides have closed or nothing moved for the idle time (RFC 9110, section 7.8).
func (c *Conn) sendTunnel(ex *exchange.Exchange) error {
	rs := &ex.Response
	c.work.keepAlive = false
	b := http1.AppendStatusLine(c.nc.Pending(), rs.Status, "")
	b = http1.AppendFields(b, &rs.Header)
	b = append(b, "Connection: upgrade\r\n\r\n"...)
	c.nc.SetPending(b)
	rs.HeadSent = true
	if err := c.nc.Flush(); err != nil {
		return err
	}
	c.yield() // a tunnel holds little
	return nil
}

// carry carries the tunnel of the request at hand, which calls over at its end. It
// returns true once nothing moves, or at that end.
func (c *Conn) carry(over func()) bool {
	ex := &c.work.ex
	tunnel.Start(ex, &clientStream{c: c}, ex.Response.Tunnel, ex.Limits.TunnelIdle, over)
	return true
}

// clientStream is the client's side of a tunnel.
type clientStream struct{ c *Conn }

func (s *clientStream) Read(p []byte) (int, error) {
	buf := &s.c.buf
	if buf.Len() == 0 {
		if err := s.c.nc.Fill(buf); err != nil {
			return 0, err
		}
	}
	n := copy(p, buf.Bytes())
	buf.Use(n)
	buf.Release()
	return n, nil
}

func (s *clientStream) Write(p []byte) (int, error) {
	if _, err := s.c.nc.Write(p); err != nil {
		return 0, err
	}
	return len(p), s.c.nc.Flush()
}

func (s *clientStream) CloseWrite() error { return s.c.nc.CloseWrite() }

func (s *clientStream) Close() error { return s.c.nc.CloseIdle() }

func (s *clientStream) Abort() error { return s.c.nc.Abort() }

// AwaitDelivery waits until the client has received what was sent to it.
func (s *clientStream) AwaitDelivery() { s.c.nc.AwaitDelivery() }

func (s *clientStream) SetIdle(d time.Duration) {
	s.c.nc.SetReadWait(d)
	s.c.nc.SetWriteWait(d)
}

func (s *clientStream) Conn() (*netconn.Conn, *netconn.Buffer) { return s.c.nc, &s.c.buf }
