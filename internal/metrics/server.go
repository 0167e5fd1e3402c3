package metrics

import "headgate/internal/exchange"

type serverKey struct{ proxy, route, url string }

// Server counts the attempts at one server of a route.
type Server struct {
	shared[serverKey, Server]
	cells stripes[serverNumbers]
	seen  Point // owned by the sample of a Series

	standing Stander // guarded by owner.mu
}

// serverNumbers is what is counted for a server.
type serverNumbers struct {
	attempts uint64
	errors   *[reasons]uint64 // by reason; made for the first error
}

// Tried counts an attempt: exchange.None when a response head came, else the reason
// why none did.
func (h *Server) Tried(reason exchange.Reason) {
	c, t := h.cells.lock(h.owner)
	n := &c.n
	n.attempts++
	if reason != exchange.None {
		if n.errors == nil {
			n.errors = new([reasons]uint64)
		}
		n.errors[reason]++
	}
	h.cells.unlock(h.owner, c, t, n.attempts)
}

func (h *Server) sum() (attempts uint64, errors [reasons]uint64) {
	h.cells.each(func(part *serverNumbers) {
		attempts += part.attempts
		if part.errors != nil {
			for reason, n := range part.errors {
				errors[reason] += n
			}
		}
	})
	return attempts, errors
}
