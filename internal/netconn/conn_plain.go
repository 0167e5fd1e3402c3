package netconn

import (
	"errors"
	"os"
	"time"
)

// readPlain flushes if flush is set, then reads with a deadline.
func (c *Conn) readPlain() (int, error) {
	r := &c.rd
	if r.quiet {
		if err := c.flushLazily(); err != nil {
			return 0, err
		}
		if c.lazy != nil {
			c.lazy.quiet = true
		}
	}
	p := r.p
	if r.buf != nil {
		p = r.buf.space()
	}
	c.until = 0
	c.arm()
	for {
		n, err := c.nc.Read(p)
		if n == 0 && errors.Is(err, os.ErrDeadlineExceeded) {
			err = c.expired()
			if err == nil && c.parkable() && c.isQuiet() {
				err = ErrQuiet
			}
			if err == nil && r.buf != nil && c.lazy != nil && len(c.lazy.held) == 0 && r.buf.unused() {
				r.buf.Release()
				err = c.rest()
				p = r.buf.space()
			}
			if err == nil {
				continue
			}
		}
		if r.buf != nil {
			r.buf.w += n
			r.buf.Release()
		}
		if n > 0 {
			c.over = err != nil
			return n, nil
		}
		return eof(n, err)
	}
}

// rest goes on with the wait of a read that has found nothing for a while, under
// TLS, with no memory to read to and outside of TLS, where the stack is flat: TLS
// has used up all records that came whole, or it would not have waited. It returns
// nil when the connection may be readable.
func (c *Conn) rest() error {
	for {
		err := c.lazy.readable()
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // the read returns the error, if there is one
		}
		if err = c.expired(); err != nil {
			return err
		}
		if c.parkable() && c.isQuiet() {
			return ErrQuiet
		}
	}
}

// writePlain writes with one deadline for each piece, so that a slow reader
// that makes progress is not cut off.
func (c *Conn) writePlain(p []byte) (int, error) {
	sent := 0
	for sent < len(p) {
		if c.lazy != nil {
			c.lazy.conn.writeWait = c.writeWait
		} else if c.writeWait > 0 {
			c.nc.SetWriteDeadline(time.Now().Add(c.writeWait))
		}
		n, err := c.nc.Write(p[sent:min(len(p), sent+MaxPending)])
		sent += n
		if err != nil {
			return sent, err
		}
	}
	return sent, nil
}
