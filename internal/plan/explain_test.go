package plan

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/plan/inputs"
	"headgate/internal/store"
	"headgate/internal/store/memory"
)

var update = flag.Bool("update", false, "write the golden files anew")

const explained = `
ports:
  web: {address: "0.0.0.0:8080", protocol: http}
  inner: {address: "127.0.0.1:8081", protocol: http}
proxies:
  shop:
    virtual_hosts: [shop.example.com, "*.shop.example.com"]
    request_timeout: 30s
    routes:
      - path: /api
        request_body_limit: 1MiB
        rewrite: {regex: "^/v1/", replacement: "/v2/"}
        servers:
          - {url: "http://127.0.0.1:3000/base/", weight: 3}
          - {url: "http://127.0.0.1:3001/base/"}
      - {path: /gone, fixed_response: {status: 410}}
      - {path: /cut, rewrite: {regex: "2F"}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {servers: [{url: "http://127.0.0.1:3000"}]}
  patterns:
    virtual_hosts: ["~^shop[.]", "~^(shop|other)[.]example[.]com$"]
    routes: [{path: /api/v1, fixed_response: {status: 204}}]
  inside:
    virtual_hosts: [shop.example.com]
    ports: [inner]
    routes: [{path: /api/v1, fixed_response: {status: 204}}]
  asleep:
    virtual_hosts: [shop.example.com]
    active: false
    routes: [{path: /api, fixed_response: {status: 204}}]
  upstream-host:
    virtual_hosts: [host.example.com]
    host_header: upstream
    routes: [{servers: [{url: "http://[::1]:3000"}]}]
  behind:
    virtual_hosts: [behind.example.com]
    client_ip: {trusted: ["2001:db8::/32"]}
    ip_filter: {allow: [198.51.100.0/24]}
    rate_limit: {requests: 1, period: 1h}
    routes: [{servers: [{url: "http://127.0.0.1:3000"}]}]
  pinned:
    virtual_hosts: [pinned.example.com]
    routes:
      - servers: [{url: "http://127.0.0.1:3000"}, {url: "http://127.0.0.1:3001", weight: 0}]
        sticky_cookie: {name: sid}
        retry: {on: [reset, 503]}
  hashed:
    virtual_hosts: [hashed.example.com]
    routes:
      - servers: [{url: "http://127.0.0.1:3000"}, {url: "http://127.0.0.1:3001"}, {url: "http://127.0.0.1:3009", backup: true}]
        load_balancing: hash:path
  default:
    routes: [{path: /api/v1/x, fixed_response: {status: 204}}]
`

// pinnedTo3001 is the sticky cookie of the second server of proxy pinned, under
// the key of stateWithKey.
const pinnedTo3001 = "WA6kI9vq3YUkbwU_z2zZFQ"

// stateWithKey returns values with a known key of sticky cookies.
func stateWithKey(t *testing.T) store.Values {
	values := store.ValuesOf(memory.New())
	if err := values.Keep(store.KeySticky, []byte(strings.Repeat("00", 32)+"\n")); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestExplainSaysWhoWonAndWhy(t *testing.T) {
	text := strings.Replace(explained, `"~^shop[.]"`, `"~^shop[.].*$"`, 1)
	set := inputs.NewLoader(inputs.Options{Values: stateWithKey(t)}).Prepare(load(t, text), "")
	p := compileIn(t, text, House{Inputs: set})
	browser := [][2]string{{"Accept", "*/*"}, {"X-Forwarded-For", "10.0.0.1"}, {"Connection", "x-secret"}, {"X-Secret", "1"}}
	from := netip.MustParseAddr("2001:db8::7")
	for _, c := range []struct {
		name string
		q    Question
	}{
		{"route", Question{Method: "GET", Scheme: "http", Authority: "Shop.example.com:8080", Target: "/api//v1/./x?q=1", Fields: browser, From: from}},
		{"upload", Question{Method: "POST", Scheme: "http", Authority: "shop.example.com:8080", Target: "/x", Fields: [][2]string{{"Content-Length", "5"}, {"Expect", "100-continue"}}, From: from}},
		{"upgrade", Question{Method: "GET", Scheme: "http", Authority: "a.shop.example.com:8080", Target: "/ws", Fields: [][2]string{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}}, From: from}},
		{"fixed", Question{Method: "GET", Scheme: "http", Authority: "shop.example.com:8080", Target: "/gone/x", From: from}},
		{"too-large", Question{Method: "POST", Scheme: "http", Authority: "shop.example.com:8080", Target: "/api", Fields: [][2]string{{"Content-Length", "2000000"}}, From: from}},
		{"bad-rewrite", Question{Method: "GET", Scheme: "http", Authority: "shop.example.com:8080", Target: "/cut/a%2Fb", From: from}},
		{"regex", Question{Method: "GET", Scheme: "http", Authority: "other.example.com:8080", Target: "/api/v1/x", From: from}},
		{"no-route", Question{Method: "GET", Scheme: "http", Authority: "other.example.com:8080", Target: "/x", From: from}},
		{"inner", Question{Method: "GET", Scheme: "http", Authority: "shop.example.com:8081", Target: "/api/v1", From: from}},
		{"upstream-host", Question{Method: "GET", Scheme: "http", Authority: "host.example.com:8080", Target: "/"}},
		{"behind-proxy", Question{Method: "GET", Scheme: "http", Authority: "behind.example.com:8080", Target: "/", Fields: [][2]string{{"X-Forwarded-For", "6.6.6.6, 198.51.100.7"}, {"X-Forwarded-Proto", "https"}}, From: from}},
		{"denied", Question{Method: "GET", Scheme: "http", Authority: "behind.example.com:8080", Target: "/", From: from}},
		{"default-port", Question{Method: "GET", Scheme: "http", Authority: "nobody.example.com", Target: "/api/v1/x", From: from}},
		{"no-port", Question{Method: "GET", Scheme: "http", Authority: "shop.example.com:9999", Target: "/", From: from}},
		{"no-https", Question{Method: "GET", Scheme: "https", Authority: "shop.example.com", Target: "/", From: from}},
		{"bad-path", Question{Method: "GET", Scheme: "http", Authority: "shop.example.com:8080", Target: "/..;/x", From: from}},
		{"bad-host", Question{Method: "GET", Scheme: "http", Authority: "shop_example,com:8080", Target: "/", From: from}},
		{"bad-field", Question{Method: "GET", Scheme: "http", Authority: "shop.example.com:8080", Target: "/", Fields: [][2]string{{"A B", "c"}}, From: from}},
		{"injected-field", Question{Method: "GET", Scheme: "http", Authority: "shop.example.com:8080", Target: "/", Fields: [][2]string{{"A", "b\r\n\r\nGET / HTTP/1.1"}}, From: from}},
		{"hashed", Question{Method: "GET", Scheme: "http", Authority: "hashed.example.com:8080", Target: "/a", From: from}},
		{"sticky", Question{Method: "GET", Scheme: "http", Authority: "pinned.example.com:8080", Target: "/", Fields: [][2]string{{"Cookie", "a=1; sid=" + pinnedTo3001}}, From: from}},
	} {
		e := p.Explain(c.q)
		got := c.q.Method + " " + c.q.Scheme + "://" + c.q.Authority + c.q.Target + "\n\n" + e.Text()
		file := filepath.Join("testdata", "explain", c.name+".golden")
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s (%v):\n got %s\nwant %s", c.name, err, got, want)
		}
	}
}

func TestExplainHintsAtANearHost(t *testing.T) {
	p := compile(t, "proxies:\n"+named("a", "shop.example.com", "/"))
	e := p.Explain(Question{Method: "GET", Scheme: "http", Authority: "shpo.example.com:8080", Target: "/"})
	if !strings.Contains(e.Text(), `did you mean "shop.example.com"?`) {
		t.Errorf("no hint:\n%s", e.Text())
	}
}
