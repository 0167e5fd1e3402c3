package admin

import (
	"net"
	"net/netip"
	"sync"
)

// shared limits the connections of one address, so that a client that holds many idle ones
// does not keep others out.
type shared struct {
	net.Listener
	maxOne int // of one address

	mu  sync.Mutex
	has map[netip.Addr]int // guarded by mu
}

// share returns a listener of whose connections an address has at maxOne so many.
func share(l net.Listener, maxOne int) *shared {
	return &shared{Listener: l, maxOne: maxOne, has: map[netip.Addr]int{}}
}

// Accept returns the next connection. Those of an address that has its share are closed.
func (s *shared) Accept() (net.Conn, error) {
	for {
		c, err := s.Listener.Accept()
		if err != nil {
			return nil, err
		}
		from := addressOf(c)
		if s.acquire(from) {
			return &sharing{Conn: c, of: s, from: from}, nil
		}
		c.Close()
	}
}

func addressOf(c net.Conn) netip.Addr {
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap().WithZone("")
}

func (s *shared) acquire(from netip.Addr) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has[from] >= s.maxOne {
		return false
	}
	s.has[from]++
	return true
}

func (s *shared) release(from netip.Addr) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has[from]--; s.has[from] <= 0 {
		delete(s.has, from)
	}
}

// sharing is a connection that counts in the share of its address until it is closed.
type sharing struct {
	net.Conn
	of   *shared
	from netip.Addr
	once sync.Once
}

// Close closes the connection.
func (c *sharing) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { c.of.release(c.from) })
	return err
}
