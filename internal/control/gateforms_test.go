package control

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/gate"
)

// overQUIC adds HTTP/3 to the configuration of gated, at the same number as its https port.
func (g *gated) overQUIC(more string) {
	g.t.Helper()
	text := strings.Replace(g.config(more), "sign_in:\n", `  quic: {address: "127.0.0.1:`+g.port+`", protocol: http3}`+"\nsign_in:\n", 1)
	g.house.apply(strings.ReplaceAll(text, "%[4]s", g.app.URL))
}

// get returns the fields of a GET.
func (g *gated) get(host, path string, more ...string) wireRequest {
	return wireRequest{fields: g.asH2(host, path, more...)}
}

func cookie(pairs ...string) []string {
	return []string{"cookie", strings.Join(pairs, "; ")}
}

// The fields that name people, in every form that a protocol has for them.
func TestNobodyIsNamedOverAnyProtocol(t *testing.T) {
	g := startGated(t)
	g.overQUIC("")
	ann := g.browser()
	ann.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	own := cookie(gate.CookieGate + "=" + ann.sessionOf("wiki"))
	overAll(t, g, func(t *testing.T, open func(string) wire) {
		w := open("wiki")
		for name, c := range map[string]struct {
			fields  []string
			refused bool // the message is malformed
		}{
			"plain":            {fields: []string{"remote-user", "root"}},
			"repeated":         {fields: []string{"remote-user", "root", "remote-user", "root", "remote-groups", "root"}},
			"underscores":      {fields: []string{"remote_user", "root", "remote_groups", "root", "remote_email", "root", "remote_name", "root"}},
			"dots and others":  {fields: []string{"remote.user", "root", "remote-user_", "ok"}},
			"a pseudo-header":  {fields: []string{":remote-user", "root"}, refused: true},
			"a space":          {fields: []string{"remote-user ", "root"}, refused: true},
			"a line in a name": {fields: []string{"x\r\nremote-user", "root"}, refused: true},
		} {
			if name == "a line in a name" {
				if _, h1 := w.(*wire1); h1 {
					continue // that is another field there
				}
			}
			for path, user := range map[string]string{"/x": "Remote-User: ann@example.com", "/public/x": ""} {
				a := w.send(g.get("wiki", path, append(slices.Clone(own), c.fields...)...))
				refused := a.status == "400" || a.status == "reset"
				if refused != c.refused || !refused && a.status != "200" || strings.Contains(a.text, "root") || !refused && !strings.Contains(a.text, user) {
					t.Errorf("%s at %s: status %s, %s", name, path, a.status, a.text)
				}
				if user == "" && strings.Contains(strings.ToLower(a.text), "remote-user:") {
					t.Errorf("%s at %s: %s", name, path, a.text)
				}
			}
		}
		// Other cases of the name: HTTP/1.1 has them, the other protocols refuse them.
		for _, name := range []string{"Remote-User", "REMOTE_USER", "rEMOTE-uSER"} {
			if a := w.send(g.get("wiki", "/x", append(slices.Clone(own), name, "root")...)); strings.Contains(a.text, "root") || a.status != "200" && a.status != "400" && a.status != "reset" {
				t.Errorf("%s: status %s, %s", name, a.status, a.text)
			}
		}
		for _, name := range []string{"remote-user", "remote_user", "remote-groups", "x-headgate-token", "cookie", "authorization"} {
			for _, path := range []string{"/x", "/public/x"} {
				rq := g.get("wiki", path, append(slices.Clone(own), "te", "trailers", "trailer", name)...)
				rq.fields[1], rq.body, rq.trailer = "POST", "x", []string{name, "root"}
				if a := w.send(rq); a.status != "200" && a.status != "400" && a.status != "reset" || strings.Contains(a.text, "root") {
					t.Errorf("trailer %s at %s: status %s, %s", name, path, a.status, a.text)
				}
			}
		}
		if a := w.send(g.get("wiki", "/x", own...)); a.status != "200" {
			t.Errorf("the session afterwards: status %s", a.status)
		}
	})
}

// Cookies of one name, in one field and in several.
func TestTossedCookiesAreRefusedOverAnyProtocol(t *testing.T) {
	g := startGated(t)
	g.overQUIC("")
	ann, eve := g.browser(), g.browser()
	ann.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	eve.signIn(g.at("wiki", "/"), "eve", "staff").want(t, 200)
	own, tossed := gate.CookieGate+"="+ann.sessionOf("wiki"), gate.CookieGate+"="+eve.sessionOf("wiki")
	overAll(t, g, func(t *testing.T, open func(string) wire) {
		w := open("wiki")
		for name, fields := range map[string][]string{
			"own first":          cookie(own, tossed),
			"tossed first":       cookie(tossed, own),
			"two fields":         append(cookie(own), cookie(tossed)...),
			"two fields, turned": append(cookie(tossed), cookie(own)...),
			"others between":     cookie("a=1", tossed, "b=2", own),
			"three fields":       append(append(cookie("a=1"), cookie(own)...), cookie(own)...),
		} {
			if a := w.send(g.get("wiki", "/x", fields...)); a.status != "401" || strings.Contains(a.text, "Remote-") {
				t.Errorf("%s: status %s, %s", name, a.status, a.text)
			}
		}
		if a := w.send(g.get("wiki", "/x", append(cookie("a=1"), cookie(own)...)...)); a.status != "200" || !strings.Contains(a.text, "Remote-User: ann@example.com") {
			t.Errorf("crumbs of other cookies: status %s, %s", a.status, a.text)
		}
	})
}

// A one-time code, over any protocol: again, at another origin, in another browser, and at a
// host of an attacker that points here.
func TestACodeIsWorthNothingElsewhereOverAnyProtocol(t *testing.T) {
	g := startGated(t)
	g.overQUIC("")
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann", "chiefs").want(t, 200)
	overAll(t, g, func(t *testing.T, open func(string) wire) {
		of := func(host string) []string {
			u, err := url.Parse(g.at(host, "/"))
			if err != nil {
				t.Fatal(err)
			}
			var pairs []string
			for _, c := range b.client.Jar.Cookies(u) {
				pairs = append(pairs, c.Name+"="+c.Value)
			}
			return cookie(pairs...)
		}
		fresh := func() string {
			b.forget("wiki")
			u, err := url.Parse(b.code(g.at("wiki", "/x")))
			if err != nil {
				t.Fatal(err)
			}
			return u.RequestURI()
		}
		page := []string{"accept", "text/html", "sec-fetch-mode", "navigate"}
		w := open("wiki")
		enter := func(host, path string, fields []string) wireAnswer {
			return w.send(g.get(host, path, append(slices.Clone(page), fields...)...))
		}
		code := fresh()
		if a := enter("wiki", code, of("wiki")); a.status != "303" || !strings.HasSuffix(a.location, "/x") {
			t.Fatalf("the code: status %s to %q, %s", a.status, a.location, a.text)
		}
		if a := enter("wiki", code, of("wiki")); a.status != "403" {
			t.Errorf("again: status %s, %s", a.status, a.text)
		}
		code = fresh()
		if a := enter("wiki", code, cookie(gate.CookieNonce+"="+strings.Repeat("a", 43))); a.status != "403" {
			t.Errorf("another browser: status %s, %s", a.status, a.text)
		}
		if a := enter("wiki", code, of("wiki")); a.status != "403" {
			t.Errorf("after another browser: status %s, %s", a.status, a.text)
		}
		code = fresh()
		if a := enter("chiefs", code, of("wiki")); a.status != "403" {
			t.Errorf("another origin: status %s, %s", a.status, a.text)
		}
		code = fresh()
		for _, host := range []string{"evil.example", "wiki.example.com.evil.example", "wiki.example.com:444"} {
			rq := g.get("wiki", code, of("wiki")...)
			rq.fields[5] = host
			if a := w.send(rq); a.status == "303" || a.status == "200" {
				t.Errorf("at %s: status %s, %s", host, a.status, a.text)
			}
		}
	})
}

// Paths, queries and methods that could pass the gate, and addresses that a sign-in must not
// lead to.
func TestNothingPassesAGateOverAnyProtocol(t *testing.T) {
	g := startGated(t)
	g.overQUIC(tokenProxies)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	phone := g.token(gate.NewToken{Name: "phone"})
	login, err := url.Parse(g.at("login", "/"))
	if err != nil {
		t.Fatal(err)
	}
	var session []string
	for _, c := range b.client.Jar.Cookies(login) {
		session = append(session, c.Name+"="+c.Value)
	}
	overAll(t, g, func(t *testing.T, open func(string) wire) {
		w := open("wiki")
		for _, path := range []string{"/", "/ADMIN", "//", "/x/..%2fadmin", "/public/../admin", "/public/%2e%2e/admin", "/public/..%2fadmin", "/PUBLIC/x", "/public;/x", "/publicx", "/public%2f..%2fx", `/public\..\x`, "/.headgate/../x", "/%2eheadgate/x", "*", "wiki/x", ""} {
			a := w.send(g.get("wiki", path, "accept", "*/*", "remote-user", "ann", "cookie", gate.CookieGate+"="+strings.Repeat("a", 43)))
			if a.status == "200" && !strings.HasPrefix(a.text, "GET /public/") || strings.Contains(strings.ToLower(a.text), "remote-user:") {
				t.Errorf("%q: status %s, %s", path, a.status, a.text)
			}
		}
		for _, c := range []struct {
			name, host, path string
			fields           []string
			status           string
		}{
			{"token", "cloud", "/x", []string{"authorization", "Bearer " + phone}, "200"},
			{"token in a query", "cloud", "/x?token=" + phone + "&access_token=" + phone, nil, "401"},
			{"token in a query of another name", "cloud", "/x?x-headgate-token=" + phone + "&authorization=Bearer%20" + phone, nil, "401"},
			{"token in a cookie", "cloud", "/x", cookie("x-headgate-token=" + phone), "401"},
			{"token twice", "cloud", "/x", []string{"authorization", "Bearer " + phone, "authorization", "Bearer " + phone}, "401"},
			{"token with underscores", "cloud", "/x", []string{"x_headgate_token", phone}, "401"},
		} {
			if a := w.send(g.get(c.host, c.path, c.fields...)); a.status != c.status || strings.Contains(a.text, phone) {
				t.Errorf("%s: status %s, want %s; %s", c.name, a.status, c.status, a.text)
			}
		}
		rq := g.get("wiki", "/", "origin", "https://evil.example", "access-control-request-method", "GET", "access-control-request-headers", "remote-user")
		rq.fields[1] = "OPTIONS"
		if a := w.send(rq); a.status != "401" {
			t.Errorf("preflight: status %s, %s", a.status, a.text)
		}
		if a := w.send(g.get("wiki", "/x", "accept", "text/html", "sec-fetch-mode", "navigate")); a.status != "302" || !strings.HasPrefix(a.location, g.at("login", "/?to=")) {
			t.Errorf("a page: status %s to %q", a.status, a.location)
		}
		for _, to := range openRedirects(g) {
			a := w.send(g.get("login", "/?to="+url.QueryEscape(to)+"&n="+strings.Repeat("a", 43), append(cookie(session...), "accept", "text/html")...))
			if a.status != "400" || a.location != "" || refresh.MatchString(a.text) {
				t.Errorf("%q: status %s to %q, %s", to, a.status, a.location, a.text)
			}
		}
	})
}

// A stream that runs is cut when its session ends, and the connection, which others may share,
// goes on.
func TestAStreamEndsWithItsSessionOverAnyProtocol(t *testing.T) {
	g := startGated(t)
	g.overQUIC("")
	overAll(t, g, func(t *testing.T, open func(string) wire) {
		for _, path := range []string{"/events", "/flood"} {
			b := g.browser()
			b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
			w := open("wiki")
			var ended time.Time
			rq := g.get("wiki", path, cookie(gate.CookieGate+"="+b.sessionOf("wiki"))...)
			signedOut := make(chan struct{})
			rq.began = func() {
				go func() {
					defer close(signedOut)
					b.do("POST", g.at("wiki", "/.headgate/sign-out"), "", "Origin", g.at("wiki", "")).want(t, 200)
					ended = time.Now()
				}()
				if path == "/events" {
					<-signedOut // the client reads on, and there is nothing to read
				}
			}
			a := w.send(rq)
			<-signedOut
			if after := time.Since(ended); a.status != "200" || !a.cut || after > 10*time.Second {
				t.Errorf("%s: status %s, cut %v, %v after the session", path, a.status, a.cut, after)
			} else {
				t.Logf("%s: cut %v after the session", path, after)
			}
			if a := w.send(g.get("wiki", "/public/x")); a.status != "200" {
				t.Errorf("the connection afterwards: status %s", a.status)
			}
			rq.began = nil
			if a := w.send(rq); a.status != "401" {
				t.Errorf("%s again: status %s", path, a.status)
			}
		}
	})
}

// Browsers reuse a connection for other hosts that its certificate has (RFC 9113, section 9.1.1;
// RFC 9114, section 3.3). Where hosts have one certificate, each request is decided for its own
// host; where they have different ones, the client is sent to another connection (RFC 9110,
// section 15.5.20). A session of one host opens no other in either case.
func TestASessionOpensNoOtherHostOfAConnection(t *testing.T) {
	g := startGated(t)
	g.overQUIC("certificates:\n  one: " + signed(t, nil, "login.example.com", "wiki.example.com", "chiefs.example.com") + "\n  two: " + signed(t, nil, "open.example.com", "*.apps.example.com") + "\n")
	ann := g.browser()
	ann.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	own := cookie(gate.CookieGate + "=" + ann.sessionOf("wiki"))
	overAll(t, g, func(t *testing.T, open func(string) wire) {
		for opened, group := range map[string][]string{"wiki": {"wiki", "chiefs"}, "chiefs": {"wiki", "chiefs"}, "open": {"open", "a.apps"}, "a.apps": {"open", "a.apps"}} {
			w := open(opened)
			for _, one := range []struct {
				host   string
				fields []string
				status string // on a connection for the host
			}{
				{"wiki", own, "200"}, {"wiki", nil, "401"}, {"chiefs", own, "401"}, {"chiefs", nil, "401"}, {"a.apps", own, "401"}, {"a.apps", nil, "401"},
				{"open", nil, "200"}, {"wiki", own, "200"},
			} {
				want := one.status
				if !slices.Contains(group, one.host) {
					want = "421"
				}
				a := w.send(g.get(one.host, "/x", one.fields...))
				if a.status != want || strings.Contains(a.text, gate.CookieGate) || one.host != "wiki" && strings.Contains(a.text, "Remote-User") {
					t.Errorf("%s over a connection for %s, cookie %v: status %s, want %s; %s", one.host, opened, one.fields != nil, a.status, want, a.text)
				}
			}
		}
	})
}
