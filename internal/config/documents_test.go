package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"headgate/internal/config/document"
)

// answering is a proxy with one route, on one line.
const answering = `{routes: [{fixed_response: {status: 200}}]}`

func TestDocumentsAreOneConfiguration(t *testing.T) {
	docs := Documents{Dir: "/etc/headgate", List: []Document{
		{"a.yaml", []byte("version: 1\nports:\n  web: {address: \"0.0.0.0:80\", protocol: http}\nadmin: {address: \"127.0.0.1:9000\"}\n")},
		{"b.yaml", []byte("version: 1\n# the shop\nproxies:\n  shop:\n    ports: [web]\n    routes: [{fixed_response: {status: 200}}]\n")},
		{"c.yaml", []byte("version: 1\nproxies: {blog: " + answering + "}\nports: {other: {address: \"0.0.0.0:81\", protocol: http}}\n")},
	}}
	c, _, problems := LoadDocuments(docs, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if len(c.Ports) != 2 || len(c.Proxies) != 2 || c.Admin.Address.Port() != 9000 || c.Dir != "/etc/headgate" || !c.AccessLog.Enabled {
		t.Errorf("ports %d, proxies %d, admin %v, dir %q", len(c.Ports), len(c.Proxies), c.Admin.Address, c.Dir)
	}
	for _, v := range []struct{ kind, name, want string }{
		{"ports", "web", "a.yaml:3:3"}, {"proxies", "shop", "b.yaml:4:3"}, {"proxies", "blog", "c.yaml:2:11"}, {"admin", "", "a.yaml:4:1"},
	} {
		if o, ok := c.Origin(v.kind, v.name); !ok || o.String() != v.want || o.Via != ViaDocument {
			t.Errorf("origin of %s %s = %v, %v; want %s", v.kind, v.name, o, ok, v.want)
		}
	}
	for _, v := range [][2]string{{"proxies", "none"}, {"upstreams", ""}, {"certificates", ""}} {
		if o, ok := c.Origin(v[0], v[1]); ok {
			t.Errorf("%v has the origin %v", v, o)
		}
	}
}

func TestProblemsNameTheDocument(t *testing.T) {
	for _, v := range []struct {
		name string
		docs []string
		want []string
	}{
		{"the same object twice", []string{"version: 1\nproxies:\n  shop: " + answering, "version: 1\nproxies:\n  blog: " + answering + "\n  shop: " + answering},
			[]string{"1.yaml:4:3: proxies.shop: is also defined in 0.yaml:3:3; remove one of them, or choose another name"}},
		{"the same settings twice", []string{"version: 1\naccess_log: {enabled: false}", "version: 1\naccess_log: {}"},
			[]string{"1.yaml:2:1: access_log: is also defined in 0.yaml:2:1; remove one of them, or choose another name"}},
		{"a document without a version", []string{"version: 1", "proxies: {}\n"}, []string{"1.yaml:1:1: version: missing; add version: 1"}},
		{"one that cannot be parsed", []string{"version: 1\nproxies:\n  shop: {ports: [web], routes: [{fixed_response: {status: 200}}]}", "version: 1\nports: {web: [\n"},
			[]string{"1.yaml:3:1: a value is missing, or a list or object is not closed; close what was opened with [ or {"}},
		{"an empty one", []string{"version: 1", ""}, []string{`1.yaml:1:1: the file is empty; begin with "version: 1"`}},
		{"a problem in each, and one between them", []string{
			"version: 1\nadmin: {adress: x}", "version: 1\nproxies:\n  shop:\n    ports: [wbe]\n    routes: [{fixed_response: {status: 200}}]",
			"version: 1\nports: {web: {address: \"0.0.0.0:80\", protocol: htp}}"},
			[]string{`0.yaml:2:9: admin.adress: unknown key; did you mean "address"?`,
				`1.yaml:4:13: proxies.shop.ports[0]: there is no port "wbe"; did you mean "web"?`,
				`2.yaml:2:48: ports.web.protocol: unknown value "htp"; did you mean "http"?`}},
	} {
		docs := Documents{}
		for i, text := range v.docs {
			docs.List = append(docs.List, Document{fmt.Sprintf("%d.yaml", i), []byte(text)})
		}
		c, _, problems := LoadDocuments(docs, nil)
		var got []string
		for _, p := range problems {
			got = append(got, p.Error())
		}
		if diff := cmp.Diff(v.want, got); diff != "" || c != nil {
			t.Errorf("%s (-want +got):\n%s", v.name, diff)
		}
	}
}

func TestDocumentsAreBounded(t *testing.T) {
	docs := Documents{}
	for i := range MaxDocuments {
		docs.List = append(docs.List, Document{fmt.Sprintf("%03d.yaml", i), fmt.Appendf(nil, "version: 1\nproxies:\n  p%d: {virtual_hosts: [h%d.example.com], routes: [{fixed_response: {status: 200}}]}\n", i, i)})
	}
	if c, _, problems := LoadDocuments(docs, nil); len(problems) > 0 || len(c.Proxies) != MaxDocuments {
		t.Errorf("%d documents: %v", MaxDocuments, problems)
	}
	docs.List[77].Data = []byte("version: 1\nproxies:\n  p77: {virtual_host: [h77.example.com]}\n")
	_, _, problems := LoadDocuments(docs, nil)
	if len(problems) != 2 || problems[0].File != "077.yaml" || problems[0].Line != 3 {
		t.Errorf("problems with one broken document: %v", problems)
	}
	docs.List = append(docs.List, Document{"more.yaml", []byte("version: 1\n")})
	if _, _, problems := LoadDocuments(docs, nil); len(problems) != 1 || !strings.Contains(problems[0].What, "201 documents") {
		t.Errorf("problems with too many documents: %v", problems)
	}
}

func TestObjectsThatSayTheSameAreTheSame(t *testing.T) {
	const before = "version: 1\nports:\n  web: {address: \"0.0.0.0:80\", protocol: http}\nproxies:\n" +
		"  a: {virtual_hosts: [a], routes: [{fixed_response: {status: 200}}]}\n  b:\n    virtual_hosts: [b]\n    routes: [{fixed_response: {status: 200}}]\n  c: {virtual_hosts: [c], routes: [{fixed_response: {status: 200}}]}\n"
	a, _, _ := LoadDocuments(one("f", []byte(before)), nil)
	edited := strings.Replace("# moved\n"+before, "hosts: [b]", "hosts: [bb]", 1)
	edited = strings.Replace(edited, "a: {virtual_hosts: [a], ", "a:   {virtual_hosts: [a],  ", 1) // other text, same meaning
	b, _, problems := LoadDocuments(one("f", []byte(edited)), a)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if a.Proxies["a"] != b.Proxies["a"] || a.Proxies["c"] != b.Proxies["c"] || a.Ports["web"] != b.Ports["web"] {
		t.Error("an object that was left alone is another one")
	}
	if a.Proxies["b"] == b.Proxies["b"] || b.Proxies["b"].VirtualHosts[0] != "bb" {
		t.Error("the edited object was carried over")
	}
	if o, _ := b.Origin("proxies", "c"); o.Line != 10 {
		t.Errorf("the origin of an object that moved is %v", o)
	}
}

// TestLoadedOnTopIsLoadedAnew draws changes of a file and holds that loading it on
// top of what was loaded before gives what loading it alone does: objects, problems
// and notes, with their places.
func TestLoadedOnTopIsLoadedAnew(t *testing.T) {
	pieces := []string{
		"  %s:\n    virtual_hosts: [%[1]s.example.com]\n    routes:\n      - path: /a\n        fixed_response: {status: 200}\n",
		"  %s: {virtual_hosts: [%[1]s.org], ports: [web], routes: [{fixed_response: {status: 201}}]} # why\n",
		"  # a note comes of this\n  %s:\n    basic_auth: {users: [{name: ada, password_hash: \"$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se\"}]}\n    virtual_hosts: [%[1]s.net]\n    routes: [{fixed_response: {status: 200}}]\n",
		"  %s: {virtual_hosts: [\"${HOST:-%[1]s.com}\"], routes: [{fixed_response: {status: 200}}]}\n\n",
		"  %s: {virtual_hosts: [%[1]s.dev], ports: [alt], routes: [{fixed_response: {status: 200}}]}\n",
		"  %s: {virtual_hosts: [%[1]s.eu], use: [staff], routes: [{use: [staff], fixed_response: {status: 200}}]}\n",
		"  %s: {virtual_hosts: [%[1]s.us], access_log: {enabled: false}, routes: [{fixed_response: {status: 200}}]}\n",
		"  %s:\n    virtual_hosts: [%[1]s.fr]\n    routes: [{sticky_cookie: {name: at}, servers: [{url: \"http://127.0.0.1:1\"}]}]\n",
		"  %s: {virtual_hosts: [x], rutes: []}\n",
		"  %s: &x {virtual_hosts: [%[1]s.io], routes: [{fixed_response: {status: 200}}]}\n",
	}
	rapid.Check(t, func(t *rapid.T) {
		var before *Config
		for range rapid.IntRange(2, 5).Draw(t, "loads") {
			var docs Documents
			for n := range rapid.IntRange(1, 2).Draw(t, "documents") {
				var b strings.Builder
				b.WriteString("version: 1\n")
				if n == 0 {
					b.WriteString(rapid.SampledFrom([]string{
						"ports:\n  web: {address: \"0.0.0.0:80\", protocol: http}\n",
						"ports:\n  web: {address: \"0.0.0.0:80\", protocol: http}\n  alt: {address: \"127.0.0.1:81\", protocol: http}\n",
					}).Draw(t, "ports"))
				}
				if n == 0 {
					b.WriteString(rapid.SampledFrom([]string{"", "policies: {staff: {rate_limit: {requests: 5}}}\n", "defaults: {compression: {}}\npolicies:\n  staff: {}\n"}).Draw(t, "policies"))
				}
				b.WriteString("proxies:\n")
				for i := range rapid.IntRange(1, 5).Draw(t, "proxies") {
					fmt.Fprintf(&b, rapid.SampledFrom(pieces[:rapid.IntRange(1, len(pieces)).Draw(t, "kinds")]).Draw(t, "piece"), fmt.Sprintf("p%d%d", n, i))
				}
				docs.List = append(docs.List, Document{fmt.Sprintf("%d.yaml", n), []byte(b.String())})
			}
			want, wantLoaded, wantProblems := LoadDocuments(docs, nil)
			got, loaded, problems := LoadDocuments(docs, before)
			if diff := cmp.Diff(wantProblems, problems); diff != "" {
				t.Fatalf("problems (-anew +on top):\n%s", diff)
			}
			if diff := cmp.Diff(want, got, comparers()...); diff != "" {
				t.Fatalf("configuration (-anew +on top):\n%s", diff)
			}
			if want == nil {
				continue
			}
			if diff := cmp.Diff(wantLoaded.Notes(), loaded.Notes()); diff != "" {
				t.Fatalf("notes (-anew +on top):\n%s", diff)
			}
			for name := range want.Proxies {
				for _, path := range []string{"proxies." + name, "proxies." + name + ".routes[0].fixed_response"} {
					l, c := wantLoaded.Position(path)
					if gl, gc := loaded.Position(path); l != gl || c != gc || wantLoaded.File(path) != loaded.File(path) {
						t.Fatalf("%s stands at %d:%d, on top at %d:%d", path, l, c, gl, gc)
					}
				}
			}
			checkSince(t, before, got)
			before = got
		}
	})
}

// checkSince holds what a configuration knows of its proxies against a look at all of them.
func checkSince(t *rapid.T, before, after *Config) {
	names, ok := after.ProxiesSince(before)
	if ok != (before != nil) {
		t.Fatalf("it knows what has changed: %v", ok)
	}
	want := []string{}
	for name, p := range after.Proxies {
		if before != nil && before.Proxies[name] != p {
			want = append(want, name)
		}
	}
	if before != nil {
		for name := range before.Proxies {
			if after.Proxies[name] == nil {
				want = append(want, name)
			}
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, names, cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("changed since (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(specialOf(after, nil), after.special(), cmp.AllowUnexported(special{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("the few (-want +got):\n%s", diff)
	}
	if _, ok := before.ProxiesSince(after); ok && before != nil {
		t.Fatal("the one before knows what has changed since the one after")
	}
}

// What Edit has read is not read again, and all that was edited is loaded: also by the first
// of several edits, and when the documents are loaded once more.
func TestEditedDocumentsAreLoadedAsTheyWereRead(t *testing.T) {
	const text = "version: 1\nproxies:\n" +
		"  a: {routes: [{fixed_response: {status: 200}}]}\n  b: {routes: [{fixed_response: {status: 200}}]}\n" +
		"  c: {routes: [{fixed_response: {status: 200}}]}\n  d: {routes: [{fixed_response: {status: 200, body: \"${HG_NONE:-x}\"}}]}\n"
	set := func(name string) document.Edit {
		return document.Edit{Op: document.Set, Path: "proxies." + name + ".routes[0].fixed_response.status", Value: json.RawMessage("404")}
	}
	base := one("a.yaml", []byte(text))
	before, _, problems := LoadDocuments(base, nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, v := range []struct {
		name string
		docs Documents
	}{{"with what is known", before.Recall(base)}, {"without", base}} {
		t.Run(v.name, func(t *testing.T) {
			docs, p := v.docs.Edit(set("a"), set("c"))
			if p == nil {
				docs, p = docs.Edit(set("b"))
			}
			if p != nil {
				t.Fatal(p)
			}
			if read := docs.readAs(0, docs.before); read == nil || read.Text() != string(docs.List[0].Data) {
				t.Error("what was edited is not at hand as it was read")
			}
			anew, _, problems := LoadDocuments(Documents{List: docs.List}, nil)
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			for _, on := range []*Config{before, before, nil, anew} {
				after, _, problems := LoadDocuments(docs, on)
				if len(problems) > 0 {
					t.Fatal(problems)
				}
				for name, p := range after.Proxies {
					want, _ := anew.Canonical("proxies", name, true)
					if got, _ := after.Canonical("proxies", name, true); string(got) != string(want) {
						t.Errorf("got %s, want %s", got, want)
					}
					if on == before && (p == before.Proxies[name]) != (name == "d") {
						t.Errorf("%s is the one before: %v", name, p == before.Proxies[name])
					}
				}
			}
		})
	}
}

// After a change of one line, only the proxy with that line is checked, also where the configuration
// before is used on a node: that is set after a load.
func TestUnchangedProxiesAreNotCheckedAgain(t *testing.T) {
	text := large(10_000)
	before, _, problems := LoadDocuments(one("headgate.yaml", text), nil)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	before.SetNode("a", true)
	for _, p := range before.Proxies {
		p.Routes[0].Path = "wrong" // is found where it is checked
	}
	edited := bytes.Replace(text, []byte("h00007.example.com"), []byte("other.example.com"), 1)
	after, _, problems := LoadDocuments(one("headgate.yaml", edited), before)
	if len(problems) > 0 {
		t.Fatalf("unchanged proxies were checked, with %d problems such as %v", len(problems), problems[0])
	}
	carried := 0
	for name, p := range after.Proxies {
		if p == before.Proxies[name] {
			carried++
		}
	}
	if carried != 9_999 {
		t.Errorf("%d proxies are those before, want 9999", carried)
	}
	after.SetNode("a", true)
	edited = bytes.Replace(edited, []byte("0.0.0.0:8080"), []byte("0.0.0.0:8081"), 1)
	if _, _, problems = LoadDocuments(one("headgate.yaml", edited), after); len(problems) == 0 {
		t.Error("after a change of what proxies refer to, they were not checked")
	}
}

func BenchmarkLoadOneEditOf10000Proxies(b *testing.B) {
	texts := [][]byte{large(10_000), bytes.Replace(large(10_000), []byte("h00007.example.com"), []byte("other.example.com"), 1)}
	before, _, _ := LoadDocuments(one("headgate.yaml", texts[1]), nil)
	before.SetNode("a", true)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		next, _, problems := LoadDocuments(one("headgate.yaml", texts[i%2]), before)
		if len(problems) > 0 {
			b.Fatal(problems[0])
		}
		next.SetNode("a", true) // as each change does
		before = next
	}
}
