package certs

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Set is what a port chooses its certificate from. Its pairs are fixed; the
// names they answer for follow their files. It is safe for use by many
// goroutines at once.
type Set struct {
	// constant
	pairs      []*Certificate
	managed    *Managed     // those that come by themselves; may be nil
	fallback   *Certificate // the default certificate, or nil
	selfSigned *SelfSigned  // when nothing fits

	names   atomic.Pointer[names]
	renewal sync.Mutex
}

// names are the names of all pairs at one time.
type names struct {
	leaves      []*x509.Certificate // of the pairs, in order
	exact, wild map[string]*Certificate
}

// NewSet returns a set of pairs and, after them, the managed certificates. fallback, which
// may be nil, is used for names that none of them has; else selfSigned. If two pairs have
// the same name, the one that expires later is used.
func NewSet(pairs []*Certificate, managed *Managed, fallback *Certificate, selfSigned *SelfSigned) *Set {
	s := &Set{pairs: pairs, managed: managed, fallback: fallback, selfSigned: selfSigned}
	s.names.Store(namesOf(pairs))
	return s
}

func namesOf(pairs []*Certificate) *names {
	n := &names{exact: map[string]*Certificate{}, wild: map[string]*Certificate{}}
	for _, p := range pairs {
		leaf := p.Leaf()
		n.leaves = append(n.leaves, leaf)
		if leaf == nil {
			continue
		}
		for _, name := range leaf.DNSNames {
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			if rest, ok := strings.CutPrefix(name, "*."); ok {
				keepLater(n.wild, rest, p)
			} else {
				keepLater(n.exact, name, p)
			}
		}
		for _, ip := range leaf.IPAddresses {
			keepLater(n.exact, ip.String(), p)
		}
	}
	return n
}

func keepLater(m map[string]*Certificate, name string, p *Certificate) {
	old, leaf := m[name], p.Leaf()
	if old != nil {
		if was := old.Leaf(); leaf == nil || was != nil && !leaf.NotAfter.After(was.NotAfter) {
			return
		}
	}
	m[name] = p
}

// current returns the names as the files of the pairs have them now.
func (s *Set) current() *names {
	n := s.names.Load()
	if s.fresh(n) {
		return n
	}
	s.renewal.Lock()
	defer s.renewal.Unlock()
	if n = s.names.Load(); !s.fresh(n) {
		n = namesOf(s.pairs)
		s.names.Store(n)
	}
	return n
}

func (s *Set) fresh(n *names) bool {
	for i, p := range s.pairs {
		if p.Leaf() != n.leaves[i] {
			return false
		}
	}
	return true
}

// Choose returns the certificate for the name that a client asked for: one with
// just that name, else a wildcard of one label, else the default, else the
// self-signed one. local is our address of the connection, for clients that ask
// for no name.
func (s *Set) Choose(name, local string) *tls.Certificate {
	if name == "" {
		name = local
	}
	if p := s.pick(name); p != nil {
		if cert := p.TLS(); cert != nil {
			return cert
		}
	}
	return s.selfSigned.current()
}

// Empty reports whether there is nothing configured to choose from.
func (s *Set) Empty() bool { return len(s.pairs) == 0 }

// holder holds a certificate: a *Certificate or a *Stored.
type holder interface {
	TLS() *tls.Certificate
	ended() bool
}

// Has reports whether a certificate has the name.
func (s *Set) Has(name string) bool { return s.find(name) != nil }

// HasValid reports whether a certificate has the name and has not expired.
func (s *Set) HasValid(name string) bool {
	h := s.find(name)
	return h != nil && !h.ended()
}

// find returns what has the name, nil if nothing does: a configured certificate
// before a managed one, and one with just that name before a wildcard. One that has ended
// gives way to any other.
func (s *Set) find(name string) holder {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" {
		return nil
	}
	n := s.current()
	exact := n.exact[name]
	if exact != nil && !exact.ended() {
		return exact
	}
	managed := s.managed.Find(name)
	good := managed != nil && !managed.ended()
	if good && slices.Contains(managed.hosts, name) {
		return managed
	}
	_, rest, _ := strings.Cut(name, ".")
	wild := n.wild[rest]
	switch {
	case wild != nil && !wild.ended():
		return wild
	case good:
		return managed
	case exact != nil:
		return exact
	case wild != nil:
		return wild
	case managed != nil:
		return managed
	}
	return nil
}

// HasDefault reports whether there is a default certificate that can be used.
func (s *Set) HasDefault() bool { return s.fallback != nil && s.fallback.TLS() != nil }

// Covers reports whether a connection that was opened for one name may carry
// requests for another: both get the same certificate (RFC 9110, section
// 7.4).
func (s *Set) Covers(opened, wanted string) bool { return s.pick(opened) == s.pick(wanted) }

// pick returns what holds the certificate for a name, nil for the self-signed one.
func (s *Set) pick(name string) holder {
	if h := s.find(name); h != nil {
		return h
	}
	if s.fallback != nil {
		return s.fallback
	}
	return nil
}

// Choice is which certificate a host gets on a port, and why.
type Choice struct {
	// Name is what the certificate is called, "" for the self-signed one of the port.
	Name string
	// From is where it comes from: file, stored, acme or self-signed.
	From string
	// Leaf is the certificate, nil if it could not be read.
	Leaf *x509.Certificate
	// Why is why it was chosen.
	Why string
}

// Explain returns which certificate the port sends to a client with a server name. It uses
// the lookup of handshakes.
func (s *Set) Explain(name string) Choice {
	h := s.find(name)
	switch h := h.(type) {
	case *Certificate:
		return Choice{h.name, h.from(), h.Leaf(), "it is configured and " + hasName(h.Leaf(), name)}
	case *Stored:
		c := Choice{Name: h.name, From: "acme", Why: "no configured certificate that is good has the name, and this one by ACME has"}
		if leaf := h.leaf(); leaf != nil {
			c.Leaf, c.Why = leaf, c.Why+"; it "+hasName(leaf, name)
			return c
		}
	}
	if h == nil && s.HasDefault() {
		return Choice{s.fallback.name, s.fallback.from(), s.fallback.Leaf(), "no certificate has the name, and this is the port's default_certificate"}
	}
	why := "no certificate has the name"
	if h != nil {
		why = "the certificate with the name cannot be used"
	}
	return Choice{From: "self-signed", Leaf: s.selfSigned.current().Leaf, Why: why + ", and the port has no default_certificate: clients refuse this one"}
}

// hasName returns how a certificate matches a name.
func hasName(leaf *x509.Certificate, name string) string {
	if leaf == nil {
		return "cannot be used"
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if slices.Contains(Hosts(leaf), name) {
		return "has the name " + name
	}
	_, rest, _ := strings.Cut(name, ".")
	return "has the wildcard *." + rest
}
