package interop

import (
	"fmt"
	"strings"
	"testing"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/discovery/docker/dockertest"
)

// TestPairOrdersForTheFollower has a container on the follower only. The leader orders the
// certificate for its host, and the follower answers the challenge and serves it.
func TestPairOrdersForTheFollower(t *testing.T) {
	engines := map[string]*dockertest.Engine{}
	p := newPairOf(t, pairConfig(), func(one *twin) {
		one.secure = free(t)
		engines[one.name] = dockertest.New(t)
		one.inside = append(one.inside, "SECURE="+one.secure, fmt.Sprintf("WEBPORT=%d", portOf(t, one.web)), "DOCKER="+engines[one.name].Endpoint())
	})
	p.a.is("leader", true)
	p.b.is("follower", true)
	authority := acmetest.Start(t, acmetest.Settings{HTTPPort: portOf(t, p.b.web)})
	p.a.put("headgate.yaml", strings.Replace(pairConfig(), "proxies:", `  secure: {address: "${SECURE}", protocol: https}
proxies:`, 1)+fmt.Sprintf(`acme:
  main: {directory: %q, ca_file: %q, email: ops@example.com, resolvers: [%q], challenge: http-01, http_port: "${WEBPORT}"}
discovery:
  docker: {local: {endpoint: "${DOCKER}", hosts: ["*.apps.example.com"], acme: [main], ports: [web, secure]}}
`, authority.Directory, authority.CAFile, authority.Names))
	engines["b"].Run(container("wiki", "wiki.apps.example.com", says(t, "the wiki of b"), "headgate.acme", "main"))
	p.eventually("b serves its container", func() bool { text, _ := p.b.get("wiki.apps.example.com", "/"); return text == "the wiki of b" })
	p.a.until("wiki.apps.example.com", "valid")
	p.eventually("b has the certificate", func() bool { return strings.HasPrefix(issuer(t, p.b.secure, "wiki.apps.example.com"), "Pebble") })
	if text, err := p.a.get("wiki.apps.example.com", "/"); err == nil {
		t.Errorf("a answers for a container of b: %q", text)
	}
	orders := authority.Orders()
	for _, one := range []*twin{p.b, p.a} {
		one.up.Store(false)
		one.stop()
		one.again()
	}
	p.a.is("leader", true)
	p.must(p.a, 1)
	p.serves(p.b, 1)
	if got := issuer(t, p.b.secure, "wiki.apps.example.com"); !strings.HasPrefix(got, "Pebble") {
		t.Errorf("after a start, b has a certificate of %q", got)
	}
	if n := authority.Orders(); n != orders {
		t.Errorf("%d orders, want %d", n, orders)
	}
}
