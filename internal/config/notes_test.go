package config

import (
	"fmt"
	"strings"
	"testing"
)

func TestPasswordsOverPlainHTTPAreNoted(t *testing.T) {
	const users = `{users: [{name: a, password_hash: "$2y$04$TQo2idYYxatW7B9EaROH8OIaoXMp3r89FD0Nxv8uT2SPbJeG/4Uga"}]}`
	for _, c := range []struct {
		name, ports, proxy, routes, want string
	}{
		{"proxy", `web: {address: "0.0.0.0:80", protocol: http}`, "basic_auth: " + users, "[{fixed_response: {status: 200}}]", "[proxies.p.basic_auth]"},
		{"route", `web: {address: "0.0.0.0:80", protocol: http}`, "active: true", "[{fixed_response: {status: 200}}, {path: /a, basic_auth: " + users + ", fixed_response: {status: 200}}]", "[proxies.p.routes[1].basic_auth]"},
		{"off on the only route", `web: {address: "0.0.0.0:80", protocol: http}`, "basic_auth: " + users, "[{basic_auth: {enabled: false}, fixed_response: {status: 200}}]", "[]"},
		{"loopback", `web: {address: "127.0.0.1:80", protocol: http}`, "basic_auth: " + users, "[{fixed_response: {status: 200}}]", "[]"},
		{"not active", `web: {address: "0.0.0.0:80", protocol: http, active: false}`, "basic_auth: " + users, "[{fixed_response: {status: 200}}]", "[]"},
		{"https only", `web: {address: "0.0.0.0:443", protocol: https}`, "basic_auth: " + users, "[{fixed_response: {status: 200}}]", "[]"},
		{"redirect", `web: {address: "0.0.0.0:80", protocol: http}, secure: {address: "0.0.0.0:443", protocol: https}`, "{redirect_http_to_https: true, basic_auth: " + users, "[{fixed_response: {status: 200}}]}", "[]"},
		{"TLS in front", `web: {address: "0.0.0.0:80", protocol: http}`, "{client_ip: {trusted: [10.0.0.1]}, basic_auth: " + users, "[{fixed_response: {status: 200}}]}", "[]"},
	} {
		proxy := "{" + c.proxy + ", routes: " + c.routes + "}"
		if c.proxy[0] == '{' {
			proxy = c.proxy + ", routes: " + c.routes
		}
		_, doc, problems := Load("f", []byte(fmt.Sprintf("version: 1\nports: {%s}\nproxies: {p: %s}\n", c.ports, proxy)))
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.name, problems)
			continue
		}
		fields := []string{}
		for _, n := range doc.Notes() {
			fields = append(fields, n.Field)
		}
		if got := fmt.Sprint(fields); got != c.want {
			t.Errorf("%s: notes on %s, want %s", c.name, got, c.want)
		}
	}
}

// TestRisksAreNoted holds which settings are noted as a bad idea, and where.
func TestRisksAreNoted(t *testing.T) {
	const users = `{users: [{name: a, password_hash: "$2y$04$TQo2idYYxatW7B9EaROH8OIaoXMp3r89FD0Nxv8uT2SPbJeG/4Uga"}]}`
	route := func(s string) string { return "proxies: {p: {routes: [" + s + "]}}" }
	for _, c := range []struct{ name, text, want string }{
		{"admin on every address", `admin: {address: "0.0.0.0:9080"}`, ""},
		{"admin on loopback", `admin: {address: "[::1]:9080"}`, ""},
		{"admin off", `admin: {address: ""}`, ""},
		{"secret in a header rule", `proxies: {p: {virtual_hosts: [a.example], headers: [{direction: request, name: X-Api-Key, value: k3y}], routes: [{fixed_response: {status: 200}}]}}`, "proxies.p.headers[0].value: the secret is in the configuration file; write ${VARIABLE}, or ${file:/path}, in its place"},
		{"unverified server", route(`{servers: [{url: "https://a", tls: {insecure_skip_verify: true}}]}`), "proxies.p.routes[0].servers[0].tls.insecure_skip_verify: server certificate is not verified, traffic can be intercepted; set its authority in tls.ca_file, and remove insecure_skip_verify"},
		{"verified server", route(`{servers: [{url: "https://a", tls: {server_name: b}}]}`), ""},
		{"unverified stream", `tcp_proxies: {t: {address: "127.0.0.1:1", servers: [{address: "127.0.0.1:2", tls: {insecure_skip_verify: true}}]}}`, "tcp_proxies.t.servers[0].tls.insecure_skip_verify: server certificate is not verified"},
		{"nginx variable", route(`{headers: [{direction: request, name: X-Real-IP, value: $remote_addr}], fixed_response: {status: 200}}`), "proxies.p.routes[0].headers[0].value: $remote_addr is not a variable in headgate and is sent unchanged; write {client_ip}"},
		{"nginx variable in braces", route(`{headers: [{direction: request, name: X-A, value: "a $${scheme}"}], fixed_response: {status: 200}}`), "${scheme} is not a variable in headgate and is sent unchanged; write {scheme}"},
		{"nginx list", route(`{headers: [{direction: request, name: X-A, value: $proxy_add_x_forwarded_for}], fixed_response: {status: 200}}`), "remove the rule: x-forwarded-for is sent anyway"},
		{"HAProxy variable", route(`{headers: [{direction: request, name: X-A, value: "%[src]"}], fixed_response: {status: 200}}`), "%[src] is not a variable"},
		{"of a proxy", `proxies: {p: {headers: [{direction: response, name: X-A, value: $host}], routes: [{fixed_response: {status: 200}}]}}`, "proxies.p.headers[0].value: $host is not a variable in headgate and is sent unchanged; write {host}"},
		{"of a policy", `policies: {p: {headers: [{direction: response, name: X-A, value: $host}]}}`, "policies.p.headers[0].value: $host is not a variable"},
		{"in a body", route(`{fixed_response: {status: 200, body: "your address is $remote_addr"}}`), "proxies.p.routes[0].fixed_response.body: $remote_addr is not a variable"},
		{"a price", route(`{fixed_response: {status: 200, body: "costs $5, $dollars, 100%"}}`), ""},
		{"ambiguous paths", route(`{ambiguous_paths: allow, fixed_response: {status: 200}}, {path: /admin, basic_auth: ` + users + `, fixed_response: {status: 200}}`), "proxies.p.routes[0].ambiguous_paths: a request for another spelling of /admin, such as /ADMIN, reaches the server without the basic_auth of that route"},
		{"ambiguous paths, all protected", `proxies: {p: {basic_auth: ` + users + `, routes: [{ambiguous_paths: allow, fixed_response: {status: 200}}, {path: /admin, fixed_response: {status: 200}}]}}`, ""},
		{"ambiguous paths, none protected", route(`{ambiguous_paths: allow, fixed_response: {status: 200}}, {path: /admin, fixed_response: {status: 200}}`), ""},
	} {
		_, doc, problems := Load("f", []byte("version: 1\nports: {web: {address: \"127.0.0.1:80\", protocol: http}}\n"+c.text+"\n"))
		if len(problems) > 0 {
			t.Errorf("%s: %v", c.name, problems)
			continue
		}
		got := ""
		for _, n := range doc.Notes() {
			got += n.Error() + "\n"
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: notes\n%swant\n%s", c.name, got, c.want)
		}
	}
}

// TestProxiesWithoutAPortAreNoted holds that somebody is told that nothing listens.
func TestProxiesWithoutAPortAreNoted(t *testing.T) {
	const proxies = "proxies: {p: {routes: [{fixed_response: {status: 200}}]}}\n"
	for text, want := range map[string]string{
		proxies: "[f:2:10: proxies: there is no port, so nothing listens for these proxies; add one: ports: {web: {address: \"0.0.0.0:80\", protocol: http}}]",
		"":      "[]",
		"ports: {web: {address: \"0.0.0.0:80\", protocol: http, active: false}}\n" + proxies: "[]",
	} {
		_, doc, problems := Load("f", []byte("version: 1\n"+text))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := fmt.Sprint(doc.Notes()); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
