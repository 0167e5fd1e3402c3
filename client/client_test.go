package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"headgate/client"
)

// serve starts a server and returns a client of it.
func serve(t *testing.T, handler http.HandlerFunc) *client.Client {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	c, err := client.New(client.Options{URL: server.URL, Token: "hg_x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestNewRejectsWhatItCannotUse(t *testing.T) {
	for _, o := range []client.Options{
		{},
		{URL: "gate.example.com"},
		{URL: "ftp://gate.example.com"},
		{URL: "https://gate.example.com/api"},
		{URL: "https://ann:secret@gate.example.com"},
		{URL: "http://gate.example.com:9080", Token: "hg_x"},
	} {
		if _, err := client.New(o); err == nil {
			t.Errorf("%+v was accepted", o)
		}
	}
	for _, o := range []client.Options{
		{URL: "https://gate.example.com:9080/", Token: "hg_x"},
		{URL: "http://127.0.0.1:9080", Token: "hg_x"},
		{URL: "http://[::1]:9080", Token: "hg_x"},
		{Socket: "/run/headgate/admin.sock"},
	} {
		if _, err := client.New(o); err != nil {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestAListIsReadPageAfterPage(t *testing.T) {
	var queries []string
	c := serve(t, func(w http.ResponseWriter, rq *http.Request) {
		queries = append(queries, rq.URL.RawQuery)
		if rq.Header.Get("Authorization") != "Bearer hg_x" || rq.URL.Path != "/api/v1/users" {
			t.Errorf("%s with %q", rq.URL, rq.Header.Get("Authorization"))
		}
		if rq.URL.Query().Get("cursor") == "" {
			fmt.Fprint(w, `{"items":[{"name":"ann"},{"name":"bob"}],"next":"b c"}`)
			return
		}
		fmt.Fprint(w, `{"items":[{"name":"cleo"}]}`)
	})
	var names []string
	for u, err := range c.ListUsers(t.Context(), client.Query("q", "a")) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, u.Name)
	}
	if got := strings.Join(names, " "); got != "ann bob cleo" {
		t.Errorf("users are %s", got)
	}
	if got := strings.Join(queries, " "); got != "limit=1000&q=a cursor=b+c&limit=1000&q=a" {
		t.Errorf("queries are %s", got)
	}
	for range c.ListUsers(t.Context(), client.Query("limit", "2")) {
		break
	}
	if got := queries[len(queries)-1]; got != "limit=2" || len(queries) != 3 {
		t.Errorf("a caller that stops after the first entry sent %q", queries[2:])
	}
}

func TestAProblemIsAnError(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, rq *http.Request) {
		if got := rq.Header.Get("If-Match") + " " + rq.URL.RawQuery; rq.Method == http.MethodPut && got != `"7" dry_run=true` {
			t.Errorf("a change has %s", got)
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusPreconditionFailed)
		fmt.Fprint(w, `{"status":412,"code":"stale","pointer":"/proxies/a.b/routes/0/path","detail":"it has changed","remedy":"read it again"}`)
	})
	_, err := c.ReplaceProxy(t.Context(), "a/b", &client.ProxyObject{}, client.IfMatch(`"7"`), client.DryRun())
	var p *client.Problem
	if !errors.As(err, &p) || p.Status != 412 || p.Code != "stale" {
		t.Fatalf("the error is %v", err)
	}
	if want := `proxies["a.b"].routes[0].path: it has changed; read it again`; p.Error() != want {
		t.Errorf("the error is %q, want %q", p, want)
	}
	for _, err := range c.ListUsers(t.Context()) {
		if !errors.As(err, &p) {
			t.Errorf("a list that is rejected returned %v", err)
		}
	}
}

func TestAResponseThatIsNoProblemIsShown(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, rq *http.Request) {
		if strings.HasSuffix(rq.URL.Path, "/version") {
			w.Header().Set("Location", "https://elsewhere.example.com/")
			w.WriteHeader(http.StatusFound)
			return
		}
		http.Error(w, "no such page", http.StatusNotFound)
	})
	if _, err := c.GetVersion(t.Context()); err == nil || err.Error() != "rejected with status 302" {
		t.Errorf("a redirect returned %v", err)
	}
	if _, err := c.GetStore(t.Context()); err == nil || err.Error() != "no such page" {
		t.Errorf("a page returned %v", err)
	}
}

func TestOptionalSettingsKeepTheirAbsence(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, rq *http.Request) {
		body, _ := io.ReadAll(rq.Body)
		if got := string(body); !strings.Contains(got, `"active":false`) || strings.Contains(got, "cors") {
			t.Errorf("the body is %s", got)
		}
		w.Header().Set("ETag", `"8"`)
		w.WriteHeader(http.StatusCreated)
		w.Write(body)
	})
	off, tag := false, ""
	made, err := c.CreateProxy(t.Context(), &client.ProxyObject{Name: "shop", VirtualHosts: []string{"shop.example.com"}, Active: &off}, client.ETag(&tag))
	if err != nil || made.Name != "shop" || made.Active == nil || *made.Active || tag != `"8"` {
		t.Errorf("got %+v, %q, %v", made, tag, err)
	}
}

func TestAStreamIsReadUntilItEnds(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, rq *http.Request) {
		fmt.Fprint(w, "retry: 3000\n\n: \n\nid: 1\nevent: request\ndata: {\"host\":\"a\"}\n\ndata: {\"host\":\"b\"}\n\n")
	})
	var hosts []string
	var last error
	for rq, err := range c.FollowRequests(t.Context()) {
		if last = err; err == nil {
			hosts = append(hosts, rq.Host)
		}
	}
	if got := strings.Join(hosts, " "); got != "a b" || !errors.Is(last, client.ErrStreamEnded) {
		t.Errorf("got %s, %v", got, last)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for range c.FollowRequests(ctx) {
		cancel()
		break
	}
	if ctx.Err() == nil {
		t.Error("a stream had no message")
	}
}

func TestASocketNeedsNoURL(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Skip(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) { fmt.Fprint(w, `{"version":"1.2.3"}`) })}
	go server.Serve(l)
	defer server.Close()
	c, err := client.New(client.Options{Socket: path})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if v, err := c.GetVersion(t.Context()); err != nil || v.Version != "1.2.3" {
		t.Errorf("got %v, %v", v, err)
	}
	server.Close()
	if _, err := c.GetVersion(t.Context()); err == nil || !strings.HasPrefix(err.Error(), "query "+path+": ") {
		t.Errorf("without a server: %v", err)
	}
}
