package control

import (
	"slices"
	"strings"
	"testing"
)

// bypassProxies have requests that need no sign-in, beside a stricter route.
const bypassProxies = `  cloud:
    virtual_hosts: [cloud.example.com]
    gate:
      allow: [token:phone]
      bypass: [{paths: [/api/health]}, {paths: [/hook/], matchers: {methods: [POST]}}, {paths: [/files]}, {preset: app_files}]
    routes:
      - {path: /, strip_prefix: false, servers: [{url: "%[4]s"}]}
      - {path: /files/secret, strip_prefix: false, gate: {allow: [group:company/chiefs]}, servers: [{url: "%[4]s"}]}
`

func TestABypassIsNoWiderThanItIsWritten(t *testing.T) {
	g := startGatedWith(t, bypassProxies)
	b := g.browser()
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/api/health", 200}, {"POST", "/api/health/deep", 200}, {"GET", "/api/health?x=/admin", 200},
		{"POST", "/hook/1", 200}, {"POST", "/hook", 200}, {"GET", "/hook/1", 401},
		{"GET", "/manifest.json", 200}, {"HEAD", "/app.webmanifest", 200}, {"GET", "/.well-known/assetlinks.json", 200}, {"GET", "/.well-known/apple-app-site-association", 200},
		{"POST", "/manifest.json", 401}, {"GET", "/index.php/manifest.json", 401}, {"GET", "/x/app.webmanifest", 401}, {"GET", "/admin;.webmanifest", 401}, {"GET", "/..%2fadmin.webmanifest", 401},
		{"GET", "/", 401}, {"GET", "/api", 401}, {"GET", "/api/healthy", 401}, {"GET", "/API/health", 401}, {"GET", "/api/health/../admin", 401},
		{"GET", "/api/health/..%2fadmin", 401}, {"GET", "/api/health/..;/admin", 400}, {"GET", "/api/health/%2e%2e/admin", 401}, {"GET", "/api/health;x", 401}, {"GET", "/api/health/..%5cadmin", 401},
		// A server may read the path as one of the route that lets in fewer.
		{"GET", "/files/open", 200}, {"GET", "/files/secret", 401}, {"GET", "/files/SECRET", 400}, {"GET", "/files/%73ecret", 401}, {"GET", "/FILES/secret", 400},
	} {
		r := b.do(c.method, g.at("cloud", c.path), "", "Accept", "*/*", "Remote-User", "ann")
		if r.StatusCode != c.status || strings.Contains(r.text, "Remote-User") {
			t.Errorf("%s %s: status %d, want %d; %s", c.method, c.path, r.StatusCode, c.status, r.text)
		}
		if r.StatusCode == 200 && r.Header.Get("Cache-Control") != "" {
			t.Errorf("%s: Cache-Control %q", c.path, r.Header.Get("Cache-Control"))
		}
	}
	if got := g.house.c.Plan().Config().Proxies["cloud"].GateBypasses(); !slices.Equal(got, []string{"/api/health", "/hook/ POST", "/files", "preset app_files"}) {
		t.Errorf("listed are %q", got)
	}
	if got := g.house.c.Plan().Config().Proxies["wiki"].GateBypasses(); !slices.Equal(got, []string{"route /public", "from 127.0.0.1"}) {
		t.Errorf("listed are %q", got)
	}
}
