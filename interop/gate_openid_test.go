package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// openID is a running provider: the certified implementation of Zitadel, with the groups that a
// person has. Its refresh tokens are valid once.
type openID struct {
	*storage.Storage
	issuer    string
	refreshes atomic.Int32

	mu     sync.Mutex
	groups []string
	asked  []url.Values // parameters of authorization requests
	codes  []url.Values // parameters of requests for tokens with a code
}

const (
	openIDClient = "headgate"
	openIDSecret = "secret of headgate"
	openIDUser   = "id1" // the subject of the person in the provider's store
)

func startOpenID(t *testing.T, redirect string) *openID {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	p := &openID{issuer: "http://localhost:" + port, groups: []string{"staff"}}
	p.Storage = storage.NewStorageWithClients(storage.NewUserStore(p.issuer), map[string]*storage.Client{openIDClient: storage.WebClient(openIDClient, openIDSecret, redirect)})
	router := exampleop.SetupServer(p.issuer, p, slog.New(slog.DiscardHandler), false)
	server := &httptest.Server{Listener: l, Config: &http.Server{Handler: p.observed(router)}}
	server.Start()
	t.Cleanup(server.Close)
	return p
}

// SetUserinfoFromRequest adds the groups to ID tokens.
func (p *openID) SetUserinfoFromRequest(ctx context.Context, info *oidc.UserInfo, rq op.IDTokenRequest, scopes []string) error {
	p.addGroups(info)
	return p.Storage.SetUserinfoFromRequest(ctx, info, rq, scopes)
}

// SetUserinfoFromToken adds them to the response of the user info endpoint.
func (p *openID) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, token, subject, origin string) error {
	p.addGroups(info)
	return p.Storage.SetUserinfoFromToken(ctx, info, token, subject, origin)
}

func (p *openID) addGroups(info *oidc.UserInfo) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info.AppendClaims("groups", p.groups)
}

func (p *openID) setGroups(groups ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups = groups
}

// observed notes what is requested, and reports a lifetime of refresh tokens as Keycloak does, so
// that sessions are checked within seconds.
func (p *openID) observed(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if rq.URL.Path == "/auth" {
			p.mu.Lock()
			p.asked = append(p.asked, rq.URL.Query())
			p.mu.Unlock()
		}
		if rq.URL.Path != "/oauth/token" {
			next.ServeHTTP(w, rq)
			return
		}
		body, _ := io.ReadAll(rq.Body)
		rq.Body = io.NopCloser(bytes.NewReader(body))
		form, _ := url.ParseQuery(string(body))
		if form.Get("grant_type") == "refresh_token" {
			p.refreshes.Add(1)
		} else {
			p.mu.Lock()
			p.codes = append(p.codes, form)
			p.mu.Unlock()
		}
		made := httptest.NewRecorder()
		next.ServeHTTP(made, rq)
		out := map[string]any{}
		if json.Unmarshal(made.Body.Bytes(), &out) == nil && made.Code == http.StatusOK {
			out["refresh_expires_in"] = 2
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(made.Code)
		json.NewEncoder(w).Encode(out)
	})
}

// browser is a web browser that reaches hosts of example.com at this machine.
type browser struct {
	t      *testing.T
	client *http.Client
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		_, port, _ := net.SplitHostPort(address)
		return new(net.Dialer).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
	}}
	return &browser{t, &http.Client{Jar: jar, Timeout: patience, Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// page is what a person sees.
type page struct {
	address, text string
	status        int
}

// send sends one request as a person's browser does.
func (v *browser) send(method, address string, form url.Values) (p page, next string) {
	v.t.Helper()
	rq, err := http.NewRequestWithContext(within(v.t), method, address, strings.NewReader(form.Encode()))
	if err != nil {
		v.t.Fatal(err)
	}
	rq.Header.Set("Accept", "text/html")
	rq.Header.Set("Accept-Language", "en")
	rq.Header.Set("Sec-Fetch-Mode", "navigate")
	if method == "POST" {
		rq.Header.Set("Origin", rq.URL.Scheme+"://"+rq.URL.Host)
		rq.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	rs, err := v.client.Do(rq)
	if err != nil {
		v.t.Fatal(err)
	}
	defer rs.Body.Close()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	p = page{address, string(text), rs.StatusCode}
	if to := rs.Header.Get("Location"); to != "" {
		return p, resolve(address, to)
	}
	if m := pageRefresh.FindStringSubmatch(p.text); m != nil {
		return p, resolve(address, m[1])
	}
	return p, ""
}

// open opens a page and follows where it leads.
func (v *browser) open(address string) page {
	v.t.Helper()
	p, next := v.send("GET", address, nil)
	return v.follow(p, next)
}

func (v *browser) follow(p page, next string) page {
	v.t.Helper()
	for range 15 {
		if next == "" {
			return p
		}
		p, next = v.send("GET", next, nil)
	}
	v.t.Fatalf("the redirects do not end: %s", p.address)
	return p
}

var (
	openIDButton = regexp.MustCompile(`class="button" href="(/start/[^"]*)"`)
	openIDForm   = regexp.MustCompile(`name="id" value="([^"]*)"`)
)

// signIn goes through the sign-in page and the provider's form.
func (v *browser) signIn(address string) page {
	v.t.Helper()
	p := v.open(address)
	m := openIDButton.FindStringSubmatch(p.text)
	if m == nil {
		v.t.Fatalf("no button of the provider at %s: %s", p.address, p.text)
	}
	form := v.open(resolve(p.address, m[1]))
	id := openIDForm.FindStringSubmatch(form.text)
	if id == nil {
		v.t.Fatalf("no form of the provider at %s: status %d, %s", form.address, form.status, form.text)
	}
	return v.follow(v.send("POST", resolve(form.address, "/login/username"), url.Values{"id": {id[1]}, "username": {"test-user@localhost"}, "password": {"verysecure"}}))
}

// becomes opens a page until it has a status.
func (v *browser) becomes(address string, status int) page {
	v.t.Helper()
	for end := time.Now().Add(patience); ; {
		p, _ := v.send("GET", address, nil)
		if p.status == status {
			return p
		}
		if time.Now().After(end) {
			v.t.Fatalf("%s: status %d, want %d; %s", address, p.status, status, p.text)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestARealProviderSignsPeopleIn runs the whole life of a sign-in with a second provider: the code
// flow with PKCE and nonce, groups, refresh tokens that are valid once, revocation and signing out.
func TestARealProviderSignsPeopleIn(t *testing.T) {
	t.Parallel()
	address := free(t)
	_, port, _ := net.SplitHostPort(address)
	login, wiki := "https://login.example.com:"+port, "https://wiki.example.com:"+port
	p := startOpenID(t, login+"/callback/company")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		fmt.Fprintf(w, "user %s, e-mail %s, groups %s", rq.Header.Get("Remote-User"), rq.Header.Get("Remote-Email"), rq.Header.Get("Remote-Groups"))
	}))
	t.Cleanup(server.Close)
	g := start(t, fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {secure: {address: %q, protocol: https}}
sign_in:
  providers:
    company: {issuer: %q, client_id: %q, client_secret: %q, scopes: [profile, email, offline_access]}
proxies:
  login: {virtual_hosts: [login.example.com], routes: [{path: /, sign_in: {}}]}
  wiki:
    virtual_hosts: [wiki.example.com]
    gate: {allow: [group:company/staff]}
    routes: [{servers: [{url: %q}]}]
`, address, p.issuer, openIDClient, openIDSecret, server.URL))

	v := newBrowser(t)
	const staff = "user test-user@zitadel.ch, e-mail test-user@zitadel.ch, groups company/staff"
	if got := v.signIn(wiki + "/page"); got.status != http.StatusOK || got.text != staff || got.address != wiki+"/page" {
		t.Fatalf("signed in: status %d at %s, %s", got.status, got.address, got.text)
	}
	p.checkRequests(t)

	// Groups follow the provider, in both directions; each check uses the token of the last one.
	p.setGroups("guests")
	v.becomes(wiki+"/page", http.StatusForbidden)
	p.setGroups("guests", "staff")
	if got := v.becomes(wiki+"/page", http.StatusOK); got.text != staff[:len(staff)-len("company/staff")]+"company/guests,company/staff" {
		t.Errorf("groups after the check: %s", got.text)
	}
	if n := p.refreshes.Load(); n < 2 {
		t.Errorf("%d refreshes", n)
	}
	sessions := g.manager().must(http.StatusOK, "GET", "/gate/sessions", "", "")
	if items, _ := sessions.body["items"].([]any); len(items) != 1 || items[0].(map[string]any)["rechecked"] != true {
		t.Errorf("sessions %v", sessions.body)
	}

	// The provider signs the person out.
	if err := p.TerminateSession(t.Context(), openIDUser, openIDClient); err != nil {
		t.Fatal(err)
	}
	v.becomes(wiki+"/page", http.StatusFound)

	// The person signs out here; nothing signs in again by itself.
	if got := v.signIn(wiki + "/page"); got.status != http.StatusOK {
		t.Fatalf("signed in again: status %d, %s", got.status, got.text)
	}
	if got, _ := v.send("POST", wiki+"/.headgate/sign-out", nil); got.status != http.StatusOK || !strings.Contains(got.text, "Signed out") {
		t.Errorf("signed out: status %d, %s", got.status, got.text)
	}
	if got := v.open(wiki + "/page"); !strings.HasPrefix(got.address, login+"/") || !openIDButton.MatchString(got.text) {
		t.Errorf("after signing out: status %d at %s, %s", got.status, got.address, got.text)
	}
	if log := g.log.String(); strings.Contains(log, openIDSecret) {
		t.Error("the log has the client secret")
	}
}

// checkRequests checks what headgate sent to the provider in the first sign-in.
func (p *openID) checkRequests(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.asked) != 1 || len(p.codes) == 0 {
		t.Fatalf("%d authorization requests, %d requests with a code", len(p.asked), len(p.codes))
	}
	q := p.asked[0]
	if q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43 || len(q.Get("nonce")) != 43 || len(q.Get("state")) != 43 {
		t.Errorf("authorization request %v", q)
	}
	if form := p.codes[0]; form.Get("code_verifier") == "" || form.Get("redirect_uri") != q.Get("redirect_uri") {
		t.Errorf("request for tokens %v", form)
	}
}
