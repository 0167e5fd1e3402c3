package netconn

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// flow is what Flow and Carry need to know of a connection that they read from.
type flow struct {
	// constant
	src     *Conn
	fn      func(uintptr) bool
	readFn  func(uintptr)
	carrier *carrier

	// owned by the reader, and by the carrier while it carries
	onto    *Conn
	moved   func(n int)
	watched bool   // a carrier knows the connection
	rest    []byte // what a carrier could not send at once,
	failed  error  // and why it cannot go on; Flow tells

	// owned by the carrier
	ready  uint32 // what the system has told of
	got    []byte // room to read into, and then what was read
	leaves bool   // the reader has to go on

	// guarded by the carrier's mu
	place   int32
	until   int64
	resume  func()
	carried bool
	running bool // its bytes are being carried
	told    bool // and then its reader goes on
}

// flowTo returns what is known of a connection that is read from.
func (c *Conn) flowTo(dst *Conn, moved func(n int)) *flow {
	f := c.flow
	if f == nil {
		f = &flow{src: c, carrier: nextCarrier(dst), place: noPlace}
		f.fn, f.readFn = c.onFlow, f.onRead
		c.flow = f
	}
	f.onto, f.moved = dst, moved
	return f
}

// Flow carries what comes on src to dst for as long as each piece can be sent at once.
// moved hears of each. b holds bytes only meanwhile.
//
// It returns ErrQuiet when nothing is there any more, or, if it is to wait, when nothing
// has come for some seconds; and nil when somebody has to wait for dst, which the rest of
// a piece in b is for, or when b was full and more is worth another way. An error of dst
// is a *WriteError. Nothing may be collected in dst, and both must be connections for
// which CanFlow holds.
func Flow(dst, src *Conn, b *Buffer, wait bool, moved func(n int)) error {
	f := src.flowTo(dst, moved)
	if len(f.rest) > 0 {
		b.adopt(f.rest)
		f.rest = nil
		return nil
	}
	if err := f.failed; err != nil {
		f.failed = nil
		return err
	}
	src.rd = readOp{buf: b, leaves: parks, once: !wait}
	err := src.rawRead(f.fn)
	if err == nil {
		err = src.rd.err
	}
	src.rd = readOp{}
	return err
}

// unwatch lets no carrier hear of a connection on which much comes another way.
func (c *Conn) unwatch() {
	if f := c.flow; f != nil && f.watched {
		f.watched = false
		_ = c.raw.Control(func(fd uintptr) { f.carrier.unwatch(f, int(fd)) }) // fails once it is closed
	}
}

// read reads what there is into p, which is the flow's until it was sent, and returns how
// much that is.
func (f *flow) read(p []byte) int {
	f.got = p
	if err := f.src.raw.Control(f.readFn); err != nil {
		f.got, f.leaves = nil, true // Flow will say the same
	}
	return len(f.got)
}

// onRead is one read. If the system has told of more than bytes, it is read on up to
// that, so that an end goes with the last bytes.
func (f *flow) onRead(fd uintptr) {
	n := 0
	for n < len(f.got) {
		m, errno := sysRead(fd, f.got[n:])
		if errno == syscall.EAGAIN {
			break
		}
		if errno != 0 || m == 0 {
			f.failed, f.leaves = f.src.readError(errno), true
			break
		}
		n += m
		if f.ready == unix.EPOLLIN {
			break
		}
	}
	f.leaves = f.leaves || n == len(f.got)
	f.got = f.got[:n]
}

// send sends what was read.
func (f *flow) send() {
	p := f.got
	f.got = nil
	if len(p) == 0 {
		return
	}
	n, err := f.onto.writeAtOnce(p, f.failed == io.EOF)
	if n > 0 {
		f.moved(n)
	}
	switch {
	case err != nil:
		f.failed, f.leaves = &WriteError{err}, true
	case n < len(p):
		f.rest, f.leaves = append([]byte(nil), p[n:]...), true
	}
}

// CanFlow reports whether Flow can carry between two connections.
func CanFlow(dst, src *Conn) bool { return dst.raw != nil && src.raw != nil }

// onFlow is the loop of Flow, inside one wait. It waits only when it has found the
// socket empty: an edge may have told of bytes and of the end behind them.
func (c *Conn) onFlow(fd uintptr) bool {
	r, f := &c.rd, c.flow
	for {
		p := r.buf.space()
		n, errno := sysRead(fd, p)
		switch {
		case errno == syscall.EAGAIN:
			r.buf.Release()
			if r.once {
				r.err = ErrQuiet
				return true
			}
			c.arm()
			return false
		case errno != 0 || n == 0:
			r.err = c.readError(errno)
			return true
		}
		r.buf.w += n
		c.until, r.struck = 0, false // what comes now is a new wait
		sent, err := f.onto.writeAtOnce(r.buf.Bytes(), false)
		r.buf.Use(sent)
		if sent > 0 {
			f.moved(sent)
		}
		if err != nil {
			r.err = &WriteError{err}
			return true
		}
		if r.buf.Len() > 0 || n == len(p) {
			r.err = nil
			return true
		}
		r.buf.Release()
		if r.once {
			r.err = ErrQuiet // whoever waits now is told of what is there, and of the end
			return true
		}
	}
}

// writeAtOnce writes what there is room for. If the end of our side comes at once behind
// p, it waits for that.
func (c *Conn) writeAtOnce(p []byte, last bool) (int, error) {
	if c.writeOnce == nil {
		c.writeOnce = c.onWriteOnce
	}
	c.wr = writeOp{p: p, last: last}
	err := c.raw.Control(c.writeOnce)
	if err == nil {
		err = c.wr.err
	}
	n := len(p) - len(c.wr.p)
	c.wr = writeOp{}
	return n, err
}

func (c *Conn) onWriteOnce(fd uintptr) {
	w := &c.wr
	n, errno := 0, syscall.Errno(0)
	if w.last {
		n, errno = sysWriteMore(fd, w.p)
	} else {
		n, errno = sysWrite(fd, w.p)
	}
	switch errno {
	case 0:
		w.p = w.p[n:]
	case syscall.EAGAIN:
	default:
		w.err = c.writeError(errno)
	}
}
