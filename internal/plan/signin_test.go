package plan

import (
	"slices"
	"strings"
	"testing"
)

const signIn = `
ports:
  web: {address: "0.0.0.0:8080", protocol: http}
proxies:
  members:
    virtual_hosts: [members.example.com]
    rate_limit: {requests: 1, period: 1h, key: user}
    basic_auth:
      users: [{name: ada, password_hash: "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$ksyymBktxhBPob64O6We0Q"}]
    routes:
      - servers: [{url: "http://127.0.0.1:3000"}]
      - path: /asked
        basic_auth: {enabled: false}
        forward_auth: {url: "http://127.0.0.1:9/auth", response_headers: [Remote-User]}
        servers: [{url: "http://127.0.0.1:3000"}]
      - {path: /open, basic_auth: {enabled: false}, fixed_response: {status: 204}}
`

// Explain says what sign-in would do, checks no password and counts nothing.
func TestExplainSignsNobodyIn(t *testing.T) {
	p := compile(t, signIn)
	ask := func(path string, fields ...[2]string) Explanation {
		return p.Explain(Question{Method: "GET", Scheme: "http", Authority: "members.example.com:8080", Target: path, Fields: fields})
	}
	for range 3 {
		e := ask("/", [2]string{"Authorization", "Basic YWRhOndyb25n"})
		if len(e.Servers) != 1 || strings.Contains(e.Servers[0].Head, "Authorization") {
			t.Errorf("with a password: %s", e.Text())
		}
		if !slices.ContainsFunc(e.Notes, func(n string) bool { return strings.Contains(n, "would check the password of ada") }) {
			t.Errorf("no note of the check: %q", e.Notes)
		}
	}
	want := []string{"client_ip", "request_timeout", "basic_auth", "rate_limit", "forwarded"}
	e := ask("/")
	if e.Answer == nil || e.Answer.By != "basic_auth" || e.Answer.Reason != "auth_required" || !slices.Equal(e.Filters, want) {
		t.Errorf("without a password: %+v, filters %v, want %v", e.Answer, e.Filters, want)
	}
	e = ask("/asked", [2]string{"Remote-User", "admin"})
	if len(e.Servers) != 1 || strings.Contains(e.Servers[0].Head, "admin") || !slices.ContainsFunc(e.Notes, func(n string) bool { return strings.Contains(n, "would send a subrequest to http://127.0.0.1:9/auth") }) {
		t.Errorf("with an auth server: %s", e.Text())
	}
	if e := ask("/open"); e.Answer == nil || e.Answer.Status != 204 || slices.Contains(e.Filters, "basic_auth") {
		t.Errorf("where it is off: %s", e.Text())
	}
}

// Whatever a route has acts in the one order of the documentation.
func TestEveryFeatureActsInItsTurn(t *testing.T) {
	p := compile(t, `
ports:
  web: {address: "0.0.0.0:8080", protocol: http}
  secure: {address: "0.0.0.0:8443", protocol: https}
proxies:
  all:
    client_ip: {trusted: [10.0.0.0/8]}
    ip_filter: {deny: [192.0.2.0/24]}
    redirect_http_to_https: true
    redirects: [{regex: "^/old$", target: /new}]
    request_body_limit: 1MiB
    request_timeout: 30s
    basic_auth: {users: [{name: ada, password_hash: "$argon2id$v=19$m=64,t=1,p=1$c2FsdHNhbHQ$ksyymBktxhBPob64O6We0Q"}]}
    forward_auth: {url: "http://127.0.0.1:9/auth"}
    rewrite: {add_prefix: /x}
    headers: [{direction: request, name: X-A, value: b}]
    routes:
      - {rate_limit: {requests: 1}, servers: [{url: "http://127.0.0.1:3000"}]}
      - {path: /user, rate_limit: {requests: 1, key: user}, servers: [{url: "http://127.0.0.1:3000"}]}
`)
	for path, want := range map[string]string{
		"/":     "client_ip ip_filter rate_limit redirect_http_to_https redirects request_body_limit request_timeout basic_auth forward_auth rewrite forwarded headers",
		"/user": "client_ip ip_filter redirect_http_to_https redirects request_body_limit request_timeout basic_auth forward_auth rate_limit rewrite forwarded headers",
	} {
		e := p.Explain(Question{Method: "GET", Scheme: "http", Authority: "a.example:8080", Target: path})
		if got := strings.Join(e.Filters, " "); got != want {
			t.Errorf("%s:\n got %s\nwant %s", path, got, want)
		}
	}
}
