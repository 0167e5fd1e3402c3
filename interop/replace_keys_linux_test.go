package interop

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// named starts a server that answers with its name.
func named(t *testing.T, name string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, name) }))
	t.Cleanup(s.Close)
	return s.URL
}

// read returns the body of a successful response.
func read(t *testing.T, rs *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	b, err := io.ReadAll(rs.Body)
	if err != nil || rs.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v: %s", rs.Status, err, b)
	}
	return string(b)
}

// TestKeysGoToTheNewProcess holds that what clients have got from the old process is good for
// the new one: session tickets of TLS over TCP and QUIC, and sticky cookies.
func TestKeysGoToTheNewProcess(t *testing.T) {
	id := newIdentity(t, "one.example")
	plain, secure := free(t), free(t)
	g := prepare(t)
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	r := startReplaced(t, g, fmt.Sprintf(`
version: 1
admin: {address: ""}
ports:
  plain: {address: %q, protocol: http}
  secure: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies:
  all:
    routes:
      - sticky_cookie: {enabled: true}
        servers: [{url: %q}, {url: %q}, {url: %q}, {url: %q}]
`, plain, secure, secure, named(t, "a"), named(t, "b"), named(t, "c"), named(t, "d")))
	config := trusting(id)
	config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	overTCP := func() bool {
		tr := &http.Transport{TLSClientConfig: config.Clone(), DisableKeepAlives: true}
		rs, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + secure + "/")
		read(t, rs, err)
		return rs.TLS.DidResume
	}
	packets := trusting(id)
	packets.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	overQUIC := func() bool {
		var qc *quic.Conn
		tr := &http3.Transport{TLSClientConfig: packets, Dial: func(ctx context.Context, address string, tc *tls.Config, c *quic.Config) (_ *quic.Conn, err error) {
			qc, err = quic.DialAddr(ctx, address, tc, c)
			return qc, err
		}}
		defer tr.Close()
		rs, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + secure + "/")
		read(t, rs, err)
		return qc.ConnectionState().TLS.DidResume
	}
	if overTCP() || overQUIC() {
		t.Fatal("the first connection resumes a session")
	}
	var jars []*cookiejar.Jar
	var at []string
	sticky := func(jar *cookiejar.Jar) string {
		tr := &http.Transport{DisableKeepAlives: true}
		rs, err := (&http.Client{Transport: tr, Timeout: patience, Jar: jar}).Get("http://" + plain + "/")
		return read(t, rs, err)
	}
	servers := map[string]bool{}
	for range 8 {
		jar, _ := cookiejar.New(nil)
		jars, at = append(jars, jar), append(at, sticky(jar))
		servers[at[len(at)-1]] = true
	}
	if len(servers) < 2 {
		t.Fatalf("all clients are at the server %v", servers)
	}
	for n := range 2 { // keys go on from the second process to the third, too
		r.upgrade()
		r.alone()
		if !overTCP() {
			t.Errorf("upgrade %d: the new process does not accept a session ticket over TCP", n+1)
		}
		if !overQUIC() {
			t.Errorf("upgrade %d: the new process does not accept a session ticket over QUIC", n+1)
		}
		for i, jar := range jars {
			if got := sticky(jar); got != at[i] {
				t.Errorf("upgrade %d: client %d was at %s and is at %s", n+1, i, at[i], got)
			}
		}
	}
}

// namedDatagrams starts a UDP server that answers with its name.
func namedDatagrams(t *testing.T, name string) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		p := make([]byte, 2048)
		for {
			_, from, err := c.ReadFrom(p)
			if err != nil {
				return
			}
			c.WriteTo([]byte(name), from)
		}
	}()
	return c.LocalAddr().String()
}

// TestUDPClientsKeepTheirServersOverAnUpgrade holds that the session that a client of a UDP
// proxy begins in the new process is at the server that it had in the old one.
func TestUDPClientsKeepTheirServersOverAnUpgrade(t *testing.T) {
	address := free(t)
	r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
udp_proxies:
  games: {address: %q, servers: [{address: %q}, {address: %q}, {address: %q}]}
`, address, namedDatagrams(t, "a"), namedDatagrams(t, "b"), namedDatagrams(t, "c")))
	var clients []net.Conn
	ask := func(c net.Conn) string {
		t.Helper()
		c.SetDeadline(time.Now().Add(patience))
		p := make([]byte, 64)
		if _, err := c.Write([]byte("?")); err != nil {
			t.Fatal(err)
		}
		n, err := c.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		return string(p[:n])
	}
	var at []string
	for range 14 {
		c, err := net.Dial("udp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients, at = append(clients, c), append(at, ask(c))
	}
	for n := range 2 {
		r.upgrade()
		r.alone()
		for i := range clients {
			j := (5*i + n) % len(clients) // another order: no turn brings them to their servers
			if got := ask(clients[j]); got != at[j] {
				t.Errorf("upgrade %d: client %d had the server %s and has %s", n+1, j, at[j], got)
			}
		}
	}
}

// TestCountdownGoesOnOverAnUpgrade holds that a change which waits for its confirmation is
// reverted at the time that was announced before an upgrade, by the new process, and that one
// which is confirmed after an upgrade stays.
func TestCountdownGoesOnOverAnUpgrade(t *testing.T) {
	plain := free(t)
	r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {plain: {address: %q, protocol: http}}
proxies: {all: {routes: [{fixed_response: {status: 200, body: before}}]}}
`, plain))
	body := func() string {
		rs, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + plain + "/")
		return read(t, rs, err)
	}
	change := func(to, within string) {
		t.Helper()
		rs, text := r.change("PATCH", "/api/v1/proxies/all?confirm_within="+within, fmt.Sprintf(`{"routes": [{"fixed_response": {"status": 200, "body": %q}}]}`, to))
		if rs.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s", rs.Status, text)
		}
	}
	until := func() (at time.Time) {
		t.Helper()
		var s struct {
			Pending *struct {
				Until time.Time `json:"until"`
			} `json:"pending"`
		}
		if err := r.api("/status", &s); err != nil {
			t.Fatal(err)
		}
		if s.Pending == nil {
			t.Fatal("no change waits for its confirmation")
		}
		return s.Pending.Until
	}
	const within = 15 * time.Second
	change("unconfirmed", within.String())
	announced := until()
	r.upgrade()
	if got := until(); !got.Equal(announced) {
		t.Errorf("the change is reverted at %v, before the upgrade at %v", got, announced)
	}
	if got := body(); got != "unconfirmed" {
		t.Errorf("the new process serves %q", got)
	}
	for body() == "unconfirmed" {
		if time.Now().After(announced.Add(patience)) {
			t.Fatal("the change is not reverted")
		}
		<-time.After(10 * time.Millisecond)
	}
	if early := time.Until(announced); early > time.Second {
		t.Errorf("the change is reverted %v too early", early)
	}
	if late := time.Since(announced); late > within { // a countdown that starts again has that
		t.Errorf("the change is reverted %v too late", late)
	}
	if got := body(); got != "before" {
		t.Errorf("after the time, %q is served", got)
	}

	r.alone()
	change("confirmed", "10m")
	r.upgrade()
	if rs, text := r.change("POST", "/api/v1/confirm", "{}"); rs.StatusCode != http.StatusOK {
		t.Fatalf("confirm: %s: %s", rs.Status, text)
	}
	r.alone()
	r.upgrade()
	var s map[string]any
	if err := r.api("/status", &s); err != nil || s["pending"] != nil || body() != "confirmed" {
		t.Errorf("after the confirmation: pending %v, %q is served, %v", s["pending"], body(), err)
	}
}
