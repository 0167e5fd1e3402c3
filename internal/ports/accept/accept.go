// Package accept determines the protocol of a new connection, and passes it to the
// front for that protocol: it reads a header of the PROXY protocol first, then
// does the TLS handshake, or recognizes HTTP/2 without TLS, or finds the TCP proxy for
// the connection.
//
// accept.go is the path of a connection, handshake.go the TLS handshake, pass.go the
// TCP proxy for what a TLS client requests, yield.go the end of a connection that is
// closed to free capacity for another. The package knows no sockets: the caller
// accepts a connection and passes it on with its port.
package accept

import (
	"crypto/tls"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"headgate/internal/certs"
	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/front/h1"
	"headgate/internal/front/h2"
	"headgate/internal/metrics"
	"headgate/internal/netconn"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
	"headgate/internal/proto/proxyproto"
)

// Options is what the Fronts of a socket are made of.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// Port returns the port that the socket currently belongs to. It is called for
	// each request and never returns nil.
	Port func() *exchange.Port
	// Full reports whether connections wait for capacity; then clients that seem to have
	// disconnected are not waited for.
	Full func() bool
	// Refused is called for clients whose requests were rejected because they hold too
	// much memory.
	Refused func(client netip.Prefix)
	// Flooded is called for a client of HTTP/2 that was disconnected for
	// flooding.
	Flooded func(h2.Flood)
}

// Fronts is what speaks on the connections of one socket.
type Fronts struct {
	plain  speaker // without TLS
	secure speaker
	turn   chan struct{} // limits concurrent handshakes
}

// speaker is what speaks HTTP on a connection once it is known how.
type speaker struct {
	h1 *h1.Front
	h2 *h2.Front
}

// New returns what speaks on a socket.
func New(o Options) *Fronts {
	known := clients.New()
	known.Refused = o.Refused
	return &Fronts{plain: newSpeaker(&o, "http", known), secure: newSpeaker(&o, "https", known), turn: make(chan struct{}, handshakesAtOnce)}
}

func newSpeaker(o *Options, scheme string, known *clients.Clients) speaker {
	return speaker{
		h1: &h1.Front{Scheme: scheme, Port: o.Port, Full: o.Full, Clients: known},
		h2: &h2.Front{Scheme: scheme, Port: o.Port, Clients: known, Log: o.Log, Flooded: o.Flooded},
	}
}

// Conn returns the handler of a new connection to a port. Serials are unique;
// counter counts connections that end before anything is served on them.
func (f *Fronts) Conn(nc net.Conn, port *plan.Port, serial uint64, counter *metrics.Port) listen.Conn {
	header := port.Announced(nc)
	switch {
	case port.IsStream() && header == 0 && !port.ReadsHello() && port.Rest().Secure == nil:
		return port.Rest().NewConn(nc, nil, "")
	case port.IsStream():
		return &fresh{nc: nc, header: header, on: port, to: &f.plain, turn: f.turn, counter: counter, began: exchange.Now()}
	case port.TLS() != nil:
		return &fresh{nc: nc, header: header, on: port, tls: port.TLS(), to: &f.secure, serial: serial, turn: f.turn, counter: counter, began: exchange.Now()}
	case header > 0 || port.H2C():
		return &fresh{nc: nc, header: header, on: port, to: &f.plain, serial: serial, counter: counter, began: exchange.Now()}
	}
	return f.plain.h1.NewConn(nc, serial)
}

// fresh is a connection of which it is not yet known what is spoken on it: a proxy
// in front has to say whose it is, TLS to shake hands, or a client of HTTP/2
// without TLS to say so.
type fresh struct {
	// constant
	header  time.Duration // for a PROXY header to come; 0 for none
	on      *plan.Port
	tls     *tls.Config // nil on a port without TLS
	to      *speaker
	serial  uint64
	turn    chan struct{} // limits concurrent handshakes
	counter *metrics.Port
	began   int64 // when the connection was accepted

	nc    net.Conn // replaced, with mu held, by itself with other addresses
	early []byte   // was read from nc to find the requested server name

	mu struct {
		sync.Mutex
		conn     listen.Conn // once it is known what is spoken
		draining bool
		left     bool // its socket is another process's: see Leave
		closed   bool
	}
}

// Serve finds out what is spoken, and serves it.
func (f *fresh) Serve() (park func(resume func()) bool) {
	f.mu.Lock()
	c := f.mu.conn
	f.mu.Unlock()
	if c != nil {
		return c.Serve() // it was parked
	}
	if c = f.selectProtocol(); c == nil {
		f.nc.Close()
		return nil
	}
	f.mu.Lock()
	f.mu.conn = c
	draining, left, closed := f.mu.draining, f.mu.left, f.mu.closed
	f.mu.Unlock()
	switch {
	case closed:
		f.nc.Close()
		return nil
	case draining:
		c.Drain()
	case left:
		listen.Leave(c)
	}
	return c.Serve()
}

// selectProtocol returns what speaks on the connection, nil if nothing can.
func (f *fresh) selectProtocol() listen.Conn {
	if f.header > 0 && !f.announce() {
		return nil
	}
	if f.on.Rejects(f.nc) {
		f.refused(metrics.RefusedBanned)
		return nil
	}
	if f.on.IsStream() {
		return f.stream()
	}
	if f.tls == nil {
		if f.on.H2C() && netconn.BeginsWith(f.nc, h2.Preface, handshakeTime) {
			return f.to.h2.NewConn(f.nc, f.serial)
		}
		return f.to.h1.NewConn(f.nc, f.serial)
	}
	if f.on.ReadsHello() {
		switch proxy, name, ok := f.find(); {
		case !ok:
			return nil
		case proxy != nil:
			return f.carry(proxy, name)
		}
	}
	secure := f.shake(f.tls)
	if secure == nil {
		return nil
	}
	switch secure.ConnectionState().NegotiatedProtocol {
	case "h2":
		return f.to.h2.NewConn(secure, f.serial)
	case certs.ChallengeProtocol:
		secure.Close() // the certificate authority has its proof
		return nil
	}
	return f.to.h1.NewConn(secure, f.serial)
}

// announce reads the PROXY header and reports whether it is valid.
func (f *fresh) announce() bool {
	tcp, ok := f.nc.(netconn.Stream)
	if !ok {
		return false
	}
	nc, err := proxyproto.ReadHeader(tcp, f.header)
	if err != nil {
		f.refused(metrics.RefusedHeader)
		f.to.h2.Log.Debug("connection of a trusted peer refused", "peer", f.nc.RemoteAddr().String(), "error", err)
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nc = nc
	return true
}

// Remote returns the address of the client; not valid while it is not known.
func (f *fresh) Remote() netip.Addr {
	f.mu.Lock()
	c := f.mu.conn
	f.mu.Unlock()
	if known, ok := c.(interface{ Remote() netip.Addr }); ok {
		return known.Remote()
	}
	return netip.Addr{}
}

// beginGrace is how long a draining connection may take to show its protocol.
const beginGrace = time.Second

// Drain makes the connection end soon.
func (f *fresh) Drain() {
	f.mu.Lock()
	f.mu.draining = true
	c := f.mu.conn
	f.mu.Unlock()
	if c != nil {
		c.Drain()
		return
	}
	time.AfterFunc(beginGrace, f.giveUp)
}

// Leave makes the connection end without interruption: a handshake may take as long
// as usual.
func (f *fresh) Leave() {
	f.mu.Lock()
	f.mu.left = true
	c := f.mu.conn
	f.mu.Unlock()
	if c != nil {
		listen.Leave(c)
	}
}

// giveUp ends a connection of which it is still not known what is spoken on it.
func (f *fresh) giveUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.conn == nil {
		f.nc.Close()
	}
}

// Close ends the connection at once.
func (f *fresh) Close() error {
	f.mu.Lock()
	f.mu.closed = true
	c, nc := f.mu.conn, f.nc
	f.mu.Unlock()
	if c != nil {
		return c.Close()
	}
	return nc.Close()
}
