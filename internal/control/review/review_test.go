package review

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"headgate/internal/config"
)

// TestReviews holds what is said of changes: each file of testdata has a configuration
// before, one after, and the review.
func TestReviews(t *testing.T) {
	files, _ := filepath.Glob("testdata/*.txtar")
	if len(files) < 8 {
		t.Errorf("only %d files", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			a, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			c := Change{}
			var got string
			for i := range a.Files {
				switch f := &a.Files[i]; f.Name {
				case "before":
					c.Before = load(t, f.Data, nil)
				case "after":
					c.After = load(t, f.Data, &c)
				case "running":
					c.Running = running(t, string(f.Data))
				case "want":
					got = reviewLines(Of(c))
					if *update {
						f.Data = []byte(got)
					} else if got != string(f.Data) {
						t.Errorf("got:\n%s\nwant:\n%s", got, f.Data)
					}
				}
			}
			if *update {
				if err := os.WriteFile(file, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if strings.Contains(got, secretText) {
				t.Error("the review shows a secret")
			}
			if r := Of(Change{Before: c.After, After: c.After}); len(r.Objects) != 0 || r.Summary != "nothing changes" {
				t.Errorf("a configuration against itself: %s", reviewLines(r))
			}
		})
	}
}

func load(t *testing.T, data []byte, into *Change) *config.Config {
	t.Helper()
	c, doc, problems := config.Load("headgate.yaml", append([]byte("version: 1\n"), data...))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if into != nil {
		into.Notes = doc.Notes()
	}
	return c
}

// running reads lines like "ports web 3", "selfsigned web a.example.com" and "passkeys
// gate.example.com 2".
func running(t *testing.T, text string) *Running {
	r := &Running{Connections: map[Address]int{}, SelfSigned: map[string][]string{}}
	for line := range strings.Lines(text) {
		var what, name, value string
		if _, err := fmt.Sscan(line, &what, &name, &value); err != nil {
			t.Fatal(err)
		}
		if what == "selfsigned" {
			r.SelfSigned[name] = append(r.SelfSigned[name], value)
			continue
		}
		n := 0
		fmt.Sscan(value, &n)
		if what == "passkeys" {
			r.Passkeys = func(host string) int {
				if host == name {
					return n
				}
				return 0
			}
			continue
		}
		r.Connections[Address{what, name}] = n
	}
	return r
}

// reviewLines writes a review as lines.
func reviewLines(r *Review) string {
	return fmt.Sprintf("%s (%s)\n%s\n", r.Summary, r.Severity, strings.Join(r.Lines(1000), "\n"))
}

// TestReviewIsBounded changes more objects than a review has room for: the worst are
// shown, the others counted.
func TestReviewIsBounded(t *testing.T) {
	const n = 3000
	before, after := config.New(), config.New()
	before.Proxies, after.Proxies = map[string]*config.Proxy{}, map[string]*config.Proxy{}
	for i := range n {
		name := fmt.Sprintf("p%04d", i)
		a, b := newProxy(name), newProxy(name)
		route := config.NewRoute()
		route.FixedResponse = &config.FixedResponse{Status: 200}
		a.Routes, b.Routes = []*config.Route{route}, []*config.Route{route}
		a.VirtualHosts, b.VirtualHosts = []string{name + ".example.com"}, []string{name + ".example.com"}
		b.Description = "another"
		if i == n-1 {
			b.VirtualHosts = []string{"other.example.com"}
		}
		before.Proxies[name], after.Proxies[name] = a, b
	}
	r := Of(Change{Before: before, After: after})
	if len(r.Objects) != MaxObjects || len(r.More) != 1 || r.More[0].Count != n-MaxObjects {
		t.Errorf("%d objects and %v more", len(r.Objects), r.More)
	}
	if last := r.Objects[len(r.Objects)-1]; last.Name != "p2999" || last.Severity != Warning {
		t.Errorf("the object with the warning is left out: the last is %+v", last)
	}
	lines := r.Lines(20)
	if len(lines) != 21 || lines[20] != "and 2900 more objects, and 82 more sentences" {
		t.Errorf("%d lines, the last is %q", len(lines), lines[len(lines)-1])
	}
}

func BenchmarkOneAmong10000(b *testing.B) {
	before, after := config.New(), config.New()
	before.Proxies, after.Proxies = map[string]*config.Proxy{}, map[string]*config.Proxy{}
	for i := range 10_000 {
		name := fmt.Sprintf("p%05d", i)
		p := newProxy(name)
		for _, path := range []string{"/", "/api"} {
			r := config.NewRoute()
			r.Path, r.Servers = path, []*config.Server{{URL: "http://10.0.0.1:3000", Weight: 1}}
			p.Routes = append(p.Routes, r)
		}
		p.VirtualHosts = []string{name + ".example.com", "www." + name + ".example.com"}
		before.Proxies[name], after.Proxies[name] = p, p
	}
	p := *after.Proxies["p00007"]
	p.VirtualHosts = []string{"other.example.com"}
	after.Proxies["p00007"] = &p
	b.ReportAllocs()
	for b.Loop() {
		if r := Of(Change{Before: before, After: after}); len(r.Objects) != 1 {
			b.Fatal(reviewLines(r))
		}
	}
}

// Each gate that changes, and each way past one, is named.
func TestGatesAreNamed(t *testing.T) {
	document := func(gate, route string) *config.Config {
		return load(t, []byte("ports: {secure: {address: \"127.0.0.1:443\", protocol: https}}\n"+
			"sign_in: {providers: {company: {issuer: \"https://id.example.com\", client_id: a, client_secret: b}}}\n"+
			"proxies:\n  login: {virtual_hosts: [login.example.com], routes: [{sign_in: {}}]}\n"+
			"  wiki:\n    virtual_hosts: [wiki.example.com]\n"+gate+"    routes:\n      - servers: [{url: \"http://127.0.0.1:1\"}]\n"+
			"      - {path: /api, servers: [{url: \"http://127.0.0.1:1\"}]"+route+"}\n"), nil)
	}
	const staff = "    gate: {allow: [group:company/staff]}\n"
	for _, c := range []struct{ was, wasRoute, is, isRoute, want string }{
		{"", "", staff, "", "lets in only group:company/staff after they have signed in"},
		{staff, "", "", "", "lets people in who have not signed in"},
		{staff, "", staff, ", gate: {enabled: false}", ": route /api lets people in who have not signed in"},
		{staff, "", "    gate: {allow: [group:company/staff, \"domain:example.com\"]}\n", "", "lets in domain:example.com"},
		{staff, "", "    gate: {allow: [group:company/staff], from: [10.0.0.0/8]}\n", "", "lets clients of 10.0.0.0/8 in without a sign-in"},
		{staff, "", "    gate: {allow: [group:company/staff], shared_cache: true}\n", "", "lets caches share"},
	} {
		r := Of(Change{Before: document(c.was, c.wasRoute), After: document(c.is, c.isRoute)})
		var got []string
		for _, o := range r.Objects {
			for _, s := range o.Sentences {
				got = append(got, s.Text)
			}
		}
		if !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%q to %q%s: got %q, want %q", c.was, c.is, c.isRoute, got, c.want)
		}
	}
}

// newProxy returns a proxy with every default.
func newProxy(name string) *config.Proxy {
	p := &config.Proxy{}
	config.KindOf("proxies").Schema().Fill(reflect.ValueOf(p).Elem())
	p.Name = name
	return p
}
