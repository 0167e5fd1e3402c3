package plan

import (
	"strings"
	"testing"

	"headgate/internal/exchange"
)

// guardedShop has a route for each feature that lets in fewer, and one that is open.
const guardedShop = `proxies:
  shop:
    virtual_hosts: [shop.example, "*.shop.example", "~^shop[0-9]+\\.example$"]
    routes:
      - {path: /, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /admin, basic_auth: {users: [{name: ada, password_hash: "$2y$12$S5jVHnNkqF9Zl0YlbIGr4.2x6hYQ2c9yKfJRW0GZNpNVdYAb5V5aW"}]}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /admin/open, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /intern, ip_filter: {allow: [192.0.2.0/24]}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /login, rate_limit: {requests: 5, period: 1m}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /seen, rate_limit: {requests: 5, period: 1m, mode: observe}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /sso, forward_auth: {url: "http://127.0.0.1:9091/ask"}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /.git, fixed_response: {status: 404}}
      - {path: /gone, fixed_response: {status: 410}}
      - {path: /@me, ip_filter: {deny: [192.0.2.7]}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /a%2Fb, ip_filter: {deny: [192.0.2.7]}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /legacy, ambiguous_paths: allow, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /page, fixed_response: {status: 200, body: page}}
`

func TestPathsThatReadAsOnesOfStricterRoutesAreRefused(t *testing.T) {
	port := compile(t, guardedShop).Port("web")
	for _, c := range []struct{ path, stricter string }{
		{"/admin", ""},
		{"/admin/X;y", ""},
		{"/ADMIN", "/admin"},
		{"/Admin/x", "/admin"},
		{"/admin;x", "/admin"},
		{"/;/admin", "/admin"},
		{"/%2fadmin", "/admin"},
		{"/x/..%2fadmin", "/admin"},
		{"/x%5c..%5cadmin", "/admin"},
		{"/x/..%252fadmin", "/admin"},
		{"/%2561dmin", "/admin"},
		{"/admin%2fx", "/admin"},
		{"/admin%3bx", "/admin"},
		{"/admin.", "/admin"},
		{"/admin%20", "/admin"},
		{"/p%5cq/..%2fadmin", "/admin"},
		{"/admin%2f..%2fopen", "/admin"}, // unless dot segments are resolved
		{"/ADMIN/open", ""},              // the route is open, whatever is above it
		{"/admin/OPEN", ""},              // the stricter route takes it
		{"/adminx;y", ""},
		{"/Intern", "/intern"},
		{"/LOGIN", "/login"},
		{"/SEEN", ""},
		{"/sso;", "/sso"},
		{"/.GIT/config", "/.git"},
		{"/x/..%2f.git/config", "/.git"},
		{"/GONE", ""},
		{"/%40me", "/@me"},
		{"/A/b", "/a%2Fb"},
		{"/Some/File.PDF", ""},
		{"/caf%C3%A9/%E2%82%AC;v=1", ""},
		{"/legacy/..%2fadmin", ""},
		{"/legacy;x/..%2fadmin", "/admin"}, // the route / takes it
		{"/page/..%2fadmin", ""},           // goes to no server
		{"/proxy/https%3A%2F%2FA.example%2Fx", ""},
		{"/" + strings.Repeat("a%255C;x%2F%2F..%20./", 700), "?"},
	} {
		for _, host := range []string{"shop.example", "a.shop.example", "shop7.example"} {
			ex := &exchange.Exchange{}
			prepare(ex, port, &sent{}, "GET", host, c.path)
			_, answer := port.selectRoute(ex)
			switch {
			case c.stricter == "" && answer != nil:
				t.Errorf("%s on %s: refused: %s", c.path, host, answer.Cause)
			case c.stricter == "":
			case answer == nil || answer.Reason != exchange.AmbiguousPath:
				t.Errorf("%s on %s: got %v, want %v as for %s", c.path, host, answer, exchange.AmbiguousPath, c.stricter)
			case c.stricter != "?" && !strings.Contains(answer.Cause, "route "+c.stricter+" of"):
				t.Errorf("%s on %s: %s; want route %s", c.path, host, answer.Cause, c.stricter)
			}
		}
	}
}

// Which of two gates lets in fewer.
func TestStricterGates(t *testing.T) {
	const ada, bob = `{name: ada, password_hash: "$2y$12$S5jVHnNkqF9Zl0YlbIGr4.2x6hYQ2c9yKfJRW0GZNpNVdYAb5V5aW"}`, `{name: bob, password_hash: "$2y$12$S5jVHnNkqF9Zl0YlbIGr4.2x6hYQ2c9yKfJRW0GZNpNVdYAb5V5aW"}`
	for _, c := range []struct{ outer, inner, refused string }{
		{"", "", ""},
		{"basic_auth: {users: [" + ada + "]}", "basic_auth: {users: [" + ada + ", " + bob + "]}", ""},
		{"basic_auth: {users: [" + ada + ", " + bob + "]}", "basic_auth: {users: [" + ada + "]}", "basic_auth"},
		{"basic_auth: {users: [" + ada + "]}", "basic_auth: {enabled: false}", ""},
		{"ip_filter: {allow: [192.0.2.0/24]}", "ip_filter: {allow: [192.0.2.0/24, 198.51.100.7]}", ""},
		{"ip_filter: {allow: [192.0.2.0/24, 198.51.100.7]}", "ip_filter: {allow: [192.0.2.0/24]}", "ip_filter"},
		{"ip_filter: {deny: [192.0.2.8]}", "ip_filter: {deny: [192.0.2.8, 192.0.2.9]}", "ip_filter"},
		{"ip_filter: {deny: [192.0.2.8, 192.0.2.9]}", "ip_filter: {deny: [192.0.2.8]}", ""},
		{"ip_filter: {allow: [192.0.2.0/24]}", "basic_auth: {users: [" + ada + "]}", "basic_auth"},
		{"rate_limit: {requests: 100}", "rate_limit: {requests: 5, period: 1m}", "rate_limit"},
		{"rate_limit: {requests: 5, period: 1m}", "rate_limit: {requests: 100}", ""},
		{`forward_auth: {url: "http://127.0.0.1:9091/a"}`, `forward_auth: {url: "http://127.0.0.1:9091/a"}`, ""},
		{`forward_auth: {url: "http://127.0.0.1:9091/a"}`, `forward_auth: {url: "http://127.0.0.1:9091/b"}`, "forward_auth"},
		{"", "maintenance: {}", "maintenance"},
		{"maintenance: {}", "maintenance: {}", ""},
	} {
		comma := func(s string) string {
			if s == "" {
				return ""
			}
			return ", " + s
		}
		port := compile(t, `proxies:
  p:
    routes:
      - {path: /, servers: [{url: "http://127.0.0.1:3000"}]`+comma(c.outer)+`}
      - {path: /in, servers: [{url: "http://127.0.0.1:3000"}]`+comma(c.inner)+`}
`).Port("web")
		ex := &exchange.Exchange{}
		prepare(ex, port, &sent{}, "GET", "a.example", "/IN")
		_, answer := port.selectRoute(ex)
		got := ""
		if answer != nil {
			got = answer.Cause
		}
		if (got == "") != (c.refused == "") || !strings.Contains(got, c.refused) {
			t.Errorf("outside %q, inside %q: got %q, want %q", c.outer, c.inner, got, c.refused)
		}
	}
}

// Where no route is stricter than another, nothing is looked at; elsewhere nothing is
// allocated.
func TestAmbiguousPathsCostLittle(t *testing.T) {
	if compile(t, "proxies:\n"+named("p", "", "/", "/a")).Port("web").hosts.guarded {
		t.Error("a host without gates is guarded")
	}
	if compile(t, `proxies: {p: {ip_filter: {deny: [192.0.2.9]}, routes: [{path: /, servers: [{url: "http://127.0.0.1:3000"}]}, {path: /a, servers: [{url: "http://127.0.0.1:3000"}]}]}}`).Port("web").hosts.guarded {
		t.Error("a host with the same gate everywhere is guarded")
	}
	if raceEnabled {
		return // pools forget on purpose then
	}
	port := compile(t, guardedShop).Port("web")
	ex := &exchange.Exchange{}
	for _, path := range []string{"/some/file.js", "/Some/File.js", "/x;y/%2Fz"} {
		if n := testing.AllocsPerRun(100, func() {
			prepare(ex, port, nil, "GET", "shop.example", path)
			if _, answer := port.selectRoute(ex); answer != nil {
				t.Fatal(answer.Cause)
			}
		}); n > 1 { // begin makes a connection
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

func BenchmarkAmbiguous(b *testing.B) {
	port := compile(b, guardedShop).Port("web")
	for _, path := range []string{"/api/v1/users/12345/orders", "/static/app.min.4f2a9c.js", "/watch/dQw4w9WgXcQ", "/caf%C3%A9", "/x;y/..%2Fz"} {
		b.Run(path, func(b *testing.B) {
			ex := &exchange.Exchange{}
			r := port.hosts.route(ex, "shop.example", path)
			for b.Loop() {
				port.hosts.ambiguous(ex, "shop.example", path, r)
			}
		})
	}
}
