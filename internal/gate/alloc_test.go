//go:build !race

package gate

import (
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"headgate/internal/clock"
	"headgate/internal/credential"
	"headgate/internal/gate/provider"
	"headgate/internal/setting/unit"
	"headgate/internal/store/memory"
)

// opened returns an engine that one provider is configured for.
func opened(t testing.TB) *Engine {
	t.Helper()
	e := New(Options{Store: memory.New()})
	t.Cleanup(e.Close)
	c := &Config{Providers: map[string]*provider.Config{"company": {Issuer: "https://id.example.com"}}}
	c.Session.IdleTimeout, c.Session.MaxAge = unit.Duration(time.Hour), unit.Duration(24*time.Hour)
	e.Use(c, nil)
	return e
}

// signed adds a session with an application's host, and returns the secret of the host.
func (e *Engine) signed(host string) string {
	now := time.Now()
	p := (&Person{ID: "company/42", Provider: "company", User: "ann@example.com", Email: "ann@example.com", Groups: []string{"company/staff"}}).ready()
	s := newSession(digestOf(credential.NewSecret()), p, "https://id.example.com", netip.MustParseAddr("192.0.2.1"), "Mozilla/5.0", now, now.Add(time.Hour))
	s.clocks(now, now, present{clock.Now(), now})
	e.sessions.add(s)
	secret := credential.NewSecret()
	e.sessions.addHost(s, digestOf(secret), host)
	return secret
}

// A request with a session allocates nothing.
func TestALiveSessionIsFoundWithoutAllocation(t *testing.T) {
	e := opened(t)
	secret, now := e.signed("wiki.example.com"), clock.Now()
	if n := testing.AllocsPerRun(100, func() {
		if e.Host(secret, "wiki.example.com", now) == nil {
			t.Fatal("the session is not found")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if e.Host(secret, "other.example.com", now) != nil || e.SignedIn(secret, now) != nil {
		t.Error("the cookie of one host counts at another")
	}
	if e.Host(secret, "wiki.example.com", now+int64(2*time.Hour)) != nil {
		t.Error("a session that was idle for too long counts")
	}
}

// 100,000 sessions, each with one application, take 40 MB, and 80 MB if each is of another
// person at another address and with another browser.
func TestSessionsAreSmall(t *testing.T) {
	for _, c := range []struct {
		name string
		max  int64
		add  func(e *Engine, i int)
	}{
		{"of one person", 40 << 20, func(e *Engine, _ int) { e.signed("wiki.example.com") }},
		{"of many people", 80 << 20, func(e *Engine, i int) {
			s := ofItsOwn(i, time.Now())
			e.sessions.add(s)
			e.sessions.addHost(s, digestOf(credential.NewSecret()), strings.Clone("wiki.example.com"))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := opened(t)
			const many = 100_000
			before := heap()
			for i := range many {
				c.add(e, i)
			}
			// What other goroutines hold for a moment, such as memory of a password hash, does not count.
			size := heap() - before
			for end := time.Now().Add(20 * time.Second); size > c.max && time.Now().Before(end); {
				size = heap() - before
			}
			t.Logf("%d sessions take %d bytes", many, size)
			if size > c.max {
				t.Errorf("%d bytes for each session", size/many)
			}
			runtime.KeepAlive(e)
		})
	}
}

// ofItsOwn returns a session whose texts no other has.
func ofItsOwn(i int, now time.Time) *Session {
	email := fmt.Sprintf("person%06d@example.com", i)
	p := &Person{
		ID: fmt.Sprintf("company/00000000-0000-4000-8000-%012d", i), Provider: strings.Clone("company"), User: strings.Clone(email), Name: fmt.Sprintf("Person %06d", i), Email: email,
		Groups: []string{strings.Clone("company/staff"), strings.Clone("company/all")},
	}
	agent := fmt.Sprintf("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/130.0.0.%06d Safari/537.36", i)
	address := netip.AddrFrom4([4]byte{198, 51, byte(i >> 8), byte(i)})
	s := newSession(digestOf(credential.NewSecret()), p.ready(), strings.Clone("https://id.example.com"), address, agent, now, now.Add(time.Hour))
	s.clocks(now, now, present{clock.Now(), now})
	return s
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func BenchmarkHost(b *testing.B) {
	e := opened(b)
	secret, now := e.signed("wiki.example.com"), clock.Now()
	b.ReportAllocs()
	for b.Loop() {
		if e.Host(secret, "wiki.example.com", now) == nil {
			b.Fatal("the session is not found")
		}
	}
}
