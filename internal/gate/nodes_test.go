package gate

import (
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/clock"
	"headgate/internal/credential"
	"headgate/internal/exchange"
	"headgate/internal/gate/provider"
	"headgate/internal/setting/unit"
	"headgate/internal/store/memory"
)

// nodes returns two engines with one store, as two machines have them. Each sends what it
// cuts to its channel.
func nodes(t *testing.T) (a, b *Engine, cut chan exchange.SignIn) {
	t.Helper()
	shared := memory.NewAhead(3 * time.Hour)
	t.Cleanup(func() { shared.Close() })
	cut = make(chan exchange.SignIn, 16)
	start := func(o Options) *Engine {
		e := New(o)
		t.Cleanup(e.Close)
		c := &Config{Providers: map[string]*provider.Config{"company": {Issuer: "https://id.example.com"}}}
		c.Session.IdleTimeout, c.Session.MaxAge = unit.Duration(time.Hour), unit.Duration(24*time.Hour)
		e.Use(c, nil)
		return e
	}
	return start(Options{Store: shared}), start(Options{Store: shared, Cut: func(s exchange.SignIn) { cut <- s }}), cut
}

// until waits for a condition.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !holds(); {
		if time.Now().After(deadline) {
			t.Fatal(what)
		}
		clock.Sleep(t.Context(), time.Millisecond)
	}
}

func wasCut(t *testing.T, cut chan exchange.SignIn) exchange.SignIn {
	t.Helper()
	select {
	case s := <-cut:
		return s
	case <-time.After(20 * time.Second):
		t.Fatal("nothing was aborted on the other node")
	}
	return nil
}

var ann = &Person{ID: "company/42", Provider: "company", User: "ann@example.com", Email: "ann@example.com"}

// A session and a token that one node makes count at the other, and what runs there ends
// when the first one ends them.
func TestNodesShareSessionsAndTokens(t *testing.T) {
	a, b, cut := nodes(t)
	secret, s, err := a.createSession(ann.ready(), "https://id.example.com", provider.Grant{}, &Client{}, "")
	if err != nil {
		t.Fatal(err)
	}
	host, err := a.enter(s, "wiki.example.com")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the other node does not know the session", func() bool { return b.Host(host, "wiki.example.com", clock.Now()) != nil })
	_, text, err := a.CreateToken(NewToken{Name: "phone", Person: "ann@example.com"}, false)
	if err != nil {
		t.Fatal(err)
	}
	d, _, _ := ReadToken(text)
	until(t, "the other node does not know the token", func() bool { return b.Token(d, clock.Now(), netip.Addr{}) != nil })

	began := time.Now()
	if err := a.RevokeToken("phone", "", false); err != nil {
		t.Fatal(err)
	}
	if got, ok := wasCut(t, cut).(*Token); !ok || got.Name != "phone" || !got.Ended() || b.Token(d, clock.Now(), netip.Addr{}) != nil {
		t.Errorf("aborted is %v", got)
	}
	t.Logf("a token that is revoked on one node is aborted on the other after %v", time.Since(began))

	began = time.Now()
	if err := a.SignOut(s, ""); err != nil {
		t.Fatal(err)
	}
	if got, ok := wasCut(t, cut).(*Session); !ok || !got.Ended() || b.Host(host, "wiki.example.com", clock.Now()) != nil || b.SignedIn(secret, clock.Now()) != nil {
		t.Errorf("aborted is %v", got)
	}
	t.Logf("a session that ends on one node is aborted on the other after %v", time.Since(began))
}

// A code is redeemed once, whichever node is asked, and however many at once.
func TestACodeIsRedeemedOnceOnAllNodes(t *testing.T) {
	a, b, _ := nodes(t)
	_, s, err := a.createSession(ann.ready(), "https://id.example.com", provider.Grant{}, &Client{}, "")
	if err != nil {
		t.Fatal(err)
	}
	until(t, "the other node does not know the session", func() bool { return b.sessions.find(s.key) != nil })
	nonce := credential.NewSecret()
	for range 20 {
		to, err := a.Code(s, Site{Origin: "https://wiki.example.com", Host: "wiki.example.com", Path: "/"}, nonceOf(nonce))
		if err != nil {
			t.Fatal(err)
		}
		u, err := url.Parse(to)
		if err != nil {
			t.Fatal(err)
		}
		var redeemed atomic.Int32
		var all sync.WaitGroup
		for i := range 8 {
			e := []*Engine{a, b}[i%2]
			all.Go(func() {
				switch _, _, err := e.Redeem(u.Query().Get("code"), "https://wiki.example.com", "wiki.example.com", nonce); {
				case err == nil:
					redeemed.Add(1)
				case !errors.Is(err, ErrExpired):
					t.Error(err)
				}
			})
		}
		all.Wait()
		if redeemed.Load() != 1 {
			t.Fatalf("the code was redeemed %d times", redeemed.Load())
		}
	}
}

// While the store is away, sessions and tokens go on, and nothing new is made.
func TestTheStoreIsAway(t *testing.T) {
	a, _, _ := nodes(t)
	_, s, err := a.createSession(ann.ready(), "https://id.example.com", provider.Grant{}, &Client{}, "")
	if err != nil {
		t.Fatal(err)
	}
	host, err := a.enter(s, "wiki.example.com")
	if err != nil {
		t.Fatal(err)
	}
	_, text, err := a.CreateToken(NewToken{Name: "phone"}, false)
	if err != nil {
		t.Fatal(err)
	}
	d, _, _ := ReadToken(text)
	if err := a.o.Store.Close(); err != nil {
		t.Fatal(err)
	}
	if a.Host(host, "wiki.example.com", clock.Now()) == nil || a.Token(d, clock.Now(), netip.Addr{}) == nil {
		t.Error("what runs has ended")
	}
	if _, _, err := a.createSession(ann.ready(), "https://id.example.com", provider.Grant{}, &Client{}, ""); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a sign-in: %v", err)
	}
	if _, _, err := a.CreateToken(NewToken{Name: "other"}, false); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a token: %v", err)
	}
	if _, err := a.Code(s, Site{Origin: "https://wiki.example.com"}, strings.Repeat("a", 43)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a code: %v", err)
	}
	if err := a.RevokeToken("phone", "", false); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a revocation: %v", err)
	}
}
