package udp

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/server/balance"
	"headgate/internal/testhouse"
)

// patience is how long a test waits for what has to happen.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// socketAt opens a socket for datagrams.
func socketAt(t *testing.T, address string) *net.UDPConn {
	t.Helper()
	conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(address)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetReadBuffer(4 << 20)
	return conn
}

// echo is a server that sends each datagram back behind its name.
func echo(t *testing.T, name string) *net.UDPConn {
	conn := socketAt(t, "127.0.0.1:0")
	var running sync.WaitGroup
	running.Go(func() {
		p := make([]byte, maxDatagram)
		for {
			n, from, err := conn.ReadFromUDPAddrPort(p)
			if err != nil {
				return
			}
			conn.WriteToUDPAddrPort(append([]byte(name), p[:n]...), from)
		}
	})
	t.Cleanup(func() { conn.Close(); running.Wait() })
	return conn
}

// house is a table with its proxy.
type house struct {
	*Table
	address *net.UDPAddr
	tally   *Tally
	mu      sync.Mutex
	ended   []exchange.Session
}

func (h *house) proxy(sessions int, idle time.Duration, servers ...*net.UDPConn) *Proxy {
	s := Settings{Name: "dns", IdleTimeout: idle, Sessions: sessions, Tally: h.tally}
	var members []balance.Member
	for _, conn := range servers {
		at := conn.LocalAddr().(*net.UDPAddr).AddrPort()
		server := &Server{Address: at.String(), Gauge: new(balance.Gauge), Resolve: func() []netip.AddrPort { return []netip.AddrPort{at} }}
		s.Servers = append(s.Servers, server)
		members = append(members, balance.Member{ID: server.Address, Weight: 1, Gauge: server.Gauge})
	}
	s.Group = balance.New(members, balance.Options{})
	s.Record = func(p *exchange.Session) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.ended = append(h.ended, *p)
	}
	return New(s)
}

// start serves by a proxy.
func start(t *testing.T, sessions int, idle time.Duration, servers ...*net.UDPConn) *house {
	t.Helper()
	h := &house{tally: NewTally()}
	conn := socketAt(t, "127.0.0.1:0")
	h.address = conn.LocalAddr().(*net.UDPAddr)
	h.Table = NewTable(conn, h.proxy(sessions, idle, servers...))
	h.Serve()
	t.Cleanup(h.Close)
	return h
}

// client is a client of a house.
func (h *house) client(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.DialUDP("udp", nil, h.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// roundTrip sends a datagram and returns the answer.
func roundTrip(c *net.UDPConn, text string) (string, error) {
	c.SetReadDeadline(time.Now().Add(patience))
	if _, err := c.Write([]byte(text)); err != nil {
		return "", err
	}
	p := make([]byte, maxDatagram)
	n, err := c.Read(p)
	return string(p[:n]), err
}

func TestSessionsKeepTheirServer(t *testing.T) {
	h := start(t, 100, time.Minute, echo(t, "a"), echo(t, "b"))
	seen := map[string]int{}
	for range 10 {
		c := h.client(t)
		first, err := roundTrip(c, "1")
		if err != nil {
			t.Fatal(err)
		}
		seen[first]++
		for i := range 5 {
			if got, err := roundTrip(c, "1"); got != first || err != nil {
				t.Fatalf("datagram %d: got %q and %v, want %q", i, got, err, first)
			}
		}
	}
	if seen["a1"] != 5 || seen["b1"] != 5 {
		t.Errorf("got %v, want equal shares", seen)
	}
	counts := h.tally.Counts()
	for end := time.Now().Add(patience); counts.Sent < 120 && time.Now().Before(end); counts = h.tally.Counts() {
		testhouse.Pause() // an answer is counted when it was sent
	}
	if counts.Open != 10 || counts.Accepted != 10 || counts.Received != 60 || counts.Sent != 120 {
		t.Errorf("got %+v", counts)
	}
}

func TestLargeAndEmptyDatagramsPass(t *testing.T) {
	h := start(t, 100, time.Minute, echo(t, ""))
	c := h.client(t)
	for _, size := range []int{0, 1, 1472, 9000, 65000} {
		text := strings.Repeat("x", size)
		if got, err := roundTrip(c, text); got != text || err != nil {
			t.Errorf("%d bytes: got %d and %v", size, len(got), err)
		}
	}
}

func TestAQuietSessionEnds(t *testing.T) {
	const idle = 100 * time.Millisecond
	h := start(t, 100, idle, echo(t, "a"))
	c := h.client(t)
	began := time.Now()
	for range 4 {
		if _, err := roundTrip(c, "1"); err != nil {
			t.Fatal(err)
		}
		<-time.After(idle / 2)
	}
	if n := h.tally.Counts().Accepted; n != 1 {
		t.Errorf("there were %d sessions, want one", n)
	}
	testhouse.Eventually(t, "the session ends", func() bool { return h.Len() == 0 })
	if took := time.Since(began); took < 2*idle {
		t.Errorf("it ended after %v although datagrams came", took)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.ended) != 1 || h.ended[0].Received != 4 || h.ended[0].Sent != 8 || h.ended[0].Client.Port() != uint16(c.LocalAddr().(*net.UDPAddr).Port) {
		t.Errorf("it was told as %+v", h.ended)
	}
}

func TestAServerThatIsNotThereIsLeft(t *testing.T) {
	gone := socketAt(t, "127.0.0.1:0")
	h := start(t, 100, time.Minute, gone, echo(t, "b"))
	gone.Close()
	c := h.client(t)
	testhouse.Eventually(t, "the other server answers", func() bool {
		c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
		c.Write([]byte("1"))
		p := make([]byte, 10)
		n, _ := c.Read(p)
		return string(p[:n]) == "b1"
	})
	if n := h.tally.Counts().Errors[exchange.UpstreamRefused]; n == 0 {
		t.Error("nothing was counted")
	}
}

func TestAFloodOfForgedAddressesLeavesLiveSessionsAlone(t *testing.T) {
	const most, live, forged = 50, 20, 3000
	h := start(t, most, time.Minute, echo(t, "a"))
	var clients []*net.UDPConn
	for range live {
		c := h.client(t)
		for range 2 { // the second comes after an answer
			if _, err := roundTrip(c, "1"); err != nil {
				t.Fatal(err)
			}
		}
		clients = append(clients, c)
	}
	accepted := h.tally.Counts().Accepted
	for i := range forged {
		from := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 1, byte(i >> 8), byte(i)}), 4000)
		h.forward([]byte("flood"), from, nil)
		if n := h.Len(); n > most {
			t.Fatalf("there are %d sessions, want at most %d", n, most)
		}
	}
	if n := h.tally.Counts().Accepted - accepted; n != forged {
		t.Errorf("%d of %d forged sessions began", n, forged)
	}
	// One that comes while the flood goes on is served too.
	if got, err := roundTrip(h.client(t), "1"); got != "a1" || err != nil {
		t.Errorf("a new client: got %q and %v", got, err)
	}
	accepted = h.tally.Counts().Accepted
	for i, c := range clients {
		if got, err := roundTrip(c, "2"); got != "a2" || err != nil {
			t.Errorf("client %d: got %q and %v", i, got, err)
		}
	}
	if n := h.tally.Counts().Accepted - accepted; n != 0 {
		t.Errorf("%d of %d live sessions had to begin anew", n, live)
	}
}

func TestProvenSessionsLeaveRoomForNewOnes(t *testing.T) {
	h := start(t, 10, time.Minute, echo(t, "a"))
	for i := range 30 {
		c := h.client(t)
		for range 3 {
			if got, err := roundTrip(c, "1"); got != "a1" || err != nil {
				t.Fatalf("client %d: got %q and %v", i, got, err)
			}
		}
	}
	h.Table.mu.Lock()
	defer h.Table.mu.Unlock()
	o := &h.Table.mu.order
	if len(h.Table.mu.byClient) != o.fresh.len+o.proven.len || o.proven.len > 9 {
		t.Errorf("%d sessions, %d fresh and %d proven", len(h.Table.mu.byClient), o.fresh.len, o.proven.len)
	}
}

func TestAChangeKeepsSessionsAtServersThatStay(t *testing.T) {
	a, b := echo(t, "a"), echo(t, "b")
	h := start(t, 100, time.Minute, a)
	c := h.client(t)
	if got, _ := roundTrip(c, "1"); got != "a1" {
		t.Fatal(got)
	}
	both := h.proxy(100, time.Minute, a, b)
	both.Servers[0].Gauge = h.Table.proxy.Load().Servers[0].Gauge
	h.Use(both)
	if got, _ := roundTrip(c, "2"); got != "a2" || h.tally.Counts().Accepted != 1 {
		t.Errorf("got %q in %d sessions, want that it goes on", got, h.tally.Counts().Accepted)
	}
	h.Use(h.proxy(100, time.Minute, b))
	if got, _ := roundTrip(c, "3"); got != "b3" {
		t.Errorf("got %q, want an answer of the server that is left", got)
	}
	if h.Len() != 1 || h.tally.Counts().Open != 1 {
		t.Errorf("there are %d sessions, %d are counted", h.Len(), h.tally.Counts().Open)
	}
}

func TestAnswersComeFromTheAddressThatWasAsked(t *testing.T) {
	server := echo(t, "a")
	for _, c := range []struct{ listen, to string }{{"0.0.0.0", "127.0.0.3"}, {"[::]", "127.0.0.3"}, {"[::]", "[::1]"}} {
		conn, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.MustParseAddrPort(c.listen+":0")))
		if err != nil {
			t.Skip(err)
		}
		h := &house{tally: NewTally()}
		table := NewTable(conn, h.proxy(10, time.Minute, server))
		table.Serve()
		to := netip.MustParseAddrPort(fmt.Sprintf("%s:%d", c.to, conn.LocalAddr().(*net.UDPAddr).Port))
		client, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)) // takes nothing from elsewhere
		if err != nil {
			t.Fatal(err)
		}
		if got, err := roundTrip(client, "1"); got != "a1" || err != nil {
			t.Errorf("%+v: got %q and %v", c, got, err)
		}
		client.Close()
		table.Close()
	}
}

func TestDatagramsOfManyAtOnce(t *testing.T) {
	h := start(t, 1000, time.Minute, echo(t, ""), echo(t, ""))
	var all sync.WaitGroup
	for i := range 20 {
		c := h.client(t)
		all.Go(func() {
			for j := range 50 {
				text := bytes.Repeat([]byte{byte(i)}, 1+j*20)
				if got, err := roundTrip(c, string(text)); got != string(text) || err != nil {
					t.Errorf("client %d: got %d bytes and %v, want %d", i, len(got), err, len(text))
					return
				}
			}
		})
	}
	all.Wait()
}
