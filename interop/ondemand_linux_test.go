package interop

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
)

// withAuthority gives machines an authority, and a configuration for it. Each machine has an address
// of its own, with the same ports. The authority validates names at the first one, which answers for
// all.
func (m *machines) withAuthority(more string) func() *acmetest.Authority {
	var authority *acmetest.Authority
	var web, secure int
	m.equip = func(one *machine) {
		if authority == nil {
			web, secure = portOf(m.t, one.web), portOf(m.t, one.secure)
			authority = acmetest.Start(m.t, acmetest.Settings{HTTPPort: web, HTTPSPort: secure})
		}
		host := fmt.Sprintf("127.0.0.%d", len(m.all)+1)
		one.web, one.secure = fmt.Sprintf("%s:%d", host, web), fmt.Sprintf("%s:%d", host, secure)
		one.inside = append(one.inside, "WEB="+one.web, "SECURE="+one.secure)
	}
	m.more = func() string {
		return more + fmt.Sprintf(`acme:
  main: {directory: %q, ca_file: %q, resolvers: [%q], http_port: %d, https_port: %d}
`, authority.Directory, authority.CAFile, authority.Names, web, secure)
	}
	return func() *acmetest.Authority { return authority }
}

// A certificate that one of three machines renews is presented by all within two seconds. A machine
// that hangs holds the order up for five seconds, and its timeline names the machine.
func TestRenewalOnThreeMachines(t *testing.T) {
	const name = "signed.example.com"
	m := &machines{t: t}
	m.withAuthority("  signed: {virtual_hosts: [" + name + "], acme: main, routes: [{fixed_response: {status: 200}}]}\n")
	m.open()
	serial := func(one *machine) string {
		c, err := tls.Dial("tcp", one.secure, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		leaf := c.ConnectionState().PeerCertificates[0]
		if !strings.HasPrefix(leaf.Issuer.CommonName, "Pebble") {
			return ""
		}
		return leaf.SerialNumber.String()
	}
	same := func(of []*machine, before string) (now string, took time.Duration) {
		var first time.Time
		m.eventually("a new certificate is presented by all", func() bool {
			fresh := 0
			for _, one := range of {
				if s := serial(one); s != "" && s != before {
					now = s
					fresh++
				}
			}
			if fresh > 0 && first.IsZero() {
				first = time.Now()
			}
			return fresh == len(of)
		})
		return now, time.Since(first)
	}
	now, _ := same(m.all, "")
	renew := func(one *machine) {
		// What is requested while a machine still adopts the certificate of another has come with it.
		m.eventually("the machine has noted the certificate", func() bool {
			return one.manager().must(200, "GET", "/orders/"+name, "", "").body["state"] == "valid"
		})
		one.manager().must(202, "POST", "/orders/"+name+"/renew", "{}", "*")
	}
	for _, one := range m.all {
		renew(one)
		was := now
		var took time.Duration
		if now, took = same(m.all, was); took > 2*time.Second {
			t.Errorf("a renewal on %s was presented by all %v after the first", one.name, took)
		}
		t.Logf("renewed on %s: presented by all %v after the first", one.name, took.Round(time.Millisecond))
	}

	c := m.all[2]
	c.cmd.Process.Signal(syscall.SIGSTOP)
	began := time.Now()
	renew(m.all[0])
	now, _ = same(m.all[:2], now)
	t.Logf("a renewal while c hangs took %v", time.Since(began).Round(time.Millisecond))
	order := m.all[0].manager().must(200, "GET", "/orders/"+name, "", "")
	if text := fmt.Sprint(order.body); !strings.Contains(text, "machine c has not acknowledged") {
		t.Errorf("the timeline does not name the machine that hangs: %s", text)
	}
	c.cmd.Process.Signal(syscall.SIGCONT)
	m.eventually("c presents the certificate when it goes on", func() bool { return serial(c) == now })
}

// Three machines with one database have one limit of orders an hour, and serve the
// certificates that another one has ordered when a client connected.
func TestOnDemandOnThreeMachines(t *testing.T) {
	var asked atomic.Int64
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	t.Cleanup(app.Close)
	m := &machines{t: t}
	authority := m.withAuthority(fmt.Sprintf(`  tenants:
    acme: main
    on_demand: {ask: %q, max_per_hour: 3}
    routes: [{fixed_response: {status: 200}}]
`, app.URL))
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
	orders := authority().Orders()
	for _, name := range names { // the others have it from the store
		for _, one := range m.all {
			m.eventually(one.name+" serves "+name, func() bool {
				by, err := handshake(one, name)
				return err == nil && strings.HasPrefix(by, "Pebble")
			})
		}
	}
	if n := authority().Orders(); n != orders || orders != 3 {
		t.Errorf("%d orders, then %d; want 3: a certificate is ordered once", orders, n)
	}
	for _, one := range m.all { // the limit is that of all machines
		if by, err := handshake(one, "four.customer.example.com"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("a fourth at machine %s: %q, %v; want it to be refused", one.name, by, err)
		}
	}
	if n := authority().Orders(); n != 3 {
		t.Errorf("%d orders within max_per_hour: 3", n)
	}
	for _, one := range m.all { // what was ordered lasts
		if by, err := handshake(one, names[0]); err != nil || !strings.HasPrefix(by, "Pebble") {
			t.Errorf("%s at machine %s afterwards: %q, %v", names[0], one.name, by, err)
		}
	}
	t.Logf("the application was asked %d times", asked.Load())
}

// Of three machines with one database, only the first has the port for challenges. The others have it
// order during the handshake, within the limit of all.
func TestOnDemandByTheMachineWithThePort(t *testing.T) {
	var authority *acmetest.Authority
	app := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(app.Close)
	m := &machines{t: t}
	var web int // of the first machine
	m.equip = func(one *machine) {
		if authority == nil {
			web = portOf(t, one.web)
			authority = acmetest.Start(t, acmetest.Settings{HTTPPort: web})
		}
		one.inside = append(one.inside, "WEB="+one.web, "SECURE="+one.secure)
	}
	m.more = func() string {
		return fmt.Sprintf(`  tenants:
    acme: main
    on_demand: {ask: %q, max_per_hour: 3}
    routes: [{fixed_response: {status: 200}}]
acme:
  main: {directory: %q, ca_file: %q, resolvers: [%q], challenge: http-01, http_port: %d}
`, app.URL, authority.Directory, authority.CAFile, authority.Names, web)
	}
	m.open()
	handshake := func(one *machine, name string) (string, error) {
		c, err := tls.Dial("tcp", one.secure, &tls.Config{ServerName: name, InsecureSkipVerify: true})
		if err != nil {
			return "", err
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].Issuer.CommonName, c.ConnectionState().PeerCertificates[0].VerifyHostname(name)
	}
	for i, one := range []int{1, 2, 1} {
		name, began := fmt.Sprintf("t%d.customer.example.com", i), time.Now()
		if by, err := handshake(m.all[one], name); err != nil || !strings.HasPrefix(by, "Pebble") {
			t.Errorf("%s at machine %s: %q, %v", name, m.all[one].name, by, err)
		}
		t.Logf("%s at machine %s: %v", name, m.all[one].name, time.Since(began).Round(time.Millisecond))
	}
	if by, err := handshake(m.all[2], "t3.customer.example.com"); err == nil || !strings.Contains(err.Error(), "unrecognized name") {
		t.Errorf("a fourth: %q, %v; want it to be refused", by, err)
	}
	if n := authority.Orders(); n != 3 {
		t.Errorf("%d orders, want 3", n)
	}
}
