package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Refusal is why a connection was ended before anything was served on it.
type Refusal uint8

// The refusals.
const (
	RefusedHandshake Refusal = iota // a TLS handshake that failed
	RefusedHeader                   // a trusted peer sent no PROXY header, or a bad one
	RefusedFull                     // more connections of QUIC than the port allows, or the client left while it waited at the limit
	RefusedBanned                   // the client is banned by a rule that rejects
	refusals
)

// String returns the word of the label.
func (r Refusal) String() string {
	return [...]string{"tls_handshake", "proxy_protocol", "full", "banned"}[r]
}

// Port counts the connections of clients to a port.
type Port struct {
	shared[string, Port]
	accepted atomic.Uint64
	closed   atomic.Uint64
	refused  [refusals]atomic.Uint64
	atLimit  atomic.Bool
	memory   atomic.Uint64
	yielded  atomic.Uint64
	unsent   atomic.Uint64
	unread   atomic.Uint64
}

// AtLimit sets whether the port has reached its limit and a connection waits.
func (h *Port) AtLimit(full bool) { h.atLimit.Store(full) }

// Opened counts a connection that was accepted.
func (h *Port) Opened() { h.accepted.Add(1) }

// Closed counts a connection that ended.
func (h *Port) Closed() { h.closed.Add(1) }

// Refused counts a connection that was ended before anything was served on it.
func (h *Port) Refused(why Refusal) { h.refused[why].Add(1) }

// Yielded counts an idle connection that was closed for another.
func (h *Port) Yielded() { h.yielded.Add(1) }

// MemoryRefused counts a request that was refused or reset as its client holds too much
// memory.
func (h *Port) MemoryRefused() { h.memory.Add(1) }

// DatagramLost counts a datagram of HTTP/3 that the system did not send, or else a read
// that failed.
func (h *Port) DatagramLost(sending bool) {
	if sending {
		h.unsent.Add(1)
	} else {
		h.unread.Add(1)
	}
}

func collectPorts(out chan<- prometheus.Metric, f *families, ports []*Port) {
	connections, accepted, refused, atLimit := f.connections.desc(), f.accepted.desc(), f.refused.desc(), f.atLimit.desc()
	memory, yielded, lost := f.memory.desc(), f.yielded.desc(), f.datagrams.desc()
	for _, h := range ports {
		closed := h.closed.Load() // before accepted: open is never negative
		opened := h.accepted.Load()
		out <- prometheus.MustNewConstMetric(connections, prometheus.GaugeValue, float64(opened-closed), h.labels()...)
		out <- prometheus.MustNewConstMetric(accepted, prometheus.CounterValue, float64(opened), h.labels()...)
		full := 0.0
		if h.atLimit.Load() {
			full = 1
		}
		out <- prometheus.MustNewConstMetric(atLimit, prometheus.GaugeValue, full, h.labels()...)
		out <- prometheus.MustNewConstMetric(yielded, prometheus.CounterValue, float64(h.yielded.Load()), h.labels()...)
		out <- prometheus.MustNewConstMetric(memory, prometheus.CounterValue, float64(h.memory.Load()), h.labels()...)
		for direction, n := range map[string]uint64{"send": h.unsent.Load(), "receive": h.unread.Load()} {
			if n > 0 {
				out <- prometheus.MustNewConstMetric(lost, prometheus.CounterValue, float64(n), append(h.labels(), direction)...)
			}
		}
		for why := range refusals {
			if n := h.refused[why].Load(); n > 0 {
				out <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(n), append(h.labels(), why.String())...)
			}
		}
	}
}
