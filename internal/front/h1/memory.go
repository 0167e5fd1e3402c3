package h1

import (
	"headgate/internal/exchange"
	"headgate/internal/front/clients"
)

// What a connection holds while it waits counts for its client, as over HTTP/2: for an
// incomplete head, for a body, for a server, and for a client that reads a long response
// slowly. A request that is answered immediately is not counted.

// waitMemory is the estimated memory of a request while it waits, in bytes.
const waitMemory = 32 << 10

// slowSent is how much of a response has to be sent before it counts as a long one.
const slowSent = 256 << 10

func (c *Conn) memory() clients.Limits {
	return clients.Limits{Total: c.port.MaxMemory, Each: c.port.MaxClientMemory}
}

// join makes the connection one of its client's.
func (c *Conn) join() {
	if c.member == nil {
		c.member = c.front.Clients.Join(c.facts.Remote.Addr())
	}
}

// room reports whether the client may have another request. While no client holds memory,
// nothing is checked.
func (c *Conn) room() bool {
	if !c.front.Clients.Busy() {
		return true
	}
	c.join()
	return c.member.Room(waitMemory, c.memory())
}

// reserve counts n bytes for the client, if it may have them.
func (c *Conn) reserve(n int64) bool {
	c.join()
	if !c.member.Reserve(n, c.memory()) {
		return false
	}
	c.held += n
	return true
}

// hold counts what a request under way holds for its client, over the bound too: it is
// the client's next requests that are refused then.
func (c *Conn) hold() {
	if c.waits {
		return
	}
	c.waits = true
	c.join()
	c.member.Hold(waitMemory)
	c.held += waitMemory
}

// yield releases what was counted.
func (c *Conn) yield() {
	c.waits = false
	if c.held > 0 {
		c.member.Release(c.held)
		c.held = 0
	}
}

// holdsTooMuch is the answer to a client that may have no more memory.
var holdsTooMuch = &exchange.Answer{Reason: exchange.Overloaded, RetryAfter: 1, Cause: "the requests of the client hold more memory than it may have (max_memory, max_memory_per_client)"}
