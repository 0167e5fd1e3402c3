package tcp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"syscall"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
)

// Conn is one connection of a client.
type Conn struct {
	// constant
	proxy *Proxy
	nc    net.Conn
	early []byte

	told   exchange.Session // owned by Serve
	server *Server          // owned by Serve: whom it is carried to, nil before

	next, before *Conn // in the roster, guarded by its mu

	mu struct {
		sync.Mutex
		relay  *netconn.Relay // set once, when a server was reached
		closed bool
	}
}

// NewConn returns the connection of a client over nc, which it owns from then on.
// early contains bytes that were read from it already and are sent to the server
// first. Of a *tls.Conn the handshake is over. name is the server name that the client requested, if known.
func (p *Proxy) NewConn(nc net.Conn, early []byte, name string) *Conn {
	c := &Conn{proxy: p, nc: nc, early: early}
	facts := exchange.NewConn(nc, "tcp", 0)
	c.told = exchange.Session{
		Protocol: "tcp", Proxy: p.Name, Name: name, Start: exchange.Now(),
		Client: facts.Remote, Local: facts.Local, Peer: facts.Remote,
		TLSVersion: facts.TLSVersion, ClientSubject: facts.ClientSubject,
	}
	if a, ok := beneath(nc).(*netconn.Announced); ok {
		c.told.Peer = exchange.NewConn(a.Stream, "tcp", 0).Remote
	}
	return c
}

// beneath returns the connection that carries TLS, or the connection itself.
func beneath(nc net.Conn) net.Conn {
	for {
		over, ok := nc.(interface{ NetConn() net.Conn })
		if !ok {
			return nc
		}
		nc = over.NetConn()
	}
}

// Serve finds a server and returns what carries the connection to its end; called again
// then, or where there is nothing to carry, it returns nil.
func (c *Conn) Serve() (park func(resume func()) bool) {
	defer func() {
		if park == nil {
			c.finish()
		}
	}()
	if c.server != nil {
		return nil // it was carried
	}
	c.proxy.Roster.add(c)
	if answer := c.proxy.Filters.Admit(c.told.Client.Addr()); answer != nil {
		c.told.Reason, c.told.Cause = answer.Reason, answer.Cause
		c.proxy.Roster.failed(answer.Reason)
		c.nc.Close()
		return nil
	}
	client := netconn.New(c.nc)
	server, conn := c.proxy.connectAny(&c.told, func() bool { return c.gone(client) })
	if conn == nil {
		c.giveUp(client)
		return nil
	}
	c.server = server
	c.told.Connected = exchange.Now()
	if !c.join(client, conn) {
		return nil
	}
	return c.carry
}

// Drain leaves the connection open: nothing shows where a stream could end. It
// is cut at the deadline of the drain.
func (c *Conn) Drain() {}

// Close ends the connection at once. Any goroutine may call it. A client for whom no
// server was found yet is reset, as one that is cut: it has got nothing.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.closed = true
	if c.mu.relay != nil {
		c.mu.relay.Cut()
		return nil
	}
	return netconn.New(c.nc).Abort()
}

// gone reports whether the client has left before a server was found for it.
func (c *Conn) gone(client *netconn.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.mu.closed && client.Peer() != netconn.Gone {
		return false
	}
	c.told.Reason, c.told.Cause = exchange.ClientClosed, "the client has left; before that: "+c.told.Cause
	return true
}

// giveUp resets the connection of a client for which there is no server, so that
// it does not look like an empty stream.
func (c *Conn) giveUp(client *netconn.Conn) {
	client.ResetOnClose()
	client.Close()
}

// join readies the relay between client and server, after the server has got what came
// early. It returns false, with both closed, if it did not get it.
func (c *Conn) join(client, server *netconn.Conn) bool {
	r := c.proxy.Roster
	if len(c.early) > 0 {
		server.SetWriteWait(c.proxy.ConnectTimeout)
		_, err := server.Write(c.early)
		if err == nil {
			err = server.Flush()
		}
		if err != nil {
			c.told.Reason, c.told.Cause = exchange.UpstreamReset, err.Error()
			server.Close()
			c.giveUp(client)
			return false
		}
		c.told.Received = int64(len(c.early))
		r.up.Add(uint64(len(c.early)))
		c.early = nil // a connection may last for days
	}
	relay := &netconn.Relay{Client: client, Server: server, Idle: c.proxy.IdleTimeout, Up: &r.up, Down: &r.down}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.relay = relay
	if c.mu.closed {
		relay.Cut()
	}
	return true
}

// carry carries the connection, and calls over at its end. It returns true once nothing
// moves, or at that end.
func (c *Conn) carry(over func()) bool {
	relay := c.mu.relay // constant from here on
	relay.Start(func(err error) {
		up, down := relay.Moved()
		c.told.Received += up
		c.told.Sent = down
		c.told.Reason, c.told.Cause = ending(err)
		over()
	})
	return true
}

// ending says in the words of the log how a connection has ended.
func ending(err error) (exchange.Reason, string) {
	var server *netconn.ServerError
	var client *netconn.ClientError
	switch {
	case err == nil:
		return exchange.None, ""
	case errors.Is(err, netconn.ErrCut):
		return exchange.ShuttingDown, "it was cut, its time to end was over"
	case errors.As(err, &server) && errors.Is(err, syscall.ETIMEDOUT):
		return exchange.UpstreamTimeout, err.Error()
	case errors.As(err, &server):
		return exchange.UpstreamReset, err.Error()
	case errors.As(err, &client):
		return exchange.ClientClosed, err.Error()
	case errors.Is(err, netconn.ErrTimeout):
		return exchange.None, "nothing moved for the idle time"
	}
	return exchange.UpstreamReset, err.Error()
}

// finish ends what is known of the connection.
func (c *Conn) finish() {
	if c.server != nil {
		c.server.Gauge.Release()
	}
	c.told.End = exchange.Now()
	c.proxy.Roster.remove(c)
	switch c.told.Reason {
	case exchange.UpstreamReset, exchange.ClientClosed, exchange.ShuttingDown, exchange.NoHealthyServer:
		c.proxy.Roster.failed(c.told.Reason)
	}
	if c.proxy.Record != nil {
		c.proxy.Record(&c.told)
	}
}

// Remote returns the address of the client.
func (c *Conn) Remote() netip.Addr { return netconn.AddressOf(c.nc.RemoteAddr()) }
