package udp

import (
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/exchange"
)

// nowhere is an address that no socket can be connected to: one of a link, without the link.
var nowhere = netip.MustParseAddrPort("[fe80::1]:9")

// A server that there is no way to costs no other session its place: only one that cannot
// begin for want of a descriptor takes that of another.
func TestAServerThatCannotBeReachedEndsNoOtherSession(t *testing.T) {
	a := echo(t, "a")
	h := start(t, 100, time.Minute, a)
	if got, err := roundTrip(h.client(t), "1"); got != "a1" || err != nil {
		t.Fatalf("got %q and %v", got, err)
	}
	p := h.proxy(100, time.Minute, a, a)
	p.Servers[0].Resolve = func() []netip.AddrPort { return []netip.AddrPort{nowhere} }
	p.Servers[1].Gauge = h.Table.proxy.Load().Servers[0].Gauge
	h.Use(p)
	for range 2 {
		if got, err := roundTrip(h.client(t), "2"); got != "a2" || err != nil {
			t.Fatalf("got %q and %v", got, err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ended) > 0 {
		t.Errorf("ended: %+v", h.ended)
	}
	if n := h.tally.Counts().Errors[exchange.UpstreamRefused]; n == 0 {
		t.Error("that there is no way was not counted")
	}
}

// A server with two addresses is reached by the second one where there is no way to the
// first.
func TestAServerIsReachedByItsOtherAddress(t *testing.T) {
	a := echo(t, "a")
	h := start(t, 100, time.Minute, a)
	p := h.proxy(100, time.Minute, a)
	at := a.LocalAddr().(*net.UDPAddr).AddrPort()
	p.Servers[0].Resolve = func() []netip.AddrPort { return []netip.AddrPort{nowhere, at} }
	h.Use(p)
	if got, err := roundTrip(h.client(t), "1"); got != "a1" || err != nil {
		t.Errorf("got %q and %v", got, err)
	}
}

// A session that begins while a change takes its server out does not go on there.
func TestASessionThatBeginsDuringAChangeEndsWithItsServer(t *testing.T) {
	a, b := echo(t, "a"), echo(t, "b")
	h := start(t, 100, time.Minute, a)
	at := a.LocalAddr().(*net.UDPAddr).AddrPort()
	first, next := h.proxy(100, time.Minute, a), h.proxy(100, time.Minute, b)
	var changes atomic.Bool
	first.Servers[0].Resolve = func() []netip.AddrPort {
		if changes.Swap(false) {
			h.Use(next)
		}
		return []netip.AddrPort{at}
	}
	h.Use(first)
	changes.Store(true)
	if got, err := roundTrip(h.client(t), "1"); got != "b1" || err != nil {
		t.Errorf("got %q and %v, want an answer of the server of the new plan", got, err)
	}
	if n, m := first.Servers[0].Gauge.Active(), next.Servers[0].Gauge.Active(); n != 0 || m != 1 || h.tally.Counts().Open != 1 {
		t.Errorf("%d sessions at the old server, %d at the new one, counted %+v", n, m, h.tally.Counts())
	}
}
