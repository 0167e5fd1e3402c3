package https

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"headgate/internal/testhouse"
)

func TestTheHTTP3PortIsAdvertised(t *testing.T) {
	t.Parallel()
	h, address := newHouse(t), testhouse.Address(t)
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Alt-Svc", "clear") }))
	t.Cleanup(own.Close)
	_, port, _ := net.SplitHostPort(address)
	proxies := fmt.Sprintf(`
  all: {routes: [{fixed_response: {status: 200}}, {path: /own, servers: [{url: %q}]}]},
  tcp: {virtual_hosts: [tcp.example], ports: [web], routes: [{fixed_response: {status: 200}}]}
`, own.URL)
	h.start(withPorts(address, true, proxies))
	wanted := fmt.Sprintf(`h3=":%s"; ma=86400`, port)
	for _, proto := range []string{"http/1.1", "h2"} {
		for _, tt := range []struct{ host, path, want string }{
			{"a.example", "/", wanted},
			{"a.example", "/own", "clear"},
			{"tcp.example", "/", ""},
			{"a.example", "/%00", wanted}, // refused before any route
		} {
			if got := alternative(t, address, proto, tt.host, tt.path); got != tt.want {
				t.Errorf("%s, %s%s: got Alt-Svc %q, want %q", proto, tt.host, tt.path, got, tt.want)
			}
		}
	}
	h.apply(withPorts(address, false, proxies))
	if got := alternative(t, address, "h2", "a.example", "/"); got != "" {
		t.Errorf("without the http3 port: got Alt-Svc %q", got)
	}
	h.apply(withPorts(address, true, proxies))
	if got := alternative(t, address, "h2", "a.example", "/"); got != wanted {
		t.Errorf("with the http3 port again: got Alt-Svc %q, want %q", got, wanted)
	}
}

func TestAnHTTP3PortThatWaitsIsNotAdvertised(t *testing.T) {
	t.Parallel()
	h, address := newHouse(t), testhouse.Address(t)
	busy := takePackets(t, address)
	h.start(withPorts(address, true, "all: {routes: [{fixed_response: {status: 200}}]}"))
	if got := alternative(t, address, "h2", "a.example", "/"); got != "" {
		t.Errorf("while the port waits: got Alt-Svc %q", got)
	}
	busy.Close()
	h.log.await(t, "port opened", "port=quic")
	if got := alternative(t, address, "h2", "a.example", "/"); got == "" {
		t.Error("the port listens, and no Alt-Svc tells of it")
	}
}

// withPorts is a configuration with an https port, and an http3 port beside it.
func withPorts(address string, quic bool, proxies string) string {
	return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  web: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3, active: %v}
proxies: {%s}
`, address, address, quic, proxies)
}

// alternative returns the Alt-Svc of a response.
func alternative(t *testing.T, address, proto, host, path string) string {
	t.Helper()
	c := dialed{address: address, name: host, proto: proto}.must(t)
	got, err := c.get(host, path)
	if err != nil {
		t.Fatal(err)
	}
	return got.header.Get("Alt-Svc")
}

// takePackets listens for datagrams on an address.
func takePackets(t *testing.T, address string) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
