// Package netconn is the connection of the data path: it writes, then waits.
//
// After a proxy has written, there is seldom anything to read yet: the server
// has to work first, and the client reads before it sends its next request. A
// plain Read then makes a system call that fails before it waits. This
// connection avoids that in two ways. Ask writes what is pending and waits for
// the reply without trying to read first. Serve keeps one wait open for the
// life of a connection: bytes are read, a step runs, what the step wrote is
// flushed, and the wait continues.
//
// The second way is also needed for correctness. The runtime's poller is
// edge-triggered, and a new Read discards the edge before it; a client that
// sends its next request early would never be noticed if headgate waited
// without reading. A single wait that is never left loses no edge.
//
// Write collects; Flush, Ask and Serve send. Deadlines are moved only
// when they have to be earlier than they are, so a busy connection sets one
// timer every few seconds and not one per request. Systems other than Linux
// write and read in the plain way.
package netconn

import (
	"errors"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// MaxPending is how many bytes Write collects before it sends them, in bytes.
const MaxPending = 32 << 10

// ErrKicked is returned by Serve and by reads that Kick ended.
var ErrKicked = errors.New("wait on connection was interrupted")

// ErrTimeout is returned when a wait took longer than allowed. It is
// os.ErrDeadlineExceeded.
var ErrTimeout = os.ErrDeadlineExceeded

// Conn is one connection. One goroutine reads and one writes, which may be the
// same; Kick, Peer and Close may be called by any.
type Conn struct {
	// constant
	nc      net.Conn
	raw     syscall.RawConn // nil if plain reads and writes are used
	lazy    *Lazy           // below TLS, or nil
	readFn  func(uintptr) bool
	writeFn func(uintptr) bool

	// owned by the writer
	out       []byte
	writeWait time.Duration
	wr        writeOp

	// owned by the reader
	readWait  time.Duration // how long each wait may take, if readUntil is 0
	readUntil int64         // when all waits end, if not 0
	until     int64         // when the wait under way ends, 0 before it starts
	armed     int64         // when the poller's deadline strikes, 0 if none is set
	watch     func() error
	gap       time.Duration // between the last two looks of the wait under way
	rd        readOp
	flow      *flow // made when it is first needed
	first     firstWait
	near      bool // armed strikes soon, and a new wait need not set it
	rested    bool // was looked at, or parked, before
	over      bool // TLS has read the end of the stream already
	known     bool // the connection is registered with a watcher

	// of all goroutines
	kicked  atomic.Bool
	reset   atomic.Bool  // a write or a probe found that the peer has reset the connection
	hears   atomic.Int32 // writes and probes in progress, which may find that
	ended   atomic.Bool  // all is sent, and our side has ended in order or is about to
	watched watched
}

// readOp is what the poller's callbacks need to know of the read under way.
type readOp struct {
	buf     *Buffer // reads go into its free space,
	p       []byte  // or here if buf is nil
	n       int
	err     error
	does    task
	quiet   bool // nothing can be there yet: wait first
	once    bool // do not wait at all
	again   bool // Serve has read before
	leaves  bool // a wait that takes long is left
	struck  bool // a deadline has struck in the wait under way
	late    bool // its time was over, and there were bytes
	step    func() bool
	pipe    *pipe
	pipeMax int
}

// task says what is done with what can be read.
type task uint8

const (
	fills  task = iota // one read
	serves             // the loop of Serve
	flows              // the loop of Flow
	pulls              // into a pipe,
	draws              // which is used when there is something to send
)

// writeOp is what the poller's callbacks need to know of the write under way.
type writeOp struct {
	head    int // so many of the last bytes collected go before p
	p       []byte
	err     error
	last    bool // the end of our side comes at once behind p
	once    bool // do not wait at all
	waiting bool // a write deadline is set
	unsent  int  // what the kernel still held at the start of the wait, in bytes
	pipe    *pipe
}

// Presence is what can be known of a peer that says nothing.
type Presence uint8

// The presences. A peer that has closed its side, with nothing left to read, may
// still read ours, or may have closed all of the connection: the difference
// shows only when something is sent.
const (
	Present Presence = iota
	HalfClosed
	Gone // it was reset, or closed by us
)

// New returns a connection over nc, which it owns from then on.
func New(nc net.Conn) *Conn {
	c := &Conn{nc: nc, lazy: below(nc)}
	c.raw = rawOf(nc)
	if c.raw != nil {
		c.readFn, c.writeFn = c.onReadable, c.onWritable
	}
	return c
}

// NetConn returns the connection below, for its addresses.
func (c *Conn) NetConn() net.Conn { return c.nc }

// SetReadWait sets how long a read may wait from its start; 0 means no limit.
func (c *Conn) SetReadWait(d time.Duration) { c.readWait, c.readUntil = d, 0 }

// SetReadUntil sets the moment, by package clock, until which reads may wait. A
// caller that knows the time spares a look at the clock at each wait.
func (c *Conn) SetReadUntil(moment int64) { c.readUntil = moment }

// ErrSoon is what a watch returns to continue the wait and to be called again
// soon.
var ErrSoon = errors.New("check again soon")

// SetWatch sets a function that is called at times while a read waits: an error other than
// ErrSoon ends the wait. It is never called in the first moments of a wait. nil removes it.
func (c *Conn) SetWatch(watch func() error) { c.watch = watch }

// SetWriteWait sets how long a write may wait without progress; 0 is for ever.
func (c *Conn) SetWriteWait(d time.Duration) { c.writeWait = d }

// Pending returns the collected bytes. Bytes may be appended to the slice,
// which must then be given to SetPending.
func (c *Conn) Pending() []byte {
	if c.out == nil {
		c.out = takeOut()
	}
	return c.out
}

// SetPending replaces the collected bytes by those that Pending returned and
// the caller appended to.
func (c *Conn) SetPending(b []byte) { c.out = b }

// Write collects p. It sends what is collected once that is more than
// MaxPending.
func (c *Conn) Write(p []byte) (int, error) {
	if len(c.out)+len(p) <= MaxPending {
		c.out = append(c.Pending(), p...)
		return len(p), nil
	}
	if len(p) > MaxPending/2 && len(c.out) > 0 && c.raw != nil {
		return c.writeBehind(p)
	}
	if err := c.Flush(); err != nil {
		return 0, err
	}
	if len(p) <= MaxPending/2 {
		c.out = append(c.Pending(), p...)
		return len(p), nil
	}
	return c.writeNow(p)
}

// Flush sends what is collected.
func (c *Conn) Flush() error {
	if len(c.out) == 0 {
		return nil
	}
	_, err := c.writeNow(c.out)
	c.dropOut()
	return err
}

// dropOut discards the collected bytes and releases their memory.
func (c *Conn) dropOut() {
	giveOut(c.out)
	c.out = nil
}

// Read reads at least one byte into p. It does not send what is collected, so
// another goroutine may write meanwhile.
func (c *Conn) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.rd = readOp{p: p}
	return c.read()
}

// Fill reads at least one byte into the free space of b, which must have some
// or be empty. Like Read it leaves what is collected alone.
func (c *Conn) Fill(b *Buffer) error {
	c.rd = readOp{buf: b}
	_, err := c.read()
	return err
}

// RoundTrip sends what is collected, waits for the reply, and reads it into b.
// It must be called only when nothing is readable, which Quiet reports.
func (c *Conn) RoundTrip(b *Buffer) error {
	c.rd = readOp{buf: b, quiet: true}
	_, err := c.read()
	return err
}

// TryFill reads what is there into the free space of b without waiting, and
// reports whether anything was read. What is collected stays.
func (c *Conn) TryFill(b *Buffer) (bool, error) {
	if c.raw == nil {
		return false, nil
	}
	c.rd = readOp{buf: b, once: true}
	err := c.rawRead()
	if errors.Is(err, syscall.EAGAIN) {
		return false, nil
	}
	return c.rd.n > 0, err
}

// Rest reports whether TLS has read more off the socket than was read of it, or has met its
// end: it reads as many records at once as there are. If it has not, sure is whether more
// would have been read, had it been there with the last of it. Without TLS there is never a
// rest. The reader calls it; it makes no system call, and what there is of the rest is lost.
func (c *Conn) Rest() (rest, sure bool) {
	if c.lazy == nil {
		return false, true
	}
	c.lazy.shut = true
	defer func() { c.lazy.shut = false }()
	n, err := c.nc.Read(c.lazy.one[:])
	return n > 0 || !errors.Is(err, os.ErrDeadlineExceeded), !c.lazy.full
}

// CanPoll reports whether TryFill can find out whether there are bytes to read.
// It cannot under TLS, nor on systems other than Linux.
func (c *Conn) CanPoll() bool { return c.raw != nil }

// Serve reads into b and calls step after each read, until step returns false
// or reading fails. Before it waits it sends what step wrote. The error is nil
// when step ended it, io.EOF when the peer closed, ErrTimeout after the time of
// SetReadWait, which step may change, and ErrKicked after Kick. step must not
// read from the connection.
func (c *Conn) Serve(b *Buffer, step func() bool) error { return c.serve(b, step, false) }

// serve implements Serve; leaves says whether a long wait is left.
func (c *Conn) serve(b *Buffer, step func() bool, leaves bool) error {
	if c.raw == nil && !c.servesWithin() {
		return c.servePlain(b, step, leaves)
	}
	c.rd = readOp{does: serves, buf: b, step: step, leaves: leaves}
	err := c.rawRead()
	c.rd = readOp{}
	return err
}

func (c *Conn) servePlain(b *Buffer, step func() bool, leaves bool) error {
	for {
		if err := c.flushLazily(); err != nil {
			return err
		}
		c.rd = readOp{buf: b, leaves: leaves}
		if _, err := c.read(); err != nil {
			return err
		}
		if !step() {
			return nil
		}
		b.Release()
	}
}

// flushLazily sends what is collected, under TLS with the read that follows.
func (c *Conn) flushLazily() error {
	if c.lazy == nil {
		return c.Flush()
	}
	c.lazy.holding = true
	err := c.Flush()
	c.lazy.holding = false
	return err
}

// Kick makes the reader look up: the read it waits in, or else its next one,
// returns ErrKicked.
func (c *Conn) Kick() {
	c.kicked.Store(true)
	c.nc.SetReadDeadline(struck)
	c.Unpark()
}

// takeKick reports whether the connection was kicked since the last time.
func (c *Conn) takeKick() bool { return c.kicked.Load() && c.kicked.Swap(false) }

// CloseWrite ends our side of the stream, also while another goroutine reads. What is
// collected is sent before. Without TLS the end comes in the same packet where it fits;
// under TLS see Finish.
func (c *Conn) CloseWrite() error {
	if c.lazy == nil {
		return c.closeWritePlain()
	}
	if err := c.Flush(); err != nil {
		return err
	}
	c.ended.Store(true)
	if err := closeWrite(c.nc); err != nil {
		return err
	}
	return closeWrite(c.lazy.nc)
}

// Finish is CloseWrite for a caller that knows that there is no concurrent read: with TLS,
// too, the end is sent in one packet with the data before it.
func (c *Conn) Finish() error {
	l := c.lazy
	if l == nil {
		return c.closeWritePlain()
	}
	l.holding = true
	err := c.Flush()
	if err == nil {
		err = closeWrite(c.nc) // TLS says before the end that it ends
	}
	l.holding = false
	if err == nil {
		err = l.sendLast()
	}
	if err != nil {
		return err
	}
	c.ended.Store(true)
	return closeWrite(l.nc)
}

func (c *Conn) closeWritePlain() error {
	if len(c.out) > 0 {
		err := c.writeLast(c.out)
		c.dropOut()
		if err != nil {
			return err
		}
	}
	c.ended.Store(true)
	return closeWrite(c.nc)
}

// closeWrite ends our side of a stream that can have only one.
func closeWrite(nc net.Conn) error {
	if w, ok := nc.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// ResetOnClose makes Close reset the connection, so that the peer does not
// mistake what it received for the whole.
func (c *Conn) ResetOnClose() {
	nc := c.nc
	if c.lazy != nil {
		nc = c.lazy.nc
	}
	if tcp, ok := nc.(interface{ SetLinger(sec int) error }); ok {
		tcp.SetLinger(0)
	}
}

// Close closes the connection at once. What is collected is lost. It returns
// when no read or write uses the connection any more, so a step of Serve must
// not call it.
func (c *Conn) Close() error {
	nc := c.nc
	if c.lazy != nil {
		nc = c.lazy // a TLS connection would say goodbye first, and wait for that
	}
	err := nc.Close()
	c.forget()
	return err
}

// Abort closes a connection in the middle of a stream: it resets the connection. It does
// not reset one whose end has been sent in order, as the peer could lose what it has not
// read yet; the peer then finds out when it sends. Concurrent calls are allowed.
func (c *Conn) Abort() error {
	if !c.ended.Load() {
		c.ResetOnClose()
	}
	return c.Close()
}

// CloseIdle closes a connection on which nothing has moved for long, and aborts it if the
// reason is that the peer has not received all that was sent.
func (c *Conn) CloseIdle() error {
	if below := c.belowTLS(); below.raw != nil && below.unsent() > 0 {
		return c.Abort()
	}
	return c.Close()
}

// belowTLS returns the connection of the socket: c itself where there is no TLS.
func (c *Conn) belowTLS() *Conn {
	if c.lazy != nil {
		return c.lazy.conn
	}
	return c
}

// eof turns a read of nothing into io.EOF.
func eof(n int, err error) (int, error) {
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return n, err
}

// WriteError is an error of the side that Splice writes to.
type WriteError struct{ Err error }

// Error returns the text of the error below.
func (e *WriteError) Error() string { return e.Err.Error() }

// Unwrap returns the error below.
func (e *WriteError) Unwrap() error { return e.Err }
