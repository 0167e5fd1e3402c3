package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestConfigurationsOfOtherProxiesAreRecognised holds that a file of another proxy
// is answered with one problem that names it and the guide.
func TestConfigurationsOfOtherProxiesAreRecognised(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nginx.conf", "user nginx;\nworker_processes auto;\nevents { worker_connections 1024; }\nhttp {\n  server {\n    listen 80;\n    location / { proxy_pass http://127.0.0.1:3000; }\n  }\n}\n", "an nginx configuration"},
		{"site.conf", "server {\n\tlisten 80;\n\tserver_name a.example.com;\n\tlocation / {\n\t\tproxy_pass http://b;\n\t}\n}\n", "an nginx configuration"},
		{"snippet.conf", "proxy_set_header Host $host;\nproxy_pass http://127.0.0.1:3000;\n", "an nginx configuration"},
		{"dos.conf", "server {\r\n    listen 80;\r\n}\r\n", "an nginx configuration"},
		{"Caddyfile", "a.example.com {\n\treverse_proxy 127.0.0.1:3000\n}\n", "a Caddyfile"},
		{"Caddyfile", "{\n\temail a@example.com\n}\n\na.example.com, b.example.com {\n\tencode gzip\n\treverse_proxy localhost:9000\n}\n", "a Caddyfile"},
		{"Caddyfile", "localhost\n\nreverse_proxy :9000\n", "a Caddyfile"},
		{"Caddyfile", "localhost\nfile_server\n", "a Caddyfile"},
		{"caddy.json", `{"apps":{"http":{"servers":{"a":{"listen":[":80"]}}}}}`, "a Caddy configuration"},
		{"traefik.yml", "entryPoints:\n  web:\n    address: \":80\"\n", "a Traefik configuration"},
		{"dynamic.yml", "http:\n  routers:\n    a: {rule: \"Host(`a`)\", service: s}\n", "a Traefik configuration"},
		{"traefik.toml", "[entryPoints]\n  [entryPoints.web]\n  address = \":80\"\n", "a Traefik configuration"},
		{"dynamic.toml", "[http.routers.a]\nrule = \"Host(`a`)\"\n", "a Traefik configuration"},
		{"haproxy.cfg", "global\n    log /dev/log local0\ndefaults\n    mode http\n    timeout connect 5s\nfrontend web\n    bind *:80\n    default_backend app\nbackend app\n    server a 127.0.0.1:3000 check\n", "an HAProxy configuration"},
		{"haproxy.cfg", "# ours\nlisten web\n\tbind :80\n\tserver a 127.0.0.1:3000\n", "an HAProxy configuration"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, problems := Load(c.name, []byte(c.text))
			imported := ""
			if strings.Contains(c.want, "nginx") {
				imported = "run headgate import nginx FILE, or "
			}
			want := c.name + ":1:1: this is " + c.want + ", which headgate cannot read; " + imported + "see docs/guides/coming-from.md"
			if len(problems) != 1 || problems[0].Error() != want {
				t.Errorf("problems of\n%s\n%v, want\n%s", c.text, problems, want)
			}
		})
	}
}

// TestBrokenDocumentsOfOursAreNotForeign holds that a mistake in a configuration of
// headgate's is told as what it is.
func TestBrokenDocumentsOfOursAreNotForeign(t *testing.T) {
	for _, text := range []string{
		"", "version: 1", "version: 1\nports:\n\tweb: {}\n", "version: 1\nproxies: {a: [}\n", "- a\n- b\n", "just a sentence", "a: b\n",
		"version: 1\nhttp: {routers: {}}\nproxies: {}\n", "x-anchors: {}\nproviders: {docker: {}}\n",
		"version: 1\nproxies:\n  a:\n    routes: [{path: /, servers: [{url: \"http://a\"}]\n  handle:\n", "{\"version\": 1,\n \"ports\": {\n",
	} {
		_, _, problems := Load("f", []byte(text))
		if s := fmt.Sprint(problems); strings.Contains(s, "cannot read") {
			t.Errorf("problems of %q: %s", text, s)
		}
	}
}

// TestWordsOfOtherProxiesAreTranslated holds what an operator is told who writes a
// word of another proxy.
func TestWordsOfOtherProxiesAreTranslated(t *testing.T) {
	const head = "version: 1\nports: {web: {address: \"127.0.0.1:80\", protocol: http}}\n"
	for _, c := range []struct{ text, want string }{
		{"upstream: {a: 1}\n", "upstream: unknown key; it is part of a proxy: write proxies: {shop: {"},
		{"hosts: {}\n", "hosts: unknown key; it is part of a proxy"},
		{"entryPoint: {}\n", `entryPoint: unknown key; write ports: {web: {address: "0.0.0.0:80", protocol: http}}`},
		{"proxies: {a: {host: a, routes: [{fixed_response: {status: 200}}]}}\n", "proxies.a.host: unknown key; write virtual_hosts: [shop.example.com]"},
		{"proxies: {a: {domain: a, routes: [{fixed_response: {status: 200}}]}}\n", "proxies.a.domain: unknown key; write virtual_hosts: [shop.example.com]"},
		{"proxies: {a: {upstream: a, routes: [{fixed_response: {status: 200}}]}}\n", "proxies.a.upstream: unknown key; servers are part of a route: write routes: [{servers: ["},
		{"proxies: {a: {location: a, routes: [{fixed_response: {status: 200}}]}}\n", "proxies.a.location: unknown key; paths are part of routes"},
		{"proxies: {a: {routes: [{location: /, fixed_response: {status: 200}}]}}\n", "proxies.a.routes[0].location: unknown key; write path: /api"},
		{"proxies: {a: {routes: [{backend: b}]}}\n", `proxies.a.routes[0].backend: unknown key; write servers: [{url: "http://127.0.0.1:3000"}]`},
		{"proxies: {a: {routes: [{host: a, fixed_response: {status: 200}}]}}\n", "proxies.a.routes[0].host: unknown key; hosts are part of the proxy, not of the route"},
		{"proxies: {a: {routes: [{acme: a, fixed_response: {status: 200}}]}}\n", "proxies.a.routes[0].acme: unknown key; acme is part of a proxy"},
		{"proxies: {a: {routes: [{servers: [{host: a, url: \"http://a\"}]}]}}\n", `proxies.a.routes[0].servers[0].host: unknown key; write url: "http://127.0.0.1:3000"`},
		{"tcp_proxies: {a: {address: \"127.0.0.1:1\", servers: [{url: a, address: \"127.0.0.1:2\"}]}}\n", `tcp_proxies.a.servers[0].url: unknown key; write address: "127.0.0.1:5432"`},
		// A word that only looks like one is spelled as before.
		{"proxies: {a: {virtual_host: [a], routes: [{fixed_response: {status: 200}}]}}\n", `proxies.a.virtual_host: unknown key; did you mean "virtual_hosts"?`},
	} {
		_, _, problems := Load("f", []byte(head+c.text))
		if s := fmt.Sprint(problems); !strings.Contains(s, c.want) {
			t.Errorf("problems of %s\n%s\nwant %s", c.text, s, c.want)
		}
	}
}

// TestPathsThatArePatternsAreRefused holds that an expression or wildcard in a path
// is answered with the prefix that was meant.
func TestPathsThatArePatternsAreRefused(t *testing.T) {
	const expression, wildcard = "is an expression, and a path is a prefix of whole segments", "has a wildcard, and a path is a prefix of whole segments"
	for _, c := range []struct{ path, what, write string }{
		{`/^/api/.*$`, expression, `"/api"`},
		{`^/api/(.*)$`, expression, `"/api"`},
		{`~ ^/api/v[0-9]+/.*`, expression, `"/api/v"`},
		{`/api/.*`, expression, `"/api"`},
		{`/(?i)x`, expression, `"/"`},
		{`/api$`, expression, `"/api"`},
		{`/a|b`, expression, `"/a"`},
		{`/api/*`, wildcard, `"/api"`},
		{`/*`, wildcard, `"/"`},
		{`*`, wildcard, `"/"`},
		{`/a*`, "", ""},
		{`/a.b/c+d`, "", ""},
		{`/$metadata`, "", ""},
		{`/Products(1)`, "", ""},
		{`/~alice`, "", ""},
	} {
		what, remedy := checkPattern(c.path)
		if (what == "") != (c.what == "") || !strings.Contains(what, c.what) || !strings.Contains(remedy, c.write) {
			t.Errorf("checkPattern(%q) = %s; %s, want %s; %s", c.path, what, remedy, c.what, c.write)
		}
	}
}
