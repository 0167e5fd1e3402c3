package config

import (
	"fmt"
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
