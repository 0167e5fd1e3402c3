// Package metrics counts what headgate does and exports it in the Prometheus formats.
// table.go lists every metric; docs/reference/metrics.md is generated from it.
//
// Code that counts gets a handle from the Registry once, when a plan is compiled: Route,
// Server or Port. Counting with a handle costs a few nanoseconds, does not allocate and,
// for frequent counters, only writes memory of the current processor. A handle that is
// retired disappears from the page.
//
// The package does not serve the page; internal/admin does, with Handler.
package metrics

import (
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"headgate/internal/exchange"
)

// Build identifies the version that is running.
type Build struct {
	Version, Revision string
}

// Registry holds all metrics of a process. Its methods may be called by several
// goroutines at once.
type Registry struct {
	// Constant.
	build  Build
	prom   *prometheus.Registry
	tokens sync.Pool // of *token: hands each processor its own
	all    []token

	next     atomic.Uint32 // the next token of the pool
	applied  atomic.Uint64
	refused  atomic.Uint64
	appliedT atomic.Int64 // Unix nanoseconds of the last apply that succeeded
	last     atomic.Bool  // the last apply succeeded

	// inherited are the counters of the process before, by name; nil for none. What it
	// points to is not changed.
	inherited atomic.Pointer[map[string]*dto.MetricFamily]

	countries countries

	touched struct {
		sync.Mutex
		touches
	}

	mu struct {
		sync.Mutex
		routes  *handles[exchange.Place, Route]
		servers *handles[serverKey, Server]
		retries *handles[routeKey, Retries]
		mirrors *handles[routeKey, Mirror]
		queues  *handles[routeKey, Queue]
		ports   *handles[string, Port]
		caches  *handles[routeKey, Cache]
		streams *handles[streamKey, Stream]
		dropped func() uint64
		spans   func() (sent, dropped, lost uint64)

		certificates func() []Certificate
		providers    func() []Provider
		defence      func() Defence
		splits       func() []Split
		onDemand     func() map[string]uint64
		gate         func() (sessions int, signIns, failed uint64)
		store        func() (Store, bool)
		pair         func() (Pair, bool)
		floods       map[string]uint64
	}
}

// New returns a registry with the metrics of the Go runtime and of the process
// in it.
func New(build Build) *Registry {
	r := &Registry{build: build, prom: prometheus.NewRegistry(), all: make([]token, tokenCount())}
	for i := range r.all {
		r.all[i].index = i
	}
	r.tokens.New = func() any { return r.nextToken() }
	r.mu.routes = newHandles(r, placeValues, (*Route).self)
	r.mu.floods = map[string]uint64{}
	r.mu.servers = newHandles(r, serverKey.values, (*Server).self)
	r.mu.retries = newHandles(r, routeKey.values, (*Retries).self)
	r.mu.mirrors = newHandles(r, routeKey.values, (*Mirror).self)
	r.mu.queues = newHandles(r, routeKey.values, (*Queue).self)
	r.mu.ports = newHandles(r, nameValues, (*Port).self)
	r.mu.caches = newHandles(r, routeKey.values, (*Cache).self)
	r.mu.streams = newHandles(r, streamKey.values, (*Stream).self)
	r.prom.MustRegister(r,
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Handler returns the page: text, OpenMetrics or protocol buffers, as
// negotiated. Only protocol buffers contain native histograms.
func (r *Registry) Handler() http.Handler {
	page := promhttp.HandlerFor(r, promhttp.HandlerOpts{
		EnableOpenMetrics:   true,
		MaxRequestsInFlight: maxReaders,
		CoalesceGather:      true, // with many proxies it is large: who comes meanwhile gets the same
	})
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		// The library's own time-out would hold the whole page in memory.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(readTimeout)) // a test's has none
		page.ServeHTTP(w, rq)
	})
}

// The bounds of reading the page.
const (
	maxReaders  = 8
	readTimeout = 30 * time.Second
)

// Applied counts a change of the configuration: one that was applied, or one
// that was rejected.
func (r *Registry) Applied(ok bool) {
	if !ok {
		r.refused.Add(1)
		return
	}
	r.applied.Add(1)
	r.appliedT.Store(time.Now().UnixNano())
}

// InForce sets whether the configuration files are active in their present form,
// or were rejected.
func (r *Registry) InForce(ok bool) { r.last.Store(ok) }

// Flooded counts a connection that was ended for a flood. There are few words.
func (r *Registry) Flooded(word string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.floods[word]++
}

// Spans sets the source of the numbers of trace spans that were sent, dropped and lost.
// Nil removes it.
func (r *Registry) Spans(counts func() (sent, dropped, lost uint64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.spans = counts
}

// AccessLog sets the source of the number of dropped access log records:
// accesslog.Log.Lost. Nil removes it. The number never falls when the log is
// replaced, if dropped ensures that.
func (r *Registry) AccessLog(dropped func() uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.dropped = dropped
}

// Certificate is the state of a certificate.
type Certificate struct {
	// Name is its name in the configuration, State the word of the status.
	Name, State string
	// NotAfter is when it ends, the zero time for one that is missing.
	NotAfter time.Time
}

// Certificates sets the source of the states of certificates.
func (r *Registry) Certificates(stand func() []Certificate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.certificates = stand
}

// Provider is the state of a provider of discovery.
type Provider struct {
	// Name is that of its entry, Up whether it answers, Issues how many it has.
	Name   string
	Up     bool
	Issues int
}

// Providers sets the source of the states of providers.
func (r *Registry) Providers(stand func() []Provider) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.providers = stand
}

// Split contains the numbers of a split of a route.
type Split struct {
	// Proxy and Route are the names of the proxy, and of the route with its matchers.
	Proxy, Route string
	// Share is the candidate's percentage.
	Share int
	// Stable and Candidate are the counts of the groups.
	Stable, Candidate SplitCounts
}

// SplitCounts are the requests of a group, and those that failed.
type SplitCounts struct{ Requests, Errors uint64 }

// Splits sets the source of the numbers of splits.
func (r *Registry) Splits(now func() []Split) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.splits = now
}

// Defence contains the numbers of lists and bans.
type Defence struct {
	// Lists are the lists of addresses.
	Lists []List
	// Active is how many bans are in force, Made how many were made, and Refused how many
	// requests and connections they refused.
	Active        int
	Made, Refused uint64
}

// List is a list of addresses.
type List struct {
	Name    string
	Up      bool // its source could be loaded
	Entries int
}

// Defence says where it is found how lists and bans are.
func (r *Registry) Defence(now func() Defence) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.defence = now
}

// Gate sets where it is found how many people are signed in, and how many sign-ins succeeded
// and failed.
func (r *Registry) Gate(now func() (sessions int, signIns, failed uint64)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.gate = now
}

// OnDemand sets where the outcomes of certificates on demand are found, by their word.
func (r *Registry) OnDemand(now func() map[string]uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.onDemand = now
}

// Store is the state of a store that several machines share.
type Store struct {
	// Following reports whether this machine follows the store.
	Following bool
	// Lag is how many revisions of the store, as far as they are known, it has not yet read.
	Lag uint64
	// Reconnects is how often it has followed the store again.
	Reconnects uint64
	// Commits is how many changes it has committed, and CommitTime how long they took.
	Commits    uint64
	CommitTime time.Duration
	// Waits is how many of them it has read back, and WatchTime how long that took.
	Waits     uint64
	WatchTime time.Duration
}

// Store sets what returns the state of the shared store; false if nothing is shared.
func (r *Registry) Store(now func() (Store, bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.store = now
}

// Pair is the state of a machine in its pair.
type Pair struct {
	// Leads reports whether the machine leads, Connected whether the follower has a stream
	// from the leader.
	Leads, Connected bool
	// Lag is by how many revisions the follower is behind.
	Lag uint64
	// Reconnects is how often the follower has opened a stream.
	Reconnects uint64
	// LastContact is when the other machine was heard from last, the zero time if it was not.
	LastContact time.Time
}

// Pair sets what returns the state of the pair; false if there is none.
func (r *Registry) Pair(now func() (Pair, bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.pair = now
}

// Route returns the handle for exchanges of a place. A place without a proxy
// and a route represents the requests of a port that matched no route. Each
// call needs a Retire of its own; equal places share one handle.
func (r *Registry) Route(place exchange.Place) *Route {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.routes.shareLocked(place)
}

// Server returns the handle for the attempts at one server of a route. Each call
// wants a Retire of its own; equal servers share one handle.
func (r *Registry) Server(proxy, route, url string) *Server {
	key := serverKey{proxy, route, url}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.servers.shareLocked(key)
}

// Port returns the handle for the connections of a port. Each call wants a
// Retire of its own; equal names share one handle.
func (r *Registry) Port(name string) *Port {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.ports.shareLocked(name)
}

// labels returns label values in a form that Prometheus accepts.
func labels(values ...string) []string {
	for i := range values {
		values[i] = strings.ToValidUTF8(values[i], "\uFFFD")
	}
	return values
}

// token represents a processor. Which one is not fixed: what matters is that
// two processors seldom have the same one at a time.
type token struct {
	index int
}

// maxTokens bounds in how many parts one number is counted.
const maxTokens = 64

// tokenCount returns a power of two: the number of processors and up to twice
// as many, at most maxTokens.
func tokenCount() int {
	n := 1
	for n <= runtime.GOMAXPROCS(0) && n < maxTokens {
		n *= 2
	}
	return n
}

// nextToken returns the next token in turn.
func (r *Registry) nextToken() *token {
	return &r.all[int(r.next.Add(1))&(len(r.all)-1)]
}
