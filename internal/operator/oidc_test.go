package operator

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"headgate/internal/credential"
)

// person is somebody whom the provider knows.
func person(name string, groups ...string) *mockoidc.MockUser {
	return &mockoidc.MockUser{Subject: "sub-" + name, PreferredUsername: name, Email: name + "@example.com", EmailVerified: true, Groups: groups}
}

func startProvider(t *testing.T, o *Operators) *mockoidc.MockOIDC {
	t.Helper()
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Shutdown() })
	o.SetOIDC(&OIDC{
		Issuer: m.Issuer(), ClientID: m.Config().ClientID, ClientSecret: m.Config().ClientSecret,
		RedirectURL: "https://127.0.0.1/oidc", Scopes: []string{"profile", "email", "groups"},
		Roles: []OIDCRole{{Claim: "groups", Value: "ops", Role: Editor}, {Claim: "groups", Value: "chiefs", Role: Admin}},
	})
	t.Cleanup(func() { o.SetOIDC(nil) })
	return m
}

// visit goes to the provider as a browser does and returns what it brings back.
func visit(t *testing.T, s OIDCStart) (code, state string) {
	t.Helper()
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	rs, err := client.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	rs.Body.Close()
	back, err := url.Parse(rs.Header.Get("Location"))
	if err != nil || back.Path != "/oidc" {
		t.Fatalf("status %d to %v, %v", rs.StatusCode, back, err)
	}
	return back.Query().Get("code"), back.Query().Get("state")
}

func startSignIn(t *testing.T, o *Operators) (OIDCStart, OIDCFinish) {
	t.Helper()
	s, err := o.BeginOIDC(t.Context(), Anonymous(netip.Addr{}, "console"))
	if err != nil {
		t.Fatal(err)
	}
	c, state := visit(t, s)
	if state != s.State {
		t.Fatalf("state %q, want %q", state, s.State)
	}
	return s, OIDCFinish{Code: c, State: state, Browser: s.Browser}
}

func TestOIDCSignInGivesTheHighestRole(t *testing.T) {
	o, _, _ := open(t)
	m := startProvider(t, o)
	m.QueueUser(person("Ann", "ops", "chiefs"))
	_, in := startSignIn(t, o)
	c, err := o.FinishOIDC(t.Context(), here, in)
	if err != nil {
		t.Fatal(err)
	}
	who, err := o.BySession(t.Context(), c.Cookie, c.Header, home)
	if err != nil || who.Name != "oidc:ann" || who.Role != Admin {
		t.Errorf("got %+v, %v", who, err)
	}
	if _, err := o.FinishOIDC(t.Context(), here, in); code(err) != CodeSignedOut {
		t.Errorf("the same code again: %v", err)
	}
}

func TestOIDCRefusals(t *testing.T) {
	o, _, _ := open(t)
	m := startProvider(t, o)
	m.QueueUser(person("bob", "sales"))
	_, in := startSignIn(t, o)
	if _, err := o.FinishOIDC(t.Context(), here, in); code(err) != CodeForbidden {
		t.Errorf("without a role: %v", err)
	}

	m.QueueUser(person("ann", "ops"))
	_, in = startSignIn(t, o)
	stolen := in
	stolen.Browser = credential.NewSecret()
	if _, err := o.FinishOIDC(t.Context(), here, stolen); code(err) != CodeSignedOut {
		t.Errorf("in another browser: %v", err)
	}

	// A code that was made for one sign-in is brought to another: the verifier and the
	// nonce do not fit.
	m.QueueUser(person("ann", "ops"))
	m.QueueUser(person("eve", "ops"))
	_, one := startSignIn(t, o)
	_, two := startSignIn(t, o)
	one.Code = two.Code
	if _, err := o.FinishOIDC(t.Context(), here, one); code(err) != CodeProvider {
		t.Errorf("an injected code: %v", err)
	}

	o.SetOIDC(nil)
	if _, err := o.BeginOIDC(t.Context(), here); code(err) != CodeNotFound {
		t.Errorf("without a provider: %v", err)
	}
	o.SetOIDC(&OIDC{Issuer: "http://169.254.169.254/"})
	if _, err := o.BeginOIDC(t.Context(), here); code(err) != CodeProvider {
		t.Errorf("at a metadata address: %v", err)
	}
}

// Whoever came through a provider is signed out when it goes, or gives other roles, and
// not by a change of its secret.
func TestOIDCSessionsEndWithTheirProvider(t *testing.T) {
	for name, v := range map[string]struct {
		change func(*OIDC) *OIDC
		ends   bool
	}{
		"gone":         {func(*OIDC) *OIDC { return nil }, true},
		"other roles":  {func(c *OIDC) *OIDC { c.Roles = c.Roles[:1]; return c }, true},
		"other issuer": {func(c *OIDC) *OIDC { c.Issuer = "https://login.example.com"; return c }, true},
		"other secret": {func(c *OIDC) *OIDC { c.ClientSecret = "new"; return c }, false},
	} {
		o, s, _ := open(t)
		m := startProvider(t, o)
		m.QueueUser(person("ann", "chiefs"))
		_, in := startSignIn(t, o)
		c, err := o.FinishOIDC(t.Context(), here, in)
		if err != nil {
			t.Fatal(err)
		}
		config := *o.oidc.mu.config
		// After a restart nobody is let in before the provider is known.
		again := New(Options{Store: s, Log: o.log})
		if _, err := again.BySession(t.Context(), c.Cookie, c.Header, home); code(err) != CodeOverloaded {
			t.Errorf("%s: before the provider is known: %v", name, err)
		}
		o.SetOIDC(v.change(&config))
		_, err = o.BySession(t.Context(), c.Cookie, c.Header, home)
		if ended := code(err) == CodeSignedOut; ended != v.ends || err != nil && !ended {
			t.Errorf("%s: got %v, want an end: %v", name, err, v.ends)
		}
		if all, err := o.Sessions(t.Context(), ""); err != nil || (len(all) == 0) != v.ends {
			t.Errorf("%s: sessions %v, %v", name, all, err)
		}
	}
}

// An email address gives a role and a name only if the provider says that it is verified.
// Some say so in a text.
func TestUnverifiedEmailCountsForNothing(t *testing.T) {
	c := OIDC{Roles: []OIDCRole{{Claim: "email", Value: "ann@example.com", Role: Admin}, {Claim: "groups", Value: "staff", Role: Viewer}}}
	for _, v := range []struct {
		verified any
		counts   bool
	}{{true, true}, {"true", true}, {nil, false}, {false, false}, {"false", false}, {"", false}, {float64(0), false}, {"none", false}} {
		claims := map[string]any{"sub": "s1", "email": "ann@example.com", "groups": []any{"staff"}, "email_verified": v.verified}
		if v.verified == "none" {
			delete(claims, "email_verified")
		}
		name, role := "s1", Viewer
		if v.counts {
			name, role = "ann@example.com", Admin
		}
		if dropUnverified(claims); c.name(claims) != name || c.role(claims) != role {
			t.Errorf("email_verified %v: got %s with %s, want %s with %s", v.verified, c.name(claims), c.role(claims), name, role)
		}
	}
}

// What a provider answers is read up to a bound, and logged up to a lesser one.
func TestOIDCAnswersAreBounded(t *testing.T) {
	for name, answer := range map[string]func(w http.ResponseWriter, issuer string){
		"long configuration": func(w http.ResponseWriter, issuer string) {
			io.WriteString(w, strings.Repeat(" ", maxProvider)+`{"issuer":"`+issuer+`"}`)
		},
		"long error": func(w http.ResponseWriter, _ string) {
			w.WriteHeader(500)
			io.WriteString(w, strings.Repeat("x\x1b[2J\n", maxProvider/8))
		},
	} {
		var issuer string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, issuer) }))
		t.Cleanup(server.Close)
		issuer = server.URL
		o, _, _ := open(t)
		var log bytes.Buffer
		o.log = slog.New(slog.NewTextHandler(&log, nil))
		o.SetOIDC(&OIDC{Issuer: issuer})
		t.Cleanup(func() { o.SetOIDC(nil) })
		if _, err := o.BeginOIDC(t.Context(), here); code(err) != CodeProvider {
			t.Errorf("%s: %v", name, err)
		}
		if log.Len() > 2*maxTrouble || strings.Contains(log.String(), "x1b") {
			t.Errorf("%s: the log has %d bytes: %.300s", name, log.Len(), &log)
		}
	}
}

func TestClaims(t *testing.T) {
	claims := map[string]any{
		"groups": []any{"a", "b"}, "admin": true, "no": false, "level": float64(3), "realm": map[string]any{"roles": []any{"x"}},
		"https://example.com/role": "y", "email": "Ann@Example.com", "bad": "with space",
	}
	for _, c := range []struct {
		claim, value string
		want         bool
	}{
		{"groups", "b", true}, {"groups", "c", false}, {"groups", "", true}, {"admin", "", true}, {"no", "", false}, {"no", "false", false},
		{"level", "3", true}, {"realm.roles", "x", true}, {"realm.roles", "z", false}, {"realm.none", "x", false},
		{"https://example.com/role", "y", true}, {"missing", "", false},
	} {
		if got := has(find(claims, c.claim), c.value); got != c.want {
			t.Errorf("%s=%s: got %v", c.claim, c.value, got)
		}
	}
	if got := (&OIDC{}).name(claims); got != "ann@example.com" {
		t.Errorf("got %q", got)
	}
	if got := (&OIDC{NameClaim: "bad"}).name(claims); got != "" {
		t.Errorf("got %q", got)
	}
}

// One address that begins to sign in again and again keeps nobody else from it.
func TestOneAddressDoesNotFillThePendingSignIns(t *testing.T) {
	config := &OIDC{}
	p := &provider{}
	p.mu.config, p.mu.pending = config, map[string]pending{}
	until := time.Now().Add(time.Hour)
	from := func(address string) pending {
		until = until.Add(time.Second)
		return pending{from: networkOf(netip.MustParseAddr(address)), until: until}
	}
	for i := range 2 * maxPending {
		if !p.remember(config, fmt.Sprint("own ", i), from(fmt.Sprintf("2001:db8::%x", i))) {
			t.Fatalf("sign-in %d of one network is refused", i)
		}
	}
	if n := len(p.mu.pending); n != maxPendingOfOne {
		t.Errorf("%d sign-ins of one network are pending, want %d", n, maxPendingOfOne)
	}
	if _, ok := p.mu.pending[fmt.Sprint("own ", 2*maxPending-1)]; !ok || !p.remember(config, "other", from("192.0.2.1")) {
		t.Error("the newest of a network, or one of another address, has no place")
	}
}
