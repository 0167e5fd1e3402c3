package control

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"headgate/internal/testhouse"
)

// TestLaunchpad opens the page of applications as a person who may use two of three: with the
// icon that one has itself, the letter of the other, and whether they are available.
func TestLaunchpad(t *testing.T) {
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Host != "photos.example.com" || r.Header.Get("Cookie") != "":
			w.WriteHeader(500)
		case r.URL.Path == "/":
			w.Write([]byte(`<head><link rel="icon" href="/logo.svg"></head>`))
		case r.URL.Path == "/logo.svg":
			w.Write([]byte(`<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`))
		}
	}))
	defer app.Close()
	g := startGatedWith(t, strings.NewReplacer("APP", app.URL, "CLOSED", testhouse.Addresses(t, 1)[0]).Replace(`  photos:
    description: Photos & more
    virtual_hosts: [photos.example.com]
    gate: {allow: [domain:example.com]}
    routes: [{path: /, servers: [{url: "APP"}]}]
  broken:
    virtual_hosts: [broken.example.com]
    gate: {allow: [domain:example.com]}
    routes: [{path: /, servers: [{url: "http://CLOSED"}], health_check: {path: /, interval: 1s, timeout: 500ms, fall: 1}}]
  paused:
    virtual_hosts: [paused.example.com]
    gate: {allow: [domain:example.com]}
    maintenance: {enabled: true}
    routes: [{path: /, servers: [{url: "APP"}]}]
`))
	login := g.at("login", "")
	b := g.browser()
	b.signIn(login+"/", "ann").want(t, 200, ">wiki.example.com<", "!/sites/icon/")
	b.get(login+"/sites").want(t, 404)

	text := strings.Replace(g.text(), "sign_in: {title: Example}", "sign_in: {title: Example, launchpad: true}", 1)
	g.apply(text)
	b.get(login+"/sites").want(t, 200, "Your applications", ">Photos &amp; more<", ">photos.example.com<", "/sites/icon/wiki.example.com", "Under maintenance", "!chiefs.example.com")
	testhouse.Eventually(t, "the broken application is marked", func() bool { return strings.Contains(b.get(login+"/").text, "Not available now") })

	image := []string{"Sec-Fetch-Dest", "image", "Sec-Fetch-Mode", "no-cors"}
	icon := b.do("GET", login+"/sites/icon/photos.example.com", "", image...)
	icon.want(t, 200, "<svg", "alert(1)")
	if policy := icon.Header.Get("Content-Security-Policy"); icon.Header.Get("Content-Type") != "image/svg+xml" || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "sandbox") {
		t.Errorf("%v", icon.Header)
	}
	letter := b.do("GET", login+"/sites/icon/broken.example.com", "", image...)
	letter.want(t, 200, ">B</text>")
	for what, r := range map[string]reply{
		"an icon as a page":            b.get(login + "/sites/icon/photos.example.com"),
		"of an application of others":  b.do("GET", login+"/sites/icon/chiefs.example.com", "", image...),
		"of an application of nobody":  b.do("GET", login+"/sites/icon/open.example.com", "", image...),
		"for somebody not signed in":   g.browser().do("GET", login+"/sites/icon/photos.example.com", "", image...),
		"a page below the application": b.do("GET", login+"/sites/icon/photos.example.com/x", "", image...),
	} {
		if r.StatusCode != 404 {
			t.Errorf("%s: status %d", what, r.StatusCode)
		}
	}
	g.browser().get(login+"/sites").want(t, 200, "Sign in", "!photos.example.com")
}
