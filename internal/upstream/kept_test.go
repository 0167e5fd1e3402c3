package upstream

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/server/health"
)

// What is kept of a server outlives a change that leaves it alone, and nothing is
// kept that was made from settings that have changed.
func TestWhatIsKeptFollowsItsSettings(t *testing.T) {
	type given struct {
		target   Target
		settings Settings
		policy   Policy
	}
	first := func() given {
		return given{
			target:   Target{URL: "http://a", Address: "127.0.0.1:9", Authority: "a", Weight: 1, MaxRequests: 3},
			settings: Settings{IdleTimeout: time.Minute, IdleConnections: 5, HeadSize: 4096, ResolveInterval: time.Minute},
			policy: Policy{
				Proxy: "shop", Route: "/", QueueLength: 7, SlowStart: time.Second,
				Health: Health{Check: &health.Config{Path: "/", Interval: 1}, Breaker: &health.Breaker{ErrorPercent: 50}},
			},
		}
	}
	for _, c := range []struct {
		name   string
		change func(*given)
		want   []string // the kinds that are made anew
	}{
		{"nothing", func(*given) {}, nil},
		{"weight", func(g *given) { g.target.Weight = 2 }, nil},
		{"idle connections", func(g *given) { g.settings.IdleConnections = 6 }, []string{"pool"}},
		{"header size", func(g *given) { g.settings.HeadSize = 8192 }, []string{"pool", "check", "watch"}},
		{"interval of names", func(g *given) { g.settings.ResolveInterval = 1 }, []string{"pool", "check", "watch"}},
		{"check", func(g *given) { g.policy.Health.Check.Path = "/health" }, []string{"check", "watch"}},
		{"slow start", func(g *given) { g.policy.SlowStart = 2 }, []string{"watch"}},
		{"breaker", func(g *given) { g.policy.Health.Breaker.ErrorPercent = 60 }, []string{"circuit"}},
		{"max requests", func(g *given) { g.target.MaxRequests = 4 }, []string{"server", "circuit"}},
		{"HTTP/2", func(g *given) { g.target.HTTP2 = true }, []string{"pool", "check", "watch"}},
		{"another route", func(g *given) { g.policy.Route = "/b" }, []string{"server", "circuit", "queue", "watch"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			env, made := exchangetest.Env(t), map[string]int{}
			keep := env.Keep
			env.Keep = func(key string, open func() exchange.Kept) exchange.Kept {
				return keep(key, func() exchange.Kept {
					made[kindOf(key)]++
					return open()
				})
			}
			build := func(g given) { New([]Target{g.target}, g.settings, g.policy, env) }
			build(first())
			clear(made)
			g := first()
			c.change(&g)
			build(g)
			for _, kind := range []string{"pool", "server", "circuit", "queue", "check", "watch", "rounds of checks"} {
				want := false
				for _, w := range c.want {
					want = want || w == kind
				}
				if got := made[kind] > 0; got != want {
					t.Errorf("%s made anew: %v, want %v", kind, got, want)
				}
			}
		})
	}
}

// kindOf returns the kind of thing that a key of exchange.Keep is for.
func kindOf(key string) string {
	kind, _, _ := strings.Cut(key, "\n")
	return kind
}
