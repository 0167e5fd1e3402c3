package metrics

import (
	"cmp"
	"slices"

	"headgate/internal/exchange"
)

// A sample only reads handles that were used since the previous one: the first use in an
// interval registers the handle. It therefore costs nothing without traffic, and allocates
// nothing for each of very many handles.

// touches are the handles that were counted in since a sample.
type touches struct {
	wanted  bool // there are samples
	routes  []*Route
	servers []*Server
}

func (r *Registry) touchedRoute(h *Route) {
	r.touched.Lock()
	defer r.touched.Unlock()
	if r.touched.wanted {
		r.touched.routes = append(r.touched.routes, h)
	}
}

func (r *Registry) touchedServer(h *Server) {
	r.touched.Lock()
	defer r.touched.Unlock()
	if r.touched.wanted {
		r.touched.servers = append(r.touched.servers, h)
	}
}

// takeTouched returns what was touched since it was called last, and has it noted from now
// on.
func (r *Registry) takeTouched() touches {
	r.touched.Lock()
	defer r.touched.Unlock()
	all := r.touched.touches
	r.touched.touches = touches{
		wanted: true,
		routes: make([]*Route, 0, len(all.routes)), servers: make([]*Server, 0, len(all.servers)),
	}
	return all
}

// difference is what was counted of a scope since the sample before.
type difference struct {
	Point
	durations spread
}

// join adds what o counted.
func (d *difference) join(o *difference) {
	d.Point.join(o.Point)
	d.durations.join(&o.durations)
}

// join adds the numbers of o, without quantiles.
func (p *Point) join(o Point) {
	p.Requests += o.Requests
	p.ClientErrors += o.ClientErrors
	p.ServerErrors += o.ServerErrors
	p.CacheHits += o.CacheHits
	p.Received += o.Received
	p.Sent += o.Sent
}

// since returns the difference to an earlier sum.
func (p Point) since(before Point) Point {
	return Point{
		Requests: p.Requests - before.Requests, ClientErrors: p.ClientErrors - before.ClientErrors, ServerErrors: p.ServerErrors - before.ServerErrors,
		CacheHits: p.CacheHits - before.CacheHits, Received: p.Received - before.Received, Sent: p.Sent - before.Sent,
	}
}

// snapshot records the values of all counters.
func (s *Series) snapshot(step int64) {
	s.registry.takeTouched()
	routes, servers, _, _ := s.registry.handles()
	for _, h := range routes {
		h.difference(&difference{})
		if p := h.cachePoint(); p != (Point{}) {
			h.seen.cached = p
		}
	}
	for _, h := range servers {
		h.difference(&difference{})
	}
	for h, counts := range s.registry.streamCounts() {
		h.difference(counts())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.mu.tracks {
		t.dropped = true
	}
	clear(s.mu.tracks)
	s.mu.now, s.mu.began = step, step+1
}

// found is a handle that has counted, and the track of its scope; that is nil for
// requests that matched no route.
type found[H any] struct {
	of *track
	h  H
}

// counted is a handle that adds what was counted since the sample before.
type counted interface{ difference(*difference) }

// forTracks calls take for each track with the sum of the counts of its handles.
func forTracks[H counted](all []found[H], take func(*track, *difference)) {
	number := func(f found[H]) uint64 {
		if f.of == nil {
			return 0
		}
		return f.of.number
	}
	slices.SortFunc(all, func(a, b found[H]) int { return cmp.Compare(number(a), number(b)) })
	sum := &difference{}
	for i, f := range all {
		f.h.difference(sum)
		if i+1 == len(all) || all[i+1].of != f.of {
			take(f.of, sum)
			*sum = difference{}
		}
	}
}

// sampleRoutes keeps what was counted for proxies, and returns the sum of all.
func (s *Series) sampleRoutes(step int64, touched []*Route) *difference {
	all, caches := make([]found[*Route], len(touched)), cacheSums{}
	for i, h := range touched {
		if h.seen == nil {
			h.seen = &routeSeen{}
		}
		if h.key.Proxy != "" {
			s.find(&h.seen.track, Scope{Kind: ScopeHTTP, Proxy: h.key.Proxy})
		}
		caches.add(h)
		all[i] = found[*Route]{h.seen.track, h}
	}
	s.keepCaches(step, caches)
	whole := &difference{}
	forTracks(all, func(t *track, sum *difference) {
		whole.join(sum)
		s.keep(t, step, sum)
	})
	return whole
}

// sampleServers keeps what was counted for servers.
func (s *Series) sampleServers(step int64, touched []*Server) {
	all := make([]found[*Server], len(touched))
	for i, h := range touched {
		if h.seen == nil {
			h.seen = &serverSeen{}
		}
		s.find(&h.seen.track, Scope{kindOfRoute(h.key.route), h.key.proxy, h.key.url})
		all[i] = found[*Server]{h.seen.track, h}
	}
	forTracks(all, func(t *track, sum *difference) { s.keep(t, step, sum) })
}

// sampleStreams keeps what was counted for TCP and UDP proxies.
func (s *Series) sampleStreams(step int64) {
	for h, counts := range s.registry.streamCounts() {
		d := &difference{Point: h.difference(counts())}
		var t *track
		if d.Point != (Point{}) {
			s.find(&t, Scope{Kind: kindOfRoute(h.key.protocol), Proxy: h.key.proxy})
			s.keep(t, step, d)
		}
	}
}

// find sets a track to that of a scope, if it is not that already.
func (s *Series) find(t **track, scope Scope) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if *t == nil || (*t).dropped {
		*t = s.trackLocked(scope)
	}
}

// keep keeps what was counted within a step, if anything was.
func (s *Series) keep(t *track, step int64, d *difference) {
	if t == nil || d.Point == (Point{}) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.add(step, d)
}

// kindOfRoute returns the kind of the proxies whose servers are counted under a route:
// those of TCP and UDP proxies are under their protocol.
func kindOfRoute(route string) string {
	switch route {
	case "tcp":
		return ScopeTCP
	case "udp":
		return ScopeUDP
	}
	return ScopeHTTP
}

// routeSeen is what the sample before has found at a route.
type routeSeen struct {
	track *track
	Point
	cached    Point // of the cache
	durations narrow
}

// difference adds to sum what was counted since it was called last.
func (h *Route) difference(sum *difference) {
	var now Point
	var durations spread
	counted := false
	h.cells.each(func(c *cell[routeNumbers]) {
		counted, c.told = true, false
		c.n.addTo(&now)
		c.n.duration.each(c.n.far(), func(s slot, n uint64) { durations[s.native+1] += uint32(n) })
	})
	if !counted {
		return
	}
	if h.seen == nil {
		h.seen = &routeSeen{}
	}
	sum.Point.join(now.since(h.seen.Point))
	sum.durations.join(&durations)
	h.seen.durations.takeFrom(&sum.durations)
	h.seen.Point = now
	h.seen.durations.set(&durations)
}

// addTo adds the numbers of a chart.
func (n *routeNumbers) addTo(p *Point) {
	for o := range n.outcomes() {
		p.Requests += o.n
		switch o.class() {
		case 4:
			p.ClientErrors += o.n
		case 5:
			p.ServerErrors += o.n
		}
	}
	if n.rare != nil && n.rare.cached != nil {
		for use, count := range n.rare.cached {
			if answeredByCache(exchange.CacheUse(use)) {
				p.CacheHits += count
			}
		}
	}
	p.Received += n.received
	p.Sent += n.sent
}

// serverSeen is what the sample before has found at a server.
type serverSeen struct {
	track *track
	Point
}

// difference adds to sum what was counted since it was called last.
func (h *Server) difference(sum *difference) {
	var now Point
	h.cells.each(func(c *cell[serverNumbers]) {
		c.told = false
		now.Requests += c.times()
		if rare := c.n.rare; rare != nil && rare.errors != nil {
			for _, n := range rare.errors {
				now.ServerErrors += n
			}
		}
	})
	if h.seen == nil {
		if now == (Point{}) {
			return
		}
		h.seen = &serverSeen{}
	}
	sum.Point.join(now.since(h.seen.Point))
	h.seen.Point = now
}

// difference returns what was counted since it was called last.
func (h *Stream) difference(n exchange.StreamCounts) Point {
	now := Point{Requests: n.Accepted, Received: n.Received, Sent: n.Sent}
	for _, count := range n.Errors {
		now.ServerErrors += count
	}
	if now.Requests < h.seen.Requests {
		h.seen = Point{} // the proxy was made anew
	}
	d := now.since(h.seen)
	h.seen = now
	return d
}

// Totals returns how many requests have ended, and how many of them with a status 5xx, since
// the process started. It reads every route's counters.
func (s *Series) Totals() (requests, serverErrors uint64) {
	routes, _, _, _ := s.registry.handles()
	var sum Point
	for _, h := range routes {
		h.cells.each(func(c *cell[routeNumbers]) { c.n.addTo(&sum) })
	}
	return sum.Requests, sum.ServerErrors
}
