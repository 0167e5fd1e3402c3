package interop

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// Three machines with one database have one limit of orders an hour, and serve the
// certificates that another one has ordered when a client connected.
func TestOnDemandOnThreeMachines(t *testing.T) {
	var authority *acmetest.Authority
	var asked atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(app.Close)
	m := &machines{t: t}
	var web, secure int // of all machines, each at an address of its own
	m.equip = func(one *machine) {
		if authority == nil { // it validates names at the first machine, which answers for all
			web, secure = portOf(t, one.web), portOf(t, one.secure)
			authority = acmetest.Start(t, acmetest.Settings{HTTPPort: web, HTTPSPort: secure})
		}
		host := fmt.Sprintf("127.0.0.%d", len(m.all)+1)
		one.web, one.secure = fmt.Sprintf("%s:%d", host, web), fmt.Sprintf("%s:%d", host, secure)
		one.inside = append(one.inside, "WEB="+one.web, "SECURE="+one.secure)
	}
	m.more = func() string {
		return fmt.Sprintf(`  tenants:
    acme: main
    on_demand: {ask: %q, max_per_hour: 3}
    routes: [{fixed_response: {status: 200}}]
acme:
  main: {directory: %q, ca_file: %q, resolvers: [%q], http_port: %d, https_port: %d}
`, app.URL, authority.Directory, authority.CAFile, authority.Names, web, secure)
	}
	m.open()

	// handshake returns who has issued what a machine presents.
	handshake := func(one *machine, name string) (string, error) {
		c, err := tls.Dial("tcp", one.secure, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			return "", err
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Issuer.CommonName, c.ConnectionState().PeerCertificates[0].VerifyHostname(name)
	}
	names := []string{"one.customer.example.com", "two.customer.example.com", "three.customer.example.com"}
	for i, name := range names { // each machine orders one
		began := time.Now()
		if by, err := handshake(m.all[i], name); err != nil || !strings.HasPrefix(by, "Pebble") {
			t.Errorf("%s at machine %s: %q, %v", name, m.all[i].name, by, err)
		}
		t.Logf("%s at machine %s: %v", name, m.all[i].name, time.Since(began).Round(time.Millisecond))
	}
	orders := authority.Orders()
	for _, name := range names { // the others have it from the store
		for _, one := range m.all {
			m.eventually(one.name+" serves "+name, func() bool {
				by, err := handshake(one, name)
				return err == nil && strings.HasPrefix(by, "Pebble")
			})
		}
	}
	if n := authority.Orders(); n != orders || orders != 3 {
		t.Errorf("%d orders, then %d; want 3: a certificate is ordered once", orders, n)
	}
	for _, one := range m.all { // the limit is that of all machines
		if by, err := handshake(one, "four.customer.example.com"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("a fourth at machine %s: %q, %v; want it to be refused", one.name, by, err)
		}
	}
	if n := authority.Orders(); n != 3 {
		t.Errorf("%d orders within max_per_hour: 3", n)
	}
	for _, one := range m.all { // what was ordered lasts
		if by, err := handshake(one, names[0]); err != nil || !strings.HasPrefix(by, "Pebble") {
			t.Errorf("%s at machine %s afterwards: %q, %v", names[0], one.name, by, err)
		}
	}
	t.Logf("the application was asked %d times", asked.Load())
}
