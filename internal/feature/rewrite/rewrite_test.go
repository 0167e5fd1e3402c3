package rewrite

import (
	"net/netip"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/uri"
)

func exchangeFor(path string) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Remote: netip.MustParseAddrPort("192.0.2.7:1234")}, nil)
	ex.Request.Method, ex.Request.Scheme, ex.Request.Host = "GET", "http", "shop.example"
	ex.Request.Path, ex.Request.Target = path, path
	return ex
}

func server(base string) exchange.Route {
	return exchange.Route{Strip: true, Servers: []exchange.RouteServer{{URL: "http://127.0.0.1:3000" + base, Base: base}}}
}

func compile(t interface{ Fatal(...any) }, c *Config, route exchange.Route) exchange.Filter {
	filter, err := Compile(c, exchange.Env{Route: route})
	if err != nil {
		t.Fatal(err)
	}
	return filter
}

// target returns what the filter leaves for the server.
func target(filter exchange.Filter, path string) (string, *exchange.Answer) {
	ex := exchangeFor(path)
	if filter.Request != nil {
		if answer := filter.Request(ex); answer != nil {
			return "", answer
		}
	}
	return ex.Request.Target, nil
}

func TestPathIsStripped(t *testing.T) {
	for _, c := range []struct {
		prefix     string
		strip      bool
		base       string
		path, want string
	}{
		{"/p", true, "/b/", "/p/rest", "/rest"},
		{"/p", true, "/b/", "/p", ""},
		{"/p", true, "/b/", "/p/", "/"},
		{"/p", true, "", "/p/a/b/", "/a/b/"},
		{"/p/q", true, "/", "/p/q/r", "/r"},
		{"/p", false, "/b/", "/p/rest", "/p/rest"},
		{"/p", false, "/b", "/p", "/p"},
		{"", true, "/", "/", "/"},
		{"", true, "/b", "/", ""},
		{"", true, "/b", "/x", "/x"},
		{"", false, "/b", "/", "/"},
		{"/p", true, "/b/", "/p/a%2Fb", "/a%2Fb"},
		{"", true, "/b", "*", "*"},
	} {
		route := server(c.base)
		route.Prefix, route.Strip = c.prefix, c.strip
		if got, answer := target(compile(t, nil, route), c.path); got != c.want || answer != nil {
			t.Errorf("%q strip %v, base %q: %q -> %q, %v, want %q", c.prefix, c.strip, c.base, c.path, got, answer, c.want)
		}
	}
}

func TestPathIsRewritten(t *testing.T) {
	for _, c := range []struct {
		name       string
		set        Config
		prefix     string
		path, want string
	}{
		{"group", Config{Regex: "^/old/(.*)$", Replacement: "/new/$1"}, "", "/old/a/b", "/new/a/b"},
		{"named group", Config{Regex: "^/(?P<id>[0-9]+)$", Replacement: "/item/${id}x"}, "", "/42", "/item/42x"},
		{"no match", Config{Regex: "^/old", Replacement: "/new"}, "", "/other", "/other"},
		{"every match", Config{Regex: "a", Replacement: "b"}, "", "/aXa", "/bXb"},
		{"after the strip", Config{Regex: "^/v1/", Replacement: "/v2/"}, "/api", "/api/v1/x", "/v2/x"},
		{"empty rest is seen as a slash", Config{Regex: "^/$", Replacement: "/index.html"}, "/p", "/p", "/index.html"},
		{"empty rest without a match stays empty", Config{Regex: "^/x$", Replacement: "/y"}, "/p", "/p", ""},
		{"slash in front", Config{Regex: "^/old/(.*)$", Replacement: "$1"}, "", "/old/x", "/x"},
		{"nothing left", Config{Regex: "^.*$", Replacement: ""}, "", "/x", ""},
		{"prefix", Config{AddPrefix: "/app"}, "", "/x", "/app/x"},
		{"prefix with a slash", Config{AddPrefix: "/app/"}, "", "/x", "/app/x"},
		{"prefix after the strip", Config{AddPrefix: "/app"}, "/p", "/p/x", "/app/x"},
		{"prefix alone", Config{AddPrefix: "/app"}, "/p", "/p", "/app"},
		{"prefix alone with a slash", Config{AddPrefix: "/app/"}, "/p", "/p", "/app/"},
		{"prefix of the root", Config{AddPrefix: "/"}, "", "/x", "/x"},
		{"regex, then prefix", Config{Regex: "^/a", Replacement: "/b", AddPrefix: "/c"}, "", "/a", "/c/b"},
		{"result is normalised", Config{Regex: "^/(.*)x(.*)$", Replacement: "/$1.$2"}, "", "/a/.x/b", "/b"},
		{"result stays below the prefix", Config{Regex: "x", Replacement: "", AddPrefix: "/c"}, "", "/.x./.x./etc", "/c/etc"},
		{"slashes are merged", Config{Regex: "x", Replacement: "/"}, "", "/x/x", "/"},
		{"blank in the replacement is encoded", Config{Regex: "x", Replacement: "a é"}, "", "/x", "/a%20%C3%A9"},
		{"encoded slash is no slash", Config{Regex: "^/([^/]+)/", Replacement: "/$1-"}, "", "/a%2Fb/c", "/a%2Fb-c"},
		{"asterisk", Config{Regex: ".", Replacement: "x", AddPrefix: "/c"}, "", "*", "*"},
	} {
		route := server("/")
		route.Prefix = c.prefix
		if got, answer := target(compile(t, &c.set, route), c.path); got != c.want || answer != nil {
			t.Errorf("%s: %q -> %q, %v, want %q", c.name, c.path, got, answer, c.want)
		}
	}
}

func TestReplacementThatMakesNoPathIsRefused(t *testing.T) {
	for _, c := range []struct {
		set    Config
		path   string
		reason exchange.Reason
	}{
		{Config{Regex: "2F"}, "/a%2Fb", exchange.BadRequest},
		{Config{Regex: "25"}, "/a%2500", exchange.BadRequest},
		{Config{Regex: "x", Replacement: ""}, "/..x;/", exchange.BadRequest},
		{Config{Regex: "a", Replacement: strings.Repeat("$0", 500)}, "/" + strings.Repeat("a", 900), exchange.URITooLong},
		{Config{Regex: "a", Replacement: "b"}, "/" + strings.Repeat("a", 1001), exchange.URITooLong},
		{Config{Regex: "^(.*)$", Replacement: "$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1$1"}, "/" + string(make([]byte, 8<<10)), exchange.URITooLong},
	} {
		got, answer := target(compile(t, &c.set, server("/")), c.path)
		if answer == nil || answer.Reason != c.reason {
			t.Errorf("%q in %.40q: %q, %v, want %v", c.set.Regex, c.path, got, answer, c.reason)
		}
	}
}

func TestRewrittenPathIsAlwaysInItsOneForm(t *testing.T) {
	piece := rapid.SampledFrom([]string{"/", "/", "a", "x", ".", "%2F", "%25", "0", "2", "E", ";"})
	made := []Config{{Regex: "x"}, {Regex: "2"}, {Regex: "/", Replacement: "//"}, {Regex: "(.)x", Replacement: "$1.$1"}, {Regex: "a", Replacement: "..", AddPrefix: "/c"}}
	rapid.Check(t, func(t *rapid.T) {
		raw := "/"
		for _, s := range rapid.SliceOfN(piece, 0, 10).Draw(t, "path") {
			raw += s
		}
		b, err := uri.AppendNormal(nil, raw)
		if err != nil {
			return
		}
		c := rapid.SampledFrom(made).Draw(t, "settings")
		got, answer := target(compile(t, &c, server("/")), string(b))
		if answer != nil || got == "" {
			return
		}
		if again, err := uri.AppendNormal(nil, got); err != nil || string(again) != got {
			t.Fatalf("%q -> %q, whose one form is %q, %v", b, got, again, err)
		}
	})
}

func TestNothingToDoIsNothing(t *testing.T) {
	for _, c := range []struct {
		name              string
		set               *Config
		route             exchange.Route
		request, response bool
	}{
		{"root to root", nil, server("/"), false, false},
		{"strip", nil, exchange.Route{Prefix: "/p", Strip: true, Servers: []exchange.RouteServer{{Base: "/"}}}, true, true},
		{"strip onto the same path", nil, exchange.Route{Prefix: "/p", Strip: true, Servers: []exchange.RouteServer{{Base: "/p/"}}}, true, false},
		{"no strip", nil, exchange.Route{Prefix: "/p", Servers: []exchange.RouteServer{{Base: "/"}}}, false, false},
		{"own Host", nil, exchange.Route{Strip: true, Servers: []exchange.RouteServer{{Base: "/", Authority: "a:1"}}}, false, true},
		{"responses left alone", &Config{}, exchange.Route{Prefix: "/p", Strip: true, Servers: []exchange.RouteServer{{Base: "/"}}}, true, false},
	} {
		filter := compile(t, c.set, c.route)
		if (filter.Request != nil) != c.request || (filter.Response != nil) != c.response {
			t.Errorf("%s: request %v, response %v, want %v, %v", c.name, filter.Request != nil, filter.Response != nil, c.request, c.response)
		}
	}
}

func TestPlainStripAllocatesNothing(t *testing.T) {
	filter := compile(t, nil, exchange.Route{Prefix: "/p", Strip: true, Servers: []exchange.RouteServer{{Base: "/b/"}}})
	ex := exchangeFor("/p/rest")
	ex.Response.Header.Add(header.ContentType, "text/plain")
	if n := testing.AllocsPerRun(100, func() { filter.Request(ex); filter.Response(ex) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
