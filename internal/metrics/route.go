package metrics

import (
	"time"

	"headgate/internal/exchange"
)

// classes is the number of status classes, with 0 for none.
const classes = 6

// Route counts the exchanges of one route on one port.
type Route struct {
	shared[exchange.Place, Route]
	cells stripes[routeNumbers]
	seen  *routeSeen // owned by the sample of a Series
}

// routeNumbers is what is counted for a route.
type routeNumbers struct {
	count    uint64
	outcomes outcomes
	// answers counts the requests with a reason; it is made for the first.
	answers *answers
	// cached counts what a cache made of requests; it is made for the first.
	cached   *cached
	observed uint64
	received uint64
	sent     uint64
	duration tally
}

// routeSum is the sum of the numbers of a route.
type routeSum struct {
	requests [classes]uint64 // without a reason
	outcomes []outcome
	answers  *answers
	cached   *cached
	observed uint64
	received uint64
	sent     uint64
	duration histogram
}

// reasons is the number of reasons with None; Internal is the last.
const reasons = int(exchange.Internal) + 1

// answers counts requests by reason and status class.
type answers [reasons][classes]uint64

// cached counts requests by what a cache made of them; CachePass is the last.
type cached [int(exchange.CachePass) + 1]uint64

// Done counts a finished exchange. It fits exchange.Pipeline.Done.
func (h *Route) Done(ex *exchange.Exchange) {
	status := ex.Status()
	c, t := h.cells.lock(h.owner())
	n := &c.n
	n.count++
	n.outcomes.count(ex.Request.Method, status)
	if ex.Reason != exchange.None {
		if class := status / 100; uint(class) < classes {
			n.answer(ex.Reason, class)
		} else {
			n.answer(ex.Reason, 0)
		}
	}
	if ex.Observed {
		n.observed++
	}
	if use := ex.Cache.Use; use != exchange.NoCache {
		if n.cached == nil {
			n.cached = new(cached)
		}
		n.cached[use]++
	}
	n.received += uint64(ex.Received)
	n.sent += uint64(ex.Sent)
	if ex.Response.Status != 101 {
		n.duration.add(length(&ex.Times))
	}
	h.cells.unlock(h.owner(), c, t, n.count)
}

// answer counts a request with a reason.
func (n *routeNumbers) answer(reason exchange.Reason, class int) {
	if n.answers == nil {
		n.answers = new(answers)
	}
	n.answers[reason][class]++
}

// length returns how long an exchange took.
func length(t *exchange.Times) time.Duration {
	end := t.End
	if end == 0 {
		end = exchange.Now()
	}
	return time.Duration(max(0, end-t.Start))
}

// sum returns all numbers of the route.
func (h *Route) sum() *routeSum {
	total := &routeSum{}
	h.cells.each(func(part *routeNumbers) {
		for o := range part.outcomes.all() {
			total.outcomes = append(total.outcomes, o)
			total.requests[o.class()] += o.n
		}
		if part.answers != nil {
			total.join(part.answers)
		}
		total.observed += part.observed
		if part.cached != nil {
			if total.cached == nil {
				total.cached = new(cached)
			}
			for use, n := range part.cached {
				total.cached[use] += n
			}
		}
		total.received += part.received
		total.sent += part.sent
		part.duration.joinTo(&total.duration)
	})
	total.outcomes = sumOutcomes(total.outcomes)
	return total
}

// join adds the numbers of a. The requests that it counts are among those of all
// outcomes, and have a reason.
func (n *routeSum) join(a *answers) {
	if n.answers == nil {
		n.answers = new(answers)
	}
	for reason := range a {
		for class, count := range a[reason] {
			n.answers[reason][class] += count
			n.requests[class] -= count
		}
	}
}
