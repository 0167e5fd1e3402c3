package netconn

import (
	"encoding/binary"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/clock"
)

// watcher waits for many connections in one goroutine: those that are parked, whose
// readers go on in goroutines of their own once there is something, and those that are
// carried, for which it reads and writes itself, see flow.
//
// It has an epoll descriptor of its own, which the runtime's poller watches like that of
// a socket. The system identifies a connection by its slot and how often that slot was
// assigned: an event for one that is closed meanwhile is never delivered to another,
// whatever their descriptors.
type watcher struct {
	mu     sync.Mutex
	file   *os.File // the epoll descriptor; nil while there is no goroutine
	epoll  int
	again  int // a descriptor by which the goroutine reminds itself that there is more
	places []place
	free   []int32 // which of them are
	next   int64   // when the goroutine looks at the times of the waits

	waits atomic.Int32 // the connections that wait; changes under mu

	carried // owned by the goroutine
}

// place is where a watcher keeps a connection.
type place struct {
	conn *Conn
	uses int32 // how often it was given away
}

// watched is what a watcher knows of a connection.
type watched struct {
	by atomic.Pointer[watcher] // the one that it has; set before its first wait

	// guarded by the watcher's mu
	place   int32 // and one; 0 while it has none
	carries bool  // in the wait under way, what comes is carried
	running bool  // its bytes are being carried,
	told    bool  // and then its reader goes on
	broken  bool  // it was reset while it did not wait
	until   int64
	resume  func() // nil while it does not wait
}

// The events of a watcher.
const (
	// parkedNews of a connection that is parked comes once, also of what came before.
	parkedNews = unix.EPOLLIN | unix.EPOLLRDHUP | unix.EPOLLONESHOT
	// carriedNews is for a carried connection, which is edge-triggered: bytes, urgent
	// bytes, before which a read stops, and the end. Each edge reports the end
	// separately, so a socket that was emptied need not be read again to find it.
	carriedNews = unix.EPOLLIN | unix.EPOLLPRI | unix.EPOLLRDHUP | edges
)

// edges is EPOLLET, which is a negative number in package unix.
const edges = 1 << 31

// reminders use this in place of a slot.
const noPlace = -1

// lingerTime is for how long a watcher without connections waits for another.
const lingerTime = int64(100 * time.Millisecond)

// watcherName is the name of an epoll descriptor as a file.
const watcherName = "watched connections"

// watchers are as many as processors.
var watchers = sync.OnceValue(func() []watcher { return make([]watcher, runtime.GOMAXPROCS(0)) })

// lastWatcher counts who was given a watcher.
var lastWatcher atomic.Uint32

// watcherOf returns the watcher of a connection. One that has none gets that of like, if
// that is not nil and has one.
func (c *Conn) watcherOf(like *Conn) *watcher {
	k := c.watched.by.Load()
	if k == nil && like != nil {
		k = like.watched.by.Load()
	}
	if k == nil {
		all := watchers()
		k = &all[int(lastWatcher.Add(1))%len(all)]
	}
	return k
}

// NumParked returns how many connections are parked or carried.
func NumParked() (n int) {
	for i := range watchers() {
		n += int(watchers()[i].waits.Load())
	}
	return n
}

// wait starts to wait for a connection, and relays its bytes if carries is set. It holds
// the lock until everything is registered, so that a concurrent close or kick finds the
// connection.
func (k *watcher) wait(c *Conn, fd int, carries bool, until int64, resume func()) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.enterLocked(c, fd, carries) {
		return false
	}
	if c.kicked.Load() || carries && k.brokenLocked(c.flow) {
		k.leaveLocked(c)
		return false
	}
	c.watched.until, c.watched.resume = until, resume
	k.waits.Add(1)
	if until < k.next {
		k.lookLocked(until)
	}
	return true
}

// enterLocked makes sure that the goroutine runs and has the connection registered.
func (k *watcher) enterLocked(c *Conn, fd int, carries bool) bool {
	if k.file == nil && !k.openLocked() {
		return false
	}
	c.watched.by.Store(k)
	c.watched.carries = carries
	return k.watchLocked(c, fd)
}

// openLocked starts the goroutine.
func (k *watcher) openLocked() bool {
	file, fd, raw, err := openEpoll()
	if err != nil {
		return false
	}
	if k.again, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		file.Close()
		return false
	}
	k.file, k.epoll = file, fd
	if unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, k.again, &unix.EpollEvent{Events: unix.EPOLLIN | edges, Fd: noPlace}) != nil {
		k.closeLocked()
		return false
	}
	k.lookLocked(clock.Now() + lingerTime)
	go k.run(raw)
	return true
}

// openEpoll opens an epoll descriptor that the runtime's poller watches like that of a
// socket.
func openEpoll() (file *os.File, fd int, raw syscall.RawConn, err error) {
	fd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, 0, nil, err
	}
	unix.SetNonblock(fd, true) // the runtime only watches such files
	file = os.NewFile(uintptr(fd), watcherName)
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

func (k *watcher) closeLocked() {
	k.file.Close()
	unix.Close(k.again)
	k.file, k.places, k.free, k.carried = nil, nil, nil, carried{}
}

// watchLocked registers a connection for events, including those already pending, and
// assigns it a slot if it has none.
func (k *watcher) watchLocked(c *Conn, fd int) bool {
	ev := unix.EpollEvent{Events: parkedNews}
	if c.watched.carries {
		ev.Events = carriedNews
	}
	if c.watched.place == 0 {
		k.placeLocked(c)
	}
	ev.Fd = c.watched.place - 1
	ev.Pad = k.places[ev.Fd].uses
	err := error(unix.ENOENT)
	if c.known {
		err = unix.EpollCtl(k.epoll, unix.EPOLL_CTL_MOD, fd, &ev)
	}
	if err == unix.ENOENT {
		err = unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, fd, &ev)
	}
	if c.known = err == nil; !c.known {
		k.leaveLocked(c)
	}
	return c.known
}

// placeLocked assigns a slot to a connection.
func (k *watcher) placeLocked(c *Conn) {
	if len(k.free) == 0 {
		k.places = append(k.places, place{})
		k.free = append(k.free, int32(len(k.places)-1))
	}
	at := k.free[len(k.free)-1]
	k.free = k.free[:len(k.free)-1]
	k.places[at].conn, c.watched.place = c, at+1
}

// unwatch unregisters a connection on which much arrives another way. The reader calls
// it.
func (c *Conn) unwatch() {
	if !c.known {
		return
	}
	c.known = false
	k := c.watched.by.Load()
	_ = c.raw.Control(func(fd uintptr) { // fails once it is closed
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.file != nil {
			_ = unix.EpollCtl(k.epoll, unix.EPOLL_CTL_DEL, int(fd), nil) // nothing to be done
		}
		k.leaveLocked(c)
	})
}

// leaveLocked releases the slot of a connection, if it has one.
func (k *watcher) leaveLocked(c *Conn) {
	at := c.watched.place - 1
	if at < 0 {
		return
	}
	c.watched.place = 0
	p := &k.places[at]
	p.conn = nil
	p.uses++
	k.free = append(k.free, at)
	if end := clock.Now() + lingerTime; len(k.free) == len(k.places) && end < k.next {
		k.lookLocked(end)
	}
}

// lookLocked makes the goroutine look at the times at a moment.
func (k *watcher) lookLocked(moment int64) {
	k.next = moment
	k.file.SetReadDeadline(clock.At(moment))
}

// Unpark ends the wait of a connection that is parked or carried, after the piece that is
// being carried. Any goroutine may call it.
func (c *Conn) Unpark() {
	if k := c.watched.by.Load(); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.releaseLocked(c)
	}
}

// forget is Unpark for a closed connection: the system reports nothing more for it.
func (c *Conn) forget() {
	if k := c.watched.by.Load(); k != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.releaseLocked(c)
		k.leaveLocked(c)
	}
}

func (k *watcher) releaseLocked(c *Conn) {
	switch w := &c.watched; {
	case w.running:
		w.told = true
	case w.resume != nil:
		k.resumeLocked(c)
	}
}

// resumeLocked ends the wait of a connection. One that was parked releases its slot,
// as it may never wait again or may be closed at any time.
func (k *watcher) resumeLocked(c *Conn) {
	if !c.watched.carries {
		k.leaveLocked(c)
	}
	resume := c.watched.resume
	c.watched.resume = nil
	k.waits.Add(-1)
	go resume()
}

// run is the goroutine: one wait of the runtime's poller that is left only by its time.
func (k *watcher) run(raw syscall.RawConn) {
	var events [64]unix.EpollEvent
	turn := func(fd uintptr) bool {
		n := sysEpoll(fd, events[:])
		k.dispatch(events[:n])
		if n == len(events) {
			k.remind() // what comes after fewer has an edge of its own
		}
		return false // and lets others run
	}
	for {
		_ = raw.Read(turn) // by the deadline
		if !k.sweep() {
			return
		}
	}
}

// remind makes the next wait of the goroutine end at once, after others have run. The
// call bypasses the scheduler: one that involves it wakes up the runtime's monitor
// thread, which then polls every few microseconds for some milliseconds.
func (k *watcher) remind() {
	sysRemind(k.again, reminder) // a counter with a range of 2⁶⁴
}

// reminder is the number one in the form of an eventfd.
var reminder = binary.NativeEndian.AppendUint64(nil, 1)

// dispatch resumes what is parked, and carries what is carried.
func (k *watcher) dispatch(events []unix.EpollEvent) {
	if len(events) == 0 {
		return
	}
	k.mu.Lock()
	for i := range events {
		k.hearLocked(&events[i])
	}
	k.mu.Unlock()
	if len(k.round) == 0 {
		return
	}
	k.carry()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.round {
		w := &f.src.watched
		w.running = false
		if f.leaves || w.told {
			f.leaves, w.told = false, false
			k.resumeLocked(f.src)
		}
	}
	clear(k.round)
	k.round = k.round[:0]
}

func (k *watcher) hearLocked(event *unix.EpollEvent) {
	c := k.connectionOfLocked(event)
	switch {
	case c == nil:
	case c.watched.resume == nil:
		if event.Events&unix.EPOLLERR != 0 {
			k.breakLocked(c)
		}
	case c.watched.carries:
		c.watched.running = true
		c.flow.ready = event.Events
		k.round = append(k.round, c.flow)
	default:
		k.resumeLocked(c)
	}
}

// connectionOfLocked returns the connection that an event is for, nil if it is closed.
func (k *watcher) connectionOfLocked(event *unix.EpollEvent) *Conn {
	at := event.Fd
	if at == noPlace || k.places[at].uses != event.Pad {
		return nil
	}
	return k.places[at].conn
}

// sweepLeast is the least time between two looks at the times of all, and lookEach how
// much longer it is for each of them.
const (
	sweepLeast = int64(100 * time.Millisecond)
	lookEach   = int64(10 * time.Microsecond)
)

// sweep lets those go on whose time has come. It returns false when the goroutine has
// nothing to do any more.
func (k *watcher) sweep() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := clock.Now()
	if len(k.free) == len(k.places) {
		k.closeLocked()
		return false
	}
	next := now + int64(time.Hour)
	for i := range k.places {
		c := k.places[i].conn
		switch {
		case c == nil || c.watched.resume == nil:
		case c.watched.until <= now:
			k.resumeLocked(c)
		default:
			next = min(next, c.watched.until)
		}
	}
	if len(k.free) == len(k.places) {
		next = now + lingerTime
	}
	k.lookLocked(max(next, now+sweepLeast+lookEach*int64(len(k.places))))
	return true
}
