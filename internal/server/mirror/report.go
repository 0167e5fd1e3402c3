// Package mirror compares the responses to requests that were mirrored: status, body, header
// fields and time. A Report is what was counted and a bounded sample of the differences, in
// memory, for one route.
//
// Bodies are hashed while they pass and never held. Use it with Start for each request, Head,
// Write and End for both responses.
package mirror

import (
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/server/times"
)

// MaxBody is up to where bodies are compared, in bytes. The copy's is not read further.
const MaxBody = 16 << 20

// The limits of a report.
const (
	maxSamples = 50
	maxNames   = 50 // of header fields
	maxPath    = 256
)

// Report compares responses. The zero value is ready, and safe for concurrent use.
type Report struct {
	running atomic.Int64
	skipped atomic.Int64

	mu struct {
		sync.Mutex
		state   State
		taken   [2]times.Counts
		samples []ResponseDifference
	}
}

// State is what a report has counted since it was started.
type State struct {
	// Since is the time of the first comparison; absent before that.
	Since time.Time `json:"since,omitzero"`
	// Compared is the number of requests with a response from both.
	Compared int64 `json:"compared" required:"true"`
	// Same is the number of compared requests without a difference.
	Same int64 `json:"same" required:"true"`
	// Status is the number of requests whose first difference is the status.
	Status int64 `json:"status" required:"true"`
	// Body is the number of requests whose first difference is the body.
	Body int64 `json:"body" required:"true"`
	// Header is the number of requests whose first difference is a header.
	Header int64 `json:"header" required:"true"`
	// Incomplete are those whose bodies could not be compared, because one of them was cut off.
	Incomplete int64 `json:"incomplete" required:"true"`
	// Skipped are copies that were not compared because too many comparisons were in progress.
	Skipped int64 `json:"skipped" required:"true"`
	// Servers counts the responses of the route's servers.
	Servers ResponseStats `json:"servers" required:"true"`
	// Mirror counts the responses of the mirror's servers.
	Mirror ResponseStats `json:"mirror" required:"true"`
	// Headers are the header fields that differ, the most frequent first, also of responses
	// with another difference.
	Headers []FieldCount `json:"headers" required:"true"`
	// Samples are the latest differences, one for each path and kind, the newest first.
	Samples []ResponseDifference `json:"samples" required:"true"`
}

// ResponseStats is what was counted of one side.
type ResponseStats struct {
	// Failed are requests without a response.
	Failed int64 `json:"failed" required:"true"`
	// P50 is the median of the time to the response head, in milliseconds.
	P50 float64 `json:"p50_ms" required:"true"`
	// P95 is the 95th percentile of the time to the response head, in milliseconds.
	P95 float64 `json:"p95_ms" required:"true"`
}

// FieldCount is how often a header field differs.
type FieldCount struct {
	// Name is the name of the field, in lower case.
	Name string `json:"name" required:"true"`
	// Requests is the number of requests.
	Requests int64 `json:"requests" required:"true"`
}

// Kind is the first difference of two responses.
type Kind string

// The kinds of differences.
const (
	Status Kind = "status"
	Body   Kind = "body"
	Header Kind = "header"
)

// ResponseDifference is a request with different responses.
type ResponseDifference struct {
	// Time is when the difference was last seen.
	Time time.Time `json:"time" required:"true"`
	// Requests is how often it was seen.
	Requests int64 `json:"requests" required:"true"`
	// Method is the method of the request.
	Method string `json:"method" required:"true"`
	// Path is the path of the request, without its query, whose values can be secrets.
	Path string `json:"path" required:"true"`
	// Kind is the first difference.
	Kind Kind `json:"kind" required:"true" enum:"status,body,header"`
	// Servers is the response of the route's server.
	Servers ComparedResponse `json:"servers" required:"true"`
	// Mirror is the response of the mirror's server.
	Mirror ComparedResponse `json:"mirror" required:"true"`
	// Field is the name of the first header field that differs, in lower case, of the kind header.
	Field string `json:"field,omitempty"`
}

// ComparedResponse is one of two responses.
type ComparedResponse struct {
	// Status is its status; 0 if there is no response.
	Status int `json:"status" required:"true"`
	// Bytes is the length of the body, as far as it was read.
	Bytes int64 `json:"bytes" required:"true"`
	// Millis is the time to its head.
	Millis float64 `json:"ms" required:"true"`
	// Value is that of the field, empty if it is absent. Of a cookie it is the name; values
	// that could be secrets are replaced by "…".
	Value string `json:"value,omitempty"`
}

// seed makes the hashes of this process.
var seed = maphash.MakeSeed()

// Start starts a comparison, at most limit at once. It returns nil, which is counted, beyond
// that. The strings are copied.
func (r *Report) Start(method, path string, limit int) *Pair {
	if r.running.Add(1) > int64(limit) {
		r.running.Add(-1)
		r.skipped.Add(1)
		return nil
	}
	p := &Pair{report: r, method: string([]byte(method)), path: string([]byte(path[:min(len(path), maxPath)]))}
	p.open.Store(2)
	for _, s := range []*Answer{&p.Servers, &p.Mirror} {
		s.pair = p
		s.hash.SetSeed(seed)
	}
	return p
}

// Drop gives up a comparison whose request is not sent to the mirror.
func (p *Pair) Drop() {
	p.dropped.Store(true)
	p.Mirror.End(false)
}

// State returns the counts and samples at this moment.
func (r *Report) State() State {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.mu.state
	s.Skipped = r.skipped.Load()
	for i, side := range []*ResponseStats{&s.Servers, &s.Mirror} {
		side.P50, side.P95 = millis(r.mu.taken[i].Quantile(0.5)), millis(r.mu.taken[i].Quantile(0.95))
	}
	s.Headers = append([]FieldCount{}, s.Headers...)
	slices.SortStableFunc(s.Headers, func(a, b FieldCount) int { return int(b.Requests - a.Requests) })
	s.Samples = append([]ResponseDifference{}, r.mu.samples...)
	slices.Reverse(s.Samples)
	return s
}

// millis returns a duration in milliseconds with two decimals.
func millis(d time.Duration) float64 { return math.Round(float64(d)/1e4) / 100 }

// finish counts a pair whose both sides have ended.
func (r *Report) finish(p *Pair) {
	defer r.running.Add(-1)
	if p.dropped.Load() {
		return
	}
	differ := p.differences()
	kind, complete := p.compare(differ)
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.mu.state
	if s.Compared++; s.Compared == 1 {
		s.Since = time.Now().UTC()
	}
	for i, a := range []*Answer{&p.Servers, &p.Mirror} {
		if a.status == 0 {
			*[]*int64{&s.Servers.Failed, &s.Mirror.Failed}[i]++
		} else {
			r.mu.taken[i][times.Bucket(a.took)]++
		}
	}
	for _, d := range differ {
		r.countLocked(d.name)
	}
	switch {
	case kind == Status:
		s.Status++
	case kind == Body:
		s.Body++
	case kind == Header:
		s.Header++
	case complete:
		s.Same++
	}
	if !complete {
		s.Incomplete++
	}
	if kind != "" {
		r.sampleLocked(p.sample(kind, differ))
	}
}

// countLocked counts a header field that differs.
func (r *Report) countLocked(name string) {
	all := r.mu.state.Headers
	for i := range all {
		if all[i].Name == name {
			all[i].Requests++
			return
		}
	}
	if len(all) < maxNames {
		r.mu.state.Headers = append(all, FieldCount{name, 1})
	}
}

// sampleLocked adds a difference, in the place of the last one of its kind and path, or else
// of the oldest.
func (r *Report) sampleLocked(s ResponseDifference) {
	all := r.mu.samples
	i := slices.IndexFunc(all, func(o ResponseDifference) bool { return o.Kind == s.Kind && o.Path == s.Path && o.Method == s.Method })
	switch {
	case i >= 0:
		s.Requests += all[i].Requests
		all = slices.Delete(all, i, i+1)
	case len(all) == maxSamples:
		all = slices.Delete(all, 0, 1)
	}
	r.mu.samples = append(all, s)
}
