package plan

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/metrics"
)

// outline writes down everything that can be seen of a plan.
func outline(p *Plan) string {
	var b strings.Builder
	table := func(what string, t *paths) {
		var walk func(n *node, at string)
		walk = func(n *node, at string) {
			if r := n.route; r != nil {
				fmt.Fprintf(&b, "  %s %s: %+v %s %v", what, at, r.place, r.source.Describe(), r.connect)
				for _, f := range r.filters {
					fmt.Fprintf(&b, " %s", f.Name)
				}
				if r.servers != nil {
					fmt.Fprintf(&b, " %+v", r.servers.Host())
					for _, s := range r.servers.List() {
						fmt.Fprintf(&b, " %s %s %s %d", s.URL, s.Authority, s.Base, s.Weight)
					}
				}
				fmt.Fprintf(&b, " counted %v done %d\n", r.pipeline.Counter != nil, len(r.pipeline.Done))
			}
			for i := range n.children {
				walk(&n.children[i], at+"/"+n.children[i].name)
			}
		}
		walk(&t.root, "")
	}
	for _, port := range p.ports {
		front := port.front
		front.Place, front.Serve, front.Refuse = nil, nil, nil
		fmt.Fprintf(&b, "port %s %v %+v\n", port.Name(), port.Address(), front)
		for _, name := range slices.Sorted(maps.Keys(port.hosts.exact)) {
			table(name, port.hosts.exact[name])
		}
		for _, name := range slices.Sorted(maps.Keys(port.hosts.wildcard)) {
			table("*."+name, port.hosts.wildcard[name])
		}
		for _, pattern := range port.hosts.patterns {
			table("~"+pattern.regex.String(), pattern.paths)
		}
		if port.hosts.any != nil {
			table("any", port.hosts.any)
		}
	}
	kept := heldBy(p)
	for _, key := range sortedKeys(kept) {
		fmt.Fprintf(&b, "kept %T %x needs", kept[key].part, key)
		for _, need := range kept[key].needs {
			fmt.Fprintf(&b, " %x", need.key)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func sortedKeys(all map[partKey]*held) []partKey {
	return slices.SortedFunc(maps.Keys(all), func(a, b partKey) int { return bytes.Compare(a[:], b[:]) })
}

// heldBy returns the parts that one plan uses, by their keys.
func heldBy(p *Plan) map[partKey]*held {
	all := map[partKey]*held{}
	var add func(list []*held)
	add = func(list []*held) {
		for _, h := range list {
			all[h.key] = h
			add(h.needs)
		}
	}
	add(p.rest.uses)
	for _, proxy := range p.proxies {
		add(proxy.uses)
	}
	return all
}

// A plan that was compiled after others is the plan that is compiled alone.
func TestPlanAfterChangesIsAFreshOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var last *Plan
		for range rapid.IntRange(1, 6).Draw(t, "changes") {
			var before *config.Config
			if last != nil && rapid.Bool().Draw(t, "loaded") { // which shares what did not change
				before = last.config
			}
			cfg := draw(t, before)
			next, problems := Compile(cfg, last, House{}, nil)
			fresh, again := Compile(cfg, nil, House{}, nil)
			if len(problems) != len(again) {
				t.Fatalf("problems %v after a change, %v alone", problems, again)
			}
			if next == nil {
				continue
			}
			if got, want := outline(next), outline(fresh); got != want {
				t.Fatalf("after changes:\n%s\nalone:\n%s", got, want)
			}
			fresh.Retire(nil)
			if last != nil {
				last.Retire(next)
			}
			last = next
			if used := heldBy(last); !maps.Equal(used, last.parts) {
				t.Fatalf("parts %x, used are %x", sortedKeys(last.parts), sortedKeys(used))
			}
		}
		if last != nil {
			last.Retire(nil)
			if len(last.parts) > 0 {
				t.Fatalf("at the end there are %x", sortedKeys(last.parts))
			}
		}
	})
}

// draw makes a configuration with some ports, proxies and servers, on top of one before,
// which may be nil.
func draw(t *rapid.T, before *config.Config) *config.Config {
	var b strings.Builder
	b.WriteString("version: 1\nports:\n")
	for i := range rapid.IntRange(1, 2).Draw(t, "ports") {
		fmt.Fprintf(&b, "  p%d: {address: \"0.0.0.0:%d\", protocol: http}\n", i, 8080+i)
	}
	b.WriteString("proxies:\n")
	for i := range rapid.IntRange(1, 3).Draw(t, "proxies") {
		fmt.Fprintf(&b, "  x%d:\n    virtual_hosts: [%s]\n    host_header: %s\n    routes:\n", i,
			rapid.SampledFrom([]string{"a.example", "b.example", "'*.example', '~^c$'"}).Draw(t, "hosts"),
			rapid.SampledFrom([]string{"preserve", "upstream", "fixed.example"}).Draw(t, "host"))
		fmt.Fprintf(&b, "      - {path: /%d, servers: [{url: \"http://127.0.0.1:%d/b\", weight: %d}]}\n", i,
			rapid.IntRange(3000, 3002).Draw(t, "server"), rapid.IntRange(1, 2).Draw(t, "weight"))
		if rapid.Bool().Draw(t, "more") {
			b.WriteString("      - {path: /same, fixed_response: {status: 204}}\n")
		}
	}
	cfg, _, problems := config.LoadDocuments(config.Documents{List: []config.Document{{Name: "drawn.yaml", Data: []byte(b.String())}}}, before)
	if len(problems) > 0 {
		t.Fatalf("%v\n%s", problems, b.String())
	}
	return cfg
}

const twoServers = "proxies:\n  shop:\n    routes:\n      - servers: [{url: \"http://127.0.0.1:3000\"}, {url: \"http://127.0.0.1:3001\"}]\n"

func TestUnchangedPartsAreCarriedOver(t *testing.T) {
	cfg := load(t, twoServers)
	first, _ := Compile(cfg, nil, House{}, nil)
	second, _ := Compile(load(t, twoServers+"  other: {virtual_hosts: [o.example], routes: [{fixed_response: {status: 204}}]}\n"), first, House{}, nil)
	one, two := first.Port("web").hosts.any.longest("/"), second.Port("web").hosts.any.longest("/")
	if one.servers != two.servers {
		t.Error("the servers of a route that did not change are others")
	}
	carried := heldBy(second)
	for key, h := range heldBy(first) {
		if carried[key] != h {
			t.Errorf("%T %x was not carried over", h.part, key)
		}
	}
	third, _ := Compile(load(t, strings.Replace(twoServers, "3001", "3002", 1)), second, House{}, nil)
	if three := third.Port("web").hosts.any.longest("/"); three.servers == two.servers {
		t.Error("the servers of a route that did change are the same")
	}
	was, is := heldBy(second), heldBy(third)
	carriedOf, allOf := map[string]int{}, map[string]int{}
	for key, h := range is {
		kind := fmt.Sprintf("%T", h.part)
		allOf[kind]++
		if was[key] == h {
			carriedOf[kind]++
		}
	}
	for kind, want := range map[string]int{"*plan.keptServers": 0, "*health.Server": 1, "*upstream.Pool": 1} {
		if carriedOf[kind] != want || allOf[kind] == 0 {
			t.Errorf("%d of %d %s were carried over, want %d", carriedOf[kind], allOf[kind], kind, want)
		}
	}
}

// A setting of a server that the key leaves out would never reach a source that
// was carried over.
func TestKeyOfASourceNamesEverySettingOfAServer(t *testing.T) {
	key := func(s *config.Server) string {
		c := newCompiler(config.New(), nil, House{}, nil)
		b := &body{proxy: &config.Proxy{}, settings: &config.Route{Servers: []*config.Server{s}}}
		secure, err := c.secureServers(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(c.serversKey(b, secure))
	}
	for _, field := range reflect.VisibleFields(reflect.TypeFor[config.Server]()) {
		if !field.IsExported() {
			continue
		}
		s := &config.Server{URL: "https://a"}
		switch v := reflect.ValueOf(s).Elem().FieldByIndex(field.Index); v.Kind() {
		case reflect.String:
			v.SetString("https://x")
		case reflect.Int:
			v.SetInt(7)
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Pointer:
			v.Set(reflect.New(v.Type().Elem()))
		default:
			t.Errorf("say here how to change %s", field.Name)
		}
		if key(s) == key(&config.Server{URL: "https://a"}) {
			t.Errorf("%s is not in the key", field.Name)
		}
	}
}

// part counts how often it was retired.
type part struct{ retired *int }

func (p part) Retire() { *p.retired++ }

func TestPartsRetireOnce(t *testing.T) {
	count := map[string]*int{}
	open := func(name string) func() exchange.Kept {
		return func() exchange.Kept {
			count[name] = new(int)
			return part{count[name]}
		}
	}
	var first *Plan
	compiling := func(prev *Plan) *keeper {
		k := newKeeper(prev, nil)
		k.unit = &unit{}
		return k
	}
	made := func(k *keeper) *Plan { return &Plan{parts: k.parts, rest: k.unit} }
	k := compiling(nil)
	k.keep("outer", func() exchange.Kept { k.keep("inner", open("inner")); return open("outer")() })
	k.keep("gone", open("gone"))
	first = made(k)

	k = compiling(first)
	k.keep("outer", func() exchange.Kept { t.Error("opened again"); return nil })
	k.keep("new", open("new"))
	refused := made(k)
	refused.Retire(first)

	k = compiling(first)
	k.keep("outer", nil)
	second := made(k)
	first.Retire(second)
	check := func(name string, want int) {
		t.Helper()
		if *count[name] != want {
			t.Errorf("%s was retired %d times, want %d", name, *count[name], want)
		}
	}
	check("new", 1)
	check("gone", 1)
	check("outer", 0)
	check("inner", 0)
	second.Retire(nil)
	check("outer", 1)
	check("inner", 1)
	check("gone", 1)
}

// Plans change while requests are served: each request sees one plan or the
// other, and nothing that was retired answers wrongly.
func TestRequestsGoOnWhilePlansChange(t *testing.T) {
	texts := []string{
		"proxies:\n" + named("one", "", "/", "/a"),
		"proxies:\n" + named("two", "h.example", "/", "/a/b") + named("one", "", "/"),
	}
	wanted := map[string]bool{"one /a": true, "two /a/b": true}
	house := House{Metrics: metrics.New(metrics.Build{}), Record: func(string) func(*exchange.Exchange) { return func(*exchange.Exchange) {} }}
	var current atomic.Pointer[Plan]
	first, _ := Compile(load(t, texts[0]), nil, house, nil)
	current.Store(first)
	stop := make(chan struct{})
	var group sync.WaitGroup
	for range 2 {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if s := request(current.Load().Port("web"), "GET", "H.example:80", "/a//b/c"); !wanted[s.text] {
					t.Errorf("answer %d %q", s.status, s.text)
					return
				}
			}
		})
	}
	for i := range 100 {
		last := current.Load()
		next, problems := Compile(load(t, texts[i%2]), last, house, nil)
		if problems != nil {
			t.Error(problems)
			break
		}
		current.Store(next)
		last.Retire(next)
	}
	close(stop)
	group.Wait()
	current.Load().Retire(nil)
}

func TestDoneHearsOfEveryExchange(t *testing.T) {
	cfg := load(t, "proxies:\n"+named("a", "a.example", "/x")+
		"  quiet: {virtual_hosts: [q.example], access_log: {enabled: false}, routes: [{fixed_response: {status: 204}}]}\n"+
		"  own: {virtual_hosts: [o.example], access_log: {path: ./own//log}, routes: [{fixed_response: {status: 204}}]}\n")
	var lines []string
	registry := metrics.New(metrics.Build{})
	house := House{Metrics: registry, Record: func(path string) func(*exchange.Exchange) {
		return func(ex *exchange.Exchange) {
			lines = append(lines, fmt.Sprintf("%s%s %s %s %d %v", path, ex.Place.Port, ex.Place.Proxy, ex.Place.Route, ex.Response.Status, ex.Reason))
		}
	}}
	p, problems := Compile(cfg, nil, house, nil)
	if problems != nil {
		t.Fatal(problems)
	}
	request(p.Port("web"), "GET", "a.example", "/x/y")
	request(p.Port("web"), "GET", "a.example", "/y")
	request(p.Port("web"), "GET", "q.example", "/y")
	request(p.Port("web"), "GET", "o.example", "/y")
	request(p.Port("web"), "GET", "a.example", "/%")
	want := []string{"web a /x 200 ", "web   404 no_route", "own/logweb own / 204 ", "web   400 bad_request"}
	if !slices.Equal(lines, want) {
		t.Errorf("got %q, want %q", lines, want)
	}
	p.Retire(nil)
}

// A bucket outlives every change that leaves its limit alone, and belongs to the
// proxy unless the route has a limit of its own.
func TestRateLimitsOutliveChanges(t *testing.T) {
	const limited = `proxies:
  shop:
    rate_limit: {requests: 1, period: 1h}
    routes:
      - fixed_response: {status: 204}
      - {path: /a, fixed_response: {status: 204}}
      - {path: /own, rate_limit: {requests: 1, period: 1h}, fixed_response: {status: 204}}
      - {path: /off, rate_limit: {enabled: false}, fixed_response: {status: 204}}
`
	other := limited + "  other: {virtual_hosts: [o.example], rate_limit: {requests: 1, period: 1h}, routes: [{fixed_response: {status: 204}}]}\n"
	first := compile(t, limited)
	over := exchange.RateLimited.Status()
	for _, c := range []struct {
		host, path string
		first      int
		second     int
	}{{"x", "/", 204, over}, {"x", "/a", over, over}, {"x", "/own", 204, over}, {"x", "/off", 204, 204}} {
		if got := request(first.Port("web"), "GET", c.host, c.path); got.status != c.first {
			t.Errorf("%s: %d, want %d", c.path, got.status, c.first)
		}
		first.Explain(Question{Method: "GET", Scheme: "http", Authority: "x:8080", Target: "/own"})
	}
	second, problems := Compile(load(t, other), first, House{}, nil)
	if second == nil {
		t.Fatal(problems)
	}
	first.Retire(second)
	for path, want := range map[string]int{"/": over, "/a": over, "/own": over, "/off": 204} {
		if got := request(second.Port("web"), "GET", "x", path); got.status != want {
			t.Errorf("after a change %s: %d, want %d", path, got.status, want)
		}
	}
	if got := request(second.Port("web"), "GET", "o.example", "/"); got.status != 204 {
		t.Errorf("the bucket of a new proxy is not full: %d", got.status)
	}
	third, _ := Compile(load(t, strings.ReplaceAll(other, "requests: 1,", "requests: 2,")), second, House{}, nil)
	if got := request(third.Port("web"), "GET", "x", "/"); got.status != 204 {
		t.Errorf("a limit with other numbers: %d, want a full bucket", got.status)
	}
}
