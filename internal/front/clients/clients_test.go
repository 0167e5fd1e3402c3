package clients

import (
	"net/netip"
	"sync"
	"testing"
)

func address(s string) netip.Addr { return netip.MustParseAddr(s) }

// One client gets no more than half of what there is, and those who come later get
// their share of the rest.
func TestMemoryIsShared(t *testing.T) {
	c, limits := New(), Limits{Total: 1000}
	take := func(m *Member) (n int64) {
		for m.Reserve(1, limits) {
			n++
		}
		return n
	}
	first, again := c.Join(address("192.0.2.1")), c.Join(address("192.0.2.1"))
	if n := take(first) + take(again); n != 500 {
		t.Errorf("one client on two connections gets %d, want 500", n)
	}
	second := c.Join(address("192.0.2.2"))
	if n := take(second); n != 250 {
		t.Errorf("the second gets %d, want 250", n)
	}
	for i := range 100 {
		if m := c.Join(netip.AddrFrom4([4]byte{192, 0, 3, byte(i)})); !m.Reserve(1, limits) {
			t.Errorf("client %d of a hundred gets nothing", i)
		}
	}
	second.Leave()
	first.Leave()
	again.Leave()
	if c.Used() != 100 {
		t.Errorf("%d are in use, want 100", c.Used())
	}
}

func TestMemoryOfAnAddressIsBounded(t *testing.T) {
	c, limits := New(), Limits{Each: 10}
	a, b := c.Join(address("2001:db8::1")), c.Join(address("2001:db8::2"))
	if !a.Reserve(6, limits) || b.Reserve(6, limits) || !b.Reserve(4, limits) {
		t.Error("two addresses of one network are not one client")
	}
	if m := c.Join(address("2001:db8:0:1::1")); !m.Reserve(10, limits) {
		t.Error("another network is bounded by the first")
	}
	if m := c.Join(netip.Addr{}); !m.Reserve(10, limits) || m.Reserve(1, limits) {
		t.Error("a client without an address is not bounded as one")
	}
	if m := c.Join(address("::ffff:192.0.2.1")); m.prefix != c.Join(address("192.0.2.1")).prefix {
		t.Error("an IPv4-mapped IPv6 address is another client than its IPv4 address")
	}
	a.Release(6)
	if !b.Reserve(6, limits) {
		t.Error("what was given back is not there")
	}
}

func TestOffencesOutliveTheConnection(t *testing.T) {
	c := New()
	n := 0
	for m := c.Join(address("192.0.2.1")); !m.Offend(); m = c.Join(address("192.0.2.1")) {
		m.Leave()
		if n++; n > 10_000 {
			t.Fatal("offences are forgotten with the connection")
		}
	}
	if n < 512 || !c.Join(address("192.0.2.1")).Offender() || c.Join(address("192.0.2.2")).Offender() {
		t.Errorf("after %d offences: wrong client", n)
	}
}

func TestFloodsMakeAnOffender(t *testing.T) {
	c := New()
	for n := range 100 {
		m := c.Join(address("192.0.2.1"))
		if m.Offender() {
			if n < 4 {
				t.Errorf("after %d floods already", n)
			}
			return
		}
		m.Flooded()
		m.Leave()
	}
	t.Error("a hundred floods are forgotten with their connections")
}

func TestNobodyIsBounded(t *testing.T) {
	var c *Clients
	m := c.Join(address("192.0.2.1"))
	if !m.Reserve(1<<40, Limits{Total: 1, Each: 1}) || m.Offend() || m.Offender() {
		t.Error("a nil Clients bounds somebody")
	}
	m.Release(1)
	m.Leave()
}

func TestManyConnectionsAtOnce(t *testing.T) {
	c, limits := New(), Limits{Total: 1 << 20, Each: 1 << 10}
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for range 200 {
				m := c.Join(netip.AddrFrom4([4]byte{192, 0, 2, byte(i % 3)}))
				if m.Reserve(7, limits) {
					m.Release(3)
				}
				m.Offend()
				m.Leave()
			}
		})
	}
	all.Wait()
	if c.Used() != 0 || len(c.mu.all) != 0 {
		t.Errorf("%d bytes and %d clients are left", c.Used(), len(c.mu.all))
	}
}

func TestFewConnectionsAreDelayed(t *testing.T) {
	c, over := New(), make(chan struct{})
	var waiting sync.WaitGroup
	for range 3 * maxDelayed {
		waiting.Go(func() { c.Delay(over) })
	}
	close(over)
	waiting.Wait()
	if n := c.Delayed(); n != 0 {
		t.Errorf("%d wait still", n)
	}
	c.delayed.Store(maxDelayed)
	c.Delay(nil) // returns at once, as nothing would end it
	(*Clients)(nil).Delay(nil)
}
