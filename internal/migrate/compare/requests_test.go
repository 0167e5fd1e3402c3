package compare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"headgate/internal/config"
)

func TestListsAndLogs(t *testing.T) {
	for _, c := range []struct{ line, host, want string }{
		{"https://a.test/x?y#z", "", "GET https://a.test/x?y"},
		{"http://a.test:8080?y", "", "GET http://a.test:8080/?y"},
		{"HEAD https://a.test/%2F//x", "", "HEAD https://a.test/%2F//x"},
		{`{"method":"GET","scheme":"http","host":"a.test","path":"/p","query":"q=1"}`, "", "GET http://a.test/p?q=1"},
		{`{"level":"info","request":{"method":"GET","host":"a.test","uri":"/p?q","tls":{"version":772}}}`, "", "GET https://a.test/p?q"},
		{`{"RequestMethod":"GET","RequestHost":"a.test","RequestPath":"/p?q","RequestScheme":"http"}`, "", "GET http://a.test/p?q"},
		{`192.0.2.1 - - [22/Nov/2026:10:00:00 +0000] "GET /p?q HTTP/1.1" 200 5 "-" "curl"`, "a.test", "GET https://a.test/p?q"},
		{`a.test:80 192.0.2.1 - - [22/Nov/2026:10:00:00 +0000] "GET /p HTTP/1.1" 200 5 "-" "curl"`, "", "GET http://a.test/p"},
		{`192.0.2.1 - - [22/Nov/2026:10:00:00 +0000] "GET /p HTTP/1.1" 200 5 "-" "curl"`, "", ""},
		{`192.0.2.1 - - [22/Nov/2026:10:00:00 +0000] "\x16\x03\x01" 400 0 "-" "-"`, "a.test", ""},
		{"ftp://a.test/", "", ""},
		{"https://user:secret@a.test/", "", ""},
		{"{", "", ""},
		{"# a comment", "", "none"},
		{"", "", "none"},
	} {
		requests, notes, err := FromList(strings.NewReader(c.line), c.host, 10, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(requests) == 1 {
			got = requests[0].Method + " " + requests[0].URL()
		} else if len(notes) == 0 {
			got = "none"
		}
		if got != c.want {
			t.Errorf("%s: got %q %q, want %q", c.line, got, notes, c.want)
		}
	}
}

// Twice the same is sent once; more than asked for are spread over the list.
func TestListsAreBounded(t *testing.T) {
	var list strings.Builder
	for i := range 100 {
		fmt.Fprintf(&list, "http://a.test/%d\nhttp://a.test/%d\n", i, i)
	}
	requests, _, err := FromList(strings.NewReader(list.String()), "", 4, func(Request) string { return "p" })
	if err != nil || len(requests) != 4 || requests[3].Target != "/75" || requests[0].Proxy != "p" {
		t.Errorf("%+v %v", requests, err)
	}
	long, notes, err := FromList(strings.NewReader(strings.Repeat("x", 3*maxLine)+"\nhttp://a.example/\nhttp://b.example/"+strings.Repeat("y", maxLine)), "", 4, nil)
	if err != nil || len(long) != 1 || len(notes) != 1 || !strings.Contains(notes[0], "2 lines were left out, the first is line 1") {
		t.Errorf("lines that are too long: %v, %q, %v", long, notes, err)
	}
}

const shop = `
version: 1
ports:
  web: {address: "127.0.0.1:8080", protocol: http}
  websecure: {address: "127.0.0.1:8443", protocol: https}
proxies:
  shop:
    virtual_hosts: [shop.example.com, "*.shop.example.com", "~^x[0-9]$"]
    ports: [web]
    client_ip: {cdn: [fastly]}
    routes:
      - path: /api
        servers: [{url: "http://127.0.0.1:1"}]
      - fixed_response: {status: 200}
  rest:
    routes: [{fixed_response: {status: 404}}]
`

func loadShop(t *testing.T) *config.Config {
	c, _, problems := config.Load("headgate.yaml", []byte(shop))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}

func TestRequestsFromRoutes(t *testing.T) {
	c := loadShop(t)
	requests, notes := FromRoutes(c)
	if len(requests) != 12 || len(notes) != 2 {
		t.Fatalf("%d requests, notes %q\n%v", len(requests), notes, requests)
	}
	for _, rq := range requests {
		if rq.Scheme != "http" || rq.Proxy != "shop" || ProxyOf(c)(rq) != "shop" {
			t.Errorf("%+v", rq)
		}
	}
	for host, want := range map[string]string{"SHOP.example.com.:80": "shop", "a.shop.example.com": "shop", "a.b.shop.example.com": "rest", "x7": "shop", "else": "rest"} {
		if got := ProxyOf(c)(Request{Host: host}); got != want {
			t.Errorf("%s: got %q, want %q", host, got, want)
		}
	}
}

// Hosts that are expressions are asked for within the domains that an operator names.
func TestDomainsGiveHostsToExpressions(t *testing.T) {
	c, _, problems := config.Load("headgate.yaml", []byte(`
version: 1
ports:
  web: {address: "127.0.0.1:8080", protocol: http}
proxies:
  app: {virtual_hosts: ['~^app\..+$'], routes: [{fixed_response: {status: 200}}]}
  either: {virtual_hosts: ['~^(?:cloud|files)\.(.*)$'], routes: [{fixed_response: {status: 200}}]}
  maybe: {virtual_hosts: ['~^(www\.)?example\.org$'], routes: [{fixed_response: {status: 200}}]}
  narrow: {virtual_hosts: ['~^app\.other\.test$'], routes: [{fixed_response: {status: 200}}]}
  taken: {virtual_hosts: [cloud.example.com], routes: [{fixed_response: {status: 200}}]}
  rest: {routes: [{fixed_response: {status: 404}}]}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	requests, notes := FromRoutes(c, "example.com", "example.org")
	got := map[string]bool{}
	for _, rq := range requests {
		if got[rq.Proxy+" "+rq.Host] = true; ProxyOf(c)(rq) != rq.Proxy {
			t.Errorf("%+v is not of its proxy", rq)
		}
	}
	want := []string{"app app.example.com", "app app.example.org", "either cloud.example.org", "either files.example.com", "either files.example.org",
		"maybe example.org", "maybe www.example.org", "rest example.com", "taken cloud.example.com"}
	if all := slices.Sorted(maps.Keys(got)); !slices.Equal(all, want) {
		t.Errorf("got %q\nwant %q", all, want)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "proxy narrow") || !strings.Contains(notes[0], "--domain") {
		t.Errorf("notes %q", notes)
	}
}

func TestDomainsAreNames(t *testing.T) {
	for _, domain := range []string{"", "a b", "https://example.com", ".example.com", "example.com.", "a..b", "*.example.com", "example.com:80", strings.Repeat("x", 254)} {
		if CheckDomain(domain) == nil {
			t.Errorf("%q is accepted", domain)
		}
	}
	if err := CheckDomain("xn--bcher-kva.example.com"); err != nil {
		t.Error(err)
	}
}

// addresses is a resolver.
type addresses map[string]string

func (a addresses) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a[host] == "" {
		return nil, errors.New("no such host")
	}
	return []netip.Addr{netip.MustParseAddr(a[host])}, nil
}

// Step 7 of a test side by side: behind a CDN, client_ip names it before anything is
// compared.
func TestHostsBehindACDNThatNobodyBelievesAreTold(t *testing.T) {
	c := loadShop(t)
	for at, want := range map[string]string{"104.16.0.1": "cloudflare", "151.101.0.1": "", "192.0.2.1": "", "": ""} {
		notes := CheckCDN(t.Context(), c, addresses{"shop.example.com": at}, nil)
		if (len(notes) == 0) != (want == "") || want != "" && !strings.Contains(notes[0], "client_ip: {cdn: ["+want+"]}") {
			t.Errorf("%s: %q", at, notes)
		}
	}
	if notes := CheckCDN(t.Context(), c, addresses{"shop.example.com": "104.16.0.1"}, map[string]bool{"rest": true}); len(notes) != 0 {
		t.Errorf("%q", notes)
	}
}

func FuzzReadLine(f *testing.F) {
	for _, line := range []string{"https://a.test/x", `{"host":"a","path":"/"}`, `a.test:80 1.2.3.4 - - [x] "GET / HTTP/1.1" 200`} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		if rq, ok := readLine(line, "a.test"); ok {
			if _, err := build(t.Context(), rq); err != nil && !strings.Contains(err.Error(), "invalid") {
				t.Errorf("%q: %v", line, err)
			}
		}
	})
}

// TestReportWithoutNotes: a list of the report is never null.
func TestReportWithoutNotes(t *testing.T) {
	var r Report
	r.finish(nil)
	r.Note()
	if r.Notes == nil || r.Proxies == nil {
		t.Errorf("notes are %#v, proxies %#v", r.Notes, r.Proxies)
	}
	r.Note("second")
	r.Note("first")
	if len(r.Notes) != 2 || r.Notes[0] != "first" {
		t.Errorf("notes are %q", r.Notes)
	}
}
