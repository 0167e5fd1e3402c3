package netconn

import (
	"errors"
	"io"
	"math"
	"net"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
)

// Relay carries bytes both ways between two connections, through the kernel where
// there are many of them. While nothing moves it holds no buffer and no goroutine.
type Relay struct {
	// Client and Server are the two connections. Relay closes them.
	Client, Server *Conn
	// Idle is how long nothing may move in either direction; 0 is for ever.
	Idle time.Duration
	// Up and Down count the bytes to the server and to the client while they
	// move, for all relays that share them; nil counts nothing.
	Up, Down *atomic.Uint64

	last     atomic.Int64 // when something moved
	ended    atomic.Bool  // one direction has ended in order
	cut      atomic.Bool
	up, down direction
	running  atomic.Int32 // the directions that have not ended
	over     func(error)
}

// ErrCut is the end of a relay that Cut has ended.
var ErrCut = errors.New("connection was cut")

// ClientError and ServerError say whose side a relay has ended of.
type (
	// ClientError is an error of the client's connection.
	ClientError struct{ Err error }
	// ServerError is an error of the server's connection.
	ServerError struct{ Err error }
)

// Error returns the text of the error below.
func (e *ClientError) Error() string { return "client: " + e.Err.Error() }

// Unwrap returns the error below.
func (e *ClientError) Unwrap() error { return e.Err }

// Error returns the text of the error below.
func (e *ServerError) Error() string { return "server: " + e.Err.Error() }

// Unwrap returns the error below.
func (e *ServerError) Unwrap() error { return e.Err }

// Start copies bytes until both sides have ended or one has failed, closes both, and
// calls over. It returns as soon as the client is silent, or at the end. After a second,
// keep-alive probes are enabled for a silent server; accepted connections have them
// already. The end of one direction is forwarded and leaves the other open; a side that
// was reset, or cannot be written to, resets the other after that has received the
// earlier bytes. The error is nil when both sides have ended in order; ErrTimeout when
// nothing moved for the idle time, ErrCut, a *ClientError or a *ServerError.
func (r *Relay) Start(over func(error)) {
	r.over = over
	r.touch()
	r.Client.SetReadWait(r.Idle)
	r.Client.SetWriteWait(r.Idle)
	r.Server.SetReadWait(r.Idle)
	r.Server.SetWriteWait(r.Idle)
	r.down = direction{relay: r, from: r.Server, to: r.Client, counter: r.Down}
	r.up = direction{relay: r, from: r.Client, to: r.Server, counter: r.Up, up: true}
	for _, d := range []*direction{&r.down, &r.up} {
		d.resume, d.counts = d.run, d.count
	}
	r.running.Store(2)
	if !r.down.awaitFirst() { // before anything goes up, so that what that brings is waited for
		go r.down.run()
	}
	r.up.run()
}

// finish ends the relay once both directions have ended.
func (r *Relay) finish() {
	if r.running.Add(-1) > 0 {
		return
	}
	err := r.up.err
	if err == nil || errors.Is(err, errOther) {
		err = r.down.err
	}
	r.Client.Close()
	r.Server.Close()
	if r.cut.Load() {
		err = ErrCut
	}
	r.over(err)
}

// Moved returns how many bytes went to the server and to the client. It is for
// the end.
func (r *Relay) Moved() (up, down int64) { return r.up.moved, r.down.moved }

// Cut ends a relay at once. Any goroutine may call it.
func (r *Relay) Cut() {
	r.cut.Store(true)
	r.Client.Abort() // what either has got is not all of it
	r.Server.Abort()
}

func (r *Relay) touch() { r.last.Store(clock.Now()) }

// errOther is the error of a direction that was ended for the other's sake.
var errOther = errors.New("the other direction has failed")

// direction carries bytes one way.
type direction struct {
	relay    *Relay
	from, to *Conn
	up       bool
	moved    int64
	counter  *atomic.Uint64
	buf      Buffer
	bulk     bool        // bytes come in amounts that are worth a pipe
	stays    bool        // the next wait needs the goroutine
	waiting  bool        // the wait of from is not the usual one
	kept     bool        // from has keep-alive probes
	asks     int64       // when it is to be
	resume   func()      // run
	counts   func(n int) // count
	err      error
	stopped  atomic.Bool // nothing is carried any more
}

// silence is the time after which a silent server gets keep-alive probes: most relays
// end before.
const silence = int64(time.Second)

// awaitFirst waits for what a server says, in the usual case that it has said nothing yet,
// and reports whether it does.
func (d *direction) awaitFirst() bool {
	d.asks = clock.Now() + silence
	return CanFlow(d.to, d.from) && d.park()
}

// run carries bytes until from ends, or parks while nothing comes and is called
// again.
func (d *direction) run() {
	for {
		err := d.carry()
		if err != ErrQuiet {
			d.err = d.end(err)
			d.buf.Drop()
			d.relay.finish()
			return
		}
		if !d.up && !d.kept && clock.Now() >= d.asks {
			d.kept = true
			d.from.keepAlive()
		}
		if d.park() {
			return
		}
		d.stays = true
	}
}

// park waits without a goroutine. If it returns true, run goes on already.
func (d *direction) park() bool {
	until := int64(math.MaxInt64)
	if idle := int64(d.relay.Idle); idle > 0 {
		until = d.relay.last.Load() + idle
		d.waiting = true
		d.from.SetReadUntil(until)
	}
	if !CanFlow(d.to, d.from) {
		return d.from.Park(until, d.resume)
	}
	if d.isLate() {
		return false
	}
	if !d.up && !d.kept {
		until = min(until, d.asks)
	}
	return Carry(d.to, d.from, until, d.counts, d.resume)
}

// isLate reports whether nothing has moved for the idle time.
func (d *direction) isLate() bool {
	idle := int64(d.relay.Idle)
	return idle > 0 && clock.Now() >= d.relay.last.Load()+idle
}

// end forwards the end of from. An error ends both connections, so that the other
// direction stops too. It resets them, unless nothing was in transit: a peer that
// receives an orderly end would mistake what it got for the whole.
func (d *direction) end(err error) error {
	d.stopped.Store(true)
	if err == nil {
		if d.relay.ended.Swap(true) {
			return nil // both have: the close that comes passes it on
		}
		WatchForReset(d.to, d.from)
		if err = d.to.CloseWrite(); err == nil || notConnected(err) {
			return nil
		}
		err = &WriteError{err}
	}
	if silent(err) {
		d.from.CloseIdle()
		d.to.CloseIdle()
		return ErrTimeout
	}
	d.deliver(err)
	d.from.Abort()
	d.to.Abort()
	return d.blame(err)
}

// deliver waits until what a connection that has failed had received reaches the other
// one: a reset overtakes what it has not read yet, and what lies in the buffers of the
// other.
func (d *direction) deliver(err error) {
	if errors.Is(err, ErrTimeout) || errors.Is(err, net.ErrClosed) {
		return // or it was closed by us
	}
	var written *WriteError
	to, back := d.to, &d.relay.down
	if errors.As(err, &written) { // what the other direction reads still has to be carried
		if !d.up {
			back = &d.relay.up
		}
		to = d.from
		Await(func() bool { return back.stopped.Load() }, d.relay.last.Load)
	}
	to.AwaitDelivery()
}

// silent reports whether err is that nothing came for the idle time.
func silent(err error) bool {
	var written *WriteError
	return errors.Is(err, ErrTimeout) && !errors.As(err, &written)
}

func (d *direction) carry() error {
	for {
		n, err := d.piece()
		d.count(int(n))
		switch {
		case err == io.EOF:
			return nil
		case err != nil && !d.goesOn(err):
			return err
		}
	}
}

// count notes that n bytes have moved.
func (d *direction) count(n int) {
	if n == 0 {
		return
	}
	d.moved += int64(n)
	if d.counter != nil {
		d.counter.Add(uint64(n))
	}
	d.relay.touch()
	if d.waiting {
		d.waiting = false
		d.from.SetReadWait(d.relay.Idle)
	}
}

// piece carries what is there, once there is something, and returns how much of it
// was not counted yet.
func (d *direction) piece() (int64, error) {
	if d.bulk {
		n, err := d.pour()
		if err != errNoPipe {
			d.bulk = err != nil || n > firstSize
			return n, err
		}
		d.bulk = false
	}
	both := CanFlow(d.to, d.from)
	err := d.readBuffered(both)
	if err != nil {
		d.buf.Drop()
		return 0, err
	}
	d.bulk = both && d.buf.Full()
	n := int64(d.buf.Len())
	if n > 0 {
		_, err = d.to.writeNow(d.buf.Bytes())
	}
	d.buf.Drop()
	if err != nil {
		return 0, &WriteError{err}
	}
	return n, nil
}

// readBuffered leaves in the buffer what has come and was not sent at once: all of it, unless
// both connections are plain.
func (d *direction) readBuffered(both bool) error {
	if both {
		wait := d.stays
		d.stays = false
		return Flow(d.to, d.from, &d.buf, wait, d.counts)
	}
	return d.from.FillOrQuiet(&d.buf)
}

// goesOn reports whether a direction in which nothing came for the idle time goes
// on, since something has moved in the other.
func (d *direction) goesOn(err error) bool {
	if !silent(err) {
		return false
	}
	until := d.relay.last.Load() + int64(d.relay.Idle)
	if clock.Now() >= until {
		return false
	}
	d.waiting = true
	d.from.SetReadUntil(until)
	return true
}

// blame says whose error it is.
func (d *direction) blame(err error) error {
	switch {
	case errors.Is(err, ErrTimeout):
		return ErrTimeout
	case errors.Is(err, net.ErrClosed):
		return errOther
	}
	client := d.up
	var written *WriteError
	if errors.As(err, &written) {
		client = !d.up
	}
	if client {
		return &ClientError{err}
	}
	return &ServerError{err}
}
