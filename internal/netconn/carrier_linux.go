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

// carrier carries bytes for many connections in one goroutine: what comes on one is read
// and written to the other in the round in which the system tells of it, and no goroutine
// is woken for it. What takes longer than that is left to goroutines: see Carry.
//
// It has an epoll descriptor of its own, which the runtime's poller watches like that of
// a socket. Connections stay registered in it and are told of by edges. Each edge tells
// of the end of the stream by itself, so a socket that was emptied need not be read again
// to find out.
//
// The system knows a connection by its place, and by how often that was given away: what
// it has told of one that is closed meanwhile meets no other, whatever their descriptors.
type carrier struct {
	mu     sync.Mutex
	file   *os.File // the epoll descriptor; nil while there is no goroutine
	epoll  int
	again  int // a descriptor by which the goroutine reminds itself that there is more
	places []place
	free   []int32 // which of them are
	next   int64   // when the goroutine looks at the times of the flows

	carried atomic.Int32 // the flows that are carried; changes under mu

	// owned by the goroutine
	buf   []byte
	round []*flow
}

// place is where a carrier keeps a connection.
type place struct {
	flow *flow
	uses int32 // how often it was given away
}

// carrySize is how much is carried at once, in bytes. Who sends as much will send more,
// and is left to a goroutine that knows better ways.
const carrySize = 16 << 10

// carryRound is how much is read before it is sent, in bytes: many small messages.
// Many reads and then many writes are quicker than both by turns.
const carryRound = 4 * carrySize

// lingerTime is for how long a carrier without connections waits for another.
const lingerTime = int64(100 * time.Millisecond)

// carrierName is the name of an epoll descriptor as a file.
const carrierName = "carried connections"

// carriers are as many as processors.
var carriers = sync.OnceValue(func() []carrier { return make([]carrier, runtime.GOMAXPROCS(0)) })

// lastCarrier counts who was given a carrier.
var lastCarrier atomic.Uint32

// nextCarrier returns the carrier for a connection, whose bytes go to dst: that of dst,
// if it has one.
func nextCarrier(dst *Conn) *carrier {
	if f := dst.carried.Load(); f != nil {
		return f.carrier
	}
	all := carriers()
	return &all[int(lastCarrier.Add(1))%len(all)]
}

// Carry goes on with a Flow that has returned ErrQuiet, without a goroutine for as long as
// each piece that comes can be sent at once: moved hears of each. Then, or when the
// connection is closed or kicked, Unpark is called, or the moment until has come, it calls
// resume in a goroutine of its own, and Flow tells more. Until then nothing may read from
// src, nor write to dst.
//
// It returns false, and never calls resume, if it cannot wait; Flow can, then.
func Carry(dst, src *Conn, until int64, moved func(n int), resume func()) bool {
	f := src.flowTo(dst, moved)
	f.resume, f.until = resume, until
	ok := false
	err := src.raw.Control(func(fd uintptr) { ok = f.carrier.add(f, int(fd)) })
	return err == nil && ok
}

// add begins to carry. It holds the lock until all is in place, so whoever closes or
// kicks the connection meanwhile finds it.
func (k *carrier) add(f *flow, fd int) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil && !k.openLocked() {
		return false
	}
	f.src.carried.Store(f)
	if f.src.kicked.Load() || !k.watchLocked(f, fd) {
		return false
	}
	f.watched, f.carried = true, true
	k.carried.Add(1)
	if f.until < k.next {
		k.lookLocked(f.until)
	}
	return true
}

// openLocked starts the goroutine.
func (k *carrier) openLocked() bool {
	file, fd, raw, err := openEpoll(carrierName)
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

func (k *carrier) closeLocked() {
	k.file.Close()
	unix.Close(k.again)
	k.file, k.places, k.free, k.buf, k.round = nil, nil, nil, nil, nil
}

// noPlace stands for what has no place.
const noPlace = -1

// edges is EPOLLET, which is a negative number in package unix.
const edges = 1 << 31

// watched is what a carrier is told of: bytes, those that are urgent, before which a read
// stops, and the end.
const watched = unix.EPOLLIN | unix.EPOLLPRI | unix.EPOLLRDHUP | edges

// watchLocked asks to be told of a connection, of what is there already too, and gives it
// a place if it has none.
func (k *carrier) watchLocked(f *flow, fd int) bool {
	if f.place != noPlace {
		ev := unix.EpollEvent{Events: watched, Fd: f.place, Pad: k.places[f.place].uses}
		return unix.EpollCtl(k.epoll, unix.EPOLL_CTL_MOD, fd, &ev) == nil
	}
	if len(k.free) == 0 {
		k.places = append(k.places, place{})
		k.free = append(k.free, int32(len(k.places)-1))
	}
	at := k.free[len(k.free)-1]
	p := &k.places[at]
	ev := unix.EpollEvent{Events: watched, Fd: at, Pad: p.uses}
	if unix.EpollCtl(k.epoll, unix.EPOLL_CTL_ADD, fd, &ev) != nil {
		return false
	}
	k.free = k.free[:len(k.free)-1]
	p.flow, f.place = f, at
	return true
}

// unwatch ends that, for a connection that is not carried. The descriptor is that of the
// connection.
func (k *carrier) unwatch(f *flow, fd int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f.place != noPlace {
		_ = unix.EpollCtl(k.epoll, unix.EPOLL_CTL_DEL, fd, nil) // nothing to be done
		k.leaveLocked(f)
	}
}

// leaveLocked gives a place free.
func (k *carrier) leaveLocked(f *flow) {
	p := &k.places[f.place]
	p.flow = nil
	p.uses++
	k.free = append(k.free, f.place)
	f.place = noPlace
	if end := clock.Now() + lingerTime; len(k.free) == len(k.places) && end < k.next {
		k.lookLocked(end)
	}
}

// lookLocked makes the goroutine look at the times at a moment.
func (k *carrier) lookLocked(moment int64) {
	k.next = moment
	k.file.SetReadDeadline(clock.At(moment))
}

// release lets the reader of a connection go on, after the piece that is being carried.
func (k *carrier) release(f *flow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.releaseLocked(f)
}

func (k *carrier) releaseLocked(f *flow) {
	switch {
	case f.running:
		f.told = true
	case f.carried:
		k.resumeLocked(f)
	}
}

// forget is release for a connection that is closed: the system tells nothing of it any
// more.
func (k *carrier) forget(f *flow) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.releaseLocked(f)
	if f.place != noPlace {
		k.leaveLocked(f)
	}
}

func (k *carrier) resumeLocked(f *flow) {
	f.carried = false
	k.carried.Add(-1)
	resume := f.resume
	f.resume = nil
	go resume()
}

// run is the goroutine: one wait of the runtime's poller that is left only by its time.
func (k *carrier) run(raw syscall.RawConn) {
	k.buf = make([]byte, carryRound)
	var events [64]unix.EpollEvent
	turn := func(fd uintptr) bool {
		n := sysEpoll(fd, events[:])
		k.carry(events[:n])
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

// remind makes the next wait of the goroutine end at once, after others have run.
func (k *carrier) remind() {
	_, _ = unix.Write(k.again, reminder) // a counter that takes 2⁶⁴ of them
}

// reminder is a one as an eventfd takes it.
var reminder = binary.NativeEndian.AppendUint64(nil, 1)

// carry carries what there is on the connections that were told of.
func (k *carrier) carry(events []unix.EpollEvent) {
	if len(events) == 0 {
		return
	}
	k.begin(events)
	for rest := k.round; len(rest) > 0; {
		n, used := 0, 0
		for n < len(rest) && carryRound-used >= carrySize {
			used += rest[n].read(k.buf[used : used+carrySize])
			n++
		}
		for _, f := range rest[:n] {
			f.send()
		}
		rest = rest[n:]
	}
	k.end()
}

// begin takes what was told of into a round.
func (k *carrier) begin(events []unix.EpollEvent) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.round = k.round[:0]
	for i := range events {
		if f := k.toldOfLocked(&events[i]); f != nil {
			f.running, f.ready = true, events[i].Events
			k.round = append(k.round, f)
		}
	}
}

// toldOfLocked returns which of the flows that are carried the system has told of, nil if
// none.
func (k *carrier) toldOfLocked(event *unix.EpollEvent) *flow {
	at := event.Fd
	if at == noPlace || k.places[at].uses != event.Pad {
		return nil // it is of a connection that is closed
	}
	if f := k.places[at].flow; f != nil && f.carried {
		return f
	}
	return nil
}

// end ends a round.
func (k *carrier) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for i, f := range k.round {
		f.running = false
		if f.leaves || f.told {
			f.leaves, f.told = false, false
			k.resumeLocked(f)
		}
		k.round[i] = nil
	}
}

// lookEach is how much longer the least time between two looks at the times of all is
// for each of them.
const lookEach = int64(10 * time.Microsecond)

// sweep lets those go on whose time has come. It returns false when the goroutine has
// nothing to do any more.
func (k *carrier) sweep() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := clock.Now()
	if len(k.free) == len(k.places) {
		k.closeLocked()
		return false
	}
	next := now + int64(time.Hour)
	for i := range k.places {
		f := k.places[i].flow
		if f == nil || !f.carried {
			continue
		}
		if f.until <= now {
			k.resumeLocked(f)
			continue
		}
		next = min(next, f.until)
	}
	k.lookLocked(max(next, now+sweepLeast+lookEach*int64(len(k.places))))
	return true
}
