// Package acme obtains certificates from ACME servers (RFC 8555) and renews them. It
// records every step: the checks before an order, the responses of the authority with their
// meaning, and the time of the next attempt.
//
// Set configures which certificates a Manager keeps valid. An order is a list of steps
// (order.go, finish.go): account → preflight → order → authorizations → challenge →
// finalize → chain → one commit. The state that is needed to continue is stored before each
// step, so that a crash does not cause a second order; a lease of the store excludes other
// machines. Answers holds the responses that the ports serve to authorities meanwhile. The
// protocol is implemented by acmez.
//
// Nothing here is on the path of a request, and a port never waits for it.
package acme

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/store"
)

// who is the actor of commits without an operator.
const who = "acme"

// Options are the options of a Manager.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// Store keeps accounts, orders and certificates.
	Store store.Store
	// Ports reports which ports are open.
	Ports Ports
	// Node is the name of this machine among those that share the store, "" if none do.
	Node string
	// Agent is how we call ourselves to authorities, such as headgate/1.0.
	Agent string
	// Install takes a new certificate into use. It is called after the certificate
	// was kept.
	Install func(*Issued)
	// Loaded is called when the stored state could be read after Start, because the store
	// was unavailable before. It may be nil.
	Loaded func()
	// Forget is called when a certificate is removed, because it is no longer configured
	// and expired long ago. It may be nil.
	Forget func(name string)
	// Tell is called with every change of a record's state. It may be nil.
	Tell func(*Record)
	// Allowed is called before a certificate on demand is renewed: nil allows that, an error
	// that wraps ErrNotAllowed does not. It may be nil if there are no rules.
	Allowed func(ctx context.Context, d *Demand, host string) error
}

// Want is a certificate that is wanted.
type Want struct {
	// Entry is the entry that it is ordered under, Settings are its settings.
	Entry    string
	Settings *Config
	// Names are what it is for: one group of Group.
	Names []string
}

// How many orders are under way at once: of one entry, so that an authority that is
// slow holds up its own only, and in all.
const (
	maxPerEntry = 8
	maxParallel = 32
)

// Manager orders certificates and renews them. Its methods may be called by several
// goroutines at once.
type Manager struct {
	// constant
	log     *slog.Logger
	store   store.Store
	ports   Ports
	node    string
	agent   string
	install func(*Issued)
	loaded  func()
	forget  func(string)
	tell    func(*Record)
	allowed func(context.Context, *Demand, string) error
	answers Answers
	pace    pace
	wake    chan struct{}
	stop    context.CancelFunc
	ctx     context.Context

	own      sync.Map // places of answers that are of orders here, until they are withdrawn
	accounts sync.Map // by name, a *sync.Mutex that is held while an account is made
	zones    sync.Map // by name, a *sync.Mutex that is held while a provider changes a set of records in it
	loading  sync.Mutex
	isLoaded bool // guarded by loading
	stopped  sync.WaitGroup

	mu struct {
		sync.Mutex
		jobs    map[string]*job // by name
		entries map[string]*Config
		wants   []Want
		others  []store.NodeOrder      // of machines that cannot order
		running map[string]int         // orders under way, by entry
		swept   time.Time              // when what is long gone was looked for last
		found   []found                // responses to challenges that existed at the start
		stale   map[string]int         // answers of directories that are not to be used
		limited map[string]time.Time   // until when directories want no more orders
		placed  map[string][]time.Time // when orders were placed, by directory
		closed  bool
		demands func(host string) *Demand // finds the rule for a host; may be nil

		directories map[string]knownDirectory // by URL
	}
}

// pace is how fast things are tried again.
type pace struct {
	first, most time.Duration // the pause after a failure
	look        time.Duration // between two looks whether a port has opened
	request     time.Duration // for one request to an authority
	poll        time.Duration // between two looks at an order; 0 is the library's own
}

var usualPace = pace{first: time.Minute, most: time.Hour, look: 2 * time.Second, request: requestTimeout}

// found is a response to a challenge of an unfinished order, of this process before a crash
// or of another one. Unless that order removes it, it is dropped when it expires.
type found struct {
	place string // below store.PrefixChallenge
	until time.Time
}

// job is a managed certificate. Its fields are guarded by Manager.mu, except the record
// while running, which belongs to the runner.
type job struct {
	entryName string
	entry     *Config
	names     []string
	record    *Record
	at        time.Time // the next run
	wanted    bool
	listed    bool // wanted by the configuration itself, not on demand
	others    bool // wanted by another machine only, which cannot order it
	running   bool
	again     bool // something has changed while it was running
	forced    bool // an operator has requested an order

	// untilValid is whether it runs again only unless it has become valid.
	untilValid bool

	// expected is until when an order of another machine is waited for; see ExpectOnDemand.
	expected time.Time

	changed chan struct{} // is closed after a run, if a handshake waits; see Progress

	shown atomic.Pointer[Record] // a copy for readers
}

// New returns a manager without certificates. Start starts it, Close stops it.
func New(o Options) *Manager {
	m := &Manager{log: o.Log, store: o.Store, ports: o.Ports, node: o.Node, agent: o.Agent, install: o.Install, loaded: o.Loaded, forget: o.Forget, tell: o.Tell, allowed: o.Allowed, pace: usualPace, wake: make(chan struct{}, 1)}
	m.mu.jobs, m.mu.entries, m.mu.stale = map[string]*job{}, map[string]*Config{}, map[string]int{}
	m.mu.directories = map[string]knownDirectory{}
	m.mu.running, m.mu.limited, m.mu.placed = map[string]int{}, map[string]time.Time{}, map[string][]time.Time{}
	m.ctx, m.stop = context.WithCancel(context.Background())
	if s, ok := o.Store.(Challenger); ok {
		m.answers.elsewhere = s.Challenge
	}
	return m
}

// Answers are what our ports answer authorities with.
func (m *Manager) Answers() *Answers { return &m.answers }

// Start starts to manage certificates, after the stored state was read: by Load, or else in
// a goroutine, with retries.
func (m *Manager) Start() {
	m.stopped.Go(func() {
		m.loading.Lock()
		late := !m.isLoaded
		m.loading.Unlock()
		for !m.Load() {
			select {
			case <-m.ctx.Done():
				return
			case <-time.After(m.pace.look):
			}
		}
		if late && m.loaded != nil {
			m.loaded()
		}
		m.stopped.Go(func() { m.follow(m.ctx) })
		m.loop()
	})
}

// Close gives orders up, which the next start takes up again, and waits.
func (m *Manager) Close() {
	m.mu.Lock()
	m.mu.closed = true
	m.mu.Unlock()
	m.stop()
	m.stopped.Wait()
}

// Load reads the records that are kept, and takes up the answers to challenges that
// are under way. It reports whether it could: a store that is away is no reason not to
// serve. Once it has, it does nothing.
func (m *Manager) Load() bool {
	m.loading.Lock()
	defer m.loading.Unlock()
	if m.isLoaded {
		return true
	}
	ctx, cancel := context.WithTimeout(m.ctx, 30*time.Second)
	defer cancel()
	var asked []store.Entry
	entries, _, err := m.store.Snapshot(ctx, store.PrefixOrder)
	if err == nil {
		asked, _, err = m.store.Snapshot(ctx, store.PrefixChallenge)
	}
	if err != nil {
		m.log.Error("read the state of ACME orders, trying again", "error", err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range asked {
		place := strings.TrimPrefix(e.Key, store.PrefixChallenge)
		if err := m.answer(place, e.Value); err != nil {
			m.log.Warn("the answer to a challenge cannot be used", "key", e.Key, "error", err)
			continue
		}
		m.mu.found = append(m.mu.found, found{place, e.Expires})
	}
	for _, e := range entries {
		r := &Record{}
		if err := json.Unmarshal(e.Value, r); err != nil || r.Name == "" {
			m.log.Error("the record of an order cannot be read, a new one is made", "key", e.Key, "error", err)
			continue
		}
		j := m.jobLocked(r.Name)
		j.record = r
		j.shown.Store(r.public())
		if j.wanted { // it was wanted before its record could be read
			j.at = m.firstLook(j)
		}
		m.keepDemandedLocked(j)
		for _, a := range r.Timeline {
			m.notePlacedLocked(a.Directory, a.Began)
		}
	}
	m.isLoaded = true
	return true
}

// jobLocked returns the job of a name, which is made if it is new.
func (m *Manager) jobLocked(name string) *job {
	j := m.mu.jobs[name]
	if j == nil {
		j = &job{record: &Record{Name: name, State: Idle, Since: m.now()}}
		j.shown.Store(j.record.public())
		m.mu.jobs[name] = j
	}
	return j
}

// Set configures the entries, by name, and the certificates to manage. A certificate that
// is no longer configured is not renewed; it stays in use until it expires. The caller must
// not change the arguments afterwards.
func (m *Manager) Set(entries map[string]*Config, wants []Want) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.entries, m.mu.wants = entries, wants
	m.configureAllLocked()
}

// configureAllLocked makes the certificates managed that are wanted here or by others.
func (m *Manager) configureAllLocked() {
	for _, j := range m.mu.jobs {
		j.wanted, j.listed, j.others = false, false, false
	}
	for _, w := range m.mu.wants {
		j := m.jobLocked(nameOf(w.Names))
		m.configureLocked(j, w)
		j.listed = true
	}
	for _, o := range m.mu.others {
		m.orderForOthersLocked(o)
	}
	for _, j := range m.mu.jobs {
		m.keepDemandedLocked(j)
	}
	m.wakeUp()
}

// configureLocked makes a certificate managed.
func (m *Manager) configureLocked(j *job, w Want) {
	if j.entryName != w.Entry || !reflect.DeepEqual(j.entry, w.Settings) || !slices.Equal(j.names, w.Names) {
		j.at = m.now()
		j.again, j.untilValid = j.running, false
		first := j.entry == nil
		j.entryName, j.entry, j.names = w.Entry, w.Settings, w.Names
		if first {
			j.at = m.firstLook(j)
		}
	}
	j.wanted = true
}

// Wake makes the manager look again at once at what is blocked or failed, such as
// when a port has opened.
func (m *Manager) Wake() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.mu.jobs {
		if s := j.shown.Load().State; s == Blocked {
			j.at = m.now()
			j.again, j.untilValid = j.running, false
		}
	}
	m.wakeUp()
}

// Order orders the certificate with a name anew, also if it is valid still.
func (m *Manager) Order(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j, err := m.orderableLocked(name)
	if err != nil {
		return err
	}
	j.forced = true
	if j.running { // one has just ended, and its end is being noted; or one has just begun
		j.again, j.untilValid = true, j.shown.Load().State != Valid
		return nil
	}
	j.record.Failures = 0
	j.at = m.now()
	m.wakeUp()
	return nil
}

// CanOrder returns what Order would, and orders nothing.
func (m *Manager) CanOrder(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.orderableLocked(name)
	return err
}

// orderableLocked returns the certificate with a name if it can be ordered now.
func (m *Manager) orderableLocked(name string) (*job, error) {
	j := m.mu.jobs[name]
	if j == nil || !j.wanted {
		return nil, fmt.Errorf("no certificate %q is wanted by an acme entry", name)
	}
	if s := j.shown.Load().State; j.running && s != Valid && s != Failed && s != Blocked {
		return nil, fmt.Errorf("an order for %s is under way", name)
	}
	return j, nil
}

func (m *Manager) now() time.Time { return time.Now() }

func (m *Manager) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}
