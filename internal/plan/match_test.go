package plan

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate/internal/config"
	"headgate/internal/exchange"
)

func TestHostClassComesBeforePath(t *testing.T) {
	p := compile(t, "proxies:\n"+
		named("exact", "shop.example.com, \"[2001:db8::1]\", 192.0.2.1", "/", "/api")+
		named("exact2", "SHOP.example.com.", "/api/v2")+
		named("narrow", "only.example.com", "/only")+
		named("wild", "\"*.example.com\"", "/", "/api/v2/deep")+
		named("regex", "'~^(shop|r[0-9]+)\\.example\\.(com|org)$'", "/", "/regex")+
		named("regex2", "'~^r1\\.example\\.org$'", "/regex/two", "/")+
		named("all", "", "/", "/all")).Port("web")
	for _, c := range []struct{ host, path, want string }{
		{"shop.example.com", "/", "exact /"},
		{"shop.example.com", "/api", "exact /api"},
		{"shop.example.com", "/api/", "exact /api"},
		{"shop.example.com", "/apix", "exact /"},
		{"shop.example.com", "/api/v2/x", "exact2 /api/v2"},
		{"shop.example.com", "/api/v22", "exact /api"},
		{"SHOP.Example.COM:8080", "/api", "exact /api"},
		{"shop.example.com.", "/api", "exact /api"},
		{"shop.example.com.:80", "/api/v2", "exact2 /api/v2"},
		{"shop.example.com", "/api/v2/deep", "exact2 /api/v2"},
		{"only.example.com", "/only/x", "narrow /only"},
		{"only.example.com", "/", "404"}, // no way back to a lower class
		{"other.example.com", "/x", "wild /"},
		{"other.example.com", "/api/v2/deep/x", "wild /api/v2/deep"},
		{"a.b.example.com", "/x", "all /"}, // one label
		{".example.com", "/x", "all /"},
		{"example.com", "/", "all /"},
		{"r7.example.com", "/", "wild /"},
		{"r7.example.org", "/regex/x", "regex /regex"},
		{"r1.example.org", "/regex/two", "regex2 /regex/two"},
		{"r1.example.org", "/regex/x", "regex /regex"},
		{"r1.example.org", "/", "regex /"}, // the longer expression
		{"R1.Example.ORG:80", "/", "regex /"},
		{"[2001:db8::1]:8080", "/", "exact /"},
		{"[2001:0DB8:0:0::1]", "/", "exact /"},
		{"[2001:db8::2]", "/", "all /"},
		{"192.0.2.1:81", "/", "exact /"},
		{"", "/all", "all /all"},
		{"nobody.example", "/all/x", "all /all"},
		{"nobody.example", "//%61ll/.", "all /all"},
	} {
		s := request(p, "GET", c.host, c.path)
		got := s.text
		if s.status == 404 {
			got = "404"
		}
		if got != c.want {
			t.Errorf("%s%s: got %q, want %q", c.host, c.path, got, c.want)
		}
	}
}

func TestNoRouteIs404(t *testing.T) {
	port := compile(t, "proxies:\n"+named("a", "a.example", "/x")).Port("web")
	for _, c := range [][2]string{{"b.example", "/x"}, {"a.example", "/"}, {"a.example", "/xy"}, {"", "/x"}} {
		if s := request(port, "GET", c[0], c[1]); s.status != 404 || s.reason != exchange.NoRoute {
			t.Errorf("%s%s: %d %v, want 404 no_route", c[0], c[1], s.status, s.reason)
		}
	}
}

func TestProxyTakesRequestsOfItsPortsOnly(t *testing.T) {
	p := compile(t, `
ports:
  a: {address: "0.0.0.0:8080", protocol: http}
  b: {address: "0.0.0.0:8081", protocol: http}
  c: {address: "0.0.0.0:8082", protocol: http, active: false}
proxies:
  on-a: {ports: [a], routes: [{fixed_response: {status: 200, body: a}}]}
  on-b: {ports: [b, c], routes: [{fixed_response: {status: 200, body: b}}]}
  both: {routes: [{path: /x, fixed_response: {status: 200, body: both}}]}
  off: {active: false, routes: [{path: /x/y, fixed_response: {status: 200, body: off}}]}
`)
	if len(p.Ports()) != 2 || p.Port("c") != nil {
		t.Fatalf("ports %v", p.Ports())
	}
	for _, c := range []struct{ port, path, want string }{
		{"a", "/", "a"}, {"b", "/", "b"}, {"a", "/x", "both"}, {"b", "/x/y", "both"},
	} {
		if s := request(p.Port(c.port), "GET", "h", c.path); s.text != c.want {
			t.Errorf("%s%s: %q, want %q", c.port, c.path, s.text, c.want)
		}
	}
	if p.At(p.Port("b").Address()) != p.Port("b") {
		t.Error("port b is not found by its address")
	}
}

func TestRoutesThatWantTheSameAreRefused(t *testing.T) {
	cfg := load(t, "proxies:\n"+
		named("a", "x.example, y.example", "/api", "/own")+
		named("b", "y.example, x.example", "/api/")+
		named("c", "\"*.example\"", "/api")+
		named("d", "'~^z$'", "/p")+
		named("e", "'~^z$'", "/p")+
		named("f", "", "/p")+
		named("g", "", "/p"))
	plan, problems := Compile(cfg, nil, House{}, nil)
	if plan != nil {
		t.Error("a plan in spite of problems")
	}
	want := []string{
		"proxies.b.routes[0].path: port web, host x.example, path /api are also used by proxies.a.routes[0].path",
		"proxies.e.routes[0].path: port web, host ~^z$, path /p are also used by proxies.d.routes[0].path",
		"proxies.g.routes[0].path: port web, no virtual host, path /p are also used by proxies.f.routes[0].path",
	}
	if len(problems) != len(want) {
		t.Errorf("%d problems, want %d", len(problems), len(want))
	}
	for i, p := range problems {
		got := strings.Replace(p.Field+": "+p.What, "host y.example", "host x.example", 1)
		if i < len(want) && got != want[i] {
			t.Errorf("problem %d\n got %s\nwant %s", i, got, want[i])
		}
	}
}

func TestProblemsHaveTheirPlace(t *testing.T) {
	text := "version: 1\nports:\n  web: {address: \"0.0.0.0:8080\", protocol: http}\nproxies:\n" + named("a", "", "/x") + named("b", "", "/", "/x")
	cfg, doc, problems := config.Load("test.yaml", []byte(text))
	if cfg == nil {
		t.Fatal(problems)
	}
	_, problems = Compile(cfg, nil, House{}, doc.Report())
	if len(problems) != 1 {
		t.Fatalf("problems %v, want one", problems)
	}
	p := problems[0]
	if p.File != "test.yaml" || p.Line != 11 || p.Object != "proxy b, route /x" || p.Remedy == "" {
		t.Errorf("got %s:%d %s, %s; want test.yaml:11, proxy b, route /x", p.File, p.Line, p.Object, p.Remedy)
	}
}

func TestSameRouteOnOtherPortsIsFine(t *testing.T) {
	compile(t, `
ports:
  a: {address: "0.0.0.0:8080", protocol: http}
  b: {address: "0.0.0.0:8081", protocol: http}
proxies:
  one: {ports: [a], routes: [{fixed_response: {status: 200}}]}
  two: {ports: [b], routes: [{fixed_response: {status: 200}}]}
  off: {active: false, routes: [{fixed_response: {status: 200}}]}
`)
}

// The tables find what a look at every route finds.
func TestTablesAgreeWithASearch(t *testing.T) {
	hosts := []string{"a.example", "b.example", "*.example", "*.b.example", "~^a[0-9]*\\.example$", "~^.*\\.example$", "example"}
	paths := []string{"/", "/a", "/a/b", "/a/b/c", "/a-b", "/a/b-c", "/b", "/a.b", "/%2F", "/A"}
	asked := []string{"a.example", "a1.example", "b.example", "c.b.example", "example", "x.y.z.example", "other", "A.EXAMPLE.:80", ""}
	rapid.Check(t, func(t *rapid.T) {
		cfg := config.New()
		cfg.Ports = map[string]*config.Port{"web": {Object: config.Object{Name: "web"}, Address: netip.MustParseAddrPort("0.0.0.0:80"), Active: true, Protocol: config.HTTP}}
		cfg.Proxies = map[string]*config.Proxy{}
		for i := range rapid.IntRange(1, 6).Draw(t, "proxies") {
			name := fmt.Sprintf("p%d", i)
			p := &config.Proxy{Object: config.Object{Name: name}, Active: rapid.IntRange(0, 5).Draw(t, "active") > 0}
			p.VirtualHosts = rapid.SliceOfNDistinct(rapid.SampledFrom(hosts), 0, 4, rapid.ID).Draw(t, "hosts")
			for _, path := range rapid.SliceOfNDistinct(rapid.SampledFrom(paths), 1, 5, rapid.ID).Draw(t, "paths") {
				p.Routes = append(p.Routes, &config.Route{Path: path, FixedResponse: &config.FixedResponse{Status: 200, Body: "{proxy} {route}"}})
			}
			cfg.Proxies[name] = p
		}
		plan, problems := Compile(cfg, nil, House{}, nil)
		if clashes := search(cfg, "", "", true); (len(clashes) > 0) != (len(problems) > 0) {
			t.Fatalf("problems %v, want clashes %v", problems, clashes)
		}
		if plan == nil {
			return
		}
		for range 10 {
			host := rapid.SampledFrom(asked).Draw(t, "host")
			path := rapid.SampledFrom(append(paths, "/a/", "/a/b/c/d", "/ab", "/a/bc", "/zzz")).Draw(t, "path")
			want := "404"
			if found := search(cfg, hostName(host, &exchange.Text{}), path, false); len(found) > 0 {
				want = found[0]
			}
			s := request(plan.Port("web"), "GET", host, path)
			got := s.text
			if s.status == 404 {
				got = "404"
			}
			if got != want {
				t.Fatalf("%q %s: got %s, want %s", host, path, got, want)
			}
			e := plan.Explain(Question{Method: "GET", Scheme: "http", Authority: host, Target: path})
			if host != "" && (e.Proxy != "") != (want != "404") || e.Proxy != "" && e.Proxy+" "+e.Route != want {
				t.Fatalf("%q %s: explained as %s %s, want %s", host, path, e.Proxy, e.Route, want)
			}
		}
	})
}

// search finds the route by the words of the rule; or with clashes, all pairs of
// routes that want the same.
func search(cfg *config.Config, host, path string, clashes bool) (found []string) {
	type entry struct {
		class  config.HostClass
		host   string
		prefix string
		route  string
	}
	var all []entry
	for _, p := range cfg.Proxies {
		if !p.Active {
			continue
		}
		virtual, _ := p.Hosts()
		if len(virtual) == 0 {
			virtual = []config.VirtualHost{{Class: anyHost}}
		}
		for _, h := range virtual {
			for _, r := range p.Routes {
				all = append(all, entry{h.Class, h.Name, strings.TrimSuffix(r.Path, "/"), p.Name + " " + r.Path})
			}
		}
	}
	if clashes {
		for i := range all {
			for j := range i {
				if all[i].class == all[j].class && all[i].host == all[j].host && all[i].prefix == all[j].prefix {
					found = append(found, all[i].route+" = "+all[j].route)
				}
			}
		}
		return found
	}
	best := noHost
	var match []entry
	for _, e := range all {
		has := e.class == anyHost
		switch e.class {
		case config.HostExact:
			has = e.host == host
		case config.HostWildcard:
			label, rest, dot := strings.Cut(host, ".")
			has = dot && label != "" && rest == e.host
		case config.HostRegex:
			v, _ := (&config.Proxy{VirtualHosts: []string{"~" + e.host}}).Hosts()
			has = host != "" && v[0].Regex.MatchString(host)
		}
		if has {
			best = min(best, e.class)
			match = append(match, e)
		}
	}
	var winner *entry
	for i := range match {
		e := &match[i]
		if e.class != best || path != e.prefix && !strings.HasPrefix(path, e.prefix+"/") {
			continue
		}
		if winner == nil || len(e.prefix) > len(winner.prefix) || len(e.prefix) == len(winner.prefix) && comparePatterns(e.host, winner.host) < 0 {
			winner = e
		}
	}
	if winner != nil {
		found = append(found, winner.route)
	}
	return found
}
