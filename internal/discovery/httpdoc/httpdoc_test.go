package httpdoc

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
)

const good = `
proxies:
  shop:
    virtual_hosts: [shop.example.com, "*.shop.example"]
    compression: {}
    routes:
      - servers: [{url: "http://10.0.0.1:8080", weight: 2}]
      - path: /api
        servers:
          - url: http://10.0.0.2:8080
tcp_proxies:
  db: {port: secure, sni: [db.example.com], servers: [{address: "10.0.0.3:5432"}]}
`

// inventory is a server with one document.
type inventory struct {
	*httptest.Server
	mu       sync.Mutex
	body     string
	status   int
	asked    atomic.Int32 // all requests
	sent     atomic.Int32 // documents that were sent in full
	header   http.Header  // of the last request
	location string       // of a redirect
}

func serve(t *testing.T, body string) *inventory {
	t.Helper()
	i := &inventory{body: body, status: 200}
	i.Server = httptest.NewServer(http.HandlerFunc(i.answer))
	t.Cleanup(i.Close)
	return i
}

func (i *inventory) answer(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked.Add(1)
	i.header = r.Header.Clone()
	if i.location != "" && r.URL.Path == "/doc" {
		http.Redirect(w, r, i.location, http.StatusFound)
		return
	}
	etag := fmt.Sprintf("%q", fmt.Sprintf("%x", sha256.Sum256([]byte(i.body)))[:16])
	w.Header().Set("ETag", etag)
	switch {
	case i.status != 200:
		w.WriteHeader(i.status)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		i.sent.Add(1)
		fmt.Fprint(w, i.body)
	}
}

func (i *inventory) set(body string, status int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.body, i.status = body, status
}

// follow starts a source of the document.
func follow(t *testing.T, i *inventory, state string, change func(*config.HTTPDocument)) *Source {
	t.Helper()
	settings := &config.HTTPDocument{URL: i.URL + "/doc?key=1", Interval: unit.Duration(20 * time.Millisecond)}
	if change != nil {
		change(settings)
	}
	s, err := Open("cmdb", settings, discovery.Environment{State: state, Agent: "headgate/test"})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(s.Stop)
	return s.(*Source)
}

// becomes waits until a source has a state.
func becomes(t *testing.T, s *Source, what string, is func(*discovery.Snapshot) bool) *discovery.Snapshot {
	t.Helper()
	testhouse.Eventually(t, what, func() bool { return is(s.Snapshot()) })
	return s.Snapshot()
}

func running(n int) func(*discovery.Snapshot) bool {
	return func(s *discovery.Snapshot) bool {
		return s.State == discovery.Running && s.Known && len(s.Objects) == n && len(s.Issues) == 0
	}
}

func broken(s *discovery.Snapshot) bool { return len(s.Issues) > 0 }

func TestADocumentGivesItsObjects(t *testing.T) {
	i := serve(t, good)
	s := follow(t, i, "", func(d *config.HTTPDocument) { d.Auth = &config.HTTPAuth{Bearer: "secret"} })
	now := becomes(t, s, "the document is read", running(2))
	i.mu.Lock()
	header := i.header
	i.mu.Unlock()
	if header.Get("Authorization") != "Bearer secret" || header.Get("User-Agent") != "headgate/test" {
		t.Errorf("sent %v", header)
	}
	for _, d := range now.Objects {
		f := config.Find(d, []string{"web"})
		if f.Problems != nil || !d.Written || strings.Contains(d.Origin.String(), "key=1") || d.Origin.Via != config.ViaHTTP {
			t.Fatalf("%s: %v, from %v", d.Name, f.Problems, d.Origin)
		}
		if p, ok := f.Object.(*config.Proxy); ok {
			if len(p.Routes) != 2 || p.Routes[0].Servers[0].URL != "http://10.0.0.1:8080" || p.Routes[0].Servers[0].Weight != 2 || p.Routes[1].Servers[0].URL != "http://10.0.0.2:8080" || p.Compression == nil || len(p.VirtualHosts) != 2 {
				t.Errorf("got %+v", p)
			}
		}
	}
}

func TestAnUnchangedDocumentIsNotSentAgain(t *testing.T) {
	i := serve(t, good)
	s := follow(t, i, "", nil)
	was := becomes(t, s, "the document is read", running(2))
	testhouse.Eventually(t, "it is asked for again", func() bool { return i.asked.Load() > 5 })
	if i.sent.Load() != 1 || s.Snapshot() != was {
		t.Errorf("sent %d times, want 1; the same snapshot %v", i.sent.Load(), s.Snapshot() == was)
	}
	i.set(strings.Replace(good, "db.example.com", "data.example.com", 1), 200)
	now := becomes(t, s, "the change is seen", func(n *discovery.Snapshot) bool { return n != was })
	if now.Objects[0] != was.Objects[0] || now.Objects[1] == was.Objects[1] {
		t.Error("the unchanged object is another one, or the changed one the same")
	}
}

func TestABrokenDocumentKeepsTheLastOne(t *testing.T) {
	i := serve(t, good)
	s := follow(t, i, "", nil)
	was := becomes(t, s, "the document is read", running(2))
	for name, c := range map[string]struct{ body, want string }{
		"empty":              {"", "empty"},
		"page":               {"<!DOCTYPE html>\n<html><body>Sign in: please</body></html>\n", ""},
		"text":               {"it works", "no object with the keys"},
		"nothing in it":      {"{}", "no proxies"},
		"null section":       {"proxies:\n", "proxies is empty"},
		"no YAML":            {"proxies: [", ""},
		"another section":    {good + "admin: {address: '0.0.0.0:1'}\n", `cannot set "admin"`},
		"another version":    {good + "version: 2\n", "version"},
		"unknown field":      {strings.Replace(good, "virtual_hosts", "virtual_host", 1), "unknown key"},
		"no field for it":    {strings.Replace(good, "compression: {}", "nodes: [a]", 1), "nodes"},
		"bad value":          {strings.Replace(good, "weight: 2", "weight: many", 1), "many"},
		"same name twice":    {good + "  db: {port: secure}\n", "there twice"},
		"merge key":          {"proxies:\n  a: &a {virtual_hosts: [a.example], routes: [{fixed_response: {status: 200}}]}\n  b: {<<: *a}\n", "merge keys"},
		"fields with dots":   {"proxies: {a: {routes.0.path: /x, virtual_hosts: [a.example]}}\n", "no key"},
		"a tag":              {"proxies: {a: {virtual_hosts: [!!binary YQ==]}}\n", "the tag"},
		"cannot be a name":   {"proxies: {'../x': {virtual_hosts: [a.example]}}\n", ""},
		"object of text":     {"proxies: {a: text}\n", "no object"},
		"expansion of bombs": {bomb(), ""},
	} {
		i.set(c.body, 200)
		now := becomes(t, s, name+" is refused", broken)
		if now.State != discovery.Running || len(now.Objects) != 2 || now.Objects[0] != was.Objects[0] {
			t.Errorf("%s: %d objects, state %s", name, len(now.Objects), now.State)
		}
		if i := now.Issues[0]; i.Code != discovery.BadDocument || !strings.Contains(i.Message, "not used") || !strings.Contains(i.String()+i.Message, c.want) {
			t.Errorf("%s: issue %q, want %q in it", name, i.String(), c.want)
		}
		i.set(good, 200)
		becomes(t, s, "the document is right again after "+name, running(2))
	}
	i.set("", 503)
	if now := becomes(t, s, "the server is away", func(n *discovery.Snapshot) bool { return n.State == discovery.Failed }); len(now.Objects) != 2 || !strings.Contains(now.Reason, "503") || strings.Contains(now.Reason, "key=1") {
		t.Errorf("%d objects, reason %q", len(now.Objects), now.Reason)
	}
	i.set("proxies: {}\n", 200)
	becomes(t, s, "none are said explicitly", running(0))
}

// bomb is a document that is small and means a lot.
func bomb() string {
	var b strings.Builder
	b.WriteString("proxies:\n  a:\n    virtual_hosts: &l0 [a.example]\n")
	for i := range 12 {
		fmt.Fprintf(&b, "    x%d: &l%d [%s]\n", i, i+1, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d, ", i), 9), ", "))
	}
	return b.String()
}

func TestHostileServersAreBounded(t *testing.T) {
	i := serve(t, "")
	s := follow(t, i, "", nil)
	for name, c := range map[string]struct{ body, want string }{
		"too large":        {"# " + strings.Repeat("x", maxBytes) + "\n" + good, "larger than 4 MiB"},
		"too many objects": {"proxies:\n" + many(maxObjects+1), "more than 10000 objects"},
		"too many fields":  {"proxies:\n  a:\n    virtual_hosts: [" + strings.Repeat("a.example,", config.MaxLabels+10) + "]\n", "labels, more than the maximum"},
		"a long value":     {"proxies:\n  a: {virtual_hosts: [" + strings.Repeat("a", config.MaxLabelSize+1) + "]}\n", "longer than"},
	} {
		i.set(c.body, 200)
		text := ""
		becomes(t, s, name+" is refused", func(n *discovery.Snapshot) bool {
			text = n.Reason
			for _, i := range n.Issues {
				text += " " + i.Message
			}
			return strings.Contains(text, c.want)
		})
		if now := s.Snapshot(); now.Known || len(now.Objects) > 0 || len(now.Issues) > maxIssues {
			t.Errorf("%s: %d objects, %d issues", name, len(now.Objects), len(now.Issues))
		}
	}
}

func many(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  p%d: {virtual_hosts: [p%d.example], routes: [{fixed_response: {status: 200}}]}\n", i, i)
	}
	return b.String()
}

func TestRedirectsStayOnTheServer(t *testing.T) {
	i, other := serve(t, good), serve(t, good)
	i.location = "/elsewhere"
	s := follow(t, i, "", func(d *config.HTTPDocument) { d.Auth = &config.HTTPAuth{Username: "u", Password: "p"} })
	becomes(t, s, "a path of the same server is followed", running(2))
	i.mu.Lock()
	if user, password, _ := (&http.Request{Header: i.header}).BasicAuth(); user != "u" || password != "p" {
		t.Errorf("sent %v", i.header)
	}
	i.location = other.URL
	i.mu.Unlock()
	now := becomes(t, s, "another server is refused", func(n *discovery.Snapshot) bool { return n.State == discovery.Failed })
	if !strings.Contains(now.Reason, "another server") || other.asked.Load() > 0 {
		t.Errorf("reason %q; the other server was asked %d times", now.Reason, other.asked.Load())
	}
}

func TestTheLastDocumentIsKept(t *testing.T) {
	state := t.TempDir()
	i := serve(t, good)
	first := follow(t, i, state, nil)
	becomes(t, first, "the document is read", running(2))
	i.set("proxies: [", 200)
	becomes(t, first, "a broken one is refused", broken)
	i.set("", 500)
	url := first.settings.URL

	again, err := Open("cmdb", &config.HTTPDocument{URL: url, Interval: unit.Duration(time.Hour)}, discovery.Environment{State: state})
	if err != nil || !again.Snapshot().Known || len(again.Snapshot().Objects) != 2 || again.Snapshot().State != discovery.Connecting {
		t.Fatalf("after a restart: %+v, %v", again.Snapshot(), err)
	}
	again.Start()
	if now := becomes(t, again.(*Source), "the server is away", func(n *discovery.Snapshot) bool { return n.State == discovery.Failed }); len(now.Objects) != 2 {
		t.Errorf("%d objects while the server is away", len(now.Objects))
	}
	again.Stop()
	for name, settings := range map[string]*config.HTTPDocument{
		"another URL":    {URL: url + "2"},
		"another digest": {URL: url, SHA256: strings.Repeat("0", 64)},
	} {
		if s, err := Open("cmdb", settings, discovery.Environment{State: state}); err != nil || s.Snapshot().Known {
			t.Errorf("%s: known %v, %v", name, s.Snapshot().Known, err)
		}
	}
	files, _ := filepath.Glob(filepath.Join(state, "*"))
	if info, err := os.Stat(files[0]); len(files) != 1 || err != nil || info.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
		t.Errorf("files %v, %v, %v", files, info.Mode(), err)
	}
	again.(discovery.Forgetter).Forget()
	if files, _ := filepath.Glob(filepath.Join(state, "*")); len(files) > 0 {
		t.Errorf("%v are left", files)
	}
}

func TestOnlyTheDocumentOfTheDigestIsUsed(t *testing.T) {
	sum := sha256.Sum256([]byte(good))
	i := serve(t, good+"# changed\n")
	s := follow(t, i, "", func(d *config.HTTPDocument) { d.SHA256 = strings.ToUpper(hex.EncodeToString(sum[:])) })
	if now := becomes(t, s, "another document is refused", broken); now.Known || !strings.Contains(now.Issues[0].Message, "sha256 names") {
		t.Errorf("got %+v", now)
	}
	i.set(good, 200)
	becomes(t, s, "the right one is used", running(2))
}

func TestAForeignCertificateIsRefused(t *testing.T) {
	i := &inventory{body: good, status: 200}
	i.Server = httptest.NewUnstartedServer(http.HandlerFunc(i.answer))
	i.Config.ErrorLog = log.New(io.Discard, "", 0)
	i.StartTLS()
	defer i.Close()
	s := follow(t, i, "", func(d *config.HTTPDocument) { d.Auth = &config.HTTPAuth{Bearer: "secret"} })
	now := becomes(t, s, "the certificate is refused", func(n *discovery.Snapshot) bool { return n.State == discovery.Failed })
	if !strings.Contains(now.Reason, "certificate") || i.asked.Load() > 0 {
		t.Errorf("reason %q, asked %d times", now.Reason, i.asked.Load())
	}
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	becomes(t, follow(t, i, "", func(d *config.HTTPDocument) { d.CAFile = ca }), "the authority of ca_file is trusted", running(2))
	if _, err := Open("x", &config.HTTPDocument{URL: i.URL, CAFile: ca + ".none"}, discovery.Environment{}); err == nil {
		t.Error("a file that is not there was read")
	}
}

func TestASilentServerEndsWithTheSource(t *testing.T) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := Open("cmdb", &config.HTTPDocument{URL: "http://" + l.Addr().String(), Interval: unit.Duration(time.Hour)}, discovery.Environment{})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	began := time.Now()
	s.Stop()
	if d := time.Since(began); d > 5*time.Second {
		t.Errorf("stopped after %v", d)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(good))
	f.Add([]byte(bomb()))
	f.Add([]byte("proxies: {a: {routes: [[], {}, null, 1]}}"))
	f.Add([]byte(`{"udp_proxies": {"a": {"address": "0.0.0.0:1", "servers": [{"address": "10.0.0.1:1"}]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s := &Source{name: "x", settings: &config.HTTPDocument{URL: "https://x.example"}}
		objects, issues := s.read(data, sha256.Sum256(data), nil)
		if len(issues) > maxIssues {
			t.Fatalf("%d issues", len(issues))
		}
		for _, d := range objects {
			if len(issues) == 0 && config.Find(d, nil).Problems != nil {
				t.Fatalf("%s has problems and was accepted", d.Name)
			}
		}
		again, _ := s.read(data, sha256.Sum256(data), objects)
		for i := range again {
			if len(issues) == 0 && again[i] != objects[i] {
				t.Fatalf("%s is not the same again", again[i].Name)
			}
		}
	})
}
