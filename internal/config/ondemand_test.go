package config

import (
	"strings"
	"testing"
)

func TestOnDemandNeedsABoundAndHostsThatAreNotNamed(t *testing.T) {
	for _, test := range []struct{ proxy, problem string }{
		{`on_demand: {ask: "http://127.0.0.1:3000/allowed", max_per_hour: 20}`, ""},
		{`on_demand: {list: [a.example.com, "*.example.com"], max_per_hour: 1}, virtual_hosts: ["*.example.com", www.example.org]`, ""},
		{`on_demand: {ask: "https://app.example.com/?key=1", max_per_hour: 1}, virtual_hosts: ["~^[a-z]+\\.example\\.net$"]`, ""},
		{`on_demand: {max_per_hour: 20}`, "nothing limits which hosts get certificates"},
		{`on_demand: {ask: "http://127.0.0.1:3000/"}`, "max_per_hour: missing"},
		{`on_demand: {ask: "http://127.0.0.1:3000/", max_per_hour: 0}`, "max_per_hour: 0 is below the minimum 1"},
		{`on_demand: {ask: "http://127.0.0.1:3000/", max_per_hour: 1001}`, "above the maximum"},
		{`on_demand: {ask: "http://127.0.0.1:3000/", max_per_hour: 1}, virtual_hosts: [shop.example.com]`, "every virtual host of the proxy is a name"},
		{`on_demand: {ask: "http://127.0.0.1:3000/", max_per_hour: 1}, acme: none`, "no acme entry applies"},
		{`on_demand: {ask: "http://127.0.0.1:3000/", max_per_hour: 1}, acme: other`, `there is no acme entry "other"`},
		{`on_demand: {ask: "unix:/run/app", max_per_hour: 1}`, "not an http or https URL"},
		{`on_demand: {ask: "http://a:b@127.0.0.1/", max_per_hour: 1}`, "not an http or https URL"},
		{`on_demand: {ask: "http://127.0.0.1/?domain=x", max_per_hour: 1}`, "the query parameter domain is set by headgate"},
		{`on_demand: {list: ["*.co.uk"], max_per_hour: 1}`, "public suffix"},
		{`on_demand: {list: ["10.0.0.1"], max_per_hour: 1}`, "no authority gives certificates"},
		{`virtual_hosts: ["*.example.com"]`, "a wildcard needs dns-01"},
	} {
		text := "version: 1\nports: {web: {address: \"0.0.0.0:443\", protocol: https}}\nacme: {main: {}}\nproxies: {tenants: {"
		if !strings.Contains(test.proxy, "acme:") {
			text += "acme: main, "
		}
		_, _, problems := Load("h.yaml", []byte(text+test.proxy+", routes: [{fixed_response: {status: 204}}]}}\n"))
		got := ""
		for _, p := range problems {
			got += p.Error() + "\n"
		}
		if test.problem == "" && got != "" || !strings.Contains(got, test.problem) {
			t.Errorf("%s: got %q, want %q", test.proxy, got, test.problem)
		}
	}
}

func TestWildcardsOnDemandAreNotOrdered(t *testing.T) {
	const text = `version: 1
ports: {web: {address: "0.0.0.0:443", protocol: https}}
acme: {main: {default: true}}
proxies:
  tenants:
    virtual_hosts: ["*.example.com", www.example.org]
    on_demand: {list: ["*.example.com"], max_per_hour: 1}
    routes: [{fixed_response: {status: 204}}]
`
	c, _, problems := Load("h.yaml", []byte(text))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	_, wants := c.ACMEWants(func(string) bool { return false })
	if len(wants) != 1 || wants[0].Names[0] != "www.example.org" {
		t.Errorf("got %+v", wants)
	}
	if d := c.OnDemand(c.Proxies["tenants"]); d == nil || d.Entry != "main" || d.Proxy != "tenants" || d.Settings.MaxCertificates != 1000 {
		t.Errorf("got %+v", d)
	}
}

func TestTCPProxiesOrderNothingOnDemand(t *testing.T) {
	for _, test := range []struct{ settings, problem string }{
		{`tls: {on_demand: {list: [a.example.com], max_per_hour: 1}}`, "tcp_proxies.db.tls.on_demand: unknown key; on_demand is a key of proxies"},
		{`on_demand: {list: [a.example.com], max_per_hour: 1}`, "tcp_proxies.db.on_demand: unknown key; on_demand is a key of proxies"},
	} {
		_, _, problems := Load("h.yaml", []byte("version: 1\ntcp_proxies: {db: {address: \"127.0.0.1:5432\", "+test.settings+", servers: [{address: \"127.0.0.1:1\"}]}}\n"))
		if len(problems) != 1 || !strings.HasSuffix(problems[0].Error(), test.problem) {
			t.Errorf("%s: got %v, want %q", test.settings, problems, test.problem)
		}
	}
}
