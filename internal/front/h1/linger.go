package h1

import (
	"errors"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
)

// How long and how much is read from a client that is still sending when the
// connection ends. To close a socket with unread bytes makes the kernel reset
// the connection, and the client may lose the answer (RFC 9112, section 9.6).
const (
	lingerTime  = 5 * time.Second
	lingerPause = 2 * time.Second
	lingerBytes = 1 << 20
)

// part ends a connection whose client has announced the end, and has sent all of its last
// request: no unread data can cause a reset. TLS sends close_notify, so that the response
// cannot be truncated unnoticed.
func (c *Conn) part() {
	c.finishAnswer() // the connection ends in any case
}

// finishAnswer sends the rest of the last answer, and ends our side. A client that does not
// read it is reset: an orderly end would look like a complete answer. It reports whether it
// was sent.
func (c *Conn) finishAnswer() bool {
	if c.nc.Finish() != nil {
		c.reset()
		return false
	}
	return true
}

// linger ends the connection in an orderly way: the last answer is sent, our
// side is closed, and what the client still sends is read and dropped for a
// while.
func (c *Conn) linger() {
	if !c.finishAnswer() {
		return
	}
	c.buf.Drop()
	c.nc.SetReadWait(lingerPause)
	until := exchange.Now() + int64(lingerTime)
	for read := 0; read < lingerBytes && exchange.Now() < until; {
		// a kick may be left over from a body that was abandoned
		if err := c.nc.Fill(&c.buf); err != nil && !errors.Is(err, netconn.ErrKicked) {
			return
		}
		read += c.buf.Len()
		c.buf.Drop()
	}
}

// reset makes the close of the connection a reset, so that the client does not
// mistake an incomplete response for a complete one. The close itself has to
// wait until the connection's wait is left.
func (c *Conn) reset() {
	c.broken = true
	c.nc.ResetOnClose()
}
