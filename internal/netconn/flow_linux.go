package netconn

import (
	"encoding/binary"
	"syscall"

	"golang.org/x/sys/unix"
)

// hintAfter is how often something has to come on a connection before the kernel is
// asked to tell with each read whether more is there: one that carries a single
// exchange is not worth the call.
const hintAfter = 2

// flow is what Flow needs to know of a connection that it reads from. One that is
// parked has none.
type flow struct {
	onto  *Conn
	moved func(n int)
	fn    func(uintptr) bool
}

// hints is what is known of the end of what came.
type hints struct {
	reads uint8 // hintAfter is reached once
	told  bool  // the kernel tells with each read whether more is there
}

// Flow carries what comes on src to dst for as long as each piece can be sent at once,
// all in one wait of src: a piece is one read and one write. moved hears of each. b
// holds bytes only meanwhile.
//
// It returns ErrQuiet when nothing has come for some seconds, and nil when somebody
// has to wait for dst, which the rest of a piece in b is for, or when b was full and
// more is worth another way. An error of dst is a *WriteError. Nothing may be
// collected in dst, and both must be connections for which CanFlow holds.
func Flow(dst, src *Conn, b *Buffer, moved func(n int)) error {
	if src.flow == nil {
		src.flow = &flow{}
		src.flow.fn = src.onFlow
	}
	src.flow.onto, src.flow.moved = dst, moved
	src.rd = readOp{buf: b, leaves: parks}
	err := src.rawRead(src.flow.fn)
	if err == nil {
		err = src.rd.err
	}
	src.rd = readOp{}
	return err
}

// CanFlow reports whether Flow can carry between two connections.
func CanFlow(dst, src *Conn) bool { return dst.raw != nil && src.raw != nil }

// onFlow is the loop of Flow, inside one wait. It waits only when it knows that the
// socket was empty: an edge may have told of bytes and of the end behind them.
func (c *Conn) onFlow(fd uintptr) bool {
	r, f := &c.rd, c.flow
	for {
		p := r.buf.space()
		n, more, errno := c.hints.read(fd, p)
		switch {
		case errno == syscall.EAGAIN:
			r.buf.Release()
			c.arm()
			return false
		case errno != 0 || n == 0:
			c.readFailed(n, errno)
			return true
		}
		r.buf.w += n
		c.until, r.struck = 0, false // what comes now is a new wait
		sent, err := f.onto.writeAtOnce(r.buf.Bytes())
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
		if !more {
			c.arm()
			return false
		}
	}
}

// read makes one read. more is false if it is known that there is nothing behind what
// was read, and no end.
func (h *hints) read(fd uintptr, p []byte) (n int, more bool, errno syscall.Errno) {
	if h.told {
		return sysReadHint(fd, p)
	}
	n, errno = sysRead(fd, p)
	if errno == 0 && h.reads <= hintAfter {
		if h.reads++; h.reads > hintAfter {
			h.told = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_INQ, 1) == nil
		}
	}
	return n, true, errno
}

// writeAtOnce writes what there is room for.
func (c *Conn) writeAtOnce(p []byte) (int, error) {
	if c.writeOnce == nil {
		c.writeOnce = c.onWriteOnce
	}
	c.wr = writeOp{p: p}
	err := c.raw.Write(c.writeOnce)
	if err == nil {
		err = c.wr.err
	}
	n := len(p) - len(c.wr.p)
	c.wr = writeOp{}
	return n, err
}

func (c *Conn) onWriteOnce(fd uintptr) bool {
	w := &c.wr
	n, errno := sysWrite(fd, w.p)
	switch errno {
	case 0:
		w.p = w.p[n:]
	case syscall.EAGAIN:
	default:
		w.err = c.writeError(errno)
	}
	return true
}

// hint is room for the control message by which the kernel tells what is left to read:
// its head and an int.
type hint [24]byte

// more reports whether bytes or the end are left, also where that is not told.
func (h *hint) more(length int) bool {
	head, data, _, err := unix.ParseOneSocketControlMessage(h[:length])
	if err != nil || head.Level != unix.SOL_TCP || head.Type != unix.TCP_CM_INQ || len(data) < 4 {
		return true
	}
	return binary.NativeEndian.Uint32(data) != 0
}
