package udp

import (
	"encoding/binary"
	"net"
	"net/netip"
	"strings"
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

// announced returns the PROXY header of version 2 of a datagram from source to destination, both IPv4.
func announced(source, destination netip.AddrPort) string {
	b := []byte("\r\n\r\n\x00\r\nQUIT\n\x21\x12\x00\x0c")
	b = append(append(b, source.Addr().AsSlice()...), destination.Addr().AsSlice()...)
	b = binary.BigEndian.AppendUint16(b, source.Port())
	return string(binary.BigEndian.AppendUint16(b, destination.Port()))
}

// TestEachDatagramHasAHeader checks the PROXY header before each datagram to a server: the
// receivers of version 2 over UDP are without state. Answers have none. The header names the
// address that the client sent to, also where the socket listens on all.
func TestEachDatagramHasAHeader(t *testing.T) {
	for _, at := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		server := echo(t, "")
		h := &house{tally: NewTally()}
		conn := socketAt(t, at)
		to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(conn.LocalAddr().(*net.UDPAddr).Port))
		h.address = net.UDPAddrFromAddrPort(to)
		p := h.proxy(100, time.Minute, server)
		p.Announce = true
		h.Table = NewTable(conn, p)
		h.Serve()
		t.Cleanup(h.Close)
		for range 2 {
			client := h.client(t)
			header := announced(client.LocalAddr().(*net.UDPAddr).AddrPort(), to)
			for _, text := range []string{"1", "", strings.Repeat("x", 9000)} {
				if got, err := roundTrip(client, text); got != header+text || err != nil {
					t.Errorf("%s: the server has got %.60q and %v, want %.60q", at, got, err, header+text)
				}
			}
		}
	}
}

// TestChangeOfTheHeaderEndsSessions checks that a server sees no session in which some
// datagrams have a header.
func TestChangeOfTheHeaderEndsSessions(t *testing.T) {
	server := echo(t, "")
	h := start(t, 100, time.Minute, server)
	client := h.client(t)
	if got, err := roundTrip(client, "1"); got != "1" || err != nil {
		t.Fatalf("got %q and %v", got, err)
	}
	p := h.proxy(100, time.Minute, server)
	p.Servers[0].Gauge = h.Table.proxy.Load().Servers[0].Gauge
	p.Announce = true
	h.Use(p)
	want := announced(client.LocalAddr().(*net.UDPAddr).AddrPort(), h.address.AddrPort()) + "2"
	if got, err := roundTrip(client, "2"); got != want || err != nil {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
	if n := h.tally.Counts(); n.Accepted != 2 || n.Max != 100 {
		t.Errorf("counted %+v", n)
	}
}
