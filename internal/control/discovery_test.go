package control

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/discovery"
	"headgate/internal/discovery/discoverytest"
	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// found is a house with one Docker provider, whose containers a test makes up.
type found struct {
	*house
	*discoverytest.Engines
	port   string
	server string
	mu     sync.Mutex
	events []Event
}

// discovering starts a house. Text is added to its configuration.
func discovering(t *testing.T, text string) *found {
	t.Helper()
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(200) }))
	t.Cleanup(app.Close)
	f := &found{Engines: &discoverytest.Engines{}, port: testhouse.Addresses(t, 1)[0], server: app.URL}
	f.house = prepare(t, f.document(text))
	f.c.providers.open = f.Open
	f.c.Observe(func(e *Event) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.events = append(f.events, *e)
	})
	f.run()
	return f
}

// document is a configuration with the provider "local" and more.
func (f *found) document(more string) string {
	return fmt.Sprintf("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nports: {web: {address: %q, protocol: http, drain_timeout: 1s}}\ndiscovery: {docker: {local: {}}}\n%s", f.port, more)
}

func (f *found) recorded() []Event {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.events)
}

// status returns what a host and path answers.
func (f *found) status(host, path string) int {
	q, _ := http.NewRequest("GET", "http://"+f.port+path, nil)
	q.Host = host
	q.Close = true
	p, err := http.DefaultTransport.RoundTrip(q)
	if err != nil {
		return 0
	}
	p.Body.Close()
	return p.StatusCode
}

func (f *found) becomes(host string, status int) {
	f.t.Helper()
	testhouse.Eventually(f.t, fmt.Sprintf("%s answers %d, not %d", host, status, f.status(host, "/")), func() bool { return f.status(host, "/") == status })
}

// issues returns the issues in short.
func (f *found) issues() (out []string) {
	for _, p := range f.c.Discovery() {
		for _, i := range p.Issues {
			out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s", i.Container, i.Code, i.Name)))
		}
	}
	return out
}

// has waits until the issues are these, in short.
func (f *found) has(want ...string) {
	f.t.Helper()
	testhouse.Eventually(f.t, fmt.Sprintf("the issues are %q, not %q", f.issues(), want), func() bool { return slices.Equal(f.issues(), want) })
}

func (f *found) proxy(name string, age int, host string, labels ...string) *config.Discovered {
	return discoverytest.Proxy(name, age, f.server, append([]string{"virtual_hosts=" + host}, labels...)...)
}

func TestContainersAreServed(t *testing.T) {
	f := discovering(t, "proxies: {hand: {virtual_hosts: [hand.example], routes: [{fixed_response: {status: 204}}]}}\n")
	f.becomes("hand.example", 204) // the start waits for no source
	revision := f.c.Status().Revision
	f.Get("local").Find(f.proxy("shop", 1, "shop.example"), f.proxy("bad", 2, "bad.example", "routes.0.pth=/"))
	f.becomes("shop.example", 200)
	f.becomes("hand.example", 204)
	f.becomes("bad.example", 404)
	f.has("bad-1 unknown_label bad")
	s := f.c.Status()
	if s.Revision != revision || len(f.c.Revisions(0, 10)) != 1 {
		t.Error("what was discovered has made a revision")
	}
	i := slices.IndexFunc(s.Sources, func(s SourceState) bool { return s.Name == "discovery.docker.local" })
	if i < 0 || s.Sources[i].State != "running" || len(s.Sources[i].Issues) != 1 || !strings.Contains(s.Sources[i].Issues[0], `container bad-1, label headgate.http.bad.routes.0.pth: unknown key; did you mean "path"?`) {
		t.Errorf("sources %v", s.Sources)
	}
	for _, p := range s.Proxies {
		if p.Name == "shop" && p.Origin != "container shop-1" {
			t.Errorf("origin %q", p.Origin)
		}
	}
	testhouse.Eventually(t, "no event", func() bool { return len(f.recorded()) == 2 })
	events := f.recorded()
	last := events[len(events)-1]
	if last.Via != ViaDocker || len(last.Difference.Objects) != 1 || last.Difference.Objects[0].Origin.Container != "shop-1" || last.Revision != revision {
		t.Errorf("the event tells %+v", last)
	}
	f.Get("local").Find()
	f.becomes("shop.example", 404)
	f.has()
}

func TestWithoutAnEngineThereIsALastGoodState(t *testing.T) {
	f := discovering(t, "")
	f.Get("local").Find(f.proxy("shop", 1, "shop.example"))
	f.becomes("shop.example", 200)
	f.Get("local").Lose("connection refused")
	testhouse.Eventually(t, "the state is not error", func() bool { return f.c.Discovery()[0].State == discovery.Failed })
	f.becomes("shop.example", 200)
	// An operator's change leaves it, too, and so does another endpoint that has not answered yet.
	write(t, f.file, f.document("proxies: {hand: {virtual_hosts: [hand.example], routes: [{fixed_response: {status: 204}}]}}\n"))
	if err := f.c.Reload(); err != nil {
		t.Fatal(err)
	}
	write(t, f.file, strings.Replace(f.document(""), "local: {}", "local: {endpoint: \"tcp://127.0.0.1:1\"}", 1))
	if err := f.c.Reload(); err != nil {
		t.Fatal(err)
	}
	if n := len(f.All("local")); n != 2 {
		t.Fatalf("%d sources were opened", n)
	}
	testhouse.Eventually(t, "the old source runs on", func() bool { return !f.All("local")[0].Running() && f.Get("local").Running() })
	f.becomes("shop.example", 200)
	f.Get("local").Find()
	f.becomes("shop.example", 404)
}

// A start waits for no source, and what an operator has decided about a server waits for
// the source to find it again.
func TestAHoldOfADiscoveredServerLastsOverARestart(t *testing.T) {
	f := discovering(t, "")
	shop := f.proxy("shop", 1, "shop.example")
	f.Get("local").Find(shop)
	f.becomes("shop.example", 200)
	if _, err := f.c.Hold(t.Context(), HeldServer{Kind: "proxies", Proxy: "shop", Server: f.server}, exchange.HeldDisabled); err != nil {
		t.Fatal(err)
	}
	f.becomes("shop.example", 503)
	f.finish()
	f.house = prepareAt(t, f.file, f.state)
	f.c.providers.open = f.Open
	f.run()
	f.c.discovered(false)
	f.Get("local").Find(shop)
	f.becomes("shop.example", 503)
	if held := f.c.HeldServers(); len(held) != 1 {
		t.Errorf("held are %v", held)
	}
	// What the source does not find is forgotten.
	f.Get("local").Find()
	f.becomes("shop.example", 404)
	testhouse.Eventually(t, "the hold is forgotten", func() bool { return len(f.c.HeldServers()) == 0 })
}

func TestBoundsHoldWithoutAnotherSource(t *testing.T) {
	f := discovering(t, "")
	f.Get("local").Find(f.proxy("shop", 1, "shop.example"), f.proxy("other", 2, "other.test"))
	f.becomes("other.test", 200)
	write(t, f.file, strings.Replace(f.document(""), "local: {}", "local: {hosts: [\"*.example\", shop.example]}", 1))
	if err := f.c.Reload(); err != nil {
		t.Fatal(err)
	}
	if n := len(f.All("local")); n != 1 || f.status("shop.example", "/") != 200 || f.status("other.test", "/") != 404 {
		t.Errorf("%d sources; issues %q", n, f.issues())
	}
}

func TestASourceThatLeavesTheConfigurationTakesItsObjectsAlong(t *testing.T) {
	f := discovering(t, "")
	f.Get("local").Find(f.proxy("shop", 1, "shop.example"))
	f.becomes("shop.example", 200)
	without := strings.Replace(f.document(""), "discovery: {docker: {local: {}}}", "", 1)
	e, err := f.c.DryRun(Cause{Via: ViaAPI}, doc(without))
	if err != nil {
		t.Fatal(err)
	}
	if got := sketch(e.Difference); !strings.Contains(got, "shop") {
		t.Errorf("the dry run tells %s", got)
	}
	if f.status("shop.example", "/") != 200 || !f.Get("local").Running() {
		t.Error("the dry run was none")
	}
	write(t, f.file, without)
	if err := f.c.Reload(); err != nil {
		t.Fatal(err)
	}
	if got := f.status("shop.example", "/"); got != 404 {
		t.Errorf("it answers %d", got)
	}
	testhouse.Eventually(t, "the source runs on", func() bool { return !f.Get("local").Running() })
}

func TestAnOperatorWinsOverWhatWasDiscovered(t *testing.T) {
	f := discovering(t, "")
	f.Get("local").Find(f.proxy("shop", 1, "shop.example"), f.proxy("other", 2, "other.example", "ports=web"))
	f.becomes("other.example", 200)
	hand := f.document("proxies: {mine: {virtual_hosts: [shop.example], routes: [{fixed_response: {status: 204}}]}, other: {virtual_hosts: [x.example], routes: [{fixed_response: {status: 204}}]}}\n")
	e, err := f.c.DryRun(Cause{Via: ViaAPI}, doc(hand))
	if got := sketch(e.Difference); err != nil || !strings.Contains(got, "shop") {
		t.Errorf("the dry run tells %s, %v", got, err)
	}
	write(t, f.file, hand)
	if err := f.c.Reload(); err != nil {
		t.Fatal(err)
	}
	if a, b := f.status("shop.example", "/"), f.status("other.example", "/"); a != 204 || b != 404 {
		t.Errorf("the hosts answer %d and %d", a, b)
	}
	f.has("other-1 conflict other", "shop-1 host_taken shop") // one issue, which is at both proxies
	for _, p := range f.c.Status().Proxies {
		if len(p.Issues) != 1 {
			t.Errorf("proxy %s has the issues %q", p.Name, p.Issues)
		}
	}
	// A port that a discovered proxy names can be removed.
	write(t, f.file, strings.Replace(f.document(""), "{web:", "{renamed:", 1))
	if err := f.c.Reload(); err != nil {
		t.Fatal(err)
	}
	f.becomes("shop.example", 200)
	f.has("other-1 no_such_object other")
}

func TestABadEditIsRefusedWhole(t *testing.T) {
	f := discovering(t, "")
	f.Get("local").Find(f.proxy("shop", 1, "shop.example"))
	f.becomes("shop.example", 200)
	err := f.try(f.document("proxies: {a: {virtual_hosts: [x.example], routes: [{fixed_response: {status: 204}}]}, b: {virtual_hosts: [x.example], routes: [{fixed_response: {status: 204}}]}}\n"))
	var r *Refused
	if !errors.As(err, &r) || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Field, "proxies.b") {
		t.Errorf("error %v", err)
	}
	f.becomes("shop.example", 200)
	f.has()
	// What is refused of the documents is told while containers come and go.
	write(t, f.file, "version: 1\nnonsense: 1\n")
	if f.c.Reload() == nil {
		t.Fatal("nonsense was applied")
	}
	f.Get("local").Find(f.proxy("shop", 1, "shop.example"), f.proxy("new", 2, "new.example"))
	f.becomes("new.example", 200)
	if f.c.Status().Refused == nil {
		t.Error("what was refused is forgotten")
	}
}

// TestWhatDoesNotCompileIsLeftOut has redirects without an end, which only a compile sees.
func TestWhatDoesNotCompileIsLeftOut(t *testing.T) {
	f := discovering(t, "")
	loop := []string{"redirects.0.regex=^/a$", "redirects.0.target=/b", "redirects.1.regex=^/b$", "redirects.1.target=/a"}
	objects := []*config.Discovered{f.proxy("shop", 1, "shop.example")}
	for i := range 100 {
		objects = append(objects, f.proxy(fmt.Sprintf("loop%02d", i), 2, fmt.Sprintf("loop%02d.example", i), loop...))
	}
	for i := range 900 {
		objects = append(objects, f.proxy(fmt.Sprintf("good%03d", i), 3, fmt.Sprintf("good%03d.example", i)))
	}
	f.Get("local").Find(objects...)
	f.becomes("shop.example", 200)
	f.becomes("good899.example", 200)
	f.becomes("loop00.example", 404)
	testhouse.Eventually(t, "there are no issues", func() bool { return len(f.issues()) > 0 })
	issues := f.c.Discovery()[0].Issues
	if len(issues) != 100 || issues[0].Code != discovery.Invalid || !strings.Contains(issues[0].Message, "redirect") {
		t.Fatalf("%d issues: %v", len(issues), issues[:min(len(issues), 2)])
	}
	testhouse.Eventually(t, "no event", func() bool { return len(f.recorded()) == 2 })
	const changes = 2
	// They are not tried again by what another container does.
	f.Get("local").Find(append(objects, f.proxy("late", 4, "late.example"))...)
	f.becomes("late.example", 200)
	testhouse.Eventually(t, "no event", func() bool { return len(f.recorded()) > changes })
	if got := len(f.recorded()); got != changes+1 {
		t.Errorf("%d changes", got-changes)
	}
	if got := len(f.c.Discovery()[0].Issues); got != 100 {
		t.Errorf("%d issues", got)
	}
	if e, err := f.c.DryRun(Cause{Via: ViaAPI}, doc(f.document("x-note: 1\n"))); err != nil || !e.Difference.Empty() {
		t.Errorf("an operator's edit: %v", err)
	}
}

// TestOneLineTellsOfContainers holds that a change of containers is one line of the log,
// however many there are, and none when only an object came that cannot be used.
func TestOneLineTellsOfContainers(t *testing.T) {
	f := discovering(t, "")
	var objects []*config.Discovered
	for i := range 60 {
		objects = append(objects, f.proxy(fmt.Sprintf("p%02d", i), 1, fmt.Sprintf("p%02d.example", i)))
	}
	f.Get("local").Find(objects...)
	f.becomes("p59.example", 200)
	told := func() (lines []string) {
		for line := range strings.Lines(f.log.String()) {
			if strings.Contains(line, "via=docker") || strings.Contains(line, "p59") {
				lines = append(lines, line)
			}
		}
		return lines
	}
	testhouse.Eventually(t, "nothing is told", func() bool { return len(told()) > 0 })
	if lines := told(); len(lines) != 1 || !strings.Contains(lines[0], "added=60") || !strings.Contains(lines[0], "summary=") {
		t.Errorf("60 containers are told of by %q", lines)
	}
	events := len(f.recorded())
	loop := f.proxy("loop", 2, "loop.example", "redirects.0.regex=^/a$", "redirects.0.target=/b", "redirects.1.regex=^/b$", "redirects.1.target=/a")
	f.Get("local").Find(append(objects, loop)...)
	f.has("loop-1 invalid loop")
	f.c.mu.Lock() // until the change has ended
	defer f.c.mu.Unlock()
	if lines := told(); len(lines) != 1 || len(f.recorded()) != events {
		t.Errorf("an object that cannot be used is told of by %q and %d events", lines, len(f.recorded())-events)
	}
}

func TestABusyAddressOfALabelKeepsNobodyElseAway(t *testing.T) {
	f := discovering(t, "")
	addresses := testhouse.Addresses(t, 1)
	busy := f.port // ours, and told by the check
	write(t, f.file, strings.Replace(f.document(""), "local: {}", fmt.Sprintf("local: {listen: [%q, %q]}", addresses[0], busy), 1))
	if err := f.c.Reload(); err != nil {
		t.Fatal(err)
	}
	blocker, err := net.Listen("tcp", addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.Close()
	stream := discoverytest.TCPProxy("db", 2, strings.TrimPrefix(f.server, "http://"), "address="+addresses[0])
	f.Get("local").Find(stream, f.proxy("shop", 3, "shop.example"), discoverytest.TCPProxy("self", 4, "172.18.0.5:1", "address="+busy))
	f.becomes("shop.example", 200)
	f.has("db-1 address_in_use db", "self-1 bad_value self")
	blocker.Close()
	f.c.discovered(true) // as after a while
	testhouse.Eventually(t, "nobody listens", func() bool { return status(addresses[0]) == 200 })
}

// TestEditsAndContainersInAnyOrderEndTheSame changes documents and containers at the same
// time, and compares the end with what comes of both at once.
func TestEditsAndContainersInAnyOrderEndTheSame(t *testing.T) {
	f := discovering(t, "")
	for seed := range uint64(3) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		hosts := []string{"a.example", "b.example", "c.example"}
		find := func() (all []*config.Discovered) {
			for i := range rnd.IntN(12) {
				d := f.proxy(fmt.Sprintf("p%d", rnd.IntN(8)), rnd.IntN(5), hosts[rnd.IntN(3)], fmt.Sprintf("routes.0.path=/%d", rnd.IntN(3)))
				d.Origin.Container = fmt.Sprintf("c%d", i)
				all = append(all, d)
			}
			return all
		}
		edit := func() string {
			return f.document(fmt.Sprintf("proxies: {p%d: {virtual_hosts: [%s], share_hosts: %v, routes: [{path: /%d, fixed_response: {status: 204}}]}}\n",
				rnd.IntN(8), hosts[rnd.IntN(3)], rnd.IntN(2) == 0, rnd.IntN(3)))
		}
		var edits []string
		for range 30 {
			edits = append(edits, edit())
		}
		snapshots := make([][]*config.Discovered, 60)
		for i := range snapshots {
			snapshots[i] = find()
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, s := range snapshots {
				f.Get("local").Find(s...)
				f.c.discovered(false)
			}
		})
		for _, text := range edits {
			if err := f.try(text); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
		f.c.discovered(false)
		got := f.c.Plan().Config()
		cfg, _, _ := config.LoadDocuments(doc(edits[len(edits)-1]), nil)
		want := discovery.Merge(cfg, []discovery.Provider{{Name: "local", Objects: snapshots[len(snapshots)-1]}}, nil, nil)
		if d := diff.Compare(want.Config, got); !d.Empty() {
			t.Fatalf("seed %d ends with another configuration: %v", seed, d.Objects)
		}
		if len(f.issues()) != len(want.Issues) {
			t.Errorf("seed %d: issues %q, want %v", seed, f.issues(), want.Issues)
		}
	}
}

func TestASourceThatCannotBeOpened(t *testing.T) {
	e := &discoverytest.Engines{}
	e.Fail(errors.New("read docker-ca.pem: no such file"))
	f := &found{Engines: e, port: testhouse.Addresses(t, 1)[0]}
	f.house = prepare(t, f.document(""))
	f.c.providers.open = e.Open
	f.run() // the start does not depend on it
	if p := f.c.Discovery(); len(p) != 1 || p[0].State != discovery.Failed || !strings.Contains(p[0].Reason, "docker-ca.pem") {
		t.Errorf("providers %v", p)
	}
	err := f.try(strings.Replace(f.document(""), "local: {}", "local: {}, more: {}", 1))
	var r *Refused
	if !errors.As(err, &r) || len(r.Problems) != 1 || r.Problems[0].Field != "discovery.docker.local" {
		t.Errorf("an operator's edit: %v", err)
	}
	e.Fail(nil)
	f.c.providers.reopen()
	e.Get("local").Find(discoverytest.Proxy("shop", 1, "", "virtual_hosts=shop.example"))
	f.becomes("shop.example", 503) // without a server
}

func TestManyChangesAreGathered(t *testing.T) {
	f := discovering(t, "")
	before := len(f.recorded())
	began := time.Now()
	for i := range 200 {
		f.Get("local").Find(f.proxy("shop", 1, fmt.Sprintf("h%d.example", i)))
	}
	f.becomes("h199.example", 200)
	f.c.mu.Lock() // until the change has ended
	defer f.c.mu.Unlock()
	most := int(time.Since(began)/gatherTime) + 1
	if n := len(f.recorded()) - before; n > most {
		t.Errorf("%d changes, want at most %d", n, most)
	}
}
