// Package admin is the listener for operators: metrics, status and health pages
// over plain HTTP, on a loopback address unless the configuration says otherwise.
//
// New makes a Server that listens nowhere. It stands above the control, and takes
// part in its changes: Prepare opens the address that a configuration names, and the
// change is committed or cancelled together with the rest. There is no sign-in: a
// loopback address is guarded against pages in a browser (DNS rebinding), any other
// address is the operator's to guard.
//
// admin.go is the listener, waiting.go opens one whose address was busy, socket.go is
// the admin socket; pages.go, instance.go and purge.go are what they show and take.
package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/net/netutil"

	"headgate/internal/control"
	"headgate/internal/feature/cache"
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
	closeTimeout = 2 * time.Second
)

// Options is what the pages tell.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// Metrics answers /metrics.
	Metrics http.Handler
	// Ready reports whether requests are taken: a plan was applied and nothing
	// is being stopped. It may be called by several goroutines at once.
	Ready func() bool
	// Listen opens an address, beside the listener that serves now and is closed
	// if the change is committed; that is nil if there is none. Nil opens
	// addresses that do not overlap with it only.
	Listen func(address netip.AddrPort, now net.Listener) (net.Listener, error)
	// Status returns what /status shows as JSON: how everything stands; of the
	// proxies only that one, in full, whose name is asked for by ?proxy=, and nil
	// when there is none of that name. It may be called by several goroutines at
	// once. Without it there is no such page.
	Status func(proxy string) any
	// Purge takes out of caches what was asked, which was checked, and returns how
	// many responses there were, and of how many caches. It may be called by
	// several goroutines at once. Nil leaves the page out.
	Purge func(cache.Purge) (purged, caches int)
	// API answers what is below /api/. It is served on loopback addresses only, since
	// this listener speaks no TLS: elsewhere passwords would travel in the clear. Nil
	// leaves it out.
	API http.Handler
	// Console answers what no other page does: the pages for browsers. It is served on
	// loopback addresses only, as the API is, without which it can do nothing. Nil leaves
	// it out.
	Console http.Handler
	// Instance is told to programs on this machine at /instance. Nil leaves it out.
	Instance *Instance
	// Peers notes for the API who is at the other end of the admin socket. Nil is
	// api.OthersContext, so that this process itself has no rights there.
	Peers func(ctx context.Context, conn net.Conn) context.Context
	// Hosts returns the names that a loopback address answers to beside those of this
	// machine; nil is none.
	Hosts func() []string
	// FirstRetry and LastRetry are how long the listener waits for the next try when
	// its address is busy, at first and at most; zero is 2s and 30s.
	FirstRetry, LastRetry time.Duration
}

// Server serves the pages on at most one address. Its methods may be called by
// several goroutines at once.
type Server struct {
	log     *slog.Logger
	handler http.Handler
	open    func(address netip.AddrPort, now net.Listener) (net.Listener, error)
	hosts   func() []string
	first   time.Duration
	last    time.Duration

	mu struct {
		sync.Mutex
		open    *listener
		waiting netip.AddrPort // that cannot be opened yet; the zero address if none
		retry   *time.Timer
		closed  bool
	}
}

// listener is an address that is being served.
type listener struct {
	address netip.AddrPort
	socket  net.Listener
	server  *http.Server
	done    chan struct{} // serving has ended
}

// New returns a server that listens nowhere yet.
func New(o Options) *Server {
	s := &Server{log: o.Log, handler: pages(o), open: o.Listen, hosts: o.Hosts, first: cmp.Or(o.FirstRetry, firstRetry), last: cmp.Or(o.LastRetry, lastRetry)}
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
}

// Prepare opens the address that the listener should have; the zero address
// switches it off. The address in use now goes on until Commit. One that cannot be
// opened refuses the change. At the start, and if it waits already, it waits: ports
// are served all the same. The error wraps that of net.Listen.
func (s *Server) Prepare(next *control.Next) (control.Change, error) {
	address := next.Config.Admin.Address
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.mu.open; now != nil && now.address == address || now == nil && !address.IsValid() {
		return &change{server: s, same: true}, nil
	}
	if !address.IsValid() {
		return &change{server: s}, nil
	}
	l, err := s.listenLocked(address)
	if err == nil {
		return &change{server: s, next: l}, nil
	}
	if !ports.Temporary(err) || !next.Starting() && s.mu.waiting != address {
		return nil, fmt.Errorf("open admin address %s: %w; %s", address, err, ports.Help(err, address))
	}
	if next.Starting() {
		s.log.Warn("cannot bind admin listener, retrying; ports are serving", "address", address.String(), "error", err, "hint", ports.Help(err, address))
	}
	return &change{server: s, waits: address}, nil
}

func (s *Server) listenLocked(address netip.AddrPort) (*listener, error) {
	var now net.Listener
	if s.mu.open != nil {
		now = s.mu.open.socket
	}
	socket, err := s.open(address, now)
	if err != nil {
		return nil, err
	}
	return &listener{
		address: address,
		socket:  socket,
		server: &http.Server{
			Handler:           guard(s.handler, address.Addr().IsLoopback(), s.hosts),
			ReadHeaderTimeout: headTimeout,
			ReadTimeout:       readTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    headSize,
			ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		},
		done: make(chan struct{}),
	}, nil
}

// Commit begins to serve the new address and stops serving the old one.
func (c *change) Commit() {
	s := c.server
	s.mu.Lock()
	s.waitLocked(c.waits, s.first)
	if c.same {
		s.mu.Unlock()
		return
	}
	old := s.mu.open
	s.serveLocked(c.next)
	s.mu.Unlock()
	old.close()
}

// serveLocked makes l, which may be nil, the listener that is served.
func (s *Server) serveLocked(l *listener) {
	s.mu.open = l
	if l != nil {
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
}

func (l *listener) serve(log *slog.Logger) {
	defer close(l.done)
	err := l.server.Serve(netutil.LimitListener(l.socket, connections))
	if !errors.Is(err, http.ErrServerClosed) {
		log.Error("admin listener ended", "address", l.address, "error", err)
	}
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
