package upstream

import (
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/server/balance"
)

// tried remembers which servers of a route an exchange has tried.
type tried = balance.Tried

// choose acquires the server for the next attempt of ex, one that was not tried, and
// returns it with its index in the route's list. It waits in the route's queue if all
// servers have their maximum of requests. If it returns nil, the answer has the reason.
//
// The result of the attempt is reported to the server, and the server is released when its
// exchange is over.
func (s *Servers) choose(ex *exchange.Exchange, tried tried) (*Server, int, *exchange.Answer) {
	return s.chooseWithin(ex, tried, s.queueTimeout)
}

// chooseWithin is choose with another time for the wait in the queue; 0 does not wait.
func (s *Servers) chooseWithin(ex *exchange.Exchange, tried tried, patience time.Duration) (*Server, int, *exchange.Answer) {
	ask := balance.Ask{Now: max(ex.Times.Start, ex.Times.Passed), Tried: tried}
	if ex.Attempts > 0 {
		ask.Now = exchange.Now()
	}
	if s.by != balance.ByNothing {
		ask.Key = s.key(ex)
	}
	at, outcome := s.group.Choose(&ask)
	if outcome == balance.Full {
		at, outcome = s.group.Wait(&ask, patience, ex.Front.Gone)
		ask.Now = exchange.Now()
	}
	if outcome != balance.Chosen {
		return nil, -1, s.none(ex, outcome)
	}
	s.list[at].took(ex, ask.Now)
	return s.list[at], at, nil
}

// Claim acquires the server at place i for a client with affinity to it, also
// if it accepts no new clients; it returns false if the server cannot accept
// requests or was tried.
func (s *Servers) claim(ex *exchange.Exchange, i int, tried tried) (*Server, bool) {
	ask := balance.Ask{Now: max(ex.Times.Start, ex.Times.Passed), Tried: tried}
	if ex.Attempts > 0 {
		ask.Now = exchange.Now()
	}
	if !s.group.Claim(i, &ask) {
		return nil, false
	}
	s.list[i].took(ex, ask.Now)
	return s.list[i], true
}

// took records when the server was acquired for the next try of ex: at now, or, for a
// probe of a half-open circuit, at this moment. The circuit counts what started since it
// is half open, and a slightly earlier request also occupied the place of a probe.
func (s *Server) took(ex *exchange.Exchange, now int64) {
	if s.circuit != nil && s.live.Out()&balance.HalfOpen != 0 {
		now = exchange.Now()
	}
	ex.Times.Tried = now
}

// hashed is what requests are hashed by.
type hashed struct {
	by    balance.By
	field header.ID // of a well-known field
	name  string    // of the field or cookie
}

func hashedBy(c balance.Choice) hashed {
	h := hashed{by: c.By, name: c.Name}
	if h.by == balance.ByHeader {
		h.field = header.Lookup(h.name)
	}
	return h
}

// key returns what a request is hashed by. One without the field or cookie goes
// by its client's address.
func (h *hashed) key(ex *exchange.Exchange) uint64 {
	text := ""
	switch h.by {
	case balance.ByPath:
		return balance.HashText(ex.Request.Path)
	case balance.ByHeader:
		if h.field != header.Other {
			text = ex.Request.Header.Get(h.field)
		} else {
			text, _ = ex.Request.Header.Lookup(h.name)
		}
	case balance.ByCookie:
		text = ex.Request.Header.CookieValue(h.name)
	}
	if text == "" {
		return balance.HashAddr(ex.ClientIP)
	}
	return balance.HashText(text)
}

// The answers to a request that no server can accept, with the time after
// which another request may succeed, in seconds.
var (
	circuitsOpen = &exchange.Answer{Reason: exchange.CircuitOpen, RetryAfter: 1, Cause: "the circuits of all servers of the route are open"}

	allTried = &exchange.Answer{Reason: exchange.NoHealthyServer, RetryAfter: 5, Cause: "no server of the route accepts requests"}
	allFull  = &exchange.Answer{Reason: exchange.Overloaded, RetryAfter: 1, Cause: "every server of the route has max_requests requests, and the queue is full or the wait was too long"}
)

// none returns the answer for a request that no server can accept.
func (s *Servers) none(ex *exchange.Exchange, outcome balance.Outcome) *exchange.Answer {
	switch {
	case outcome == balance.Full && ex.Left():
		return exchange.Fail(exchange.ClientClosed, "the client left while it waited for a server")
	case outcome == balance.Full:
		return allFull
	case outcome == balance.Broken:
		return s.allOpen
	}
	return allTried
}
