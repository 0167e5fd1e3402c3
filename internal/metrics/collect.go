package metrics

import (
	"maps"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"headgate/internal/exchange"
)

// Describe sends the descriptions of the metrics. It is part of
// prometheus.Collector.
func (r *Registry) Describe(out chan<- *prometheus.Desc) {
	f := table()
	for _, m := range f.all() {
		out <- m.desc()
	}
}

// Collect sums up all numbers. It is part of prometheus.Collector.
func (r *Registry) Collect(out chan<- prometheus.Metric) {
	routes, servers, ports, dropped := r.handles()
	f := table()
	collectRoutes(out, &f, routes)
	collectServers(out, &f, servers)
	r.collectCaches(out, &f)
	r.collectRetries(out, &f)
	r.collectQueues(out, &f)
	collectPorts(out, &f, ports)
	r.collectStreams(out, &f)
	for word, n := range r.floodCounts() {
		out <- prometheus.MustNewConstMetric(f.floods.desc(), prometheus.CounterValue, float64(n), word)
	}
	if dropped != nil {
		out <- prometheus.MustNewConstMetric(f.dropped.desc(), prometheus.CounterValue, float64(dropped()))
	}
	for values, n := range r.countries.counts() {
		out <- prometheus.MustNewConstMetric(f.countries.desc(), prometheus.CounterValue, float64(n), values[:]...)
	}
	r.collectSpans(out, &f)
	r.collectCertificates(out, &f)
	r.collectOnDemand(out, &f)
	r.collectProviders(out, &f)
	r.collectSplits(out, &f)
	r.collectDefence(out, &f)
	r.collectGate(out, &f)
	r.collectStore(out, &f)
	r.collectPair(out, &f)
	r.collectConfig(out, &f)
	out <- prometheus.MustNewConstMetric(f.me.desc(), prometheus.GaugeValue, 1,
		labels(r.build.Version, r.build.Revision, runtime.Version())...)
}

func (r *Registry) collectSpans(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	spans := r.mu.spans
	r.mu.Unlock()
	if spans == nil {
		return
	}
	sent, dropped, lost := spans()
	for word, n := range map[string]uint64{"sent": sent, "dropped": dropped, "lost": lost} {
		out <- prometheus.MustNewConstMetric(f.spans.desc(), prometheus.CounterValue, float64(n), word)
	}
}

func (r *Registry) collectOnDemand(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	now := r.mu.onDemand
	r.mu.Unlock()
	if now == nil {
		return
	}
	for word, n := range now() {
		out <- prometheus.MustNewConstMetric(f.onDemand.desc(), prometheus.CounterValue, float64(n), word)
	}
}

func (r *Registry) collectProviders(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	stand := r.mu.providers
	r.mu.Unlock()
	if stand == nil {
		return
	}
	for _, p := range stand() {
		up := 0.0
		if p.Up {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(f.providerUp.desc(), prometheus.GaugeValue, up, labels(p.Name)...)
		out <- prometheus.MustNewConstMetric(f.providerIssues.desc(), prometheus.GaugeValue, float64(p.Issues), labels(p.Name)...)
	}
}

func (r *Registry) collectSplits(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	now := r.mu.splits
	r.mu.Unlock()
	if now == nil {
		return
	}
	for _, s := range now() {
		out <- prometheus.MustNewConstMetric(f.splitShare.desc(), prometheus.GaugeValue, float64(s.Share), labels(s.Proxy, s.Route)...)
		for word, n := range map[string]SplitCounts{"stable": s.Stable, "candidate": s.Candidate} {
			out <- prometheus.MustNewConstMetric(f.splitRequests.desc(), prometheus.CounterValue, float64(n.Requests), labels(s.Proxy, s.Route, word)...)
			out <- prometheus.MustNewConstMetric(f.splitErrors.desc(), prometheus.CounterValue, float64(n.Errors), labels(s.Proxy, s.Route, word)...)
		}
	}
}

func (r *Registry) collectDefence(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	now := r.mu.defence
	r.mu.Unlock()
	if now == nil {
		return
	}
	d := now()
	for _, l := range d.Lists {
		up := 0.0
		if l.Up {
			up = 1
		}
		out <- prometheus.MustNewConstMetric(f.listEntries.desc(), prometheus.GaugeValue, float64(l.Entries), labels(l.Name)...)
		out <- prometheus.MustNewConstMetric(f.listUp.desc(), prometheus.GaugeValue, up, labels(l.Name)...)
	}
	out <- prometheus.MustNewConstMetric(f.bansActive.desc(), prometheus.GaugeValue, float64(d.Active))
	out <- prometheus.MustNewConstMetric(f.bansMade.desc(), prometheus.CounterValue, float64(d.Made))
	out <- prometheus.MustNewConstMetric(f.bansRefused.desc(), prometheus.CounterValue, float64(d.Refused))
}

func (r *Registry) collectGate(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	now := r.mu.gate
	r.mu.Unlock()
	if now == nil {
		return
	}
	sessions, signIns, failed := now()
	out <- prometheus.MustNewConstMetric(f.gateSessions.desc(), prometheus.GaugeValue, float64(sessions))
	out <- prometheus.MustNewConstMetric(f.gateSignIns.desc(), prometheus.CounterValue, float64(signIns), labels("success")...)
	out <- prometheus.MustNewConstMetric(f.gateSignIns.desc(), prometheus.CounterValue, float64(failed), labels("failure")...)
}

func (r *Registry) collectStore(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	now := r.mu.store
	r.mu.Unlock()
	if now == nil {
		return
	}
	s, shared := now()
	if !shared {
		return
	}
	detached := 1.0
	if s.Following {
		detached = 0
	}
	out <- prometheus.MustNewConstMetric(f.storeDetached.desc(), prometheus.GaugeValue, detached)
	out <- prometheus.MustNewConstMetric(f.storeLag.desc(), prometheus.GaugeValue, float64(s.Lag))
	out <- prometheus.MustNewConstMetric(f.storeReconnects.desc(), prometheus.CounterValue, float64(s.Reconnects))
	for word, of := range map[string]struct {
		n    uint64
		took time.Duration
	}{"commit": {s.Commits, s.CommitTime}, "watch": {s.Waits, s.WatchTime}} {
		out <- prometheus.MustNewConstMetric(f.storeOperations.desc(), prometheus.CounterValue, float64(of.n), labels(word)...)
		out <- prometheus.MustNewConstMetric(f.storeSeconds.desc(), prometheus.CounterValue, of.took.Seconds(), labels(word)...)
	}
}

func (r *Registry) collectPair(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	now := r.mu.pair
	r.mu.Unlock()
	if now == nil {
		return
	}
	p, paired := now()
	if !paired {
		return
	}
	gauge := func(of *family, value float64) {
		out <- prometheus.MustNewConstMetric(of.desc(), prometheus.GaugeValue, value)
	}
	gauge(&f.pairLeads, oneIf(p.Leads))
	gauge(&f.pairConnected, oneIf(p.Connected))
	gauge(&f.pairLag, float64(p.Lag))
	out <- prometheus.MustNewConstMetric(f.pairReconnects.desc(), prometheus.CounterValue, float64(p.Reconnects))
	if !p.LastContact.IsZero() {
		gauge(&f.pairContact, float64(p.LastContact.UnixMilli())/1000)
	}
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

func (r *Registry) collectCertificates(out chan<- prometheus.Metric, f *families) {
	r.mu.Lock()
	stand := r.mu.certificates
	r.mu.Unlock()
	if stand == nil {
		return
	}
	for _, c := range stand() {
		out <- prometheus.MustNewConstMetric(f.certificate.desc(), prometheus.GaugeValue, 1, labels(c.Name, c.State)...)
		if !c.NotAfter.IsZero() {
			out <- prometheus.MustNewConstMetric(f.notAfter.desc(), prometheus.GaugeValue, float64(c.NotAfter.Unix()), labels(c.Name)...)
		}
	}
}

// handles returns what is shown at this moment.
func (r *Registry) handles() ([]*Route, []*Server, []*Port, func() uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.routes.listLocked(), r.mu.servers.listLocked(), r.mu.ports.listLocked(), r.mu.dropped
}

func (r *Registry) floodCounts() map[string]uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.mu.floods)
}

func (r *Registry) collectConfig(out chan<- prometheus.Metric, f *families) {
	applies := f.applies.desc()
	out <- prometheus.MustNewConstMetric(applies, prometheus.CounterValue, float64(r.applied.Load()), "applied")
	out <- prometheus.MustNewConstMetric(applies, prometheus.CounterValue, float64(r.refused.Load()), "refused")
	at := float64(r.appliedT.Load()) / float64(time.Second)
	out <- prometheus.MustNewConstMetric(f.appliedTime.desc(), prometheus.GaugeValue, at)
	ok := 0.0
	if r.last.Load() {
		ok = 1
	}
	out <- prometheus.MustNewConstMetric(f.applied.desc(), prometheus.GaugeValue, ok)
}

func collectRoutes(out chan<- prometheus.Metric, f *families, routes []*Route) {
	observed := f.observed.desc()
	requests, responses, received, sent, duration := f.requests.desc(), f.responses.desc(), f.received.desc(), f.sent.desc(), f.duration.desc()
	for _, h := range routes {
		total := h.sum()
		if total.untouched() {
			continue // most routes of a large configuration
		}
		count := func(class int, reason string, n uint64) {
			if n > 0 {
				values := append(h.labels(), statusClass(class), reason)
				out <- prometheus.MustNewConstMetric(requests, prometheus.CounterValue, float64(n), values...)
			}
		}
		for class, n := range total.requests {
			count(class, "", n)
		}
		for _, o := range total.outcomes {
			values := append(h.labels(), methodNames[o.method], statusNames[o.status])
			out <- prometheus.MustNewConstMetric(responses, prometheus.CounterValue, float64(o.n), values...)
		}
		collectUses(out, f, h.labels(), total.cached)
		if total.answers != nil {
			for _, reason := range exchange.Reasons() {
				for class, n := range total.answers[reason] {
					count(class, reason.String(), n)
				}
			}
		}
		if total.observed > 0 {
			out <- prometheus.MustNewConstMetric(observed, prometheus.CounterValue, float64(total.observed), h.labels()...)
		}
		out <- prometheus.MustNewConstMetric(received, prometheus.CounterValue, float64(total.received), h.labels()...)
		out <- prometheus.MustNewConstMetric(sent, prometheus.CounterValue, float64(total.sent), h.labels()...)
		out <- &durationMetric{duration, h.labels(), &total.duration}
	}
}

// collectUses shows what a cache made of the requests of a route.
func collectUses(out chan<- prometheus.Metric, f *families, labels []string, n *cached) {
	if n == nil {
		return
	}
	desc := f.cached.desc()
	for _, use := range exchange.CacheUses() {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n[use]), append(labels[:3:3], use.String())...)
	}
}

func collectServers(out chan<- prometheus.Metric, f *families, servers []*Server) {
	attemptsDesc, errorsDesc, firstByteDesc := f.attempts.desc(), f.errors.desc(), f.firstByte.desc()
	standing := f.standing()
	for _, h := range servers {
		collectStanding(out, standing, h)
		attempts, errors := h.attempts()
		if firstByte := h.firstByte(); firstByte != nil {
			out <- &durationMetric{firstByteDesc, h.labels(), firstByte}
		}
		out <- prometheus.MustNewConstMetric(attemptsDesc, prometheus.CounterValue, float64(attempts), h.labels()...)
		for _, reason := range exchange.Reasons() {
			if n := errors[reason]; n > 0 {
				values := append(h.labels(), reason.String())
				out <- prometheus.MustNewConstMetric(errorsDesc, prometheus.CounterValue, float64(n), values...)
			}
		}
	}
}

func (r *Registry) collectRetries(out chan<- prometheus.Metric, f *families) {
	sent, refused := f.retries.desc(), f.retriesRefused.desc()
	r.mu.Lock()
	all := r.mu.retries.listLocked()
	mirrors := r.mu.mirrors.listLocked()
	r.mu.Unlock()
	for _, h := range mirrors {
		for i, word := range mirrorResults {
			out <- prometheus.MustNewConstMetric(f.mirrored.desc(), prometheus.CounterValue, float64(h.counts[i].Load()), append(h.labels(), word)...)
		}
	}
	for _, h := range all {
		out <- prometheus.MustNewConstMetric(sent, prometheus.CounterValue, float64(h.sent.Load()), h.labels()...)
		out <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, float64(h.refused.Load()), h.labels()...)
	}
}

// statusClass returns "2xx" for 2; "" when there was no status.
func statusClass(class int) string {
	if class == 0 {
		return ""
	}
	return strconv.Itoa(class) + "xx"
}

// durationMetric is a histogram that has classic and native buckets.
type durationMetric struct {
	desc   *prometheus.Desc
	labels []string
	total  *histogram
}

// Desc is part of prometheus.Metric.
func (m *durationMetric) Desc() *prometheus.Desc { return m.desc }

// Write is part of prometheus.Metric.
func (m *durationMetric) Write(out *dto.Metric) error {
	out.Label = prometheus.MakeLabelPairs(m.desc, m.labels)
	out.Histogram = &dto.Histogram{}
	m.total.write(out.Histogram)
	return nil
}
