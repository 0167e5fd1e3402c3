// Package geo says in which country an address is, and which network announces it, from
// databases in the MMDB format that operators bring.
//
// A Manager takes part in changes of the configuration: Prepare reads the databases that
// are at hand, Commit starts what keeps them up to date, Cancel forgets. A Locator answers
// for each request; database.go has one database, source.go keeps it up to date.
package geo

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/setting/ipset"
)

// Options is what a Manager is made of.
type Options struct {
	// Log is the application's log. Nil discards.
	Log *slog.Logger
	// Dir is where databases that were downloaded are kept; "" keeps none.
	Dir string
	// Agent is the user agent of downloads.
	Agent string
	// Roots are the authorities that servers are trusted by; nil is the system's.
	Roots *x509.CertPool
	// Clock returns the time; nil is the system's.
	Clock func() time.Time

	filePause time.Duration
}

// Locator answers from the databases of one configuration. It may be used by several
// goroutines at once.
type Locator struct {
	config       Config
	dir          string
	country, asn *source
	serial       atomic.Uint64
	stop         context.CancelFunc // nil until it was started
	running      sync.WaitGroup
}

// Country returns the country of an address, as exchange.Locator says.
func (l *Locator) Country(a netip.Addr) string {
	d := l.country.database()
	if d == nil {
		return ""
	}
	if c := d.find(a).country; c != "" || ipset.Private().Contains(a) {
		return c
	}
	return ipset.UnknownCountry
}

// ASN returns the number of the network of an address, as exchange.Locator says.
func (l *Locator) ASN(a netip.Addr) uint32 {
	if d := l.asn.database(); d != nil {
		return d.find(a).asn
	}
	return 0
}

// Serial changes with each database that is taken into use.
func (l *Locator) Serial() uint64 { return l.serial.Load() }

// start begins what keeps the databases up to date.
func (l *Locator) start() {
	var ctx context.Context
	ctx, l.stop = context.WithCancel(context.Background())
	for _, s := range []*source{l.country, l.asn} {
		if s != nil {
			l.running.Go(func() { s.follow(ctx) })
		}
	}
}

// end ends it, and waits.
func (l *Locator) end() {
	if l.stop != nil {
		l.stop()
		l.running.Wait()
	}
}

// Manager keeps the databases of the configuration in use.
type Manager struct {
	o  Options
	mu struct {
		sync.Mutex
		current *Locator // nil without databases
	}
}

// New returns a manager without databases. Close ends it.
func New(o Options) *Manager {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.filePause == 0 {
		o.filePause = filePause
	}
	return &Manager{o: o}
}

// Close ends what runs.
func (m *Manager) Close() {
	if l := m.swap(nil); l != nil {
		l.end()
	}
}

func (m *Manager) swap(l *Locator) *Locator {
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.mu.current
	m.mu.current = l
	return before
}

// Set is the databases of one configuration.
type Set struct {
	manager *Manager
	locator *Locator
	opened  bool
}

// Prepare makes the databases of a configuration, and reads those that are at hand:
// relative paths begin at dir. Those in use are taken over if the settings are the same.
func (m *Manager) Prepare(c *Config, dir string) *Set {
	s := &Set{manager: m}
	if !c.Set() {
		return s
	}
	m.mu.Lock()
	s.locator = m.mu.current
	m.mu.Unlock()
	if s.locator != nil && s.locator.dir == dir && reflect.DeepEqual(s.locator.config, *c) {
		return s
	}
	l := &Locator{config: *c, dir: dir}
	changed := func() { l.serial.Add(1) }
	l.country, l.asn = m.open("country", &c.Country, dir, changed), m.open("asn", &c.ASN, dir, changed)
	s.locator, s.opened = l, true
	return s
}

func (m *Manager) open(name string, c *Source, dir string, changed func()) *source {
	if !c.Set() {
		return nil
	}
	s := newSource(name, *c, dir, &m.o, changed)
	s.load()
	return s
}

// Locator returns what answers from the databases; nil if there are none.
func (s *Set) Locator() exchange.Locator {
	if s == nil || s.locator == nil {
		return nil
	}
	return s.locator
}

// Commit takes the databases into use.
func (s *Set) Commit() {
	before := s.manager.swap(s.locator)
	if before != nil && before != s.locator {
		before.end()
	}
	if s.opened {
		s.locator.start()
	}
}

// Cancel forgets the databases.
func (s *Set) Cancel() {}

// Current returns what answers from the databases in use; nil if there are none.
func (m *Manager) Current() exchange.Locator {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.current == nil {
		return nil
	}
	return m.mu.current
}

// States returns the states of the databases in use.
func (m *Manager) States() []State {
	m.mu.Lock()
	l := m.mu.current
	m.mu.Unlock()
	out := []State{}
	if l == nil {
		return out
	}
	for _, s := range []*source{l.country, l.asn} {
		if s != nil {
			out = append(out, s.State())
		}
	}
	return out
}

// DirOf returns where databases are kept below a state directory, "" for none.
func DirOf(state string) string {
	if state == "" {
		return ""
	}
	return filepath.Join(state, "geo")
}
