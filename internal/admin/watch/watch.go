// Package watch turns state changes of ports, servers, proxies, certificates and orders
// into events.
//
// A Watch is notified of what may have changed (it is the control's Watcher); a
// notification only acquires a lock. One goroutine then reads the current state, compares
// it with what it reported last, and sends the difference. A state that appears and
// disappears between two checks is not reported; memory is bounded by the number of
// proxies, ports and certificates.
//
// watch.go receives notifications; servers.go, held.go, ports.go, certificates.go and
// discovery.go compare.
package watch

import (
	"log/slog"
	"strconv"
	"sync"
	"time"

	"headgate/internal/bans"
	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/control"
	"headgate/internal/discovery"
	"headgate/internal/event"
	"headgate/internal/gate"
	"headgate/internal/lists"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/server/split"
)

// lookInterval is how often certificates are checked.
const lookInterval = time.Minute

// maxHeld limits the decisions about servers that wait to be reported.
const maxHeld = 1024

// drainInterval is how often draining servers are checked.
const drainInterval = time.Second

// maxOrders limits the changes of orders that wait to be reported.
const maxOrders = 1024

// House is what is watched. A *control.Control is one.
type House interface {
	Plan() *plan.Plan
	Ports() []ports.State
	Streams(name string) []control.StreamState
	Certificates() ([]certs.Status, []*acme.Record)
	Discovery() []control.ProviderState
	HeldServers() []control.HeldServer
}

// Watch sends the events. It is safe for concurrent use.
type Watch struct {
	wake    chan struct{}
	stop    chan struct{}
	stopped sync.WaitGroup

	notes struct {
		sync.Mutex
		proxies map[string]bool
		ports   bool
		config  bool
		sources bool
		orders  []*acme.Record
		held    []control.HeldServer
		splits  []control.SplitState
		bans    []bans.Event
		lists   []lists.Event
		people  []gate.Event
		nodes   []control.NodeEvent
		limits  []event.LimitReached
		records []event.ECHFailed
	}

	// The rest belongs to the goroutine.
	log    *slog.Logger
	house  House
	events event.Sender
	began  time.Time

	proxies      map[string]*proxy
	ports        map[portKey]ports.State
	certificates map[string]*certificate
	providers    map[string]bool // whether they were connected, as reported
	issues       map[discovery.Issue]bool
	draining     map[control.HeldServer]bool // servers that something runs on still
}

// New returns a watch that collects notifications and sends nothing before Start. It also
// logs what no other package logs.
func New(log *slog.Logger) *Watch {
	return &Watch{
		log:  log,
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
		proxies: map[string]*proxy{}, ports: map[portKey]ports.State{}, certificates: map[string]*certificate{},
		providers: map[string]bool{}, issues: map[discovery.Issue]bool{},
		draining: map[control.HeldServer]bool{},
	}
}

// Start starts sending events. It is called once; Close stops it.
func (w *Watch) Start(house House, events event.Sender) {
	w.house, w.events, w.began = house, events, time.Now()
	w.stopped.Go(w.run)
}

// Close sends the events for what was noted until now, and stops. It is called once, after
// Start.
func (w *Watch) Close() {
	close(w.stop)
	w.stopped.Wait()
}

// Servers notes that the state of a server of a proxy may have changed.
func (w *Watch) Servers(proxy string) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if w.notes.proxies == nil {
		w.notes.proxies = map[string]bool{}
	}
	w.notes.proxies[proxy] = true
	w.rouse()
}

// Ports notes that the state of a port may have changed.
func (w *Watch) Ports() {
	w.notes.Lock()
	defer w.notes.Unlock()
	w.notes.ports = true
	w.rouse()
}

// maxBans limits the bans that wait to be reported.
const maxBans = 1024

// Ban notes that a ban was added or has ended. If there are too many, the oldest are
// dropped.
func (w *Watch) Ban(e bans.Event) { note(w, &w.notes.bans, maxBans, e) }

// note adds one to a list of the notes, and drops the oldest if the list has reached its bound.
func note[T any](w *Watch, list *[]T, most int, one T) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(*list) == most {
		*list = (*list)[1:]
	}
	*list = append(*list, one)
	w.rouse()
}

// maxLists is how many events of lists wait to be published.
const maxLists = 1024

// List notes what happened to a list of addresses. Of too many the oldest are dropped.
func (w *Watch) List(e lists.Event) { note(w, &w.notes.lists, maxLists, e) }

// publishLists publishes the events of lists.
func (w *Watch) publishLists(all []lists.Event) {
	for _, e := range all {
		l := event.List{List: e.List, Source: e.Source, Entries: e.Entries, Before: e.Before, Loaded: e.Loaded, Cause: e.Cause}
		switch e.Kind {
		case lists.EventLoaded:
			w.events.Send(event.ListLoaded{List: l})
		case lists.EventFailed:
			w.events.Send(event.ListFailed{List: l})
		case lists.EventShrunk:
			w.events.Send(event.ListShrunk{List: l})
		case lists.EventStale:
			w.events.Send(event.ListStale{List: l})
		}
	}
}

// maxPeople is how many sign-ins wait to be published.
const maxPeople = 1024

// Person notes that a person has signed in or out at applications, or tried to. If there
// are too many, the oldest are dropped.
func (w *Watch) Person(e gate.Event) { note(w, &w.notes.people, maxPeople, e) }

// publishPeople publishes the events of people.
func (w *Watch) publishPeople(all []gate.Event) {
	for _, e := range all {
		p := event.Person{Person: e.Person, Provider: e.Provider, Cause: e.Cause, Who: e.Who}
		if e.Address.IsValid() {
			p.Address = e.Address.String()
		}
		switch e.Kind {
		case gate.SignedIn:
			w.events.Send(event.PersonSignedIn{Person: p})
		case gate.SignedOut:
			w.events.Send(event.PersonSignedOut{Person: p})
		case gate.SignInFailed:
			w.events.Send(event.PersonSignInFailed{Person: p})
		case gate.SignInUnreachable:
			w.events.Send(event.SignInUnreachable{Cause: e.Cause})
		case gate.SignInReachable:
			w.events.Send(event.SignInReachable{})
		}
	}
}

// maxNodes is how many events of nodes wait to be published.
const maxNodes = 256

// Node notes what happened to a node or to the shared store. Of too many the oldest are
// dropped.
func (w *Watch) Node(e control.NodeEvent) { note(w, &w.notes.nodes, maxNodes, e) }

// publishNodes publishes the events of nodes and of the shared store.
func (w *Watch) publishNodes(all []control.NodeEvent) {
	for _, e := range all {
		about := event.Node{Node: e.Node, Version: e.Version, Revision: e.Revision, Latest: e.Latest}
		switch e.Kind {
		case control.NodeJoined:
			w.events.Send(event.NodeJoined{Node: about})
		case control.NodeDetached:
			w.events.Send(event.NodeDetached{Node: about})
		case control.NodeReturned:
			w.events.Send(event.NodeReturned{Node: about})
		case control.NodeBehind:
			w.events.Send(event.NodeBehind{Node: about})
		case control.StoreAway:
			w.events.Send(event.StoreAway{Node: e.Node, Cause: e.Why})
		case control.StoreReturned:
			w.events.Send(event.StoreReturned{Node: e.Node, Seconds: int(e.Away.Seconds())})
		case control.StoreRewound:
			w.events.Send(event.StoreRewound{Node: e.Node, Cause: e.Why})
		case control.EditSetAside:
			w.events.Send(event.ConfigSetAside{Node: e.Node, Document: e.Document, Kept: e.Kept, Revision: e.Revision})
		}
	}
}

// publishBans publishes the events of clients that were banned, or are no longer.
func (w *Watch) publishBans(all []bans.Event) {
	for _, e := range all {
		b := event.Banned{Network: e.Ban.Network.String(), Rule: e.Ban.Rule, Reason: e.Ban.Why, Until: e.Ban.Until, Who: e.Ban.Who}
		if e.Ended {
			b.Who, b.Rule = e.Who, ""
			w.events.Send(event.ClientUnbanned{Banned: b})
			continue
		}
		w.events.Send(event.ClientBanned{Banned: b})
	}
}

// Held notes an operator's decision about a server. If there are too many, the oldest are
// dropped.
func (w *Watch) Held(s control.HeldServer) { note(w, &w.notes.held, maxHeld, s) }

// maxSplits limits the changes of splits that wait to be reported.
const maxSplits = 1024

// Split notes a change of a split. If there are too many, the oldest are dropped.
func (w *Watch) Split(s control.SplitState) { note(w, &w.notes.splits, maxSplits, s) }

// reportSplits sends the events for splits.
func (w *Watch) reportSplits(all []control.SplitState) {
	for _, s := range all {
		of := event.Split{Proxy: s.Proxy, Route: s.Route, Share: s.Share, Who: s.Who, Cause: s.Why}
		if s.Phase == split.Returned {
			w.events.Send(event.SplitReturned{Split: of, Stable: counts(s.Stable), Candidate: counts(s.Candidate)})
			continue
		}
		w.events.Send(event.SplitChanged{Split: of, Phase: string(s.Phase)})
	}
}

func counts(s control.SplitStats) event.SplitCounts {
	return event.SplitCounts{Requests: s.Requests, Errors: s.Errors, P95: s.P95}
}

// Order notes the state of an ACME certificate. If there are too many, the oldest are
// dropped.
func (w *Watch) Order(r *acme.Record) { note(w, &w.notes.orders, maxOrders, r) }

// DemandLimited notes that a limit of certificates on demand was reached. If there are too
// many, the oldest are dropped.
func (w *Watch) DemandLimited(proxy string, l *acme.Limited) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(w.notes.limits) == maxOrders {
		w.notes.limits = w.notes.limits[1:]
	}
	w.notes.limits = append(w.notes.limits, event.LimitReached{
		Limit: "on_demand." + l.Bound, Object: "proxy " + proxy, Value: strconv.Itoa(l.Max), Effect: "new hosts get no certificate",
	})
	w.rouse()
}

// ECHRecords notes HTTPS records that could not be written to the DNS. If there are too many,
// the oldest are dropped.
func (w *Watch) ECHRecords(f control.ECHFailure) {
	note(w, &w.notes.records, maxOrders, event.ECHFailed{Entry: f.Entry, Names: f.Names, Cause: f.Cause, Hint: f.Hint, RetryAt: f.RetryAt})
}

// Changed notes that there is another configuration.
func (w *Watch) Changed(*control.Event) {
	w.notes.Lock()
	defer w.notes.Unlock()
	w.notes.config, w.notes.ports = true, true
	w.rouse()
}

// Discovery notes that the state of a provider or its issues may have changed.
func (w *Watch) Discovery() {
	w.notes.Lock()
	defer w.notes.Unlock()
	w.notes.sources = true
	w.rouse()
}

// rouse wakes the goroutine.
func (w *Watch) rouse() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watch) run() {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	drained := time.NewTicker(drainInterval)
	defer drained.Stop()
	for {
		select {
		case <-w.wake:
			w.publishChanges()
		case now := <-tick.C:
			w.checkCertificates(now)
		case <-drains(w.draining, drained):
			w.checkDraining()
		case <-w.stop:
			w.publishChanges()
			return
		}
	}
}

// publishChanges publishes what was noted.
func (w *Watch) publishChanges() {
	w.notes.Lock()
	splits, records := w.notes.splits, w.notes.records
	w.notes.splits, w.notes.records = nil, nil
	banned, listed, people, nodes, limits := w.notes.bans, w.notes.lists, w.notes.people, w.notes.nodes, w.notes.limits
	w.notes.bans, w.notes.lists, w.notes.people, w.notes.nodes, w.notes.limits = nil, nil, nil, nil, nil
	proxies, orders, held, seePorts, config, sources := w.notes.proxies, w.notes.orders, w.notes.held, w.notes.ports, w.notes.config, w.notes.sources
	w.notes.proxies, w.notes.orders, w.notes.held, w.notes.ports, w.notes.config, w.notes.sources = nil, nil, nil, false, false, false
	w.notes.Unlock()
	for _, l := range limits {
		w.events.Send(l)
	}
	for _, r := range records {
		w.events.Send(r)
	}
	if seePorts {
		w.checkPorts(w.house.Ports())
	}
	if config {
		w.forgetServers(w.house.Plan())
		w.checkCertificates(time.Now())
	}
	if sources {
		w.checkDiscovery(w.house.Discovery())
	}
	w.checkServers(proxies)
	w.reportHeld(held)
	w.reportSplits(splits)
	w.publishBans(banned)
	w.publishLists(listed)
	w.publishPeople(people)
	w.publishNodes(nodes)
	for _, r := range orders {
		w.reportOrder(r)
	}
}
