package ports

import (
	"crypto/tls"
	"net"
	"sync"
	"time"

	"headgate/internal/front/h1"
	"headgate/internal/front/h2"
	"headgate/internal/metrics"
	"headgate/internal/netconn"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
	"headgate/internal/proto/proxyproto"
)

// speaker is what speaks HTTP on a connection once it is known how.
type speaker struct {
	h1 *h1.Front
	h2 *h2.Front
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
	turn    chan struct{} // room for running handshakes
	counter *metrics.Port

	nc    net.Conn // replaced, with mu held, by itself with other addresses
	early []byte   // was read from nc to find out what the client asks for

	mu struct {
		sync.Mutex
		conn     listen.Conn // once it is known what is spoken
		draining bool
		closed   bool
	}
}

// Serve finds out what is spoken, and serves it.
func (f *fresh) Serve() {
	c := f.begin()
	if c == nil {
		f.nc.Close()
		return
	}
	f.mu.Lock()
	f.mu.conn = c
	draining, closed := f.mu.draining, f.mu.closed
	f.mu.Unlock()
	switch {
	case closed:
		f.nc.Close()
		return
	case draining:
		c.Drain()
	}
	c.Serve()
}

// begin returns what speaks on the connection, nil if nothing can.
func (f *fresh) begin() listen.Conn {
	if f.header > 0 && !f.announce() {
		return nil
	}
	if stream := f.on.Stream(); stream != nil {
		return stream.NewConn(f.nc, nil, "")
	}
	if f.tls == nil {
		if f.on.H2C() && netconn.BeginsWith(f.nc, h2.Preface, handshakeTime) {
			return f.to.h2.NewConn(f.nc, f.serial)
		}
		return f.to.h1.NewConn(f.nc, f.serial)
	}
	if f.on.PassesThrough() {
		if c := f.pass(); c != nil {
			return c
		}
	}
	secure := f.shake()
	if secure == nil {
		return nil
	}
	if secure.ConnectionState().NegotiatedProtocol == "h2" {
		return f.to.h2.NewConn(secure, f.serial)
	}
	return f.to.h1.NewConn(secure, f.serial)
}

// announce takes the PROXY header and reports whether it is one.
func (f *fresh) announce() bool {
	tcp, ok := f.nc.(*net.TCPConn)
	if !ok {
		return false
	}
	nc, err := proxyproto.Take(tcp, f.header)
	if err != nil {
		f.counter.Refused(metrics.RefusedHeader)
		f.to.h2.Log.Debug("connection of a trusted peer refused", "peer", f.nc.RemoteAddr().String(), "error", err)
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nc = nc
	return true
}

// beginGrace is how long a connection that drains may take to say what is spoken
// on it.
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
