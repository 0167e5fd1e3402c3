package netconn

import (
	"crypto/tls"
	"math"
	"os"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/clock"
)

// parks tells that connections can be parked on this system.
const parks = true

// lotName is the name of an epoll descriptor as a file.
const lotName = "parked connections"

// parked holds all connections that are parked.
var parked lot

// lot waits for many connections in one goroutine, which lives as long as any is
// there. It has an epoll descriptor of its own, which the runtime's poller watches
// like that of a socket. What it is told of is level-triggered and comes once: what
// came before a connection was parked is told too.
type lot struct {
	mu    sync.Mutex
	file  *os.File // the epoll descriptor; nil while no goroutine waits
	epoll int
	waits map[int32]wait // by descriptor
	next  int64          // when the goroutine looks at the times of the waits
}

// wait is one connection that is parked.
type wait struct {
	conn  *Conn
	until int64
}

// leavesEarly reports, when the wait of Serve would begin, whether it is given up at
// once for the connection to be parked. That is so once: when the poller has not heard
// of the connection, which has been served. Many clients ask for one thing and then say
// nothing for long. Such a connection never has a goroutine that waits, nor a descriptor
// of the poller, neither of which the runtime gives back; one that asks again has them
// from then on.
func (c *Conn) leavesEarly() bool {
	if !c.rd.leaves || !c.rd.again || c.first != unbegun || !c.isUnpolled() {
		return false
	}
	c.first = early
	c.setEnd()
	return true
}

// isUnpolled reports whether the runtime's poller has not heard of the connection.
func (c *Conn) isUnpolled() bool {
	r, is := c.raw.(*rawSocket)
	return is && (*Socket)(r).file.Load() == nil
}

// Park waits without a goroutine until there is something to read, the connection
// is closed or kicked, Unpark is called, or the moment until has come, and then
// calls resume in a goroutine of its own. Until then nothing may read from the
// connection. It returns false, and never calls resume, if it cannot wait; the
// caller then goes on as before.
//
// Under TLS the wait is for bytes on the socket, so nothing that has come may still
// lie in TLS: a read that has waited has used up all of it.
func (c *Conn) Park(until int64, resume func()) bool {
	if !c.parkable() {
		return false
	}
	raw := c.raw
	if c.lazy != nil {
		raw = c.lazy.direct.raw
		if secure, is := c.nc.(*tls.Conn); is {
			Shed(secure)
		}
	}
	ok := false
	err := raw.Control(func(fd uintptr) { ok = parked.add(c, int32(fd), until, resume) })
	return err == nil && ok
}

// NumParked returns how many connections are parked or carried.
func NumParked() int {
	parked.mu.Lock()
	n := len(parked.waits)
	parked.mu.Unlock()
	for i := range carriers() {
		n += int(carriers()[i].carried.Load())
	}
	return n
}

// add begins to wait for a connection. It holds the lock until all is in place, so
// whoever closes or kicks the connection meanwhile finds it.
func (l *lot) add(c *Conn, fd int32, until int64, resume func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil && !l.openLocked() {
		return false
	}
	if gone, ok := l.waits[fd]; ok {
		l.resumeLocked(fd, gone.conn) // it is being closed, and has lost its descriptor already
	}
	c.parked.Store(fd + 1)
	if c.kicked.Load() || !l.watchLocked(fd) {
		c.parked.Store(0)
		l.endIfEmptyLocked()
		return false
	}
	c.resume = resume
	c.rested = c.rested || c.first != early
	l.waits[fd] = wait{c, until}
	if until < l.next {
		l.lookLocked(until)
	}
	return true
}

// openLocked starts the goroutine.
func (l *lot) openLocked() bool {
	file, fd, raw, err := openEpoll(lotName)
	if err != nil {
		return false
	}
	l.file, l.epoll = file, fd
	l.waits = map[int32]wait{}
	l.next = math.MaxInt64
	go l.run(raw)
	return true
}

// openEpoll opens an epoll descriptor that the runtime's poller watches like that of a
// socket.
func openEpoll(name string) (file *os.File, fd int, raw syscall.RawConn, err error) {
	fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, 0, nil, err
	}
	unix.SetNonblock(fd, true) // the runtime only watches such files
	file = os.NewFile(uintptr(fd), name)
	raw, err = file.SyscallConn()
	if err == nil {
		err = file.SetReadDeadline(time.Time{}) // fails where it cannot be waited for
	}
	if err != nil {
		file.Close()
		return nil, 0, nil, err
	}
	return file, fd, raw, nil
}

func (l *lot) closeLocked() {
	l.file.Close()
	l.file, l.waits = nil, nil
}

// watchLocked asks to be told once. A descriptor that was parked before is known
// still; one that was closed is not.
func (l *lot) watchLocked(fd int32) bool {
	ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT, Fd: fd}
	err := unix.EpollCtl(l.epoll, unix.EPOLL_CTL_ADD, int(fd), &ev)
	if err == unix.EEXIST {
		err = unix.EpollCtl(l.epoll, unix.EPOLL_CTL_MOD, int(fd), &ev)
	}
	return err == nil
}

// lookLocked makes the goroutine look at the times at a moment.
func (l *lot) lookLocked(moment int64) {
	l.next = moment
	if moment == math.MaxInt64 {
		l.file.SetReadDeadline(time.Time{})
		return
	}
	l.file.SetReadDeadline(clock.At(moment))
}

// endIfEmptyLocked makes the goroutine end when there is nothing to wait for.
func (l *lot) endIfEmptyLocked() {
	if len(l.waits) == 0 {
		l.file.SetReadDeadline(struck)
	}
}

// release takes a connection out and lets its reader go on.
func (l *lot) release(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if fd := c.parked.Load() - 1; fd >= 0 {
		l.resumeLocked(fd, c)
		l.endIfEmptyLocked()
	}
}

func (l *lot) resumeLocked(fd int32, c *Conn) {
	delete(l.waits, fd)
	if c.first == early { // a busy one shall not be watched twice
		unix.EpollCtl(l.epoll, unix.EPOLL_CTL_DEL, int(fd), nil)
	}
	c.parked.Store(0)
	resume := c.resume
	c.resume = nil
	go resume()
}

// run is the goroutine.
func (l *lot) run(raw syscall.RawConn) {
	var events [64]unix.EpollEvent
	n := 0
	look := func(fd uintptr) bool {
		n, _ = unix.EpollWait(int(fd), events[:], 0)
		return n > 0
	}
	for {
		if err := raw.Read(look); err != nil {
			n = 0
		}
		if !l.wake(events[:n]) {
			return
		}
	}
}

// wake lets go on what there are events for, and what has waited long enough. It
// returns false when nothing is left.
func (l *lot) wake(events []unix.EpollEvent) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range events {
		// An event of a closed connection may meet another one with its number,
		// which then looks once for nothing.
		if w, ok := l.waits[events[i].Fd]; ok {
			l.resumeLocked(events[i].Fd, w.conn)
		}
	}
	if len(events) == 0 {
		l.sweepLocked()
	}
	if len(l.waits) == 0 {
		l.closeLocked()
		return false
	}
	return true
}

// sweepLeast is the least time between two looks at the times of all.
const sweepLeast = int64(100 * time.Millisecond)

// sweepLocked lets go on whose time has come. It is for when a deadline struck.
func (l *lot) sweepLocked() {
	now, next := clock.Now(), int64(math.MaxInt64)
	for fd, w := range l.waits {
		if w.until <= now {
			l.resumeLocked(fd, w.conn)
			continue
		}
		next = min(next, w.until)
	}
	if next < math.MaxInt64 {
		next = max(next, now+sweepLeast)
	}
	l.lookLocked(next)
}
