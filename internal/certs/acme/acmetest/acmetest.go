// Package acmetest is an ACME authority for tests: Pebble in the test's process, with a DNS
// server and provider that tests fill. It connects to the configured ports on loopback.
package acmetest

import (
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/letsencrypt/challtestsrv"
	"github.com/letsencrypt/pebble/v2/ca"
	"github.com/letsencrypt/pebble/v2/db"
	"github.com/letsencrypt/pebble/v2/va"
	"github.com/letsencrypt/pebble/v2/wfe"
	"github.com/miekg/dns"
)

// Authority is an authority with its DNS.
type Authority struct {
	// Directory is the URL of its directory, CAFile a file with the authority of its
	// own TLS certificate.
	Directory, CAFile string
	// DNS is its DNS server, at the address Names: every name resolves to 127.0.0.1.
	DNS   *challtestsrv.ChallSrv
	Names string
	// Hooks is the URL of a service for the provider httpreq, which writes to the DNS.
	Hooks string
	// DB is what the authority keeps.
	DB *db.MemoryStore

	// Meddle, if it is set before the authority is used, sees every request first. If it
	// reports true it has answered it.
	Meddle func(w http.ResponseWriter, r *http.Request) bool
	// Done, if it is set too, is called after every request that Meddle has seen.
	Done func()

	settings Settings
	inner    atomic.Pointer[http.Handler]
	t        testing.TB
	fail     atomic.Int32
	orders   atomic.Int32
	records  atomic.Int32
	accounts sync.Mutex // held while an account is made
}

// Settings are how an authority is made.
type Settings struct {
	// HTTPPort and HTTPSPort are the ports for its validation.
	HTTPPort, HTTPSPort int
	// BadNonces is the percentage of requests that it rejects with badNonce.
	BadNonces int
	// EAB makes it ask for an external account binding.
	EAB bool
	// CAA are the names by which CAA records may allow it.
	CAA []string
	// Life is how long certificates live; 0 is the usual time.
	Life time.Duration
}

// Start starts an authority, which ends with the test. It sets environment variables,
// so a test that uses it is not parallel.
func Start(t *testing.T, s Settings) *Authority {
	t.Helper()
	t.Setenv("PEBBLE_VA_NOSLEEP", "1")
	t.Setenv("PEBBLE_AUTHZREUSE", "0")
	t.Setenv("PEBBLE_WFE_NONCEREJECT", strconv.Itoa(s.BadNonces))
	a := &Authority{t: t, settings: s}
	a.startNames()
	a.Rebuild()
	server := httptest.NewTLSServer(http.HandlerFunc(a.serve))
	t.Cleanup(func() { stop(server) })
	a.Directory = server.URL + wfe.DirectoryPath
	a.CAFile = filepath.Join(t.TempDir(), "ca.pem")
	root := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(a.CAFile, root, 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// Rebuild replaces the authority behind the same URL: it knows no earlier accounts, orders
// or certificates, and has a new key.
func (a *Authority) Rebuild() {
	s := a.settings
	a.DB = db.NewMemoryStore()
	quiet := log.New(io.Discard, "", 0)
	profiles := map[string]ca.Profile{"default": {Description: "usual", ValidityPeriod: uint64(s.Life / time.Second)}}
	if s.Life == 0 {
		// Pebble gives an order without a profile any of its profiles.
		profiles["shortlived"] = ca.Profile{Description: "160 hours", ValidityPeriod: 160 * 3600}
	}
	issuer := ca.New(quiet, a.DB, "", "ecdsa", 1, 1, profiles)
	checker := va.New(quiet, s.HTTPPort, s.HTTPSPort, true, a.Names, a.DB)
	front := wfe.New(quiet, a.DB, checker, issuer, s.CAA, true, s.EAB, 0, 0)
	inner := front.Handler()
	a.inner.Store(&inner)
}

// stopWithin bounds the wait for requests in progress at the end of a test.
const stopWithin = 10 * time.Second

// stop closes a server. Pebble's store can be left locked when many orders are made at once
// (its MemoryStore takes a read lock twice): such a test fails, and must not hang as well.
func stop(server *httptest.Server) {
	closed := make(chan struct{})
	go func() {
		server.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(stopWithin):
	}
}

func (a *Authority) serve(w http.ResponseWriter, r *http.Request) {
	if a.fail.Load() > 0 {
		a.fail.Add(-1)
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	if a.Done != nil {
		defer a.Done()
	}
	if a.Meddle != nil && a.Meddle(w, r) {
		return
	}
	switch {
	case strings.Contains(r.URL.Path, "order-plz"):
		a.orders.Add(1)
	case strings.Contains(r.URL.Path, "sign-me-up"):
		// Pebble writes to an account after it has shared it
		a.accounts.Lock()
		defer a.accounts.Unlock()
	}
	(*a.inner.Load()).ServeHTTP(w, r)
}

// Orders returns how many orders were placed.
func (a *Authority) Orders() int { return int(a.orders.Load()) }

// Records returns how many TXT records there are.
func (a *Authority) Records() int { return int(a.records.Load()) }

// Fail makes the next n requests fail with 500.
func (a *Authority) Fail(n int) { a.fail.Store(int32(n)) }

// startNames starts the DNS and the provider that writes to it.
func (a *Authority) startNames() {
	for range 10 {
		if a.tryNames() {
			break
		}
	}
	if a.DNS == nil {
		a.t.Fatal("the DNS of the test found no port")
	}
	hooks := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var record struct{ FQDN, Value string }
		if err := json.NewDecoder(r.Body).Decode(&record); err != nil || !strings.HasSuffix(record.FQDN, ".") {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		switch r.URL.Path {
		case "/present":
			a.DNS.AddDNSTXTRecord(record.FQDN, record.Value)
			a.records.Add(1)
		case "/cleanup":
			a.DNS.DeleteDNSTXTRecord(record.FQDN)
			a.records.Add(-1)
		}
	}))
	a.t.Cleanup(hooks.Close)
	a.Hooks = hooks.URL
}

// tryNames starts the DNS server at a port that is free for UDP and TCP. The server does
// not report whether it could listen, so a query checks it.
func (a *Authority) tryNames() bool {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		a.t.Fatal(err)
	}
	a.Names = tcp.Addr().String()
	udp, err := net.ListenPacket("udp", a.Names)
	tcp.Close()
	if err != nil {
		return false
	}
	udp.Close()
	server, err := challtestsrv.New(challtestsrv.Config{DNSAddrs: []string{a.Names}, Log: log.New(io.Discard, "", 0)})
	if err != nil {
		a.t.Fatal(err)
	}
	server.SetDefaultDNSIPv4("127.0.0.1")
	server.SetDefaultDNSIPv6("")
	go server.Run()
	const ready = "ready.example.com."
	server.AddDNSTXTRecord(ready, rand.Text()) // who else has the port by now, does not know it
	q := new(dns.Msg)
	q.SetQuestion(ready, dns.TypeTXT)
	for _, network := range []string{"udp", "tcp"} {
		answered := false
		for end := time.Now().Add(5 * time.Second); !answered && time.Now().Before(end); time.Sleep(time.Millisecond) {
			client := dns.Client{Net: network, Timeout: time.Second}
			answer, _, err := client.Exchange(q, a.Names)
			answered = err == nil && len(answer.Answer) == 1
		}
		if !answered {
			server.Shutdown()
			return false
		}
	}
	a.DNS = server
	a.t.Cleanup(server.Shutdown)
	return true
}
