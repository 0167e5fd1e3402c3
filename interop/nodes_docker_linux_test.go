package interop

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/discovery/docker/dockertest"
)

// says starts a server that answers with a text, and returns its port.
func says(t *testing.T, text string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
	t.Cleanup(s.Close)
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// container returns a container at this machine with a service behind a host.
func container(name, host, port string, labels ...string) *dockertest.Container {
	c := &dockertest.Container{Name: name, Networks: map[string]string{"apps": "127.0.0.1"}, Labels: map[string]string{"headgate.host": host, "headgate.port": port}}
	for i := 0; i < len(labels); i += 2 {
		c.Labels[labels[i]] = labels[i+1]
	}
	return c
}

// TestContainersOfOneNode has three machines with container engines of their own. What labels
// define on one is served there only, also where two have a container with the same host. The
// certificate of a host that only containers of b have is ordered by b, and removed by none of the
// machines that have no such container, however often they start.
func TestContainersOfOneNode(t *testing.T) {
	engines := map[string]*dockertest.Engine{}
	m := &machines{t: t, equip: func(one *machine) {
		engines[one.name] = dockertest.New(t)
		one.inside = append(one.inside, "DOCKER="+engines[one.name].Endpoint())
	}}
	m.open()
	a, b, c := m.all[0], m.all[1], m.all[2]
	authority := acmetest.Start(t, acmetest.Settings{HTTPPort: portOf(t, b.web)})
	a.put("headgate.yaml", m.config()+fmt.Sprintf(`acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, resolvers: [%q], http_port: %d}
discovery:
  docker: {local: {endpoint: "${DOCKER}", hosts: ["*.apps.example.com"], acme: [main], ports: [web, secure]}}
`, authority.Directory, authority.CAFile, authority.Names, portOf(t, b.web)))

	engines["b"].Run(container("wiki", "wiki.apps.example.com", says(t, "the wiki of b"), "headgate.acme", "main"))
	for _, one := range []*machine{a, b} {
		engines[one.name].Run(container("both", "both.apps.example.com", says(t, "on "+one.name), "headgate.acme", "none"))
	}
	m.eventually("b serves its container", func() bool { text, _ := b.get("wiki.apps.example.com", "/"); return text == "the wiki of b" })
	for _, one := range []*machine{a, b} {
		m.eventually(one.name+" serves its own", func() bool { text, _ := one.get("both.apps.example.com", "/"); return text == "on "+one.name })
	}
	b.until("wiki.apps.example.com", "valid")
	m.eventually("b has the certificate", func() bool { return strings.HasPrefix(issuer(t, b.secure, "wiki.apps.example.com"), "Pebble") })
	orders := authority.Orders()

	origin := b.manager().must(200, "GET", "/proxies/wiki", "", "").body["origin"]
	if text := fmt.Sprint(origin); !strings.Contains(text, "node:b") || !strings.Contains(text, "provider:local") {
		t.Errorf("the origin of the proxy: %v", origin)
	}
	if out := b.machine("status"); !strings.Contains(out, "only on b") {
		t.Errorf("the status of b does not name the machine:\n%s", out)
	}
	elsewhere := func() {
		t.Helper()
		for _, one := range []*machine{a, c} {
			if text, err := one.get("wiki.apps.example.com", "/"); err == nil {
				t.Errorf("%s answers for a container of b: %q", one.name, text)
			}
		}
	}
	elsewhere()
	if text, err := c.get("both.apps.example.com", "/"); err == nil {
		t.Errorf("c answers for containers of others: %q", text)
	}

	// Machines without the container start, and make changes, while b runs and while it is away.
	m.change(a, 200)
	for range 2 {
		for _, one := range []*machine{a, c} {
			one.stop()
			one.restart()
		}
	}
	b.up.Store(false)
	b.kill()
	for _, one := range []*machine{a, c} {
		one.stop()
		one.restart()
	}
	m.change(c, 200)
	time.Sleep(2 * time.Second) // longer than a machine takes to look at certificates that none wants
	elsewhere()
	engines["b"].Down() // b starts with what it knew last
	b.restart()
	b.up.Store(true)
	engines["b"].Up()
	m.eventually("b serves its container again", func() bool { text, _ := b.get("wiki.apps.example.com", "/"); return text == "the wiki of b" })
	if got := issuer(t, b.secure, "wiki.apps.example.com"); !strings.HasPrefix(got, "Pebble") {
		t.Errorf("b has a certificate of %q", got)
	}
	if n := authority.Orders(); n != orders {
		t.Errorf("%d orders, want %d: a machine without the container has removed the certificate", n, orders)
	}
}
