package tunnel_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/tunnel"
	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

// TestRandomLives joins two sides that send and read at any pace, and end, leave or reset
// their connection at any moment. Each gets what the other has sent: all of it before an
// end in order, and a reset where the other had one, behind all that was received before
// it. It is so for relays, too.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 30, func(t *testing.T, seed uint64) { lead(t, rand.New(rand.NewPCG(seed, 1))) })
}

// lead leads one life.
func lead(t *testing.T, r *rand.Rand) {
	toClient, client := newEnd(t, r)
	toServer, server := newEnd(t, r)
	client.other, server.other = server, client
	if client.leaves == stays {
		server.leaves = min(server.leaves, resets) // or both would stay
	}
	over := make(chan struct{})
	how := r.IntN(3)
	switch how {
	case 0:
		relay := &netconn.Relay{Client: toClient, Server: toServer, Idle: testhouse.Patience}
		go relay.Start(func(error) { close(over) })
	case 1:
		go tunnel.Start(&exchange.Exchange{}, &socket{nc: toClient}, &socket{nc: toServer}, testhouse.Patience, func() { close(over) })
	case 2: // one side is a stream over which something else carries
		stream := &socket{nc: toClient}
		go tunnel.Start(&exchange.Exchange{}, struct {
			exchange.Stream
			tunnel.Deliverer
		}{stream, stream}, &socket{nc: toServer}, testhouse.Patience, func() { close(over) })
	}
	var both sync.WaitGroup
	for _, e := range []*end{client, server} {
		writes, reads := rand.New(rand.NewPCG(r.Uint64(), 2)), rand.New(rand.NewPCG(r.Uint64(), 3))
		both.Go(func() { e.write(writes) })
		both.Go(func() { e.read(reads) })
	}
	both.Wait()
	select {
	case <-over:
	case <-time.After(testhouse.Patience):
		t.Error("it does not end")
	}
	for name, e := range map[string]*end{"client": client, "server": server} {
		if err := e.check(); err != nil {
			t.Errorf("the %s: %v", name, err)
		}
		if t.Failed() {
			t.Logf("way %d, the %s %+v", how, name, e.story)
		}
	}
}

// leaving is what an end does when it has sent what it wants to send.
type leaving int

const (
	ends   leaving = iota // in order, and reads on
	closes                // in order, and reads nothing
	resets
	stays // until the other has ended
	leavings
)

// story is what an end does, and what becomes of it.
type story struct {
	size    int // that it sends
	arrived int // of that, before it has reset its connection
	leaves  leaving
	refused error // of a write
	got     int
	wrong   bool  // what it got is something else
	err     error // that ended its reading
}

// end is the far end of a connection.
type end struct {
	*net.TCPConn
	key   byte
	other *end
	sent  atomic.Int64
	left  atomic.Bool   // it has closed or reset its connection
	read1 chan struct{} // closed when it has read to an end
	story
}

// newEnd returns a connection and its far end.
func newEnd(t *testing.T, r *rand.Rand) (*netconn.Conn, *end) {
	near, far := testhouse.Pair(t)
	far.SetDeadline(time.Now().Add(testhouse.Patience))
	e := &end{TCPConn: far, key: byte(r.Uint32()), read1: make(chan struct{})}
	e.size = []int{0, 10, 3000, 100_000, 2 << 20}[r.IntN(5)]
	e.leaves = leaving(r.IntN(int(leavings)))
	if r.IntN(2) == 0 {
		e.leaves = ends
	}
	return netconn.New(near), e
}

// write sends, and leaves.
func (e *end) write(r *rand.Rand) {
	p := make([]byte, 100<<10)
	for at := 0; at < e.size; {
		b := p[:min(e.size-at, 1+r.IntN([]int{10, 5000, len(p)}[r.IntN(3)]))]
		for i := range b {
			b[i] = byte(at+i)*e.key + byte((at+i)>>8)
		}
		n, err := e.Write(b)
		if at += n; err != nil {
			e.refused = err
			return
		}
		e.sent.Store(int64(at))
		if r.IntN(20) == 0 {
			testhouse.Pause()
		}
	}
	switch e.leaves {
	case ends:
		e.CloseWrite()
	case stays:
		<-e.read1
		e.CloseWrite()
	case closes:
		e.left.Store(true)
		e.Close()
	case resets:
		e.left.Store(true)
		for all, known, tries := false, r.IntN(2) == 0, 0; known && !all && tries < 1000; tries++ {
			if all, known = testhouse.Received(e.TCPConn); all {
				e.arrived = e.size
			} else {
				testhouse.Pause()
			}
		}
		e.SetLinger(0)
		e.Close()
	}
}

// read reads until an end.
func (e *end) read(r *rand.Rand) {
	defer close(e.read1)
	p := make([]byte, 64<<10)
	for {
		n, err := e.Read(p[:1+r.IntN(len(p))])
		for i, b := range p[:n] {
			e.wrong = e.wrong || b != byte(e.got+i)*e.other.key+byte((e.got+i)>>8)
		}
		if e.got += n; err != nil {
			e.err = err
			return
		}
		if r.IntN(20) == 0 {
			testhouse.Pause()
		}
	}
}

// check returns what is wrong with what an end received.
func (e *end) check() error {
	o := e.other
	switch {
	case e.wrong || e.got > o.size:
		return errors.New("it got what the other has not sent")
	case e.left.Load(): // it does not know
		return nil
	case e.got < o.arrived:
		return fmt.Errorf("it got %d bytes, but %d had been received before the reset", e.got, o.arrived)
	case errors.Is(e.err, net.ErrClosed), errors.Is(e.err, errTimeout(e.err)):
		return fmt.Errorf("its reading ended by %w", e.err)
	case e.err == io.EOF && e.refused == nil && (e.got < o.size || o.leaves == resets):
		return fmt.Errorf("it was told an end in order after %d bytes", e.got)
	case e.err != io.EOF && !errors.Is(e.err, syscall.ECONNRESET):
		return e.err
	case e.err != io.EOF && !o.left.Load() && o.refused == nil:
		return fmt.Errorf("it was reset after %d bytes, without a reason", e.got)
	}
	return nil
}

// errTimeout returns err if it is a time-out.
func errTimeout(err error) error {
	if ne := net.Error(nil); errors.As(err, &ne) && ne.Timeout() {
		return err
	}
	return io.ErrNoProgress
}

// socket is a stream over a plain connection.
type socket struct {
	nc  *netconn.Conn
	buf netconn.Buffer
}

func (s *socket) Read(p []byte) (int, error) { return s.nc.Read(p) }
func (s *socket) Write(p []byte) (int, error) {
	if _, err := s.nc.Write(p); err != nil {
		return 0, err
	}
	return len(p), s.nc.Flush()
}
func (s *socket) CloseWrite() error { return s.nc.CloseWrite() }
func (s *socket) Close() error      { return s.nc.CloseIdle() }
func (s *socket) Abort() error      { return s.nc.Abort() }
func (s *socket) AwaitDelivery()    { s.nc.AwaitDelivery() }
func (s *socket) SetIdle(d time.Duration) {
	s.nc.SetReadWait(d)
	s.nc.SetWriteWait(d)
}
func (s *socket) Conn() (*netconn.Conn, *netconn.Buffer) { return s.nc, &s.buf }
