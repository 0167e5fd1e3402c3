// Package h3 speaks HTTP/3 (RFC 9114) to clients, over connections of quic-go.
//
// QUIC provides streams, flow control, loss recovery and TLS; this package implements
// HTTP's frames. It does not use quic-go's http3 package, whose requests are those of
// net/http: there the order and spelling of headers are lost, malformed requests cannot be
// detected, and every request is made twice.
//
// conn.go is the life of a connection, control.go its control stream. Each request is
// served by a goroutine of the crew (internal/front/crew): stream.go reads its head, body.go its
// body, send.go sends the response, tunnel.go relays an extended CONNECT. input.go and
// frame.go read frames, encode.go encodes field sections.
//
// Everything that a client sends is limited: QUIC's windows limit its memory, a stream is
// granted again only when its exchange has ended, and budget.go limits the work that it
// causes. yield.go ends a connection without requests when another one needs its place.
package h3

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/front/crew"
)

// Front serves the HTTP/3 connections of one socket.
type Front struct {
	// Port returns the port that the socket currently belongs to. It is
	// called for each request and never returns nil.
	Port func() *exchange.Port
	// Clients bounds what the clients of the socket hold in memory, and knows those
	// that break rules on one connection after the other. nil bounds nothing.
	Clients *clients.Clients
	// Log receives connections that were ended because of a protocol error or a flood. It
	// may be nil.
	Log *slog.Logger
	// Flooded counts the connections that were ended because of a flood, by its name. It
	// must be safe for concurrent use; it may be nil.
	Flooded func(word string)

	conns sync.Map // *quic.Conn: *Conn, of the connections that are served
	crew  crew.Crew
	bound streamBound
	long  atomic.Int32 // responses that have memory for long pieces
}

// Conn is one connection of a client.
type Conn struct {
	// constant
	front *Front
	quic  *quic.Conn
	facts exchange.Conn

	member  *clients.Member
	workers sync.WaitGroup // the requests and the control streams that are served

	offends  bool // the client broke too many rules on other connections
	budget   budget
	together together
	credit   credit

	mu struct {
		sync.Mutex
		control  *quic.SendStream
		running  int           // requests under way
		places   int           // requests that memory was reserved for
		next     quic.StreamID // the first request stream that was not accepted
		quiet    int64         // when the last request ended
		due      *time.Timer   // looks at the state; nil before Serve, and when the connection has ended
		draining bool          // the connection is to end soon
		told     bool          // GOAWAY was sent
		last     bool          // no new requests are accepted
		held     bool          // nothing is accepted at all, and the connection ends soon
		kinds    uint8         // unidirectional streams that came, a bit each
	}
}

// NewConn returns the connection of a client after its handshake. serial must be
// unique.
func (f *Front) NewConn(qc *quic.Conn, serial uint64) *Conn {
	state := qc.ConnectionState().TLS
	c := &Conn{
		front: f, quic: qc,
		facts: exchange.NewSecureConn(qc.RemoteAddr(), qc.LocalAddr(), &state, serial),
	}
	c.mu.quiet = exchange.Now()
	c.budget.since = c.mu.quiet
	return c
}

// Drain ends the connection after the active requests. The client gets GOAWAY. It is safe
// for concurrent use.
func (c *Conn) Drain() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.draining = true
	c.lookLocked()
}

// Close ends the connection at once. Exchanges under way notice soon; Close does
// not wait for them. Any goroutine may call it.
func (c *Conn) Close() error {
	return c.quic.CloseWithError(noError.wire(), "")
}

// lookLocked makes the timer look at the state now. c.mu is held.
func (c *Conn) lookLocked() {
	if c.mu.due != nil {
		c.mu.due.Reset(0)
	}
}

// Serve serves the requests of the connection until it ends. It returns nil, when the
// last exchange has ended.
func (c *Conn) Serve() (park func(resume func()) bool) {
	c.member = c.front.Clients.Join(c.facts.Remote.Addr())
	defer c.member.Leave()
	c.front.conns.Store(c.quic, c)
	defer c.front.conns.Delete(c.quic)
	c.front.crew.Join()
	defer c.front.crew.Leave()
	defer c.workers.Wait()
	if c.offends = c.member.Offender(); c.offends {
		c.budget.spent[resetFlood] = floods[resetFlood].most - offenderResets
	}
	if err := c.greet(); err != nil {
		c.fail(broken(streamCreationError, "the client accepts no control stream (RFC 9114, section 6.2)"))
		return nil
	}
	c.workers.Go(func() {
		defer c.guard()
		c.acceptRequests()
	})
	c.watch()
	defer c.unwatch()
	c.acceptControls()
	<-c.quic.Context().Done()
	return nil
}

// guard ends the connection if the goroutine that defers it has panicked: a broken
// invariant ends one connection, and not the process with all of them. It acquires no
// lock, which that goroutine may hold.
func (c *Conn) guard() {
	if v := recover(); v != nil {
		exchange.Broken(c.front.Log, v, "HTTP/3 connection", "peer", c.facts.Peer)
		c.quic.CloseWithError(internalError.wire(), "")
	}
}

// watch starts to watch the state.
func (c *Conn) watch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.due = time.AfterFunc(0, c.attend)
}

// unwatch ends that.
func (c *Conn) unwatch() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.due.Stop()
	c.mu.due = nil
}

// drainGrace is how long requests are still accepted after GOAWAY, because some are in
// transit. closeGrace is how long a connection without requests is kept after that, so that
// the client receives the last data.
const (
	drainGrace = 500 * time.Millisecond
	closeGrace = 500 * time.Millisecond
)

// attend is called by the timer. It ends the connection in its time: when it drains, or
// when no request came for too long; else it sets when to look again.
func (c *Conn) attend() {
	defer c.guard()
	port := c.front.Port()
	c.mu.Lock()
	wait, end := c.stepLocked(port)
	if c.mu.due != nil && !end {
		c.mu.due.Reset(wait)
	}
	c.mu.Unlock()
	if end {
		c.quic.CloseWithError(noError.wire(), "")
	}
}

// stepLocked does what is due and returns how long nothing will be, or that the
// connection is at its end. c.mu is held.
func (c *Conn) stepLocked(port *exchange.Port) (wait time.Duration, end bool) {
	keep := port.KeepAlive
	if c.mu.next == 0 {
		keep = max(keep, port.HeadTimeout) // the first request is not there yet
	}
	now := exchange.Now()
	still := time.Duration(now - c.mu.quiet)
	switch {
	case c.mu.held:
		return time.Hour, false // hold ends it, and says why
	case c.mu.last && c.mu.running == 0:
		grace := closeGrace + 3*c.quic.ConnectionStats().SmoothedRTT
		return grace - still, still >= grace
	case c.mu.last:
		return time.Hour, false
	case c.mu.told && still >= drainGrace:
		c.mu.last = true
		c.mu.quiet = now
		c.goAwayLocked(c.mu.next)
		return time.Millisecond, false
	case c.mu.told:
		return drainGrace - still, false
	case c.mu.draining || c.mu.running == 0 && still >= keep:
		c.mu.draining, c.mu.told = true, true
		c.mu.quiet = now
		c.goAwayLocked(maxStreamID)
		return drainGrace, false
	case c.mu.running > 0:
		return max(keep, time.Second), false // their end is not signalled
	}
	return keep - still, false
}

// maxStreamID is the largest number of a stream that a client can open: a GOAWAY
// with it announces another one (RFC 9114, section 5.2).
const maxStreamID = quic.StreamID(1<<62 - 4)

// acceptRequests accepts the streams of requests.
func (c *Conn) acceptRequests() {
	for {
		qs, err := c.quic.AcceptStream(context.Background())
		if err != nil {
			return
		}
		if c.isHeld() {
			return // its streams are not granted anew
		}
		port := c.front.Port()
		if taken, late := c.admit(qs.StreamID(), port); !taken {
			qs.CancelRead(requestRejected.stream())
			qs.CancelWrite(requestRejected.stream())
			c.release(qs)
			if late {
				c.charge(resetFlood) // the client had GOAWAY; it cannot know that there is no memory
			}
			continue
		}
		c.schedule(c.newStream(qs, port))
	}
}

// admit records that a request has begun, and reports whether it is accepted, or rejected
// because it came after GOAWAY.
func (c *Conn) admit(id quic.StreamID, port *exchange.Port) (taken, late bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.last {
		return false, true
	}
	if id >= c.mu.next {
		c.mu.next = id + 4
	}
	if !c.roomLocked(port) {
		return false, false
	}
	c.mu.running++
	return true, false
}

// roomLocked reports whether there is memory for one more request.
func (c *Conn) roomLocked(port *exchange.Port) bool {
	if c.mu.running < c.mu.places {
		return true
	}
	n := c.member.TakePlaces(c.mu.places, memory(port))
	c.mu.places += n
	return n > 0
}

// memory is what the clients of a port may hold.
func memory(port *exchange.Port) clients.Limits {
	return clients.Limits{Total: port.MaxMemory, Each: port.MaxClientMemory}
}

// allow reports whether a client may have n more bytes in transit on a connection: unread
// data of bodies counts for it until the connection ends.
func (f *Front) allow(qc *quic.Conn, n int64) bool {
	c, ok := f.conns.Load(qc)
	return ok && c.(*Conn).member.TryTake(n, memory(f.Port()))
}

// end notes that a request has ended.
func (c *Conn) end(port *exchange.Port) {
	c.mu.Lock()
	c.mu.running--
	quiet := c.mu.running == 0
	if quiet {
		c.member.GivePlaces(c.mu.places)
		c.mu.places = 0
	}
	if quiet && !(c.mu.told && !c.mu.last) {
		c.mu.quiet = exchange.Now()
	}
	if quiet && (c.mu.draining || port.KeepAlive < port.HeadTimeout) { // longer was waited for the first request
		c.lookLocked()
	}
	c.mu.Unlock()
}

// fail ends the connection for the reason err.
func (c *Conn) fail(err error) {
	var rule *connError
	if !errors.As(err, &rule) {
		return // the connection is no more
	}
	if c.isHeld() {
		return
	}
	c.report(rule)
	if c.hold(rule) {
		return
	}
	c.quic.CloseWithError(rule.code.wire(), rule.text)
}

// report logs and counts why a connection is ended.
func (c *Conn) report(e *connError) {
	level := slog.LevelDebug
	word := "protocol_error"
	if e.flood != "" {
		c.member.Flooded()
		word = e.flood
		if !c.offends { // else the client was logged already
			level = slog.LevelWarn
		}
		if c.front.Flooded != nil {
			c.front.Flooded(e.flood)
		}
	}
	if c.front.Log != nil {
		c.front.Log.Log(context.Background(), level, "HTTP/3 connection ended", "reason", word, "cause", e.text,
			"peer", c.facts.Peer, "port", c.front.Port().Place.Port)
	}
}

// Remote returns the address of the client, as the PROXY protocol has it where that is
// spoken.
func (c *Conn) Remote() netip.Addr { return c.facts.Remote.Addr() }
