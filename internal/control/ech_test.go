package control

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"

	"headgate/internal/accesslog/recent"
	"headgate/internal/certs/certstest"
	"headgate/internal/certs/ech"
	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// hidden is a house with Encrypted Client Hello: the public name example.com, and the hosts
// shop.example.com and private.example.net with certificates of their own.
type hidden struct {
	*house
	address string
	roots   *x509.CertPool
	ca      *tls.Certificate
}

// hiddenText is its configuration. more are further lines.
func hiddenText(t *testing.T, dir, address string, more ...string) string {
	return fmt.Sprintf(`version: 1
ports:
  secure: {address: %[1]q, protocol: https, drain_timeout: 1s, tls: {ech: {public_name: Example.com}}}
  quic: {address: %[1]q, protocol: http3, drain_timeout: 1s, tls: {ech: {public_name: example.com}}}
proxies:
  front: {virtual_hosts: [example.com], routes: [{fixed_response: {status: 201}}]}
  shop: {virtual_hosts: [shop.example.com, "*.example.com"], routes: [{fixed_response: {status: 202}}]}
  private: {virtual_hosts: [private.example.net], routes: [{fixed_response: {status: 203}}]}
certificates:
  public: {cert_file: %[2]s/public.pem, key_file: %[2]s/public.key}
  shop: {cert_file: %[2]s/shop.pem, key_file: %[2]s/shop.key}
  private: {cert_file: %[2]s/private.pem, key_file: %[2]s/private.key}
access_log: {path: %[2]s/access.log}
%[3]s`, address, dir, strings.Join(more, "\n"))
}

func startHidden(t *testing.T, more ...string) *hidden {
	t.Helper()
	return startHiddenAt(t, testhouse.Addresses(t, 1)[0], more...)
}

func startHiddenAt(t *testing.T, address string, more ...string) *hidden {
	t.Helper()
	dir := t.TempDir()
	ca := certstest.Sign(t, certstest.Authority("test"), nil)
	h := &hidden{address: address, roots: x509.NewCertPool(), ca: &ca}
	h.roots.AddCert(ca.Leaf)
	for name, hosts := range map[string][]string{"public": {"example.com"}, "shop": {"shop.example.com", "*.example.com"}, "private": {"private.example.net"}} {
		certstest.Write(t, dir, name, certstest.Sign(t, &x509.Certificate{DNSNames: hosts}, &ca))
	}
	h.house = start(t, hiddenText(t, dir, address, more...))
	return h
}

// list waits for the published ECHConfigList.
func (h *hidden) list() []byte {
	h.t.Helper()
	var list []byte
	testhouse.Eventually(h.t, "there is a key", func() bool {
		all := h.c.ECH()
		if len(all) == 0 || all[0].ConfigList == "" {
			return false
		}
		list, _ = base64.StdEncoding.DecodeString(all[0].ConfigList)
		return true
	})
	return list
}

// settings returns those of a client for a name. Without a list it offers no ECH.
func (h *hidden) settings(name string, list []byte) *tls.Config {
	return &tls.Config{ServerName: name, RootCAs: h.roots, NextProtos: []string{"http/1.1"}, MinVersion: tls.VersionTLS13, EncryptedClientHelloConfigList: list}
}

// request makes a handshake, sends a request for a host, and returns the status and the state of
// the connection.
func (h *hidden) request(cfg *tls.Config, host string) (int, tls.ConnectionState, error) {
	h.t.Helper()
	nc, err := net.Dial("tcp", h.address)
	if err != nil {
		h.t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	secure := tls.Client(nc, cfg)
	if err := secure.Handshake(); err != nil {
		return 0, tls.ConnectionState{}, err
	}
	fmt.Fprintf(secure, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
	rs, err := http.ReadResponse(bufio.NewReader(secure), nil)
	if err != nil {
		return 0, secure.ConnectionState(), err
	}
	rs.Body.Close()
	return rs.StatusCode, secure.ConnectionState(), nil
}

func (h *hidden) expect(cfg *tls.Config, host string, status int, accepted bool) {
	h.t.Helper()
	got, state, err := h.request(cfg, host)
	if err != nil || got != status || state.ECHAccepted != accepted {
		h.t.Errorf("%s over a connection for %s: got %d, ECH %t and %v; want %d, ECH %t", host, cfg.ServerName, got, state.ECHAccepted, err, status, accepted)
	}
}

func TestAClientHidesTheNameOfTheHost(t *testing.T) {
	t.Parallel()
	h := startHidden(t)
	list := h.list()
	h.expect(h.settings("private.example.net", list), "private.example.net", 203, true)
	h.expect(h.settings("any.example.com", list), "any.example.com", 202, true)
	h.expect(h.settings("private.example.net", nil), "private.example.net", 203, false)
	h.expect(h.settings("example.com", nil), "example.com", 201, false)
	old := h.settings("private.example.net", nil)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	h.expect(old, "private.example.net", 203, false)

	// The name is in no byte that the client sends, and the public name is.
	sent := &recorder{}
	h.expect(h.settings("private.example.net", list), "private.example.net", 203, true)
	sent.handshake(t, h, h.settings("private.example.net", list))
	if text := string(sent.sent); strings.Contains(text, "private") || !strings.Contains(text, "example.com") {
		t.Errorf("the client sent %q", text)
	}
}

// recorder keeps what is written to a connection.
type recorder struct {
	net.Conn
	sent []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.sent = append(r.sent, b...)
	return r.Conn.Write(b)
}

func (r *recorder) handshake(t *testing.T, h *hidden, cfg *tls.Config) {
	t.Helper()
	nc, err := net.Dial("tcp", h.address)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	r.Conn = nc
	if err := tls.Client(r, cfg).Handshake(); err != nil {
		t.Fatal(err)
	}
}

// A client whose record is outdated verifies the public name, and comes again with the key that
// it is offered. To a client that only pretends, as browsers do, nothing is different.
func TestAClientWithAnOutdatedKeyGetsTheNewOne(t *testing.T) {
	t.Parallel()
	h := startHidden(t)
	list := h.list()
	foreign, _ := ech.Keys(nil).Renew("example.com", time.Now())
	_, _, err := h.request(h.settings("private.example.net", ech.List(foreign[0].Config)), "private.example.net")
	var rejected *tls.ECHRejectionError
	if !errors.As(err, &rejected) || !slices.Equal(rejected.RetryConfigList, list) {
		t.Fatalf("got %v, want that the published key is offered", err)
	}
	h.expect(h.settings("private.example.net", rejected.RetryConfigList), "private.example.net", 203, true)

	other, _ := ech.Keys(nil).Renew("private.example.net", time.Now())
	pretends := h.settings("private.example.net", ech.List(other[0].Config)) // its ClientHello shows the name of the host
	if _, _, err := h.request(pretends, "private.example.net"); !errors.As(err, &rejected) || rejected.RetryConfigList != nil {
		t.Errorf("got %v, want the certificate of the host, which this client has to reject", err)
	}
}

// get3 sends a request over HTTP/3.
func (h *hidden) get3(cfg *tls.Config, host string) (int, tls.ConnectionState, error) {
	var state tls.ConnectionState
	tr := &http3.Transport{TLSClientConfig: cfg, Dial: func(ctx context.Context, _ string, cfg *tls.Config, qcfg *quic.Config) (*quic.Conn, error) {
		qc, err := quic.DialAddr(ctx, h.address, cfg, qcfg)
		if err == nil {
			state = qc.ConnectionState().TLS
		}
		return qc, err
	}}
	defer tr.Close()
	rs, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + host + "/")
	if err != nil {
		return 0, state, err
	}
	rs.Body.Close()
	return rs.StatusCode, state, nil
}

func TestAClientHidesTheNameOfTheHostInHTTP3(t *testing.T) {
	t.Parallel()
	h := startHidden(t)
	list := h.list()
	got, state, err := h.get3(h.settings("private.example.net", list), "private.example.net")
	if err != nil || got != 203 || !state.ECHAccepted {
		t.Errorf("got %d, ECH %t and %v, want 203 with ECH", got, state.ECHAccepted, err)
	}
	got, state, err = h.get3(h.settings("private.example.net", nil), "private.example.net")
	if err != nil || got != 203 || state.ECHAccepted {
		t.Errorf("without ECH: got %d, ECH %t and %v", got, state.ECHAccepted, err)
	}
	foreign, _ := ech.Keys(nil).Renew("example.com", time.Now())
	_, _, err = h.get3(h.settings("private.example.net", ech.List(foreign[0].Config)), "private.example.net")
	var rejected *tls.ECHRejectionError
	if !errors.As(err, &rejected) || !slices.Equal(rejected.RetryConfigList, list) {
		t.Errorf("with an outdated key: got %v, want that the published key is offered", err)
	}
	var line string
	testhouse.Eventually(t, "both requests are logged", func() bool {
		data, _ := os.ReadFile(filepath.Join(filepath.Dir(h.c.Plan().Config().Certificates["public"].CertFile), "access.log"))
		line = string(data)
		return strings.Count(line, "\n") == 2
	})
	if strings.Count(line, `"ech":true`) != 1 || !strings.Contains(line, `"ech":true`) {
		t.Errorf("the access log says %s, want ech in the first line only", line)
	}
	found := h.c.Recent().Find(recent.Query{StatusFrom: 1}, recent.Cursor{}, 10).Requests // the newest first
	if len(found) != 2 || found[0].ECH || !found[1].ECH {
		t.Errorf("the recent requests are %+v, want ech for the first only", found)
	}
}

// What decides about a connection is the hidden name, not the one that is shown.
func TestAHiddenNameGetsNoMoreThanAShownOne(t *testing.T) {
	t.Parallel()
	server := speaks(t, "db")
	h := startHidden(t, fmt.Sprintf("tcp_proxies:\n  db: {port: secure, sni: [db.example.com], servers: [{address: %q}]}", server))
	list := h.list()
	for _, one := range []struct {
		sni, host string
		status    int
	}{
		{"shop.example.com", "private.example.net", 421}, // another certificate than that of the connection
		{"private.example.net", "shop.example.com", 421},
		{"private.example.net", "example.com", 421}, // the public name is not that of the connection
		{"db.example.com", "db.example.com", 421},   // belongs to a TCP proxy, which cannot decrypt
		{"shop.example.com", "db.example.com", 421},
		{"shop.example.com", "any.example.com", 202}, // the same certificate
	} {
		h.expect(h.settings(one.sni, list), one.host, one.status, true)
		if one.sni != "db.example.com" { // it is passed on
			h.expect(h.settings(one.sni, nil), one.host, one.status, false)
		}
	}
	// A client that shows the name of the TCP proxy goes to it, whatever it hides.
	other, _ := ech.Keys(nil).Renew("db.example.com", time.Now())
	if _, _, err := h.request(h.settings("private.example.net", ech.List(other[0].Config)), "private.example.net"); err == nil || errors.As(err, new(*tls.ECHRejectionError)) {
		t.Errorf("got %v, want the server of the TCP proxy, which speaks no TLS", err)
	}
	for _, r := range h.c.ECH()[0].Records {
		if r.Host == "db.example.com" || r.Host == "example.com" {
			t.Errorf("there is a record for %s", r.Host)
		}
	}
}

func TestClientCertificatesAreRequiredOfHiddenNames(t *testing.T) {
	t.Parallel()
	h := startHidden(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, string(certstest.PEM(*h.ca)))
	text := fileText(t, h.file)
	h.apply(strings.Replace(text, "tls: {ech: {public_name: Example.com}}", fmt.Sprintf("tls: {client_auth: required, client_ca: %q, ech: {public_name: example.com}}", ca), 1))
	list := h.list()
	if got, _, err := h.request(h.settings("private.example.net", list), "private.example.net"); err == nil {
		t.Errorf("a client without a certificate got %d", got)
	}
	shown := h.settings("private.example.net", list)
	shown.Certificates = []tls.Certificate{certstest.Sign(t, &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, h.ca)}
	h.expect(shown, "private.example.net", 203, true)
	// A session of before is not resumed without the certificate.
	shown.ClientSessionCache = tls.NewLRUClientSessionCache(4)
	h.expect(shown, "private.example.net", 203, true)
	h.apply(text)
	h.expect(h.settings("private.example.net", list), "private.example.net", 203, true)
}

func fileText(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestKeysOutliveARestartAndAreRotated(t *testing.T) {
	t.Parallel()
	h := startHidden(t)
	list := h.list()
	again := &hidden{house: h.again(), address: h.address, roots: h.roots, ca: h.ca}
	again.expect(again.settings("private.example.net", list), "private.example.net", 203, true) // from the first handshake on
	if got := again.list(); !slices.Equal(got, list) {
		t.Error("the restart has changed the key")
	}
	// The key is of a while ago: another is made, and published later.
	key := store.PrefixECH + "example.com"
	e, err := again.c.state.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := ech.Parse(e.Value, "example.com")
	if err != nil {
		t.Fatal(err)
	}
	age := func(d time.Duration) {
		for _, k := range keys {
			k.Made = k.Made.Add(-d)
		}
		if _, err := again.c.state.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: key, Value: keys.JSON()}}}); err != nil {
			t.Fatal(err)
		}
		again.c.ech.notify()
	}
	uses := func(want string) func() bool {
		return func() bool {
			var all []string
			for _, k := range again.c.ECH()[0].Keys {
				all = append(all, string(k.Use))
			}
			return strings.Join(all, " ") == want
		}
	}
	age(ech.Rotation)
	testhouse.Eventually(t, "another key is announced", uses("announced published"))
	if got := again.list(); !slices.Equal(got, list) {
		t.Error("the new key is published before all machines have it")
	}
	e, err = again.c.state.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if keys, err = ech.Parse(e.Value, "example.com"); err != nil {
		t.Fatal(err)
	}
	age(ech.Announced)
	testhouse.Eventually(t, "it is published", uses("published accepted"))
	if got := again.list(); slices.Equal(got, list) {
		t.Error("the old key is still published")
	}
	again.expect(again.settings("private.example.net", list), "private.example.net", 203, true)
	again.expect(again.settings("private.example.net", again.list()), "private.example.net", 203, true)
}

// Without the setting nothing is made, and clients that offer ECH get what they did before.
func TestWithoutAPublicNameThereAreNoKeys(t *testing.T) {
	t.Parallel()
	h := startHidden(t)
	list := h.list()
	h.apply(strings.NewReplacer("tls: {ech: {public_name: Example.com}}", "tls: {}", "tls: {ech: {public_name: example.com}}", "tls: {}").Replace(fileText(t, h.file)))
	_, _, err := h.request(h.settings("private.example.net", list), "private.example.net")
	var rejected *tls.ECHRejectionError
	if !errors.As(err, &rejected) || rejected.RetryConfigList != nil {
		t.Errorf("got %v, want that ECH is turned off", err)
	}
	if _, _, err = h.get3(h.settings("private.example.net", list), "private.example.net"); !errors.As(err, &rejected) || rejected.RetryConfigList != nil {
		t.Errorf("HTTP/3: got %v, want that ECH is turned off", err)
	}
	h.expect(h.settings("private.example.net", nil), "private.example.net", 203, false)
	if all := h.c.ECH(); len(all) != 0 {
		t.Errorf("got %+v", all)
	}
}

// Machines that share a store decrypt what clients have encrypted for each other.
func TestMachinesHaveTheSameKeysOfECH(t *testing.T) {
	e := newEngine()
	at := testhouse.Addresses(t, 2)
	text := strings.Replace(secure(named(t, "app"), "${SHARED_PORT}"), "protocol: https", "protocol: https, tls: {ech: {public_name: example.com}}", 1)
	t.Setenv("SHARED_PORT", at[0])
	a := newMember(t, "a", text, e)
	t.Setenv("SHARED_PORT", at[1])
	b := newMember(t, "b", "", e)
	list := func(m *member) string {
		if m.c.Plan() == nil || len(m.c.ECH()) == 0 {
			return ""
		}
		return m.c.ECH()[0].ConfigList
	}
	testhouse.Eventually(t, "both have the same key", func() bool { return list(a) != "" && list(a) == list(b) })
	published, _ := base64.StdEncoding.DecodeString(list(a))
	for _, address := range at {
		c, err := tls.Dial("tcp", address, &tls.Config{ServerName: "shop.example.com", EncryptedClientHelloConfigList: published, InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		if !c.ConnectionState().ECHAccepted {
			t.Errorf("%s has not accepted the key", address)
		}
	}
}
