package interop

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// inventory is a server with a document of proxies.
type inventory struct {
	mu     sync.Mutex
	body   string
	status int
	full   int // documents that were sent in full
	not    int // answers 304
}

func (i *inventory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	etag := fmt.Sprintf(`"%x"`, sha256.Sum256([]byte(i.body)))
	switch {
	case r.Header.Get("Authorization") != "Bearer of-the-inventory":
		w.WriteHeader(http.StatusUnauthorized)
	case i.status != 200:
		w.WriteHeader(i.status)
	case r.Header.Get("If-None-Match") == etag:
		i.not++
		w.WriteHeader(http.StatusNotModified)
	default:
		i.full++
		w.Header().Set("ETag", etag)
		fmt.Fprint(w, i.body)
	}
}

func (i *inventory) set(body string, status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.body, i.status = body, status
}

func (i *inventory) counts() (full, not int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.full, i.not
}

// TestDocumentOverHTTP holds that a headgate follows a document of another server through its
// changes, its mistakes, and the end of both.
func TestDocumentOverHTTP(t *testing.T) {
	app, web, admin := free(t), free(t), free(t)
	go http.ListenAndServe(app, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "app") }))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	source := &inventory{status: 200, body: document("shop.example", app)}
	server := &http.Server{Handler: source}
	go server.Serve(l)
	defer server.Close()
	config := fmt.Sprintf(`
version: 1
admin: {address: %q, hosts: [gate.example]}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
discovery: {http: {cmdb: {url: "http://%s/doc.yaml?tenant=1", interval: 1s, auth: {bearer: "${INVENTORY}"}, servers: [127.0.0.0/8]}}}
`, admin, web, l.Addr())
	g := prepare(t)
	g.env = []string{"INVENTORY=of-the-inventory"}
	g.start(config)
	v := newVisitor(t, web)
	v.sees("shop.example", 200, "app")

	full, not := source.counts()
	for until := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		if f, n := source.counts(); n >= not+2 {
			if f != full {
				t.Errorf("the same document was sent %d times more", f-full)
			}
			break
		}
		if time.Now().After(until) {
			t.Fatal("the document is not requested again")
		}
	}
	if n := strings.Count(g.log.String(), "configuration applied"); n != 2 {
		t.Errorf("the configuration was applied %d times, want once at the start and once for the document", n)
	}

	began := time.Now()
	source.set(document("store.example", app), 200)
	v.sees("store.example", 200, "app")
	t.Logf("a change acted after %v", time.Since(began).Round(time.Millisecond))
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("a change acted after %v, with an interval of 1s", d)
	}
	v.sees("shop.example", 404, "")

	for name, c := range map[string]struct{ body, want string }{
		"broken":           {"proxies: [", "is not closed"},
		"a page":           {"<html><body>Sign in</body></html>", "no object with the keys"},
		"empty":            {"{}", "it has no proxies"},
		"an admin host":    {document("store.example", app) + strings.Replace(strings.TrimPrefix(document("gate.example", app), "proxies:\n"), "shop:", "other:", 1), "one of the admin listener"},
		"headgate's admin": {document("store.example", app) + strings.Replace(strings.TrimPrefix(document("other.example", admin), "proxies:\n"), "shop:", "other:", 1), "is the admin listener of headgate itself"},
	} {
		source.set(c.body, 200)
		for until := time.Now().Add(patience); !strings.Contains(g.state(), c.want); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(until) {
				t.Fatalf("%s: no issue %s: %s", name, c.want, g.state())
			}
		}
		v.sees("store.example", 200, "app")
		v.sees("other.example", 404, "")
	}
	if text := g.state() + g.log.String() + g.state(); strings.Contains(text, "of-the-inventory") || strings.Contains(text, "tenant=1") {
		t.Error("a secret of the download is shown")
	}

	// Both end; headgate comes back alone.
	source.set(document("store.example", app), 200)
	for until := time.Now().Add(patience); strings.Contains(g.state(), "the admin listener of headgate"); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the issue stays")
		}
	}
	server.Close()
	g.kill()
	g.log = &record{}
	g.start(config)
	v.sees("store.example", 200, "app")
	for until := time.Now().Add(patience); !strings.Contains(g.state(), `"error"`); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("it is not reported that the server is away: %s", g.state())
		}
	}
	v.sees("store.example", 200, "app")

	// A pinned digest that is another one's is refused, and so is what was kept.
	pinned := strings.Replace(config, "interval: 1s", "interval: 1s, sha256: "+strings.Repeat("0", 64), 1)
	g.end()
	g.start(pinned)
	v.sees("store.example", 404, "")
}

func document(host, server string) string {
	return fmt.Sprintf("proxies:\n  shop:\n    virtual_hosts: [%s]\n    routes: [{servers: [{url: \"http://%s\"}]}]\n", host, server)
}
