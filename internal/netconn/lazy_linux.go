package netconn

import "syscall"

// direct reads from a descriptor on a shorter way than package net does. One
// goroutine reads at a time.
type direct struct {
	conn *Conn
	raw  syscall.RawConn
	fn   func(uintptr) bool
	look func(uintptr) bool // made when it is first needed
	p    []byte
	n    int
	err  error
	asks *Lazy // what it holds is sent before the first wait; then nil
}

// newDirect returns the way to a connection's descriptor, nil if there is none.
func newDirect(c *Conn) *direct {
	if c.raw == nil {
		return nil
	}
	d := &direct{conn: c, raw: c.raw}
	d.fn = d.onRead
	return d
}

// roundTrip sends what l holds, waits, and reads at least one byte. sent is false if it
// came to nothing at all.
func (d *direct) roundTrip(l *Lazy, p []byte) (n int, sent bool, err error) {
	d.asks = l
	n, err = d.read(p)
	sent = d.asks == nil
	d.asks = nil
	return n, sent, err
}

// send sends what is held and reports whether that went well.
func (d *direct) send(fd uintptr, l *Lazy) bool {
	n, errno := sysWrite(fd, l.held)
	if errno == 0 && n == len(l.held) {
		return true
	}
	if errno != 0 && errno != syscall.EAGAIN {
		d.n, d.err = 0, l.conn.writeError(errno)
		return false
	}
	_, err := l.conn.writeNow(l.held[max(n, 0):])
	d.n, d.err = 0, err
	return err == nil
}

// read reads at least one byte. It returns os.ErrDeadlineExceeded after the
// deadline.
func (d *direct) read(p []byte) (int, error) {
	d.p = p
	err := d.raw.Read(d.fn)
	d.p = nil
	if err != nil {
		return 0, err
	}
	return d.n, d.err
}

func (d *direct) onRead(fd uintptr) bool {
	if l := d.asks; l != nil {
		d.asks = nil
		return !d.send(fd, l)
	}
	n, errno := sysRead(fd, d.p)
	switch {
	case errno == syscall.EAGAIN:
		return false
	case errno != 0 || n == 0:
		d.n, d.err = 0, d.conn.readError(errno)
	default:
		d.n, d.err = n, nil
	}
	return true
}

// await waits until there is something to read, or the end. It returns
// os.ErrDeadlineExceeded after the deadline.
func (d *direct) await() error {
	if d.look == nil {
		d.look = func(fd uintptr) bool { return sysPeek(fd) != syscall.EAGAIN }
	}
	return d.raw.Read(d.look)
}
