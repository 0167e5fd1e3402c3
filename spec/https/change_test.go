package https

import (
	"fmt"
	"path/filepath"
	"testing"

	"headgate/internal/testhouse"
)

// Certificates and ports change twenty times while clients ask without a pause:
// no request is lost.
func TestTwentyChangesUnderLoad(t *testing.T) {
	t.Parallel()
	h, a := newHouse(t), newAuthority(t, "test authority")
	for _, name := range []string{"one", "two"} {
		keep(t, h.dir, name, a.host([]string{"a.example"}))
	}
	put(t, filepath.Join(h.dir, "clients.pem"), a.pem())
	addresses := []string{testhouse.Address(t), testhouse.Address(t)}
	text := func(address, cert, settings string) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: https, drain_timeout: 5s, tls: {%s}}}
certificates: {%[3]s: {cert_file: %[3]s.pem, key_file: %[3]s.key}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: "hello"}}]}}
`, address, settings, cert)
	}
	h.start(text(addresses[0], "one", ""))
	l := startLoad(t, addresses[0], 4, 12, false)
	kinds := []func(n int) string{
		func(n int) string { return text(addresses[0], "two", "") },                         // a certificate
		func(n int) string { return text(addresses[1], "two", "") },                         // the address
		func(n int) string { return text(addresses[1], "two", `min_version: "1.3"`) },       // the version
		func(n int) string { return text(addresses[0], "one", "default_certificate: one") }, // all of them
		func(n int) string { // what clients have to show: open connections end
			return text(addresses[0], "one", "client_auth: optional, client_ca: clients.pem")
		},
	}
	for n := range 20 {
		l.await(t, 50)
		h.apply(kinds[n%len(kinds)](n))
		l.address.Store(h.Plan().Ports()[0].Address().String())
	}
	l.await(t, 50)
	l.end()
	t.Logf("20 changes: %s", l)
	if l.lost.Load() > 0 {
		t.Error("requests were lost")
	}
}

// A port changes between http and https on its address: the socket stays, and no
// request is lost that was sent in the protocol of its connection.
func TestHTTPAndHTTPSOnOneAddressUnderLoad(t *testing.T) {
	t.Parallel()
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "main", a.host([]string{"a.example"}))
	address := testhouse.Address(t)
	text := func(protocol string) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports: {web: {address: %q, protocol: %s}}
certificates: {main: {cert_file: main.pem, key_file: main.key}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: "hello"}}]}}
`, address, protocol)
	}
	h.start(text("https"))
	since := h.Status().Ports[0].Since
	l := startLoad(t, address, 4, 0, true)
	for n := range 20 {
		l.await(t, 50)
		h.apply(text([]string{"http", "https"}[n%2]))
	}
	l.await(t, 50)
	l.end()
	t.Logf("20 changes of the protocol: %s", l)
	if l.lost.Load() > 0 {
		t.Error("requests were lost")
	}
	if p := h.Status().Ports; len(p) != 1 || !p[0].Since.Equal(since) {
		t.Errorf("the socket was touched: %+v, want one since %v", p, since)
	}
}
