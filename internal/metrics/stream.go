package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"headgate/internal/exchange"
)

type streamKey struct{ protocol, proxy string }

// Stream shows what was counted of one TCP or UDP proxy.
type Stream struct {
	shared[streamKey, Stream]
	counts func() exchange.StreamCounts // guarded by owner.mu
	seen   Point                        // owned by the sample of a Series
}

// Stream returns the handle of a TCP or UDP proxy, whose numbers counts returns.
// Each call needs a Retire of its own; equal names share one handle, which uses
// the last counts.
func (r *Registry) Stream(protocol, proxy string, counts func() exchange.StreamCounts) *Stream {
	key := streamKey{protocol, proxy}
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.mu.streams.shareLocked(key)
	h.counts = counts
	return h
}

// streamCounts returns the source of the numbers of each proxy.
func (r *Registry) streamCounts() map[*Stream]func() exchange.StreamCounts {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[*Stream]func() exchange.StreamCounts{}
	for h := range r.mu.streams.allLocked() {
		all[h] = h.counts
	}
	return all
}

func (r *Registry) collectStreams(out chan<- prometheus.Metric, f *families) {
	open, most, accepted, received, sent, errors := f.streamOpen.desc(), f.streamMax.desc(), f.streamAccepted.desc(), f.streamReceived.desc(), f.streamSent.desc(), f.streamErrors.desc()
	for h, counts := range r.streamCounts() {
		n := counts()
		out <- prometheus.MustNewConstMetric(open, prometheus.GaugeValue, float64(n.Open), h.labels()...)
		if n.Max > 0 {
			out <- prometheus.MustNewConstMetric(most, prometheus.GaugeValue, float64(n.Max), h.labels()...)
		}
		out <- prometheus.MustNewConstMetric(accepted, prometheus.CounterValue, float64(n.Accepted), h.labels()...)
		out <- prometheus.MustNewConstMetric(received, prometheus.CounterValue, float64(n.Received), h.labels()...)
		out <- prometheus.MustNewConstMetric(sent, prometheus.CounterValue, float64(n.Sent), h.labels()...)
		for reason, n := range n.Errors {
			out <- prometheus.MustNewConstMetric(errors, prometheus.CounterValue, float64(n), append(h.labels(), reason.String())...)
		}
	}
}
