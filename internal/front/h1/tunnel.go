package h1

import (
	"errors"
	"io"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/http1"
	"headgate/internal/netconn"
)

// connected is a stream over a plain connection. What was read from it and not
// used stands in the buffer.
type connected interface {
	Conn() (*netconn.Conn, *netconn.Buffer)
}

// sendTunnel sends the 101 and then carries bytes both ways until both sides
// have closed or nothing moved for the idle time (RFC 9110, section 7.8).
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
	client := &clientStream{c: c}
	join(ex, client, rs.Tunnel, ex.Limits.TunnelIdle)
	return nil
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

func (s *clientStream) Close() error { return s.c.nc.Close() }

func (s *clientStream) SetIdle(d time.Duration) {
	s.c.nc.SetReadWait(d)
	s.c.nc.SetWriteWait(d)
}

func (s *clientStream) Conn() (*netconn.Conn, *netconn.Buffer) { return s.c.nc, &s.c.buf }

// join carries bytes between client and server. It returns when both directions
// have ended. Silence in one direction is no reason to end while the other is
// busy.
func join(ex *exchange.Exchange, client, server exchange.Stream, idle time.Duration) {
	a := &activity{idle: idle}
	a.touch()
	client.SetIdle(idle)
	server.SetIdle(idle)
	up := make(chan int64, 1)
	go func() {
		up <- a.carry(server, client)
	}()
	ex.Sent = a.carry(client, server)
	ex.Received = <-up
}

// carry copies from one side to the other until the first ends, and passes the
// end on. An error ends both sides, so that the other direction stops too.
func (a *activity) carry(to, from exchange.Stream) int64 {
	n, err := a.copy(to, from)
	if err != nil || to.CloseWrite() != nil {
		to.Close()
		from.Close()
	}
	return n
}

// copy copies until from ends. A pause is only an error when nothing moved in
// the other direction either.
func (a *activity) copy(to, from exchange.Stream) (total int64, err error) {
	src, ok := from.(connected)
	dst, ok2 := to.(connected)
	for {
		var n int64
		if ok && ok2 {
			n, err = a.move(dst, src)
		} else {
			n, err = a.piece(to, from)
		}
		total += n
		if n > 0 {
			a.touch()
		}
		switch {
		case err == io.EOF:
			return total, nil
		case err != nil && !a.goesOn(err):
			return total, err
		}
	}
}

// piece copies what one read gives.
func (a *activity) piece(to, from exchange.Stream) (int64, error) {
	var p [4 << 10]byte
	n, err := from.Read(p[:])
	if n > 0 {
		if _, werr := to.Write(p[:n]); werr != nil {
			return int64(n), &netconn.WriteError{Err: werr}
		}
	}
	return int64(n), err
}

// move carries what is there from one plain connection to the other. It waits
// without memory: a buffer is held only while there is something in it. A full
// one tells that much is coming, which then goes through splice.
func (a *activity) move(to, from connected) (int64, error) {
	src, buf := from.Conn()
	dst, _ := to.Conn()
	if buf.Len() == 0 {
		if err := src.Fill(buf); err != nil {
			return 0, err
		}
	}
	n, much := int64(buf.Len()), buf.Full()
	_, err := dst.Write(buf.Bytes())
	if err == nil {
		err = dst.Flush()
	}
	buf.Drop()
	if err != nil {
		return n, &netconn.WriteError{Err: err}
	}
	if !much {
		return n, nil
	}
	m, err := netconn.SpliceReady(dst, src)
	return n + m, err
}

// goesOn reports whether a direction that paused for the idle time goes on.
func (a *activity) goesOn(err error) bool {
	var written *netconn.WriteError
	switch {
	case errors.As(err, &written):
		return false
	case errors.Is(err, netconn.ErrKicked):
		return true // told to drain: a tunnel ends by itself or with the drain time
	}
	return errors.Is(err, netconn.ErrTimeout) && a.quiet() < a.idle
}
