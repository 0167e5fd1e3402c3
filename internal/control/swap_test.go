package control

import (
	"fmt"
	"testing"

	"headgate/internal/testhouse"
)

// An http3 port and a UDP proxy speak on sockets of the same kind, and may want
// each other's in one change.
func TestAnHTTP3PortAndAUDPProxySwapAddresses(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	a := parrot(t, "a")
	text := func(quic, dns string, status int) string {
		return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {q: {address: %q, protocol: http3, drain_timeout: 1s}}
proxies: {all: {routes: [{fixed_response: {status: %d}}]}}
udp_proxies: {dns: {address: %q, servers: [{address: %q}]}}
`, quic, status, dns, a)
	}
	h := start(t, text(at[0], at[1], 201))
	for i := range 5 {
		quic, dns := at[i%2], at[1-i%2]
		h.apply(text(quic, dns, 201+i))
		if got := status3(t, quic); got != 201+i {
			t.Errorf("change %d: got status %d, want %d", i, got, 201+i)
		}
		if got, want := dialUDP(t, dns).exchange(fmt.Sprint(i)), fmt.Sprint("a", i); got != want {
			t.Errorf("change %d: got %q, want %q", i, got, want)
		}
		if p, _ := h.port("q", quic); p.State != "listening" {
			t.Errorf("change %d: got %+v", i, p)
		}
		if p, _ := h.port("dns", dns); p.State != "listening" {
			t.Errorf("change %d: got %+v", i, p)
		}
	}
}
