// Package tcp carries TCP connections of clients to servers, and looks at
// nothing in them. If TLS of clients is terminated, the caller has done the handshake.
//
// A Proxy is the compiled form of the settings; NewConn makes a connection of what
// a socket has accepted. conn.go is the life of a connection: check access, choose
// a server, relay, record. A Roster holds the connections and counts of one proxy
// and outlives its plans: a change of settings leaves open connections alone, and
// only the removal of the proxy ends them.
//
// Servers are chosen by package balance. Whether bytes go through the kernel or
// through this process is for netconn.Relay to know.
package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/proxyproto"
	"headgate/internal/server/balance"
)

// Server is one server of a proxy.
type Server struct {
	// Address is its host and port, as they were configured.
	Address string
	// Dial connects to it.
	Dial func(ctx context.Context) (net.Conn, error)
	// TLS is how it is spoken to; nil speaks no TLS.
	TLS *tls.Config
	// Fault says why a TLS handshake failed, and what helps.
	Fault func(error) string
	// Gauge counts its connections and decides whether it gets more.
	Gauge *balance.Gauge
	// Told is called with the result of each attempt: exchange.None if it succeeded,
	// otherwise what failed.
	Told func(exchange.Reason, error)
}

// Settings is what a Proxy is made of.
type Settings struct {
	// Name is the proxy's name.
	Name string
	// Servers are the servers, in the order of Group's members.
	Servers []*Server
	// Group chooses among them.
	Group *balance.Group
	// ConnectTimeout bounds the connection to each server, TLS included.
	ConnectTimeout time.Duration
	// IdleTimeout is how long nothing may move in either direction.
	IdleTimeout time.Duration
	// Drain is how long connections may go on when the proxy is gone.
	Drain time.Duration
	// Send is the version of the PROXY header that servers get; 0 sends none.
	Send proxyproto.Version
	// Secure is how TLS of clients is terminated; nil forwards their bytes unchanged. The
	// caller of NewConn performs the handshake.
	Secure *tls.Config
	// Filters say which clients are let in; none lets all.
	Filters exchange.StreamFilters
	// Record is called at the end of each connection. It may be nil.
	Record func(*exchange.Session)
	// Roster holds the connections.
	Roster *Roster
}

// Proxy is a TCP proxy. It is immutable and may be used by several goroutines at
// once.
type Proxy struct{ Settings }

// New returns a proxy.
func New(s Settings) *Proxy {
	s.Roster.drain.Store(int64(s.Drain))
	return &Proxy{s}
}

// Denies reports whether the filters do not let a client in. A caller need not perform a
// handshake for one: Serve closes its connection.
func (p *Proxy) Denies(client netip.Addr) bool { return p.Filters.Admit(client) != nil }

// connectAny connects to the server whose turn it is, or to another if that fails. The
// attempts are recorded in p. Gone is called between two attempts and reports whether
// the client has left.
func (p *Proxy) connectAny(told *exchange.Session, gone func() bool) (*Server, *netconn.Conn) {
	ask := balance.Ask{Now: clock.Now(), Key: balance.HashAddr(told.Client.Addr())}
	for {
		i, outcome := p.Group.Choose(&ask)
		if outcome != balance.Chosen {
			if told.Attempts == 0 {
				told.Reason, told.Cause = exchange.NoHealthyServer, "no server accepts connections"
			}
			return nil, nil
		}
		s := p.Servers[i]
		ask.Tried.Add(i)
		told.Server = s.Address
		told.Attempts++
		nc, err := p.connect(s, told)
		if err == nil {
			told.Reason, told.Cause = exchange.None, ""
			s.count(exchange.None, nil)
			return s, nc
		}
		s.Gauge.Release()
		told.Reason, told.Cause = reasonOf(err), err.Error()
		s.count(told.Reason, err)
		p.Roster.failed(told.Reason)
		if gone() {
			return nil, nil
		}
	}
}

func (s *Server) count(r exchange.Reason, err error) {
	if s.Told != nil {
		s.Told(r, err)
	}
}

// connect opens a connection to a server and says whose it is.
func (p *Proxy) connect(s *Server, told *exchange.Session) (*netconn.Conn, error) {
	ctx := bound(p.ConnectTimeout)
	defer ctx.stop()
	nc, err := s.Dial(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.announce(nc, told); err != nil {
		nc.Close()
		return nil, err
	}
	if s.TLS == nil {
		return netconn.New(nc), nil
	}
	secure := tls.Client(netconn.NewLazy(nc), s.TLS)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		return nil, &handshakeError{s, err}
	}
	return netconn.New(secure), nil
}

// announce sends the PROXY header, if it is enabled for the servers. The buffer
// of a new connection has space for it, so that it does not wait.
func (p *Proxy) announce(nc net.Conn, told *exchange.Session) error {
	if p.Send == 0 {
		return nil
	}
	_, err := nc.Write(proxyproto.Append(nil, p.Send, told.Client, told.Local))
	return err
}

// handshakeError is a TLS handshake with a server that failed.
type handshakeError struct {
	server *Server
	err    error
}

// Error says with which server, and what is wrong.
func (e *handshakeError) Error() string {
	what := e.err.Error()
	if e.server.Fault != nil {
		what = e.server.Fault(e.err)
	}
	return "TLS with " + e.server.Address + ": " + what
}

// Unwrap returns the error of crypto/tls.
func (e *handshakeError) Unwrap() error { return e.err }

// reasonOf names the reason for a connection that did not come about.
func reasonOf(err error) exchange.Reason {
	var dns *net.DNSError
	var shake *handshakeError
	var late interface{ Timeout() bool }
	switch {
	case errors.As(err, &dns):
		return exchange.UpstreamDNS
	case errors.As(err, &late) && late.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return exchange.UpstreamTimeout
	case errors.As(err, &shake):
		return exchange.UpstreamTLS
	}
	return exchange.UpstreamRefused
}
