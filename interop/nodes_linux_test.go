package interop

import (
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// ofNode are objects that only b has, and a certificate that only b wants.
type ofNode struct {
	side, tcp, udp string // addresses
	*acmetest.Authority
	httpPort int
}

func (o *ofNode) config(m *machines, on string) string {
	return m.config() + fmt.Sprintf(`tcp_proxies:
  db: {address: %q, nodes: [%s], servers: [{address: %q}], sni: [db.example.com], tls: {acme: main}}
udp_proxies:
  dns: {address: %q, nodes: [%s], servers: [{address: "127.0.0.1:9"}]}
acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, resolvers: [%q], http_port: %d}
`, o.tcp, on, m.app, o.udp, on, o.Directory, o.CAFile, o.Names, o.httpPort)
}

// accepts reports whether something accepts TCP connections at an address.
func accepts(address string) bool {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err == nil {
		c.Close()
	}
	return err == nil
}

// TestObjectsOfOneNode has ports and proxies that name one of three machines. The others do
// not open them and show where they are. The certificate that only this machine wants is
// ordered there and is removed by none of the others, also when they start again, and when it
// is not in use on any machine for a while.
func TestObjectsOfOneNode(t *testing.T) {
	m := &machines{t: t}
	m.open()
	a, b := m.all[0], m.all[1]
	o := &ofNode{side: free(t), tcp: free(t), udp: free(t), httpPort: portOf(t, b.web)}
	o.Authority = acmetest.Start(t, acmetest.Settings{HTTPPort: o.httpPort})
	with := func(on string) string {
		text := strings.Replace(o.config(m, on), "proxies:\n", fmt.Sprintf("  side: {address: %q, protocol: http, nodes: [%s]}\nproxies:\n", o.side, on), 1)
		return strings.ReplaceAll(text, `"n0"`, fmt.Sprintf(`"n%d"`, m.acked))
	}
	a.put("headgate.yaml", with("b"))
	m.eventually("b opens its port", func() bool { return accepts(o.side) && accepts(o.tcp) })
	b.until("db.example.com", "valid")
	if got := issuer(t, o.tcp, "db.example.com"); !strings.HasPrefix(got, "Pebble") {
		t.Errorf("b has a certificate of %q", got)
	}
	orders := o.Orders()

	for _, one := range m.all {
		port := one.manager().must(200, "GET", "/ports/side", "", "").body["state"]
		tcp := one.manager().must(200, "GET", "/tcp_proxies/db", "", "").body["state"]
		udp := one.manager().must(200, "GET", "/udp_proxies/dns", "", "").body["state"]
		want := [3]any{"elsewhere", "elsewhere", "elsewhere"}
		if one == b {
			want = [3]any{"listening", "active", "active"}
			if udp == "failing_open" || udp == "degraded" || udp == "down" {
				udp = "active" // it has no server
			}
			if tcp == "failing_open" || tcp == "degraded" {
				tcp = "active"
			}
		}
		if got := [3]any{port, tcp, udp}; got != want {
			t.Errorf("on %s the states are %v, want %v", one.name, got, want)
		}
		if out := one.machine("health", "--ready"); strings.Contains(out, "not") {
			t.Errorf("%s is not ready: %s", one.name, out)
		}
	}
	if out := a.machine("status"); !strings.Contains(out, "only on b") {
		t.Errorf("the status of a: %s", out)
	}
	if out := a.machine("explain", "--running", "GET", "http://shop.example.com:"+fmt.Sprint(portOf(t, o.side))+"/"); !strings.Contains(out, "port side is only on b") {
		t.Errorf("explain on a: %s", out)
	}
	if out := a.machine("explain", "--running", "tcp://"+o.tcp); !strings.Contains(out, "TCP proxy db is only on b") {
		t.Errorf("explain a connection on a: %s", out)
	}
	known := a.put("known.yaml", a.expanded(with("b")))
	if out := a.machine("validate", known); strings.Contains(out, "no node") || !strings.Contains(out, "is valid") {
		t.Errorf("validate: %s", out)
	}
	wrong := a.put("wrong.yaml", a.expanded(with("bb")))
	if out := a.machine("validate", wrong); !strings.Contains(out, `there is no node "bb"`) || !strings.Contains(out, `did you mean "b"?`) {
		t.Errorf("validate with an unknown node: %s", out)
	}

	// Those that do not want the certificate start again, and leave it alone.
	for _, one := range []*machine{a, m.all[2]} {
		one.stop()
		one.restart()
	}
	m.never("a removes the certificate of b", 3*time.Second, func() bool {
		return !strings.HasPrefix(issuer(t, o.tcp, "db.example.com"), "Pebble")
	})
	b.stop()
	a.stop()
	a.restart()
	time.Sleep(time.Second) // a has no reason to keep it but that b wants it
	b.restart()
	if got := issuer(t, o.tcp, "db.example.com"); !strings.HasPrefix(got, "Pebble") {
		t.Errorf("after it was stopped, b has a certificate of %q", got)
	}
	if n := o.Orders(); n != orders {
		t.Errorf("%d orders, want %d", n, orders)
	}

	// Now they are those of another machine. Here both have the same addresses.
	o.side, o.tcp, o.udp = free(t), free(t), free(t)
	a.put("headgate.yaml", with("a"))
	m.eventually("a opens the port, and b has closed it", func() bool {
		return a.manager().ask("GET", "/ports/side", "", "").body["state"] == "listening" && b.manager().ask("GET", "/ports/side", "", "").body["state"] == "elsewhere"
	})
	if got := issuer(t, o.tcp, "db.example.com"); !strings.HasPrefix(got, "Pebble") {
		t.Errorf("a has a certificate of %q", got)
	}
}

// expanded returns a configuration with the addresses of a machine.
func (one *machine) expanded(text string) string {
	return strings.NewReplacer("${WEB}", one.web, "${SECURE}", one.secure).Replace(text)
}

// never holds that something does not happen for a while.
func (m *machines) never(what string, d time.Duration, is func() bool) {
	m.t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); pause() {
		if is() {
			m.t.Fatal(what)
		}
	}
}
