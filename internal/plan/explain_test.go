package plan

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// stateWithKey returns a state directory with a known key of sticky cookies.
func stateWithKey(t *testing.T) string {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "affinity.key"), []byte(strings.Repeat("00", 32)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestExplainSaysWhoWonAndWhy(t *testing.T) {
	text := strings.Replace(explained, `"~^shop[.]"`, `"~^shop[.].*$"`, 1)
	p := compileIn(t, text, House{StateDir: stateWithKey(t), Rehearsal: true})
	browser := [][2]string{{"Accept", "*/*"}, {"X-Forwarded-For", "10.0.0.1"}, {"Connection", "x-secret"}, {"X-Secret", "1"}}
	from := netip.MustParseAddr("2001:db8::7")
	for _, c := range []struct {
		name string
		q    Question
	}{
		{"route", Question{"GET", "http", "Shop.example.com:8080", "/api//v1/./x?q=1", browser, from}},
		{"upload", Question{"POST", "http", "shop.example.com:8080", "/x", [][2]string{{"Content-Length", "5"}, {"Expect", "100-continue"}}, from}},
		{"upgrade", Question{"GET", "http", "a.shop.example.com:8080", "/ws", [][2]string{{"Connection", "Upgrade"}, {"Upgrade", "websocket"}}, from}},
		{"fixed", Question{"GET", "http", "shop.example.com:8080", "/gone/x", nil, from}},
		{"too-large", Question{"POST", "http", "shop.example.com:8080", "/api", [][2]string{{"Content-Length", "2000000"}}, from}},
		{"bad-rewrite", Question{"GET", "http", "shop.example.com:8080", "/cut/a%2Fb", nil, from}},
		{"regex", Question{"GET", "http", "other.example.com:8080", "/api/v1/x", nil, from}},
		{"no-route", Question{"GET", "http", "other.example.com:8080", "/x", nil, from}},
		{"inner", Question{"GET", "http", "shop.example.com:8081", "/api/v1", nil, from}},
		{"upstream-host", Question{"GET", "http", "host.example.com:8080", "/", nil, netip.Addr{}}},
		{"behind-proxy", Question{"GET", "http", "behind.example.com:8080", "/", [][2]string{{"X-Forwarded-For", "6.6.6.6, 198.51.100.7"}, {"X-Forwarded-Proto", "https"}}, from}},
		{"denied", Question{"GET", "http", "behind.example.com:8080", "/", nil, from}},
		{"default-port", Question{"GET", "http", "nobody.example.com", "/api/v1/x", nil, from}},
		{"no-port", Question{"GET", "http", "shop.example.com:9999", "/", nil, from}},
		{"no-https", Question{"GET", "https", "shop.example.com", "/", nil, from}},
		{"bad-path", Question{"GET", "http", "shop.example.com:8080", "/..;/x", nil, from}},
		{"bad-host", Question{"GET", "http", "shop_example,com:8080", "/", nil, from}},
		{"bad-field", Question{"GET", "http", "shop.example.com:8080", "/", [][2]string{{"A B", "c"}}, from}},
		{"injected-field", Question{"GET", "http", "shop.example.com:8080", "/", [][2]string{{"A", "b\r\n\r\nGET / HTTP/1.1"}}, from}},
		{"hashed", Question{"GET", "http", "hashed.example.com:8080", "/a", nil, from}},
		{"sticky", Question{"GET", "http", "pinned.example.com:8080", "/", [][2]string{{"Cookie", "a=1; sid=" + pinnedTo3001}}, from}},
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
