package api

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"go.uber.org/goleak"

	"headgate/internal/accesslog/recent"
	"headgate/internal/control"
	"headgate/internal/discovery/discoverytest"
	"headgate/internal/event"
	"headgate/internal/gate/people"
	"headgate/internal/notice"
	"headgate/internal/operator"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/store/local"
)

func TestMain(m *testing.M) {
	// An authority of a test cannot be ended.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/letsencrypt/pebble/v2/va.VAImpl.processTasks"))
}

var update = flag.Bool("update", false, "write the generated files")

//go:generate go test -run TestGeneratedFilesAreFresh -update .

const good = "correct horse battery"

// house is a running API with a user ann (admin), bob (viewer), and tokens.
type house struct {
	engines discoverytest.Engines
	t       testing.TB
	api     *API
	c       *control.Control
	ops     *operator.Operators
	events  *event.Log
	ring    *recent.Ring
	server  *httptest.Server
	file    string // the document
	client  *http.Client
	tokens  map[string]string

	receiver *httptest.Server // of the webhook chat; it refuses all

	// Of a machine that shares its state.
	node  string
	share func(*local.Store) (store.Store, error)
}

var root = operator.Identity{Name: "local:0", Role: operator.Admin}

func start(t *testing.T) *house { t.Helper(); return startWith(t, mainConfig) }

func startWith(t testing.TB, text string) *house {
	t.Helper()
	h := &house{t: t}
	h.start(t, text)
	return h
}

// start starts a house.
func (h *house) start(t testing.TB, text string) {
	t.Helper()
	h.ring, h.tokens = recent.New(recent.Config{}), map[string]string{}
	h.controlOf(t, text)
	st := h.c.Store()
	events, err := event.Open(t.Context(), st, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(events.Close)
	h.events = events
	h.ops = operator.New(operator.Options{Store: st, Events: events, Log: slog.New(slog.DiscardHandler)})
	hooks := notice.New(notice.Options{Events: events, Store: st, Log: slog.New(slog.DiscardHandler)})
	t.Cleanup(hooks.Close)
	h.receiver = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }))
	t.Cleanup(h.receiver.Close)
	hooks.Set(hooksAt(h.receiver.URL))
	h.api = New(Options{
		Control: h.c,
		Notices: hooks, Operators: h.ops, Events: events, Recent: func() *recent.Ring { return h.ring }, Hosts: func() []string { return []string{"gate.example.com"} },
		Passkeys: func(host string) ([]string, string) { return []string{"https://" + host}, "" },
		Version:  Version{Version: "1.2.3", API: "v1"}, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	h.server = httptest.NewUnstartedServer(h.api)
	h.server.Config.ConnContext = ownContext
	h.server.Start()
	h.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 3 * time.Minute}
	t.Cleanup(h.server.Close)
	for name, role := range map[string]operator.Role{"ann": operator.Admin, "bob": operator.Viewer} {
		if _, err := h.ops.CreateUser(t.Context(), root, operator.NewUser{Name: name, Role: role, Password: good}, false); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.c.Gate().People().Create(t.Context(), asPeople(root), "main", people.Details{}, false); err != nil {
		t.Fatal(err)
	}
	for name, tk := range map[string]operator.Token{
		"admin": {Role: operator.Admin}, "editor": {Role: operator.Editor}, "viewer": {Role: operator.Viewer},
		"narrow": {Role: operator.Admin, Scopes: []string{"nothing"}}, "reader": {Role: operator.Admin, Scopes: []string{"operators:read"}},
	} {
		tk.Name = name
		if _, h.tokens[name], err = h.ops.CreateToken(t.Context(), root, tk, false); err != nil {
			t.Fatal(err)
		}
	}
}

// call sends a request. Fields are "Name: value". A field "as" names a token.
func (h *house) call(method, path, body string, fields ...string) (*http.Response, map[string]any) {
	h.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	rq, err := http.NewRequestWithContext(h.t.Context(), method, h.server.URL+Prefix+path, reader)
	if err != nil {
		h.t.Fatal(err)
	}
	if body != "" {
		rq.Header.Set("Content-Type", "application/json")
	}
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		switch name {
		case "as":
			rq.Header.Set("Authorization", "Bearer "+h.tokens[value])
		case "Host":
			rq.Host = value
		default:
			rq.Header.Set(name, value)
		}
	}
	rs, err := h.client.Do(rq)
	if err != nil {
		h.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer rs.Body.Close()
	if strings.HasPrefix(rs.Header.Get("Content-Type"), "text/event-stream") {
		return rs, nil
	}
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	out := map[string]any{}
	if len(data) > 0 && json.Unmarshal(data, &out) != nil {
		h.t.Errorf("%s %s: %d with a body that is no JSON object: %.200s", method, path, rs.StatusCode, data)
	}
	checkPlaces(h.t, method+" "+path+" "+body, out)
	return rs, out
}

// expect fails unless the answer has a status and a code, "" for none.
func (h *house) expect(what string, rs *http.Response, out map[string]any, status int, code string) {
	h.t.Helper()
	got, _ := out["code"].(string)
	if rs.StatusCode != status || got != code {
		h.t.Errorf("%s: got %d %q (%v), want %d %q", what, rs.StatusCode, got, out["detail"], status, code)
	}
	if status >= 400 && rs.Header.Get("Content-Type") != "application/problem+json" {
		h.t.Errorf("%s: a refusal of the type %q", what, rs.Header.Get("Content-Type"))
	}
}

func TestGeneratedFilesAreFresh(t *testing.T) {
	a := New(Options{})
	comments := schema.NewComments("headgate", "../../..")
	document, err := a.Document(comments)
	if err != nil {
		t.Fatal(err)
	}
	page, err := a.Reference(comments)
	if err != nil {
		t.Fatal(err)
	}
	files := clientFiles(t, a, comments)
	files["openapi.json"], files["../../../docs/reference/api.md"] = string(document), page
	packed, err := schema.Pack(document, openapi)
	if err != nil {
		t.Fatal(err)
	}
	files["openapi.json.gz"] = string(packed)
	for path, want := range files {
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s is stale (%v): run go generate ./internal/admin/api", path, err)
		}
	}
}

// TestOpenAPIIsValid asks a validator of others.
func TestOpenAPIIsValid(t *testing.T) {
	h := start(t)
	rs, err := h.client.Get(h.server.URL + Prefix + "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	if err != nil {
		t.Fatal(err)
	}
	document, err := openapi3.NewLoader().LoadFromData(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := document.Validate(context.Background()); err != nil {
		t.Error(err)
	}
	if n := len(document.Paths.Map()); n < 15 {
		t.Errorf("%d paths", n)
	}
}

func TestSessionsOfBrowsers(t *testing.T) {
	h := start(t)
	rs, out := h.call("POST", "/session", `{"user":"ann","password":"`+good+`"}`)
	h.expect("sign in", rs, out, 201, "")
	cookie := rs.Cookies()[0]
	if cookie.Name != Cookie || !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.Domain != "" {
		t.Errorf("the cookie is %v", cookie)
	}
	carry := "Cookie: " + cookie.Name + "=" + cookie.Value
	secret := Header + ": " + out["secret"].(string)
	rs, out = h.call("GET", "/session", "", carry, secret)
	h.expect("who am I", rs, out, 200, "")
	if out["name"] != "ann" || out["role"] != "admin" {
		t.Errorf("got %v", out)
	}
	rs, out = h.call("GET", "/session", "", carry)
	h.expect("a page at another port of the host has the cookie and not the secret", rs, out, 401, "signed_out")
	rs, out = h.call("GET", "/session", "", secret)
	h.expect("the secret alone", rs, out, 401, "signed_out")
	rs, out = h.call("PUT", "/session/password", `{"current_password":"wrong","password":"another good one"}`, carry, secret)
	h.expect("a new password without the old one", rs, out, 400, "invalid")
	_, out = h.call("GET", "/sessions", "", carry, secret)
	if items := out["items"].([]any); len(items) != 1 || items[0].(map[string]any)["current"] != true {
		t.Errorf("sessions: %v", out)
	}
	rs, out = h.call("DELETE", "/session", "", carry)
	h.expect("sign out with the cookie only", rs, out, 204, "")
	rs, out = h.call("GET", "/session", "", carry, secret)
	h.expect("still signed in", rs, out, 200, "")
	rs, out = h.call("DELETE", "/session", "", carry, secret)
	h.expect("sign out", rs, out, 204, "")
	rs, out = h.call("GET", "/session", "", carry, secret)
	h.expect("signed out", rs, out, 401, "signed_out")
}

func TestSetUpMakesTheFirstAdmin(t *testing.T) {
	h := start(t)
	rs, out := h.call("GET", "/setup", "")
	if h.expect("state", rs, out, 200, ""); out["needed"] != false {
		t.Errorf("got %v", out)
	}
	rs, out = h.call("POST", "/setup", `{"token":"x","name":"eve","password":"`+good+`"}`)
	h.expect("with a wrong token", rs, out, 403, "forbidden")
}

func TestObjectsAreChangedByTheirETag(t *testing.T) {
	h := start(t)
	rs, out := h.call("POST", "/users", `{"name":"eve","role":"viewer","password":"`+good+`"}`, "as: admin")
	h.expect("make", rs, out, 201, "")
	etag := rs.Header.Get("ETag")
	if rs.Header.Get("Location") != "/api/v1/users/eve" || etag == "" || out["etag"] != etag || out["password"] != nil || out["password_set"] != true {
		t.Errorf("got %v, %v", rs.Header, out)
	}
	rs, out = h.call("POST", "/users", `{"name":"eve","role":"viewer","password":"`+good+`"}`, "as: admin")
	h.expect("make twice", rs, out, 409, "exists")
	rs, _ = h.call("GET", "/users/eve", "", "as: admin", "If-None-Match: "+etag)
	if rs.StatusCode != 304 {
		t.Errorf("not changed: got %d", rs.StatusCode)
	}
	rs, out = h.call("PATCH", "/users/eve", `{"description":"on call"}`, "as: admin", "If-Match: "+etag, "Content-Type: application/merge-patch+json")
	h.expect("patch", rs, out, 200, "")
	if out["description"] != "on call" || out["role"] != "viewer" {
		t.Errorf("got %v", out)
	}
	rs, out = h.call("PATCH", "/users/eve", `{"description":"late"}`, "as: admin", "If-Match: "+etag)
	h.expect("stale", rs, out, 412, "stale")
	if now, _ := out["current"].(map[string]any); now["description"] != "on call" {
		t.Errorf("it does not tell what changed: %v", out)
	}
	// What was read can be written back as it is, with the secret masked.
	rs, out = h.call("GET", "/users/eve", "", "as: admin")
	out["password"], out["role"] = masked, "editor"
	whole, _ := json.Marshal(out)
	rs, out = h.call("PUT", "/users/eve", string(whole), "as: admin", "If-Match: "+rs.Header.Get("ETag"))
	h.expect("write back", rs, out, 200, "")
	if _, err := h.ops.SignIn(t.Context(), operator.Identity{}, operator.SignIn{User: "eve", Password: good}); err != nil {
		t.Errorf("the masked password did not stay: %v", err)
	}
	rs, out = h.call("PATCH", "/users/eve", `{"description":null}`, "as: admin", "If-Match: *")
	if h.expect("null resets", rs, out, 200, ""); out["description"] != nil {
		t.Errorf("got %v", out)
	}
	rs, out = h.call("PUT", "/users/eve", `{"name":"other","role":"viewer"}`, "as: admin", "If-Match: *")
	h.expect("rename", rs, out, 400, "invalid")
	rs, out = h.call("DELETE", "/users/eve?dry_run=true", "", "as: admin", "If-Match: *")
	h.expect("dry", rs, out, 204, "")
	rs, out = h.call("DELETE", "/users/eve", "", "as: admin", "If-Match: *")
	h.expect("remove", rs, out, 204, "")
	rs, out = h.call("DELETE", "/users/eve", "", "as: admin", "If-Match: *")
	h.expect("remove again", rs, out, 404, "not_found")
	rs, out = h.call("DELETE", "/users/ann", "", "as: admin", "If-Match: *")
	h.expect("the last admin", rs, out, 409, "last_admin")
	_, out = h.call("GET", "/audit?object=user%20eve&limit=2", "", "as: admin")
	items := out["items"].([]any)
	if first := items[0].(map[string]any); len(items) != 2 || first["action"] != "user.delete" || first["who"] != "token:admin" || out["next"] == nil {
		t.Errorf("audit: %v", out)
	}
}

func TestListsHavePages(t *testing.T) {
	h := start(t)
	var got []string
	cursor := ""
	for range 5 {
		_, out := h.call("GET", "/tokens?limit=2&sort=-name&cursor="+cursor, "", "as: admin")
		for _, e := range out["items"].([]any) {
			got = append(got, e.(map[string]any)["name"].(string))
		}
		if cursor, _ = out["next"].(string); cursor == "" {
			break
		}
	}
	if strings.Join(got, " ") != "viewer reader narrow editor admin" {
		t.Errorf("got %q", got)
	}
	if _, out := h.call("GET", "/tokens?q=EDI", "", "as: admin"); len(out["items"].([]any)) != 1 {
		t.Errorf("got %v", out)
	}
	rs, out := h.call("GET", "/tokens?cursor=eHh4", "", "as: admin")
	h.expect("a cursor of nothing", rs, out, 400, "invalid")
	rs, out = h.call("GET", "/tokens?sort=secret", "", "as: admin")
	h.expect("sort by nothing", rs, out, 400, "invalid")
	rs, out = h.call("GET", "/tokens?limit=-1", "", "as: admin")
	h.expect("a negative limit", rs, out, 400, "invalid")
}

func TestTokensAreShownOnce(t *testing.T) {
	h := start(t)
	rs, out := h.call("POST", "/tokens", `{"name":"ci","role":"viewer","scopes":["logs:read"],"addresses":["127.0.0.0/8"],"expires":"2100-01-01T00:00:00Z"}`, "as: admin")
	h.expect("make", rs, out, 201, "")
	h.tokens["ci"] = out["token"].(string)
	_, out = h.call("GET", "/tokens/ci", "", "as: admin")
	if out["token"] != nil || out["created_by"] != "token:admin" {
		t.Errorf("got %v", out)
	}
	rs, out = h.call("GET", "/logs/access", "", "as: ci")
	h.expect("in its scope", rs, out, 200, "")
	rs, out = h.call("GET", "/events/history", "", "as: ci")
	h.expect("out of its scope", rs, out, 403, "forbidden")
	rs, out = h.call("POST", "/tokens", `{"name":"more","role":"admin"}`, "as: reader")
	h.expect("with a scope to read", rs, out, 403, "forbidden")
	rs, out = h.call("DELETE", "/tokens/ci", "", "as: admin", "If-Match: *")
	h.expect("revoke", rs, out, 204, "")
	rs, out = h.call("GET", "/logs/access", "", "as: ci")
	h.expect("revoked", rs, out, 401, "signed_out")
}

// lines reads a stream until each returns false.
func (h *house) lines(path string, fields []string, each func(line string) bool) {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), time.Minute)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, "GET", h.server.URL+Prefix+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	rq.Header.Set("Authorization", "Bearer "+h.tokens["viewer"])
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		rq.Header.Set(name, value)
	}
	rs, err := h.client.Do(rq)
	if err != nil {
		h.t.Fatal(err)
	}
	defer rs.Body.Close()
	if rs.StatusCode != 200 || rs.Header.Get("Content-Type") != "text/event-stream" {
		h.t.Fatalf("got %d %v", rs.StatusCode, rs.Header)
	}
	s := bufio.NewScanner(rs.Body)
	for s.Scan() {
		if !each(s.Text()) {
			return
		}
	}
	h.t.Errorf("the stream has ended: %v", s.Err())
}

func TestEventsAreStreamedAndReplayed(t *testing.T) {
	h := start(t)
	h.events.Send(event.ProcessStarted{Version: "one"})
	id := ""
	h.lines("/events?after=0&types=process.*", nil, func(line string) bool {
		if found, ok := strings.CutPrefix(line, "id: "); ok {
			id = found
		}
		return !strings.HasPrefix(line, "data: ") || !strings.Contains(line, `"version":"one"`)
	})
	h.events.Send(event.ProcessStarted{Version: "two"})
	seen := 0
	h.lines("/events?types=process.*", []string{"Last-Event-ID: " + id}, func(line string) bool {
		if strings.HasPrefix(line, "data: ") {
			if seen++; strings.Contains(line, `"one"`) {
				t.Error("the event that was seen comes again")
			}
			if strings.Contains(line, `"two"`) {
				h.events.Send(event.ProcessStarted{Version: "three"})
			}
		}
		return !strings.Contains(line, `"three"`)
	})
	if seen != 2 {
		t.Errorf("%d events, want 2", seen)
	}
	rs, out := h.call("GET", "/events?types=confg.applied", "", "as: viewer")
	h.expect("an unknown type", rs, out, 400, "invalid")
	rs, out = h.call("GET", "/events", "", "as: viewer", "Last-Event-ID: x")
	h.expect("an id that is none", rs, out, 400, "invalid")
}

func TestLogsAreQueried(t *testing.T) {
	h := start(t)
	for i := range 5 {
		h.ring.Record(request(uint64(i+1), fmt.Sprint("/p", i), 200+i%2*304))
	}
	rs, out := h.call("GET", "/logs/access?status=5xx&host=shop.example.com&client=192.0.2.0/24&limit=1", "", "as: viewer")
	h.expect("query", rs, out, 200, "")
	items := out["items"].([]any)
	if len(items) != 1 || items[0].(map[string]any)["path"] != "/p3" {
		t.Fatalf("got %v", out)
	}
	_, out = h.call("GET", "/logs/access?status=5xx&cursor="+out["next"].(string), "", "as: viewer")
	if items = out["items"].([]any); len(items) != 1 || items[0].(map[string]any)["path"] != "/p1" || out["next"] != nil {
		t.Errorf("the next page: %v", out)
	}
	for _, bad := range []string{"status=abc", "status=6xx", "status=500-400", "client=x", "slower_than=-1s", "since=yesterday", "cursor=*", "nonsense=1", "host=a&host=b"} {
		rs, out := h.call("GET", "/logs/access?"+bad, "", "as: viewer")
		if rs.StatusCode != 400 {
			t.Errorf("%s: got %d %v", bad, rs.StatusCode, out)
		}
	}
	// What ends after the head of the stream has come is shown.
	for i := range 10 {
		h.lines("/logs/access/stream?status=503", nil, func(line string) bool {
			if strings.HasPrefix(line, "retry:") {
				h.ring.Record(request(uint64(i+100), "/other", 200))
				h.ring.Record(request(uint64(i+100), "/live", 503))
			}
			if strings.Contains(line, "/other") {
				t.Error("a request that was not asked for")
			}
			return !strings.Contains(line, `"/live"`)
		})
	}
}

// TestAStreamEndsWithTheRightToIt revokes a token whose streams are never without
// something to send.
func TestAStreamEndsWithTheRightToIt(t *testing.T) {
	h := start(t)
	h.api.heartbeat = 200 * time.Millisecond
	for _, path := range []string{"/events", "/logs/access/stream"} {
		rs, out := h.call("POST", "/tokens", `{"name":"spy","role":"viewer"}`, "as: admin")
		h.expect("make", rs, out, 201, "")
		rq, err := http.NewRequestWithContext(t.Context(), "GET", h.server.URL+Prefix+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		rq.Header.Set("Authorization", "Bearer "+out["token"].(string))
		stream, err := h.client.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		if stream.StatusCode != 200 {
			t.Fatalf("%s: got %d", path, stream.StatusCode)
		}
		rs, out = h.call("DELETE", "/tokens/spy", "", "as: admin", "If-Match: *")
		h.expect("revoke", rs, out, 204, "")
		ended := make(chan struct{})
		go func() { io.Copy(io.Discard, stream.Body); close(ended) }()
		for i, over := 0, time.After(time.Minute); ended != nil; i++ {
			h.events.Send(event.ProcessStarted{})
			h.ring.Record(request(uint64(i), "/busy", 200))
			select {
			case <-ended:
				ended = nil
			case <-over:
				t.Fatalf("%s goes on after its token was revoked", path)
			default:
				runtime.Gosched()
			}
		}
		stream.Body.Close()
	}
}

func waitABit(t *testing.T) {
	timer := time.NewTimer(20 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func TestWebhooksTellHowTheyStand(t *testing.T) {
	h := start(t)
	rs, out := h.call("POST", "/webhooks/chat/test", "{}", "as: editor")
	if h.expect("test", rs, out, 200, ""); out["taken"] != false || out["status"] != 404.0 || out["error"] != "answered with 404" {
		t.Errorf("got %v", out)
	}
	h.events.Send(event.ProcessStarted{})
	for letters := 0; letters == 0 && t.Context().Err() == nil; waitABit(t) {
		rs, out = h.call("GET", "/webhooks/chat/state", "", "as: viewer")
		h.expect("state", rs, out, 200, "")
		letters = len(out["waiting"].([]any))
	}
	rs, out = h.call("POST", "/webhooks/chat/resend", `{"event":1}`, "as: editor")
	h.expect("a letter that is not there", rs, out, 404, "not_found")
	rs, out = h.call("GET", "/webhooks/none/state", "", "as: viewer")
	h.expect("a webhook that is not there", rs, out, 404, "not_found")
}

func TestAdminSocketIsForOurOwnUser(t *testing.T) {
	h := start(t)
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	server := &http.Server{Handler: h.api, ConnContext: ownContext}
	done := make(chan struct{})
	go func() { server.Serve(l); close(done) }()
	defer func() { server.Close(); <-done }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	for field, status := range map[string]int{"": 200, "X-Forwarded-For": 403, "Forwarded": 403, "Via": 403} {
		rq, _ := http.NewRequest("GET", "http://headgate"+Prefix+"/session", nil)
		if field != "" {
			rq.Header.Set(field, "x")
		}
		rs, err := client.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(rs.Body)
		rs.Body.Close()
		if rs.StatusCode != status || status == 200 && !strings.Contains(string(body), fmt.Sprintf(`"local:%d"`, os.Geteuid())) {
			t.Errorf("with %q: got %d %s", field, rs.StatusCode, body)
		}
	}
}

// hooksAt returns the webhook chat and the notice phone, which are sent to a receiver.
func hooksAt(url string) []notice.Hook {
	return []notice.Hook{
		{Kind: notice.Webhooks, Name: "chat", URL: url, Secret: "x"},
		{Kind: notice.Notices, Name: "phone", Notice: &notice.Config{Gotify: &notice.Gotify{URL: url, Token: "x"}, Level: event.Error}},
	}
}

// ownContext is OthersContext for connections of this process, too.
func ownContext(ctx context.Context, conn net.Conn) context.Context {
	uid, _, ok := trusted(conn)
	if !ok {
		return ctx
	}
	return WithLocal(ctx, uid)
}
