package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestRoutesOnOnePathHaveCookiesOfTheirOwn holds that two routes on one path do not take
// the sticky cookie of each other, unless it means the same servers.
func TestRoutesOnOnePathHaveCookiesOfTheirOwn(t *testing.T) {
	const text = `version: 1
proxies:
  shop:
    routes:
      - {path: /a, sticky_cookie: {}, servers: [{url: "http://10.0.0.1:80"}, {url: "http://10.0.0.2:80"}]}
      - {path: %s, matchers: {methods: [GET]}, sticky_cookie: {%s}, servers: [%s{url: "http://10.0.0.1:80"}]}
`
	for _, c := range []struct {
		path, cookie, servers string
		refused               bool
	}{
		{"/a", "", "", true},
		{"/a", "", `{url: "http://10.0.0.2:80"}, `, false},
		{"/a", "name: other", "", false},
		{"/a", "enabled: false", "", false},
		{"/a/b", "", "", false},
	} {
		_, _, problems := Load("a.yaml", []byte(fmt.Sprintf(text, c.path, c.cookie, c.servers)))
		refused := len(problems) == 1 && strings.Contains(problems[0].Error(), "routes[1].sticky_cookie.name: routes[0], /a, has the cookie headgate_affinity")
		if refused != c.refused || len(problems) > 1 {
			t.Errorf("%+v: got %v", c, problems)
		}
	}
}

// The same holds for routes of two proxies that browsers ask by one host, also on two
// ports: they send a cookie to both.
func TestProxiesOnOneHostHaveCookiesOfTheirOwn(t *testing.T) {
	const text = `version: 1
ports: {web: {address: "127.0.0.1:80", protocol: http}, other: {address: "127.0.0.1:81", protocol: http}}
proxies:
  a: {ports: [web], virtual_hosts: [%s], routes: [{path: %s, sticky_cookie: {%s}, servers: [{url: "http://10.0.0.1:80"}]}]}
  b: {ports: [%s], virtual_hosts: [%s], routes: [{path: /x, sticky_cookie: {}, servers: [{url: "http://10.0.0.2:80"}]}]}
`
	for _, c := range []struct {
		hostA, path, cookie, portB, hostB string
		refused                           bool
	}{
		{"shop.test", "/x", "", "other", "shop.test", true},
		{"shop.test", "/x/", "", "other", "www.test, Shop.test.", true},
		{`"*.test"`, "/x", "", "other", `"*.test"`, true},
		{"", "/x", "", "other", "", true},
		{"shop.test", "/", "", "other", "shop.test", false},
		{"shop.test", "/x", "name: other", "other", "shop.test", false},
		{"shop.test", "/x", "enabled: false", "other", "shop.test", false},
		{"shop.test", "/x", "", "web", "www.test", false},
	} {
		_, _, problems := Load("a.yaml", []byte(fmt.Sprintf(text, c.hostA, c.path, c.cookie, c.portB, c.hostB)))
		refused := len(problems) == 1 && strings.Contains(problems[0].Error(), "routes[0].sticky_cookie.name: routes[0] of proxy a, "+c.path+", has the cookie headgate_affinity")
		if refused != c.refused || len(problems) > 1 {
			t.Errorf("%+v: got %v", c, problems)
		}
	}
}
