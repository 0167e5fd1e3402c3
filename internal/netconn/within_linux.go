package netconn

import (
	"io"
	"syscall"
)

// within is a wait of the socket below TLS in which TLS reads. As without TLS the one
// wait is never left, so no edge is forgotten, and a read that would find nothing need
// not be made: a request costs one read of the socket and not two.
type within struct {
	fd    uintptr
	on    bool // TLS reads from the wait
	again bool // something was read in the wait before
	empty bool // the last read did not fill its buffer: the poller reports more
}

// errEmpty is returned to TLS in such a wait when there is nothing to read. It is
// temporary: TLS keeps its state and can be called again.
var errEmpty error = emptyError{}

type emptyError struct{}

func (emptyError) Error() string   { return "there is nothing to read yet" }
func (emptyError) Timeout() bool   { return false }
func (emptyError) Temporary() bool { return true }

// servesWithin reports whether Serve can have TLS read within one wait of the socket.
func (c *Conn) servesWithin() bool {
	if c.lazy == nil || c.lazy.direct == nil || c.lazy.leave != nil {
		return false
	}
	if c.readFn == nil {
		c.readFn = c.onReadable
	}
	return true
}

// onServeWithin is onServe under TLS.
func (c *Conn) onServeWithin(fd uintptr) bool {
	r, l := &c.rd, c.lazy
	l.within = within{fd: fd, again: r.again}
	for {
		if r.err = c.flushLazily(); r.err != nil {
			return true
		}
		n, err := c.readWithin()
		switch {
		case n == 0 && err == errEmpty:
			r.buf.Release()
			c.arm()
			return false
		case n == 0:
			_, r.err = eof(0, err)
			return true
		}
		r.buf.w += n
		c.over = err != nil && err != errEmpty
		c.until, r.struck = 0, false // what comes now is a new wait
		if !r.step() {
			r.err = nil
			return true
		}
		r.buf.Release()
		if !r.again { // the edge that announced these bytes may have announced the end too: see onServe
			r.again, l.within.again, l.within.empty = true, true, false
		}
	}
}

// readWithin has TLS read into the buffer.
func (c *Conn) readWithin() (int, error) {
	l := c.lazy
	p := c.rd.buf.space()
	if len(p) == 0 {
		return 0, io.ErrShortBuffer // step left a full buffer behind
	}
	l.within.on = true
	n, err := c.nc.Read(p)
	l.within.on = false
	return n, err
}

// readWithin sends what is held and reads what is there.
func (l *Lazy) readWithin(p []byte) (int, error) {
	if err := l.sendWithin(); err != nil {
		return 0, err
	}
	w := &l.within
	if w.empty {
		return 0, errEmpty
	}
	n, errno := sysRead(w.fd, p)
	switch {
	case errno == syscall.EAGAIN:
		w.empty = true
		return 0, errEmpty
	case errno != 0 || n == 0:
		return 0, l.conn.readError(errno)
	}
	w.empty = w.again && n < len(p)
	return n, nil
}

// sendWithin sends what is held.
func (l *Lazy) sendWithin() error {
	if len(l.held) == 0 {
		return nil
	}
	n, errno := sysWrite(l.within.fd, l.held)
	var err error
	switch {
	case errno != 0 && errno != syscall.EAGAIN:
		err = l.conn.writeError(errno)
	case max(n, 0) < len(l.held):
		_, err = l.conn.writeNow(l.held[max(n, 0):])
	}
	giveOut(l.held)
	l.held = nil
	return err
}
