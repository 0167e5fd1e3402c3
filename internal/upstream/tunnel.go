package upstream

import (
	"errors"
	"time"

	"headgate/internal/netconn"
)

// tunnel is the server's side of an upgraded connection.
type tunnel struct{ c *conn }

// Read reads what the server sends, beginning with what came along with its
// 101.
func (t *tunnel) Read(p []byte) (int, error) {
	if t.c.buf.Len() == 0 {
		if err := t.c.nc.Fill(&t.c.buf); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.c.buf.Bytes())
	t.c.buf.Use(n)
	t.c.buf.Release()
	return n, nil
}

// Write sends to the server at once.
func (t *tunnel) Write(p []byte) (int, error) {
	if _, err := t.c.nc.Write(p); err != nil {
		return 0, err
	}
	return len(p), t.c.nc.Flush()
}

// CloseWrite tells the server that the client sends no more.
func (t *tunnel) CloseWrite() error { return t.c.nc.CloseWrite() }

// SetIdle sets how long a read or a write may wait.
func (t *tunnel) SetIdle(d time.Duration) {
	t.c.nc.SetReadWait(d)
	t.c.nc.SetWriteWait(d)
}

// Close ends both directions.
func (t *tunnel) Close() error { return t.c.nc.Close() }

// Conn returns the connection and what was read from it, for a tunnel between
// two plain connections.
func (t *tunnel) Conn() (*netconn.Conn, *netconn.Buffer) { return t.c.nc, &t.c.buf }

var errInvalid = errors.New("the server's answer is not valid HTTP")
