package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
)

func TestAManagedCertificateThatEndedGivesWay(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := NewManaged(func(string) (*tls.Certificate, error) { return &tls.Certificate{}, nil })
	m.Announce([]Announced{
		{Name: "shop", Hosts: []string{"shop.example.com"}, Until: now.Add(-time.Hour)},
		{Name: "blog", Hosts: []string{"blog.example.com"}, Until: now.Add(time.Hour)},
		{Name: "wild", Hosts: []string{"*.example.com"}, Until: now.Add(24 * time.Hour)},
		{Name: "old", Hosts: []string{"old.example.net"}, Until: now.Add(-time.Hour)},
	})
	for host, want := range map[string]string{
		"shop.example.com":  "wild", // the wildcard covers it now
		"blog.example.com":  "blog", // it holds still
		"other.example.com": "wild",
		"old.example.net":   "old", // better than none
		"a.b.example.com":   "",
		"example.com":       "",
	} {
		got := ""
		if s := m.Find(host); s != nil {
			got = s.name
		}
		if got != want {
			t.Errorf("Find(%q) = %q, want %q", host, got, want)
		}
	}
	m.Remove("wild", "none")
	if s := m.Find("other.example.com"); s != nil {
		t.Errorf("a certificate that was removed is found: %s", s.name)
	}
}

// TestTheIndexIsThatOfAllCertificates holds the index, which changes with each
// certificate, against what all certificates together say.
func TestTheIndexIsThatOfAllCertificates(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	now := time.Now()
	hosts := []string{"a.example.com", "b.example.com", "example.com", "*.example.com", "*.b.example.com", "a.b.example.com"}
	m := NewManaged(func(string) (*tls.Certificate, error) { return nil, errors.New("not read") })
	for step := range 5000 {
		name := string(rune('p' + r.IntN(6)))
		leaf := &x509.Certificate{NotAfter: now.Add(time.Duration(r.IntN(4)+1) * time.Hour)}
		for _, i := range r.Perm(len(hosts))[:r.IntN(3)] {
			leaf.DNSNames = append(leaf.DNSNames, hosts[i])
		}
		switch r.IntN(4) {
		case 0:
			m.Remove(name, "no such")
		case 1:
			m.Announce([]Announced{{Name: name, Hosts: leaf.DNSNames, Until: leaf.NotAfter}})
		default:
			m.Put(name, &tls.Certificate{Certificate: [][]byte{{1}}, Leaf: leaf})
		}
		for _, host := range hosts {
			index, key := m.indexOf(host)
			if got, want := index.get(key), m.best(host); got != want {
				t.Fatalf("after %d changes %s leads to %+v, want %+v", step+1, host, got, want)
			}
		}
	}
}

// TestManagedCertificatesAreLean holds that the issuers' certificates are kept once, and
// that what a handshake does not need is not kept.
func TestManagedCertificatesAreLean(t *testing.T) {
	t.Parallel()
	authority := certstest.Sign(t, certstest.Authority("an authority"), nil)
	m := NewManaged(nil)
	var all []*tls.Certificate
	for _, name := range []string{"a.example.com", "b.example.com"} {
		cert := certstest.Sign(t, &x509.Certificate{DNSNames: []string{name}}, &authority)
		cert.Certificate[1] = bytes.Clone(cert.Certificate[1])
		m.Put(name, &cert)
		if cert.Leaf == nil {
			t.Error("what was given was changed")
		}
		s := m.Find(name)
		all = append(all, s.TLS())
		if leaf := s.leaf(); leaf == nil || leaf.DNSNames[0] != name {
			t.Errorf("%s has the leaf %+v", name, leaf)
		}
	}
	if &all[0].Certificate[1][0] != &all[1].Certificate[1][0] {
		t.Error("the authority's certificate is kept twice")
	}
	if all[0].Leaf != nil {
		t.Error("the parsed leaf is kept")
	}
	set := NewSet(nil, m, nil, &SelfSigned{})
	if c := set.Explain("a.example.com"); c.Leaf == nil || c.From != "acme" || !strings.HasSuffix(c.Why, "it has the name a.example.com") {
		t.Errorf("got %+v", c)
	}
}

func TestFindingAManagedCertificateAllocatesNothing(t *testing.T) {
	m := NewManaged(nil)
	m.Announce([]Announced{{Name: "wild", Hosts: []string{"*.example.com"}, Until: time.Now().Add(time.Hour)}})
	if n := testing.AllocsPerRun(1000, func() {
		if m.Find("shop.example.com") == nil {
			t.Error("not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// BenchmarkManagedPut takes 10 000 certificates into use, one after the other.
func BenchmarkManagedPut(b *testing.B) {
	authority := certstest.Sign(b, certstest.Authority("an authority"), nil)
	one := certstest.Sign(b, &x509.Certificate{DNSNames: []string{"example.com"}}, &authority)
	for b.Loop() {
		m := NewManaged(nil)
		for i := range 10_000 {
			cert := one
			name := fmt.Sprintf("h%d.example.com", i)
			cert.Leaf = &x509.Certificate{DNSNames: []string{name}, NotAfter: one.Leaf.NotAfter}
			m.Put(name, &cert)
		}
	}
}

// BenchmarkManagedMemory reports what a certificate takes that is announced, and one
// that has been asked for.
func BenchmarkManagedMemory(b *testing.B) {
	authority := certstest.Sign(b, certstest.Authority("an authority"), nil)
	one := certstest.Sign(b, &x509.Certificate{DNSNames: []string{"example.com"}}, &authority)
	text := append(certstest.PEM(one), certstest.KeyPEM(b, one)...)
	const n = 10_000
	for b.Loop() {
		before := heap()
		m := NewManaged(func(string) (*tls.Certificate, error) {
			cert, err := tls.X509KeyPair(text, text)
			return &cert, err
		})
		var known []Announced
		for i := range n {
			name := fmt.Sprintf("h%d.example.com", i)
			known = append(known, Announced{Name: name, Hosts: []string{name}, Until: one.Leaf.NotAfter})
		}
		m.Announce(known)
		known = nil
		announced := heap()
		for i := range n {
			if m.Find(fmt.Sprintf("h%d.example.com", i)).TLS() == nil {
				b.Fatal("not read")
			}
		}
		b.ReportMetric(float64(announced-before)/n, "B/announced")
		b.ReportMetric(float64(heap()-before)/n, "B/read")
		runtime.KeepAlive(m)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var s runtime.MemStats
	runtime.ReadMemStats(&s)
	return s.HeapAlloc
}
