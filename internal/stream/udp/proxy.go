// Package udp forwards datagrams between clients and servers. The datagrams of one client
// address are a session: they go to one server, from a separate socket, and datagrams that
// this socket receives go to the client.
//
// A Proxy is the compiled form of the settings. A Table serves one socket with the current
// Proxy; table.go receives datagrams and finds their session, session.go is the life of
// one, order.go selects sessions to end if there are too many.
//
// Source addresses can be forged, so the number of sessions is limited and a flood of new
// sessions displaces new ones: a session is proven when its client has sent again after a
// response, and a proven one is only ended if all are and it has been idle for a while.
// Nothing here waits for space in a socket: excess datagrams are lost, as on a network.
package udp

import (
	"maps"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/balance"
)

// Server is one server of a proxy.
type Server struct {
	// Address is its host and port, as they were configured.
	Address string
	// Resolve returns where datagrams go, without waiting; nothing if that is not known
	// yet. A second address is for when there is no way to the first. The slice must not
	// be changed.
	Resolve func() []netip.AddrPort
	// Gauge counts its sessions and decides whether it gets more.
	Gauge *balance.Gauge
	// Told is called with the result of each session: exchange.None for the
	// first answer, otherwise what failed.
	Told func(exchange.Reason, error)
}

// Settings is what a Proxy is made of.
type Settings struct {
	// Name is the proxy's name.
	Name string
	// Servers are the servers, in the order of Group's members.
	Servers []*Server
	// Group chooses among them.
	Group *balance.Group
	// IdleTimeout is how long both directions may be silent.
	IdleTimeout time.Duration
	// Sessions is how many there may be at once on each port, Ports how many ports there are;
	// 0 is 1.
	Sessions, Ports int
	// Announce puts a PROXY header before each datagram to a server.
	Announce bool
	// Filters say which clients are let in; none lets all.
	Filters exchange.StreamFilters
	// Record is called at the end of each session. It may be nil.
	Record func(*exchange.Session)
	// Tally counts.
	Tally *Tally
}

// Proxy is a UDP proxy. It is immutable and may be used by several goroutines at
// once.
type Proxy struct{ Settings }

// New returns a proxy.
func New(s Settings) *Proxy { return &Proxy{s} }

// start makes the limit that of the tally, counts a table there, and warms the proxy.
func (p *Proxy) start(t *Table) {
	p.Tally.join(t)
	p.Tally.max.Store(int64(p.Sessions) * int64(max(p.Ports, 1)))
	p.Warm()
}

// Warm starts to look up the names of servers, so that they are known for the
// first datagram.
func (p *Proxy) Warm() {
	for _, s := range p.Servers {
		s.Resolve()
	}
}

// has reports whether sessions may go on at a server.
func (p *Proxy) has(server *Server) bool {
	for _, s := range p.Servers {
		if s.Gauge == server.Gauge {
			return true
		}
	}
	return false
}

func (s *Server) count(r exchange.Reason, err error) {
	if s.Told != nil {
		s.Told(r, err)
	}
}

// Tally is what is counted of one proxy. It outlives plans. Its methods may be
// called by several goroutines at once.
type Tally struct {
	up, down, begun atomic.Uint64
	open, max       atomic.Int64

	mu struct {
		sync.Mutex
		errors   map[exchange.Reason]uint64
		tables   map[*Table]struct{}
		before   map[sender]affinity // of the process before this one; nil for none
		imported int64               // when, as clock.Now
	}
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	t := &Tally{}
	t.mu.errors = map[exchange.Reason]uint64{}
	t.mu.tables = map[*Table]struct{}{}
	return t
}

// Retire does nothing: a tally holds nothing but numbers.
func (t *Tally) Retire() {}

// Counts returns what was counted so far.
func (t *Tally) Counts() exchange.StreamCounts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return exchange.StreamCounts{
		Open: int(t.open.Load()), Max: int(t.max.Load()), Accepted: t.begun.Load(), Received: t.up.Load(), Sent: t.down.Load(),
		Errors: maps.Clone(t.mu.errors),
	}
}

func (t *Tally) failed(why exchange.Reason) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.errors[why]++
}
