package metrics

import (
	"time"

	"headgate/internal/exchange"
)

// classes is the number of status classes, with 0 for none.
const classes = 6

// Route counts the exchanges of one route on one port.
type Route struct {
	cells stripes[routeNumbers] // first, as it is all that a request looks at
	shared[exchange.Place, Route]
	seen *routeSeen // owned by the sample of a Series
}

// routeNumbers contains the counters of a route. With the header of its cell it occupies
// two cache lines.
type routeNumbers struct {
	few      [maxInlineOutcomes]few
	rare     *rareNumbers // made when it is needed
	received uint64
	sent     uint64
	duration tally
}

// rareNumbers is what is not counted for each request.
type rareNumbers struct {
	far      far
	rows     *outcomeRows // allocated when few is full
	answers  *answers     // counts the requests with a reason; made for the first
	cached   *cached      // counts what a cache made of requests; made for the first
	observed uint64
}

// rarely returns the rare numbers to count in.
func (n *routeNumbers) rarely() *rareNumbers {
	if n.rare == nil {
		n.rare = new(rareNumbers)
	}
	return n.rare
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
	c, t := h.cells.lock(h)
	n := &c.n
	n.outcome(ex.Request.Method, status)
	if ex.Reason != exchange.None {
		if class := status / 100; uint(class) < classes {
			n.answer(ex.Reason, class)
		} else {
			n.answer(ex.Reason, 0)
		}
	}
	if ex.Observed {
		n.rarely().observed++
	}
	if use := ex.Cache.Use; use != exchange.NoCache {
		n.cacheUse(use)
	}
	n.received += uint64(ex.Received)
	n.sent += uint64(ex.Sent)
	if ex.Locator != nil {
		h.owner().countries.done(ex, status)
	}
	if ex.Response.Status != 101 {
		if slot, over := n.duration.add(length(&ex.Times)); over > 0 {
			n.rarely().far.add(slot, over)
		}
	}
	h.cells.unlock(h, c, t)
}

// touched is part of counting.
func (h *Route) touched() { h.owner().touchedRoute(h) }

// answer counts a request with a reason.
func (n *routeNumbers) answer(reason exchange.Reason, class int) {
	rare := n.rarely()
	if rare.answers == nil {
		rare.answers = new(answers)
	}
	rare.answers[reason][class]++
}

// cacheUse counts what a cache made of a request.
func (n *routeNumbers) cacheUse(use exchange.CacheUse) {
	rare := n.rarely()
	if rare.cached == nil {
		rare.cached = new(cached)
	}
	rare.cached[use]++
}

// length returns the durations of exchanges.
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
	h.cells.each(func(c *cell[routeNumbers]) {
		part := &c.n
		for o := range part.outcomes() {
			total.outcomes = append(total.outcomes, o)
			total.requests[o.class()] += o.n
		}
		total.received += part.received
		total.sent += part.sent
		total.rare(part.rare)
		part.duration.joinTo(&total.duration, part.far())
	})
	total.outcomes = sumOutcomes(total.outcomes)
	return total
}

// untouched reports whether nothing was counted.
func (n *routeSum) untouched() bool {
	return len(n.outcomes) == 0 && n.duration.count == 0 && n.received|n.sent|n.observed == 0
}

// far returns the durations that exceed the tally; nil for none.
func (n *routeNumbers) far() *far {
	if n.rare == nil {
		return nil
	}
	return &n.rare.far
}

// rare adds the rare numbers of a cell, if there are any.
func (n *routeSum) rare(part *rareNumbers) {
	if part == nil {
		return
	}
	if part.answers != nil {
		n.join(part.answers)
	}
	n.observed += part.observed
	if part.cached == nil {
		return
	}
	if n.cached == nil {
		n.cached = new(cached)
	}
	for use, count := range part.cached {
		n.cached[use] += count
	}
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
