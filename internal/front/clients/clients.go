// Package clients tracks the clients of a socket by address: how much memory
// their requests hold, so that none uses that of the others, and how often they
// broke rules, also across connections.
//
// A connection calls Join, then Take before it starts a request and Give after it,
// and Leave at its end. The amounts are estimates, reserved in pieces for several
// requests, so that a single request counts nothing.
package clients

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/clock"
)

// RequestMemory is the estimated memory of a request in progress, in bytes:
// its goroutine's stack, its exchange, and the buffers on both sides.
const RequestMemory = 64 << 10

// Limits bound the memory of requests, in bytes; 0 is no bound.
type Limits struct {
	// Total is for all clients together. A client may have as much of it as is
	// left: so one alone gets half, and several get equal shares.
	Total int64
	// Each is for one address.
	Each int64
}

// Clients tracks the clients of a socket. It is safe for concurrent use. A nil *Clients
// tracks nothing and has no limits.
type Clients struct {
	// Refused, if not nil, is called when memory for a client is refused. It is set before
	// the first Join and must be safe for concurrent use.
	Refused func(client netip.Prefix)

	seed     bucket.Seed
	offences bucket.Table
	total    atomic.Int64 // mu.used, for who only looks
	delayed  atomic.Int32 // connections that wait in Delay

	mu struct {
		sync.Mutex
		used int64
		all  map[netip.Prefix]*client
	}
}

// client is an address, or the /64 of one of IPv6, that has connections.
type client struct {
	connections int
	used        int64
	total       atomic.Int64 // used, for who only looks
}

// New returns an empty Clients.
func New() *Clients {
	c := &Clients{seed: bucket.NewSeed()}
	c.mu.all = map[netip.Prefix]*client{}
	return c
}

// Used returns how much memory requests hold, in bytes.
func (c *Clients) Used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.used
}

// Member is a connection of a client. Its methods may be called by several
// goroutines at once. A nil *Member is bounded by nothing.
type Member struct {
	clients *Clients
	prefix  netip.Prefix
	key     uint64
	client  *client
	held    int64 // guarded by clients.mu
}

// Join adds a connection of a client. Leave must follow.
func (c *Clients) Join(a netip.Addr) *Member {
	if c == nil {
		return nil
	}
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero Prefix for clients without an address
	m := &Member{clients: c, prefix: p}
	if a.IsValid() {
		m.key = c.seed.Address(a)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.client = c.mu.all[p]; m.client == nil {
		m.client = &client{}
		c.mu.all[p] = m.client
	}
	m.client.connections++
	return m
}

// Reserve reserves n bytes of memory, if the limits let the client have them.
func (m *Member) Reserve(n int64, limits Limits) bool {
	if m.reserve(n, limits) {
		return true
	}
	m.refuse()
	return false
}

// TryTake is Take for optional memory: it does not call Refused.
func (m *Member) TryTake(n int64, limits Limits) bool { return m.reserve(n, limits) }

func (m *Member) refuse() {
	if told := m.clients.Refused; told != nil {
		told(m.prefix)
	}
}

func (m *Member) reserve(n int64, limits Limits) bool {
	if m == nil {
		return true
	}
	c := m.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	after := m.client.used + n
	if limits.Each > 0 && after > limits.Each || limits.Total > 0 && after > limits.Total-c.mu.used {
		return false
	}
	m.giveLocked(-n)
	return true
}

// Hold counts n bytes of memory that are held already, over the limits too.
func (m *Member) Hold(n int64) { m.Release(-n) }

// Room reports whether the limits allow the client n more bytes. It acquires no lock. It
// calls Refused if they do not.
func (m *Member) Room(n int64, limits Limits) bool {
	if m == nil {
		return true
	}
	used := m.client.total.Load()
	if used == 0 { // a new client always has memory
		return true
	}
	after := used + n
	if limits.Each > 0 && after > limits.Each || limits.Total > 0 && after > limits.Total-m.clients.total.Load() {
		m.refuse()
		return false
	}
	return true
}

// Busy reports whether any client holds memory.
func (c *Clients) Busy() bool { return c != nil && c.total.Load() > 0 }

// maxPlaces is the maximum number of requests that memory is reserved for at
// once.
const maxPlaces = 16

// TakePlaces reserves memory for at least one more request on a connection that has it for
// so many, and returns for how many it did: for one at first, and then for twice as many,
// so that reservations are rare and not much too large. It returns 0 if the limits do not
// allow it.
func (m *Member) TakePlaces(have int, limits Limits) int {
	for _, n := range [...]int{min(max(have, 1), maxPlaces), 1} {
		if m.reserve(int64(n)*RequestMemory, limits) {
			return n
		}
	}
	m.refuse()
	return 0
}

// GivePlaces releases the memory of n requests.
func (m *Member) GivePlaces(n int) { m.Release(int64(n) * RequestMemory) }

// Release returns n bytes.
func (m *Member) Release(n int64) {
	if m == nil || n == 0 {
		return
	}
	m.clients.mu.Lock()
	m.giveLocked(n)
	m.clients.mu.Unlock()
}

func (m *Member) giveLocked(n int64) {
	m.held -= n
	m.client.used -= n
	m.clients.mu.used -= n
	m.client.total.Store(m.client.used)
	m.clients.total.Store(m.clients.mu.used)
}

// Leave removes the connection, and releases what it holds.
func (m *Member) Leave() {
	if m == nil {
		return
	}
	c := m.clients
	c.mu.Lock()
	defer c.mu.Unlock()
	m.giveLocked(m.held)
	if m.client.connections--; m.client.connections == 0 {
		delete(c.mu.all, m.prefix)
	}
}

// offences is how often a client may break a rule that no honest one breaks, in
// requests on all of its connections: so often at once, and so often a second.
var offences = bucket.New(10, time.Second, 512)

// Offend notes that the client broke a rule, and reports whether that was once too
// often. It is remembered when the connection has ended.
func (m *Member) Offend() bool {
	if m == nil {
		return false
	}
	_, wait := m.clients.offences.Admit(m.key, clock.Now(), &offences, false)
	return wait > 0
}

// floodOffences is how many offences a connection counts as that was ended for a flood.
const floodOffences = 64

// Flooded notes that a connection of the client was ended for a flood.
func (m *Member) Flooded() {
	for range floodOffences {
		m.Offend()
	}
}

// Offender reports whether the client has broken rules too often a short while ago,
// on other connections.
func (m *Member) Offender() bool {
	if m == nil {
		return false
	}
	left, _ := m.clients.offences.Peek(m.key, clock.Now(), &offences)
	return left == 0
}
