// Package balance selects one of several servers. A Group holds the servers of a route in
// their order and selects with a Method: in turn, by load, at random, or by a hash. It does
// not know requests and connections, so that HTTP routes and TCP and UDP proxies share it;
// each server's Gauge holds whether it is healthy.
//
// A server is acquired with Group.Take or Group.Wait and released with Gauge.Release,
// exactly once.
package balance

import (
	"math/bits"
	"slices"
	"sync/atomic"
	"time"
)

// MaxServers is the largest number of servers in a Group.
const MaxServers = 256

// Tried is a set of places in a group, such as the servers that a request has
// tried already.
type Tried [MaxServers / 64]uint64

// Add puts a place into the set.
func (t *Tried) Add(i int) { t[i>>6&3] |= 1 << (i & 63) }

// Has reports whether a place is in the set.
func (t *Tried) Has(i int) bool { return t[i>>6&3]&(1<<(i&63)) != 0 }

// only returns the one place that is in the set, or -1 if there are more or none.
func (t *Tried) only() int {
	at := -1
	for w, word := range t {
		switch n := bits.OnesCount64(word); {
		case n == 0:
		case n > 1 || at >= 0:
			return -1
		default:
			at = w<<6 + bits.TrailingZeros64(word)
		}
	}
	return at
}

// Member is a server as a Group sees it.
type Member struct {
	// ID names the server for hashes. It is the same on every machine and after
	// every restart.
	ID string
	// Weight is the server's share against the others. 0 means no new clients.
	Weight int
	// Backup is whether the server is used only when no other can be.
	Backup bool
	// Gauge is the run-time side of the server. It may outlive the group.
	Gauge *Gauge
}

// Outcome is what came of a choice.
type Outcome uint8

// The outcomes. Every one but Chosen comes with the place -1.
const (
	// Chosen: a server was acquired.
	Chosen Outcome = iota
	// None: every server was tried, or accepts no clients.
	None
	// Full: every eligible server has reached its limit of requests.
	Full
	// Broken: the circuits of all servers are open.
	Broken
)

// Ask is one request to choose a server.
type Ask struct {
	// Now is the present moment by clock.Now, or nearly.
	Now int64
	// Key is what the request is hashed by, for the method Hash.
	Key uint64
	// Tried are the places that must not be chosen.
	Tried Tried

	waiter bool // it has waited its turn
}

// Group is the servers of a route. It is safe for use by many goroutines at once.
type Group struct {
	// constant
	lone      *Gauge // of the server of a group of one that accepts clients
	slowStart int64
	method    Method
	equal     bool  // all weights that are not 0 are the same
	closed    bool  // unhealthy servers get no requests
	first     uint8 // the first primary server of the list that accepts clients
	members   []Member
	queue     *Queue
	// order is one round of the primary servers by their weights; nil when
	// none accepts clients, or the round would be too long.
	order    []uint8
	rotation *rotation // nil in a group of one, which has no turns
}

// rotation is what a group of several servers knows of whose turn it is.
type rotation struct {
	ids []uint64 // of the members, for hashes

	_    [64]byte // what follows is written with every request
	next atomic.Uint32
	_    [60]byte

	smooth smooth
}

// Options are the settings of a Group.
type Options struct {
	// Method is how a server is chosen.
	Method Method
	// SlowStart is the time over which the share of a recovered server grows to
	// its full value; 0 means at once.
	SlowStart time.Duration
	// FailClosed is whether unhealthy and ejected servers stay unused even when
	// there is no other.
	FailClosed bool
	// Queue is the queue for Wait; it outlives the group as gauges do. Without it, nothing
	// waits.
	Queue *Queue
}

// New returns a group of at most MaxServers members.
func New(members []Member, o Options) *Group {
	g := new(Group)
	g.Init(members, o)
	return g
}

// Init initializes g like New. It is for groups that are stored by value.
func (g *Group) Init(members []Member, o Options) {
	*g = Group{members: members, method: o.Method, equal: true, slowStart: int64(o.SlowStart), closed: o.FailClosed, queue: o.Queue}
	weight := 0
	for i := range members {
		switch m := &members[i]; {
		case m.Weight == 0:
		case weight == 0:
			weight = m.Weight
		case m.Weight != weight:
			g.equal = false
		}
	}
	g.order = fullTurn(members)
	if len(g.order) > 0 {
		g.first = slices.Min(g.order)
	}
	if len(members) == 1 {
		if len(g.order) > 0 {
			g.lone = members[0].Gauge
		}
		return
	}
	g.rotation = &rotation{}
	g.rotation.smooth.mu.current = make([]int64, len(members))
	for i := range members {
		g.rotation.ids = append(g.rotation.ids, HashText(members[i].ID))
	}
}

// Method returns how the group chooses.
func (g *Group) Method() Method { return g.method }

// Bounded reports whether there is a queue to wait in.
func (g *Group) Bounded() bool { return g.queue != nil }

// Waiting returns how many requests wait for a server.
func (g *Group) Waiting() int {
	if g.queue == nil {
		return 0
	}
	return g.queue.Waiting()
}

// Choose chooses a server and counts the request on it. Who gets one releases its
// gauge when the request is over.
func (g *Group) Choose(a *Ask) (int, Outcome) {
	if i := g.quick(a); i >= 0 {
		return i, Chosen
	}
	var full Tried
	for {
		set, outcome := g.candidates(a, &full)
		if outcome != Chosen {
			return -1, outcome
		}
		i := g.pick(&set, a)
		if g.members[i].Gauge.acquire(a.waiter) {
			return i, Chosen
		}
		full.Add(i)
	}
}

// Claim acquires the server at place i, for a client with affinity to it, if it
// can accept requests and was not tried. Its weight and draining are ignored.
func (g *Group) Claim(i int, a *Ask) bool {
	gauge := g.members[i].Gauge
	return !a.Tried.Has(i) && gauge.out.Load()&^uint32(HalfOpen|Draining) == 0 && gauge.acquire(a.waiter)
}

// Likely returns the server that Take would choose now and changes nothing; -1
// with Chosen means that the choice is random.
func (g *Group) Likely(a *Ask) (int, Outcome) {
	set, outcome := g.candidates(a, &Tried{})
	if outcome != Chosen {
		return -1, outcome
	}
	if i := set.only(); i >= 0 {
		return i, Chosen
	}
	switch g.method {
	case RoundRobin:
		// Another attempt does not advance the rotation, and a server that is out
		// has no turn (quick).
		if i := g.whoseTurn(&set, a.Now); a.Tried == (Tried{}) && g.members[i].Gauge.Out() == 0 {
			return i, Chosen
		}
		return g.rotation.smooth.peek(g, &set, a.Now), Chosen
	case LeastConnections:
		return g.leastLoaded(&set, a.Now, g.whoseTurn(&set, a.Now)), Chosen
	case Random, P2CEWMA:
		return -1, Chosen
	}
	return g.pick(&set, a), Chosen
}

// whoseTurn returns whose turn it is, and leaves it at that.
func (g *Group) whoseTurn(set *Tried, now int64) int {
	if n := uint32(len(g.order)); n > 0 && !g.warming() {
		if i := int(g.order[g.rotation.next.Load()%n]); set.Has(i) {
			return i
		}
	}
	return g.rotation.smooth.peek(g, set, now)
}

// quick acquires a server without looking at the others, if the method allows
// that and the server is in its normal state; otherwise it returns -1.
func (g *Group) quick(a *Ask) int {
	if g.lone != nil {
		if a.Tried != (Tried{}) || g.lone.out.Load() != 0 || !g.lone.acquire(a.waiter) {
			return -1
		}
		return 0
	}
	n := uint32(len(g.order))
	if n == 0 || g.warming() || a.Tried != (Tried{}) {
		// Another attempt does not advance the rotation: of two servers of which one
		// fails, that one would be first for every request.
		return -1
	}
	var i int
	switch g.method {
	case RoundRobin:
		if n > 1 {
			n = (g.rotation.next.Add(1) - 1) % n
			i = int(g.order[n])
		} else {
			i = int(g.order[0])
		}
	case Random:
		i = int(g.order[randN(n)])
	case First:
		i = int(g.first)
	case P2CEWMA:
		if i = g.quickTwo(a, n); i < 0 {
			return -1
		}
	default:
		if n > 1 {
			return -1
		}
		i = int(g.order[0])
	}
	if g.members[i].Gauge.out.Load() != 0 || !g.members[i].Gauge.acquire(a.waiter) {
		return -1
	}
	return i
}

// warming reports whether a server starts slowly, so that shares are not those of
// the order.
func (g *Group) warming() bool {
	if g.slowStart > 0 {
		for i := range g.members {
			if g.members[i].Gauge.warm.Load() != 0 {
				return true
			}
		}
	}
	return false
}

// candidates returns the places to choose from: the primary servers that can
// accept the request; otherwise the backup servers that can; and when no server
// accepts requests, those that are unhealthy or ejected, as one of them may work
// after all, unless the group fails closed. Places in full have reached their
// limit.
func (g *Group) candidates(a *Ask, full *Tried) (Tried, Outcome) {
	var tier [3]struct {
		set  Tried
		some bool
		full bool
	}
	const primary, backup, panicked = 0, 1, 2
	usable, broken := false, false
	for i := range g.members {
		m := &g.members[i]
		if m.Weight == 0 {
			continue
		}
		gauge := m.Gauge
		out := Out(gauge.out.Load())
		if out&(Draining|Disabled) != 0 {
			continue // not even when there is no other
		}
		usable = usable || out == 0
		if a.Tried.Has(i) {
			continue
		}
		if out&Open != 0 || out&HalfOpen != 0 && gauge.probes.Load() <= 0 {
			broken = true
			continue
		}
		at := primary
		switch {
		case out&^HalfOpen != 0:
			at = panicked
		case m.Backup:
			at = backup
		}
		if full.Has(i) || gauge.full(a.waiter) {
			tier[at].full = true
			continue
		}
		tier[at].set.Add(i)
		tier[at].some = true
	}
	for at := range tier {
		if at == panicked && (usable || g.closed) {
			break
		}
		switch t := &tier[at]; {
		case t.some:
			return t.set, Chosen
		case t.full:
			return Tried{}, Full
		}
	}
	if broken {
		return Tried{}, Broken
	}
	return Tried{}, None
}

// share returns the weight of a server at this moment, 256 times as large: less
// than its own while it starts slowly.
func (g *Group) share(i int, now int64) int64 {
	weight := int64(g.members[i].Weight) << 8
	if g.slowStart == 0 {
		return weight
	}
	began := g.members[i].Gauge.warm.Load()
	if began == 0 || now-began >= g.slowStart {
		return weight
	}
	const least = 10 // of a hundred, so that a start makes itself felt at once
	part := max(int64(float64(max(now-began, 0))/float64(g.slowStart)*100), least)
	return max(weight*part/100, 1)
}
