package h2

import (
	"errors"
	"net/netip"
	"time"

	"headgate/internal/proto/http2"
)

// errYielded ends a connection that is closed for another.
var errYielded = errors.New("the connection is closed for another")

// yieldTime limits the time to send GOAWAY on a connection that is closed for another.
const yieldTime = time.Second

// Idle returns whose connection it is, and since when no stream is open on it. Any
// goroutine may call it.
func (c *Conn) Idle() (client netip.Addr, since int64, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts.Remote.Addr(), c.mu.quiet, c.idleSinceLocked(c.mu.quiet)
}

func (c *Conn) idleSinceLocked(since int64) bool {
	return since != 0 && since == c.mu.quiet && c.mu.streams.Len() == 0 && c.mu.Active == 0 && !c.mu.refused && c.mu.Err == nil
}

// Yield ends the connection if no stream has been open since the time that Idle returned,
// and reports whether it does. The GOAWAY has the last stream, so that the client can send
// later requests on another connection. It is safe for concurrent use.
func (c *Conn) Yield(since int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.idleSinceLocked(since) {
		return false
	}
	c.mu.refused, c.mu.yielded = true, true
	c.mu.Out = http2.AppendGoAway(c.mu.Space(), c.mu.lastID, http2.NoError, "")
	c.nc.Kick()
	c.releaseLocked()
	time.AfterFunc(yieldTime, func() { c.fail(errYielded) }) // it may not read
	return true
}

// hasYielded reports whether the connection is closed for another.
func (c *Conn) hasYielded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.yielded
}
