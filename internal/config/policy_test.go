package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const withPolicies = `version: 1
ports:
  web: {address: "0.0.0.0:80", protocol: http}
defaults:
  request_timeout: 10s
  compression: {}
  rate_limit: {requests: 100}
policies:
  staff:
    description: who works here
    ip_filter: {allow: [10.0.0.0/8]}
    rate_limit: {requests: 50}
  partners:
    ip_filter: {allow: [192.0.2.0/24]}
    cache: {}
  open:
    ip_filter: {enabled: false}
proxies:
  plain:
    virtual_hosts: [plain]
    routes: [{fixed_response: {status: 200}}]
  shop:
    virtual_hosts: [shop]
    ports: [web]
    use: [staff, partners]
    request_timeout: 20s
    routes:
      - {path: /, fixed_response: {status: 200}}
      - {path: /free, use: [open], rate_limit: {requests: 7}, fixed_response: {status: 200}}
      - {path: /back, use: [partners, staff], fixed_response: {status: 200}}
`

func TestPoliciesStandBetweenAProxyAndTheDefaults(t *testing.T) {
	c, _ := mustLoad(t, withPolicies)
	plain, shop := c.Proxies["plain"], c.Proxies["shop"]
	for _, v := range []struct {
		name  string
		proxy *Proxy
		route int
		want  string // allow list, requests, timeout, compression, cache
	}{
		{"defaults", plain, 0, "any 100 10s compression"},
		{"the later policy holds", shop, 0, "192.0.2.0/24 50 20s compression cache"},
		{"a route's policy and own feature", shop, 1, "any 7 20s compression cache"},
		{"the order of a route's policies", shop, 2, "10.0.0.0/8 50 20s compression cache"},
	} {
		f := v.proxy.Effective(v.proxy.Routes[v.route])
		got := []string{"any"}
		if f.IPFilter != nil {
			got[0] = f.IPFilter.Allow[0]
		}
		got = append(got, fmt.Sprint(f.RateLimit.Requests), f.RequestTimeout.String())
		if f.Compression != nil {
			got = append(got, "compression")
		}
		if f.Cache != nil {
			got = append(got, "cache")
		}
		if diff := cmp.Diff(v.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", v.name, diff)
		}
	}
	if shop.Routes[0].Features.IPFilter != nil || shop.Written().IPFilter != nil || len(shop.Written().Use) != 2 || shop.Written().Routes[1].IPFilter != nil {
		t.Error("what a proxy says is not as it is written")
	}
	if plain.RateLimit == c.Defaults.RateLimit || shop.Routes[2].RateLimit == c.Policies["staff"].RateLimit {
		t.Error("a rate limit is shared by all who use it")
	}
	if shop.IPFilter != c.Policies["partners"].IPFilter {
		t.Error("an IP filter is not shared by those who use it")
	}
}

func TestFeaturesTellWhereTheyComeFrom(t *testing.T) {
	c, _ := mustLoad(t, withPolicies)
	var got []string
	for _, o := range c.FeatureOrigins("shop", 1) {
		got = append(got, o.Feature+": "+o.String()+" at "+o.Place)
	}
	want := []string{
		"ip_filter: policy open, used by the route at headgate.yaml:16:3",
		"rate_limit: the route at headgate.yaml:22:3",
		"request_timeout: the proxy at headgate.yaml:22:3",
		"cache: policy partners, used by the proxy at headgate.yaml:13:3",
		"compression: the defaults at headgate.yaml:4:1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if o := c.FeatureOrigins("none", 0); o != nil {
		t.Errorf("a proxy that is not there has %v", o)
	}
}

func TestUsersOfAnObjectAreKnown(t *testing.T) {
	c, _ := mustLoad(t, withPolicies)
	paths := func(kind, name string) (out []string) {
		for _, r := range c.Users(kind, name) {
			out = append(out, r.Path)
		}
		return out
	}
	for _, v := range []struct {
		kind, name string
		want       []string
	}{
		{"policies", "partners", []string{"proxies.shop.use[1]", "proxies.shop.routes[2].use[0]"}},
		{"policies", "open", []string{"proxies.shop.routes[1].use[0]"}},
		{"ports", "web", []string{"proxies.shop.ports[0]"}},
		{"policies", "none", nil}, {"proxies", "shop", nil},
	} {
		if diff := cmp.Diff(v.want, paths(v.kind, v.name)); diff != "" {
			t.Errorf("users of %s %s (-want +got):\n%s", v.kind, v.name, diff)
		}
	}
}

func TestPoliciesThatAreNotThereAreRefused(t *testing.T) {
	text := strings.Replace(withPolicies, "use: [open]", "use: [opne, staff, staff]", 1)
	text = strings.Replace(text, "allow: [192.0.2.0/24]", "allow: [192.0.2.1/24]", 1)
	_, _, problems := Load("f", []byte(text))
	var got []string
	for _, p := range problems {
		got = append(got, p.Field+": "+p.What+"; "+p.Remedy)
	}
	if len(got) != 3 || !strings.HasPrefix(got[0], "policies.partners.ip_filter.allow[0]: ") ||
		got[1] != `proxies.shop.routes[1].use[0]: there is no policy "opne"; did you mean "open"?` ||
		got[2] != `proxies.shop.routes[1].use[2]: duplicate policy staff; remove one of them` {
		t.Errorf("problems: %q", got)
	}
}

func TestProxiesWithPoliciesAreCarriedOver(t *testing.T) {
	a, _, _ := LoadDocuments(one("f", []byte(withPolicies)), nil)
	edited := strings.Replace(withPolicies, "status: 200", "status: 201", 1)
	b, _, problems := LoadDocuments(one("f", []byte(edited)), a)
	if len(problems) > 0 || a.Proxies["shop"] != b.Proxies["shop"] || a.Proxies["plain"] == b.Proxies["plain"] {
		t.Errorf("not the edited proxy alone is another one: %v", problems)
	}
	edited = strings.Replace(withPolicies, "requests: 50", "requests: 51", 1)
	b, _, problems = LoadDocuments(one("f", []byte(edited)), a)
	if len(problems) > 0 || a.Proxies["shop"] == b.Proxies["shop"] || b.Proxies["shop"].RateLimit.Requests != 51 {
		t.Errorf("a change of a policy does not reach who uses it: %v", problems)
	}
}
