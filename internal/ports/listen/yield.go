package listen

import (
	"cmp"
	"container/heap"
	"net/netip"
	"slices"
	"sync"
	"time"

	"headgate/internal/clock"
)

// Yielder is a Conn that can be closed without loss while its client wants nothing:
// between two requests, or before the first one has come whole.
type Yielder interface {
	Conn
	// Idle returns whose connection it is, and since what moment, by package clock, it
	// has no request under way. ok is false while it has one.
	Idle() (client netip.Addr, since int64, ok bool)
	// Yield closes the connection if it has been idle since the moment that Idle
	// returned, and reports whether it does. It does not wait for the end of Serve.
	Yield(since int64) bool
}

// settleTime is the minimum idle time of a connection before it can be closed for
// another: the request of a new one may be on its way.
const settleTime = int64(50 * time.Millisecond)

// staleTime is how long the list of connections to close first remains valid.
const staleTime = int64(time.Second)

// retryYield is how soon a connection that waits for capacity looks again for an idle one
// to close.
const retryYield = 50 * time.Millisecond

// crowd is the list that an accept loop keeps of the connections that are closed for
// others. Its zero value is empty.
type crowd struct {
	list   []idler // the first to go is the first
	looked int64   // when the list was made
	next   int64   // not before is another one made
}

// lookShare is the part of the time, one in so many, that goes into looking at all
// connections.
const lookShare = 10

// idler is a connection as it was when it was looked at.
type idler struct {
	conn   Yielder
	client netip.Prefix
	since  int64
}

// forget discards an outdated list.
func (c *crowd) forget() {
	if c.list != nil && clock.Now()-c.looked > staleTime {
		c.list = nil
	}
}

// makeRoom closes one connection for another that exceeds the limit of share, and
// reports whether it found one: of the client with the most idle connections, the
// one that has been idle for the longest time. A connection with a request in
// progress is never closed.
func (c *crowd) makeRoom(share *Share) bool {
	now := clock.Now()
	if len(c.list) == 0 || now-c.looked > staleTime {
		if now < c.next {
			return false
		}
		c.list, c.looked = firstToGo(share.idlers()), now
		c.next = now + lookShare*(clock.Now()-now)
	}
	for len(c.list) > 0 {
		first := c.list[0]
		if now-first.since < settleTime {
			return false // its turn, but too soon: no other one is closed instead
		}
		c.list[0] = idler{}
		c.list = c.list[1:]
		if first.conn.Yield(first.since) {
			return true
		}
	}
	return false
}

// idlers returns the connections that can be closed for one of the share: those of its
// own socket if that has a limit of its own, otherwise those of all sockets with more
// than their reserve.
func (s *Share) idlers() (all []idler) {
	for _, c := range s.crowded() {
		for _, conn := range c.all() {
			y, ok := conn.(Yielder)
			if !ok {
				continue
			}
			if client, since, idle := y.Idle(); idle {
				all = append(all, idler{y, clientOf(client), since})
			}
		}
	}
	return all
}

// crowded returns the sockets whose connections use the capacity that the share
// lacks.
func (s *Share) crowded() (all []*conns) {
	l := s.limit
	l.mu.Lock()
	defer l.mu.Unlock()
	own := s.max > 0 && s.open >= s.max
	for other := range l.mu.shares {
		if other.of != nil && (other == s || !own && other.open > other.reserve) {
			all = append(all, other.of)
		}
	}
	return all
}

// all returns the connections that are open.
func (c *conns) all() []Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make([]Conn, 0, len(c.mu.open))
	for conn := range c.mu.open {
		all = append(all, conn)
	}
	return all
}

// clientOf returns the network that counts as one client: an IPv4 address, or the /64
// of one of IPv6.
func clientOf(a netip.Addr) netip.Prefix {
	bits := 64
	if a = a.Unmap(); a.Is4() {
		bits = 32
	}
	p, _ := a.Prefix(bits) // the zero Prefix for clients without an address
	return p
}

// firstToGo returns the connections to close first, in order: an eighth, so that not
// all are examined for each new connection.
func firstToGo(all []idler) []idler {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b idler) int { return cmp.Compare(a.since, b.since) })
	of := map[netip.Prefix]int{}
	var clients holdings
	for _, i := range all {
		at, known := of[i.client]
		if !known {
			at = len(clients)
			of[i.client] = at
			clients = append(clients, nil)
		}
		clients[at] = append(clients[at], i)
	}
	heap.Init(&clients)
	first := make([]idler, 0, max(len(all)/8, 1))
	for len(first) < cap(first) {
		most := clients[0]
		first = append(first, most[0])
		if clients[0] = most[1:]; len(clients[0]) == 0 {
			heap.Pop(&clients)
		} else {
			heap.Fix(&clients, 0)
		}
	}
	return first
}

// holdings are the idle connections of each client, the longest idle first; as a heap
// the client with the most comes first, and of those with as many the one that has
// been idle for longest.
type holdings [][]idler

func (h holdings) Len() int { return len(h) }
func (h holdings) Less(i, j int) bool {
	if len(h[i]) != len(h[j]) {
		return len(h[i]) > len(h[j])
	}
	return len(h[i]) > 0 && h[i][0].since < h[j][0].since
}
func (h holdings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *holdings) Push(x any)   { *h = append(*h, x.([]idler)) }
func (h *holdings) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}

// lockedCrowd is a crowd for several goroutines.
type lockedCrowd struct {
	mu sync.Mutex
	crowd
}

func (c *lockedCrowd) makeRoom(share *Share) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crowd.makeRoom(share)
}

// awaitYield closes a connection, and waits until another may be allowed. If it has to
// be called again, it closes the next one that is idle by then.
func (s *Socket) awaitYield(crowd *crowd, news <-chan struct{}) {
	crowd.makeRoom(s.share)
	retry := time.NewTimer(retryYield)
	defer retry.Stop()
	select {
	case <-news:
	case <-retry.C:
	}
}
