// Package h1 speaks HTTP/1.1 and HTTP/1.0 to clients.
//
// conn.go is the life of a connection: wait for a head, serve the exchange,
// wait again. request.go makes an Exchange of a head, send.go writes responses,
// body.go reads request bodies, tunnel.go joins upgraded connections,
// linger.go ends a connection so that the client still reads the last answer;
// yield.go ends one that is idle when another needs its place.
//
// The usual request has no body and is served inside the connection's one wait
// (see netconn). A request whose body has still to come, or that wants to
// upgrade, is served outside of it, since it reads from the connection itself.
package h1

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/netconn"
	"headgate/internal/proto/http1"
)

// Front serves the connections of one socket.
type Front struct {
	// Port returns the port that the socket currently belongs to. It is
	// called for each request and never returns nil.
	Port func() *exchange.Port
	// Scheme is what clients of the socket use, "http" or "https".
	Scheme string
	// Full reports whether other clients wait at the limit. Then a client that
	// has closed its side counts as gone at once, as it occupies the place of
	// another. Nil means never.
	Full func() bool
	// Clients bounds what the clients of the socket hold in memory. Nil bounds nothing.
	Clients *clients.Clients
}

// idleGrace is how long a connection that drains still waits for a request that may be in
// transit.
const idleGrace = time.Second

// Conn is one connection of a client.
type Conn struct {
	// constant
	front *Front
	nc    *netconn.Conn
	facts exchange.Conn
	step  func() bool

	// owned by the goroutine that runs Serve
	buf  netconn.Buffer
	port *exchange.Port
	work *work // held while a request is at hand
	last state // what came of the last step
	left int64 // when the client was first seen to have closed its side, or 0

	member *clients.Member // of its client, nil before that matters
	held   int64           // bytes that were counted for it
	waits  bool            // those of a request that waits are among them

	broken bool // the connection ends with a reset
	parted bool // the client has said that it sends nothing more

	idle     atomic.Int64 // since when no request is under way; 0 while one is, or yielded
	draining atomic.Bool
	sending  struct {
		sync.Mutex
		begun bool // the final response has begun; nothing interim may follow
	}
}

// work is what a connection needs while a request is at hand. An idle
// connection holds none.
type work struct {
	ex   exchange.Exchange
	head http1.RequestHead
	scan http1.Scanner
	body requestBody

	begun     int64 // when the first byte of the head came
	scanning  bool  // the head did not come whole
	keepAlive bool
}

// state is what came of a step.
type state uint8

const (
	waiting state = iota // for the next request, or for the rest of a head
	ready                // a request is at hand that has to be served outside the wait
	ended                // the connection has to be closed
	idle                 // the connection can wait without its goroutine
	gaveWay              // the connection is closed already, for the sake of another
	tunnels              // a tunnel goes on
)

var works = sync.Pool{New: func() any { return &work{} }}

// NewConn returns the connection of a client over nc, which may be a *tls.Conn
// after its handshake. serial must be unique.
func (f *Front) NewConn(nc net.Conn, serial uint64) *Conn {
	c := &Conn{front: f, nc: netconn.New(nc), facts: exchange.NewConn(nc, f.Scheme, serial)}
	c.step = c.onBytes
	c.idle.Store(exchange.Now())
	return c
}

// Drain makes the connection end after the request at hand, or soon if there is
// none. Any goroutine may call it.
func (c *Conn) Drain() {
	c.draining.Store(true)
	c.nc.Kick()
}

// Leave makes the connection end with the next response, which says so, or when its idle
// timeout is over. A client that sends a request on an idle connection does not lose it,
// as it would where the connection is closed while the request is on its way. Any
// goroutine may call it.
func (c *Conn) Leave() { c.draining.Store(true) }

// Close ends the connection immediately: it is no longer read or written. An exchange in
// progress notices soon; Close does not wait for it. The client gets a reset, so that it
// does not mistake a partial response for a complete one. Concurrent calls are allowed.
func (c *Conn) Close() error {
	end := c.nc.Close
	if c.idle.Load() == 0 {
		end = c.nc.Abort
	}
	// The socket's own Close waits for those who use it, and an exchange may be
	// served inside the connection's wait.
	go end()
	return nil
}

// halfClosed is how long a client that has closed its side is assumed to wait for its
// response. Most such clients have disconnected, which only a write would detect.
const halfClosed = int64(time.Second)

// Gone reports whether the client has disconnected. It is called while a server processes
// the request.
func (c *Conn) Gone() bool {
	c.hold() // the caller has waited a while
	switch c.nc.Peer() {
	case netconn.Present:
		return false
	case netconn.Gone:
		return true
	}
	if c.Hurry() {
		return true
	}
	now := exchange.Now()
	if c.left == 0 {
		c.left = now
	}
	return now-c.left >= halfClosed
}

// Hurry reports whether other clients wait at the limit, so that code that waits
// for a server should call Gone more often.
func (c *Conn) Hurry() bool { return c.front.Full != nil && c.front.Full() }

// Serve serves the requests of the connection until it ends, closes it, and returns
// nil; or until it has been idle for a while, or a tunnel has begun, and returns what
// waits on.
func (c *Conn) Serve() (park func(resume func()) bool) {
	defer func() {
		if park == nil {
			c.end()
		}
	}()
	if c.port == nil {
		c.port = c.front.Port()
		c.nc.SetReadWait(c.port.HeadTimeout)
		c.nc.SetWriteWait(c.port.WriteIdle)
	}
	if c.last == tunnels { // and is over now
		c.work.ex.EndTunnel()
		c.last = c.finish(c.work)
	} else {
		c.last = waiting
	}
	for c.next() {
		if c.work.ex.Request.Upgrade == "" && !c.reserve(waitMemory) {
			c.refuse(holdsTooMuch)
			c.last = ended
			break
		}
		c.waits = c.held > 0
		c.last = c.serve(c.work)
	}
	switch {
	case c.last == idle:
		return c.nc.ParkWait
	case c.last == tunnels:
		return c.carry
	case c.last != ended || c.broken: // gaveWay among them
	case c.parted:
		c.part()
	default:
		c.linger()
	}
	return nil
}

// next serves requests inside the connection's wait, until one is at hand that
// has to be served outside. It returns false when the connection is at its end.
func (c *Conn) next() bool {
	if c.last == ended || c.last == tunnels {
		return false
	}
	// What came behind a body is in the buffer already.
	if c.buf.Len() > 0 && !c.onBytes() {
		return c.last == ready
	}
	for {
		err := c.wait()
		switch {
		case err == nil:
			return c.last == ready
		case err == netconn.ErrQuiet:
			if c.rests() {
				c.last = idle
				return false
			}
		case !c.waitOn(err):
			return false
		}
	}
}

// wait serves requests inside one wait of the connection.
func (c *Conn) wait() error {
	if c.rests() {
		return c.nc.ServeOrQuiet(&c.buf, c.step)
	}
	return c.nc.Serve(&c.buf, c.step)
}

// rests reports whether no part of a request has arrived.
func (c *Conn) rests() bool { return c.work == nil && c.buf.Len() == 0 }

// end releases what the connection holds.
func (c *Conn) end() {
	c.nc.Close()
	c.release()
	c.buf.Drop()
	c.member.Leave()
}

func (c *Conn) release() {
	if c.work != nil {
		works.Put(c.work)
		c.work = nil
		c.buf.Free()
		c.yield()
	}
}

// waitOn decides whether a connection goes on after its wait ended with err.
func (c *Conn) waitOn(err error) bool {
	switch {
	case errors.Is(err, netconn.ErrKicked):
		if c.draining.Load() && c.work == nil {
			c.nc.SetReadWait(idleGrace)
		}
		return true
	case errors.Is(err, netconn.ErrTimeout) && c.work != nil:
		c.work.head.Reset()
		c.refuse(&exchange.Answer{Reason: exchange.RequestTimeout, Cause: "the request head did not arrive in time"})
		c.last = ended
	}
	return false
}

// onBytes looks at the bytes that were read: it serves every request that is
// there whole. It returns false when the connection's wait must be left.
func (c *Conn) onBytes() bool {
	for {
		c.last = c.request()
		if c.last != waiting {
			return false
		}
		if c.work != nil || c.buf.Len() == 0 {
			return true
		}
	}
}

// request serves the request at the front of the buffer if it is there whole
// and can be served inside the wait.
func (c *Conn) request() state {
	if c.work == nil {
		c.work = works.Get().(*work)
		c.work.begun, c.work.scanning = 0, false
	}
	w := c.work
	n, err := c.parse(w)
	switch {
	case err != nil:
		c.refuse(refusal(err))
		return ended
	case n == 0:
		return c.awaitHead(w)
	case c.idle.Swap(0) == yielded:
		return gaveWay
	case !c.room():
		c.refuse(holdsTooMuch)
		return ended
	}
	c.buf.Use(n)
	c.buf.Hold()
	c.newExchange(w)
	if c.nc.Flush() != nil { // what was answered before does not wait for this one
		return ended
	}
	if w.ex.Request.Body != nil && !w.body.atHand || w.ex.Request.Upgrade != "" {
		return ready
	}
	return c.serve(w)
}

// parse tries to parse a head. A head that did not come whole is parsed again
// only when that can have a result.
func (c *Conn) parse(w *work) (int, error) {
	limits := http1.Limits{HeadSize: c.port.HeadSize, Fields: c.port.HeadFields, URISize: c.port.URISize, StrictTarget: c.port.StrictTarget}
	b := c.buf.Bytes()
	if w.scanning && !w.scan.Ready(b, &limits) {
		return 0, nil
	}
	n, err := http1.ParseRequest(b, &limits, &w.head)
	if n == 0 && err == nil && !w.scanning {
		w.scanning, w.scan = true, http1.Scanner{}
		if w.scan.Ready(b, &limits) {
			n, err = http1.ParseRequest(b, &limits, &w.head)
		}
	}
	return n, err
}

// awaitHead makes space for the rest of a head and limits the time for it.
func (c *Conn) awaitHead(w *work) state {
	if w.begun == 0 {
		w.begun = exchange.Now()
		c.since(w.begun)
	}
	before := c.buf.Cap()
	if !c.buf.Grow(c.port.HeadSize + 4096) {
		c.refuse(&exchange.Answer{Reason: exchange.HeadTooLarge, Cause: http1.HeadTooLarge.Error()})
		return ended
	}
	if more := c.buf.Cap() - before; more > 0 && !c.reserve(int64(more)) {
		c.refuse(holdsTooMuch)
		return ended
	}
	c.nc.SetReadWait(0)
	if t := c.port.HeadTimeout; t > 0 {
		c.nc.SetReadUntil(w.begun + int64(t))
	}
	return waiting
}

// serve completes the current exchange and returns what follows.
func (c *Conn) serve(w *work) state {
	w.ex.TunnelGoesOn = true
	c.port.Serve(&w.ex)
	if w.ex.InTunnel() {
		return tunnels
	}
	return c.finish(w)
}

// finish readies the connection for the next request, or for its end.
func (c *Conn) finish(w *work) state {
	whole, now := w.body.finish(), w.ex.Times.End
	keep := w.keepAlive && whole
	c.parted = whole && !w.head.KeepAlive && c.buf.Len() == 0
	c.release()
	if !keep {
		return ended
	}
	c.sending.begun = false
	c.idle.Store(now)
	c.nc.SetReadUntil(now + int64(c.port.KeepAlive))
	c.nc.SetWriteWait(c.port.WriteIdle)
	return waiting
}

// refuse answers a request that is not valid. The connection ends with it.
func (c *Conn) refuse(answer *exchange.Answer) {
	w := c.work
	w.ex.Reset(&c.facts, c)
	w.ex.Place = c.port.Place
	w.ex.Limits = c.port.Limits
	w.ex.ClientIP = c.facts.Remote.Addr()
	w.ex.Times.Start = exchange.Now()
	c.describe(w)
	w.keepAlive = false
	w.head.Framing = http1.NoBody
	w.body.reset(c, w)
	c.port.Refuse(&w.ex, answer)
	c.release()
}

// refusal returns the answer for a head that breaks a rule.
func refusal(err error) *exchange.Answer {
	var rule http1.Error
	if !errors.As(err, &rule) {
		return exchange.Fail(exchange.BadRequest, err.Error())
	}
	reason := exchange.BadRequest
	switch rule.Status() {
	case 414:
		reason = exchange.URITooLong
	case 431:
		reason = exchange.HeadTooLarge
	case 501:
		reason = exchange.MethodUnknown
		if rule == http1.CodingUnknown {
			reason = exchange.CodingUnknown
		}
	case 505:
		reason = exchange.VersionUnknown
	}
	return exchange.Fail(reason, rule.Error())
}

// Remote returns the address of the client, as the PROXY protocol has it where that is
// spoken.
func (c *Conn) Remote() netip.Addr { return c.facts.Remote.Addr() }
