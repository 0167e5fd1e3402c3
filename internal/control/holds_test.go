package control

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/testhouse"
)

// named is a server that answers with its name, over HTTP and, with a line, over TCP.
func named(t *testing.T, name string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) })}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return l.Addr().String()
}

// answers asks n times over connections of their own, and counts who answers. With a
// cookie it is sent.
func answers(t *testing.T, address, cookie string, n int) map[string]int {
	t.Helper()
	got := map[string]int{}
	for range n {
		c, err := connect(address)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n%s\r\n", cookie)
		rs, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(rs.Body)
		c.Close()
		if rs.StatusCode != 200 {
			got[fmt.Sprint(rs.StatusCode)]++
			continue
		}
		got[string(body)]++
	}
	return got
}

// holding returns a house whose proxy has the servers a and b.
func holdingHouse(t *testing.T, at, balance, a, b string) string {
	return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: http}}
proxies:
  shop:
    routes:
      - load_balancing: %q
        sticky_cookie: {enabled: %v, name: pin}
        servers: [{url: "http://%s"}, {url: "http://%s"}]
`, at, balance, balance == "round_robin", a, b)
}

func TestADrainedServerGetsNoNewClients(t *testing.T) {
	for _, balance := range []string{"round_robin", "least_connections", "p2c_ewma", "random", "first", "client_ip_hash", "hash:path"} {
		t.Run(balance, func(t *testing.T) {
			at := testhouse.Addresses(t, 1)
			a, b := named(t, "a"), named(t, "b")
			h := start(t, holdingHouse(t, at[0], balance, a, b))
			shop := func(server string) HeldServer {
				return HeldServer{Kind: "proxies", Proxy: "shop", Server: server, Who: "ann"}
			}
			decide := func(server string, hold exchange.Hold) {
				t.Helper()
				if _, err := h.c.Hold(t.Context(), shop(server), hold); err != nil {
					t.Fatal(err)
				}
			}
			for _, c := range []struct {
				hold exchange.Hold
				out  string
				left string
			}{{exchange.HeldDraining, a, "b"}, {exchange.HeldDisabled, b, "a"}} {
				decide(c.out, c.hold)
				if got := answers(t, at[0], "", 20); got[c.left] != 20 {
					t.Errorf("%v: got %v, want %s alone", c.hold, got, c.left)
				}
				decide("http://"+c.out, exchange.NotHeld)
			}
			// With both out, nobody is asked: an operator's word is no ill health.
			decide(a, exchange.HeldDraining)
			decide(b, exchange.HeldDisabled)
			if got := answers(t, at[0], "", 2); got["503"] != 2 {
				t.Errorf("got %v, want 503", got)
			}
			if s := h.c.StatusOf("shop").Proxies[0]; s.State != "down" || !strings.Contains(s.Reason, "by ann") {
				t.Errorf("the proxy is %s: %s", s.State, s.Reason)
			}
		})
	}
}

func TestStickyClientsOfADrainingServerGoOn(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	a, b := named(t, "a"), named(t, "b")
	h := start(t, holdingHouse(t, at[0], "round_robin", a, b))
	shop := HeldServer{Kind: "proxies", Proxy: "shop", Server: a}

	// A client that belongs to a.
	if _, err := h.c.Hold(t.Context(), HeldServer{Kind: "proxies", Proxy: "shop", Server: b}, exchange.HeldDisabled); err != nil {
		t.Fatal(err)
	}
	rs, err := http.Get("http://" + at[0] + "/")
	if err != nil {
		t.Fatal(err)
	}
	rs.Body.Close()
	pin, _, _ := strings.Cut(rs.Header.Get("Set-Cookie"), ";")
	if !strings.HasPrefix(pin, "pin=") {
		t.Fatalf("got the cookie %q", pin)
	}
	cookie := "Cookie: " + pin + "\r\n"
	if _, err := h.c.Hold(t.Context(), HeldServer{Kind: "proxies", Proxy: "shop", Server: b}, exchange.NotHeld); err != nil {
		t.Fatal(err)
	}

	if _, err := h.c.Hold(t.Context(), shop, exchange.HeldDraining); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, at[0], cookie, 6); got["a"] != 6 {
		t.Errorf("while a drains its client gets %v, want a", got)
	}
	if got := answers(t, at[0], "", 6); got["b"] != 6 {
		t.Errorf("while a drains others get %v, want b", got)
	}
	if _, err := h.c.Hold(t.Context(), shop, exchange.HeldDisabled); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, at[0], cookie, 6); got["b"] != 6 {
		t.Errorf("while a is disabled its client gets %v, want b", got)
	}
}

func TestAHoldLastsOverChangesAndRestarts(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	a, b := named(t, "a"), named(t, "b")
	text := holdingHouse(t, at[0], "round_robin", a, b)
	h := start(t, text)
	shop := HeldServer{Kind: "proxies", Proxy: "shop", Server: a, Who: "ann", Why: "a disk"}
	if _, err := h.c.Hold(t.Context(), shop, exchange.HeldDraining); err != nil {
		t.Fatal(err)
	}
	// The run-time state of the servers is made anew: they have a bound now.
	bounded := strings.Replace(text, `"}, {url`, `", max_requests: 7}, {url`, 1)
	h.apply(bounded)
	if got := answers(t, at[0], "", 6); got["b"] != 6 {
		t.Errorf("after a change: %v, want b", got)
	}
	h = h.again()
	if got := answers(t, at[0], "", 6); got["b"] != 6 {
		t.Errorf("after a restart: %v, want b", got)
	}
	held := h.c.HeldServers()
	if len(held) != 1 || held[0].Hold != "draining" || held[0].Who != "ann" || held[0].Why != "a disk" || held[0].Server != "http://"+a {
		t.Fatalf("held are %+v", held)
	}
	// A server that is taken out, and comes back, is a new one.
	h.apply(strings.Replace(text, fmt.Sprintf(`{url: "http://%s"}, `, a), "", 1))
	h.apply(text)
	if got := answers(t, at[0], "", 6); got["a"] != 3 || len(h.c.HeldServers()) != 0 {
		t.Errorf("after it was taken out: %v, held are %v", got, h.c.HeldServers())
	}
}

func TestAHoldEndsByItself(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	a, b := named(t, "a"), named(t, "b")
	h := start(t, holdingHouse(t, at[0], "first", a, b))
	shop := HeldServer{Kind: "proxies", Proxy: "shop", Server: a, Until: time.Now().Add(time.Hour)}
	if _, err := h.c.Hold(t.Context(), shop, exchange.HeldDisabled); err != nil {
		t.Fatal(err)
	}
	if s := h.c.StatusOf("shop").Proxies[0].Routes[0].Servers[0]; s.State.String() != "disabled" || s.Hold != "disabled" || s.Until.IsZero() {
		t.Errorf("the server is %+v", s)
	}
	shop.Until = time.Now().Add(time.Millisecond) // decided anew, for less
	if _, err := h.c.Hold(t.Context(), shop, exchange.HeldDisabled); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "the end of the hold", func() bool { return len(h.c.HeldServers()) == 0 })
	if got := answers(t, at[0], "", 3); got["a"] != 3 {
		t.Errorf("got %v, want a", got)
	}
	if _, err := h.c.Hold(t.Context(), shop, exchange.NotHeld); !errors.Is(err, ErrNotHeld) {
		t.Errorf("got %v, want that it is not held", err)
	}
	shop.Server = "http://127.0.0.1:1"
	if _, err := h.c.Hold(t.Context(), shop, exchange.HeldDraining); !errors.Is(err, ErrNoServer) {
		t.Errorf("got %v, want that there is no such server", err)
	}
}

func TestStreamsKeepTheirConnectionsToADrainingServer(t *testing.T) {
	at := testhouse.Addresses(t, 1)
	a, b := named(t, "a"), named(t, "b")
	h := start(t, fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
tcp_proxies:
  db: {address: %q, load_balancing: first, servers: [{address: %q}, {address: %q}]}
`, at[0], a, b))
	open, err := connect(at[0])
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	if _, err := open.get("/"); err != nil {
		t.Fatal(err)
	}
	s, err := h.c.Hold(t.Context(), HeldServer{Kind: "tcp_proxies", Proxy: "db", Server: a}, exchange.HeldDisabled)
	if err != nil || s.Active != 1 {
		t.Fatalf("got %+v and %v, want one connection that goes on", s, err)
	}
	if got := answers(t, at[0], "", 4); got["b"] != 4 {
		t.Errorf("new connections go to %v, want b", got)
	}
	if code, err := open.get("/"); code != 200 || err != nil {
		t.Errorf("the open connection: %d, %v", code, err)
	}
}
