package plan

import (
	"fmt"
	"strings"
	"testing"
)

// requestLine returns the first line that the first server gets.
func requestLine(t *testing.T, p *Plan, method, target string) string {
	t.Helper()
	e := p.Explain(Question{Method: method, Scheme: "http", Authority: "shop.example:8080", Target: target})
	if len(e.Servers) == 0 {
		return e.Text()
	}
	line, _, _ := strings.Cut(e.Servers[0].Head, "\r\n")
	return line
}

// The path mapping rules of the seed, byte for byte.
func TestPathMapping(t *testing.T) {
	for _, c := range []struct {
		rule, route, base, more string
		target, want            string
	}{
		{"base path takes the place of the route's path", "/p", "/b/", "", "/p/rest", "/b/rest"},
		{"base path without a slash", "/p", "/b", "", "/p/rest", "/b/rest"},
		{"deep rest", "/p", "/b/", "", "/p/r/e/s/t/", "/b/r/e/s/t/"},
		{"no base path", "/p", "", "", "/p/rest", "/rest"},
		{"root base path", "/p", "/", "", "/p/rest", "/rest"},
		{"long paths", "/p/q", "/b/c/", "", "/p/q/rest", "/b/c/rest"},
		{"nothing left, base path as written", "/p", "/b/", "", "/p", "/b/"},
		{"nothing left, base path without a slash", "/p", "/b", "", "/p", "/b"},
		{"nothing left, no base path", "/p", "", "", "/p", "/"},
		{"a slash left", "/p", "/b/", "", "/p/", "/b/"},
		{"a slash left, base path without a slash", "/p", "/b", "", "/p/", "/b/"},
		{"a slash left, no base path", "/p", "", "", "/p/", "/"},
		{"strip_prefix false", "/p", "", "strip_prefix: false", "/p/rest", "/p/rest"},
		{"strip_prefix false, nothing behind", "/p", "", "strip_prefix: false", "/p", "/p"},
		{"strip_prefix false, base path in front", "/p", "/b/", "strip_prefix: false", "/p/rest", "/b/p/rest"},
		{"query is kept", "/p", "/b/", "", "/p/rest?a=1&b=%2f&c", "/b/rest?a=1&b=%2f&c"},
		{"query is kept without strip", "/p", "", "strip_prefix: false", "/p/rest?a=//../b", "/p/rest?a=//../b"},
		{"query is kept where nothing is left", "/p", "/b", "", "/p?q", "/b?q"},
		{"bare question mark is kept", "/p", "/b/", "", "/p/rest?", "/b/rest?"},
		{"second question mark is kept", "/p", "/b/", "", "/p/rest?a?b", "/b/rest?a?b"},
		{"slash at the end of the route's path", "/p/", "/b/", "", "/p/rest", "/b/rest"},
		{"route for all paths", "/", "", "", "/rest", "/rest"},
		{"route for all paths, base path", "/", "/b/", "", "/rest", "/b/rest"},
		{"route for all paths, its root", "/", "/b", "", "/", "/b"},
		{"route for all paths, its root, slash", "/", "/b/", "", "/", "/b/"},
		{"add_prefix", "/p", "/b/", "rewrite: {add_prefix: /a}", "/p/rest", "/b/a/rest"},
		{"add_prefix alone", "/p", "/b/", "rewrite: {add_prefix: /a/}", "/p", "/b/a/"},
		{"regex", "/p", "/b/", "rewrite: {regex: '^/old/(.*)$', replacement: '/new/$1'}", "/p/old/x?q", "/b/new/x?q"},
		{"regex and add_prefix", "/p", "/b/", "rewrite: {regex: '^/(?P<n>[0-9]+)$', replacement: '/${n}.html', add_prefix: /a}", "/p/42", "/b/a/42.html"},
		{"what was matched is sent", "/p", "/b/", "", "/x/..//%70/./a%2fb/%7e", "/b/a%2Fb/~"},
		{"encoded slash is not a separator", "/p", "/b/", "", "/p/..%2f..%5c", "/b/..%2F..%5C"},
		{"dot segments stay below the base path", "/p", "/b/", "", "/p/a/../../p/../p/x", "/b/x"},
		{"nothing is decoded twice", "/p", "/b/", "", "/p/%252e%252e/x", "/b/%252e%252e/x"},
	} {
		yaml := fmt.Sprintf("proxies:\n  shop:\n    routes:\n      - path: %s\n        servers: [{url: \"http://127.0.0.1:3000%s\"}]\n", c.route, c.base)
		if c.more != "" {
			yaml += "        " + c.more + "\n"
		}
		p := compile(t, yaml)
		if got, want := requestLine(t, p, "GET", c.target), "GET "+c.want+" HTTP/1.1"; got != want {
			t.Errorf("%s: %s\n got %s\nwant %s", c.rule, c.target, got, want)
		}
	}
}

func TestOptionsForTheServerAsAWhole(t *testing.T) {
	p := compile(t, "proxies:\n  shop:\n    routes:\n      - servers: [{url: \"http://127.0.0.1:3000/b/\"}]\n      - {path: /x, fixed_response: {status: 204}}\n")
	if got := requestLine(t, p, "OPTIONS", "*"); got != "OPTIONS * HTTP/1.1" {
		t.Errorf("got %s", got)
	}
	if s := request(compile(t, "proxies:\n"+named("a", "", "/x")).Port("web"), "OPTIONS", "h", "*"); s.status != 404 {
		t.Errorf("without a route for all paths: %d, want 404", s.status)
	}
}

func TestPathThatIsNoneIsRefused(t *testing.T) {
	port := compile(t, "proxies:\n"+named("a", "", "/")).Port("web")
	for _, target := range []string{"/a\\b", "/%", "/%00", "/%0c", "/%zz", "/..;/a", "/a\x01", "/\xff", "*", "a", ""} {
		if s := request(port, "GET", "h", target); s.status != 400 || s.reason.String() != "bad_request" {
			t.Errorf("%q: %d %v, want 400 bad_request", target, s.status, s.reason)
		}
	}
}
