package metrics

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

// A process that replaces another one continues its counters: Export returns the numbers of
// the old process, as they are on its page, and the page of the new one is the sum of those
// and its own. The old process exports again while it drains; each export replaces the one
// before. What is now, such as open connections, is not carried over.

// maxFamily bounds one metric that is read, in bytes.
const maxFamily = 64 << 20

// carriedFamilies are the names of the metrics that are carried over. Those that come from
// the states of servers go to a new process together with these.
func carriedFamilies() map[string]bool {
	f, names := table(), map[string]bool{}
	for _, m := range f.all() {
		if m.kind != gauge {
			names[m.name] = true
		}
	}
	for _, m := range []family{f.ejections, f.checks, f.opened} {
		delete(names, m.name)
	}
	return names
}

// Export returns the counters for a process that replaces this one.
func (r *Registry) Export() ([]byte, error) {
	all, err := r.Gather()
	if err != nil {
		return nil, err
	}
	names := carriedFamilies()
	var out bytes.Buffer
	for _, f := range all {
		if !names[f.GetName()] {
			continue
		}
		if _, err := protodelim.MarshalTo(&out, f); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// Import makes the counters that Export has returned in another process part of those of
// this one, instead of those of an earlier call.
func (r *Registry) Import(data []byte) error {
	names, all := carriedFamilies(), map[string]*dto.MetricFamily{}
	in := bytes.NewReader(data)
	for {
		f := &dto.MetricFamily{}
		err := protodelim.UnmarshalOptions{MaxSize: maxFamily}.UnmarshalFrom(in, f)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if names[f.GetName()] {
			all[f.GetName()] = f
		}
	}
	r.inherited.Store(&all)
	return nil
}

// Gather returns what the page shows. It is that of a prometheus.Gatherer.
func (r *Registry) Gather() ([]*dto.MetricFamily, error) {
	own, err := r.prom.Gather()
	before := r.inherited.Load()
	if before == nil {
		return own, err
	}
	have := map[string]*dto.MetricFamily{}
	for _, f := range own {
		have[f.GetName()] = f
	}
	for name, old := range *before {
		now := have[name]
		if now == nil {
			now = &dto.MetricFamily{Name: old.Name, Help: old.Help, Type: old.Type}
			own = append(own, now)
		}
		if now.GetType() == old.GetType() {
			addFamily(now, old)
		}
	}
	slices.SortFunc(own, func(a, b *dto.MetricFamily) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return own, err
}

var _ prometheus.Gatherer = (*Registry)(nil)

// addFamily adds the metrics of another process to those of this one. The other ones are
// not changed: they are added again the next time.
func addFamily(now, old *dto.MetricFamily) {
	have := make(map[string]*dto.Metric, len(now.Metric))
	for _, m := range now.Metric {
		have[labelsOf(m)] = m
	}
	for _, o := range old.Metric {
		m := have[labelsOf(o)]
		switch {
		case m == nil:
			now.Metric = append(now.Metric, o)
		case m.Counter != nil && o.Counter != nil:
			m.Counter.Value = new(m.Counter.GetValue() + o.Counter.GetValue())
		case m.Histogram != nil && o.Histogram != nil:
			addHistogram(m.Histogram, o.Histogram)
		}
	}
	slices.SortFunc(now.Metric, func(a, b *dto.Metric) int { return strings.Compare(labelsOf(a), labelsOf(b)) })
}

// labelsOf returns the label values of a metric as one text. Prometheus sorts labels.
func labelsOf(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.Label {
		b.WriteString(l.GetName() + "\xff" + l.GetValue() + "\xff") // not in UTF-8
	}
	return b.String()
}

// addHistogram adds another histogram, unless its buckets are different.
func addHistogram(now, old *dto.Histogram) {
	var sum, other histogram
	if !sum.read(now) || !other.read(old) {
		return
	}
	sum.count += other.count
	sum.sum += other.sum
	sum.zero += other.zero
	for i := range sum.classic {
		sum.classic[i] += other.classic[i]
	}
	for i := range sum.native {
		sum.native[i] += other.native[i]
	}
	*now = dto.Histogram{}
	sum.write(now)
}

// read is the reverse of write. It reports false for a histogram with other buckets.
func (h *histogram) read(in *dto.Histogram) bool {
	if len(in.Bucket) != len(bounds) || in.GetSchema() != schema {
		return false
	}
	h.count, h.zero = in.GetSampleCount(), in.GetZeroCount()
	h.sum = uint64(max(0, math.Round(in.GetSampleSum()*1e9)))
	var below uint64
	for i, b := range in.Bucket {
		if b.GetUpperBound() != bounds[i].Seconds() || b.GetCumulativeCount() < below {
			return false
		}
		h.classic[i] = b.GetCumulativeCount() - below
		below = b.GetCumulativeCount()
	}
	return h.readNative(in)
}

func (h *histogram) readNative(in *dto.Histogram) bool {
	key, value, deltas := 0, int64(0), in.PositiveDelta
	for _, span := range in.PositiveSpan {
		key += int(span.GetOffset())
		for range span.GetLength() {
			at := key - lowestKey
			if len(deltas) == 0 || at < 0 || at >= len(h.native) {
				return false
			}
			value += deltas[0]
			if deltas = deltas[1:]; value < 0 {
				return false
			}
			h.native[at] = uint64(value)
			key++
		}
	}
	return len(deltas) == 0
}
