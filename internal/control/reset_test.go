package control

import (
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// ended reports whether a connection ends, with nothing more on it.
func ended(c net.Conn) bool {
	c.SetReadDeadline(time.Now().Add(patience))
	_, err := c.Read(make([]byte, 1))
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestAResetClosesWhatIsOpenOnThePort(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 3)
	server := startSlow(t)
	h := start(t, through(server.url, "a "+at[0])+"tcp_proxies:\n  a: {address: \""+at[1]+"\", servers: [{address: \""+strings.TrimPrefix(server.url, "http://")+"\"}]}\n")
	dial := func(address string) *client {
		c, err := connect(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	idle, running, stream := dial(at[0]), dial(at[0]), dial(at[1])
	for _, c := range []*client{running, stream} {
		if _, err := c.Write([]byte("GET / HTTP/1.1\r\nHost: test\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		<-server.arrived
	}
	testhouse.Eventually(t, "three connections are open", func() bool {
		a, _ := h.port("a", at[0])
		b, _ := h.port("a", at[1])
		return a.Connections == 2 && b.Connections == 1
	})
	closed, stands := h.c.ResetPort("ports", "a")
	if closed != 2 || len(stands) != 1 || stands[0].State != "listening" || stands[0].Address != at[0] {
		t.Errorf("%d closed, the port stands %+v", closed, stands)
	}
	if !ended(idle) || !ended(running) {
		t.Error("a connection of the port is open still")
	}
	testhouse.Eventually(t, "no connection is left", func() bool { p, _ := h.port("a", at[0]); return p.Connections == 0 })
	if p, _ := h.port("a", at[1]); p.Connections != 1 {
		t.Errorf("the TCP proxy of the same name was reset: %+v", p)
	}
	if closed, _ = h.c.ResetPort("tcp_proxies", "a"); closed != 1 || !ended(stream) {
		t.Errorf("%d connections of the TCP proxy were closed, want 1 that has ended", closed)
	}
	close(server.release)
	expectStatus(t, at[0], 200)
	if _, stands := h.c.ResetPort("ports", "none"); stands != nil {
		t.Errorf("a port that is not there stands %+v", stands)
	}

	// A socket that drains belongs to its port.
	held := dial(at[0])
	if _, err := held.get("/"); err != nil {
		t.Fatal(err)
	}
	half := dial(at[0])
	if _, err := half.Write([]byte("GET / HTTP/1.1\r\n")); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "it is open", func() bool { p, _ := h.port("a", at[0]); return p.Connections == 2 })
	h.apply(through(server.url, "a "+at[2]))
	if _, stands = h.c.ResetPort("ports", "a"); len(stands) == 0 || !ended(half) {
		t.Errorf("the socket that drains was not reset: %+v", stands)
	}
	testhouse.Eventually(t, "the old socket is gone", func() bool { _, there := h.port("a", at[0]); return !there })
}

func TestAResetEndsHTTP3AndSessions(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	h := start(t, http3s(document(201, "a "+at[0]))+udpFile(own("dns", at[1], "", parrot(t, "p")))[len("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\n"):])
	client := client3(t)
	get := func() int {
		rs, err := client.Get("https://" + at[0] + "/")
		if err != nil {
			return 0
		}
		rs.Body.Close()
		return rs.StatusCode
	}
	if got := get(); got != 201 {
		t.Fatalf("got status %d", got)
	}
	c := dialUDP(t, at[1])
	if got := c.exchange("1"); got != "p1" {
		t.Fatalf("got %q", got)
	}
	if closed, _ := h.c.ResetPort("ports", "a"); closed != 1 {
		t.Errorf("%d connections of HTTP/3 were closed, want 1", closed)
	}
	testhouse.Eventually(t, "a new connection is served", func() bool { return get() == 201 })
	if p, _ := h.port("a", at[0]); p.Accepted < 2 {
		t.Errorf("the connection was not closed: %+v", p)
	}
	if closed, _ := h.c.ResetPort("udp_proxies", "dns"); closed != 1 {
		t.Errorf("%d sessions were ended, want 1", closed)
	}
	if got := c.exchange("2"); got != "p2" {
		t.Errorf("after the reset got %q", got)
	}
	if p, _ := h.port("dns", at[1]); p.Accepted != 2 {
		t.Errorf("the session was not ended: %+v", p)
	}
}

func TestAResetRetriesAPortThatWaits(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	other, err := net.Listen("tcp", at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	h := start(t, document(201, "a "+at[0], "b "+at[1]))
	before, _ := h.port("a", at[0])
	_, stands := h.c.ResetPort("ports", "a")
	if len(stands) != 1 || stands[0].State != "waiting" || stands[0].Reason != "address_in_use" || stands[0].Hint == "" || !stands[0].Since.Equal(before.Since) {
		t.Errorf("a port whose address is busy stands %+v, before %+v", stands, before)
	}
	other.Close()
	// The usual pace would be slower: the first retry of the port comes after two seconds.
	_, stands = h.c.ResetPort("ports", "a")
	if len(stands) != 1 || stands[0].State != "listening" {
		t.Errorf("a port whose address is free stands %+v", stands)
	}
	expectStatus(t, at[0], 201)
}
