package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/net/webdav"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// gated is a headgate with one application behind a gate, which lets in tokens.
type gated struct {
	*gate
	id      *identity
	address string // of the https port
	port    string
}

// startGatedApp runs headgate before an application. Settings are those of the gate, after allow.
func startGatedApp(t *testing.T, host, settings, server string) *gated {
	t.Helper()
	id := newIdentity(t, host+".example.com", "login.example.com")
	g := &gated{gate: prepare(t), id: id, address: free(t)}
	_, g.port, _ = net.SplitHostPort(g.address)
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	g.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {path: stdout}
ports: {secure: {address: %q, protocol: https}}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
sign_in: {local: true}
proxies:
  login: {virtual_hosts: [login.example.com], routes: [{path: /, sign_in: {}}]}
  app:
    virtual_hosts: [%s.example.com]
    gate: {allow: ["token:app"]%s}
    routes: [{servers: [{url: %q}]}]
`, g.address, host, settings, server))
	return g
}

// token creates the token that the gate lets in.
func (g *gated) token() string {
	g.t.Helper()
	made := g.manager().must(http.StatusCreated, "POST", "/gate/tokens", `{"name": "app"}`, "")
	text, _ := made.body["token"].(string)
	if !strings.HasPrefix(text, "hgt_") {
		g.t.Fatalf("token %v", made.body)
	}
	return text
}

// kept checks that the token is in no log of headgate.
func (g *gated) kept(token string) {
	g.t.Helper()
	if strings.Contains(g.log.String()+g.out.String(), token) {
		g.t.Error("the token is in a log")
	}
}

// client returns a client that reaches all hosts at the https port.
func (g *gated) client() *http.Client {
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: g.id.pool}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, g.address)
	}}
	g.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// appCall is one request of an application's client.
type appCall struct {
	method, path string
	fields       map[string]string
	body         string
}

// do sends a request, and returns the status and the body.
func (g *gated) do(client *http.Client, host string, c appCall) (int, string, http.Header) {
	g.t.Helper()
	rq, err := http.NewRequest(c.method, "https://"+host+".example.com:"+g.port+c.path, strings.NewReader(c.body))
	if err != nil {
		g.t.Fatal(err)
	}
	for name, value := range c.fields {
		rq.Header.Set(name, value)
	}
	rs, err := client.Do(rq)
	if err != nil {
		g.t.Fatal(err)
	}
	defer rs.Body.Close()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return rs.StatusCode, string(text), rs.Header
}

// A sign-in page that browsers cannot reach is an issue of its proxy, and one that they can is none.
func TestTheSignInPageIsTested(t *testing.T) {
	t.Parallel()
	for _, trusted := range []bool{true, false} {
		t.Run(fmt.Sprintf("trusted=%v", trusted), func(t *testing.T) {
			t.Parallel()
			id, address := newIdentity(t), free(t)
			g := prepare(t)
			g.put("cert.pem", id.cert)
			g.put("key.pem", id.key)
			if trusted {
				g.env = append(g.env, "SSL_CERT_FILE="+filepath.Join(g.dir, "cert.pem"))
			}
			config := fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {path: stdout}
ports: {secure: {address: %q, protocol: https}}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
sign_in: {local: true}
proxies:
  login: {virtual_hosts: [localhost], routes: [{path: /, sign_in: {}}]}
`, address)
			g.start(config)
			issue := func() string {
				found := g.manager().must(http.StatusOK, "GET", "/summary", "", "").body["attention"].([]any)
				for _, one := range found {
					if p := one.(map[string]any); p["name"] == "login" {
						return fmt.Sprint(p["issues"])
					}
				}
				return ""
			}
			if trusted {
				eventually(t, "a successful self-test", func() bool { return strings.Contains(g.out.String(), "/self-test/") })
				if found := issue(); found != "" || !strings.Contains(g.out.String(), `"status":200`) {
					t.Errorf("%s\n%s", found, g.out)
				}
				return
			}
			eventually(t, "the issue", func() bool { return issue() != "" })
			if found := issue(); !strings.Contains(found, "the sign-in page cannot be reached: https://localhost:") || !strings.Contains(found, "certificate signed by unknown authority") {
				t.Error(found)
			}
			g.put("headgate.yaml", strings.Replace(config, "local: true", "local: true, self_test: false", 1))
			eventually(t, "no issue without the test", func() bool { return issue() == "" })
		})
	}
}

func basic(user, password string) string {
	rq := http.Request{Header: http.Header{}}
	rq.SetBasicAuth(user, password)
	return rq.Header.Get("Authorization")
}

// A gRPC stream that was let in with a token is cut within two seconds when the token is revoked,
// and the connection carries other calls on.
func TestAGRPCStreamEndsWithItsToken(t *testing.T) {
	t.Parallel()
	server, service := grpcServer(t, "tcp", "127.0.0.1:0", nil)
	g := startGatedApp(t, "rpc", "", "h2c://"+server)
	token := g.token()
	cc, err := grpc.NewClient("passthrough:///"+g.address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{RootCAs: g.id.pool, ServerName: "rpc.example.com"})), grpc.WithAuthority("rpc.example.com"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cc.Close() })
	client := pb.NewTestServiceClient(cc)
	if _, err := client.UnaryCall(within(t), &pb.SimpleRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call without the token: %v", err)
	}
	as := metadata.AppendToOutgoingContext(within(t), "authorization", "Bearer "+token)
	stream, err := client.FullDuplexCall(as)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := stream.Send(&pb.StreamingOutputCallRequest{Payload: text(100)}); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
	}
	revoked := time.Now()
	g.manager().must(http.StatusNoContent, "DELETE", "/gate/tokens/app", "", "")
	if _, err := stream.Recv(); err == nil || status.Code(err) == codes.DeadlineExceeded {
		t.Fatalf("the stream goes on: %v", err)
	}
	t.Logf("the stream was cut %v after the token was revoked", time.Since(revoked))
	hears(t, service.parted)
	if _, err := client.UnaryCall(as, &pb.SimpleRequest{}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a call with the revoked token: %v", err)
	}
	g.kept(token)
}

// The real git clones and pushes with a token as the password.
func TestGitPassesAGate(t *testing.T) {
	t.Parallel()
	binary, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	root := t.TempDir()
	git := func(dir string, fields []string, words ...string) (string, error) {
		cmd := exec.CommandContext(within(t), binary, words...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), append([]string{"HOME=" + root, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true",
			"GIT_AUTHOR_NAME=Ann", "GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com"}, fields...)...)
		cmd.WaitDelay = patience // its helpers may outlive it
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	must := func(dir string, words ...string) {
		t.Helper()
		if out, err := git(dir, nil, words...); err != nil {
			t.Fatalf("git %q: %v\n%s", words, err, out)
		}
	}
	must(root, "init", "--bare", "repos/notes.git")
	must(filepath.Join(root, "repos/notes.git"), "config", "http.receivepack", "true")
	var authorized atomic.Int32 // requests with Authorization
	backend := &cgi.Handler{Path: binary, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Join(root, "repos"), "GIT_HTTP_EXPORT_ALL=1"}, Stderr: io.Discard}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if rq.Header.Get("Authorization") != "" {
			authorized.Add(1)
		}
		backend.ServeHTTP(w, rq)
	}))
	t.Cleanup(server.Close)
	g := startGatedApp(t, "git", ", basic_tokens: true", server.URL)
	token := g.token()
	remote := func(password string) string {
		return (&url.URL{Scheme: "https", User: url.UserPassword("ann", password), Host: "git.example.com:" + g.port, Path: "/notes.git"}).String()
	}
	here := []string{"-c", "http.curloptResolve=git.example.com:" + g.port + ":127.0.0.1"}
	trusted := []string{"GIT_SSL_CAINFO=" + filepath.Join(g.dir, "cert.pem")}
	if out, err := git(root, trusted, append(here, "clone", remote(token), "work")...); err != nil {
		t.Fatalf("clone: %v\n%s", err, out)
	}
	work := filepath.Join(root, "work")
	if err := os.WriteFile(filepath.Join(work, "note"), bytes.Repeat([]byte("a line of text\n"), 200_000), 0o644); err != nil {
		t.Fatal(err)
	}
	must(work, "add", "note")
	must(work, "commit", "-m", "add a note")
	// More than http.postBuffer, so that git sends it in chunks.
	if out, err := git(work, trusted, append(here, "push", "origin", "HEAD:refs/heads/main")...); err != nil {
		t.Fatalf("push: %v\n%s", err, out)
	}
	must(filepath.Join(root, "repos/notes.git"), "cat-file", "-e", "main:note")
	if out, err := git(root, trusted, append(here, "clone", remote("hgt_"+strings.Repeat("a", 43)), "other")...); err == nil || !strings.Contains(out, "Authentication failed") {
		t.Errorf("clone with a wrong token: %v\n%s", err, out)
	}
	// A repository with its own password gets it; the token is in a field of its own.
	if out, err := git(root, trusted, append(here, "-c", "http.extraHeader=X-Headgate-Token: "+token, "-c", "http.extraHeader=Authorization: "+basic("ann", "own"), "ls-remote", "https://git.example.com:"+g.port+"/notes.git")...); err != nil || !strings.Contains(out, "refs/heads/main") {
		t.Errorf("ls-remote with two credentials: %v\n%s", err, out)
	}
	if n := authorized.Load(); n == 0 {
		t.Error("the repository did not get its own password")
	}
	g.manager().must(http.StatusNoContent, "DELETE", "/gate/tokens/app", "", "")
	if out, err := git(work, trusted, append(here, "fetch", "origin")...); err == nil {
		t.Errorf("fetch with a revoked token: %s", out)
	}
	g.kept(token)
}

// cloudGate lets through what Nextcloud's clients request, which has a sign-in of its own.
const cloudGate = `, bypass: [{paths: [/remote.php, /ocs, /status.php, /index.php/login/v2, /login/v2]}]`

// A client as Nextcloud's desktop client signs in by login flow v2 and syncs over WebDAV with the
// password of the application, which is not headgate's. The page of the flow is behind the gate.
func TestANextcloudClientPassesAGate(t *testing.T) {
	t.Parallel()
	const password = "app-Passw0rd-of-the-cloud"
	var granted atomic.Bool
	dav := &webdav.Handler{Prefix: "/remote.php/dav/files/ann", FileSystem: webdav.NewMemFS(), LockSystem: webdav.NewMemLS()}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /index.php/login/v2", func(w http.ResponseWriter, rq *http.Request) {
		json.NewEncoder(w).Encode(map[string]any{"poll": map[string]string{"token": "poll-token", "endpoint": "https://" + rq.Host + "/login/v2/poll"}, "login": "https://" + rq.Host + "/index.php/apps/grant"})
	})
	mux.HandleFunc("/index.php/apps/grant", func(http.ResponseWriter, *http.Request) { granted.Store(true) })
	mux.HandleFunc("POST /login/v2/poll", func(w http.ResponseWriter, rq *http.Request) {
		if rq.FormValue("token") != "poll-token" || !granted.Load() {
			http.Error(w, "[]", http.StatusNotFound)
			return
		}
		json.NewEncoder(w).Encode(map[string]string{"server": "https://" + rq.Host, "loginName": "ann", "appPassword": password})
	})
	mux.HandleFunc("/remote.php/dav/", func(w http.ResponseWriter, rq *http.Request) {
		if user, given, _ := rq.BasicAuth(); user != "ann" || given != password {
			w.Header().Set("WWW-Authenticate", `Basic realm="Nextcloud"`)
			http.Error(w, "", http.StatusUnauthorized)
			return
		}
		dav.ServeHTTP(w, rq)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	g := startGatedApp(t, "cloud", cloudGate, server.URL)
	client := g.client()
	agent := map[string]string{"User-Agent": "Mozilla/5.0 (Linux) mirall/3.16.0 (Nextcloud)", "OCS-APIRequest": "true"}
	if code, _, _ := g.do(client, "cloud", appCall{"GET", "/index.php/apps/files", agent, ""}); code != http.StatusUnauthorized {
		t.Errorf("a page of the application without a session: status %d", code)
	}
	code, body, _ := g.do(client, "cloud", appCall{"POST", "/index.php/login/v2", agent, ""})
	var flow struct {
		Poll  struct{ Token, Endpoint string }
		Login string
	}
	if err := json.Unmarshal([]byte(body), &flow); err != nil || code != http.StatusOK {
		t.Fatalf("login flow: status %d, %s", code, body)
	}
	poll := appCall{"POST", "/login/v2/poll", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "token=" + flow.Poll.Token}
	if code, body, _ := g.do(client, "cloud", poll); code != http.StatusNotFound || granted.Load() {
		t.Fatalf("poll before the person has agreed: status %d, %s", code, body)
	}
	// The person opens the page in a browser; without a session that leads to the sign-in page.
	browser := map[string]string{"Accept": "text/html", "Sec-Fetch-Mode": "navigate"}
	if code, _, fields := g.do(client, "cloud", appCall{"GET", "/index.php/apps/grant", browser, ""}); code != http.StatusFound || !strings.HasPrefix(fields.Get("Location"), "https://login.example.com:"+g.port) || granted.Load() {
		t.Fatalf("the page of the flow: status %d to %q, granted %v", code, fields.Get("Location"), granted.Load())
	}
	granted.Store(true)
	code, body, _ = g.do(client, "cloud", poll)
	var credentials struct{ LoginName, AppPassword string }
	if err := json.Unmarshal([]byte(body), &credentials); err != nil || code != http.StatusOK {
		t.Fatalf("poll: status %d, %s", code, body)
	}
	sync := map[string]string{"User-Agent": agent["User-Agent"], "Authorization": basic(credentials.LoginName, credentials.AppPassword)}
	with := func(name, value string) map[string]string {
		fields := map[string]string{name: value}
		for n, v := range sync {
			fields[n] = v
		}
		return fields
	}
	const files = "/remote.php/dav/files/ann"
	for _, step := range []struct {
		appCall
		status int
		text   string
	}{
		{appCall{"PROPFIND", files + "/", with("Depth", "0"), `<?xml version="1.0"?><d:propfind xmlns:d="DAV:"><d:prop><d:getetag/></d:prop></d:propfind>`}, 207, "multistatus"},
		{appCall{"MKCOL", files + "/Photos", sync, ""}, 201, ""},
		{appCall{"PUT", files + "/Photos/a.jpg", with("OC-Checksum", "SHA1:0"), strings.Repeat("j", 300_000)}, 201, ""},
		{appCall{"MOVE", files + "/Photos/a.jpg", with("Destination", "https://cloud.example.com:"+g.port+files+"/Photos/b%20c.jpg"), ""}, 201, ""},
		{appCall{"GET", files + "/Photos/b%20c.jpg", with("Range", "bytes=0-3"), ""}, 206, "jjjj"},
		{appCall{"PROPFIND", files + "/Photos", with("Depth", "1"), ""}, 207, "b%20c.jpg"},
		{appCall{"LOCK", files + "/Photos/b%20c.jpg", with("Timeout", "Second-60"), `<?xml version="1.0"?><d:lockinfo xmlns:d="DAV:"><d:lockscope><d:exclusive/></d:lockscope><d:locktype><d:write/></d:locktype></d:lockinfo>`}, 200, "locktoken"},
		{appCall{"PUT", files + "/x", map[string]string{"Authorization": basic("ann", "wrong")}, "x"}, 401, ""},
		{appCall{"PROPFIND", "/remote.php/../index.php/apps/files", sync, ""}, 401, ""},
		{appCall{"PROPFIND", "/remote.php/..%2findex.php/apps/files", sync, ""}, 401, ""},
	} {
		code, body, _ := g.do(client, "cloud", step.appCall)
		if code != step.status || !strings.Contains(body, step.text) {
			t.Errorf("%s %s: status %d, want %d; %.200s", step.method, step.path, code, step.status, body)
		}
	}
}

// Clients as those of Home Assistant: a WebSocket and requests with the token of headgate in a field
// of its own and the token of the application where the application expects it, and a webhook that
// is bypassed.
func TestAHomeAssistantClientPassesAGate(t *testing.T) {
	t.Parallel()
	const own = "long-lived-token-of-the-application"
	mux := http.NewServeMux()
	mux.HandleFunc("/api/websocket", func(w http.ResponseWriter, rq *http.Request) {
		c, err := websocket.Accept(w, rq, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		ctx := rq.Context()
		c.Write(ctx, websocket.MessageText, []byte(`{"type":"auth_required"}`))
		var in struct {
			Type        string `json:"type"`
			AccessToken string `json:"access_token"`
		}
		if _, data, err := c.Read(ctx); err != nil || json.Unmarshal(data, &in) != nil || in.Type != "auth" || in.AccessToken != own {
			c.Write(ctx, websocket.MessageText, []byte(`{"type":"auth_invalid"}`))
			return
		}
		c.Write(ctx, websocket.MessageText, []byte(`{"type":"auth_ok"}`))
		c.Read(ctx) // until it ends
	})
	mux.HandleFunc("GET /api/states", func(w http.ResponseWriter, rq *http.Request) {
		if rq.Header.Get("Authorization") != "Bearer "+own || rq.Header.Get("X-Headgate-Token") != "" {
			http.Error(w, "", http.StatusUnauthorized)
		}
	})
	mux.HandleFunc("POST /api/webhook/abc", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	g := startGatedApp(t, "home", `, bypass: [{paths: [/api/webhook], matchers: {methods: [POST]}}]`, server.URL)
	token, client := g.token(), g.client()
	for _, c := range []struct {
		appCall
		status int
	}{
		{appCall{"GET", "/api/states", map[string]string{"Authorization": "Bearer " + own, "X-Headgate-Token": token}, ""}, 200},
		{appCall{"GET", "/api/states", map[string]string{"Authorization": "Bearer " + own}, ""}, 401},
		{appCall{"GET", "/api/states", map[string]string{"Authorization": "Bearer " + token}, ""}, 401}, // by the application, which got no token
		{appCall{"POST", "/api/webhook/abc", map[string]string{"Content-Type": "application/json"}, "{}"}, 200},
		{appCall{"GET", "/api/webhook/abc", nil, ""}, 401},
		{appCall{"POST", "/api/services/lock/unlock", nil, "{}"}, 401},
	} {
		if code, body, _ := g.do(client, "home", c.appCall); code != c.status {
			t.Errorf("%s %s %v: status %d, want %d; %s", c.method, c.path, c.fields, code, c.status, body)
		}
	}
	address := "wss://home.example.com:" + g.port + "/api/websocket"
	if _, rs, err := websocket.Dial(within(t), address, &websocket.DialOptions{HTTPClient: client}); err == nil || rs == nil || rs.StatusCode != http.StatusUnauthorized {
		t.Errorf("a WebSocket without the token: %v", err)
	}
	c, _, err := websocket.Dial(within(t), address, &websocket.DialOptions{HTTPClient: client, HTTPHeader: http.Header{"X-Headgate-Token": {token}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	if err := c.Write(within(t), websocket.MessageText, []byte(`{"type":"auth","access_token":"`+own+`"}`)); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"auth_required", "auth_ok"} {
		if _, data, err := c.Read(within(t)); err != nil || !strings.Contains(string(data), want) {
			t.Fatalf("got %s, %v; want %s", data, err, want)
		}
	}
	revoked := time.Now()
	g.manager().must(http.StatusNoContent, "DELETE", "/gate/tokens/app", "", "")
	ctx := within(t)
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("the WebSocket goes on: %v", err)
	}
	t.Logf("the WebSocket was cut %v after the token was revoked", time.Since(revoked))
	g.kept(token)
}

// A WebSocket at the follower of a pair that was let in with a token is cut within two seconds when
// the token is revoked at the leader, and nobody enters there with the token any more.
func TestATokenIsRevokedOnBothMachines(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		c, err := websocket.Accept(w, rq, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for kind, data := websocket.MessageText, []byte("hello"); err == nil; kind, data, err = c.Read(rq.Context()) {
			err = c.Write(rq.Context(), kind, data)
		}
	}))
	t.Cleanup(server.Close)
	id, secure := newIdentity(t, "app.example.com", "login.example.com"), map[string]string{}
	p := newPairOf(t, fmt.Sprintf(`version: 1
admin: {address: "${ADMIN}"}
access_log: {enabled: false}
ports:
  web: {address: "${WEB}", protocol: http}
  secure: {address: "${SECURE}", protocol: https}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
sign_in: {local: true, self_test: false}
proxies:
  login: {virtual_hosts: [login.example.com], routes: [{path: /, sign_in: {}}]}
  app: {virtual_hosts: [app.example.com], gate: {allow: ["token:app"]}, routes: [{servers: [{url: %q}]}]}
`, server.URL), func(one *twin) {
		secure[one.name] = free(t)
		one.inside = append(one.inside, "SECURE="+secure[one.name])
		one.put("cert.pem", id.cert)
		one.put("key.pem", id.key)
	})
	p.b.is("follower", true)
	made := p.a.manager().must(http.StatusCreated, "POST", "/gate/tokens", `{"name": "app"}`, "")
	fields := http.Header{"X-Headgate-Token": {made.body["token"].(string)}}
	tr := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: id.pool}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, secure["b"])
	}}
	t.Cleanup(tr.CloseIdleConnections)
	dial := func() (*websocket.Conn, error) {
		c, _, err := websocket.Dial(within(t), "wss://app.example.com/", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}, HTTPHeader: fields})
		return c, err
	}
	var c *websocket.Conn
	eventually(t, "the follower knows the token", func() (in bool) {
		var err error
		c, err = dial()
		return err == nil
	})
	defer c.CloseNow()
	if _, data, err := c.Read(within(t)); err != nil || string(data) != "hello" {
		t.Fatalf("got %q, %v", data, err)
	}
	revoked := time.Now()
	p.a.manager().must(http.StatusNoContent, "DELETE", "/gate/tokens/app", "", "")
	ctx := within(t)
	if _, _, err := c.Read(ctx); err == nil || ctx.Err() != nil {
		t.Fatalf("the WebSocket goes on: %v", err)
	}
	t.Logf("the WebSocket at the follower was cut %v after the token was revoked at the leader", time.Since(revoked))
	if c, err := dial(); err == nil {
		c.CloseNow()
		t.Error("the revoked token lets in")
	}
}

// A player as those for Subsonic sends the token as the password of Basic, and the credentials of
// the application as parameters.
func TestASubsonicPlayerPassesAGate(t *testing.T) {
	t.Parallel()
	song := bytes.Repeat([]byte("song"), 50_000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		q := rq.URL.Query()
		if rq.Header.Get("Authorization") != "" || q.Get("u") != "ann" || q.Get("t") != "26719a1196d2a940705a59634eb18eab" || q.Get("s") != "c19b2d" {
			http.Error(w, `{"subsonic-response":{"status":"failed","error":{"code":40}}}`, http.StatusOK)
			return
		}
		if rq.URL.Path == "/rest/stream.view" {
			http.ServeContent(w, rq, "song.mp3", time.Time{}, bytes.NewReader(song))
			return
		}
		io.WriteString(w, `{"subsonic-response":{"status":"ok"}}`)
	}))
	t.Cleanup(server.Close)
	g := startGatedApp(t, "music", ", basic_tokens: true", server.URL)
	token, client := g.token(), g.client()
	const own = "?u=ann&t=26719a1196d2a940705a59634eb18eab&s=c19b2d&v=1.16.1&c=player&f=json"
	player := map[string]string{"Authorization": basic("ann", token), "User-Agent": "Symfonium"}
	if code, body, fields := g.do(client, "music", appCall{"GET", "/rest/ping.view" + own, nil, ""}); code != http.StatusUnauthorized || !strings.HasPrefix(fields.Get("WWW-Authenticate"), "Basic ") {
		t.Errorf("without the token: status %d, %v; %s", code, fields, body)
	}
	if code, body, _ := g.do(client, "music", appCall{"GET", "/rest/ping.view" + own, player, ""}); code != http.StatusOK || !strings.Contains(body, `"ok"`) {
		t.Errorf("ping: status %d, %s", code, body)
	}
	for _, part := range []string{"bytes=0-", "bytes=100000-100099"} {
		player["Range"] = part
		if code, body, _ := g.do(client, "music", appCall{"GET", "/rest/stream.view" + own + "&id=1", player, ""}); code != http.StatusPartialContent || !strings.Contains(string(song), body) || body == "" {
			t.Errorf("stream %s: status %d, %d bytes", part, code, len(body))
		}
	}
	g.kept(token)
}
