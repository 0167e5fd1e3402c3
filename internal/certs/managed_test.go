package certs

import (
	"crypto/tls"
	"testing"
	"time"
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
