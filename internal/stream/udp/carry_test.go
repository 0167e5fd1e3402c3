package udp

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
)

// TestClientsKeepTheirServersInAnotherProcess checks that clients whose sessions are exported
// get the same servers from a table that imports them, unless a server is not there any more,
// and that a client which the old process did not have gets any.
func TestClientsKeepTheirServersInAnotherProcess(t *testing.T) {
	servers := []*net.UDPConn{echo(t, "a"), echo(t, "b"), echo(t, "c")}
	old := start(t, 100, time.Minute, servers...)
	var clients []*net.UDPConn
	var had []string
	for range 12 {
		c := old.client(t)
		got, err := roundTrip(c, "")
		if err != nil {
			t.Fatal(err)
		}
		clients, had = append(clients, c), append(had, got)
	}
	data := old.tally.Export()
	// The other process has the servers in another order, without the last one.
	h := &house{tally: NewTally()}
	h.tally.Import(data)
	old.Close()
	conn := socketAt(t, old.address.String())
	h.address = old.address
	h.Table = NewTable(conn, h.proxy(100, time.Minute, servers[1], servers[0]))
	h.Serve()
	t.Cleanup(h.Close)
	for i, c := range clients {
		got, err := roundTrip(c, "")
		if err != nil || got != had[i] && had[i] != "c" || got == "c" {
			t.Errorf("client %d had %s and gets %s, %v", i, had[i], got, err)
		}
	}
	if got, err := roundTrip(h.client(t), ""); err != nil || got == "" {
		t.Errorf("a new client gets %q, %v", got, err)
	}
	h.Close()
	if n := len(h.tally.mu.before); n != 0 {
		t.Errorf("%d clients are remembered after all have come", n)
	}
	if h.tally.Export() != nil {
		t.Error("a table that is closed is exported")
	}
}

// TestAClientOfSeveralPortsKeepsTheServerOfEach checks that a client which sends to several ports
// of a range from one socket gets the server that it had on each of them.
func TestAClientOfSeveralPortsKeepsTheServerOfEach(t *testing.T) {
	servers := [2][]*net.UDPConn{{echo(t, "a0"), echo(t, "b0")}, {echo(t, "a1"), echo(t, "b1")}}
	open := func(tally *Tally, at [2]string) (ports [2]*house) {
		for i := range ports {
			h := &house{tally: tally}
			conn := socketAt(t, at[i])
			h.address = conn.LocalAddr().(*net.UDPAddr)
			h.Table = NewTable(conn, h.proxy(100, time.Minute, servers[i]...))
			h.Serve()
			t.Cleanup(h.Close)
			ports[i] = h
		}
		return ports
	}
	old := open(NewTally(), [2]string{"127.0.0.1:0", "127.0.0.1:0"})
	at := [2]string{old[0].address.String(), old[1].address.String()}
	answer := func(c *net.UDPConn, to *net.UDPAddr) string {
		c.SetReadDeadline(time.Now().Add(patience))
		c.WriteTo(nil, to)
		p := make([]byte, 64)
		n, _ := c.Read(p)
		return string(p[:n])
	}
	var clients []*net.UDPConn
	var had [][2]string
	for i := range 8 {
		c := socketAt(t, "127.0.0.1:0")
		clients = append(clients, c)
		had = append(had, [2]string{})
		for n := range 2 {
			had[i][(i+n)%2] = answer(c, old[(i+n)%2].address)
		}
	}
	tally := NewTally()
	tally.Import(old[0].tally.Export())
	for _, h := range old {
		h.Close()
	}
	now := open(tally, at)
	for i, c := range slices.Backward(clients) { // by chance they would get their servers in the same order
		for port := range 2 {
			if got := answer(c, now[port].address); got != had[i][port] || got == "" {
				t.Errorf("client %d had %q on port %d and gets %q", i, had[i][port], port, got)
			}
		}
	}
}

// TestImportedClientsAreForgotten checks that a client which comes after the idle timeout gets
// a server like any other, and that damaged data is ignored.
func TestImportedClientsAreForgotten(t *testing.T) {
	tally := NewTally()
	for _, bad := range []string{"", "null", "[]", `{"servers":["a"],"clients":["192.0.2.1:1"],"at":[0]}`, `{"servers":["a"],"clients":["192.0.2.1:1"],"at":[1],"last":[1]}`, `{"servers":[],"clients":["x"],"at":[0],"last":[0]}`} {
		tally.Import([]byte(bad))
		if len(tally.mu.before) != 0 {
			t.Errorf("%s is imported", bad)
		}
	}
	now := time.Now().UnixMilli()
	tally.Import(fmt.Appendf(nil, `{"servers":["a"],"clients":["192.0.2.1:1","192.0.2.2:1","192.0.2.3:1"],"at":[0,0,0],"last":[%d,%d,%d]}`, now, now-120_000, now+3_600_000))
	for client, want := range map[string]bool{"192.0.2.1:1": true, "192.0.2.2:1": false, "192.0.2.3:1": true, "192.0.2.4:1": false} {
		if _, ok := tally.takeBefore(sender{53, netip.MustParseAddrPort(client)}, time.Minute); ok != want {
			t.Errorf("%s is remembered: %v, want %v", client, ok, want)
		}
	}
	if _, ok := tally.takeBefore(sender{53, netip.MustParseAddrPort("192.0.2.1:1")}, time.Minute); ok {
		t.Error("a client is remembered twice")
	}
	tally.Import(fmt.Appendf(nil, `{"servers":["a"],"clients":["192.0.2.1:1"],"at":[0],"last":[%d]}`, now))
	tally.mu.imported -= int64(2 * time.Minute)
	if _, ok := tally.takeBefore(sender{53, netip.MustParseAddrPort("192.0.2.1:1")}, time.Minute); ok || tally.mu.before != nil {
		t.Error("what was imported before the idle timeout is kept")
	}
}
