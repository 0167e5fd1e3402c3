package metrics

import (
	"time"

	"headgate/internal/exchange"
)

type serverKey struct{ proxy, route, url string }

// Server counts the attempts at one server of a route.
type Server struct {
	shared[serverKey, Server]
	cells stripes[serverNumbers]
	seen  *Point // owned by the sample of a Series; made for the first that counts

	standing Stander // guarded by owner.mu
}

// serverNumbers is what is counted for a server.
type serverNumbers struct {
	attempts  uint64
	errors    *[reasons]uint64 // by reason; made for the first error
	firstByte tally
}

// Tried counts an attempt: exchange.None when a response head came, and after how long,
// else the reason why none did. No time is known where it is zero.
func (h *Server) Tried(reason exchange.Reason, firstByte time.Duration) {
	c, t := h.cells.lock(h.owner())
	n := &c.n
	n.attempts++
	if reason != exchange.None {
		if n.errors == nil {
			n.errors = new([reasons]uint64)
		}
		n.errors[reason]++
	} else if firstByte > 0 {
		n.firstByte.add(firstByte)
	}
	h.cells.unlock(h.owner(), c, t, n.attempts)
}

// sum returns all numbers of the server; firstByte is nil if no response came.
func (h *Server) sum() (attempts uint64, errors [reasons]uint64, firstByte *histogram) {
	h.cells.each(func(part *serverNumbers) {
		attempts += part.attempts
		if part.errors != nil {
			for reason, n := range part.errors {
				errors[reason] += n
			}
		}
		if part.firstByte.used {
			if firstByte == nil {
				firstByte = new(histogram)
			}
			part.firstByte.joinTo(firstByte)
		}
	})
	return attempts, errors, firstByte
}
