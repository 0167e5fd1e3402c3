package certs

import (
	"crypto/tls"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Managed are certificates that come, change and go without a change of the
// configuration: those by ACME. Every HTTPS port chooses among them too, behind the
// configured ones with the same name. Its methods may be called by several goroutines
// at once; looking a name up takes no lock.
type Managed struct {
	// open reads a certificate that is known by name only. It is constant.
	open func(name string) (*tls.Certificate, error)

	mu    sync.Mutex // held to change what follows
	all   map[string]*Stored
	names atomic.Pointer[storedNames]
}

// storedNames are the certificates by the names of hosts.
type storedNames struct{ exact, wild map[string]*Stored }

// Stored is a managed certificate. It is read when it is asked for first, so that
// thousands of them cost a start nothing.
type Stored struct {
	// constant
	name  string
	hosts []string
	until time.Time
	owner *Managed

	opening sync.Mutex
	tried   time.Time // when it could not be read last
	current atomic.Pointer[tls.Certificate]
}

// NewManaged returns an empty set. open reads a certificate by its name; it is called
// in a handshake, for a certificate that was announced and not given.
func NewManaged(open func(name string) (*tls.Certificate, error)) *Managed {
	m := &Managed{open: open, all: map[string]*Stored{}}
	m.names.Store(&storedNames{})
	return m
}

// Announce makes certificates known that are read when they are asked for. One that
// is known already stays.
func (m *Managed) Announce(known []Announced) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range known {
		if m.all[k.Name] == nil {
			m.all[k.Name] = &Stored{name: k.Name, hosts: k.Hosts, until: k.Until, owner: m}
		}
	}
	m.index()
}

// Announced is a certificate that is known by its name and what it is for.
type Announced struct {
	Name  string
	Hosts []string
	Until time.Time
}

// Put takes a certificate into use, in place of the one with the same name.
func (m *Managed) Put(name string, cert *tls.Certificate) {
	s := &Stored{name: name, hosts: Hosts(cert.Leaf), until: cert.Leaf.NotAfter, owner: m}
	s.current.Store(cert)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all[name] = s
	m.index()
}

// Remove takes certificates out of use.
func (m *Managed) Remove(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.all, name)
	}
	m.index()
}

// index makes the names anew. Of two certificates for one host the one that ends
// later is taken.
func (m *Managed) index() {
	n := &storedNames{exact: make(map[string]*Stored, len(m.all)), wild: map[string]*Stored{}}
	for _, name := range slices.Sorted(maps.Keys(m.all)) {
		s := m.all[name]
		for _, host := range s.hosts {
			at, key := n.exact, host
			if rest, ok := strings.CutPrefix(host, "*."); ok {
				at, key = n.wild, rest
			}
			if was := at[key]; was == nil || s.until.After(was.until) {
				at[key] = s
			}
		}
	}
	m.names.Store(n)
}

// Find returns the certificate for a host, nil if there is none: one with just that
// name, else a wildcard. One that has ended, such as that of a host which a wildcard
// has covered since, gives way to the other. m may be nil.
func (m *Managed) Find(host string) *Stored {
	if m == nil {
		return nil
	}
	n := m.names.Load()
	exact := n.exact[host]
	_, rest, _ := strings.Cut(host, ".")
	wild := n.wild[rest]
	switch {
	case exact == nil:
		return wild
	case wild != nil && wild.until.After(exact.until) && exact.ended():
		return wild
	}
	return exact
}

func (s *Stored) ended() bool { return time.Now().After(s.until) }

// retryOpen is how long a certificate that could not be read is left alone.
const retryOpen = 10 * time.Second

// TLS returns the certificate, nil if it cannot be read.
func (s *Stored) TLS() *tls.Certificate {
	if c := s.current.Load(); c != nil {
		return c
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if c := s.current.Load(); c != nil || time.Since(s.tried) < retryOpen {
		return c
	}
	cert, err := s.owner.open(s.name)
	if err != nil {
		s.tried = time.Now()
		return nil
	}
	s.current.Store(cert)
	return cert
}

// Hosts returns the names and addresses that a certificate is for.
func Hosts(leaf *x509.Certificate) []string {
	out := make([]string, 0, len(leaf.DNSNames)+len(leaf.IPAddresses))
	for _, name := range leaf.DNSNames {
		out = append(out, strings.ToLower(strings.TrimSuffix(name, ".")))
	}
	for _, ip := range leaf.IPAddresses {
		out = append(out, ip.String())
	}
	return out
}
