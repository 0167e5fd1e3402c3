package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"testing"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/metrics"
)

// many makes a configuration of n proxies with three routes each.
func many(n int) *config.Config {
	cfg := config.New()
	cfg.Ports = map[string]*config.Port{"web": {Object: config.Object{Name: "web"}, Address: netip.MustParseAddrPort("0.0.0.0:80"), Active: true, Protocol: config.HTTP}}
	cfg.Proxies = make(map[string]*config.Proxy, n)
	for i := range n {
		p := &config.Proxy{Object: config.Object{Name: fmt.Sprintf("proxy%d", i)}, Active: true, VirtualHosts: []string{fmt.Sprintf("host%d.example.com", i)}}
		for _, path := range []string{"/", "/api", "/static/files"} {
			p.Routes = append(p.Routes, &config.Route{Path: path, StripPrefix: true, Servers: []*config.Server{{URL: fmt.Sprintf("http://10.0.%d.%d:3000/v2/", i>>8&255, i&255), Weight: 1}}})
		}
		cfg.Proxies[p.Name] = p
	}
	return cfg
}

func TestServeAllocatesNothing(t *testing.T) {
	p := compile(t, "proxies:\n  shop: {virtual_hosts: [shop.example], request_body_limit: 1MiB, routes: [{path: /api, rewrite: {add_prefix: /x}, servers: [{url: \"http://127.0.0.1:3000/b/\"}]}]}\n").Port("web")
	for _, c := range []struct{ name, host, path string }{
		{"plain", "shop.example", "/api/v1/users"},
		{"port and capitals", "Shop.Example:8080", "/api/v1/users"},
		{"not normal", "shop.example", "/api/%7e/../v1//users"},
		{"no route", "other.example", "/"},
	} {
		ex := &exchange.Exchange{}
		conn := *client
		front := &sent{}
		n := testing.AllocsPerRun(100, func() {
			ex.Reset(&conn, front)
			ex.Place = p.Front().Place
			ex.Request.Method, ex.Request.Scheme, ex.Request.Host, ex.Request.Path = "GET", "http", c.host, c.path
			ex.Request.Header.AddField("X_Forwarded_For", "10.0.0.1")
			ex.Request.Header.AddField("Via", "1.1 other")
			if r, _ := p.selectRoute(ex); r != nil {
				for _, f := range r.pipeline.Filters {
					if f.Request != nil {
						f.Request(ex)
					}
				}
			}
		})
		if n != 0 {
			t.Errorf("%s: %v allocations, want 0", c.name, n)
		}
	}
}

func BenchmarkMatch(b *testing.B) {
	for _, n := range []int{1, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			plan, problems := Compile(many(n), nil, House{}, nil)
			if problems != nil {
				b.Fatal(problems)
			}
			p := plan.Port("web")
			hosts := make([]string, min(n, 1000))
			for i := range hosts {
				hosts[i] = fmt.Sprintf("host%d.example.com", i*7%n)
			}
			ex := &exchange.Exchange{}
			conn := *client
			ex.Reset(&conn, nil)
			i := 0
			for b.Loop() {
				ex.Request.Host, ex.Request.Path = hosts[i], "/static/files/app.js"
				if i++; i == len(hosts) {
					i = 0
				}
				if r, _ := p.selectRoute(ex); r == nil {
					b.Fatal("no route")
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	cfg := many(10_000)
	house := House{Metrics: metrics.New(metrics.Build{}), Record: func(string) func(*exchange.Exchange) { return func(*exchange.Exchange) {} }, RecordOf: "log"}
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			p, _ := Compile(cfg, nil, house, nil)
			p.Retire(nil)
		}
	})
	// Every part is carried over, and no proxy is whole.
	b.Run("parts", func(b *testing.B) {
		last, _ := Compile(cfg, nil, house, nil)
		for n := 0; b.Loop(); n++ {
			house.RecordOf = n
			next, _ := Compile(cfg, last, house, nil)
			last.Retire(next)
			last = next
		}
		last.Retire(nil)
	})
	b.Run("one edited", func(b *testing.B) {
		last, _ := Compile(cfg, nil, house, nil)
		for b.Loop() {
			edited := *cfg
			edited.Proxies = maps.Clone(cfg.Proxies)
			proxy := *cfg.Proxies["proxy4711"]
			edited.Proxies["proxy4711"] = &proxy
			next, _ := Compile(&edited, last, house, nil)
			last.Retire(next)
			last = next
		}
		last.Retire(nil)
	})
}
