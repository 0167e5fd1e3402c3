package config

import (
	"strings"
	"testing"

	"headgate/internal/schema"
	"headgate/internal/server/target"
)

func TestVirtualHostForms(t *testing.T) {
	for text, want := range map[string]string{
		"shop.example.com":            "shop.example.com",
		"Shop.Example.COM.":           "shop.example.com",
		"*.Example.com":               "*.example.com",
		"localhost":                   "localhost",
		"my_app":                      "my_app",
		"größe.de":                    "xn--gre-6ka8i.de",
		"GRÖSSE.de":                   "xn--grsse-kua.de",
		"xn--gre-6ka8i.de":            "xn--gre-6ka8i.de",
		"例え.テスト":                      "xn--r8jz45g.xn--zckzah",
		"192.0.2.7":                   "192.0.2.7",
		"[2001:DB8:0::1]":             "[2001:db8::1]",
		`~^shop[0-9]+\.example\.com$`: `~^shop[0-9]+\.example\.com$`,
	} {
		h, f := parseVirtualHost(text)
		if f != nil || h.String() != want {
			t.Errorf("%q = %q, %v; want %q", text, h, f, want)
		}
	}
}

func TestVirtualHostsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "empty",
		".":                              "empty",
		"*":                              "omit virtual_hosts",
		"*.":                             "omit virtual_hosts",
		"a.*.com":                        "has *",
		"*.*.com":                        "has *",
		"*shop.com":                      "has *",
		"shop.example.com:443":           "contains a port",
		"https://shop.example.com":       "is a URL",
		"shop.example.com/api":           "more than a host name",
		"a..b":                           "empty label",
		".a":                             "empty label",
		"-a.com":                         "hyphen",
		"a-.com":                         "hyphen",
		"a b":                            `contains ' '`,
		"a\x00b":                         "contains",
		"1.2.3":                          "neither a host name nor an IPv4",
		"1.2.3.4.5":                      "neither a host name nor an IPv4",
		"256.1.1.1":                      "neither a host name nor an IPv4",
		"[::1":                           "not an IPv6 address",
		"[1.2.3.4]":                      "not an IPv6 address",
		"[fe80::1%eth0]":                 "not an IPv6 address",
		"~shop":                          "whole host",
		"~^shop":                         "whole host",
		"~^(shop$":                       "missing closing )",
		"~^" + strings.Repeat("a", 1024): "maximum of 1024",
		strings.Repeat("a", 64) + ".com": "longer than 63",
		strings.Repeat("abc.", 64) + "d": "longer than 253",
		"xn--zzzzzzzz99999.de":           "no ASCII form",
	} {
		if h, f := parseVirtualHost(text); f == nil || !strings.Contains(f.What+f.Remedy, want) {
			t.Errorf("%q = %q, %v; want %q", text, h, f, want)
		}
	}
}

func TestServerURLs(t *testing.T) {
	for url, want := range map[string]target.Target{
		"http://127.0.0.1:3000/v2/":   {Scheme: "http", Host: "127.0.0.1", Port: 3000, BasePath: "/v2/"},
		"http://127.0.0.1:3000":       {Scheme: "http", Host: "127.0.0.1", Port: 3000, BasePath: "/"},
		"HTTP://Shop.Example.COM./":   {Scheme: "http", Host: "shop.example.com", Port: 80, BasePath: "/"},
		"http://[2001:db8::1]:8080/a": {Scheme: "http", Host: "2001:db8::1", Port: 8080, BasePath: "/a"},
		"http://[::1]":                {Scheme: "http", Host: "::1", Port: 80, BasePath: "/"},
		"http://my_app:65535/":        {Scheme: "http", Host: "my_app", Port: 65535, BasePath: "/"},
		"http://größe.de/":            {Scheme: "http", Host: "xn--gre-6ka8i.de", Port: 80, BasePath: "/"},
		"https://x":                   {Scheme: "https", Host: "x", Port: 443, BasePath: "/"},
		"https://[::1]:8443/b":        {Scheme: "https", Host: "::1", Port: 8443, BasePath: "/b"},
		"h2c://x":                     {Scheme: "h2c", Host: "x", Port: 80, BasePath: "/"},
		"unix:/run/app.sock":          {Scheme: "unix", Socket: "/run/app.sock", BasePath: "/"},
		"unix:///run/app.sock":        {Scheme: "unix", Socket: "/run/app.sock", BasePath: "/"},
		"unix:/run/app.sock:/b/":      {Scheme: "unix", Socket: "/run/app.sock", BasePath: "/b/"},
		"Unix+H2C:/run/app.sock:":     {Scheme: "unix+h2c", Socket: "/run/app.sock", BasePath: "/"},
	} {
		s := Server{URL: url}
		got, err := s.Target()
		if err != nil || got != want {
			t.Errorf("%q = %+v, %v; want %+v", url, got, err, want)
		}
	}
}

func TestServerURLsRefused(t *testing.T) {
	for url, want := range map[string]string{
		"":                                  "no scheme",
		"127.0.0.1:3000":                    "no scheme",
		"unix:app.sock":                     "not absolute",
		"unix:":                             "not absolute",
		"unix://run/app.sock":               "not absolute",
		"unix:/run/":                        "is a directory",
		"unix:/run/a\nb":                    "control characters",
		"unix:/run/a:b":                     "base path",
		"unix:/run/a:/b/../c":               `write "/c"`,
		"unix:/" + strings.Repeat("a", 103): "longer than 103 bytes",
		"ftp://x":                           "unknown scheme",
		"http://":                           "empty",
		"http://:80":                        "empty",
		"http:///a":                         "empty",
		"http://x:":                         "not a port number",
		"http://x:0":                        "not a port number",
		"http://x:080":                      "not a port number",
		"http://x:65536":                    "not a port number",
		"http://x:+80":                      "not a port number",
		"http://u:p@x/":                     "user name or password",
		"http://::1:80/":                    "brackets",
		"http://[::1/":                      "no closing bracket",
		"http://[::1]x/":                    "after the address",
		"http://[1.2.3.4]/":                 "not an IPv6 address",
		"http://x/?a=b":                     "query",
		"http://x?a=b":                      "query",
		"http://x/#a":                       "fragment",
		"http://x/a/../b":                   `write "/b"`,
		"http://x/a//b":                     `write "/a/b"`,
		"http://x/a b":                      `write "/a%20b"`,
		"http://a b/":                       "contains",
		"http://x\r\nHost: evil/":           "not a port number",
		"http://127.0.0.1.1:3000/":          "neither a host name nor an IPv4",
	} {
		s := Server{URL: url}
		if got, f := target.Parse(s.URL); f == nil || !strings.Contains(f.What+f.Remedy, want) {
			t.Errorf("%q = %+v, %v; want %q", url, got, f, want)
		}
	}
}

func TestAuthorityLeavesOutTheSchemesPort(t *testing.T) {
	for url, want := range map[string][2]string{
		"http://x":          {"x:80", "x"},
		"http://x:8080":     {"x:8080", "x:8080"},
		"http://[::1]:80":   {"[::1]:80", "[::1]"},
		"http://[::1]:8080": {"[::1]:8080", "[::1]:8080"},
		"https://x":         {"x:443", "x"},
		"https://x:80":      {"x:80", "x:80"},
		"h2c://x:443":       {"x:443", "x:443"},
		"unix:/run/s:/b":    {"/run/s", "localhost"},
	} {
		target, f := target.Parse(url)
		if f != nil || target.Address() != want[0] || target.Authority() != want[1] {
			t.Errorf("%s: %q, %q, %v; want %q", url, target.Address(), target.Authority(), f, want)
		}
	}
}

func TestHostHeaders(t *testing.T) {
	for value, want := range map[string]string{
		"preserve": "", "upstream": "", "app.internal": "", "app.internal:8080": "", "[::1]:80": "", "127.0.0.1": "", "stream": "", "x": "",
		"":               "empty",
		"upstrem":        "unknown value",
		"a b":            "contains",
		"a\r\nX: y":      "not a port number",
		"http://x":       "not a port number",
		"app.internal:0": "not a port number",
	} {
		if what, _ := checkHostHeader(value); (what == "") != (want == "") || !strings.Contains(what, want) {
			t.Errorf("%q: %q, want %q", value, what, want)
		}
	}
}

func TestACheckOfAProgramsObjects(t *testing.T) {
	c := New()
	c.Ports = map[string]*Port{"web": newPort("web")}
	c.Proxies = map[string]*Proxy{"a": newProxy("a")}
	report := schema.NewReport("labels", nil)
	Check(c, report)
	var got []string
	for _, p := range report.Problems() {
		got = append(got, p.Error())
	}
	want := "labels: ports.web.address: missing"
	if len(got) != 2 || !strings.HasPrefix(got[0], "labels: ports.web.address: missing") && !strings.HasPrefix(got[1], want) {
		t.Errorf("problems: %q", got)
	}
}

func TestMatchersTellRoutesApart(t *testing.T) {
	route := func(matchers string) string {
		return "      - {path: /a, " + matchers + "fixed_response: {status: 200}}\n"
	}
	for _, c := range []struct{ name, routes, want string }{
		{"fewer and more", route("") + route("matchers: {methods: [GET]}, ") + route("matchers: {methods: [GET], query: [{name: v}]}, "), ""},
		{"other values", route("matchers: {query: [{name: v, value: \"1\"}]}, ") + route("matchers: {query: [{name: v, value: \"2\"}]}, "), ""},
		{"tie", route("matchers: {query: [{name: v}]}, ") + route("matchers: {methods: [GET]}, "),
			"proxies.p.routes[1].matchers: a request can match routes[0], /a ?v, too, which has the same path and as many matchers"},
		{"tie with a third", route("matchers: {query: [{name: v}]}, ") + route("matchers: {methods: [GET]}, ") + route("matchers: {methods: [GET, POST], query: [{name: v}]}, "), ""},
		{"tie with a third that asks for more", route("matchers: {query: [{name: v}]}, ") + route("matchers: {methods: [GET]}, ") + route("matchers: {methods: [GET], query: [{name: v, value: \"1\"}]}, "),
			"proxies.p.routes[1].matchers: a request can match routes[0], /a ?v, too, which has the same path and as many matchers"},
		{"empty", route("matchers: {}, "), "proxies.p.routes[0].matchers: matchers is empty"},
		{"method", route("matchers: {methods: [get]}, "), "proxies.p.routes[0].matchers.methods[0]: methods are in capitals, and \"get\" never matches"},
		{"host", route("matchers: {headers: [{name: Host, value: x}]}, "), "proxies.p.routes[0].matchers.headers[0].name: the Host is matched by virtual_hosts"},
		{"hop by hop", route("matchers: {headers: [{name: Connection}]}, "), "proxies.p.routes[0].matchers.headers[0].name: Connection belongs to one connection and is not matched"},
		{"name twice", route("matchers: {headers: [{name: X-A}, {name: x-a, value: y}]}, "), "proxies.p.routes[0].matchers.headers[1].name: duplicate name x-a"},
		{"value and regex", route("matchers: {query: [{name: v, value: a, regex: b}]}, "), "proxies.p.routes[0].matchers.query[0].regex: regex cannot be combined with value"},
		{"broken regex", route("matchers: {query: [{name: v, regex: \"(\"}]}, "), "proxies.p.routes[0].matchers.query[0].regex: invalid regular expression"},
	} {
		_, _, problems := Load("t.yaml", []byte("version: 1\nproxies:\n  p:\n    routes:\n"+c.routes))
		got := ""
		for _, p := range problems {
			got += p.Field + ": " + p.What
		}
		if c.want == "" && got != "" || !strings.HasPrefix(got, c.want) || len(problems) > 1 {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}
