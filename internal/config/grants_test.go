package config

import (
	"strings"
	"testing"
)

// gatedText is a configuration with a gate; %s is the proxy wiki's route list.
const gatedText = `version: 1
ports:
  websecure: {address: "0.0.0.0:443", protocol: https}
sign_in: {local: true}
lists:
  home: {entries: [192.0.2.0/24]}
proxies:
  login: {virtual_hosts: [login.example.com], routes: [{path: /, sign_in: {}}]}
  wiki:
    virtual_hosts: [wiki.example.com]
    gate: {allow: [group:staff, group:family], from: ["list:home"]}
    routes:
      - {path: /, fixed_response: {status: 204}}
      - {path: /read, matchers: {methods: [GET]}, gate: {allow: [group:staff]}, fixed_response: {status: 204}}
      - {path: /read, fixed_response: {status: 204}}
      - {path: /open, gate: {enabled: false}, fixed_response: {status: 204}}
  open: {virtual_hosts: [open.example.com], routes: [{fixed_response: {status: 204}}]}
`

func TestChangesThatGrantAccessAreFound(t *testing.T) {
	for _, c := range []struct{ name, old, new, want string }{
		{"nothing", "", "", ""},
		{"a person", "group:family]", `group:family, "person:eve"]`, "person:eve"},
		{"fewer people", "group:staff, group:family]", "group:staff]", ""},
		{"another order", "group:staff, group:family]", "group:family, group:staff]", ""},
		{"a narrow route with a wider method", "methods: [GET]", "methods: [POST]", "group:family"},
		{"a narrow route with a header", "methods: [GET]", `methods: [GET], headers: [{name: X-A, value: b}]`, "group:family"},
		{"without the narrow route", "      - {path: /read, matchers: {methods: [GET]}, gate: {allow: [group:staff]}, fixed_response: {status: 204}}\n", "", "group:family"},
		{"a new open path", "path: /open,", "path: /op,", "no sign-in"},
		{"a shorter open path", "{path: /open, gate", "{path: /open/deep, gate", ""},
		{"another host", "virtual_hosts: [wiki.example.com]", "virtual_hosts: [other.example.com]", "no longer have a gate"},
		{"one more host", "virtual_hosts: [wiki.example.com]", "virtual_hosts: [WIKI.example.com, other.example.com]", ""},
		{"another proxy at the host", "virtual_hosts: [open.example.com], routes: [{", "virtual_hosts: [wiki.example.com], routes: [{path: /x, ", "no sign-in"},
		{"another proxy with the same gate", "virtual_hosts: [open.example.com], routes: [{", "virtual_hosts: [wiki.example.com], gate: {allow: [group:staff]}, routes: [{path: /x, ", ""},
		{"a list", "192.0.2.0/24", "0.0.0.0/0", "list home"},
		{"a provider", "sign_in: {local: true}", `sign_in: {local: true, providers: {a: {issuer: "https://id.example.org", client_id: a, client_secret: b}}}`, "sign in differently"},
	} {
		before, after := readGated(t, gatedText), readGated(t, strings.Replace(gatedText, c.old, c.new, 1))
		if c.old != "" && !strings.Contains(gatedText, c.old) {
			t.Fatalf("%s: %q is not in the configuration", c.name, c.old)
		}
		detail := ""
		if g := NewGrant(before, after); g != nil {
			detail = g.Detail
		}
		if (c.want == "") != (detail == "") || !strings.Contains(detail, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, detail, c.want)
		}
		// What was there before is no grant.
		if g := NewGrant(after, after); g != nil {
			t.Errorf("%s: without a change: %+v", c.name, g)
		}
	}
}

func readGated(t *testing.T, text string) *Config {
	t.Helper()
	c, _, problems := LoadDocuments(Documents{List: []Document{{Name: "headgate.yaml", Data: []byte(text)}}}, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return c
}
