// Package acme gets certificates from ACME servers (RFC 8555) and renews them. It
// shows every step: what was looked at before an order, what the authority said, what
// it means, and when the next try is.
//
// A Manager is told which certificates are wanted (Set) and keeps them valid. An order
// is a list of steps (order.go): account → preflight → order → authorizations →
// challenge → finalize → chain → one commit. What is needed to go on is kept in the
// store before each step, so that a crash at any of them costs no second order; a
// lease of the store fences out other machines. Answers are what our ports are asked
// for meanwhile. The protocol itself is acmez's.
//
// Nothing here is on the way of a request, and a port never waits for it.
package acme

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/store"
)

// who is the actor of commits that nobody has asked for.
const who = "acme"

// Options is what a Manager is made of.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// Store keeps accounts, orders and certificates.
	Store store.Store
	// Ports says which of our ports are open.
	Ports Ports
	// Agent is how we call ourselves to authorities, such as headgate/1.0.
	Agent string
	// Install takes a new certificate into use. It is called after the certificate
	// was kept.
	Install func(*Issued)
	// Forget hears that a certificate is kept no more: nobody wants it, and it ended
	// long ago. It may be nil.
	Forget func(name string)
	// Tell hears of every change of a record's state. It may be nil.
	Tell func(*Record)
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
	agent   string
	install func(*Issued)
	forget  func(string)
	tell    func(*Record)
	answers Answers
	pace    pace
	wake    chan struct{}
	stop    context.CancelFunc
	ctx     context.Context

	accounts sync.Map   // by name, a *sync.Mutex that is held while an account is made
	sets     sync.Mutex // held while a provider reads and writes a set of records
	loading  sync.Mutex
	loaded   bool // guarded by loading
	stopped  sync.WaitGroup

	mu struct {
		sync.Mutex
		jobs    map[string]*job // by name
		entries map[string]*Config
		running map[string]int         // orders under way, by entry
		swept   time.Time              // when what is long gone was looked for last
		stale   map[string]int         // answers of directories that are not to be used
		limited map[string]time.Time   // until when directories want no more orders
		placed  map[string][]time.Time // when orders were placed, by directory
		closed  bool

		directories map[string]knownDirectory // by URL
	}
}

// pace is how fast things are tried again.
type pace struct {
	first, most time.Duration // the pause after a failure
	look        time.Duration // between two looks whether a port has opened
}

var usualPace = pace{first: time.Minute, most: time.Hour, look: 2 * time.Second}

// job is a certificate that is looked after. Its fields are guarded by Manager.mu,
// but for the record while running, which belongs to the runner.
type job struct {
	entryName string
	entry     *Config
	names     []string
	record    *Record
	at        time.Time // when it is looked at again
	wanted    bool
	running   bool
	again     bool // something has changed while it was running
	forced    bool // somebody has asked for an order

	shown atomic.Pointer[Record] // what others see
}

// New returns a manager that looks after nothing yet. Start begins, Close ends.
func New(o Options) *Manager {
	m := &Manager{log: o.Log, store: o.Store, ports: o.Ports, agent: o.Agent, install: o.Install, forget: o.Forget, tell: o.Tell, pace: usualPace, wake: make(chan struct{}, 1)}
	m.mu.jobs, m.mu.entries, m.mu.stale = map[string]*job{}, map[string]*Config{}, map[string]int{}
	m.mu.directories = map[string]knownDirectory{}
	m.mu.running, m.mu.limited, m.mu.placed = map[string]int{}, map[string]time.Time{}, map[string][]time.Time{}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m
}

// Answers are what our ports answer authorities with.
func (m *Manager) Answers() *Answers { return &m.answers }

// Start begins to look after certificates, after what is kept was read: by Load, or
// else beside the caller, as often as it takes.
func (m *Manager) Start() {
	m.stopped.Go(func() {
		for !m.Load() {
			select {
			case <-m.ctx.Done():
				return
			case <-time.After(m.pace.look):
			}
		}
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
	if m.loaded {
		return true
	}
	ctx, cancel := context.WithTimeout(m.ctx, 30*time.Second)
	defer cancel()
	entries, _, err := m.store.Snapshot(ctx, store.PrefixOrder)
	if err == nil {
		var asked []store.Entry
		asked, _, err = m.store.Snapshot(ctx, store.PrefixChallenge)
		for _, e := range asked {
			m.answers.setHTTP(strings.TrimPrefix(e.Key, store.PrefixChallenge), string(e.Value))
		}
	}
	if err != nil {
		m.log.Error("read the state of ACME orders, trying again", "error", err)
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
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
		for _, a := range r.Timeline {
			m.notePlacedLocked(a.Directory, a.Began)
		}
	}
	m.loaded = true
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

// Set says which entries there are, by name, and which certificates are wanted from
// now on. One that is not wanted any more is not renewed; it stays in use until it
// ends. What was given must not be changed any more.
func (m *Manager) Set(entries map[string]*Config, wants []Want) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mu.entries = entries
	for _, j := range m.mu.jobs {
		j.wanted = false
	}
	now := m.now()
	for _, w := range wants {
		j := m.jobLocked(nameOf(w.Names))
		if j.entryName != w.Entry || !reflect.DeepEqual(j.entry, w.Settings) || !slices.Equal(j.names, w.Names) {
			j.at = now
			j.again = j.running
			first := j.entry == nil
			j.entryName, j.entry, j.names = w.Entry, w.Settings, w.Names
			if first {
				j.at = m.firstLook(j)
			}
		}
		j.wanted = true
	}
	m.wakeUp()
}

// firstLook returns when a certificate is looked at first after a start: at once, but
// an order that has failed with the same settings waits for its turn, so that a
// process which is started again and again does not burn orders.
func (m *Manager) firstLook(j *job) time.Time {
	now := m.now()
	r := j.record
	if r.State == Failed && r.Open == nil && r.Tried == sumOf(j.entry, j.names) && r.NextTry.After(now) && r.NextTry.Sub(now) <= 2*m.pace.most {
		return r.NextTry
	}
	return now
}

// sumOf tells settings apart.
func sumOf(e *Config, names []string) string {
	data, err := json.Marshal([]any{e, names})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Look makes the manager look again at once at what is blocked or failed, such as
// when a port has opened.
func (m *Manager) Look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.mu.jobs {
		if s := j.shown.Load().State; s == Blocked {
			j.at = m.now()
			j.again = j.running
		}
	}
	m.wakeUp()
}

// Order orders the certificate with a name anew, also if it is valid still.
func (m *Manager) Order(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.mu.jobs[name]
	if j == nil || !j.wanted {
		return fmt.Errorf("no certificate %q is wanted by an acme entry", name)
	}
	if j.running && j.shown.Load().State != Valid {
		return fmt.Errorf("an order for %s is under way", name)
	}
	j.forced = true
	if j.running { // one has just ended, and its end is being noted
		j.again = true
		return nil
	}
	j.record.Failures = 0
	j.at = m.now()
	m.wakeUp()
	return nil
}

// Records returns how all certificates stand, by name.
func (m *Manager) Records() []*Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*Record
	for _, name := range slices.Sorted(maps.Keys(m.mu.jobs)) {
		out = append(out, m.mu.jobs[name].shown.Load())
	}
	return out
}

func (m *Manager) entry(name string) *Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.entries[name]
}

func (m *Manager) now() time.Time { return time.Now() }

func (m *Manager) wakeUp() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// loop starts what is due, until the manager is closed.
func (m *Manager) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
		case <-timer.C:
		}
		timer.Reset(m.startDue())
	}
}

// startDue starts what is due, as far as there is room, and returns for how long
// nothing else is.
func (m *Manager) startDue() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	next := m.pace.most
	m.sweepLocked(now)
	all := 0
	for _, n := range m.mu.running {
		all += n
	}
	if all >= maxParallel || m.mu.closed {
		return next // one that ends wakes us
	}
	for _, name := range m.dueLocked(now) {
		j := m.mu.jobs[name]
		if all >= maxParallel {
			break
		}
		if m.mu.running[j.entryName] < maxPerEntry {
			m.startLocked(j)
			all++
		}
	}
	for _, j := range m.mu.jobs {
		switch {
		case !j.wanted || j.running || m.mu.running[j.entryName] >= maxPerEntry:
		case waitsForPort(j):
			next = min(next, m.pace.look)
		default:
			next = min(next, max(j.at.Sub(now), time.Millisecond))
		}
	}
	return next
}

// keepGone is for how long a certificate that nobody wants is kept after its end.
const keepGone = 7 * 24 * time.Hour

// sweepLocked forgets certificates that nobody wants and that ended long ago, an
// hour apart: hosts come and go, and what is kept of them must not grow for ever.
func (m *Manager) sweepLocked(now time.Time) {
	if now.Sub(m.mu.swept).Abs() < time.Hour {
		return
	}
	m.mu.swept = now
	var gone []string
	for name, j := range m.mu.jobs {
		r := j.shown.Load()
		if end := latest(r.Since, r.NotAfter); !j.wanted && !j.running && now.Sub(end) > keepGone {
			gone = append(gone, name)
			delete(m.mu.jobs, name)
		}
	}
	if len(gone) > 0 {
		m.stopped.Go(func() { m.remove(gone) })
	}
}

// remove takes certificates out of the store that are not looked after any more.
func (m *Manager) remove(names []string) {
	for _, name := range names {
		m.mu.Lock()
		again := m.mu.jobs[name] != nil
		m.mu.Unlock()
		if again {
			continue // it is wanted again
		}
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		_, err := m.store.Commit(ctx, store.Change{Delete: []string{store.PrefixOrder + name, store.PrefixCertificate + name}, Who: who, Why: name + " ended and is not wanted any more"})
		cancel()
		if err != nil {
			m.log.Warn("remove a certificate that ended", "certificate", name, "error", err) // the next start finds it again
			continue
		}
		if m.forget != nil {
			m.forget(name)
		}
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dueLocked returns what is to be looked at now, the longest overdue first.
func (m *Manager) dueLocked(now time.Time) []string {
	var due []string
	for name, j := range m.mu.jobs {
		if !j.wanted || j.running {
			continue
		}
		if !j.at.After(now) || waitsForPort(j) && m.portOpen(j) {
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int {
		if c := m.mu.jobs[a].at.Compare(m.mu.jobs[b].at); c != 0 {
			return c
		}
		return strings.Compare(a, b)
	})
	return due
}

// waitsForPort reports whether a job goes on when one of our ports opens.
func waitsForPort(j *job) bool {
	r := j.shown.Load()
	return r.State == Blocked && r.Trouble != nil && r.Trouble.Code == "port_not_open"
}

func (m *Manager) portOpen(j *job) bool {
	for _, name := range j.names {
		if _, t := m.choose(j.entry, name); t != nil {
			return false
		}
	}
	return true
}

// publish shows a record to others.
func (m *Manager) publish(r *Record) {
	m.mu.Lock()
	j := m.mu.jobs[r.Name]
	m.mu.Unlock()
	if j == nil {
		return
	}
	shown := r.public()
	if before := j.shown.Swap(shown); m.tell != nil && before.State != shown.State {
		m.tell(shown)
	}
}

// keep writes a record to the store, with other entries in the same commit, and
// shows it.
func (m *Manager) keep(ctx context.Context, r *Record, lease *store.Lease, more ...store.Entry) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	put := append(more, store.Entry{Key: store.PrefixOrder + r.Name, Value: data})
	if _, err = m.store.Commit(ctx, store.Change{Put: put, Under: lease, Who: who, Why: r.Name + " is " + string(r.State)}); err != nil {
		if errors.Is(err, store.ErrFenced) {
			return err
		}
		return storeTrouble(err)
	}
	m.publish(r)
	return nil
}

// keepLoud is keep where nobody waits for the result.
func (m *Manager) keepLoud(r *Record) {
	ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
	defer cancel()
	if err := m.keep(ctx, r, nil); err != nil {
		m.publish(r)
		if m.ctx.Err() == nil {
			m.log.Error("keep the state of an order", "certificate", r.Name, "error", err)
		}
	}
}

// leaf returns the certificate that is in use.
func (m *Manager) leaf(ctx context.Context, name string) (*x509.Certificate, error) {
	e, err := m.store.Get(ctx, store.PrefixCertificate+name)
	if err != nil {
		return nil, err
	}
	issued, err := ParseIssued(name, e.Value)
	if err != nil {
		return nil, err
	}
	return issued.Certificate.Leaf, nil
}

// issuedFor counts the certificates that a directory has issued below a domain within
// a week.
func (m *Manager) issuedFor(domain, directory string, now time.Time) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range m.mu.jobs {
		r := j.shown.Load()
		if len(r.Has) > 0 && registered(r.Has[0]) == domain {
			_, issued := r.count(directory, now)
			n += issued
		}
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
