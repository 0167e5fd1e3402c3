package config

import (
	"strings"
	"testing"
)

// TestSettingsForOperatorsAreChecked holds what is said of webhooks and the admin
// listener before they are used.
func TestSettingsForOperatorsAreChecked(t *testing.T) {
	hook := func(url, more string) string {
		return "webhooks: {a: {url: \"" + url + "\", secret: 0123456789abcdef" + more + "}}\n"
	}
	oidc := func(issuer, redirect string) string {
		return "admin: {oidc: {issuer: \"" + issuer + "\", client_id: a, client_secret: b, redirect_url: \"" + redirect + "\", roles: [{claim: groups, value: ops, role: admin}]}}\n"
	}
	for _, c := range []struct{ text, want string }{
		{hook("https://hooks.example.com/x", ""), ""},
		{hook("http://hooks.example.com/x", ", events: [proxy.*, server.unhealthy]"), ""},
		{hook("hooks.example.com", ""), "the URL cannot be used"},
		{hook("ftp://hooks.example.com", ""), "the URL cannot be used"},
		{hook("https://me:pw@hooks.example.com", ""), "has a user in it"},
		{hook("https://hooks.example.com/#a", ""), "has a fragment"},
		{hook("https://hooks.example.com/", ", events: [proxy.dwon]"), "did you mean"},
		{"webhooks: {a: {url: \"https://a.example\", secret: short}}\n", "secret"},
		{"webhooks: {a: {url: \"https://a.example\"}}\n", "secret"},
		{"admin: {hosts: [gate.example.com]}\n", ""},
		{"admin: {hosts: [\"gate.example.com:9080\"]}\n", "not one host name"},
		{"admin: {hosts: [\"*.example.com\"]}\n", "not one host name"},
		{"admin: {hosts: [192.0.2.1]}\n", "needs no entry"},
		{"admin: {certificate: main}\ncertificates: {main: {cert_file: a.pem, key_file: b.pem}}\n", ""},
		{"admin: {certificate: mian}\ncertificates: {main: {cert_file: a.pem, key_file: b.pem}}\n", "there is no certificate \"mian\"; did you mean \"main\"?"},
		{"admin: {certificate: main}\n", "there is no certificate"},
		{"admin: {trusted_proxies: [127.0.0.1, 10.0.0.0/8]}\n", ""},
		{"admin: {trusted_proxies: [proxy.example.com]}\n", "trusted_proxies[0]"},
		{oidc("https://login.example.com", "https://gate.example.com/signed-in"), ""},
		{oidc("http://127.0.0.1:8080/realm", "http://localhost:9080/signed-in"), ""},
		{oidc("http://login.example.com", "https://gate.example.com/signed-in"), "is not https"},
		{oidc("https://login.example.com/.well-known/openid-configuration", "https://gate.example.com/"), "not the URL of an issuer"},
		{"admin: {oidc: {issuer: \"https://a.example\", client_id: a, client_secret: b, redirect_url: \"https://b.example\", roles: []}}\n", "roles"},
	} {
		_, _, problems := Load("test.yaml", []byte("version: 1\n"+c.text))
		var all []string
		for _, p := range problems {
			all = append(all, p.Error())
		}
		got := strings.Join(all, "\n")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s\ngot %q, want %q", c.text, got, c.want)
		}
	}
}
