package watch

import (
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/control"
	"headgate/internal/discovery"
	"headgate/internal/event"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/server/health"
)

// recorder keeps what was sent.
type recorder []event.Payload

func (t *recorder) Send(p event.Payload) { *t = append(*t, p) }

// drain returns the texts of what was sent since.
func (t *recorder) drain(tb testing.TB) (types []string) {
	tb.Helper()
	for _, p := range *t {
		e, err := event.Draft(p)
		if err != nil {
			tb.Fatal(err)
		}
		types = append(types, e.Type+" "+e.Object)
	}
	*t = nil
	return types
}

// stands is a house whose certificates are set by a test.
type stands struct {
	own    []certs.Status
	issued []*acme.Record
	found  []control.ProviderState
	held   []control.HeldServer
}

func (*stands) Plan() *plan.Plan                                 { return nil }
func (*stands) Ports() []ports.State                             { return nil }
func (s *stands) HeldServers() []control.HeldServer              { return s.held }
func (*stands) Streams(string) []control.StreamState             { return nil }
func (s *stands) Discovery() []control.ProviderState             { return s.found }
func (s *stands) Certificates() ([]certs.Status, []*acme.Record) { return s.own, s.issued }

func watching(house House) (*Watch, *recorder) {
	w, t := New(slog.New(slog.DiscardHandler)), &recorder{}
	w.house, w.events = house, t
	return w, t
}

func same(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPortsAreToldWhenTheyStandOtherwise(t *testing.T) {
	w, events := watching(&stands{})
	port := func(name, state, reason string, full bool) ports.State {
		return ports.State{Name: name, Address: "127.0.0.1:1", Protocol: "http", State: state, Reason: reason, AtLimit: full}
	}
	w.checkPorts([]ports.State{port("a", "listening", "", false), port("b", "waiting", "address_in_use", false)})
	same(t, events.drain(t), "port.listening port a", "port.waiting port b")
	w.checkPorts([]ports.State{port("a", "listening", "", true), port("b", "waiting", "address_in_use", false)})
	same(t, events.drain(t), "limit.reached port a limit max_connections")
	w.checkPorts([]ports.State{port("a", "listening", "", true), port("b", "listening", "", false)})
	same(t, events.drain(t), "port.listening port b")
	w.checkPorts([]ports.State{port("a", "draining", "", false), port("b", "listening", "", false)})
	same(t, events.drain(t), "port.closed port a")
	w.checkPorts(nil)
	same(t, events.drain(t), "port.closed port b")
}

func TestServersAreToldWhenTheyStandOtherwise(t *testing.T) {
	w, events := watching(&stands{})
	look := func(now proxyHealth, states ...health.State) {
		s := proxyStatus{name: "shop", well: now, total: len(states)}
		for i, state := range states {
			s.servers = append(s.servers, server{serverKey{"/", string(rune('a' + i))}, health.Status{State: state}})
		}
		w.reportServers("shop", s)
	}
	look(well, health.Healthy, health.Unknown)
	same(t, events.drain(t))
	look(degraded, health.Unhealthy, health.Unknown)
	same(t, events.drain(t), "server.unhealthy proxy shop, route /, server a", "proxy.degraded proxy shop")
	look(down, health.Unhealthy, health.Ejected)
	same(t, events.drain(t), "server.ejected proxy shop, route /, server b", "proxy.down proxy shop")
	look(degraded, health.SlowStart, health.Ejected)
	same(t, events.drain(t), "server.healthy proxy shop, route /, server a", "proxy.degraded proxy shop")
	look(well, health.Healthy, health.Healthy)
	same(t, events.drain(t), "server.healthy proxy shop, route /, server b", "proxy.recovered proxy shop")
	look(well, health.Healthy, health.Healthy)
	same(t, events.drain(t))
	if len(w.proxies) != 0 {
		t.Errorf("a proxy that stands well is remembered: %v", w.proxies)
	}
}

func TestCertificatesAreAnnouncedBeforeTheyExpire(t *testing.T) {
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := func(n int) time.Time { return from.AddDate(0, 0, n) }
	house := &stands{
		own:    []certs.Status{{Name: "own", NotBefore: from, NotAfter: day(90)}, {Name: "gone", Problem: "no such file"}},
		issued: []*acme.Record{{Name: "own", NotBefore: from, NotAfter: day(6)}, {Name: "none"}},
	}
	w, events := watching(house)
	w.checkCertificates(day(1))
	same(t, events.drain(t), "certificate.failed certificate gone")
	w.checkCertificates(day(5))
	same(t, events.drain(t), "certificate.expiring certificate own")
	house.issued[0] = &acme.Record{Name: "own", NotBefore: day(5), NotAfter: day(11)}
	w.checkCertificates(day(5))
	same(t, events.drain(t))
	house.issued = nil
	for n, want := range map[int][]string{
		76: nil, 77: {"certificate.expiring certificate own"}, 80: nil,
		87: {"certificate.expiring certificate own"}, 89: nil, 90: {"certificate.expired certificate own"}, 91: nil,
	} {
		w.certificates["own"] = &certificate{notAfter: day(90), stage: stageAt(from, day(90), day(n-1))}
		w.checkCertificates(day(n))
		if got := events.drain(t); !slices.Equal(got, want) {
			t.Errorf("day %d: got %q, want %q", n, got, want)
		}
	}
	house.own[0].NotBefore, house.own[0].NotAfter = day(80), day(170)
	w.checkCertificates(day(92))
	same(t, events.drain(t), "certificate.loaded certificate own")
	house.own = nil
	w.checkCertificates(day(93))
	if len(w.certificates) != 0 {
		t.Errorf("certificates that are gone are remembered: %v", w.certificates)
	}
}

func TestOrdersAreToldWhenTheyHaveEnded(t *testing.T) {
	w, events := watching(&stands{})
	w.began = time.Now()
	ended := &acme.Attempt{Issued: true, Ended: w.began.Add(time.Second), Directory: "https://ca.example"}
	for _, r := range []*acme.Record{
		{Name: "a", State: acme.Pending},
		{Name: "b", State: acme.Valid, Timeline: []*acme.Attempt{{Issued: true, Ended: w.began.Add(-time.Hour)}}}, // was told before a restart
		{Name: "c", State: acme.Valid, Timeline: []*acme.Attempt{ended}},
		{Name: "d", State: acme.Blocked, Trouble: &acme.Trouble{Message: "no such name", Hint: "make it"}},
		{Name: "e", State: acme.Failed},
	} {
		w.Order(r)
	}
	w.publishChanges()
	if got := (*events)[1]; !reflect.DeepEqual(got, event.ACMEBlocked{ACME: event.ACME{Certificate: "d", Cause: "no such name", Hint: "make it"}}) {
		t.Errorf("got %+v", got)
	}
	same(t, events.drain(t), "acme.issued certificate c", "acme.blocked certificate d", "acme.failed certificate e")
}

// TestNotesAreBounded holds that nobody who tells much fills the memory.
func TestNotesAreBounded(t *testing.T) {
	w := New(slog.New(slog.DiscardHandler))
	for range 3 * maxOrders {
		w.Order(&acme.Record{})
		w.Servers("shop")
		w.Ports()
	}
	if len(w.notes.orders) != maxOrders || len(w.notes.proxies) != 1 {
		t.Errorf("%d orders and %d proxies wait", len(w.notes.orders), len(w.notes.proxies))
	}
}

func TestProvidersAndIssuesAreToldWhenTheyComeAndGo(t *testing.T) {
	w, events := watching(&stands{})
	var log strings.Builder
	w.log = slog.New(slog.NewTextHandler(&log, nil))
	issue := discovery.Issue{Provider: "local", Container: "shop-1", Label: "headgate.host", Code: discovery.Conflict, Message: "m"}
	again := issue
	again.Since = time.Now()
	provider := func(state discovery.State, issues ...discovery.Issue) []control.ProviderState {
		return []control.ProviderState{{Name: "local", State: state, Issues: issues}}
	}
	w.checkDiscovery(provider(discovery.Connecting))
	same(t, events.drain(t))
	w.checkDiscovery(provider(discovery.Failed))
	same(t, events.drain(t), "discovery.lost provider local")
	w.checkDiscovery(provider(discovery.Failed))
	same(t, events.drain(t))
	w.checkDiscovery(provider(discovery.Running, issue))
	same(t, events.drain(t), "discovery.connected provider local", "discovery.issue_opened provider local, shop-1")
	w.checkDiscovery(provider(discovery.Running, again))
	same(t, events.drain(t))
	w.checkDiscovery(provider(discovery.Running))
	same(t, events.drain(t), "discovery.issue_closed provider local, shop-1")
	if text := log.String(); strings.Count(text, "discovery issue") != 1 || !strings.Contains(text, `object=shop-1 label=headgate.host code=conflict error=m`) {
		t.Errorf("the log has\n%s", text)
	}
	w.checkDiscovery(nil)
	same(t, events.drain(t))
	w.checkDiscovery(provider(discovery.Running))
	same(t, events.drain(t), "discovery.connected provider local")
}

func TestTooManyIssuesAreNotAllTold(t *testing.T) {
	w, events := watching(&stands{})
	p := control.ProviderState{Name: "local", State: discovery.Running}
	for i := range 3 * maxIssues {
		p.Issues = append(p.Issues, discovery.Issue{Provider: "local", Container: strconv.Itoa(i)})
	}
	w.checkDiscovery([]control.ProviderState{p})
	if n := len(events.drain(t)); n != maxIssues+1 {
		t.Errorf("%d events", n)
	}
}

func TestDrainedServersAreTold(t *testing.T) {
	house := &stands{}
	w, events := watching(house)
	drain := control.HeldServer{Kind: "proxies", Proxy: "shop", Server: "http://a", Hold: "draining", Active: 2}
	states := func(want ...string) {
		t.Helper()
		var got []string
		for _, p := range *events {
			got = append(got, p.(event.ServerDrained).State)
		}
		if *events = nil; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	house.held = []control.HeldServer{drain}
	w.Held(drain)
	w.publishChanges()
	states("draining")
	w.checkDraining()
	states()
	house.held[0].Active = 0
	w.checkDraining()
	states("drained")
	w.checkDraining()
	states()
	house.held[0].Active, house.held[0].Hold = 1, "disabled"
	w.Held(house.held[0])
	enabled := drain
	enabled.Hold = control.Enabled
	house.held = nil
	w.Held(enabled)
	w.publishChanges()
	states("disabled", "enabled")
	if len(w.draining) != 0 {
		t.Errorf("%v is waited for", w.draining)
	}
}
