package plan

import (
	"strings"
	"testing"

	"headgate/internal/config"
)

// problemsOf returns what is wrong with a configuration of one proxy.
func problemsOf(t *testing.T, proxy string) string {
	t.Helper()
	text := `version: 1
ports:
  web: {address: "0.0.0.0:80", protocol: http}
  websecure: {address: "0.0.0.0:443", protocol: https}
proxies:
  p:
    virtual_hosts: [shop.example.com]
` + proxy
	cfg, doc, problems := config.Load("f", []byte(text))
	if len(problems) == 0 {
		var p *Plan
		if p, problems = Compile(cfg, nil, testEnvironment(cfg), doc.Report()); p != nil {
			p.Retire(nil)
		}
	}
	var all []string
	for _, p := range problems {
		all = append(all, p.Error())
	}
	return strings.Join(all, "\n")
}

func TestRedirectsWithoutEndAreRefused(t *testing.T) {
	const fixed = "\n    routes: [{fixed_response: {status: 200}}]\n"
	for _, c := range []struct{ name, proxy, want string }{
		{"one that ends", `    redirects: [{regex: "^/old$", target: /new}]` + fixed, ""},
		{"one that grows", `    redirects: [{regex: "^/(.*)$", target: "/new/$1"}]` + fixed,
			"redirect loop: /x → /new/x → /new/new/x → /new/new/new/x → …"},
		{"two that alternate", `    redirects: [{regex: "^/a$", target: /b}, {regex: "^/b$", target: /a}]` + fixed, "redirect loop: /a → /b → /a"},
		{"once below itself", `    redirects: [{regex: "^/old", target: /old/new}]` + fixed, ""},
		{"scheme by a rule", `    redirects: [{regex: "^/", target: "https://{host}{path}"}]` + fixed, ""},
		{"back to HTTP", `    redirect_http_to_https: true
    redirects: [{regex: "^/shop$", target: "http://{host}{path}"}]` + fixed, "redirect loop"},
		{"out of the route", `    routes:
      - {fixed_response: {status: 200}}
      - path: /a
        redirects: [{regex: "^/(.*)$", target: "/b/$1"}]
        fixed_response: {status: 200}
`, ""},
		{"over two routes", `    routes:
      - {fixed_response: {status: 200}}
      - {path: /a, redirects: [{regex: "^/a/(.*)$", target: "/b/$1"}], fixed_response: {status: 200}}
      - {path: /b, redirects: [{regex: "^/b/(.*)$", target: "/a/$1"}], fixed_response: {status: 200}}
`, "redirect loop: /a/x → /b/x → /a/x"},
		{"to another site", `    redirects: [{regex: "^/(.*)$", target: "https://www.example.com/$1"}]` + fixed, ""},
		{"to another port", `    redirects: [{regex: "^/(.*)$", target: "https://{host}:9443/$1"}]` + fixed, ""},
	} {
		got := problemsOf(t, c.proxy)
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestRedirectToHTTPSNeedsAPort(t *testing.T) {
	for _, c := range []struct{ name, proxy, want string }{
		{"with one", "    redirect_http_to_https: true\n", ""},
		{"on a port without", "    ports: [web]\n    redirect_http_to_https: true\n", "redirect_http_to_https: no active port of the proxy speaks https"},
		{"behind a CDN", "    ports: [web]\n    client_ip: {cdn: [cloudflare]}\n    redirect_http_to_https: true\n", ""},
		{"switched off", "    ports: [web]\n    redirect_http_to_https: false\n", ""},
	} {
		got := problemsOf(t, c.proxy+"    routes: [{fixed_response: {status: 200}}]\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestExplainTellsWhereARequestIsSent(t *testing.T) {
	p := compile(t, `
ports:
  web: {address: "0.0.0.0:8080", protocol: http}
  websecure: {address: "0.0.0.0:8443", protocol: https}
proxies:
  p:
    redirect_http_to_https: true
    redirects: [{regex: "^/old$", target: /new}]
    headers: [{direction: request, name: X-Real-IP, value: "{client_ip}"}, {direction: response, name: X-A, value: b}]
    routes: [{servers: [{url: "http://127.0.0.1:3000"}]}]
`)
	e := p.Explain(Question{Method: "GET", Scheme: "http", Authority: "a.example:8080", Target: "/old"})
	if e.Answer == nil || e.Answer.Location != "https://a.example:8443/old" || e.Answer.By != "redirect_http_to_https" {
		t.Errorf("%+v", e.Answer)
	}
	e = p.Explain(Question{Method: "GET", Scheme: "https", Authority: "a.example:8443", Target: "/old"})
	if e.Answer == nil || e.Answer.Location != "/new" || !strings.Contains(e.Text(), "302 redirected, by redirects, to /new") {
		t.Errorf("%+v\n%s", e.Answer, e.Text())
	}
	e = p.Explain(Question{Method: "GET", Scheme: "https", Authority: "a.example:8443", Target: "/x"})
	if len(e.Servers) != 1 || !strings.Contains(e.Servers[0].Head, "\r\nX-Real-IP: 127.0.0.1\r\n") || e.Filters[0] != "response_headers" {
		t.Errorf("%+v", e)
	}
}

func TestHTTPSPortThatClientsAreSentTo(t *testing.T) {
	cfg, _, problems := config.Load("f", []byte(`version: 1
ports:
  a: {address: "0.0.0.0:80", protocol: http}
  b: {address: "0.0.0.0:8080", protocol: http}
  c: {address: "0.0.0.0:9000", protocol: http}
  d: {address: "0.0.0.0:443", protocol: https}
  e: {address: "0.0.0.0:8443", protocol: https}
  f: {address: "0.0.0.0:7443", protocol: https}
proxies:
  all: {routes: [{fixed_response: {status: 200}}]}
  some: {ports: [a, b, c, e, f], routes: [{path: /x, fixed_response: {status: 200}}]}
`))
	if problems != nil {
		t.Fatal(problems)
	}
	for proxy, want := range map[string][3]int{"all": {443, 8443, 443}, "some": {7443, 8443, 7443}} {
		for i, port := range []string{"a", "b", "c"} {
			if got := cfg.SecurePort(cfg.Proxies[proxy], cfg.Ports[port]); got != want[i] {
				t.Errorf("%s from %s: %d, want %d", proxy, port, got, want[i])
			}
		}
	}
}

func TestFileOfAPageThatCannotBeReadIsAProblem(t *testing.T) {
	for _, c := range []struct{ proxy, want string }{
		{`    error_pages: [{status: [404], body: x}, {status: [5xx], file: absent.html}]
    routes: [{fixed_response: {status: 200}}, {path: /a, fixed_response: {status: 200}}]
`, "proxies.p.error_pages[1].file: read absent.html: no such file"},
		{`    routes: [{fixed_response: {status: 200}, maintenance: {file: absent.html}}]
`, "proxies.p.routes[0].maintenance.file: read absent.html: no such file"},
	} {
		if got := problemsOf(t, c.proxy); !strings.Contains(got, c.want) || strings.Count(got, "\n") > 0 {
			t.Errorf("%q, want %q once", got, c.want)
		}
	}
}
