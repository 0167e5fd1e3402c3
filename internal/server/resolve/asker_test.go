package resolve

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/server/resolve/resolvetest"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAddressesComeWithTheirTTL(t *testing.T) {
	z := resolvetest.New(t)
	a := asker{servers: []netip.AddrPort{z.Address}}
	z.Set("one.test", resolvetest.Record{TTL: 7, IP: "10.0.0.1"})
	z.Set("dual.test", resolvetest.Record{TTL: 60, IP: "10.0.0.1"}, resolvetest.Record{TTL: 5, IP: "2001:db8::1"})
	z.Set("alias.test", resolvetest.Record{TTL: 3, Alias: "one.test"})
	z.Set("zero.test", resolvetest.Record{TTL: 0, IP: "10.0.0.1"})
	z.Set("mapped.test", resolvetest.Record{TTL: 9, IP: "::ffff:10.0.0.1"})
	z.Set("none.test")
	for _, cut := range []bool{false, true} {
		z.Be(false, false, cut) // over UDP, then over TCP
		for _, c := range []struct {
			name string
			want string
			ttl  time.Duration
		}{
			{"one.test", "[{[10.0.0.1:80] 1 0}]", 7 * time.Second},
			{"alias.test", "[{[10.0.0.1:80] 1 0}]", 3 * time.Second},
			{"zero.test", "[{[10.0.0.1:80] 1 0}]", 0},
			{"mapped.test", "[{[10.0.0.1:80] 1 0}]", 9 * time.Second},
			{"10.0.0.9", "[{[10.0.0.9:80] 1 0}]", unknownTTL},
			{"localhost", "", unknownTTL},
		} {
			got, ttl, err := a.host(t.Context(), c.name, 80)
			if err != nil || ttl != c.ttl || c.want != "" && fmt.Sprint(got) != c.want {
				t.Errorf("%s: %v, %v, %v, want %s, %v", c.name, got, ttl, err, c.want, c.ttl)
			}
		}
		dual, ttl, err := a.host(t.Context(), "dual.test", 80)
		if err != nil || len(dual) != 1 || len(dual[0].Addresses) != 2 || ttl != 5*time.Second {
			t.Errorf("dual.test: %v, %v, %v, want one server with two addresses", dual, ttl, err)
		}
		for _, name := range []string{"none.test", "no.test"} {
			if got, _, err := a.host(t.Context(), name, 80); !notFound(err) {
				t.Errorf("%s: %v, %v, want not found", name, got, err)
			}
		}
	}
	z.Be(false, true, false)
	if _, _, err := a.host(t.Context(), "one.test", 80); err == nil || notFound(err) {
		t.Errorf("a name server that cannot tell: %v, want an error that is not the word that there is no such name", err)
	}
}

func TestANameServerThatIsSilentIsLeftForAnother(t *testing.T) {
	mute, z := resolvetest.New(t), resolvetest.New(t)
	mute.Be(false, true, false)
	z.Set("one.test", resolvetest.Record{TTL: 7, IP: "10.0.0.1"})
	dead := netip.MustParseAddrPort("127.0.0.1:1")
	a := asker{servers: []netip.AddrPort{dead, mute.Address, z.Address}}
	got, _, err := a.host(t.Context(), "one.test", 80)
	if err != nil || len(got) != 1 {
		t.Errorf("%v, %v, want one server", got, err)
	}
	// The word that there is no such name is an answer.
	a = asker{servers: []netip.AddrPort{z.Address, mute.Address}}
	if _, _, err := a.host(t.Context(), "no.test", 80); !notFound(err) || mute.Queries("no.test") != 0 {
		t.Errorf("%v, and the second was asked %d times", err, mute.Queries("no.test"))
	}
}

func TestServicesHaveServersWithPortAndWeight(t *testing.T) {
	z := resolvetest.New(t)
	a := asker{servers: []netip.AddrPort{z.Address}}
	z.Set("_http._tcp.test", resolvetest.Service(9, 20, 1, 8082, "b.test"), resolvetest.Service(9, 10, 3, 8080, "a.test"), resolvetest.Service(4, 10, 1, 8081, "b.test"), resolvetest.Service(9, 10, 1, 1, "gone.test"))
	z.Set("a.test", resolvetest.Record{TTL: 30, IP: "10.0.0.1"})
	z.Set("b.test", resolvetest.Record{TTL: 30, IP: "10.0.0.2"}, resolvetest.Record{TTL: 30, IP: "10.0.0.3"})
	got, ttl, err := a.service(t.Context(), "_http._tcp.test")
	want := "[{[10.0.0.1:8080] 3 10} {[10.0.0.2:8081] 1 10} {[10.0.0.3:8081] 1 10} {[10.0.0.2:8082] 1 20} {[10.0.0.3:8082] 1 20}]"
	if err != nil || fmt.Sprint(got) != want || ttl != 4*time.Second {
		t.Errorf("%v, %v, %v, want %s", got, ttl, err, want)
	}
	z.Set("_no._tcp.test", resolvetest.Service(9, 0, 0, 0, ""))
	for _, name := range []string{"_no._tcp.test", "_none._tcp.test"} {
		if got, _, err := a.service(t.Context(), name); !notFound(err) {
			t.Errorf("%s: %v, %v, want not found", name, got, err)
		}
	}
	z.Set("_gone._tcp.test", resolvetest.Service(9, 0, 0, 1, "gone.test"))
	if got, _, err := a.service(t.Context(), "_gone._tcp.test"); !notFound(err) {
		t.Errorf("%v, %v, want not found", got, err)
	}
}

func TestANameWithAThousandAddressesIsBounded(t *testing.T) {
	z := resolvetest.New(t)
	var list []resolvetest.Record
	for i := range 1000 {
		list = append(list, resolvetest.Record{TTL: 9, IP: fmt.Sprintf("10.0.%d.%d", i>>8, i&255)})
	}
	z.Set("many.test", list...)
	z.Be(false, false, true) // it does not fit into a packet
	got, _, err := asker{servers: []netip.AddrPort{z.Address}}.host(t.Context(), "many.test", 80)
	if err != nil || len(got) != maxEndpoints {
		t.Errorf("%d servers, %v, want %d", len(got), err, maxEndpoints)
	}
	if n := len(appendOrder(nil, got, 7)); n != maxDials {
		t.Errorf("a dial tries %d, want %d", n, maxDials)
	}
}

func TestWhatANameServerSaysCannotBreakTheEar(t *testing.T) {
	e := &ear{ttl: unknownTTL}
	for _, b := range [][]byte{nil, {1}, make([]byte, 11), make([]byte, 12), make([]byte, 600)} {
		e.parse(b)
	}
	if e.ttl != unknownTTL {
		t.Errorf("TTL %v", e.ttl)
	}
}

// A panic over what a name server says ends that look-up, and is told; package net reads in
// goroutines of its own, where nobody else could catch it.
func TestABrokenInvariantEndsALookUpAndNotTheProcess(t *testing.T) {
	var lines strings.Builder
	log := slog.New(slog.NewTextHandler(&lines, nil))
	told := func(what string, err error) {
		t.Helper()
		if err == nil || strings.Count(lines.String(), "broken invariant") != 1 || !strings.Contains(lines.String(), "name=name.test") {
			t.Errorf("%s: %v, log %q; want an error and one line", what, err, lines.String())
		}
		lines.Reset()
	}

	n := newName("name.test", Options{Log: log})
	n.ask = func(context.Context) ([]Endpoint, time.Duration, error) { panic("no") }
	_, err := n.endpoints(t.Context())
	told("look-up", err)

	a := asker{log: log, shown: "name.test"}
	hear := a.guarded(func([]byte) { panic("no") })
	here, there := net.Pipe()
	defer here.Close()
	go func() {
		defer there.Close()
		there.Write([]byte{0, 1, 7})
	}()
	_, err = io.ReadFull(&stream{Conn: here, hear: hear}, make([]byte, 3))
	told("TCP", err)

	z := resolvetest.New(t)
	z.Set("one.test", resolvetest.Record{TTL: 7, IP: "10.0.0.1"})
	hear = a.guarded(func([]byte) { panic("no") })
	r := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		nc, err := net.Dial("udp", z.Address.String())
		if err != nil {
			return nil, err
		}
		return &packets{nc.(*net.UDPConn), hear}, nil
	}}
	_, err = r.LookupNetIP(t.Context(), "ip", "one.test")
	told("UDP", err)
}

func FuzzEar(f *testing.F) {
	f.Add([]byte("\x00\x01\x80\x00\x00\x01\x00\x01\x00\x00\x00\x00\x01a\x00\x00\x01\x00\x01\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x07\x00\x04\x7f\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := &ear{ttl: unknownTTL}
		e.parse(b)
		if e.ttl < unknownTTL {
			t.Errorf("TTL %v", e.ttl)
		}
	})
}

func TestEndpointsOfTwoVersionsAreOneServerEach(t *testing.T) {
	for _, c := range []struct {
		addrs []string
		want  string
	}{
		{[]string{"10.0.0.1"}, "[{[10.0.0.1:80] 1 0}]"},
		{[]string{"2001:db8::1", "10.0.0.1"}, "[{[[2001:db8::1]:80 10.0.0.1:80] 1 0}]"},
		{[]string{"10.0.0.1", "2001:db8::1"}, "[{[10.0.0.1:80 [2001:db8::1]:80] 1 0}]"},
		{[]string{"10.0.0.2", "10.0.0.1", "10.0.0.2"}, "[{[10.0.0.1:80] 1 0} {[10.0.0.2:80] 1 0}]"},
		{[]string{"2001:db8::1", "10.0.0.2", "10.0.0.1"}, "[{[10.0.0.1:80 [2001:db8::1]:80] 1 0} {[10.0.0.2:80 [2001:db8::1]:80] 1 0}]"},
		{[]string{"2001:db8::1", "2001:db8::2", "10.0.0.2", "10.0.0.1"}, "[{[[2001:db8::1]:80 10.0.0.1:80] 1 0} {[[2001:db8::2]:80 10.0.0.2:80] 1 0}]"},
	} {
		var addrs []netip.Addr
		for _, a := range c.addrs {
			addrs = append(addrs, netip.MustParseAddr(a))
		}
		if got := fmt.Sprint(endpoints(addrs, 80)); got != c.want {
			t.Errorf("%v: %s, want %s", c.addrs, got, c.want)
		}
	}
}

func TestOrderFollowsPriorityAndWeight(t *testing.T) {
	at := func(text string) []netip.AddrPort { return []netip.AddrPort{netip.MustParseAddrPort(text)} }
	set := []Endpoint{{at("10.0.0.1:1"), 1, 0}, {at("10.0.0.2:1"), 1, 0}, {at("10.0.0.3:1"), 1, 5}}
	for turn, want := range []string{"[10.0.0.1:1 10.0.0.2:1 10.0.0.3:1]", "[10.0.0.2:1 10.0.0.1:1 10.0.0.3:1]"} {
		if got := fmt.Sprint(appendOrder(nil, set, uint32(turn))); got != want {
			t.Errorf("turn %d: %s, want %s", turn, got, want)
		}
	}
	weighted := []Endpoint{{at("10.0.0.1:1"), 9, 0}, {at("10.0.0.2:1"), 1, 0}, {at("10.0.0.3:1"), 0, 0}}
	first := map[string]int{}
	for range 10_000 {
		first[appendOrder(nil, weighted, 0)[0].Addr().String()]++
	}
	if n := first["10.0.0.1"]; n < 8700 || n > 9300 || first["10.0.0.3"] != 0 {
		t.Errorf("first were %v, want nine of ten the first and none the last", first)
	}
	if got := appendOrder(nil, []Endpoint{{at("10.0.0.1:1"), 0, 0}}, 3); len(got) != 1 {
		t.Errorf("one server of weight 0: %v", got)
	}
}

// connected dials and returns what was connected to.
func connected(ctx context.Context, n *Name) (string, error) {
	nc, err := n.Dial(ctx)
	if err != nil {
		return "", err
	}
	defer nc.Close()
	return nc.RemoteAddr().String(), nil
}

// listen opens a port on an address of loopback and closes what comes.
func listenAt(t *testing.T, address string) netip.AddrPort {
	t.Helper()
	ln, err := net.Listen("tcp", address)
	if err != nil {
		t.Skipf("no %s here: %v", address, err)
	}
	testhouse.ServerOn(t, ln, func(net.Conn) {})
	return ln.Addr().(*net.TCPAddr).AddrPort()
}
