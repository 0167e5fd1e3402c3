package control

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"headgate/internal/gate"
)

// tokenProxies accept tokens: cloud as passwords, too; home only in fields.
const tokenProxies = `  cloud:
    virtual_hosts: [cloud.example.com]
    gate: {allow: [token:phone, token:narrow, "person:ann@example.com"], basic_tokens: true}
    routes:
      - {path: /, strip_prefix: false, servers: [{url: "%[4]s"}]}
      - {path: /open, strip_prefix: false, gate: {enabled: false}, servers: [{url: "%[4]s"}]}
  smart:
    virtual_hosts: [home.example.com]
    gate: {allow: [token:phone]}
    routes: [{path: /, strip_prefix: false, servers: [{url: "%[4]s"}]}]
`

// token makes a token and returns its text.
func (g *gated) token(n gate.NewToken) string {
	g.t.Helper()
	_, text, err := g.house.c.Gate().CreateToken(n, false)
	if err != nil {
		g.t.Fatal(err)
	}
	return text
}

func bearer(token string) []string { return []string{"Authorization", "Bearer " + token} }

func basicAuth(user, password string) []string {
	return []string{"Authorization", "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))}
}

// Applications enter as their shapes are, and no server gets the token.
func TestApplicationsEnterWithTokens(t *testing.T) {
	g := startGatedWith(t, tokenProxies)
	b := g.browser()
	phone := g.token(gate.NewToken{Name: "phone"})
	narrow := g.token(gate.NewToken{Name: "narrow", Proxies: []string{"cloud"}, Paths: []string{"/api/", "/dav"}})
	other := g.token(gate.NewToken{Name: "other"})
	plain := "http://cloud.example.com:" + g.plain
	for _, c := range []struct {
		name, method, url string
		fields            []string
		status            int
		text              string
	}{
		{"bearer", "GET", g.at("cloud", "/x"), bearer(phone), 200, "GET /x\n"},
		{"bearer in capitals", "GET", g.at("cloud", "/x"), []string{"Authorization", "BEARER  " + phone}, 200, "GET /x\n"},
		{"own field", "GET", g.at("cloud", "/x"), []string{"x-headgate-TOKEN", phone}, 200, "GET /x\n"},
		{"post", "POST", g.at("cloud", "/x"), bearer(phone), 200, "POST /x\n"},
		// A Home Assistant app sends the application's own token to the application.
		{"own field beside Authorization", "GET", g.at("home", "/api/"), []string{"X-Headgate-Token", phone, "Authorization", "Bearer app"}, 200, "GET /api/\nAuthorization: Bearer app\n"},
		// The Nextcloud client asks first, then signs in with Basic.
		{"status without credentials", "GET", g.at("cloud", "/status.php"), []string{"Accept", "*/*", "User-Agent", "Mozilla/5.0 (Linux) mirall/3.13.0"}, 401, ""},
		{"PROPFIND", "PROPFIND", g.at("cloud", "/remote.php/dav/files/ann/"), append(basicAuth("ann", phone), "Depth", "1", "OCS-APIRequest", "true", "User-Agent", "Mozilla/5.0 (Linux) mirall/3.13.0"), 200, "PROPFIND /remote.php/dav/files/ann/\n"},
		// A Subsonic player.
		{"player", "GET", g.at("cloud", "/rest/ping.view?u=ann&t=26719a1196d2a940705a59634eb18eab&s=c19b2d&v=1.16.1&c=player&f=json"), basicAuth("ann", phone), 200, "GET /rest/ping.view\n"},
		{"Basic without padding", "GET", g.at("cloud", "/x"), []string{"Authorization", strings.TrimRight(basicAuth("annabel", phone)[1], "=")}, 200, "GET /x\n"},

		{"Basic where it is not allowed", "GET", g.at("home", "/"), basicAuth("ann", phone), 401, "auth_required"},
		{"a password of the application", "GET", g.at("cloud", "/"), basicAuth("ann", "secret"), 401, "auth_required"},
		{"a token of no gate", "GET", g.at("cloud", "/"), bearer(other), 403, "gate_denied"},
		{"another route", "GET", g.at("chiefs", "/"), bearer(phone), 403, "gate_denied"},
		{"an unknown token", "GET", g.at("cloud", "/"), bearer("hgt_" + strings.Repeat("a", 43)), 401, "auth_required"},
		{"half a token", "GET", g.at("cloud", "/"), bearer(phone[:20]), 401, "auth_required"},
		{"twice", "GET", g.at("cloud", "/"), append(bearer(phone), "X-Headgate-Token", phone), 401, "auth_required"},
		{"two fields", "GET", g.at("cloud", "/"), append(bearer(phone), "Authorization", "Bearer "+phone), 401, "auth_required"},
		{"field of another spelling", "GET", g.at("cloud", "/"), []string{"X_Headgate_Token", phone}, 401, "auth_required"},
		{"in the query", "GET", g.at("cloud", "/x?access_token="+phone), nil, 401, "auth_required"},
		{"in the query of a page", "GET", g.at("cloud", "/x?access_token="+phone), []string{"Accept", "text/html"}, 401, "auth_required"},
		{"in a cookie", "GET", g.at("cloud", "/x"), []string{"Cookie", "__Host-headgate-gate=" + phone}, 401, "auth_required"},
		{"plain", "GET", plain + "/x", bearer(phone), 403, "gate_needs_https"},

		{"below the path", "GET", g.at("cloud", "/api/x"), bearer(narrow), 200, "GET /api/x\n"},
		{"the path", "GET", g.at("cloud", "/dav"), bearer(narrow), 200, "GET /dav\n"},
		{"beside the path", "GET", g.at("cloud", "/apix"), bearer(narrow), 403, "gate_denied"},
		{"above the path", "GET", g.at("cloud", "/api/../x"), bearer(narrow), 403, "gate_denied"},
		{"a path of two readings", "GET", g.at("cloud", "/api/..%2fx"), bearer(narrow), 403, "gate_denied"},
		{"a path in capitals", "GET", g.at("cloud", "/API/x"), bearer(narrow), 403, "gate_denied"},
		{"where the gate is off", "GET", g.at("cloud", "/open/x"), append(bearer(phone), "X_Headgate_Token", phone), 200, "GET /open/x\n"},
	} {
		r := b.do(c.method, c.url, "", c.fields...)
		if r.StatusCode != c.status || !strings.Contains(r.text, c.text) || strings.Contains(r.text, "hgt_") || strings.Contains(r.text, "Remote-User") {
			t.Errorf("%s: status %d, want %d; %s", c.name, r.StatusCode, c.status, r.text)
		}
		if c.status == 200 && c.name != "where the gate is off" && r.Header.Get("Cache-Control") != "private" {
			t.Errorf("%s: Cache-Control %q", c.name, r.Header.Get("Cache-Control"))
		}
	}
}

// Only what is no browser is asked for a password: a browser would show a dialog.
func TestOnlyProgramsAreAskedForPasswords(t *testing.T) {
	g := startGatedWith(t, tokenProxies)
	b := g.browser()
	for _, c := range []struct {
		name, host string
		fields     []string
		want       string
	}{
		{"git", "cloud", []string{"Accept", "*/*"}, "Basic"},
		{"no Accept", "cloud", nil, "Basic"},
		{"script", "cloud", []string{"Accept", "*/*", "Sec-Fetch-Mode", "cors"}, "Bearer"},
		{"old script", "cloud", []string{"Accept", "text/html", "X-Requested-With", "XMLHttpRequest"}, "Bearer"},
		{"wrong token of a script", "cloud", append(bearer("hgt_x"), "Sec-Fetch-Site", "same-origin"), "Bearer"},
		{"wrong password of git", "cloud", basicAuth("x", "hgt_x"), "Basic"},
		{"no passwords here", "home", []string{"Accept", "*/*"}, "Bearer"},
	} {
		r := b.do("GET", g.at(c.host, "/"), "", c.fields...)
		if got, _, _ := strings.Cut(r.Header.Get("WWW-Authenticate"), " "); got != c.want || r.StatusCode != 401 {
			t.Errorf("%s: status %d, challenge %q, want %s", c.name, r.StatusCode, r.Header.Get("WWW-Authenticate"), c.want)
		}
	}
}

// A token of a person enters where the person may, as the person, and follows what the
// provider reports.
func TestATokenOfAPersonIsThePerson(t *testing.T) {
	g := startGatedWith(t, tokenProxies)
	if _, _, err := g.house.c.Gate().CreateToken(gate.NewToken{Name: "ann", Person: "ann@example.com"}, false); err == nil {
		t.Error("a person that no provider has identified gets a token")
	}
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann", "chiefs").want(t, 200)
	text := g.token(gate.NewToken{Name: "ann", Person: "ANN@example.com"})
	app := g.browser()
	app.do("GET", g.at("cloud", "/"), "", append(bearer(text), "Remote-User", "eve")...).want(t, 200, "Remote-User: ann@example.com\n", "Remote-Groups: company/chiefs\n")
	app.do("GET", g.at("chiefs", "/"), "", bearer(text)...).want(t, 200)
	app.do("GET", g.at("home", "/"), "", bearer(text)...).want(t, 403)
	// The person leaves a group.
	b2 := g.browser()
	b2.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	app.do("GET", g.at("chiefs", "/"), "", bearer(text)...).want(t, 403)
	// Another issuer under the provider's name has other people.
	g.house = g.house.again()
	app.do("GET", g.at("cloud", "/"), "", bearer(text)...).want(t, 200, "Remote-User: ann@example.com\n", "!Remote-Groups")
}

// Tokens outlive a restart, and end when they are revoked or expire; what runs with them is
// aborted.
func TestARevokedTokenEndsWhatRuns(t *testing.T) {
	g := startGatedWith(t, tokenProxies)
	app := g.browser()
	text := g.token(gate.NewToken{Name: "phone"})
	g.house = g.house.again()
	engine := g.house.c.Gate()
	app.do("GET", g.at("cloud", "/"), "", bearer(text)...).want(t, 200)
	if at, from := engine.TokenNamed("phone").Seen(); at.IsZero() || from.String() != "127.0.0.1" {
		t.Errorf("last use %v from %v", at, from)
	}
	nc, err := tls.Dial("tcp", "127.0.0.1:"+g.port, &tls.Config{InsecureSkipVerify: true, ServerName: "home.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(nc, "GET /api/websocket HTTP/1.1\r\nHost: home.example.com:%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Headgate-Token: %s\r\n\r\n", g.port, text)
	r := bufio.NewReader(nc)
	if rs, err := http.ReadResponse(r, nil); err != nil || rs.StatusCode != 101 {
		t.Fatalf("got %v, %v", rs, err)
	}
	if _, err := io.ReadFull(r, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	if err := engine.RevokeToken("phone", "test", false); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ReadByte(); err == nil {
		t.Error("the tunnel goes on")
	} else if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Error("the tunnel was not cut")
	}
	app.do("GET", g.at("cloud", "/"), "", bearer(text)...).want(t, 401)
	if err := engine.RevokeToken("phone", "test", false); !errors.Is(err, gate.ErrNotFound) {
		t.Errorf("revoked twice: %v", err)
	}
	// Another token of the name has nothing in common with it.
	again := g.token(gate.NewToken{Name: "phone"})
	app.do("GET", g.at("cloud", "/"), "", bearer(text)...).want(t, 401)
	app.do("GET", g.at("cloud", "/"), "", bearer(again)...).want(t, 200)
}

// Nothing that is written has a token in it.
func TestTokensAreNotWritten(t *testing.T) {
	g := startGatedWith(t, tokenProxies)
	app := g.browser()
	text := g.token(gate.NewToken{Name: "phone"})
	app.do("GET", g.at("cloud", "/x?token="+text), "").want(t, 401)
	app.do("GET", g.at("cloud", "/x"), "", bearer(text)...).want(t, 200)
	app.do("GET", g.at("cloud", "/x"), "", bearer(text+"x")...).want(t, 401)
	if log := g.house.log.String(); bytes.Contains([]byte(log), []byte(text[len(gate.TokenPrefix):])) {
		t.Errorf("the log has the token: %s", log)
	}
}
