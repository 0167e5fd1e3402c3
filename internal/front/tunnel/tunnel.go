// Package tunnel copies bytes between a client and a server whose connection was
// upgraded, in both directions, until both sides have closed or nothing moved for
// the idle time (RFC 9110, section 7.8). Fronts connect their side with the
// stream of a source.
//
// A tunnel that is quiet holds no memory for bytes, and between plain connections no
// goroutine but that of Join: see Nexter and Connected. Start needs not even that.
package tunnel

import (
	"errors"
	"io"
	"math"
	"net"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
)

// Connected is a stream over a plain connection. Bytes that were read and not used are in
// the buffer. Between two of them bytes can be spliced in the kernel.
type Connected interface {
	Conn() (*netconn.Conn, *netconn.Buffer)
}

// Deliverer is a stream whose Abort discards what the other side has not received yet.
type Deliverer interface {
	// AwaitDelivery waits until the other side has received all, or stops reading.
	AwaitDelivery()
}

// Nexter is a stream that has memory of its own for what came.
type Nexter interface {
	// Next waits for bytes and returns them. They are valid until the next call.
	Next() ([]byte, error)
}

// Join carries bytes between client and server. It returns when both directions
// have ended. Silence in one direction is no reason to end while the other is
// busy. It sets ex.Sent and ex.Received.
func Join(ex *exchange.Exchange, client, server exchange.Stream, idle time.Duration) {
	over := make(chan struct{})
	Start(ex, client, server, idle, func() { close(over) })
	<-over
}

// Start is Join for who does not wait: it returns as soon as the client says nothing, or
// at the end, and calls over once both directions have ended.
func Start(ex *exchange.Exchange, client, server exchange.Stream, idle time.Duration, over func()) {
	ex.Own()
	release(client)
	release(server)
	t := &tunnel{ex: ex, idle: idle, over: over}
	t.touch()
	client.SetIdle(idle)
	server.SetIdle(idle)
	t.up = way{tunnel: t, to: server, from: client}
	t.down = way{tunnel: t, to: client, from: server}
	for _, w := range []*way{&t.up, &t.down} {
		w.resume, w.counts = w.run, func(n int) { w.moved(int64(n)) }
	}
	t.running.Store(2)
	go t.down.run() // servers are plain more often, and a plain one can be parked
	t.up.run()
}

// release releases the memory of the head of a connection.
func release(s exchange.Stream) {
	if c, ok := s.(Connected); ok {
		_, buf := c.Conn()
		buf.Free()
		buf.Release()
	}
}

// tunnel is both directions of one.
type tunnel struct {
	ex       *exchange.Exchange
	idle     time.Duration
	over     func()
	up, down way

	last    atomic.Int64 // when bytes last moved in either direction
	running atomic.Int32 // the directions that have not ended
}

func (t *tunnel) touch() { t.last.Store(exchange.Now()) }

// quiet returns for how long nothing has moved.
func (t *tunnel) quiet() time.Duration { return time.Duration(exchange.Now() - t.last.Load()) }

// ended notes the end of a direction.
func (t *tunnel) ended() {
	if t.running.Add(-1) == 0 {
		t.ex.Sent, t.ex.Received = t.down.total, t.up.total
		t.over()
	}
}

// way is one direction of a tunnel.
type way struct {
	*tunnel
	to, from exchange.Stream
	total    int64
	waiting  bool // the wait of from is not the usual one
	stays    bool // the next wait needs the goroutine

	resume func()      // run
	counts func(n int) // moved

	stopped atomic.Bool // nothing is carried any more
}

// run copies from one side to the other until the first ends, and passes the end
// on. An error ends both sides, so that the other direction stops too, see fail. While
// nothing comes it may park, and is called again.
func (w *way) run() {
	defer w.guard()
	for {
		err := w.copy()
		if err == netconn.ErrQuiet {
			if w.park() {
				return // and runs again already
			}
			w.stays = true
			continue
		}
		w.stopped.Store(true)
		if err == nil {
			err = w.end()
		}
		if err != nil {
			w.fail(err)
		}
		w.ended()
		return
	}
}

// fail ends both sides. A reset is forwarded as one (RFC 9293, section 3.10.7; RFC 8441,
// section 5; RFC 9220, section 3), and so is every other failure of a stream: after an
// orderly end, the peer would assume that the data is complete. Data that was received
// before is delivered first. Only a tunnel that is idle, with nothing in transit, is closed
// in order.
func (w *way) fail(err error) {
	var written *netconn.WriteError
	late, write := errors.Is(err, netconn.ErrTimeout), errors.As(err, &written)
	switch {
	case errors.Is(err, net.ErrClosed): // by us

	case late && !write:
		w.up.to.Close()
		w.down.to.Close()
		return
	case write && !late: // the other direction may have more to carry from there
		back := w.back()
		netconn.Await(back.stopped.Load, w.last.Load)
		awaitDelivery(w.from)
	case !late:
		awaitDelivery(w.to)
	}
	w.up.to.Abort()
	w.down.to.Abort()
}

// back returns the other direction.
func (w *way) back() *way {
	if w == &w.up {
		return &w.down
	}
	return &w.up
}

// awaitDelivery waits until a side has received what was sent to it, as far as that can
// be known.
func awaitDelivery(s exchange.Stream) {
	if c, ok := s.(Deliverer); ok {
		c.AwaitDelivery()
	}
}

// guard ends the tunnel if a direction has panicked, and nothing else.
func (w *way) guard() {
	if v := recover(); v != nil {
		w.ex.Broken(v, "tunnel")
		w.stopped.Store(true)
		w.to.Abort()
		w.from.Abort()
		w.ended()
	}
}

// end passes the end of from on. A side that cannot be told of it any more has been reset:
// what it had sent before may still be on its way in the other direction.
func (w *way) end() error {
	if from, onto := plain(w.from), plain(w.to); from != nil && onto != nil && w.running.Load() > 1 {
		netconn.WatchForReset(onto, from)
	}
	if err := w.to.CloseWrite(); err != nil {
		return &netconn.WriteError{Err: err}
	}
	return nil
}

// park waits without a goroutine where the connection can.
func (w *way) park() bool {
	conn, _ := w.from.(Connected).Conn()
	w.hurry()
	until := int64(math.MaxInt64)
	if w.idle > 0 {
		until = w.last.Load() + int64(w.idle)
	}
	if onto := plain(w.to); onto != nil && netconn.CanFlow(onto, conn) {
		if exchange.Now() >= until {
			return false
		}
		return netconn.Carry(onto, conn, until, w.counts, w.resume)
	}
	return conn.Park(until, w.resume)
}

// plain returns the plain connection of a stream, nil if it has none.
func plain(s exchange.Stream) *netconn.Conn {
	if c, ok := s.(Connected); ok {
		conn, _ := c.Conn()
		return conn
	}
	return nil
}

// hurry lets the next wait end when the tunnel has been idle for too long, however
// long this direction has waited already.
func (w *way) hurry() {
	if src, ok := w.from.(Connected); ok && w.idle > 0 {
		conn, _ := src.Conn()
		conn.SetReadUntil(w.last.Load() + int64(w.idle))
		w.waiting = true
	}
}

// moved notes that bytes have moved.
func (w *way) moved(n int64) {
	w.total += n
	w.touch()
	if w.waiting {
		w.waiting = false
		conn, _ := w.from.(Connected).Conn()
		conn.SetReadWait(w.idle)
	}
}

// copy copies until from ends. A pause is only an error when nothing moved in
// the other direction either.
func (w *way) copy() error {
	for {
		n, err := w.step()
		if n > 0 {
			w.moved(n)
		}
		switch {
		case err == io.EOF:
			return nil
		case err == netconn.ErrQuiet, err != nil && !w.goesOn(err):
			return err
		case err != nil && w.waiting:
			w.hurry()
		}
	}
}

// step moves the available data in the way that both sides support, and returns how much of
// it was not reported to moved.
func (w *way) step() (int64, error) {
	if src, ok := w.from.(Connected); ok {
		dst, _ := w.to.(Connected)
		return w.move(dst, src)
	}
	if src, ok := w.from.(Nexter); ok {
		p, err := src.Next()
		return pass(w.to, p, err)
	}
	return read(w.to, w.from)
}

// read copies what one read returns. Its buffer is on the stack of this func
// alone, so that a waiting goroutine has a small stack.
//
//go:noinline
func read(to, from exchange.Stream) (int64, error) {
	var p [4 << 10]byte
	n, err := from.Read(p[:])
	return pass(to, p[:n], err)
}

// pass writes what a read returned.
func pass(to exchange.Stream, p []byte, err error) (int64, error) {
	if len(p) > 0 {
		if _, werr := to.Write(p); werr != nil {
			return int64(len(p)), &netconn.WriteError{Err: werr}
		}
	}
	return int64(len(p)), err
}

// move moves the available data of a plain connection. It waits without memory: a buffer is
// held only while it has content. If it is full, more data is likely, which is then spliced
// if the other side is a plain connection, too.
func (w *way) move(dst, src Connected) (int64, error) {
	from, buf := src.Conn()
	var onto *netconn.Conn
	if dst != nil {
		onto, _ = dst.Conn()
	}
	if buf.Len() == 0 {
		if err := w.readBuffered(onto, from, buf); err != nil {
			return 0, err
		}
	}
	n, much := int64(buf.Len()), buf.Full()
	var err error
	if n > 0 {
		_, err = w.to.Write(buf.Bytes())
	}
	buf.Drop()
	if err != nil {
		return n, &netconn.WriteError{Err: err}
	}
	if !much || onto == nil {
		return n, nil
	}
	m, err := netconn.SpliceReady(onto, from)
	return n + m, err
}

// readBuffered leaves in the buffer what has come and was not sent at once: all of it, unless
// both connections are plain. onto is nil if that of the other side is not known.
func (w *way) readBuffered(onto, from *netconn.Conn, buf *netconn.Buffer) error {
	if onto != nil && netconn.CanFlow(onto, from) {
		wait := w.stays
		w.stays = false
		return netconn.Flow(onto, from, buf, wait, w.counts)
	}
	return from.FillOrQuiet(buf)
}

// goesOn reports whether a direction that paused for the idle time goes on.
func (t *tunnel) goesOn(err error) bool {
	var written *netconn.WriteError
	switch {
	case errors.As(err, &written):
		return false
	case errors.Is(err, netconn.ErrKicked):
		return true // interrupted by a drain: a tunnel ends by itself or at the drain deadline
	}
	return errors.Is(err, netconn.ErrTimeout) && t.quiet() < t.idle
}
