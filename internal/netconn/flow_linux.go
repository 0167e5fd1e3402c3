package netconn

import (
	"io"
	"syscall"

	"golang.org/x/sys/unix"
)

// carrySize is how much is carried at once, in bytes. Who sends as much will send more,
// and is left to a goroutine that knows better ways.
const carrySize = 16 << 10

// carryRound is how much is read before it is sent, in bytes: many small messages.
// Many reads and then many writes are quicker than both by turns.
const carryRound = 4 * carrySize

// carried is the state that a watcher keeps of a flow for which it has an event in
// this round.
type carried struct {
	buf     []byte
	round   []*flow
	at      *flow         // which of them is at hand
	readFn  func(uintptr) // reads from it
	writeFn func(uintptr) // and sends what was read
}

// flow is what Flow and Carry need to know of a connection that they read from.
type flow struct {
	// constant
	src, onto *Conn

	// owned by the reader, and by the watcher while it carries
	moved  func(n int)
	rest   []byte // what a watcher could not send at once,
	failed error  // and why it cannot continue; Flow returns it

	// owned by the watcher
	got    []byte // buffer to read into, then the bytes read
	ready  uint32 // events from the system
	leaves bool   // the reader has to go on
}

// flowTo returns what is known of a connection that is read from.
func (c *Conn) flowTo(dst *Conn, moved func(n int)) *flow {
	if c.flow == nil {
		c.flow = &flow{src: c, onto: dst}
	}
	c.flow.moved = moved
	return c.flow
}

// Carry continues a Flow that has returned ErrQuiet, without a goroutine for as long as
// each piece that arrives can be sent at once; moved is called for each. After that, or
// when the connection is closed or kicked, Unpark is called, or the time until is reached,
// it calls resume in a goroutine of its own, and Flow returns the cause. Until then
// nothing may read from src, or write to dst, which is the same for everything that
// arrives on src.
//
// It returns false, and never calls resume, if it cannot wait; Flow can, then.
func Carry(dst, src *Conn, until int64, moved func(n int), resume func()) bool {
	src.flowTo(dst, moved)
	ok := false
	err := src.raw.Control(func(fd uintptr) { ok = src.watcherOf(dst).wait(src, int(fd), true, until, resume) })
	return err == nil && ok
}

// WatchForReset is for when all that came on src has been carried to dst, up to its end:
// what is carried to src from then on ends when src is reset, and not only when a write
// finds out.
func WatchForReset(dst, src *Conn) {
	if src.known || !CanFlow(dst, src) {
		return
	}
	src.flowTo(dst, nil)
	k := src.watcherOf(dst)
	_ = src.raw.Control(func(fd uintptr) { // fails once it is closed
		k.mu.Lock()
		defer k.mu.Unlock()
		k.enterLocked(src, int(fd), true)
	})
}

// breakLocked records that a connection was reset while it was not waiting: most often
// nothing else arrives on it, and only a write would fail. A flow to it ends.
func (k *watcher) breakLocked(c *Conn) {
	c.watched.broken = true
	if !c.watched.carries {
		return
	}
	if back := c.flow.onto; back.watched.by.Load() == k && back.watched.carries && back.flow.onto == c {
		k.releaseLocked(back)
	}
}

// brokenLocked reports whether what is to be carried to has been reset, and has Flow say
// so.
func (k *watcher) brokenLocked(f *flow) bool {
	to := f.onto
	if to.watched.by.Load() != k || !to.watched.broken {
		return false
	}
	errno := syscall.EPIPE
	to.hears.Add(1)
	defer to.hears.Add(-1)
	_ = to.raw.Control(func(fd uintptr) {
		if n, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR); err == nil && n != 0 {
			errno = syscall.Errno(n)
		}
	})
	f.failed = &WriteError{to.writeError(errno)}
	return true
}

// Flow copies data from src to dst as long as each piece can be sent immediately, and calls
// moved for each. b only holds bytes meanwhile.
//
// It returns ErrQuiet if no data is left, or, if wait is set, if none has arrived for some
// seconds; and nil if the caller must wait for dst, with the rest of a piece in b, or if b
// was full and more data should be moved differently. An error of dst is a *WriteError. dst
// must not have collected data, and CanFlow must be true for both connections.
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
	src.rd = readOp{does: flows, buf: b, leaves: parks, once: !wait}
	err := src.rawRead()
	src.rd = readOp{}
	return err
}

// carry carries what there is on the connections of a round.
func (k *watcher) carry() {
	if k.buf == nil {
		k.buf = make([]byte, carryRound)
		k.readFn = func(fd uintptr) { k.at.onRead(fd) }
		k.writeFn = func(fd uintptr) { k.at.onto.onWritable(fd) }
	}
	for rest := k.round; len(rest) > 0; {
		n, used := 0, 0
		for n < len(rest) && carryRound-used >= carrySize {
			used += k.read(rest[n], k.buf[used:used+carrySize])
			n++
		}
		for _, f := range rest[:n] {
			k.send(f)
		}
		rest = rest[n:]
	}
}

// read reads what there is into p, which is the flow's until it was sent, and returns how
// much that is.
func (k *watcher) read(f *flow, p []byte) int {
	k.at, f.got = f, p
	if err := f.src.raw.Control(k.readFn); err != nil {
		f.got, f.leaves = nil, true // Flow will say the same
	}
	k.at = nil
	return len(f.got)
}

// onRead is one read. If the system has reported more than bytes, it reads until
// that, so that an end is returned with the last bytes.
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

// send sends what was read, as writeAtOnce does, but past what a wait would need. If the
// end of our side comes at once behind it, the last of it waits for that.
func (k *watcher) send(f *flow) {
	p := f.got
	f.got = nil
	if len(p) == 0 {
		return
	}
	to := f.onto
	to.wr = writeOp{p: p, last: f.failed == io.EOF, once: true}
	k.at = f
	err := to.raw.Control(k.writeFn)
	k.at = nil
	if err == nil {
		err = to.wr.err
	}
	n := len(p) - len(to.wr.p)
	to.wr = writeOp{}
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
// socket empty: one edge may announce bytes and the end behind them.
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
		if r.once {
			r.err = ErrQuiet // the next wait reports available data and the end
			return true
		}
	}
}

// writeAtOnce writes as much as the socket accepts.
func (c *Conn) writeAtOnce(p []byte) (int, error) {
	c.wr = writeOp{p: p, once: true}
	err := c.rawWrite()
	n := len(p) - len(c.wr.p)
	c.wr = writeOp{}
	return n, err
}
