package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// rawOf returns access to the descriptor of a TCP or Unix connection.
func rawOf(nc net.Conn) syscall.RawConn {
	switch c := nc.(type) {
	case *net.TCPConn:
		raw, _ := c.SyscallConn()
		return raw
	case *net.UnixConn:
		raw, _ := c.SyscallConn()
		return raw
	case *Socket:
		return (*rawSocket)(c)
	case *Announced:
		return rawOf(c.Stream)
	}
	return nil
}

// read runs the read that c.rd describes.
func (c *Conn) read() (int, error) {
	if c.raw == nil {
		return c.readPlain()
	}
	err := c.rawRead()
	return c.rd.n, err
}

// rawRead does what c.rd says when the connection is readable, until that is done. A
// deadline that struck before its time is set anew.
func (c *Conn) rawRead() error {
	raw := c.raw
	if raw == nil {
		raw = c.lazy.direct.raw
	}
	c.until = 0
	for {
		err := raw.Read(c.readFn)
		if err == nil {
			return c.rd.err
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		if err = c.expired(); err != nil {
			return err
		}
		if c.parkable() && c.isQuiet() {
			return ErrQuiet
		}
		// The wait before was given up, and with it the edge: look first.
		// Only if no wait had begun is there still something to send.
		c.rd.quiet = c.rd.quiet && c.until == 0
	}
}

// onReadable is called when there may be something to read. It returns false to wait.
func (c *Conn) onReadable(fd uintptr) bool {
	switch c.rd.does {
	case serves:
		if c.lazy != nil {
			return c.onServeWithin(fd)
		}
		return c.onServe(fd)
	case flows:
		return c.onFlow(fd)
	case pulls:
		return c.onPull(fd)
	case draws:
		return c.onDraw(fd)
	}
	return c.onRead(fd)
}

// onWritable is called when the socket may be writable. It returns false to wait.
func (c *Conn) onWritable(fd uintptr) (done bool) {
	c.hears.Add(1)
	defer c.hears.Add(-1) // also behind a panic: a reader waits for it
	if c.wr.pipe != nil {
		return c.onPush(fd)
	}
	return c.onWrite(fd)
}

// onRead is called once before the first wait and again whenever the
// connection may be readable. It returns false to wait.
func (c *Conn) onRead(fd uintptr) bool {
	r := &c.rd
	if r.quiet {
		r.quiet = false
		if len(c.out) > 0 {
			if r.err = c.flushTo(fd); r.err != nil {
				return true
			}
		}
		c.arm()
		return false
	}
	if !c.readFrom(fd) {
		if r.once {
			r.err = syscall.EAGAIN
			return true
		}
		c.arm()
		return false
	}
	return true
}

// readFrom makes one read for c.rd and reports whether it had a result.
func (c *Conn) readFrom(fd uintptr) bool {
	r := &c.rd
	p := r.p
	if r.buf != nil {
		p = r.buf.space()
	}
	n, errno := sysRead(fd, p)
	if errno == syscall.EAGAIN {
		if r.buf != nil {
			r.buf.Release()
		}
		return false
	}
	if errno != 0 {
		r.n, r.err = 0, c.readError(errno)
		return true
	}
	if r.buf != nil {
		r.buf.w += n
	}
	if r.n, r.err = n, nil; n == 0 {
		r.err = c.readError(0)
	}
	return true
}

// onServe is the loop of Serve, inside one wait. After its first read it reads
// once more: the edge that announced those bytes may have announced the end too,
// and a client that sends one request and closes its side must see the end at
// once.
func (c *Conn) onServe(fd uintptr) bool {
	r := &c.rd
	if len(c.out) > 0 {
		if r.err = c.flushTo(fd); r.err != nil {
			return true
		}
	}
	for {
		p := r.buf.space()
		if len(p) == 0 {
			r.err = io.ErrShortBuffer // step left a full buffer behind
			return true
		}
		n, errno := sysRead(fd, p)
		switch {
		case errno == syscall.EAGAIN:
			r.buf.Release()
			if c.leavesEarly() {
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
		if !r.step() {
			r.err = nil
			return true
		}
		r.buf.Release()
		if len(c.out) > 0 {
			if r.err = c.flushTo(fd); r.err != nil {
				return true
			}
		}
		if n < len(p) && r.again {
			// The socket was empty after this read. What came since has left
			// its edge with the poller.
			c.arm()
			return false
		}
		r.again = true
	}
}

// readError returns the error of a read without data: io.EOF if there was none. A socket
// reports a reset once. If a write or a probe has received it, a read would see an
// apparently orderly end. So readError waits for those in progress, which takes a moment.
func (c *Conn) readError(errno syscall.Errno) error {
	if errno == 0 {
		for c.hears.Load() > 0 {
			runtime.Gosched()
		}
		if c.reset.Load() {
			errno = syscall.ECONNRESET
		}
	}
	if errno == 0 {
		return io.EOF
	}
	return &net.OpError{Op: "read", Net: "tcp", Addr: c.nc.RemoteAddr(), Err: os.NewSyscallError("read", errno)}
}

// flushTo sends what is collected over fd and uses the slow path if the
// socket is full.
func (c *Conn) flushTo(fd uintptr) error {
	n, errno := sysWrite(fd, c.out)
	if errno == 0 && n == len(c.out) {
		c.dropOut()
		return nil
	}
	if errno != 0 && errno != syscall.EAGAIN {
		c.dropOut()
		return c.writeError(errno)
	}
	_, err := c.writeNow(c.out[max(n, 0):])
	c.dropOut()
	return err
}

// writeError returns the error of a write. When the peer had closed its side before it
// has reset the connection, errno is EPIPE, and what is read ends in order.
func (c *Conn) writeError(errno syscall.Errno) error {
	if errno == syscall.ECONNRESET {
		c.reset.Store(true)
	}
	return &net.OpError{Op: "write", Net: "tcp", Addr: c.nc.RemoteAddr(), Err: os.NewSyscallError("write", errno)}
}

// writeNow sends p. Each wait for a writable socket is bounded by the write
// wait.
func (c *Conn) writeNow(p []byte) (int, error) {
	if c.raw == nil {
		return c.writePlain(p)
	}
	c.wr = writeOp{p: p}
	err := c.rawWrite()
	n := len(p) - len(c.wr.p)
	c.wr = writeOp{}
	return n, err
}

// writeLast sends p as writeNow does, but for the last piece, which the kernel keeps back
// for what has to come at once: the end of our side, in the same packet.
func (c *Conn) writeLast(p []byte) error {
	if c.raw == nil {
		_, err := c.writePlain(p)
		return err
	}
	c.wr = writeOp{p: p, last: true}
	err := c.rawWrite()
	c.wr = writeOp{}
	return err
}

// rawWrite calls c.wr when the connection is writable, until that is done. A socket
// becomes writable only when a good part of its buffer is free, so at the end of the
// wait the kernel is queried whether the peer has received anything.
func (c *Conn) rawWrite() error {
	err := c.raw.Write(c.writeFn)
	for errors.Is(err, os.ErrDeadlineExceeded) && c.unsent() < c.wr.unsent {
		c.armWrite()
		err = c.raw.Write(c.writeFn)
	}
	if c.wr.waiting {
		c.nc.SetWriteDeadline(time.Time{})
	}
	if err == nil {
		err = c.wr.err
	}
	return err
}

func (c *Conn) onWrite(fd uintptr) bool {
	w := &c.wr
	for w.head+len(w.p) > 0 {
		n, errno := 0, syscall.Errno(0)
		if w.last {
			n, errno = sysWriteMore(fd, w.p)
		} else {
			n, errno = sysWriteBoth(fd, c.out[len(c.out)-w.head:], w.p)
		}
		if errno == syscall.EAGAIN {
			if w.once {
				return true
			}
			c.armWrite()
			return false
		}
		if errno != 0 {
			w.err = c.writeError(errno)
			return true
		}
		before := min(n, w.head)
		w.head -= before
		w.p = w.p[n-before:]
	}
	return true
}

// writeBehind sends what is collected and p, as one message if the buffer has
// space.
func (c *Conn) writeBehind(p []byte) (int, error) {
	c.wr = writeOp{head: len(c.out), p: p}
	err := c.rawWrite()
	n := len(p) - len(c.wr.p)
	c.wr = writeOp{}
	c.dropOut()
	return n, err
}

// armWrite bounds the wait for a writable socket that follows.
func (c *Conn) armWrite() {
	if c.writeWait > 0 {
		c.wr.waiting = true
		c.wr.unsent = c.unsent()
		c.nc.SetWriteDeadline(time.Now().Add(c.writeWait))
	}
}

// unsent returns how many bytes the kernel holds that the peer has not
// acknowledged.
func (c *Conn) unsent() (n int) {
	err := c.raw.Control(func(fd uintptr) { n, _ = unix.IoctlGetInt(int(fd), unix.SIOCOUTQ) })
	if err != nil {
		return 0
	}
	return n
}

// tcpClose is TCP_CLOSE, the state of a connection that was reset.
const tcpClose = 7

// isClosed reports whether nothing that was sent is on its way any more, since the
// connection was reset or is closed.
func (c *Conn) isClosed() (yes bool) {
	err := c.raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		yes = err == nil && info.State == tcpClose
	})
	return yes || err != nil
}

// Quiet reports whether the connection is open and has nothing to read: a
// server connection that is not quiet must not be used again.
func (c *Conn) Quiet() bool { return !c.over && c.Silent() }

// Silent reports whether the socket is open and has nothing to read. Concurrent
// calls are allowed, also during a read.
func (c *Conn) Silent() bool {
	below := c.belowTLS()
	return below.raw == nil || below.peekState() == syscall.EAGAIN
}

// peekState looks at the socket without reading, as peek does, and notes a reset. There is no TLS
// above the socket.
func (c *Conn) peekState() syscall.Errno {
	c.hears.Add(1)
	defer c.hears.Add(-1)
	errno := peek(c.raw)
	if errno == syscall.ECONNRESET {
		c.reset.Store(true)
	}
	return errno
}

// Peer reports what is known of the peer, without reading. Concurrent calls
// are allowed.
func (c *Conn) Peer() Presence {
	below := c.belowTLS()
	if below.raw == nil {
		return Present
	}
	switch below.peekState() {
	case 0:
		// An error of TLS takes precedence over the end of the connection
		// itself.
		if c.lazy != nil && hungUp(below.raw) {
			return HalfClosed
		}
		return Present
	case syscall.EAGAIN:
		return Present
	case errClosed:
		return HalfClosed
	}
	return Gone
}

// HasLeft reports whether the client of a connection has closed its side, also where
// there is something to read before that.
func HasLeft(nc net.Conn) bool {
	raw := rawOf(nc)
	return raw != nil && hungUp(raw)
}

// HasUnread reports whether a connection has something to read.
func HasUnread(nc net.Conn) bool {
	raw := rawOf(nc)
	return raw != nil && peek(raw) == 0
}

// hungUp is HasLeft for a socket.
func hungUp(raw syscall.RawConn) (yes bool) {
	raw.Control(func(fd uintptr) { yes = isHungUp(fd) })
	return yes
}

// isHungUp is HasLeft for a descriptor.
func isHungUp(fd uintptr) bool {
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLRDHUP}}
	n, err := unix.Poll(p, 0)
	return err == nil && n == 1
}

// errClosed represents the end of the stream in the result of peek.
const errClosed = syscall.EPIPE

// peek looks at the socket without reading: 0 if there are bytes, EAGAIN if
// there are none, errClosed at the end, or the socket's error.
func peek(raw syscall.RawConn) syscall.Errno {
	p := peeks.Get().(*peeking)
	defer peeks.Put(p)
	if raw.Control(p.fn) != nil {
		return syscall.EBADF // closed by us
	}
	return p.errno
}

// peeking is a look at a socket. It is kept for the next one, so that a look
// allocates nothing.
type peeking struct {
	errno syscall.Errno
	fn    func(uintptr)
}

var peeks = sync.Pool{New: func() any {
	p := &peeking{}
	p.fn = func(fd uintptr) { p.errno = sysPeek(fd) }
	return p
}}
