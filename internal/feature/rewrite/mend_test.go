package rewrite

import (
	"slices"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// mended returns what the client gets of a field.
func mended(t *testing.T, c *Config, route exchange.Route, id header.ID, value string) string {
	filter := compile(t, c, copied(route))
	if filter.Response == nil {
		return value
	}
	ex := exchangeFor("/")
	ex.Server = route.Servers[0].URL
	ex.Response.Header.Add(id, value)
	filter.Response(ex)
	return ex.Response.Header.Get(id)
}

// copied returns a route that Compile may take over.
func copied(route exchange.Route) exchange.Route {
	route.Servers = slices.Clone(route.Servers)
	return route
}

func TestLocationHoldsForTheClient(t *testing.T) {
	on := &Config{RewriteResponse: true}
	prefixed := &Config{RewriteResponse: true, AddPrefix: "/app/"}
	for _, c := range []struct {
		name         string
		set          *Config
		prefix, base string
		value, want  string
	}{
		{"stripped", on, "/p", "/", "/login", "/p/login"},
		{"without a rewrite", nil, "/p", "/", "/login", "/p/login"},
		{"root", on, "/p", "/", "/", "/p/"},
		{"query and fragment", on, "/p", "/", "/a?next=/b#/c", "/p/a?next=/b#/c"},
		{"base path", on, "/p", "/b/", "/b/login", "/p/login"},
		{"base path alone", on, "/p", "/b/", "/b", "/p"},
		{"outside of the base path", on, "/p", "/b/", "/login", "/login"},
		{"not a whole segment", on, "/p", "/b/", "/bx", "/bx"},
		{"base path to root", on, "", "/b/", "/b/login", "/login"},
		{"base path alone to root", on, "", "/b", "/b", "/"},
		{"added prefix", prefixed, "/p", "/", "/app/login", "/p/login"},
		{"base path and added prefix", prefixed, "", "/b", "/b/app/login?x", "/login?x"},
		{"server knows of the prefix", on, "/p", "/", "/p/login", "/p/login"},
		{"server knows, at the prefix", on, "/p", "/", "/p", "/p"},
		{"same authority", on, "/p", "/", "http://shop.example/login", "http://shop.example/p/login"},
		{"same authority, other case and port", on, "/p", "/", "http://Shop.Example:80/login", "http://Shop.Example:80/p/login"},
		{"same authority, to https", on, "/p", "/", "https://shop.example/login", "https://shop.example/p/login"},
		{"same authority, no path", on, "/p", "/", "http://shop.example?x", "http://shop.example/p/?x"},
		{"network path", on, "/p", "/", "//shop.example/login", "//shop.example/p/login"},
		{"other authority", on, "/p", "/", "http://other.example/login", "http://other.example/login"},
		{"other port", on, "/p", "/", "http://shop.example:8080/login", "http://shop.example:8080/login"},
		{"user information", on, "/p", "/", "http://shop.example@evil.example/", "http://shop.example@evil.example/"},
		{"relative", on, "/p", "/", "login", "login"},
		{"relative with a URL in it", on, "/p", "/", "login?to=http://shop.example/", "login?to=http://shop.example/"},
		{"parent", on, "/p", "/", "../login", "../login"},
		{"query alone", on, "/p", "/", "?x=1", "?x=1"},
		{"empty", on, "/p", "/", "", ""},
		{"other scheme", on, "/p", "/", "mailto:a@shop.example", "mailto:a@shop.example"},
		{"custom scheme", on, "/p", "/", "myapp://shop.example/done", "myapp://shop.example/done"},
		{"no way to another host", on, "", "/b", "/b//evil.example", "/evil.example"},
		{"no way to another host by a backslash", on, "", "/b", "/b/\\evil.example", "/evil.example"},
		{"switched off", &Config{}, "/p", "/", "/login", "/login"},
	} {
		route := server(c.base)
		route.Prefix = c.prefix
		for _, id := range []header.ID{header.Location, header.ContentLocation} {
			if got := mended(t, c.set, route, id, c.value); got != c.want {
				t.Errorf("%s: %v %q -> %q, want %q", c.name, id, c.value, got, c.want)
			}
		}
	}
}

func TestServersOwnAddressIsHidden(t *testing.T) {
	route := exchange.Route{Prefix: "/p", Strip: true, Servers: []exchange.RouteServer{{URL: "u", Authority: "127.0.0.1:3000", Base: "/b"}}}
	for value, want := range map[string]string{
		"http://127.0.0.1:3000/b/login?x": "http://shop.example/p/login?x",
		"http://127.0.0.1:3000/other":     "http://shop.example/other",
		"http://127.0.0.1:3001/b/login":   "http://127.0.0.1:3001/b/login",
		"http://shop.example/b/login":     "http://shop.example/p/login",
	} {
		if got := mended(t, nil, route, header.Location, value); got != want {
			t.Errorf("%q -> %q, want %q", value, got, want)
		}
	}
}

func TestCookiePathHoldsForTheClient(t *testing.T) {
	for _, c := range []struct{ name, prefix, base, value, want string }{
		{"root", "/p", "/", "a=b; Path=/", "a=b; Path=/p"},
		{"below", "/p", "/", "a=b; path=/x/; HttpOnly", "a=b; path=/p/x/; HttpOnly"},
		{"base path", "/p", "/b/", "a=b; Path=/b/x; Secure", "a=b; Path=/p/x; Secure"},
		{"base path with a slash", "/p", "/b/", "a=b;Path=/b/", "a=b;Path=/p"},
		{"base path to root", "", "/b", "a=b; Path=/b", "a=b; Path=/"},
		{"blanks", "/p", "/", "a=b;  PATH = /x ;Secure", "a=b;  PATH =/p/x;Secure"},
		{"server knows of the prefix", "/p", "/", "a=b; Path=/p", "a=b; Path=/p"},
		{"outside of the base path", "/p", "/b", "a=b; Path=/", "a=b; Path=/"},
		{"no path", "/p", "/", "a=b; HttpOnly", "a=b; HttpOnly"},
		{"path in the value", "/p", "/", "Path=/; Secure", "Path=/; Secure"},
		{"empty path", "/p", "/", "a=b; Path=; Secure", "a=b; Path=; Secure"},
		{"no value", "/p", "/", "a=b; Path", "a=b; Path"},
		{"two paths", "/p", "/", "a=b; Path=/x; Path=/y", "a=b; Path=/p/x; Path=/p/y"},
		{"same on both sides", "/p", "/p", "a=b; Path=/", "a=b; Path=/"},
		{"semicolon at the end", "/p", "/", "a=b; Path=/;", "a=b; Path=/p;"},
	} {
		route := server(c.base)
		route.Prefix = c.prefix
		if got := mended(t, nil, route, header.SetCookie, c.value); got != c.want {
			t.Errorf("%s: %q -> %q, want %q", c.name, c.value, got, c.want)
		}
	}
}

func TestOwnAnswersAreNotMended(t *testing.T) {
	route := server("/b")
	filter := compile(t, nil, route)
	ex := exchangeFor("/")
	ex.Server = route.Servers[0].URL
	ex.Response.Ours = true
	ex.Response.Header.Add(header.Location, "/b/x")
	filter.Response(ex)
	if got := ex.Response.Header.Get(header.Location); got != "/b/x" {
		t.Errorf("Location of our own answer became %q", got)
	}
}

func TestMendedPathLeadsBack(t *testing.T) {
	// What a client asks for after a redirect reaches the path that the server
	// named.
	set := &Config{RewriteResponse: true, AddPrefix: "/app"}
	for _, prefix := range []string{"", "/p", "/p/q"} {
		for _, base := range []string{"/", "/b", "/b/c/"} {
			route := server(base)
			route.Prefix = prefix
			filter := compile(t, set, copied(route))
			for _, rest := range []string{"/x", "/x/y/", "/"} {
				below := trimmed(base) + "/app" + rest
				at := mended(t, set, route, header.Location, below)
				ex := exchangeFor(at)
				if answer := filter.Request(ex); answer != nil {
					t.Fatal(answer)
				}
				if got := trimmed(base) + ex.Request.Target; got != below && got+"/" != below {
					t.Errorf("prefix %q, base %q: %q came to the client as %q and back as %q", prefix, base, below, at, got)
				}
			}
		}
	}
}

func trimmed(base string) string {
	if n := len(base); n > 0 && base[n-1] == '/' {
		return base[:n-1]
	}
	return base
}

func TestAnswersOfTheRoomHaveReasons(t *testing.T) {
	_, answer := target(compile(t, &Config{Regex: "2F"}, server("/")), "/%2F")
	if answer == nil || answer.Reason != exchange.BadRequest || answer.Cause == "" {
		t.Errorf("answer %+v, want bad_request with a cause", answer)
	}
}
