package metrics

import (
	"time"

	"headgate/internal/exchange"
)

type serverKey struct{ proxy, route, url string }

// Server counts the attempts at one server of a route.
type Server struct {
	cells stripes[serverNumbers] // first, as it is all that a request looks at
	shared[serverKey, Server]
	seen *serverSeen // owned by the sample of a Series; made for the first that counts

	standing Stander // guarded by owner.mu
}

// serverNumbers contains the counters of a server, except their number. With the header of
// its cell it occupies a cache line.
type serverNumbers struct {
	rare      *rareAttempts // made when it is needed
	firstByte tally
}

// rareAttempts is what is not counted for each attempt.
type rareAttempts struct {
	errors *[reasons]uint64 // by reason; made for the first error
	far    far
}

// rarely returns the rare numbers to count in.
func (n *serverNumbers) rarely() *rareAttempts {
	if n.rare == nil {
		n.rare = new(rareAttempts)
	}
	return n.rare
}

// Tried counts an attempt: exchange.None when a response head came, and after how long,
// else the reason why none did. No time is known where it is zero.
func (h *Server) Tried(reason exchange.Reason, firstByte time.Duration) {
	c, t := h.cells.lock(h)
	n := &c.n
	if reason != exchange.None {
		rare := n.rarely()
		if rare.errors == nil {
			rare.errors = new([reasons]uint64)
		}
		rare.errors[reason]++
	} else if firstByte > 0 {
		if slot, over := n.firstByte.add(firstByte); over > 0 {
			n.rarely().far.add(slot, over)
		}
	}
	h.cells.unlock(h, c, t)
}

// touched is part of counting.
func (h *Server) touched() { h.owner().touchedServer(h) }

// attempts returns how many attempts there were, and by reason those without a response.
func (h *Server) attempts() (n uint64, errors [reasons]uint64) {
	h.cells.each(func(c *cell[serverNumbers]) {
		n += c.times()
		if rare := c.n.rare; rare != nil && rare.errors != nil {
			for reason, count := range rare.errors {
				errors[reason] += count
			}
		}
	})
	return n, errors
}

// firstByte returns the times to the first byte of responses; nil if none
// came.
func (h *Server) firstByte() (out *histogram) {
	h.cells.each(func(c *cell[serverNumbers]) {
		if !c.n.firstByte.used {
			return
		}
		if out == nil {
			out = new(histogram)
		}
		var beyond *far
		if c.n.rare != nil {
			beyond = &c.n.rare.far
		}
		c.n.firstByte.joinTo(out, beyond)
	})
	return out
}
