package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Managed are certificates that are added, changed and removed without a change of the
// configuration: those from ACME. Every HTTPS port can select them, after the configured
// ones with the same name. It is safe for concurrent use; a lookup acquires no lock, and
// the cost of adding or removing one does not depend on their number.
type Managed struct {
	// open reads a certificate that is known by name only. It is constant.
	open func(name string) (*tls.Certificate, error)

	mu     sync.Mutex // held to change what follows
	all    map[string]*Stored
	issued map[string][]byte // the issuers' certificates, each once: see share
	exact  hostIndex         // by host
	wild   hostIndex         // by what follows "*."
}

// Stored is a managed certificate. It is loaded when it is used first, so that thousands of
// them do not slow down a start.
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
	return &Managed{open: open, all: map[string]*Stored{}, issued: map[string][]byte{}}
}

// Announce adds certificates that are loaded when they are used. Existing ones stay.
func (m *Managed) Announce(known []Announced) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range known {
		if m.all[k.Name] == nil {
			m.add(&Stored{name: k.Name, hosts: k.Hosts, until: k.Until, owner: m})
		}
	}
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
	m.mu.Lock()
	defer m.mu.Unlock()
	s.current.Store(m.lean(cert))
	before := m.all[name]
	m.add(s)
	if before != nil {
		m.drop(before)
	}
}

// Remove removes certificates.
func (m *Managed) Remove(names ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		if s := m.all[name]; s != nil {
			delete(m.all, name)
			m.drop(s)
		}
	}
}

// add makes a certificate found by its hosts. Of two certificates for one host the one
// that ends later is found.
func (m *Managed) add(s *Stored) {
	m.all[s.name] = s
	for _, host := range s.hosts {
		index, key := m.indexOf(host)
		switch was := index.get(key); {
		case was == nil || s.before(was) || was.name == s.name && s.until.Equal(was.until):
			index.set(key, s)
		case was.name == s.name: // it ends earlier than the one that it replaces
			index.set(key, m.best(host))
		}
	}
}

// drop takes a certificate that is in use no more out of the indexes. Where it was the
// one that is found, another that has the host takes its place.
func (m *Managed) drop(s *Stored) {
	for _, host := range s.hosts {
		index, key := m.indexOf(host)
		if index.get(key) == s {
			index.set(key, m.best(host))
		}
	}
}

// best returns the certificate that is found for a host, nil if none has it. It looks
// at all of them, as next to no host has two.
func (m *Managed) best(host string) (best *Stored) {
	for _, s := range m.all {
		if slices.Contains(s.hosts, host) && (best == nil || s.before(best)) {
			best = s
		}
	}
	return best
}

// before reports whether a certificate is found before another with the same host.
func (s *Stored) before(other *Stored) bool {
	if s.until.Equal(other.until) {
		return s.name < other.name
	}
	return s.until.After(other.until)
}

// indexOf returns the index and the key of a certificate's host.
func (m *Managed) indexOf(host string) (index *hostIndex, key string) {
	if rest, ok := strings.CutPrefix(host, "*."); ok {
		return &m.wild, rest
	}
	return &m.exact, host
}

// Find returns the certificate for a host, nil if there is none: one with just that
// name, else a wildcard. One that has ended, such as that of a host which a wildcard
// has covered since, gives way to the other. m may be nil.
func (m *Managed) Find(host string) *Stored {
	if m == nil {
		return nil
	}
	exact := m.exact.get(host)
	_, rest, _ := strings.Cut(host, ".")
	wild := m.wild.get(rest)
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
	s.owner.mu.Lock()
	cert = s.owner.lean(cert)
	s.owner.mu.Unlock()
	s.current.Store(cert)
	return cert
}

// leaf returns the server's own certificate, nil if it cannot be read. It is parsed
// anew, as handshakes do not need it and thousands of them would be kept.
func (s *Stored) leaf() *x509.Certificate {
	cert := s.TLS()
	if cert == nil {
		return nil
	}
	leaf, err := x509.ParseCertificate(cert.Certificate[0])
	if err != nil {
		return nil
	}
	return leaf
}

// maxIssuers is how many certificates of issuers are remembered.
const maxIssuers = 64

// lean returns a certificate that uses less memory: without its parsed leaf, and with
// shared issuers' certificates. mu is held.
func (m *Managed) lean(cert *tls.Certificate) *tls.Certificate {
	small := *cert
	small.Leaf = nil
	small.Certificate = slices.Clone(cert.Certificate)
	for i, der := range small.Certificate {
		if i == 0 {
			small.Certificate[i] = bytes.Clone(der)
			continue
		}
		kept, ok := m.issued[string(der)]
		if !ok {
			if len(m.issued) >= maxIssuers { // authorities change them now and then
				clear(m.issued)
			}
			kept = bytes.Clone(der)
			m.issued[string(kept)] = kept
		}
		small.Certificate[i] = kept
	}
	return &small
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
