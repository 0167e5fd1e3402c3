package listen

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"
)

// QUIC is an open socket for connections of QUIC. Like a Socket it knows its
// address and nothing of the configuration.
//
// All its connections go through one socket, so its address is free again only
// when the last of them has ended. A change that wants the address back meanwhile
// takes the socket back: Resume.
type QUIC struct {
	// constant
	address   netip.AddrPort
	log       *slog.Logger
	udp       *net.UDPConn
	transport *quic.Transport
	settings  QUICSettings
	released  chan struct{} // closed when the address is free again

	accepting sync.WaitGroup
	running   sync.WaitGroup
	accepted  atomic.Uint64
	shaking   atomic.Int64 // handshakes under way

	mu struct {
		sync.Mutex
		listener *quic.Listener // nil before Serve
		accept   AcceptQUIC
		conns    map[Conn]struct{}
		most     int
		draining bool
		drains   uint64        // how often Stop was called
		ended    bool          // end was called
		news     chan struct{} // closed when one of these changes: draining, conns
	}
}

// QUICSettings are what a connection gets when it begins.
type QUICSettings struct {
	// TLS returns how TLS is spoken at the moment.
	TLS func() (*tls.Config, error)
	// Config returns how QUIC is spoken at the moment.
	Config func() *quic.Config
	// Full hears of a connection that was one too many, Failed of one whose
	// handshake failed.
	Full, Failed func()
}

// AcceptQUIC makes a Conn of a connection whose handshake has ended. It must not
// wait.
type AcceptQUIC func(*quic.Conn) Conn

// Bounds of handshakes under way on one socket. Beyond the first a client has to
// show that it gets what is sent to its address, which costs it a round trip and
// us nothing (RFC 9000, section 8.1.2); beyond the second it is refused.
const (
	verifyFrom    = 64
	maxHandshakes = 1024
)

// OpenQUIC binds an address. beside are sockets on overlapping addresses that will
// be closed soon. The error wraps that of the system, as that of Open does.
func OpenQUIC(address netip.AddrPort, beside []*net.UDPConn, settings QUICSettings, log *slog.Logger) (*QUIC, error) {
	udp, err := Packets(address, beside)
	if err != nil {
		return nil, fmt.Errorf("open %s (UDP): %w", address, err)
	}
	q := &QUIC{address: address, log: log, udp: udp, settings: settings, released: make(chan struct{})}
	q.mu.conns, q.mu.news = map[Conn]struct{}{}, make(chan struct{})
	q.transport = &quic.Transport{
		Conn: udp, VerifySourceAddress: func(net.Addr) bool { return q.shaking.Load() >= verifyFrom }, ConnContext: q.admit,
	}
	return q, nil
}

// Conn returns the socket, for others to be opened beside it.
func (q *QUIC) Conn() *net.UDPConn { return q.udp }

// Address returns what the socket is bound to.
func (q *QUIC) Address() netip.AddrPort { return q.address }

// Bound returns the address the system gave, which differs where the port number
// was left open.
func (q *QUIC) Bound() netip.AddrPort { return q.udp.LocalAddr().(*net.UDPAddr).AddrPort() }

// Accepted returns how many connections were taken.
func (q *QUIC) Accepted() uint64 { return q.accepted.Load() }

// Len returns how many connections are open.
func (q *QUIC) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.conns)
}

// SetMost bounds the number of open connections; more are refused, as there is no
// queue of the system's in which they could wait. 0 is no bound.
func (q *QUIC) SetMost(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.most = n
}

// Serve begins to take connections, in the background.
func (q *QUIC) Serve(accept AcceptQUIC) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.accept = accept
	return q.listenLocked()
}

// Draining reports whether the socket drains.
func (q *QUIC) Draining() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.draining
}

// Serving reports whether Serve was called.
func (q *QUIC) Serving() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.mu.listener != nil
}

func (q *QUIC) listenLocked() error {
	outer := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h3"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return q.settings.TLS() },
	}
	config := q.settings.Config()
	config.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) { return q.settings.Config(), nil }
	l, err := q.transport.Listen(outer, config)
	if err != nil {
		return fmt.Errorf("listen on %s (UDP): %w", q.address, err)
	}
	q.mu.listener = l
	q.accepting.Go(func() { q.loop(l) })
	return nil
}

// loop takes connections until the listener is closed.
func (q *QUIC) loop(l *quic.Listener) {
	for {
		qc, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		qc.Context().Value(shakeKey{}).(*shake).end(false)
		q.take(qc)
	}
}

// take serves one connection.
func (q *QUIC) take(qc *quic.Conn) {
	q.accepted.Add(1)
	c := q.mu.accept(qc)
	q.mu.Lock()
	q.mu.conns[c] = struct{}{}
	draining := q.mu.draining
	q.mu.Unlock()
	q.running.Go(func() { q.run(c) })
	if draining {
		c.Drain()
	}
}

// run serves a connection. A broken invariant ends this connection and no other.
func (q *QUIC) run(c Conn) {
	defer q.remove(c)
	defer func() {
		if v := recover(); v != nil {
			c.Close()
			q.log.Error("connection ended by a broken invariant", "address", q.address.String(), "panic", v, "stack", string(debug.Stack()))
		}
	}()
	c.Serve()
}

func (q *QUIC) remove(c Conn) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.mu.conns, c)
	q.tellLocked()
}

// tellLocked lets those look again who wait for a change.
func (q *QUIC) tellLocked() {
	close(q.mu.news)
	q.mu.news = make(chan struct{})
}

// shake is a handshake under way.
type shake struct {
	once sync.Once
	of   *QUIC
}

type shakeKey struct{}

// end notes the end of the handshake, once.
func (s *shake) end(failed bool) {
	s.once.Do(func() {
		q := s.of
		if failed {
			q.settings.Failed()
		}
		q.mu.Lock()
		defer q.mu.Unlock()
		q.shaking.Add(-1)
		if q.mu.draining {
			q.tellLocked()
		}
	})
}

// Why a connection is not taken.
var (
	errDraining = errors.New("the socket is being closed")
	errFull     = errors.New("there are too many connections")
)

// admit decides whether a connection may begin.
func (q *QUIC) admit(ctx context.Context, _ *quic.ClientInfo) (context.Context, error) {
	q.mu.Lock()
	draining, open, most := q.mu.draining, len(q.mu.conns), q.mu.most
	q.mu.Unlock()
	shaking := int(q.shaking.Load())
	switch {
	case draining:
		return nil, errDraining
	case most > 0 && open+shaking >= most, shaking >= maxHandshakes:
		q.settings.Full()
		return nil, errFull
	}
	q.shaking.Add(1)
	s := &shake{of: q}
	context.AfterFunc(ctx, func() { s.end(true) })
	return context.WithValue(ctx, shakeKey{}, s), nil
}

// Renew makes the open connections end soon; new ones are taken as before.
func (q *QUIC) Renew() {
	q.mu.Lock()
	defer q.mu.Unlock()
	for c := range q.mu.conns {
		c.Drain()
	}
}

// Released is closed when the address is free for another socket.
func (q *QUIC) Released() <-chan struct{} { return q.released }

// Close closes the socket together with all its connections. To close again does
// no harm.
func (q *QUIC) Close() {
	q.mu.Lock()
	q.mu.draining = true
	q.tellLocked()
	q.mu.Unlock()
	q.end()
}

// Stop takes no new connections, but those whose handshake is under way, and tells
// the open ones to end. It returns what Drain has to be given.
func (q *QUIC) Stop() (drain uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.draining = true
	q.mu.drains++
	for c := range q.mu.conns {
		c.Drain()
	}
	return q.mu.drains
}

// Drain waits, after Stop, until all connections have ended, or cuts them when the
// time is over, and closes the socket. It returns how many connections were cut;
// resumed says that Resume has called it off.
func (q *QUIC) Drain(drain uint64, within time.Duration) (cut int, resumed bool) {
	late := time.NewTimer(within)
	defer late.Stop()
	for {
		q.mu.Lock()
		open, news := len(q.mu.conns), q.mu.news
		if !q.mu.draining || q.mu.drains != drain {
			q.mu.Unlock()
			return 0, true
		}
		if open == 0 && q.shaking.Load() == 0 {
			q.mu.Unlock()
			q.end()
			return 0, false
		}
		q.mu.Unlock()
		select {
		case <-news:
		case <-late.C:
			open = q.Len()
			q.end()
			return open, false
		}
	}
}

// Resume takes a socket back into use that drains. It reports false if it is too
// late for that.
func (q *QUIC) Resume() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.mu.ended {
		return false
	}
	q.mu.draining = false
	q.tellLocked()
	return true
}

// end closes listener, connections and socket.
func (q *QUIC) end() {
	q.mu.Lock()
	l := q.mu.listener
	if q.mu.ended {
		q.mu.Unlock()
		<-q.released
		return
	}
	q.mu.ended = true // from here on, Resume is too late
	conns := make([]Conn, 0, len(q.mu.conns))
	for c := range q.mu.conns {
		conns = append(conns, c)
	}
	q.mu.Unlock()
	for _, c := range conns {
		c.Close()
	}
	if l != nil {
		l.Close()
	}
	q.transport.Close()
	q.udp.Close()
	close(q.released)
	q.accepting.Wait()
	q.running.Wait()
}
