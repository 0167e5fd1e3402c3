package interop

import (
	"bytes"
	"context"
	"crypto/ecdh"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"
)

// TestChromiumHidesTheRequestedHost holds that Chromium, which gets the record that headgate
// prints over DNS over HTTPS, shows only the public name to everyone on the way, with HTTP/2 and
// with HTTP/3, and that it gets the current key if its record has one that headgate does not
// know.
func TestChromiumHidesTheRequestedHost(t *testing.T) {
	c := &chromium{t: t, path: needed(t, "chromium", "chromium"), id: newIdentity(t, "front.example.com", "shop.example.com"), wire: &wire{t: t}}
	c.port = lasting(t)
	g := prepare(t)
	g.put("cert.pem", c.id.cert)
	g.put("key.pem", c.id.key)
	g.start(fmt.Sprintf(`
version: 1
ports:
  secure: {address: "127.0.0.2:%[1]s", protocol: https, tls: {ech: {public_name: front.example.com}}}
  quic: {address: "127.0.0.1:%[1]s", protocol: http3, tls: {ech: {public_name: front.example.com}}}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies:
  shop: {virtual_hosts: [shop.example.com], routes: [{fixed_response: {status: 200, body: a hidden host}}]}
`, c.port))
	c.wire.listen("127.0.0.1:"+c.port, "127.0.0.2:"+c.port)
	current := g.echRecord()
	c.names = startSecureDNS(t, c.id)
	c.names.set(current)

	c.visit("--disable-quic")
	quic := "--origin-to-force-quic-on=shop.example.com:" + c.port // it trusts an authority of the test
	c.visit(quic)
	g.served(t, "HTTP/2.0", "HTTP/3.0")
	before := c.wire.shows(t)

	// Chromium does not try again over QUIC: it verifies the public name there, closes the
	// connection with the alert ech_required, and would connect over TCP.
	c.names.set(withOtherKey(t, current))
	c.visit("--disable-quic")
	g.served(t, "HTTP/2.0", "HTTP/3.0", "HTTP/2.0")
	if n := c.wire.shows(t); n <= before+1 {
		t.Errorf("with another key, there was no second handshake: %d after %d", n, before)
	}
}

// echRecord returns the HTTPS record that headgate prints, as soon as there is a key.
func (g *gate) echRecord() *dns.HTTPS {
	g.t.Helper()
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		out, err := exec.Command(os.Getenv(binaryFolder), "ech", "--config", g.file, "--state", filepath.Join(g.dir, "state")).CombinedOutput()
		for rr, ok := dns.NewZoneParser(bytes.NewReader(out), "", ""), true; ok && err == nil; {
			var one dns.RR
			if one, ok = rr.Next(); ok {
				if found, is := one.(*dns.HTTPS); is {
					return found
				}
			}
		}
		if time.Now().After(until) {
			g.t.Fatalf("headgate ech prints no record: %v\n%s", err, out)
		}
	}
}

// served expects the protocols of all requests for the start page, whose host was hidden.
func (g *gate) served(t *testing.T, want ...string) {
	t.Helper()
	var got []string
	for until := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got = nil
		for line := range strings.Lines(g.out.String()) {
			var r struct {
				Path, Proto string
				ECH         bool
			}
			if json.Unmarshal([]byte(line), &r) == nil && r.Path == "/" && r.ECH {
				got = append(got, r.Proto)
			}
		}
		if slices.Equal(got, want) {
			return
		}
		if len(got) > len(want) || time.Now().After(until) {
			t.Fatalf("the log has hidden requests with %q, want %q:\n%s", got, want, g.out)
		}
	}
}

// withOtherKey returns a record with a key that no server has.
func withOtherKey(t *testing.T, rr *dns.HTTPS) *dns.HTTPS {
	t.Helper()
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	out := dns.Copy(rr).(*dns.HTTPS)
	for _, v := range out.Value {
		if e, ok := v.(*dns.SVCBECHConfig); ok {
			e.ECH = bytes.Clone(e.ECH)
			copy(e.ECH[11:], key.PublicKey().Bytes()) // RFC 9849, section 4
			return out
		}
	}
	t.Fatalf("the record has no key: %s", rr)
	return nil
}

// chromium starts browsers that resolve names over HTTPS.
type chromium struct {
	t     *testing.T
	path  string
	port  string
	id    *identity
	names *secureDNS
	wire  *wire
}

// visit has a new browser, without memory of an earlier one, show the start page of the host.
func (c *chromium) visit(flags ...string) {
	c.t.Helper()
	profile := c.t.TempDir()
	state, err := json.Marshal(map[string]any{"dns_over_https": map[string]any{"mode": "secure", "templates": c.names.url + "/dns-query"}})
	if err == nil {
		err = os.WriteFile(filepath.Join(profile, "Local State"), state, 0o600)
	}
	if err != nil {
		c.t.Fatal(err)
	}
	trusted := sha256.Sum256(c.id.tls.Leaf.RawSubjectPublicKeyInfo)
	flags = append(flags, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+profile, "--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(trusted[:]), "--dump-dom", "https://shop.example.com:"+c.port+"/")
	ctx, stop := context.WithTimeout(c.t.Context(), patience)
	defer stop()
	cmd := exec.CommandContext(ctx, c.path, flags...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil || !bytes.Contains(out, []byte("a hidden host")) {
		c.t.Fatalf("%s: %v\n%s\n%s\nqueries: %q", flags[0], err, out, errs.String(), c.names.queries())
	}
}

// wire passes connections on, and keeps what it can read of their handshakes.
type wire struct {
	t      *testing.T
	mu     sync.Mutex
	hellos [][]byte
}

func (w *wire) listen(at, to string) {
	l, err := net.Listen("tcp", at)
	if err != nil {
		w.t.Fatal(err)
	}
	var group sync.WaitGroup
	w.t.Cleanup(func() { l.Close(); group.Wait() })
	group.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			group.Go(func() { w.pass(c, to) })
		}
	})
}

func (w *wire) pass(c net.Conn, to string) {
	defer c.Close()
	c.SetDeadline(time.Now().Add(patience))
	hello := make([]byte, 5) // the head of a record of TLS
	if _, err := io.ReadFull(c, hello); err != nil {
		return // opened in advance, and not used
	}
	hello = append(hello, make([]byte, int(hello[3])<<8|int(hello[4]))...)
	if _, err := io.ReadFull(c, hello[5:]); err != nil {
		return
	}
	w.mu.Lock()
	w.hellos = append(w.hellos, hello)
	w.mu.Unlock()
	s, err := net.Dial("tcp", to)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer s.Close()
	s.SetDeadline(time.Now().Add(patience))
	s.Write(hello)
	done := make(chan struct{})
	go func() { defer close(done); io.Copy(c, s); c.Close() }()
	io.Copy(s, c)
	s.Close()
	<-done
}

// shows expects that all handshakes show the public name and not the host, and returns how many
// there were.
func (w *wire) shows(t *testing.T) int {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.hellos {
		if bytes.Contains(h, []byte("shop.example.com")) || !bytes.Contains(h, []byte("front.example.com")) {
			t.Errorf("a handshake shows the host, or not the public name: %q", h)
		}
	}
	return len(w.hellos)
}

// secureDNS is a resolver of the zone example.com, with DNS over HTTPS (RFC 8484). All names have
// the address 127.0.0.1.
type secureDNS struct {
	url string

	mu     sync.Mutex
	record *dns.HTTPS
	asked  []string
}

func startSecureDNS(t *testing.T, id *identity) *secureDNS {
	t.Helper()
	d := &secureDNS{}
	s := httptest.NewUnstartedServer(d)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{id.tls}}
	s.StartTLS()
	t.Cleanup(s.Close)
	d.url = s.URL
	return d
}

// set replaces the HTTPS record.
func (d *secureDNS) set(rr *dns.HTTPS) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.record = rr
}

// queries returns the queries for names of the zone.
func (d *secureDNS) queries() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

func (d *secureDNS) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	message, err := base64.RawURLEncoding.DecodeString(r.URL.Query().Get("dns"))
	if r.Method == http.MethodPost {
		message, err = io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<16))
	}
	q := new(dns.Msg)
	if err == nil {
		err = q.Unpack(message)
	}
	if err != nil || len(q.Question) != 1 {
		http.Error(w, "this is no query", http.StatusBadRequest)
		return
	}
	answer, err := d.answer(q).Pack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/dns-message")
	w.Write(answer)
}

func (d *secureDNS) answer(q *dns.Msg) *dns.Msg {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := new(dns.Msg).SetReply(q)
	asked := q.Question[0]
	name := strings.ToLower(asked.Name)
	if !dns.IsSubDomain("example.com.", name) {
		return m // Chromium asks for names of its maker
	}
	d.asked = append(d.asked, asked.String())
	switch {
	case asked.Qtype == dns.TypeA && !strings.HasPrefix(name, "_"):
		m.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: asked.Name, Rrtype: dns.TypeA, Class: dns.ClassINET, Ttl: 60}, A: net.IPv4(127, 0, 0, 1)}}
	case asked.Qtype == dns.TypeHTTPS && name == d.record.Hdr.Name:
		m.Answer = []dns.RR{d.record}
	}
	return m
}
