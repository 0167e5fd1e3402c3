package certs

import (
	"crypto/tls"
	"strings"
)

// Set is what a port chooses its certificate from. It is immutable and safe for
// use by many goroutines at once.
type Set struct {
	exact, wild map[string]*Pair
	fallback    *Pair        // the default certificate, or nil
	selfSigned  *Certificate // when nothing fits
}

// NewSet returns the choice among pairs. fallback, which may be nil, answers for
// names that none of them has; else selfSigned does. Of two pairs with the same
// name the one that ends later is taken.
func NewSet(pairs []*Pair, fallback *Pair, selfSigned *Certificate) *Set {
	s := &Set{exact: map[string]*Pair{}, wild: map[string]*Pair{}, fallback: fallback, selfSigned: selfSigned}
	for _, p := range pairs {
		for _, name := range p.Leaf().DNSNames {
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			if rest, ok := strings.CutPrefix(name, "*."); ok {
				keepLater(s.wild, rest, p)
			} else {
				keepLater(s.exact, name, p)
			}
		}
		for _, ip := range p.Leaf().IPAddresses {
			keepLater(s.exact, ip.String(), p)
		}
	}
	return s
}

func keepLater(m map[string]*Pair, name string, p *Pair) {
	if old := m[name]; old == nil || p.Leaf().NotAfter.After(old.Leaf().NotAfter) {
		m[name] = p
	}
}

// Choose returns the certificate for the name that a client asked for: one with
// just that name, else a wildcard of one label, else the default, else the
// self-signed one. local is our address of the connection, for clients that ask
// for no name.
func (s *Set) Choose(name, local string) *tls.Certificate {
	if p := s.Find(name); p != nil {
		return p.Certificate()
	}
	if name == "" {
		if p := s.exact[local]; p != nil {
			return p.Certificate()
		}
	}
	if s.fallback != nil {
		return s.fallback.Certificate()
	}
	return s.selfSigned.current()
}

// Find returns the certificate that has the name, or nil.
func (s *Set) Find(name string) *Pair {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" {
		return nil
	}
	if p := s.exact[name]; p != nil {
		return p
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		return s.wild[rest]
	}
	return nil
}

// Covers reports whether a connection that was opened for one name may carry
// requests for another: both get the same certificate (RFC 9110, section
// 7.4).
func (s *Set) Covers(opened, wanted string) bool { return s.Find(opened) == s.Find(wanted) }
