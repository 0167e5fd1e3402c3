// Package admin is the listener for operators: the API, metrics, status and health
// pages, on a loopback address unless the configuration says otherwise.
//
// New makes a Server that does not listen yet. It participates in changes of the
// configuration: Prepare opens the address that a configuration names, and the change is
// committed or cancelled together with the rest. On a loopback address it serves plain HTTP
// unless a certificate is configured for it, elsewhere always TLS.
//
// It accepts requests for addresses, localhost and the names in the configuration only,
// which prevents DNS rebinding. Clients sign in, as described for the API; without that
// they get the health pages and, on this machine, the metrics. A loopback address alone
// gives no rights, because any proxy on this machine, including this one, connects from
// one.
//
// admin.go is the listener; tls.go is its TLS; waiting.go opens a listener whose address
// was busy; leave.go hands it to another process; socket.go is the admin socket; guard.go
// controls access; pages.go and instance.go are the pages.
package admin

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"headgate/internal/admin/api"
	"headgate/internal/control"
	"headgate/internal/plan"
	"headgate/internal/ports"
)

// The bounds of a client of the listener.
const (
	headTimeout  = 5 * time.Second
	readTimeout  = 10 * time.Second
	writeTimeout = 60 * time.Second
	idleTimeout  = 60 * time.Second
	headSize     = 16 << 10
	connections  = 2304 // streams of events among them
	ofOneAddress = connections * 3 / 4
	streams      = 100 // of a connection that speaks HTTP/2
	closeTimeout = 2 * time.Second
)

// Options are the sources of the pages.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// Metrics answers /metrics.
	Metrics http.Handler
	// NotReady returns why load balancers should send no requests here, "" if they should.
	// It may be called by several goroutines at once.
	NotReady func() string
	// Listen opens an address, beside the listener that serves now and is closed
	// if the change is committed; that is nil if there is none. Nil opens
	// addresses that do not overlap with it only.
	Listen func(address netip.AddrPort, now net.Listener) (net.Listener, error)
	// Status returns what /status shows as JSON. With a proxy name, it returns that proxy
	// in full and no other, or nil if there is no such proxy. It must be safe for
	// concurrent use. Without it there is no such page.
	Status func(proxy string) any
	// API serves paths below /api/ and authorizes access to the pages. Without it only
	// clients of the admin socket have access.
	API *api.API
	// Console answers what no other page does: the pages for browsers. Nil leaves it
	// out.
	Console http.Handler
	// Instance is served to programs on this machine at /instance; nil disables the page.
	Instance *Instance
	// Peers stores in the context which user is at the other end of the admin socket. Nil
	// is api.OthersContext, which grants no rights to this process itself.
	Peers func(ctx context.Context, conn net.Conn) context.Context
	// Group serves the other machine of a pair; nil if there is none.
	Group Group
	// Hosts returns the host names that are accepted, besides localhost and addresses; nil
	// is none.
	Hosts func() []string
	// Begin is closed when connections may be accepted; nil accepts at once.
	Begin <-chan struct{}
	// FirstRetry and LastRetry are how long the listener waits for the next try when
	// its address is busy, at first and at most; zero is 2s and 30s.
	FirstRetry, LastRetry time.Duration
}

// Group serves other machines on connections that are for the TLS name of their group: the
// machines have their own certificates, which browsers never see.
type Group interface {
	http.Handler
	// Config returns the TLS of a connection; nil if it is not for the group.
	Config(client *tls.ClientHelloInfo) *tls.Config
	// Serves reports whether a connection has the TLS of Config.
	Serves(state *tls.ConnectionState) bool
}

// Server serves the pages on at most one address. Its methods may be called by
// several goroutines at once.
type Server struct {
	log     *slog.Logger
	handler http.Handler
	group   Group // nil for none
	open    func(address netip.AddrPort, now net.Listener) (net.Listener, error)
	first   time.Duration
	last    time.Duration
	begin   <-chan struct{}
	closing sync.WaitGroup // listeners that changes have replaced

	mu struct {
		sync.Mutex
		open    *listener
		waiting netip.AddrPort // that cannot be opened yet; the zero address if none
		retry   *time.Timer
		tls     *plan.AdminTLS // of the configuration in use
		logged  string         // the fingerprint that was logged
		closed  bool
		left    *listener // to another process, see Leave
	}
}

// listener is an address that is being served.
type listener struct {
	address netip.AddrPort
	socket  net.Listener
	server  *http.Server
	secret  *secret       // nil speaks plain HTTP
	done    chan struct{} // serving has ended
}

// New returns a server that listens nowhere yet.
func New(o Options) *Server {
	s := &Server{log: o.Log, handler: grouped(o.Group, guard(pages(o), o.Hosts)), group: o.Group, open: o.Listen, first: cmp.Or(o.FirstRetry, firstRetry), last: cmp.Or(o.LastRetry, lastRetry), begin: o.Begin}
	if s.open == nil {
		s.open = func(address netip.AddrPort, _ net.Listener) (net.Listener, error) {
			return net.Listen("tcp", address.String())
		}
	}
	return s
}

// change is a listener that was opened and does not take connections yet.
type change struct {
	server *Server
	next   *listener
	same   bool
	waits  netip.AddrPort // the address that could not be opened
	tls    *plan.AdminTLS // nil for plain HTTP
}

// Prepare opens the address of the listener; the zero address disables it. The current
// listener is used until Commit. An address that cannot be opened rejects the change,
// except at startup or if the listener is waiting for its address already: then it keeps
// waiting, and the ports are served. The error wraps that of net.Listen.
func (s *Server) Prepare(next *control.Next) (control.Change, error) {
	address, secure := next.Config.Admin.Address, next.Plan.AdminTLS()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.mu.open; now != nil && now.address == address && (now.secret == nil) == (secure == nil) || now == nil && !address.IsValid() {
		return &change{server: s, same: true, tls: secure}, nil
	}
	if !address.IsValid() {
		return &change{server: s}, nil
	}
	l, err := s.listenLocked(address, secure)
	if err == nil {
		return &change{server: s, next: l, tls: secure}, nil
	}
	if !ports.Temporary(err) || !next.Starting() && s.mu.waiting != address {
		return nil, fmt.Errorf("open admin address %s: %w; %s", address, err, ports.Help(err, address))
	}
	if next.Starting() {
		s.log.Warn("cannot bind admin listener, retrying; ports are serving", "address", address.String(), "error", err, "hint", ports.Help(err, address))
	}
	return &change{server: s, waits: address, tls: secure}, nil
}

func (s *Server) listenLocked(address netip.AddrPort, secure *plan.AdminTLS) (*listener, error) {
	var now net.Listener
	if s.mu.open != nil {
		now = ungated(s.mu.open.socket)
	}
	socket, err := s.open(address, now)
	if err != nil {
		return nil, err
	}
	return s.newListener(address, secure != nil, socket), nil
}

// newListener returns what serves a socket, which accepts nothing yet.
func (s *Server) newListener(address netip.AddrPort, secure bool, socket net.Listener) *listener {
	l := &listener{
		address: address,
		socket:  gated(socket, s.begin),
		server: &http.Server{
			Handler:           s.handler,
			ReadHeaderTimeout: headTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    headSize,
			HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: streams},
			ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		},
		done: make(chan struct{}),
	}
	if secure {
		l.secret = &secret{}
		l.server.TLSConfig = l.secret.config(s.group)
	}
	return l
}

// Commit begins to serve the new address and stops serving the old one, in the
// background: a client there, which may have made this very change, is slow or not.
func (c *change) Commit() {
	s := c.server
	s.mu.Lock()
	s.mu.tls = c.tls
	s.waitLocked(c.waits, s.first)
	if c.same {
		s.secureLocked()
		s.mu.Unlock()
		return
	}
	old := s.mu.open
	s.serveLocked(c.next)
	s.mu.Unlock()
	old.stopListening()
	s.closing.Go(old.close)
}

// serveLocked makes l, which may be nil, the listener that is served.
func (s *Server) serveLocked(l *listener) {
	s.mu.open = l
	if l != nil {
		s.secureLocked()
		go l.serve(s.log)
	}
}

// Cancel closes the new address again.
func (c *change) Cancel() {
	if c.next != nil {
		c.next.socket.Close()
	}
}

// Address returns the address that is served, with the port that the system
// chose where the configuration left it open. It is the zero address when the
// listener is off.
func (s *Server) Address() netip.AddrPort {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.open == nil {
		return netip.AddrPort{}
	}
	a, _ := netip.ParseAddrPort(s.mu.open.socket.Addr().String())
	return a
}

// Close stops serving. It gives requests under way a short time to end.
func (s *Server) Close() {
	s.mu.Lock()
	old := s.mu.open
	s.mu.open, s.mu.closed = nil, true
	s.waitLocked(netip.AddrPort{}, 0)
	s.mu.Unlock()
	old.close()
	s.closing.Wait()
}

func (l *listener) serve(log *slog.Logger) {
	defer close(l.done)
	bounded := netutil.LimitListener(share(l.socket, ofOneAddress), connections)
	var err error
	if l.secret != nil {
		err = l.server.ServeTLS(bounded, "", "")
	} else {
		err = l.server.Serve(bounded)
	}
	if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
		log.Error("admin listener ended", "address", l.address, "error", err)
	}
}

// stopListening has l, which may be nil, take no more connections. Requests under way go
// on until close.
func (l *listener) stopListening() {
	if l == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	_ = l.server.Shutdown(now) // it closes the socket, and does not wait for requests
	l.socket.Close()           // if it is not served yet
}

// close stops serving l, which may be nil.
func (l *listener) close() {
	if l == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
	defer cancel()
	if l.server.Shutdown(ctx) != nil {
		l.server.Close()
	}
	l.socket.Close() // Shutdown does not know a socket that is not served yet
	<-l.done
}
