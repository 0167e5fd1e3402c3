package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/proxyproto"
	"headgate/internal/testhouse"
)

// TestRandomLives lets clients and servers send, read, pause, end their sides, reset and
// leave in any order, while the proxy is removed or its connections are cut. Each gets
// the bytes that the other has sent, in order; nobody is told of an end in order who did
// not get all; what ended in order is told so; nothing is left.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 60, func(t *testing.T, seed uint64) {
		l := newLife(t, rand.New(rand.NewPCG(seed, 0)))
		l.run()
		if len(l.wrong) > 0 {
			t.Fatalf("%s\n%s", strings.Join(l.story, "\n"), strings.Join(l.wrong, "\n"))
		}
	})
}

// noise is what is sent: each end begins at another place.
var noise = func() []byte {
	b := make([]byte, 10<<20)
	rand.NewChaCha8([32]byte{}).Read(b)
	return b
}()

// life is one connection between a client and a server.
type life struct {
	t     *testing.T
	r     *rand.Rand
	h     *house
	conn  *Conn
	ends  [2]*side // client, server
	cut   bool
	done  sync.WaitGroup
	story []string

	mu    sync.Mutex
	wrong []string
}

func (l *life) fault(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong = append(l.wrong, fmt.Sprintf(format, args...))
}

// side is a client or a server, with a goroutine that reads and one that writes.
type side struct {
	l     *life
	name  string
	nc    *net.TCPConn
	from  int // where its bytes begin
	other *side

	write chan func() // what the writer does
	read  chan int    // how much the reader reads; closed for all
	tasks sync.WaitGroup

	mu     sync.Mutex
	more   *sync.Cond
	sent   int
	got    int
	wrote  error  // why it cannot write
	end    error  // how what it reads ended
	fin    bool   // it ended its side in order
	reset  bool   // it reset the connection, or left with bytes unread
	expect []byte // comes first: the header of the PROXY protocol
}

func newSide(l *life, name string, from int) *side {
	s := &side{l: l, name: name, from: from, write: make(chan func(), 200), read: make(chan int, 200)}
	s.more = sync.NewCond(&s.mu)
	return s
}

func (s *side) start(nc *net.TCPConn) {
	s.nc = nc
	if s.l.r.IntN(3) == 0 {
		nc.SetReadBuffer(64 << 10)
		nc.SetWriteBuffer(64 << 10)
	}
	s.tasks.Go(func() {
		for do := range s.write {
			do()
		}
	})
	s.tasks.Go(s.readAll)
}

// readAll reads as it is told, and then all.
func (s *side) readAll() {
	b := make([]byte, 64<<10)
	header := s.expect
	for {
		n, ok := <-s.read
		for !ok || n > 0 {
			p := b
			if ok {
				p = b[:min(n, len(b))]
			}
			m, err := s.nc.Read(p)
			n -= m
			p = p[:m]
			if k := min(len(header), len(p)); k > 0 {
				if string(header[:k]) != string(p[:k]) {
					s.l.fault("%s: wrong header", s.name)
				}
				header, p = header[k:], p[k:]
			}
			s.mu.Lock()
			at := s.other.from + s.got
			if string(p) != string(noise[at:at+len(p)]) {
				s.l.fault("%s: wrong bytes after %d", s.name, s.got)
				err = io.ErrNoProgress
			}
			s.got += len(p)
			if err != nil {
				s.end = err
			}
			s.more.Broadcast()
			s.mu.Unlock()
			if err != nil {
				return
			}
		}
	}
}

func (s *side) do(f func()) { s.write <- f }

func (s *side) send(n int) {
	s.mu.Lock()
	at, stop := s.from+s.sent, s.fin || s.reset || s.wrote != nil
	s.mu.Unlock()
	if stop {
		return
	}
	m, err := s.nc.Write(noise[at : at+n])
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent += m
	s.wrote = err
}

func (s *side) closeWrite() {
	s.mu.Lock()
	stop := s.fin || s.reset || s.wrote != nil
	s.mu.Unlock()
	if stop {
		return
	}
	err := s.nc.CloseWrite()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fin = err == nil
}

func (s *side) leave(hard bool) {
	s.mu.Lock()
	if s.reset {
		s.mu.Unlock()
		return
	}
	s.reset = true
	ended := s.fin
	s.mu.Unlock()
	if hard {
		s.nc.SetLinger(0)
	} else if !ended {
		s.mu.Lock()
		s.fin = s.wrote == nil // may be, if all was read
		s.mu.Unlock()
	}
	s.nc.Close()
}

func newLife(t *testing.T, r *rand.Rand) *life {
	l := &life{t: t, r: r}
	a, b := newSide(l, "client", r.IntN(1<<20)), newSide(l, "server", r.IntN(1<<20))
	a.other, b.other = b, a
	l.ends = [2]*side{a, b}
	return l
}

func (l *life) logf(format string, args ...any) {
	l.story = append(l.story, fmt.Sprintf(format, args...))
}

func (l *life) run() {
	t, r := l.t, l.r
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	accepted := make(chan *net.TCPConn, 1)
	dial := func(ctx context.Context) (net.Conn, error) {
		nc, err := netconn.Dial(ctx, ln.Addr().(*net.TCPAddr).AddrPort())
		if err != nil {
			return nil, err
		}
		far, err := ln.Accept()
		if err != nil {
			return nil, err
		}
		accepted <- far.(*net.TCPConn)
		return nc, nil
	}
	dials := []func(context.Context) (net.Conn, error){dial}
	for range r.IntN(3) {
		dials = slices.Insert(dials, 0, down)
	}
	l.h = prepare(dials...)
	l.h.Drain = time.Hour
	client, server := l.ends[0], l.ends[1]
	near, far := testhouse.Pair(t)
	early := ""
	if r.IntN(3) == 0 {
		early = string(noise[client.from : client.from+1+r.IntN(20000)])
		client.sent = len(early)
	}
	if r.IntN(3) == 0 {
		l.h.Send = proxyproto.V2
		server.expect = proxyproto.Append(nil, proxyproto.V2, near.RemoteAddr().(*net.TCPAddr).AddrPort(), near.LocalAddr().(*net.TCPAddr).AddrPort())
	}
	l.conn = New(l.h.Settings).NewConn(near, []byte(early), "")
	client.start(far)
	l.logf("early %d, %d servers", len(early), len(dials))
	l.done.Go(func() { testhouse.Serve(l.conn) })
	server.start(<-accepted)
	for range 3 + r.IntN(25) {
		l.move()
	}
	l.finish()
}

// move lets something happen.
func (l *life) move() {
	r := l.r
	s := l.ends[r.IntN(2)]
	switch k := r.IntN(40); {
	case k < 14:
		n := [...]int{1, 10, 100, 5000, 16 << 10, 16<<10 + 1, 40_000, 300_000}[r.IntN(8)]
		l.logf("%s sends %d", s.name, n)
		s.do(func() { s.send(n) })
	case k < 24:
		n := [...]int{1, 50, 4000, 16 << 10, 100_000, 1 << 20}[r.IntN(6)]
		l.logf("%s reads %d", s.name, n)
		select {
		case s.read <- n:
		default:
		}
	case k < 33:
		l.drain(s)
	case k < 36:
		l.logf("%s ends its side", s.name)
		s.do(s.closeWrite)
	case k == 36:
		l.logf("%s resets", s.name)
		s.do(func() { s.leave(true) })
	case k == 37:
		l.logf("%s leaves", s.name)
		s.do(func() { s.leave(false) })
	case k == 38 && r.IntN(4) == 0:
		l.logf("cut")
		l.cut = true
		l.conn.Close()
	default:
		l.logf("yield")
		for range r.IntN(100) {
			runtime.Gosched()
		}
	}
}

// drain lets a side read all that the other has sent.
func (l *life) drain(s *side) {
	flushed := make(chan int, 1)
	o := s.other
	o.do(func() { // after what it sends
		o.mu.Lock()
		defer o.mu.Unlock()
		flushed <- o.sent
	})
	l.logf("%s reads all", s.name)
	for range 40 {
		select {
		case s.read <- 300_000:
			continue
		default:
		}
		break
	}
	n := <-flushed
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.got < n && s.end == nil {
		s.more.Wait()
	}
}

// finish lets both read all and end their sides, and looks at what came of it.
func (l *life) finish() {
	client, server := l.ends[0], l.ends[1]
	for _, s := range l.ends {
		close(s.read)
		s.do(s.closeWrite)
		close(s.write)
	}
	for _, s := range l.ends {
		s.tasks.Wait()
	}
	broken := l.cut || client.reset || server.reset
	for _, s := range l.ends {
		o := s.other
		if s.end == io.EOF && s.wrote != nil {
			s.end = s.wrote // a socket tells of a reset once
		}
		switch {
		case s.end == io.EOF && s.got < o.sent:
			l.fault("%s was told of an end in order after %d of %d bytes", s.name, s.got, o.sent)
		case s.end == io.EOF && !o.fin:
			l.fault("%s was told of an end in order that was none", s.name)
		case s.end != io.EOF && !broken:
			l.fault("%s: %v after %d of %d bytes", s.name, s.end, s.got, o.sent)
		case s.end != io.EOF && !errors.Is(s.end, syscall.ECONNRESET) && !errors.Is(s.end, syscall.EPIPE) && !errors.Is(s.end, net.ErrClosed):
			l.fault("%s: %v", s.name, s.end)
		case !broken && s.wrote != nil:
			l.fault("%s could not write: %v", s.name, s.wrote)
		}
		s.nc.Close()
	}
	l.done.Wait()
	p := <-l.h.told
	if !broken {
		if p.Reason != exchange.None || p.Received != int64(client.sent) || p.Sent != int64(server.sent) {
			l.fault("told as %+v, want %d and %d bytes", p, client.sent, server.sent)
		}
	} else if p.Received > int64(client.sent) || p.Sent > int64(server.sent) || p.Received < int64(server.got) || p.Sent < int64(client.got) {
		l.fault("told as %+v; client %d %d server %d %d", p, client.sent, client.got, server.sent, server.got)
	}
	if !l.cut && p.Reason == exchange.ShuttingDown {
		l.fault("told as cut")
	}
	c := l.h.Roster.Counts()
	if c.Open != 0 || c.Received != uint64(p.Received) || c.Sent != uint64(p.Sent) {
		l.fault("counted %+v, told %+v", c, p)
	}
	for _, s := range l.h.Servers {
		if n := s.Gauge.Active(); n != 0 {
			l.fault("%d are counted at %s", n, s.Address)
		}
	}
}
