package control

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// openRedirects are addresses that must not be left to browsers: each reads some of them in
// a way of its own.
func openRedirects(g *gated) []string {
	wiki := "wiki.example.com:" + g.port
	return []string{
		"https://evil.example/", "http://" + wiki + "/", "//" + wiki + "/", "/page", "javascript:alert(1)", "https:" + wiki + "/",
		"https:///" + wiki + "/", "https://" + wiki + "@evil.example/", "https://evil.example%2f@" + wiki + "/", "https://" + wiki + "%2eevil.example/",
		`https://evil.example\@` + wiki + "/", `https://` + wiki + `\.evil.example/`, "https://wiki.example.com.evil.example:" + g.port + "/",
		"https://" + wiki + "/\r\nLocation: https://evil.example/", "https://" + wiki + "/#", "https://[" + wiki + "]/", "https://wiki.example.com:0/",
		"https://wiki.example.com:" + g.port + ":443/", "https://open.example.com:" + g.port + "/", "https://login.example.com:" + g.port + "/",
		"https://xn--wiki.example.com:" + g.port + "/", "https://wiki。example。com:" + g.port + "/", "HTTPS://" + wiki + "/",
		"https://" + wiki + "/public/x", // the gate is off there
	}
}

// A person who has signed in is led to applications behind a gate only.
func TestTheSignInPageLeadsNowhereElse(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	for _, to := range openRedirects(g) {
		r := b.get(g.at("login", "/?to="+url.QueryEscape(to)+"&n="+strings.Repeat("a", 43)))
		if r.StatusCode != 400 || r.next() != "" {
			t.Errorf("%q: status %d, leads to %q", to, r.StatusCode, r.next())
		}
	}
	// Paths that look like another host stay on the application's.
	for _, path := range []string{"//evil.example/", "//evil.example", "///evil.example/x", "/./evil.example/", "/?to=//evil.example"} {
		fresh := g.browser()
		fresh.client.Jar = b.client.Jar
		b.forget("wiki")
		for address := g.at("wiki", path); ; {
			r := b.get(address)
			if to := r.Header.Get("Location"); to != "" && !strings.HasPrefix(to, g.at("login", "/")) && !strings.HasPrefix(to, g.at("wiki", "/")) {
				t.Errorf("%s: %s leads to %q", path, address, to)
				break
			}
			if address = r.next(); address == "" {
				r.want(t, 200, "GET ")
				break
			}
		}
	}
}

// forget removes the cookies that a browser has of an application.
func (b *browser) forget(host string) {
	b.t.Helper()
	u, err := url.Parse(b.at(host, "/"))
	if err != nil {
		b.t.Fatal(err)
	}
	var gone []*http.Cookie
	for _, c := range b.client.Jar.Cookies(u) {
		gone = append(gone, &http.Cookie{Name: c.Name, Path: "/", Secure: true, MaxAge: -1})
	}
	b.client.Jar.SetCookies(u, gone)
}

// code returns the address with a one-time code that a browser is sent to for an
// application, without opening it.
func (b *browser) code(address string) string {
	b.t.Helper()
	for range 12 {
		r := b.get(address)
		if address = r.next(); strings.Contains(address, "/.headgate/enter?code=") {
			return address
		}
		if address == "" {
			break
		}
	}
	b.t.Fatal("no code was made")
	return ""
}

// A code works once, in the browser that it was made for, at the origin that it was made for.
func TestACodeIsWorthNothingElsewhere(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann", "chiefs").want(t, 200)

	b.forget("wiki")
	code := b.code(g.at("wiki", "/x"))
	b.get(code).want(t, 303)
	b.get(g.at("wiki", "/x")).want(t, 200)
	b.get(code).want(t, 403, "Signing in failed") // used
	b.forget("wiki")

	thief := g.browser()
	thief.get(g.at("wiki", "/x")).want(t, 302) // it has a nonce of its own
	code = b.code(g.at("wiki", "/x"))
	thief.get(code).want(t, 403)
	b.get(code).want(t, 403) // the try has used it up

	b.get(g.at("chiefs", "/")).want(t, 302) // a nonce there
	code = b.code(g.at("wiki", "/x"))
	u, err := url.Parse(code)
	if err != nil {
		t.Fatal(err)
	}
	b.get(g.at("chiefs", u.RequestURI())).want(t, 403)
	b.get(code).want(t, 403)

	// A cookie of one application is none of another.
	b.follow(g.at("wiki", "/x")).want(t, 200)
	from, _ := url.Parse(g.at("wiki", "/"))
	to, _ := url.Parse(g.at("chiefs", "/"))
	swapped := g.browser()
	swapped.client.Jar.SetCookies(to, b.client.Jar.Cookies(from))
	swapped.get(g.at("chiefs", "/")).want(t, 302)
	swapped.client.Jar.SetCookies(to, []*http.Cookie{{Name: "__Host-headgate-gate", Value: strings.Repeat("a", 43), Path: "/", Secure: true}})
	swapped.get(g.at("chiefs", "/")).want(t, 302)
}

// A sign-in ends in the browser that has started it: otherwise somebody could sign others
// in as himself, or bring them to sign him in.
func TestASignInEndsWhereItStarted(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	page := b.follow(g.at("wiki", "/"))
	m := button.FindStringSubmatch(page.text)
	if m == nil {
		t.Fatal(page.text)
	}
	start, err := page.Request.URL.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
	if err != nil {
		t.Fatal(err)
	}
	provider := b.get(start.String()).next()
	back := b.get(provider).next()
	if !strings.Contains(back, "/callback/company?") {
		t.Fatalf("the provider leads to %s", back)
	}
	g.browser().get(back).want(t, 403, "Signing in failed")
	wrong, err := url.Parse(back)
	if err != nil {
		t.Fatal(err)
	}
	q := wrong.Query()
	q.Set("state", q.Get("state")[:8]+strings.Repeat("x", 35))
	wrong.RawQuery = q.Encode()
	b.get(wrong.String()).want(t, 403, "Signing in failed")
	b.get(g.at("wiki", "/")).want(t, 302)
}

// What is one path for a server must be one for the gate.
func TestOtherSpellingsDoNotPassAGate(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	for _, path := range []string{"/", "/ADMIN", "//", "/public/../admin", "/public/%2e%2e/admin", "/public/..%2fadmin", "/publi%63/../x", "/PUBLIC/x", "/public;/x", "/publicx", "/%70ublic/%2e%2e/x", "/public%2f..%2fx", "/public\\..\\x", "/.headgate/../x", "/%2eheadgate/x"} {
		r := b.do("GET", g.at("wiki", path), "", "Accept", "*/*", "Remote-User", "ann", "Cookie", "__Host-headgate-gate="+strings.Repeat("a", 43))
		if r.StatusCode == 200 && !strings.HasPrefix(r.text, "GET /public/") || strings.Contains(strings.ToLower(r.text), "remote-user") {
			t.Errorf("%s: status %d, %s", path, r.StatusCode, r.text)
		}
	}
}
