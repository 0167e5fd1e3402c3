// Package lists keeps lists of addresses that settings refer to by name: written in the
// configuration, in a file, downloaded, or decided by a CrowdSec engine.
//
// A Manager takes part in changes of the configuration: Prepare reads what is at hand,
// Commit starts what keeps lists up to date, Cancel forgets. A List is asked by filters for
// each request, and its content is replaced whole while they do. list.go has the list and
// its state, source.go downloads and files, names.go host names, engine.go CrowdSec,
// kept.go what survives a restart.
//
// The package does not know what a list is used for.
package lists

import (
	"context"
	"crypto/x509"
	"log/slog"
	"maps"
	"net/netip"
	"path/filepath"
	"reflect"
	"slices"
	"sync"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/resolve"
)

// Options is what a Manager is made of.
type Options struct {
	// Log is the application's log. Nil discards.
	Log *slog.Logger
	// Dir is where lists from elsewhere are kept; "" keeps none.
	Dir string
	// Version is that of headgate, which servers are told.
	Version string
	// Agent is the user agent of downloads.
	Agent string
	// Roots are the authorities that servers are trusted by; nil is the system's.
	Roots *x509.CertPool
	// Clock returns the time; nil is the system's.
	Clock func() time.Time
	// Lookup resolves host names; nil asks the system's resolver. A time to live below 0 is
	// not known.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, time.Duration, error)
	// Protected returns why no list from elsewhere may have a network, "" where it may.
	// Nil protects none.
	Protected func(netip.Prefix) string
	// Notify is called with what happens to lists. It must be quick, and may be nil.
	Notify func(Event)

	filePause time.Duration // how often files are looked at
}

// Manager keeps the lists of the configuration in use. Its methods may be called by several
// goroutines at once, but Prepare, Commit and Cancel by one at a time.
type Manager struct {
	o  Options
	mu struct {
		sync.Mutex
		running map[string]*List
	}
}

// New returns a manager without lists. Close ends it.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Lookup == nil {
		o.Lookup = resolve.Lookup
	}
	if o.filePause == 0 {
		o.filePause = filePause
	}
	m := &Manager{o: o}
	m.mu.running = map[string]*List{}
	return m
}

// Close ends what keeps lists up to date, and waits for it.
func (m *Manager) Close() {
	m.mu.Lock()
	running := m.mu.running
	m.mu.running = map[string]*List{}
	m.mu.Unlock()
	for _, l := range running {
		l.end()
	}
}

// Set is the lists of one configuration. It is not changed after Prepare.
type Set struct {
	manager *Manager
	lists   map[string]*List
	opened  []*List
}

// Prepare makes the lists of a configuration, and loads what is at hand: relative paths
// begin at dir. A list whose settings are those in use is taken over with what it has.
func (m *Manager) Prepare(settings map[string]*Config, dir string) *Set {
	s := &Set{manager: m, lists: make(map[string]*List, len(settings))}
	m.mu.Lock()
	running := maps.Clone(m.mu.running)
	m.mu.Unlock()
	for name, c := range settings {
		if was := running[name]; was != nil && was.dir == dir && reflect.DeepEqual(was.settings, c) {
			s.lists[name] = was
			continue
		}
		l := newList(name, c, dir, &m.o)
		l.load()
		s.lists[name] = l
		s.opened = append(s.opened, l)
	}
	return s
}

// Get returns the list with a name; nil if there is none.
func (s *Set) Get(name string) exchange.AddressList {
	if s == nil {
		return nil
	}
	if l := s.lists[name]; l != nil {
		return l
	}
	return nil
}

// Commit takes the lists into use.
func (s *Set) Commit() {
	m := s.manager
	m.mu.Lock()
	before := m.mu.running
	m.mu.running = s.lists
	m.mu.Unlock()
	for name, was := range before {
		if s.lists[name] != was {
			was.end()
		}
	}
	sweep(m.o.Dir, s.lists)
	for _, l := range s.opened {
		l.start()
	}
}

// Cancel forgets the lists.
func (s *Set) Cancel() {}

// Rescreen looks again at which networks lists from elsewhere may have, when Protected says
// something else than before.
func (m *Manager) Rescreen() {
	for _, l := range m.all() {
		l.rescreen()
	}
}

func (m *Manager) all() []*List {
	m.mu.Lock()
	defer m.mu.Unlock()
	all := make([]*List, 0, len(m.mu.running))
	for _, name := range slices.Sorted(maps.Keys(m.mu.running)) {
		all = append(all, m.mu.running[name])
	}
	return all
}

// States returns the states of the lists in use, by name.
func (m *Manager) States() []State {
	lists := m.all()
	out := make([]State, len(lists))
	for i, l := range lists {
		out[i] = l.State()
	}
	return out
}

// With returns the names of the lists that have an address.
func (m *Manager) With(a netip.Addr) []string {
	names := []string{}
	for _, l := range m.all() {
		if l.Contains(a) {
			names = append(names, l.name)
		}
	}
	return names
}

// DirOf returns where lists are kept below a state directory, "" for none.
func DirOf(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "lists")
}
