package control

import (
	"errors"
	"fmt"
	"net"
	"net/http/httptest"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"headgate/internal/testhouse"
)

// twoPorts returns the first of two ports in a row that are free on loopback, for TCP and UDP.
func twoPorts(t *testing.T) int {
	t.Helper()
	free := func(port int) bool {
		at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		l, err := net.Listen("tcp", at)
		if err != nil {
			return false
		}
		defer l.Close()
		c, err := net.ListenPacket("udp", at)
		if err != nil {
			return false
		}
		c.Close()
		return true
	}
	for range 100 {
		_, port, _ := net.SplitHostPort(testhouse.Addresses(t, 1)[0])
		if n, _ := strconv.Atoi(port); free(n) && free(n+1) {
			return n
		}
	}
	t.Fatal("no two ports in a row are free")
	return 0
}

// refusals returns how often servers have refused connections or datagrams.
func (h *house) refusals(protocol string) int {
	w := httptest.NewRecorder()
	h.c.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	_, rest, _ := strings.Cut(w.Body.String(), `headgate_stream_errors_total{protocol="`+protocol+`",proxy="range",reason="upstream_refused"} `)
	text, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.Atoi(text)
	return n
}

// TestAClosedPortOfARangeEjectsNoServer checks that clients that connect to the closed ports of
// a range, as scanners do, take no server away from the clients of the open ones.
func TestAClosedPortOfARangeEjectsNoServer(t *testing.T) {
	t.Parallel()
	const tries = 12 // more than eject a server
	at, servers := twoPorts(t), [2]int{twoPorts(t), twoPorts(t)}
	var list []string
	for _, first := range servers {
		list = append(list, fmt.Sprintf("127.0.0.1:%d-%d", first, first+1))
		address := fmt.Sprintf("127.0.0.1:%d", first)
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Skip("the port was taken: ", err)
		}
		t.Cleanup(func() { l.Close() })
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				c.Write([]byte("here\n"))
				c.Close()
			}
		}()
	}
	address := fmt.Sprintf("127.0.0.1:%d-%d", at, at+1)
	tcp, udp := streams(own("range", address, "", list...)), udpFile(own("range", address, "", list...))
	_, more, _ := strings.Cut(udp, "udp_proxies:")
	h := start(t, tcp+"udp_proxies:"+more)
	closed := fmt.Sprintf("127.0.0.1:%d", at+1)
	for range tries {
		c, err := connect(closed)
		if err == nil {
			_, err = c.r.ReadByte()
			c.Close()
		}
		if !errors.Is(err, syscall.ECONNRESET) {
			t.Fatalf("a closed port: got %v, want a reset", err)
		}
	}
	for range tries {
		c := dialUDP(t, closed)
		before := h.refusals("udp")
		c.Write([]byte("?"))
		testhouse.Eventually(t, "the datagram is refused", func() bool { return h.refusals("udp") > before })
	}
	if n := h.refusals("tcp"); n < tries {
		t.Fatalf("%d connections were refused, want %d at least", n, tries)
	}
	if n := h.log.count("server ejected"); n > 0 {
		t.Errorf("%d servers were ejected for closed ports:\n%s", n, h.log)
	}
	for range 4 {
		if _, got := greeted(t, fmt.Sprintf("127.0.0.1:%d", at)); got != "here" {
			t.Errorf("the open port: got %q", got)
		}
	}
}
