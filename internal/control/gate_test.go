package control

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/oauth2-proxy/mockoidc"

	"headgate/internal/testhouse"
)

// gated is a running headgate with a sign-in page, an OpenID Connect provider and an
// application that shows the head of each request that it gets.
type gated struct {
	*house
	t        *testing.T
	provider *mockoidc.MockOIDC
	port     string
	plain    string
	app      *httptest.Server
}

// gatedConfig is the configuration of gated; %[1]s is the https port, %[2]s the http port,
// %[3]s the issuer, %[4]s the application. More is added to the proxy wiki.
const gatedConfig = `version: 1
ports:
  web: {address: "127.0.0.1:%[2]s", protocol: http}
  websecure: {address: "127.0.0.1:%[1]s", protocol: https}
sign_in:
  providers:
    company: {issuer: "%[3]s", client_id: "%[5]s", client_secret: "%[6]s", scopes: [profile, email, groups]}
proxies:
  login:
    virtual_hosts: [login.example.com]
    routes: [{path: /, sign_in: {title: Example}}]
  wiki:
    virtual_hosts: [wiki.example.com]
    gate: {allow: [group:company/staff, "person:ann@example.com"]}
    routes:
      - {path: /, strip_prefix: false, servers: [{url: "%[4]s"}]}
      - {path: /public, strip_prefix: false, gate: {enabled: false}, servers: [{url: "%[4]s"}]}
      - {path: /home, strip_prefix: false, gate: {allow: [group:company/staff], from: [127.0.0.1]}, servers: [{url: "%[4]s"}]}
  chiefs:
    virtual_hosts: [chiefs.example.com]
    gate: {allow: [group:company/chiefs]}
    routes: [{path: /, servers: [{url: "%[4]s"}]}]
  any:
    virtual_hosts: ["*.apps.example.com"]
    gate: {allow: [domain:example.com]}
    routes: [{path: /, servers: [{url: "%[4]s"}]}]
  open:
    virtual_hosts: [open.example.com]
    routes: [{path: /, servers: [{url: "%[4]s"}]}]
`

func startGated(t *testing.T) *gated {
	t.Helper()
	return startGatedWith(t, "")
}

// startGatedWith adds proxies to the configuration; %[4]s is the application.
func startGatedWith(t *testing.T, more string) *gated {
	t.Helper()
	m, err := mockoidc.Run()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Shutdown() })
	app := httptest.NewServer(http.HandlerFunc(show))
	t.Cleanup(app.Close)
	numbers := testhouse.Ports(t, 2)
	g := &gated{t: t, provider: m, port: numbers[0], plain: numbers[1], app: app}
	g.house = start(t, g.config(strings.ReplaceAll(more, "%[4]s", app.URL)))
	return g
}

func (g *gated) config(more string) string {
	return fmt.Sprintf(gatedConfig, g.port, g.plain, g.provider.Issuer(), g.app.URL, g.provider.Config().ClientID, g.provider.Config().ClientSecret) + more
}

// show is an application: it answers with what it gets, streams, and switches protocols.
func show(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Header.Get("Upgrade") != "":
		nc, b, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer nc.Close()
		fmt.Fprintf(nc, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\nhello", r.Header.Get("Upgrade"))
		io.Copy(io.Discard, b)
		return
	case strings.HasSuffix(r.URL.Path, "/events"), strings.HasSuffix(r.URL.Path, "/flood"):
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := io.WriteString(w, "data: tick\n\n"); err != nil {
				return
			}
			w.(http.Flusher).Flush()
			if strings.HasSuffix(r.URL.Path, "/events") {
				<-r.Context().Done()
			}
			if r.Context().Err() != nil {
				return
			}
		}
	case strings.HasSuffix(r.URL.Path, "/wait"):
		<-r.Context().Done() // the head never comes
		return
	case strings.HasSuffix(r.URL.Path, "/public-file"):
		w.Header().Set("Cache-Control", "public, max-age=60, s-maxage=600")
		w.Header().Set("CDN-Cache-Control", "max-age=600")
		w.Header().Set("Surrogate-Control", "max-age=600")
		w.Header().Add("Set-Cookie", "__Host-headgate-gate=evil; Path=/; Secure")
		w.Header().Add("Set-Cookie", "own=1")
	}
	fmt.Fprintf(w, "%s %s\n", r.Method, r.URL.Path)
	for _, name := range []string{"Remote-User", "Remote-Email", "Remote-Name", "Remote-Groups", "remote_user", "Remote_User", "Cookie", "Authorization", "X-Headgate-Token"} {
		for key, values := range r.Header {
			if strings.EqualFold(key, name) && key == http.CanonicalHeaderKey(name) {
				fmt.Fprintf(w, "%s: %s\n", name, strings.Join(values, "|"))
			}
		}
	}
}

// browser is a browser with cookies that reaches every host at the test's ports.
type browser struct {
	*gated
	client *http.Client
}

func (g *gated) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		g.t.Fatal(err)
	}
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		host, port, _ := net.SplitHostPort(address)
		if strings.HasSuffix(host, "example.com") {
			address = net.JoinHostPort("127.0.0.1", port)
		}
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, network, address)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	return &browser{g, &http.Client{
		Transport: transport, Jar: jar, Timeout: 20 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// at returns an address at the https port.
func (g *gated) at(host, path string) string {
	return "https://" + host + ".example.com:" + g.port + path
}

type reply struct {
	*http.Response
	text string
}

func (b *browser) do(method, address, body string, fields ...string) reply {
	b.t.Helper()
	rq, err := http.NewRequest(method, address, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(fields); i += 2 {
		rq.Header.Add(fields[i], fields[i+1])
	}
	if body != "" {
		rq.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	rs, err := b.client.Do(rq)
	if err != nil {
		b.t.Fatal(err)
	}
	defer rs.Body.Close()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{rs, string(text)}
}

// get opens a page as a person does.
func (b *browser) get(address string) reply {
	b.t.Helper()
	return b.do("GET", address, "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document", "Accept-Language", "en")
}

var (
	refresh = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]*)"`)
	button  = regexp.MustCompile(`class="button" href="([^"]*)"`)
)

// next returns where a reply leads to by itself, "" if it does not.
func (r reply) next() string {
	to := r.Header.Get("Location")
	if m := refresh.FindStringSubmatch(r.text); m != nil {
		to = strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(m[1])
	}
	if to == "" {
		return ""
	}
	u, err := r.Request.URL.Parse(to)
	if err != nil {
		return ""
	}
	return u.String()
}

// follow opens a page, and goes where it leads.
func (b *browser) follow(address string) reply {
	b.t.Helper()
	for range 12 {
		r := b.get(address)
		if address = r.next(); address == "" {
			return r
		}
	}
	b.t.Fatal("the way has no end")
	return reply{}
}

// signIn goes to an address and signs in as somebody; it returns where that ends.
func (b *browser) signIn(address, name string, groups ...string) reply {
	b.t.Helper()
	r := b.follow(address)
	m := button.FindStringSubmatch(r.text)
	if m == nil || r.StatusCode != 200 {
		b.t.Fatalf("status %d, no way to sign in in %s", r.StatusCode, r.text)
	}
	b.queue(name, groups...)
	u, err := r.Request.URL.Parse(strings.ReplaceAll(m[1], "&amp;", "&"))
	if err != nil {
		b.t.Fatal(err)
	}
	return b.follow(u.String())
}

// queue has the provider sign somebody in next.
func (g *gated) queue(name string, groups ...string) {
	g.provider.QueueUser(&mockoidc.MockUser{Subject: "sub-" + name, PreferredUsername: name, Email: name + "@example.com", EmailVerified: true, Groups: groups})
}

func (r reply) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if r.StatusCode != status {
		t.Errorf("%s %s: status %d, want %d; %s", r.Request.Method, r.Request.URL, r.StatusCode, status, r.text)
	}
	for _, text := range texts {
		absent, not := strings.CutPrefix(text, "!")
		if strings.Contains(r.text, strings.TrimPrefix(text, "!")) == not {
			t.Errorf("%s %s: got %s, want %q (absent: %v)", r.Request.Method, r.Request.URL, r.text, absent, not)
		}
	}
}

func TestPeopleSignInBeforeAnApplication(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	r := b.signIn(g.at("wiki", "/page?x=1&y=%2F"), "ann")
	r.want(t, 200, "GET /page\n", "Remote-User: ann@example.com\n", "Remote-Email: ann@example.com\n", "!Cookie", "!Remote-Groups")
	if got := r.Request.URL.String(); got != g.at("wiki", "/page?x=1&y=%2F") {
		t.Errorf("came back to %s", got)
	}
	// Another application of the same person needs no other sign-in, and its own rule decides.
	b.follow(g.at("chiefs", "/")).want(t, 403, "No access")
	// Others need their own.
	other := g.browser()
	other.signIn(g.at("wiki", "/"), "bob").want(t, 403, "You may not open wiki.example.com")
	staff := g.browser()
	staff.signIn(g.at("wiki", "/"), "eve", "staff", "other").want(t, 200, "Remote-Groups: company/other,company/staff\n")
	// Signing out ends all sessions of the browser, and nothing signs in by itself.
	b.do("POST", g.at("wiki", "/.headgate/sign-out"), "", "Origin", "https://evil.example.com").want(t, 403)
	b.get(g.at("wiki", "/page")).want(t, 200)
	b.get(g.at("wiki", "/.headgate/sign-out")).want(t, 200, `action="/.headgate/sign-out"`)
	b.do("POST", g.at("wiki", "/.headgate/sign-out"), "", "Origin", g.at("wiki", "")).want(t, 200, "Signed out")
	b.follow(g.at("wiki", "/page")).want(t, 200, "Sign in to open wiki.example.com.")
	staff.get(g.at("wiki", "/")).want(t, 200)
}

// What is reported of people is read after the request, whose memory others have by then.
func TestReportsOfPeopleOutliveTheirRequests(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	b.do("POST", g.at("wiki", "/.headgate/sign-out"), "", "Origin", g.at("wiki", "")).want(t, 200)
	for range 30 {
		b.get(g.at("open", "/"+strings.Repeat("another/", 10)))
	}
	g.seen.mu.Lock()
	defer g.seen.mu.Unlock()
	if len(g.seen.people) != 2 {
		t.Fatalf("reported: %+v", g.seen.people)
	}
	for _, e := range g.seen.people {
		if e.Provider != "company" || e.Person != "company/sub-ann" {
			t.Errorf("reported: %+v", e)
		}
	}
}

func TestHowClientsWithoutASessionAreAnswered(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	for _, c := range []struct {
		name, method, url string
		fields            []string
		status            int
		text              string
	}{
		{"page", "GET", g.at("wiki", "/"), []string{"Accept", "text/html"}, 302, ""},
		{"script", "GET", g.at("wiki", "/"), []string{"Accept", "text/html", "Sec-Fetch-Mode", "cors"}, 401, `"code":"auth_required"`},
		{"program", "GET", g.at("wiki", "/api"), []string{"Accept", "*/*"}, 401, `"sign_in_url":"` + g.at("login", "/?to=")},
		{"post", "POST", g.at("wiki", "/api"), []string{"Accept", "application/json"}, 401, `"status":401`},
		{"form", "POST", g.at("wiki", "/api"), []string{"Sec-Fetch-Mode", "navigate"}, 401, "Sign in to open"},
		{"frame", "GET", g.at("wiki", "/"), []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 401, `target="_blank"`},
		{"WebSocket", "GET", g.at("wiki", "/"), []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 401, `"code":"auth_required"`},
		{"preflight", "OPTIONS", g.at("wiki", "/"), []string{"Origin", "https://evil.example.com", "Access-Control-Request-Method", "GET"}, 401, ""},
		{"off", "GET", g.at("wiki", "/public/x"), []string{"Remote-User", "ann", "Remote_Groups", "x"}, 200, "GET /public/x\n"},
		{"address", "GET", g.at("wiki", "/home"), []string{"remote-user", "ann"}, 200, "GET /home\n"},
		{"other spelling", "GET", g.at("wiki", "/public/..%2fadmin"), nil, 400, ""},
		{"own path", "GET", g.at("wiki", "/.headgate/other"), nil, 404, ""},
		{"no code", "GET", g.at("wiki", "/.headgate/enter"), []string{"Accept", "text/html"}, 403, "Signing in failed"},
		{"ungated host", "GET", g.at("open", "/.headgate/enter"), nil, 200, "GET /.headgate/enter"},
		{"plain page", "GET", "http://wiki.example.com:" + g.plain + "/x?y", []string{"Accept", "text/html"}, 302, ""},
		{"plain program", "GET", "http://wiki.example.com:" + g.plain + "/x", nil, 403, `"code":"gate_needs_https"`},
		{"plain enter", "GET", "http://wiki.example.com:" + g.plain + "/.headgate/enter?code=x", nil, 403, `"code":"gate_needs_https"`},
	} {
		r := b.do(c.method, c.url, "", c.fields...)
		if r.StatusCode != c.status || !strings.Contains(r.text, c.text) || strings.Contains(strings.ToLower(r.text), "\nremote") {
			t.Errorf("%s: status %d, want %d; %s", c.name, r.StatusCode, c.status, r.text)
		}
		if cached := r.Header.Get("Cache-Control"); c.status >= 300 && c.status < 400 && cached != "no-store" || (c.status == 401 || c.status == 403) && cached != "no-store" {
			t.Errorf("%s: Cache-Control %q", c.name, cached)
		}
		if c.status == 401 && r.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: a 401 without a challenge", c.name)
		}
		if c.name == "plain page" && r.Header.Get("Location") != g.at("wiki", "/x?y") {
			t.Errorf("%s: leads to %s", c.name, r.Header.Get("Location"))
		}
	}
}

func TestResponsesBehindAGateAreForOnePerson(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	r := b.get(g.at("wiki", "/public-file"))
	if got := r.Header.Get("Cache-Control"); got != "private, max-age=60" {
		t.Errorf("Cache-Control %q", got)
	}
	for _, name := range []string{"CDN-Cache-Control", "Surrogate-Control"} {
		if r.Header.Get(name) != "" {
			t.Errorf("%s: %s", name, r.Header.Get(name))
		}
	}
	if got := r.Header.Values("Set-Cookie"); len(got) != 1 || got[0] != "own=1" {
		t.Errorf("cookies of the server: %q", got)
	}
	if got := b.get(g.at("wiki", "/x")).Header.Get("Cache-Control"); got != "private" {
		t.Errorf("without a field of the server: %q", got)
	}
}

func TestOnAWildcardPeopleAreAskedFirst(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	r := b.signIn(g.at("a.apps", "/x"), "ann")
	r.want(t, 200, "Continue to a.apps.example.com?")
	form := url.Values{}
	for _, m := range regexp.MustCompile(`name="(\w+)" value="([^"]*)"`).FindAllStringSubmatch(r.text, -1) {
		form.Set(m[1], strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(m[2]))
	}
	b.do("POST", g.at("login", "/continue"), form.Encode(), "Origin", "https://evil.example.com").want(t, 403)
	after := b.do("POST", g.at("login", "/continue"), form.Encode(), "Origin", g.at("login", ""))
	b.follow(after.next()).want(t, 200, "GET /x\n", "Remote-User: ann@example.com")
}

func TestSessionsOutliveARestart(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	g.house = g.house.again()
	b.get(g.at("wiki", "/y")).want(t, 200, "GET /y\n", "Remote-User: ann@example.com")
}

// A change of the configuration compares the provider of each session with those in use.
func TestSessionsOutliveAChange(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	b.get(g.at("wiki", "/a/longer/path/than/that/of/the/callback")).want(t, 200)
	g.house.apply(g.config("# changed\n"))
	b.get(g.at("wiki", "/y")).want(t, 200, "GET /y\n", "Remote-User: ann@example.com")
}

func TestAWebSocketEndsWithItsSession(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	nc, err := tls.Dial("tcp", "127.0.0.1:"+g.port, &tls.Config{InsecureSkipVerify: true, ServerName: "wiki.example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	u, _ := url.Parse(g.at("wiki", "/"))
	var cookie string
	for _, c := range b.client.Jar.Cookies(u) {
		cookie += "; " + c.Name + "=" + c.Value
	}
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(nc, "GET / HTTP/1.1\r\nHost: wiki.example.com:%s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nCookie: %s\r\n\r\n", g.port, strings.TrimPrefix(cookie, "; "))
	r := bufio.NewReader(nc)
	rs, err := http.ReadResponse(r, nil)
	if err != nil || rs.StatusCode != 101 {
		t.Fatalf("got %v, %v", rs, err)
	}
	hello := make([]byte, 5)
	if _, err := io.ReadFull(r, hello); err != nil || string(hello) != "hello" {
		t.Fatalf("got %q, %v", hello, err)
	}
	b.do("POST", g.at("wiki", "/.headgate/sign-out"), "", "Origin", g.at("wiki", "")).want(t, 200)
	if _, err := r.ReadByte(); err == nil {
		t.Error("the tunnel goes on")
	} else if e, ok := err.(net.Error); ok && e.Timeout() {
		t.Error("the tunnel was not cut")
	}
}

// A stream of events, one that never pauses, and a request whose response never comes end
// with the session.
func TestLongExchangesEndWithTheirSession(t *testing.T) {
	g := startGated(t)
	b := g.browser()
	b.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	ended := make(chan string, 3)
	began := make(chan string, 3)
	for _, path := range []string{"/events", "/flood", "/wait"} {
		go func() {
			rq, _ := http.NewRequest("GET", g.at("wiki", path), nil)
			client := *b.client
			client.Timeout = 0
			if path == "/wait" {
				began <- path
			}
			rs, err := client.Do(rq)
			if err == nil {
				one := make([]byte, 4)
				if _, err = io.ReadFull(rs.Body, one); err == nil && path != "/wait" {
					began <- path
				}
				io.Copy(io.Discard, rs.Body)
				rs.Body.Close()
			}
			ended <- path
		}()
	}
	for range 3 {
		<-began
	}
	b.do("POST", g.at("wiki", "/.headgate/sign-out"), "", "Origin", g.at("wiki", "")).want(t, 200)
	timer := time.NewTimer(30 * time.Second)
	defer timer.Stop()
	for n := range 3 {
		select {
		case <-ended:
		case <-timer.C:
			t.Fatalf("%d of 3 exchanges have ended", n)
		}
	}
}
