package plan

import (
	"testing"

	"headgate/internal/exchange"
)

// The rule of a host is that of the proxy that its requests go to.
func TestARuleOnDemandIsThatOfTheHost(t *testing.T) {
	var requested []string
	p := compileIn(t, `ports:
  web: {address: "127.0.0.1:8080", protocol: http}
  secure: {address: "127.0.0.1:8443", protocol: https}
  other: {address: "127.0.0.1:8444", protocol: https}
acme: {main: {directory: "https://127.0.0.1:1/none"}}
proxies:
  named: {virtual_hosts: [shop.tenants.example, "www.any.example"], routes: [{fixed_response: {status: 200}}]}
  wild: {virtual_hosts: ["*.tenants.example", own.example], acme: main, on_demand: {list: ["*.tenants.example"], max_per_hour: 1}, routes: [{fixed_response: {status: 200}}]}
  plainwild: {virtual_hosts: ["*.plain.example"], routes: [{fixed_response: {status: 200}}]}
  pattern: {virtual_hosts: ["~^[a-z]+\\.pattern\\.example$"], acme: main, on_demand: {list: [a.pattern.example], max_per_hour: 1}, routes: [{fixed_response: {status: 200}}]}
  off: {virtual_hosts: ["*.off.example"], active: false, acme: main, on_demand: {list: [a.off.example], max_per_hour: 1}, routes: [{fixed_response: {status: 200}}]}
  rest: {acme: main, ports: [web], on_demand: {ask: "http://127.0.0.1:1/", max_per_hour: 1}, routes: [{fixed_response: {status: 200}}]}
`, House{Challenges: elsewhere{&requested}})
	for _, c := range []struct{ port, host, want string }{
		{"secure", "a.tenants.example", "wild"},
		{"other", "a.tenants.example", "wild"},
		{"", "a.tenants.example", "wild"},
		{"web", "a.tenants.example", ""},
		{"secure", "shop.tenants.example", ""},
		{"secure", "own.example", ""},
		{"secure", "a.b.tenants.example", ""},
		{"secure", "a.plain.example", ""},
		{"secure", "shop.pattern.example", "pattern"},
		{"secure", "a.off.example", ""},
		{"secure", "new.example", ""},
		{"secure", "", ""},
	} {
		got := ""
		if d := p.OnDemand(c.port, c.host); d != nil {
			got = d.Proxy
		}
		if got != c.want {
			t.Errorf("%q at %q: got the rule of %q, want %q", c.host, c.port, got, c.want)
		}
	}
	web := p.Port("web") // no server of an application answers for headgate's orders
	for host, reason := range map[string]exchange.Reason{"a.tenants.example": exchange.ACMEChallenge, "new.example": exchange.ACMEChallenge, "a.plain.example": exchange.None} {
		if got := request(web, "GET", host, "/.well-known/acme-challenge/unknown"); (reason == exchange.ACMEChallenge) != (got.reason == exchange.ACMEChallenge) {
			t.Errorf("a token at %s: got %v, want %v", host, got.reason, reason)
		}
	}
}
