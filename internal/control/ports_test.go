package control

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"headgate/internal/ports/listen"
	"headgate/internal/testhouse"
)

func TestAPortMovesIsSwappedAndRemoved(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 3)
	h := start(t, document(201, "a "+at[0], "b "+at[1]))
	expectStatus(t, at[0], 201)
	h.apply(document(202, "a "+at[2], "b "+at[1]))
	closed(t, at[0])
	expectStatus(t, at[1], 202)
	expectStatus(t, at[2], 202)

	kept, err := connect(at[1])
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := kept.get("/"); err != nil {
		t.Fatal(err)
	}
	h.apply(document(203, "a "+at[1], "b "+at[2]))
	expectStatus(t, at[2], 203)
	if got, err := kept.get("/"); got != 203 || err != nil {
		t.Errorf("an open connection over a swap: got %d and %v, want 203", got, err)
	}
	for name, address := range map[string]string{"a": at[1], "b": at[2]} {
		if p, ok := h.port(name, address); !ok || p.State != "listening" {
			t.Errorf("port %s: got %+v", name, p)
		}
	}
	h.apply(document(204, "b "+at[2]))
	closed(t, at[1])
	expectStatus(t, at[2], 204)
	testhouse.Eventually(t, "the removed port has drained", func() bool { return len(h.c.Status().Ports) == 1 })
}

func TestAPortMovesToAllInterfacesAndBack(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	narrow, port := at[0], at[0][strings.LastIndexByte(at[0], ':'):]
	h := start(t, document(200, "a "+narrow))
	for i, address := range []string{"0.0.0.0" + port, narrow, "[::]" + port, narrow, "[::]" + port, "0.0.0.0" + port, narrow} {
		h.apply(document(201+i, "a "+address))
		expectStatus(t, narrow, 201+i)
	}
}

func TestAnAddressIsFreeAgainAtOnce(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := start(t, document(200, "a "+at[0], "b "+at[1]))
	for i := range 5 {
		h.apply(document(201+i, "b "+at[1]))
		h.apply(document(301+i, "a "+at[0], "b "+at[1]))
		expectStatus(t, at[0], 301+i)
	}
}

func TestARunningRequestEndsWhenItsPortIsRemoved(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	server := startSlow(t)
	h := start(t, through(server.url, "a "+at[0]))
	running, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer running.Close()
	idle, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	if _, err := fmt.Fprint(running, "GET / HTTP/1.1\r\nHost: test\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	<-server.arrived
	h.apply(document(200, "b "+at[1]))
	testhouse.Eventually(t, "the port drains", h.is("a", at[0], "draining"))
	if _, err := idle.r.ReadByte(); err == nil {
		t.Error("the idle connection got something")
	}
	idle.Close()
	testhouse.Eventually(t, "one connection is left", func() bool {
		p, _ := h.port("a", at[0])
		return p.Connections == 1
	})
	close(server.release)
	if got, err := running.answer(); got != 200 || err != nil {
		t.Errorf("the running request got %d and %v, want 200", got, err)
	}
	running.Close()
	testhouse.Eventually(t, "the port is gone", func() bool { return len(h.c.Status().Ports) == 1 })
}

func TestABusyAddressIsWaitedForAtTheStart(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 3)
	busy, err := net.Listen("tcp", at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	h := prepare(t, document(201, "a "+at[0], "b "+at[1]))
	h.retrySoon(nil)
	h.run()
	expectStatus(t, at[1], 201)
	p, ok := h.port("a", at[0])
	if !ok || p.State != "waiting" || p.Reason != "address_in_use" || p.Hint == "" {
		t.Errorf("got %+v", p)
	}
	since := p.Since

	// Other changes are not held up, and the port goes on waiting, under another
	// name too; at another address it is opened.
	h.apply(document(202, "a "+at[0]+" drain_timeout: 1s", "b "+at[1]))
	h.apply(document(203, "renamed "+at[0], "b "+at[1]))
	if p, _ := h.port("renamed", at[0]); p.State != "waiting" || !p.Since.Equal(since) {
		t.Errorf("got %+v, want waiting since %v", p, since)
	}
	expectStatus(t, at[1], 203)
	h.apply(document(204, "renamed "+at[2], "b "+at[1]))
	expectStatus(t, at[2], 204)
	if err := h.try(document(205, "renamed "+at[0], "b "+at[1])); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, want that the address is in use: nobody waits for it any more", err)
	}
	if n := h.log.count("cannot bind port, retrying"); n != 1 {
		t.Errorf("it was said %d times that a port waits, want once", n)
	}
}

func TestAWaitingPortIsOpenedWhenItsAddressIsFree(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	busy, err := net.Listen("tcp", at[0])
	if err != nil {
		t.Fatal(err)
	}
	h := prepare(t, document(201, "a "+at[0]))
	h.retrySoon(nil)
	h.run()
	if got, want := h.c.NotReady(), "a port does not listen"; got != want {
		t.Errorf("while a port waits, it is not ready as %q, want %q", got, want)
	}
	busy.Close()
	testhouse.Eventually(t, "the port listens", h.is("a", at[0], "listening"))
	if got := h.c.NotReady(); got != "" {
		t.Errorf("all ports listen, and it is not ready: %s", got)
	}
	expectStatus(t, at[0], 201)
	if n := h.log.count(`msg="port opened" port=a address=` + at[0]); n != 1 {
		t.Errorf("it was said %d times, want once", n)
	}
}

func TestABusyAddressRefusesAChange(t *testing.T) {
	at := testhouse.Addresses(t, 3)
	h := start(t, document(201, "a "+at[0]))
	busy, err := net.Listen("tcp", at[1])
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	before := snapshot(h)
	// The port that can be opened is closed again.
	err = h.try(document(202, "a "+at[0], "b "+at[2], "c "+at[1]))
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "port c: open "+at[1]+": ") {
		t.Errorf("got %v, want one that names port and address", err)
	}
	before.same(t, h)
	expectStatus(t, at[0], 201)
	expectStatus(t, at[2], 0)
}

func TestWhatTheSystemDoesNotAllow(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := prepare(t, document(201, "a "+at[0], "b "+at[1]))
	allowed := make(chan struct{})
	h.retrySoon(func(address netip.AddrPort, beside []*listen.Socket, share *listen.Share, log *slog.Logger) (*listen.Socket, error) {
		select {
		case <-allowed:
		default:
			if address.String() == at[0] {
				return nil, fmt.Errorf("open %s: %w", address, syscall.EACCES)
			}
		}
		return listen.Open(address, beside, share, log)
	})
	h.run()
	p, _ := h.port("a", at[0])
	if p.State != "permission_denied" || p.Reason != "permission_denied" || !strings.Contains(p.Hint, "CAP_NET_BIND_SERVICE") {
		t.Errorf("got %+v", p)
	}
	expectStatus(t, at[1], 201)
	h.apply(document(202, "b "+at[1]))
	before := snapshot(h)
	if err := h.try(document(203, "a "+at[0], "b "+at[1])); !errors.Is(err, syscall.EACCES) || !strings.Contains(err.Error(), "CAP_NET_BIND_SERVICE") {
		t.Errorf("got %v, want that it is not permitted and what helps", err)
	}
	before.same(t, h)
	close(allowed)
	h.apply(document(204, "a "+at[0], "b "+at[1]))
	expectStatus(t, at[0], 204)
}

func TestTheBoundOfConnectionsOfAPort(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	h := start(t, document(200, "a "+at[0]+" limits: {max_connections: 2}"))
	var clients []*client
	for i := range 4 {
		c, err := connect(at[0])
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients = append(clients, c)
		if i >= 2 {
			continue
		}
		if got, err := c.get("/"); got != 200 || err != nil {
			t.Fatalf("got %d and %v", got, err)
		}
	}
	if p, _ := h.port("a", at[0]); p.Accepted > 2 || p.Connections > 2 {
		t.Errorf("got %+v with a bound of 2", p)
	}
	clients[0].Close()
	if got, err := clients[2].get("/"); got != 200 || err != nil {
		t.Errorf("who waited got %d and %v when there was room", got, err)
	}
	h.apply(document(201, "a "+at[0]+" limits: {max_connections: 3}"))
	if got, err := clients[3].get("/"); got != 201 || err != nil {
		t.Errorf("who waited got %d and %v when the bound was raised", got, err)
	}
}

func TestConnectionsAreCountedUnderThePortsName(t *testing.T) {
	at := testhouse.Addresses(t, 2)
	h := start(t, document(200, "a "+at[0], "b "+at[1]))
	h.apply(document(200, "b "+at[0], "a "+at[1]))
	h.apply(document(200, "c "+at[0], "a "+at[1]))
	expectStatus(t, at[0], 200)
	page := metricsPage(h)
	for _, line := range []string{`headgate_connections_accepted_total{port="c"} 1`, `headgate_connections_accepted_total{port="a"} 0`} {
		if !strings.Contains(page, line) {
			t.Errorf("%s is missing in %s", line, lines(page, "headgate_connections"))
		}
	}
	if strings.Contains(page, `headgate_connections_accepted_total{port="b"}`) {
		t.Errorf("port b is still there: %s", lines(page, "headgate_connections"))
	}
}
