package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"headgate/internal/exchange"
	"headgate/internal/proto/proxyproto"
	"headgate/internal/server/balance"
	"headgate/internal/testhouse"
)

// patience is how long a test waits for what has to happen.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is a proxy, and what it has told.
type house struct {
	Settings
	told chan exchange.Session
}

// prepare returns settings with servers that are dialed by these.
func prepare(dials ...func(context.Context) (net.Conn, error)) *house {
	h := &house{told: make(chan exchange.Session, 100)}
	h.Settings = Settings{
		Name: "db", ConnectTimeout: patience, IdleTimeout: patience, Drain: patience, Roster: NewRoster(),
		Record: func(p *exchange.Session) { h.told <- *p },
	}
	var members []balance.Member
	for i, dial := range dials {
		s := &Server{Address: string(rune('a' + i)), Dial: dial, Gauge: new(balance.Gauge)}
		h.Servers = append(h.Servers, s)
		members = append(members, balance.Member{ID: s.Address, Weight: 1, Gauge: s.Gauge})
	}
	h.Group = balance.New(members, balance.Options{Method: balance.First})
	return h
}

// connect serves a new connection and returns the client's end of it.
func (h *house) connect(t *testing.T, early string) (client *net.TCPConn, c *Conn, done *sync.WaitGroup) {
	t.Helper()
	near, far := testhouse.Pair(t)
	c = New(h.Settings).NewConn(near, []byte(early), "")
	done = &sync.WaitGroup{}
	done.Go(func() { testhouse.Serve(c) })
	return far, c, done
}

// to returns a dial that gives one end of a connection, and its other end.
func to(t *testing.T) (func(context.Context) (net.Conn, error), *net.TCPConn) {
	near, far := testhouse.Pair(t)
	return func(context.Context) (net.Conn, error) { return near, nil }, far
}

var errDown = errors.New("connection refused")

func down(context.Context) (net.Conn, error) { return nil, errDown }

func TestTheServerGetsHeaderThenWhatWasReadThenTheRest(t *testing.T) {
	dial, server := to(t)
	h := prepare(down, dial)
	h.Send = proxyproto.V1
	client, _, done := h.connect(t, "early ")
	io.WriteString(client, "late")
	client.CloseWrite()
	b, err := io.ReadAll(server)
	want := string(proxyproto.Append(nil, proxyproto.V1, client.LocalAddr().(*net.TCPAddr).AddrPort(), client.RemoteAddr().(*net.TCPAddr).AddrPort())) + "early late"
	if string(b) != want || err != nil {
		t.Errorf("got %q and %v, want %q", b, err, want)
	}
	io.WriteString(server, "answer")
	server.Close()
	if b, err := io.ReadAll(client); string(b) != "answer" || err != nil {
		t.Errorf("the client got %q and %v", b, err)
	}
	done.Wait()
	p := <-h.told
	if p.Server != "b" || p.Attempts != 2 || p.Reason != exchange.None || p.Received != 10 || p.Sent != 6 || p.Connected < p.Start || p.End < p.Connected {
		t.Errorf("told as %+v", p)
	}
	counts := h.Roster.Counts()
	if counts.Open != 0 || counts.Accepted != 1 || counts.Received != 10 || counts.Sent != 6 || counts.Errors[exchange.UpstreamRefused] != 1 {
		t.Errorf("counted %+v", counts)
	}
	for _, s := range h.Servers {
		if n := s.Gauge.Active(); n != 0 {
			t.Errorf("%d connections are still counted on %s", n, s.Address)
		}
	}
}

func TestWithoutAServerTheClientIsReset(t *testing.T) {
	h := prepare(down, down)
	client, _, done := h.connect(t, "")
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want a reset", err)
	}
	done.Wait()
	if p := <-h.told; p.Reason != exchange.UpstreamRefused || p.Attempts != 2 {
		t.Errorf("told as %+v", p)
	}
}

func TestAServerThatDoesNotAnswerIsLeftInTime(t *testing.T) {
	dial, server := to(t)
	h := prepare(func(ctx context.Context) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}, dial)
	h.ConnectTimeout = 20 * time.Millisecond
	client, _, done := h.connect(t, "")
	server.Close()
	io.Copy(io.Discard, client)
	client.Close()
	done.Wait()
	if p := <-h.told; p.Server != "b" || h.Roster.Counts().Errors[exchange.UpstreamTimeout] != 1 {
		t.Errorf("told as %+v, counted %+v", p, h.Roster.Counts())
	}
}

func TestNoOtherServerIsTriedForAClientThatHasLeft(t *testing.T) {
	leave := make(chan *net.TCPConn, 1)
	tried := false
	h := prepare(func(context.Context) (net.Conn, error) {
		c := <-leave
		c.SetLinger(0)
		c.Close()
		<-time.After(20 * time.Millisecond) // the reset is on its way
		return nil, errDown
	}, func(context.Context) (net.Conn, error) {
		tried = true
		return nil, errDown
	})
	client, _, done := h.connect(t, "")
	leave <- client
	done.Wait()
	if p := <-h.told; p.Reason != exchange.ClientClosed || tried {
		t.Errorf("told as %+v, the other server was tried: %v", p, tried)
	}
}

func TestWhoMayNotComeInIsClosedBeforeAServerIsAsked(t *testing.T) {
	h := prepare(func(context.Context) (net.Conn, error) {
		t.Error("a server was asked")
		return nil, errDown
	})
	h.Filters = exchange.StreamFilters{{Name: "ip_filter", Admit: func(netip.Addr) *exchange.Answer {
		return exchange.Fail(exchange.AddressDenied, "the address is in ip_filter.deny")
	}}}
	client, _, done := h.connect(t, "")
	if b, _ := io.ReadAll(client); len(b) > 0 {
		t.Errorf("got %q", b)
	}
	done.Wait()
	if p := <-h.told; p.Reason != exchange.AddressDenied || p.Cause == "" || p.Attempts != 0 {
		t.Errorf("told as %+v", p)
	}
}

func TestARetiredProxyGivesItsConnectionsTimeThenCutsThem(t *testing.T) {
	dial, server := to(t)
	h := prepare(dial)
	h.Drain = 50 * time.Millisecond
	client, c, done := h.connect(t, "")
	io.WriteString(client, "x")
	server.Read(make([]byte, 1))
	c.Drain()
	h.Roster.Retire()
	io.WriteString(server, "y")
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Errorf("while it drains: %v", err)
	}
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("got %v, want that it is cut", err)
	}
	done.Wait()
	if p := <-h.told; p.Reason != exchange.ShuttingDown {
		t.Errorf("told as %+v", p)
	}
	// One that was accepted while the proxy went is cut too.
	dial, _ = to(t)
	h.Servers[0].Dial = dial
	client, _, done = h.connect(t, "")
	if _, err := client.Read(make([]byte, 1)); err == nil {
		t.Error("a late connection goes on")
	}
	done.Wait()
}

func TestAConnectionThatIsClosedWhileAServerIsDialed(t *testing.T) {
	dialed := make(chan struct{})
	near, far := testhouse.Pair(t)
	h := prepare(func(context.Context) (net.Conn, error) {
		<-dialed
		return near, nil
	})
	client, c, done := h.connect(t, "")
	c.Close()
	if _, err := client.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the client was told %v, want a reset", err)
	}
	close(dialed)
	done.Wait()
	if _, err := far.Read(make([]byte, 1)); err == nil {
		t.Error("the server's connection goes on")
	}
	client.Close()
	if p := <-h.told; p.Reason != exchange.ShuttingDown {
		t.Errorf("told as %+v", p)
	}
}
