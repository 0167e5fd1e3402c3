package upstream

import (
	"errors"
	"io"
	"time"

	"headgate/internal/netconn"
)

// tunnel is the server's side of an upgraded connection. It lives long, and has no more
// of the conn that it was than it needs.
type tunnel struct {
	nc     *netconn.Conn
	buf    netconn.Buffer
	upload *upload // the request body on its way, or nil
	server *Server // that the exchange was counted on
	ended  bool    // Close was called for the exchange
}

// Read reads what the server sends, beginning with what came along with its
// 101.
func (t *tunnel) Read(p []byte) (int, error) {
	if t.buf.Len() == 0 {
		if err := t.nc.Fill(&t.buf); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.buf.Bytes())
	t.buf.Use(n)
	t.buf.Release()
	return n, nil
}

// Write sends to the server at once.
func (t *tunnel) Write(p []byte) (int, error) {
	if _, err := t.nc.Write(p); err != nil {
		return 0, err
	}
	return len(p), t.nc.Flush()
}

// CloseWrite signals the end of the data to the server.
func (t *tunnel) CloseWrite() error { return t.nc.CloseWrite() }

// SetIdle sets how long a read or a write may wait.
func (t *tunnel) SetIdle(d time.Duration) {
	t.nc.SetReadWait(d)
	t.nc.SetWriteWait(d)
}

// Close ends both directions.
func (t *tunnel) Close() error { return t.nc.CloseIdle() }

// Abort ends both directions with a reset.
func (t *tunnel) Abort() error { return t.nc.Abort() }

// AwaitDelivery waits until the server has received what was sent to it.
func (t *tunnel) AwaitDelivery() { t.nc.AwaitDelivery() }

// Conn returns the connection and what was read from it, for a tunnel between
// two plain connections.
func (t *tunnel) Conn() (*netconn.Conn, *netconn.Buffer) { return t.nc, &t.buf }

// parting is a tunnel as the body of the response that started it, which ends with
// it.
type parting tunnel

// Read reports that there is no body.
func (p *parting) Read([]byte) (int, error) { return 0, io.EOF }

// Ready reports that nothing has to be waited for.
func (p *parting) Ready() bool { return true }

// Close ends the exchange that the tunnel came of.
func (p *parting) Close() error {
	if p.ended {
		return nil
	}
	p.ended = true
	defer p.server.released()
	p.nc.Close()
	if p.upload != nil {
		p.upload.abort()
		p.upload = nil
	}
	p.buf.Free()
	p.buf.Drop()
	return nil
}

var errInvalid = errors.New("the server's answer is not valid HTTP")
