package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate/internal/server/health"
)

// Stander is a server that reports its state.
type Stander interface{ Now() health.Status }

// SetStatusSource sets where the status of the server is read.
func (h *Server) SetStatusSource(s Stander) {
	h.owner().mu.Lock()
	defer h.owner().mu.Unlock()
	h.standing = s
}

// stander returns the source of the state of the server, or nil.
func (h *Server) stander() Stander {
	h.owner().mu.Lock()
	defer h.owner().mu.Unlock()
	return h.standing
}

// collectStanding shows the state of a server.
func collectStanding(out chan<- prometheus.Metric, d *standingDescs, h *Server) {
	s := h.stander()
	if s == nil {
		return
	}
	now := s.Now()
	send := func(desc *prometheus.Desc, kind prometheus.ValueType, n float64, more ...string) {
		out <- prometheus.MustNewConstMetric(desc, kind, n, append(h.labels(), more...)...)
	}
	send(d.state, prometheus.GaugeValue, 1, now.State.String())
	send(d.active, prometheus.GaugeValue, float64(now.Active))
	send(d.ejections, prometheus.CounterValue, float64(now.Ejections))
	if now.Passed+now.Failed > 0 {
		send(d.checks, prometheus.CounterValue, float64(now.Passed), "passed")
		send(d.checks, prometheus.CounterValue, float64(now.Failed), "failed")
	}
	if now.Circuit != "" {
		open := 0.0
		if now.Circuit == health.CircuitOpen {
			open = 1
		}
		send(d.open, prometheus.GaugeValue, open)
		send(d.opened, prometheus.CounterValue, float64(now.Opened))
	}
}

// standingDescs are made once for a page.
type standingDescs struct{ state, active, ejections, checks, open, opened *prometheus.Desc }

func (f *families) standing() *standingDescs {
	return &standingDescs{f.state.desc(), f.active.desc(), f.ejections.desc(), f.checks.desc(), f.open.desc(), f.opened.desc()}
}

// Queue shows how many requests wait for the servers of a route.
type Queue struct {
	shared[routeKey, Queue]
	waiting func() int // guarded by owner.mu
}

// Queue returns the handle for the queue of a route, whose length waiting
// returns. Each call needs a Retire of its own.
func (r *Registry) Queue(proxy, route string, waiting func() int) *Queue {
	key := routeKey{proxy, route}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.queues.shareLocked(key)
	h.waiting = waiting
	return h
}

func (r *Registry) collectQueues(out chan<- prometheus.Metric, f *families) {
	desc := f.waiting.desc()
	r.mu.Lock()
	defer r.mu.Unlock()
	for h := range r.mu.queues.allLocked() {
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(h.waiting()), h.labels()...)
	}
}
