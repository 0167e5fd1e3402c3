package plan

import (
	"strings"
	"testing"

	"headgate/internal/config"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/feature/cache"
)

// compiled compiles a configuration that is right.
func compiled(t *testing.T, text string, prev *Plan) *Plan {
	t.Helper()
	cfg, _, problems := config.Load("test.yaml", []byte(text))
	if cfg == nil {
		t.Fatal(problems)
	}
	p, problems := Compile(cfg, prev, House{}, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	return p
}

const cached = `version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
proxies:
  p:
    cache: {memory_limit: 8MiB}
    routes:
      - servers: [{url: "http://127.0.0.1:3000"}]
      - path: /a
        servers: [{url: "http://127.0.0.1:3001"}]
      - path: /own
        cache: {memory_limit: 2MiB}
        servers: [{url: "http://127.0.0.1:3001"}]
      - path: /off
        cache: {enabled: false}
        servers: [{url: "http://127.0.0.1:3001"}]
`

func TestCachesAreOfTheirOwners(t *testing.T) {
	p := compiled(t, cached, nil)
	var owners []string
	for _, s := range p.proxies[0].stores {
		owners = append(owners, s.proxy+s.route)
	}
	if got := strings.Join(owners, " "); got != "p p/own" {
		t.Errorf("caches of %q, want of the proxy and of one route", got)
	}
	if n, caches := p.Purge(cache.Purge{All: true, Proxy: "other"}); n != 0 || caches != 0 {
		t.Errorf("purged %d of %d caches of another proxy", n, caches)
	}
}

// TestCacheSurvivesChanges stores a response and changes what is around it.
func TestCacheSurvivesChanges(t *testing.T) {
	settings := &cache.Config{Enabled: true, MemoryLimit: 8 << 20, MaxEntry: 1 << 20}
	source := &exchangetest.Source{Status: 200, Fields: []string{"Cache-Control: max-age=60"}, Body: "stored"}
	ask := func(p *Plan) {
		c := cache.New(settings, p.proxies[0].stores[0].store, source)
		exchangetest.Run(t, exchangetest.New(t), c)
	}
	p := compiled(t, cached, nil)
	if ask(p); source.Asked != 1 {
		t.Fatalf("asked %d times", source.Asked)
	}
	for _, change := range []string{
		"", // the same again
		"      - path: /new\n        fixed_response: {status: 204}\n",
		"    ip_filter: {deny: [192.0.2.7]}\n",
	} {
		next := compiled(t, cached+change, p)
		p.Retire(next)
		if ask(next); source.Asked != 1 {
			t.Fatalf("asked again after %q", change)
		}
		p = next
	}
	without := compiled(t, strings.Replace(cached, "    cache: {memory_limit: 8MiB}\n", "", 1), p)
	p.Retire(without)
	back := compiled(t, cached, without)
	without.Retire(back)
	if ask(back); source.Asked != 2 {
		t.Errorf("asked %d times, want anew after the cache was switched off", source.Asked)
	}
}
