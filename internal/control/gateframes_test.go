package control

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"headgate/internal/gate"
	"headgate/internal/plan"
)

// framedProxy works in frames of other sites; one of its routes does not mention it.
const framedProxy = `  board:
    virtual_hosts: [board.example.com]
    gate: {allow: ["person:ann@example.com"], same_site: none}
    routes:
      - {path: /, strip_prefix: false, servers: [{url: "%[4]s"}]}
      - {path: /admin, strip_prefix: false, gate: {allow: ["person:ann@example.com"]}, servers: [{url: "%[4]s"}]}
`

// A cookie that other sites make browsers send is worth nothing for what changes something.
func TestApplicationsInFramesNeedTheirOwnOrigin(t *testing.T) {
	g := startGatedWith(t, framedProxy)
	b := g.browser()
	var set []string
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	code := b.code(g.at("board", "/"))
	entered := b.get(code)
	for _, c := range entered.Header.Values("Set-Cookie") {
		if strings.HasPrefix(c, gate.CookieGate+"=") {
			set = append(set, c)
		}
	}
	if len(set) != 1 || !strings.HasSuffix(set[0], "; Secure; HttpOnly; SameSite=None") {
		t.Fatalf("cookies %q", set)
	}
	own, evil := g.at("board", ""), "https://evil.example"
	upgrade := []string{"Connection", "Upgrade", "Upgrade", "websocket"}
	for _, c := range []struct {
		name, method string
		fields       []string
		status       int
	}{
		{"page in a frame", "GET", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe", "Sec-Fetch-Site", "cross-site"}, 200},
		{"own form", "POST", []string{"Origin", own, "Sec-Fetch-Site", "same-origin"}, 200},
		{"own script", "DELETE", []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"form of another site", "POST", []string{"Origin", evil, "Sec-Fetch-Site", "cross-site"}, 403},
		{"form of a sibling", "POST", []string{"Origin", g.at("wiki", ""), "Sec-Fetch-Site", "same-site"}, 403},
		{"form without an origin", "POST", nil, 403},
		{"opaque origin", "POST", []string{"Origin", "null"}, 403},
		{"two origins", "POST", []string{"Origin", evil, "Origin", own}, 403},
		{"PUT of another site", "PUT", []string{"Origin", evil}, 403},
		{"WebSocket of another site", "GET", append([]string{"Origin", evil}, upgrade...), 403},
		{"WebSocket without an origin", "GET", upgrade, 403},
		{"own WebSocket", "GET", append([]string{"Origin", own}, upgrade...), 101},
	} {
		for _, path := range []string{"/x", "/admin/x"} { // both routes have the same cookie
			r := b.shake(c.method, g.at("board", path), c.fields...)
			if r.StatusCode != c.status {
				t.Errorf("%s %s: status %d, want %d", c.name, path, r.StatusCode, c.status)
			}
		}
	}
	// Other proxies keep SameSite=Lax, and need no Origin.
	b.forget("wiki")
	for _, c := range b.get(b.code(g.at("wiki", "/"))).Header.Values("Set-Cookie") {
		if strings.HasPrefix(c, gate.CookieGate+"=") && !strings.HasSuffix(c, "SameSite=Lax") {
			t.Errorf("cookie of another proxy: %q", c)
		}
	}
	b.do("POST", g.at("wiki", "/x"), "").want(t, 200)
}

// shake is do for responses that may switch protocols.
func (b *browser) shake(method, address string, fields ...string) *http.Response {
	b.t.Helper()
	rq, err := http.NewRequest(method, address, http.NoBody)
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		rq.Header.Add(fields[i], fields[i+1])
	}
	rs, err := b.client.Do(rq)
	if err != nil {
		b.t.Fatal(err)
	}
	rs.Body.Close()
	return rs
}

// An explanation says which cookie a person has, when the session is checked, and whether
// same_site lets the request pass.
func TestAnExplanationDescribesTheSession(t *testing.T) {
	g := startGatedWith(t, framedProxy)
	g.browser().signIn(g.at("wiki", "/"), "ann").want(t, 200)
	for _, c := range []struct {
		method, address string
		in              bool
		rule, session   string
	}{
		{"GET", g.at("wiki", "/"), true, "allow has person:ann@example.com", "SameSite=Lax; if there is a refresh token, the session is checked with provider company every 1h, and continues for 24h"},
		{"GET", g.at("board", "/"), true, "allow has person:ann@example.com", "SameSite=None"},
		{"POST", g.at("board", "/"), false, "same_site is none", "SameSite=None"},
		{"GET", g.at("chiefs", "/"), false, "no entry of allow", "SameSite=Lax"},
	} {
		as := g.house.c.Gate().Rehearsal("ann@example.com")
		if as == nil {
			t.Fatal("the person is not known")
		}
		u, err := url.Parse(c.address)
		if err != nil {
			t.Fatal(err)
		}
		e := g.house.c.Plan().Explain(plan.Question{Method: c.method, Scheme: u.Scheme, Authority: u.Host, Target: u.Path, As: as})
		if e.Gate == nil || e.Gate.In != c.in || !strings.Contains(e.Gate.Rule, c.rule) || !strings.Contains(e.Gate.Session, c.session) {
			t.Errorf("%s %s: %+v", c.method, c.address, e.Gate)
		}
		if text := e.Text(); !strings.Contains(text, c.session) || !strings.Contains(text, c.rule) {
			t.Errorf("%s %s: printed is %s", c.method, c.address, text)
		}
	}
}
