package control

import (
	"fmt"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// parrot is a UDP server that sends each datagram back behind its name.
func parrot(t *testing.T, name string) string {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	running.Go(func() {
		p := make([]byte, 2048)
		for {
			n, from, err := conn.ReadFrom(p)
			if err != nil {
				return
			}
			conn.WriteTo(append([]byte(name), p[:n]...), from)
		}
	})
	t.Cleanup(func() { conn.Close(); running.Wait() })
	return conn.LocalAddr().String()
}

// datagrams is a client of a UDP proxy.
type datagrams struct{ net.Conn }

func dialUDP(t *testing.T, address string) datagrams {
	t.Helper()
	c, err := net.Dial("udp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return datagrams{c}
}

// exchange sends a datagram and returns the answer, "" if nobody listens: the system tells
// of that at once.
func (c datagrams) exchange(text string) string {
	c.SetReadDeadline(time.Now().Add(patience))
	c.Write([]byte(text))
	p := make([]byte, 2048)
	n, _ := c.Read(p)
	return string(p[:n])
}

// udpFile writes a configuration with UDP proxies.
func udpFile(proxies ...string) string {
	return strings.Replace(streams(proxies...), "tcp_proxies:", "udp_proxies:", 1)
}

func TestAUDPProxyIsLive(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	a, b := parrot(t, "a"), parrot(t, "b")
	h := start(t, udpFile(own("dns", at[0], "", a)))
	c := dialUDP(t, at[0])
	if got := c.exchange("1"); got != "a1" {
		t.Fatalf("got %q", got)
	}
	p, ok := h.port("dns", at[0])
	if !ok || p.Protocol != "udp" || p.State != "listening" || p.Connections != 1 || p.Accepted != 1 {
		t.Errorf("got %+v", p)
	}
	if n := h.log.count(`msg="port opened" port=dns address=` + at[0] + " protocol=udp"); n != 1 {
		t.Errorf("that it was opened was said %d times, want once", n)
	}
	h.apply(udpFile(own("dns", at[0], ", idle_timeout: 5s", a, b)))
	if got := c.exchange("2"); got != "a2" {
		t.Errorf("a session at a server that stays: got %q", got)
	}
	h.apply(udpFile(own("dns", at[0], "", b)))
	if got := c.exchange("3"); got != "b3" {
		t.Errorf("a session whose server is gone: got %q", got)
	}
	h.apply(udpFile(own("renamed", at[0], ", ip_filter: {deny: [192.0.2.1]}", b)))
	if got := c.exchange("4"); got != "b4" {
		t.Errorf("under another name: got %q", got)
	}
	if now, _ := h.port("renamed", at[0]); !now.Since.Equal(p.Since) {
		t.Errorf("got %+v, want the same socket", now)
	}
	h.apply(udpFile(own("renamed", at[1], "", b)))
	if got := dialUDP(t, at[1]).exchange("5"); got != "b5" {
		t.Errorf("at another address: got %q", got)
	}
	if got := dialUDP(t, at[0]).exchange("6"); got != "" {
		t.Errorf("at the old address: got %q", got)
	}
	w := httptest.NewRecorder()
	h.c.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if want := `headgate_stream_connections_total{protocol="udp",proxy="renamed"} 2`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

func TestAUDPAddressThatIsBusy(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	a := parrot(t, "a")
	busy, err := net.ListenPacket("udp", at[1])
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()
	h := start(t, udpFile(own("dns", at[0], "", a)))
	err = h.try(udpFile(own("dns", at[1], "", a)))
	if err == nil || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v, want a busy address", err)
	}
	if got := dialUDP(t, at[0]).exchange("1"); got != "a1" {
		t.Errorf("after a refused change: got %q", got)
	}
	waits := prepare(t, udpFile(own("dns", at[1], "", a)))
	waits.retrySoon(nil)
	waits.run()
	if p, _ := waits.port("dns", at[1]); p.State != "waiting" || p.Reason != "address_in_use" {
		t.Errorf("got %+v, want that it waits", p)
	}
	busy.Close()
	testhouse.Eventually(t, "it listens", waits.is("dns", at[1], "listening"))
	if got := dialUDP(t, at[1]).exchange("1"); got != "a1" {
		t.Errorf("when the address was free: got %q", got)
	}
}

func TestAUDPProxyMovesToAllInterfacesAndBack(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	a := parrot(t, "a")
	narrow, port := at[0], at[0][strings.LastIndexByte(at[0], ':'):]
	h := start(t, udpFile(own("dns", narrow, "", a)))
	for i, address := range []string{"0.0.0.0" + port, narrow, "[::]" + port, narrow} {
		h.apply(udpFile(own("dns", address, "", a)))
		if got, want := dialUDP(t, narrow).exchange(fmt.Sprint(i)), fmt.Sprint("a", i); got != want {
			t.Errorf("at %s: got %q, want %q", address, got, want)
		}
	}
}
