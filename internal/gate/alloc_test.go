//go:build !race

package gate

import (
	"runtime"
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
	s := &Session{
		Issuer: "https://id.example.com", Address: "192.0.2.1", Agent: "Mozilla/5.0", Created: now, Expires: now.Add(time.Hour), key: digestOf(credential.NewSecret()),
	}
	s.setPerson((&Person{ID: "company/42", Provider: "company", User: "ann@example.com", Email: "ann@example.com", Groups: []string{"company/staff"}}).ready())
	s.clocks(now, now)
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

// 100,000 sessions, each with one application, take 60 MB.
func TestSessionsAreSmall(t *testing.T) {
	e := opened(t)
	const many = 100_000
	before := heap()
	for range many {
		e.signed("wiki.example.com")
	}
	// What other goroutines hold for a moment, such as memory of a password hash, does not count.
	size := heap() - before
	for end := time.Now().Add(20 * time.Second); size > 80<<20 && time.Now().Before(end); {
		size = heap() - before
	}
	t.Logf("%d sessions take %d bytes", many, size)
	if size > 80<<20 {
		t.Errorf("%d bytes for each session", size/many)
	}
	runtime.KeepAlive(e)
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
