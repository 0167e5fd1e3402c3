package docker

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"time"

	"headgate/internal/config"
	"headgate/internal/discovery"
)

// How long a container may be in a state before it is treated otherwise.
const (
	// startingTime is how long a container that is starting gets no requests. Some
	// never say that they are ready.
	startingTime = 60 * time.Second
	// stoppingTime is how long a container that got a stop signal is treated as
	// stopping: its grace period may be long.
	stoppingTime = 10 * time.Minute
	// askedTime is the same for a signal that ends some programs and is a question to
	// others.
	askedTime = 30 * time.Second
)

// world is what is known of the containers over time. It belongs to the loop.
type world struct {
	provider string
	settings *config.Docker
	here     here

	// stopping are the containers that got a stop signal.
	stopping map[string]stopNotice
	// began is the time at which a container was first seen starting.
	began map[string]time.Time
	// asks contains what the labels of containers define, by id. Labels do not
	// change in the life of a container.
	asks map[string]*ask
	// found are the objects that were found last, by kind and name, to find them again.
	found map[string]*config.Discovered
}

// stopNotice is a stop signal to a container.
type stopNotice struct {
	at time.Time
	// until is how long that is valid.
	until time.Time
}

// outcome is what a listing says.
type outcome struct {
	objects []*config.Discovered
	issues  []discovery.Issue
	// again is when it says something else by itself, zero for never.
	again time.Time
}

func newWorld(provider string, settings *config.Docker, h here) *world {
	return &world{
		provider: provider, settings: settings, here: h,
		stopping: map[string]stopNotice{}, began: map[string]time.Time{}, asks: map[string]*ask{},
		found: map[string]*config.Discovered{},
	}
}

// noteEvent records what only an event shows: that a container got a stop signal. Until
// it has ended the engine lists it as running.
func (w *world) noteEvent(e *event, now time.Time) {
	if e.Type != "container" {
		return
	}
	id := e.about()
	switch action, _, _ := strings.Cut(e.action(), ":"); action {
	case "kill":
		if d := endsBy(e.Actor.Attributes["signal"]); d > 0 {
			w.stopping[id] = stopNotice{at: now, until: now.Add(d)}
		}
	case "die", "died", "start", "restart", "destroy", "remove":
		delete(w.stopping, id)
	}
}

// endsBy returns how long a container that got a signal is treated as stopping; 0 if
// it keeps running.
func endsBy(signal string) time.Duration {
	switch strings.TrimPrefix(strings.ToUpper(signal), "SIG") {
	case "15", "TERM", "9", "KILL":
		return stoppingTime
	case "2", "INT", "3", "QUIT", "28", "WINCH", "37", "RTMIN+3":
		return askedTime
	}
	return 0
}

// update makes objects of a listing.
func (w *world) update(l *listing, peer netip.Addr, now time.Time) outcome {
	w.forget(l.containers)
	around := w.here.around(l.containers, peer)
	g := &gathering{world: w, around: around, containers: l.containers, listed: l.asked, now: now, byObject: map[string][]*member{}}
	for _, c := range l.containers {
		g.add(c)
	}
	for _, u := range l.unread {
		g.issues = append(g.issues, discovery.Issue{Container: u.name, Code: discovery.TooMany, Message: u.what, Hint: "remove what makes it so large, such as labels"})
	}
	if l.more > 0 {
		g.issues = append(g.issues, discovery.Issue{Code: discovery.TooMany, Message: fmt.Sprintf("the engine has more than %d containers", maxContainers), Hint: "set filters, so that fewer are looked at"})
	}
	return g.end()
}

// forget drops what is known of containers that are gone.
func (w *world) forget(containers []*container) {
	there := make(map[string]bool, len(containers))
	for _, c := range containers {
		there[c.ID] = true
	}
	gone := func(id string) bool { return !there[id] }
	maps.DeleteFunc(w.asks, func(id string, _ *ask) bool { return gone(id) })
	maps.DeleteFunc(w.began, func(id string, _ time.Time) bool { return gone(id) })
	maps.DeleteFunc(w.stopping, func(id string, _ stopNotice) bool { return gone(id) })
}

// requested returns what the labels of a container define.
func (w *world) requested(c *container) *ask {
	a := w.asks[c.ID]
	if a == nil || a.container != c.name {
		a = c.read()
		a.container = c.name
		w.asks[c.ID] = a
	}
	return a
}

// gathering is a listing on its way to objects.
type gathering struct {
	*world
	around     *surroundings
	containers []*container
	listed     time.Time // the time of the listing
	now        time.Time

	byObject map[string][]*member
	order    []string
	issues   []discovery.Issue
	again    time.Time
}

// member is a container of an object.
type member struct {
	*container
	w     *wanted
	group string
	state condition
	// until is when the state may change by itself, zero for never.
	until time.Time
}

// condition is the state of a container as a server.
type condition uint8

// The conditions.
const (
	ready condition = iota
	// lateReady is of one that is starting for too long, and used all the same.
	lateReady
	ending
	notReady
	notHealthy
	paused
	restarting
)

// add adds a container, if its labels define something.
func (g *gathering) add(c *container) {
	if strings.EqualFold(c.Labels[composeOneOff], "true") || c.State == "removing" || c.State == "dead" || c.State == "exited" || c.State == "created" {
		return
	}
	a := g.requested(c)
	if !a.any && !g.settings.ExposedByDefault || a.enable == "false" && len(a.issues) == 0 {
		return
	}
	if c == g.around.self {
		if a.any {
			g.issues = append(g.issues, discovery.Issue{Container: c.name, Code: discovery.OwnSocket, Message: "this is headgate's own container, to which it sends no requests", Hint: "remove the labels; what headgate itself serves is said in its configuration"})
		}
		return
	}
	g.issues = append(g.issues, a.issues...)
	if a.enable == "false" || a.blocked() {
		return
	}
	group, name := c.service()
	if c.Labels[swarmService] != "" && a.any {
		g.issues = append(g.issues, discovery.Issue{Container: c.name, Code: discovery.MisplacedLabels,
			Message: fmt.Sprintf("the labels are set on a task of the Swarm service %s, so only its tasks on this machine are proxied", oneLine(name)),
			Hint:    "labels of a whole service belong under deploy.labels, which need the list of services; this version reads containers only"})
	}
	state, until := g.condition(c)
	for _, w := range a.objects {
		key := w.kind + "/" + w.name
		if g.byObject[key] == nil {
			g.order = append(g.order, key)
		}
		id := group
		if id == "" {
			id = c.ID
		}
		g.byObject[key] = append(g.byObject[key], &member{container: c, w: w, group: id, state: state, until: until})
	}
}

// blocked reports whether a mistake in the labels concerns the container as a whole: a
// label that means nothing may be one that was to protect it.
func (a *ask) blocked() bool {
	return slices.ContainsFunc(a.issues, func(i discovery.Issue) bool { return i.Code != discovery.MisplacedLabels })
}

// condition returns the state of a container, and until when it applies
// without an event.
func (g *gathering) condition(c *container) (condition, time.Time) {
	end, told := g.stopping[c.ID]
	if told && (!g.now.Before(end.until) || c.startedAfter(end.at, g.listed)) {
		delete(g.stopping, c.ID)
		told = false
	}
	switch {
	case c.State == "paused":
		return paused, time.Time{}
	case c.State == "restarting":
		return restarting, time.Time{}
	case told:
		return ending, end.until
	}
	switch c.health() {
	case unhealthy:
		return notHealthy, time.Time{}
	case starting:
		return g.starting(c)
	}
	delete(g.began, c.ID)
	return ready, time.Time{}
}

// starting returns the state of a container that is starting.
func (g *gathering) starting(c *container) (condition, time.Time) {
	up, told := c.upFor()
	began, known := g.began[c.ID]
	if !known || told && up < startingTime && g.now.Add(-up).After(began.Add(5*time.Second)) {
		began = g.now // new, or it was started again
		if told {
			began = g.now.Add(-up)
		}
		g.began[c.ID] = began
	}
	if until := began.Add(startingTime); g.now.Before(until) {
		return notReady, until
	}
	return lateReady, time.Time{}
}

// end makes the objects.
func (g *gathering) end() outcome {
	found := make(map[string]*config.Discovered, len(g.order))
	out := outcome{objects: make([]*config.Discovered, 0, len(g.order))}
	for _, key := range g.order {
		for i, members := range g.owners(g.byObject[key]) {
			at := key
			if i > 0 {
				at += "/" + members[0].group // another one of the same name: the merge decides
			}
			d := g.object(members)
			if d == nil {
				continue
			}
			if was := g.found[at]; was != nil && reflect.DeepEqual(was, d) {
				d = was
			}
			found[at] = d
			out.objects = append(out.objects, d)
		}
	}
	g.found = found
	g.world.found = found
	out.issues, out.again = g.issues, g.again
	return out
}

// owners groups the containers of one object, the oldest first.
func (g *gathering) owners(all []*member) [][]*member {
	slices.SortStableFunc(all, func(a, b *member) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.ID, b.ID))
	})
	var groups [][]*member
	for _, m := range all {
		i := slices.IndexFunc(groups, func(have []*member) bool { return have[0].group == m.group })
		if i < 0 {
			groups = append(groups, []*member{m})
			continue
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// mistaken reports whether the labels of an object are invalid by themselves, such as a
// misspelled hosts label. The merge reports the problem.
func (w *wanted) mistaken() bool {
	return len(w.fields) > 0 && config.Find(&config.Discovered{Kind: w.kind, Name: w.name, Labels: w.fields}, nil).Problems != nil
}

// object makes an object of the containers that belong together; nil if they do not say
// for which hosts it is, and nothing else is wrong.
func (g *gathering) object(members []*member) *config.Discovered {
	first := members[0]
	if i := slices.IndexFunc(members, func(m *member) bool { return m.state != ending }); i > 0 {
		first = members[i] // the one that ends does not decide over those that stay
	}
	if !first.w.hasHost() {
		hint := "add the label headgate.host"
		if first.w.form != "" {
			hint = fmt.Sprintf("add the label headgate.%s.%s.virtual_hosts", first.w.form, first.w.name)
		}
		g.addIssue(first, discovery.NoHost, "the container has no label with its hosts", hint)
		if !first.w.mistaken() {
			return nil
		}
	}
	d := &config.Discovered{
		Kind: first.w.kind, Name: first.w.name, Labels: first.w.fields, Created: time.Unix(members[0].Created, 0).UTC(),
		Origin: config.Origin{Via: config.ViaDocker, Provider: g.provider, Container: first.name, Label: first.w.label},
	}
	var last []config.DiscoveredServer
	for _, m := range members {
		g.wait(m.until)
		if m != first && !sameFields(first.w, m.w) {
			g.addIssue(m, discovery.ReplicasDiffer, fmt.Sprintf("the labels differ from those of %s, another container of the same service", first.name), "start them with the same labels; until then this one gets no requests")
			continue
		}
		if !g.mayServe(m) {
			continue
		}
		f := &finder{surroundings: g.around, network: g.settings.Network, containers: g.containers, c: m.container, w: m.w}
		s, ok := f.server()
		g.issues = append(g.issues, f.issues...)
		switch {
		case !ok:
		case m.state == ending:
			last = append(last, s)
		default:
			d.Servers = append(d.Servers, s)
		}
	}
	if len(d.Servers) == 0 {
		// Containers that are stopping are better than none: they accept requests as long
		// as they can.
		d.Servers = last
	}
	return d
}

// hasHost reports whether a label says for which hosts the object is, if it needs some.
func (w *wanted) hasHost() bool {
	return w.kind != "proxies" || slices.ContainsFunc(w.fields, func(l config.Label) bool {
		return strings.HasPrefix(l.Path, "virtual_hosts") && strings.Trim(l.Value, ", ") != ""
	})
}

// mayServe reports whether a container may get requests, and why not.
func (g *gathering) mayServe(m *member) bool {
	switch m.state {
	case ready, ending:
		return true
	case lateReady:
		g.addIssue(m, discovery.NotReady, fmt.Sprintf("the container is starting for more than %v; it gets requests all the same", startingTime), "look at its health check: it has not passed once")
		return true
	case notReady:
		g.addIssue(m, discovery.NotReady, "the container is starting, so it gets no requests yet", fmt.Sprintf("wait until its health check has passed, at most %v", startingTime))
	case notHealthy:
		g.addIssue(m, discovery.Unhealthy, "the container is unhealthy, so it gets no requests", "look at the output of its health check: docker inspect "+m.name)
	case paused:
		g.addIssue(m, discovery.NotReady, "the container is paused, so it gets no requests", "docker unpause "+m.name)
	case restarting:
		g.addIssue(m, discovery.NotReady, "the container restarts again and again, so it gets no requests", "look at its log: docker logs "+m.name)
	}
	return false
}

// addIssue notes an issue of a container of an object.
func (g *gathering) addIssue(m *member, code discovery.Code, message, hint string) {
	g.issues = append(g.issues, discovery.Issue{Container: m.name, Kind: m.w.kind, Name: m.w.name, Code: code, Message: message, Hint: hint})
}

// wait has the listing looked at again at a moment.
func (g *gathering) wait(until time.Time) {
	if !until.IsZero() && (g.again.IsZero() || until.Before(g.again)) {
		g.again = until
	}
}

// sameFields reports whether two containers say the same of their object.
func sameFields(a, b *wanted) bool {
	return slices.EqualFunc(a.fields, b.fields, func(x, y config.Label) bool { return x.Path == y.Path && x.Value == y.Value })
}
