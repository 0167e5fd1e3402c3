package listen

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/clock"
	"headgate/internal/netconn"
	"headgate/internal/ports/generations"
)

// QUIC is an open socket for connections of QUIC. Like a Socket it knows its
// address and nothing of the configuration.
//
// All its connections use one socket, so its address is free again only when the
// last of them has ended. A change that needs the address again meanwhile reopens
// the socket: Resume.
type QUIC struct {
	conns
	// constant
	udp       *net.UDPConn
	shared    *generations.Conn // udp, as two processes may share it
	transport *quic.Transport
	settings  QUICSettings
	released  chan struct{} // closed when the address is free again
	crowd     lockedCrowd

	accepting sync.WaitGroup
	shaking   atomic.Int64  // handshakes under way
	said      clock.Spacing // of log lines about lost datagrams

	// guarded by conns.mu
	listener *quic.Listener // nil before Serve
	accept   AcceptQUIC
	relay    *os.File // of an inherited socket, until Serve
	drains   uint64   // how often Drain was called
	ended    bool     // end was called
}

// QUICSettings are the settings of a new connection.
type QUICSettings struct {
	// TLS returns how TLS is spoken at the moment.
	TLS func() (*tls.Config, error)
	// Config returns how QUIC is spoken at the moment.
	Config func() *quic.Config
	// Full is called for a connection over the limit, Failed for one whose
	// handshake failed.
	Full, Failed func()
	// Banned reports whether connections of a client are rejected, after it has proven its
	// address: the source of a datagram can be forged. Reject is called for a rejected one.
	// Nil rejects none.
	Banned func(net.Addr) bool
	Reject func()
	// Lost counts datagrams that the system did not send (netconn.SendDatagram), and
	// reads that failed (netconn.ReceiveDatagram). Concurrent calls are allowed; nil
	// counts nothing.
	Lost func(op string)
	// Keys are those of the process; nil makes some that only this socket knows.
	Keys *QUICKeys
}

// QUICKeys are what a process of QUIC signs with, so that its successor understands it.
type QUICKeys struct {
	// Generation is the number of the process among those that have replaced each other.
	Generation byte `json:"-"`
	// Reset makes stateless resets (RFC 9000, section 10.3), Token the tokens by which
	// clients prove their address (section 8.1).
	Reset quic.StatelessResetKey `json:"reset"`
	Token quic.TokenGeneratorKey `json:"token"`
}

// NewQUICKeys returns new keys for the process of a generation.
func NewQUICKeys(generation int) *QUICKeys {
	k := &QUICKeys{Generation: byte(generation)}
	rand.Read(k.Reset[:]) // never fails: crypto/rand ends the process instead
	rand.Read(k.Token[:])
	return k
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

// acceptors is the number of goroutines that accept connections. quic-go refuses
// connections if none is waiting and a queue of 32 is full, which happens soon if the
// system pauses the thread for some milliseconds.
const acceptors = 32

// OpenQUIC binds an address. beside are sockets on overlapping addresses that will
// be closed soon. The error wraps that of the system, as that of Open does.
//
// The connections count in share, which ends with the socket; nil is no bound. There
// is no queue of the system's in which one too many could wait: it is refused.
func OpenQUIC(address netip.AddrPort, beside []*net.UDPConn, share *Share, settings QUICSettings, log *slog.Logger) (*QUIC, error) {
	udp, err := Packets(address, beside)
	if err != nil {
		return nil, fmt.Errorf("open %s (UDP): %w", address, err)
	}
	return newQUIC(address, udp, share, settings, log)
}

// newQUIC returns the socket over one of the system's, which it closes if it cannot.
func newQUIC(address netip.AddrPort, udp *net.UDPConn, share *Share, settings QUICSettings, log *slog.Logger) (*QUIC, error) {
	if settings.Keys == nil {
		settings.Keys = NewQUICKeys(1)
	}
	q := &QUIC{udp: udp, settings: settings, released: make(chan struct{})}
	datagrams, err := netconn.NewDatagrams(udp, q.failed)
	if err != nil {
		udp.Close()
		return nil, fmt.Errorf("open %s (UDP): %w", address, err)
	}
	q.init(address, share, log)
	q.shared = generations.New(datagrams, settings.Keys.Generation)
	q.transport = &quic.Transport{
		Conn: q.shared, ConnectionIDGenerator: generations.IDs{Generation: settings.Keys.Generation}, VerifySourceAddress: q.verifies, ConnContext: q.admit,
		StatelessResetKey: &settings.Keys.Reset, TokenGeneratorKey: &settings.Keys.Token,
	}
	return q, nil
}

// failed handles datagrams that the system does not send or read. It logs the first in a
// minute.
func (q *QUIC) failed(op string, err error) {
	if q.settings.Lost != nil {
		q.settings.Lost(op)
	}
	if !q.said.Due(clock.Now(), sayEvery) {
		return
	}
	q.log.Warn("datagrams of HTTP/3 are lost, connections go on", "operation", op, "address", q.address.String(),
		"error", err, "remedy", "see whether a packet filter, a full connection table or a missing route refuses them; headgate_datagrams_lost_total counts")
}

// Conn returns the socket, for others to be opened beside it.
func (q *QUIC) Conn() *net.UDPConn { return q.udp }

// Bound returns the address that the system assigned, which differs if the port
// number was left open.
func (q *QUIC) Bound() netip.AddrPort { return q.udp.LocalAddr().(*net.UDPAddr).AddrPort() }

// Serve starts to accept connections, in the background.
func (q *QUIC) Serve(accept AcceptQUIC) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.accept = accept
	if q.relay != nil {
		err := q.shared.Join(q.relay)
		q.relay.Close()
		if q.relay = nil; err != nil {
			q.log.Warn("connections of HTTP/3 to the previous process are lost", "address", q.address.String(), "error", err)
		}
	}
	return q.listenLocked()
}

// Serving reports whether Serve was called.
func (q *QUIC) Serving() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.listener != nil
}

func (q *QUIC) listenLocked() error {
	outer := &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{"h3"},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return q.settings.TLS() },

		GetEncryptedClientHelloKeys: q.echKeys, // crypto/tls decrypts before it calls GetConfigForClient
	}
	config := q.settings.Config()
	config.GetConfigForClient = func(*quic.ClientInfo) (*quic.Config, error) { return q.settings.Config(), nil }
	l, err := q.transport.Listen(outer, config)
	if err != nil {
		return fmt.Errorf("listen on %s (UDP): %w", q.address, err)
	}
	q.listener = l
	for range acceptors {
		q.accepting.Go(func() { q.loop(l) })
	}
	return nil
}

// echKeys returns the keys of Encrypted Client Hello that the port has at the moment.
func (q *QUIC) echKeys(hello *tls.ClientHelloInfo) ([]tls.EncryptedClientHelloKey, error) {
	cfg, err := q.settings.TLS()
	if err != nil || cfg.GetEncryptedClientHelloKeys == nil {
		return []tls.EncryptedClientHelloKey{}, err
	}
	return cfg.GetEncryptedClientHelloKeys(hello)
}

// loop accepts connections until the listener is closed.
func (q *QUIC) loop(l *quic.Listener) {
	for {
		qc, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		q.accepting.Go(func() { // what follows may wait for a lock
			qc.Context().Value(shakeKey{}).(*shake).complete(func() { q.serve(qc) })
		})
	}
}

// serve serves one connection, which has its place in the share.
func (q *QUIC) serve(qc *quic.Conn) {
	q.accepted.Add(1)
	q.start(q.accept(qc))
}

// shake is a handshake under way.
type shake struct {
	once sync.Once
	of   *QUIC
}

type shakeKey struct{}

// complete serves the connection, unless it has ended. It is among the handshakes until it is
// among the open connections, so that nothing ends between the two.
func (s *shake) complete(serve func()) {
	s.once.Do(func() {
		defer s.leave()
		serve()
	})
}

// fail notes that the handshake has failed, unless it was completed before.
func (s *shake) fail() {
	s.once.Do(func() {
		s.of.settings.Failed()
		s.of.share.remove()
		s.leave()
	})
}

func (s *shake) leave() {
	q := s.of
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shaking.Add(-1)
	if q.mu.draining {
		q.newsLocked()
	}
}

// Why a connection is not accepted.
var (
	errDraining = errors.New("the socket is being closed")
	errFull     = errors.New("there are too many connections")
	errBanned   = errors.New("the client is banned")
)

// verifies reports whether a client has to show that it gets what is sent to its address.
func (q *QUIC) verifies(client net.Addr) bool {
	return q.shaking.Load() >= verifyFrom || q.settings.Banned != nil && q.settings.Banned(client)
}

// admit decides whether to accept a connection.
func (q *QUIC) admit(ctx context.Context, client *quic.ClientInfo) (context.Context, error) {
	switch {
	case client.AddrVerified && q.settings.Banned != nil && q.settings.Banned(client.RemoteAddr):
		q.settings.Reject()
		return nil, errBanned
	case q.Draining() && !q.hasLeft(): // through a relay arrive only those that started here
		return nil, errDraining
	case q.shaking.Load() >= maxHandshakes, !q.room():
		q.settings.Full()
		return nil, errFull
	}
	q.shaking.Add(1)
	q.share.add()
	s := &shake{of: q}
	context.AfterFunc(ctx, s.fail)
	return context.WithValue(ctx, shakeKey{}, s), nil
}

// room reports whether another connection is allowed. One that is closed for it may
// be open for another moment.
func (q *QUIC) room() bool {
	_, room := q.share.room()
	return room || q.crowd.makeRoom(q.share)
}

// Unfinished returns how many connections are open or being opened. A handshake in progress
// can last as long as ten seconds.
func (q *QUIC) Unfinished() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.mu.open) + int(q.shaking.Load())
}

// Released is closed when the address is free for another socket.
func (q *QUIC) Released() <-chan struct{} { return q.released }

// Close closes the socket together with all its connections. To close again does
// no harm.
func (q *QUIC) Close() {
	q.mu.Lock()
	q.mu.draining = true
	q.newsLocked()
	q.mu.Unlock()
	q.end()
}

// Drain accepts no new connections, except those whose handshake is in progress, and
// drains the open ones. The function that it returns waits until all have ended, or
// cuts them at the deadline, and closes the socket: it returns how many connections
// were cut, and whether Resume has cancelled it.
func (q *QUIC) Drain(within time.Duration) (wait func() (cut int, resumed bool)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.draining = true
	q.drains++
	q.drainOpenLocked()
	drain := q.drains
	return func() (cut int, resumed bool) {
		late := time.NewTimer(within)
		defer late.Stop()
		ended := q.await(late.C, func() bool {
			resumed = !q.mu.draining || q.drains != drain
			return resumed || len(q.mu.open) == 0 && q.shaking.Load() == 0
		})
		if resumed {
			return 0, true
		}
		if !ended {
			cut = q.Len()
		}
		q.end()
		return cut, false
	}
}

// Resume reopens a draining socket. It reports false if it is too late for that.
func (q *QUIC) Resume() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return false
	}
	q.mu.draining = false
	q.newsLocked()
	return true
}

// end closes listener, connections and socket.
func (q *QUIC) end() {
	q.mu.Lock()
	l := q.listener
	if q.ended {
		q.mu.Unlock()
		<-q.released
		return
	}
	q.ended = true // from here on, Resume is too late
	q.mu.Unlock()
	q.Cut()
	if l != nil {
		l.Close()
	}
	q.transport.Close()
	q.shared.Close()
	close(q.released)
	q.accepting.Wait()
	q.running.Wait()
	q.share.Leave()
}
