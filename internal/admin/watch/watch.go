// Package watch makes events of what happens beside changes of the configuration: to
// ports, servers, proxies, certificates and their orders.
//
// A Watch takes notes of what may stand otherwise (it is the control's Watcher), which
// costs those who tell a lock and no more. One goroutine then looks how that stands,
// compares it with what it has told last, and sends the difference. What comes and goes
// between two looks is not told; memory is bounded by the number of proxies, ports and
// certificates.
//
// watch.go takes the notes; servers.go, held.go, ports.go, certificates.go and
// discovery.go compare.
package watch

import (
	"log/slog"
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
)

// lookInterval is how often certificates are looked at.
const lookInterval = time.Minute

// maxHeld is how many decisions about servers wait to be told.
const maxHeld = 1024

// drainInterval is how often servers that drain are looked at.
const drainInterval = time.Second

// maxOrders is how many changes of orders wait to be told.
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

// Watch tells what happens. Its methods may be called by several goroutines at once.
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
		bans    []bans.Event
		lists   []lists.Event
		people  []gate.Event
	}

	// The rest belongs to the goroutine.
	log    *slog.Logger
	house  House
	events event.Sender
	began  time.Time

	proxies      map[string]*proxy
	ports        map[portKey]ports.State
	certificates map[string]*certificate
	providers    map[string]bool // whether they answered, as far as that was told
	issues       map[discovery.Issue]bool
	draining     map[control.HeldServer]bool // servers that something runs on still
}

// New returns a watch that takes notes, and tells nothing before Start. What nobody else
// logs, it logs too.
func New(log *slog.Logger) *Watch {
	return &Watch{
		log:  log,
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
		proxies: map[string]*proxy{}, ports: map[portKey]ports.State{}, certificates: map[string]*certificate{},
		providers: map[string]bool{}, issues: map[discovery.Issue]bool{},
		draining: map[control.HeldServer]bool{},
	}
}

// Start begins to tell. It is called once, and Close ends it.
func (w *Watch) Start(house House, events event.Sender) {
	w.house, w.events, w.began = house, events, time.Now()
	w.stopped.Go(w.run)
}

// Close tells what was noted until now, and ends. It is called once, after Start.
func (w *Watch) Close() {
	close(w.stop)
	w.stopped.Wait()
}

// Servers notes that a server of a proxy may stand otherwise.
func (w *Watch) Servers(proxy string) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if w.notes.proxies == nil {
		w.notes.proxies = map[string]bool{}
	}
	w.notes.proxies[proxy] = true
	w.rouse()
}

// Ports notes that a port may stand otherwise.
func (w *Watch) Ports() {
	w.notes.Lock()
	defer w.notes.Unlock()
	w.notes.ports = true
	w.rouse()
}

// maxBans is how many bans wait to be told.
const maxBans = 1024

// Ban notes that a client was banned, or is no longer. Of too many the oldest are not told.
func (w *Watch) Ban(e bans.Event) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(w.notes.bans) == maxBans {
		w.notes.bans = w.notes.bans[1:]
	}
	w.notes.bans = append(w.notes.bans, e)
	w.rouse()
}

// maxLists is how many events of lists wait to be published.
const maxLists = 1024

// List notes what happened to a list of addresses. Of too many the oldest are dropped.
func (w *Watch) List(e lists.Event) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(w.notes.lists) == maxLists {
		w.notes.lists = w.notes.lists[1:]
	}
	w.notes.lists = append(w.notes.lists, e)
	w.rouse()
}

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

// Person notes that somebody has signed in or out at applications, or tried to. Of too many
// the oldest are dropped.
func (w *Watch) Person(e gate.Event) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(w.notes.people) == maxPeople {
		w.notes.people = w.notes.people[1:]
	}
	w.notes.people = append(w.notes.people, e)
	w.rouse()
}

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

// Held notes what an operator has decided about a server. Of too many the oldest are not
// told.
func (w *Watch) Held(s control.HeldServer) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(w.notes.held) == maxHeld {
		w.notes.held = w.notes.held[1:]
	}
	w.notes.held = append(w.notes.held, s)
	w.rouse()
}

// Order notes how a certificate by ACME stands now. Of too many the oldest are not
// told.
func (w *Watch) Order(r *acme.Record) {
	w.notes.Lock()
	defer w.notes.Unlock()
	if len(w.notes.orders) == maxOrders {
		w.notes.orders = w.notes.orders[1:]
	}
	w.notes.orders = append(w.notes.orders, r)
	w.rouse()
}

// Changed notes that there is another configuration.
func (w *Watch) Changed(*control.Event) {
	w.notes.Lock()
	defer w.notes.Unlock()
	w.notes.config, w.notes.ports = true, true
	w.rouse()
}

// Discovery notes that a provider, or what it has to say, may stand otherwise.
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
			w.lookAtCertificates(now)
		case <-drains(w.draining, drained):
			w.lookAtDraining()
		case <-w.stop:
			w.publishChanges()
			return
		}
	}
}

// publishChanges publishes what was noted.
func (w *Watch) publishChanges() {
	w.notes.Lock()
	banned, listed, people := w.notes.bans, w.notes.lists, w.notes.people
	w.notes.bans, w.notes.lists, w.notes.people = nil, nil, nil
	proxies, orders, held, seePorts, config, sources := w.notes.proxies, w.notes.orders, w.notes.held, w.notes.ports, w.notes.config, w.notes.sources
	w.notes.proxies, w.notes.orders, w.notes.held, w.notes.ports, w.notes.config, w.notes.sources = nil, nil, nil, false, false, false
	w.notes.Unlock()
	if seePorts {
		w.lookAtPorts(w.house.Ports())
	}
	if config {
		w.forgetServers(w.house.Plan())
		w.lookAtCertificates(time.Now())
	}
	if sources {
		w.lookAtDiscovery(w.house.Discovery())
	}
	w.lookAtServers(proxies)
	w.tellHeld(held)
	w.publishBans(banned)
	w.publishLists(listed)
	w.publishPeople(people)
	for _, r := range orders {
		w.tellOrder(r)
	}
}
