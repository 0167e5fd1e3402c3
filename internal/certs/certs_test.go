package certs

import (
	"bytes"
	"context"
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/crypto/ocsp"

	"headgate/internal/certs/certstest"
	"headgate/internal/file"
	"headgate/internal/server/safedial"
	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		responders.CloseIdleConnections()
		os.Exit(code)
	}))
}

// authority signs certificates.
type authority struct {
	t *testing.T
	tls.Certificate
}

func newAuthority(t *testing.T) *authority {
	return &authority{t, certstest.Sign(t, certstest.Authority("test authority"), nil)}
}

// write makes a certificate and writes it and its key to two files.
func (a *authority) write(dir, name string, template *x509.Certificate) (certFile, keyFile string) {
	a.t.Helper()
	return certstest.Write(a.t, dir, name, certstest.Sign(a.t, template, &a.Certificate))
}

func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := file.Replace(name, data); err != nil {
		t.Fatal(err)
	}
}

func hosts(names ...string) *x509.Certificate { return &x509.Certificate{DNSNames: names} }

func (a *authority) open(dir, name string, template *x509.Certificate) *Certificate {
	a.t.Helper()
	certFile, keyFile := a.write(dir, name, template)
	p := newCertificate(name, NewFiles(certFile, keyFile), slog.New(slog.DiscardHandler))
	if err := p.Problem(); err != nil {
		a.t.Fatal(err)
	}
	return p
}

func TestChoiceByName(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	exact := a.open(dir, "exact", hosts("shop.example"))
	wild := a.open(dir, "wild", hosts("*.example", "example"))
	other := a.open(dir, "other", hosts("other.test"))
	self, err := OpenSelfSigned(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSet([]*Certificate{wild, exact, other}, nil, nil, self)
	for _, c := range []struct {
		name string
		want *tls.Certificate
	}{
		{"shop.example", exact.TLS()},
		{"SHOP.Example.", exact.TLS()},
		{"www.example", wild.TLS()},
		{"a.www.example", self.current()},
		{"example", wild.TLS()},
		{"other.test", other.TLS()},
		{"nobody.test", self.current()},
		{"", self.current()},
		{"127.0.0.1", self.current()},
	} {
		if got := s.Choose(c.name, "127.0.0.1"); got != c.want {
			t.Errorf("Choose(%q): got the certificate for %v, want %v", c.name, got.Leaf.DNSNames, c.want.Leaf.DNSNames)
		}
	}
	if got := NewSet([]*Certificate{exact}, nil, other, self).Choose("nobody.test", ""); got != other.TLS() {
		t.Errorf("with a default certificate: got %v, want %v", got.Leaf.DNSNames, other.Leaf().DNSNames)
	}
	if s.Covers("shop.example", "www.example") || !s.Covers("www.example", "mail.example") {
		t.Error("Covers: an exact certificate and a wildcard must not be one, two names of a wildcard must")
	}
}

// TestCoversByTheDefault holds that a connection which got the default
// certificate may carry requests for every host that gets it too.
func TestCoversByTheDefault(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	main, shop := a.open(dir, "main", hosts("main.example")), a.open(dir, "shop", hosts("shop.example"))
	for _, c := range []struct {
		fallback       *Certificate
		opened, wanted string
		want           bool
	}{
		{main, "main.example", "nobody.test", true},
		{main, "nobody.test", "main.example", true},
		{main, "nobody.test", "nothing.test", true},
		{main, "nobody.test", "shop.example", false},
		{main, "shop.example", "nobody.test", false},
		{nil, "main.example", "nobody.test", false},
		{nil, "nobody.test", "nothing.test", true},
	} {
		if got := NewSet([]*Certificate{main, shop}, nil, c.fallback, nil).Covers(c.opened, c.wanted); got != c.want {
			t.Errorf("Covers(%q, %q), default %v: got %v, want %v", c.opened, c.wanted, c.fallback != nil, got, c.want)
		}
	}
}

func TestTheLaterOneOfTwoIsTaken(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	short, long := hosts("a.example"), hosts("a.example")
	short.NotAfter, long.NotAfter = time.Now().Add(time.Hour), time.Now().Add(100*time.Hour)
	first, second := a.open(dir, "short", short), a.open(dir, "long", long)
	for _, pairs := range [][]*Certificate{{first, second}, {second, first}} {
		if got := NewSet(pairs, nil, nil, nil).find("a.example"); got != holder(second) {
			t.Errorf("got %v, want the one that ends later", got)
		}
	}
	if got := first.Status().State; got != Expiring {
		t.Errorf("state with an hour left: got %s, want %s", got, Expiring)
	}
}

func TestOneThatHasEndedGivesWay(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	ended := a.open(dir, "exact", hosts("a.example.com"))
	wild := a.open(dir, "wild", hosts("*.example.com"))
	leaf := *ended.Leaf()
	leaf.NotAfter = time.Now().Add(-time.Minute)
	ended.current.Store(&tls.Certificate{Leaf: &leaf})
	s := NewSet([]*Certificate{ended, wild}, nil, nil, nil)
	if got := s.find("a.example.com"); got != holder(wild) {
		t.Errorf("a wildcard that is good: got %v, want it in place of what has ended", got)
	}
	m := NewManaged(nil)
	byACME := certstest.Sign(t, hosts("a.example.com"), &a.Certificate)
	m.Put("a.example.com", &byACME)
	s = NewSet([]*Certificate{ended}, m, nil, nil)
	if got := s.find("a.example.com"); got != holder(m.Find("a.example.com")) {
		t.Errorf("one by ACME that is good: got %v, want it in place of what has ended", got)
	}
	if got := NewSet([]*Certificate{ended}, nil, nil, nil).find("a.example.com"); got != holder(ended) {
		t.Errorf("nothing else: got %v, want what has ended", got)
	}
}

func TestBadFilesAreNamed(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	certFile, keyFile := a.write(dir, "a", hosts("a.example"))
	_, otherKey := a.write(dir, "b", hosts("b.example"))
	past := hosts("old.example")
	past.NotAfter = time.Now().Add(-24 * time.Hour)
	oldCert, oldKey := a.write(dir, "old", past)
	caFile := filepath.Join(dir, "ca.pem")
	put(t, caFile, certstest.PEM(a.Certificate))
	caKey := filepath.Join(dir, "ca.key")
	put(t, caKey, certstest.KeyPEM(t, a.Certificate))
	huge := filepath.Join(dir, "huge.pem")
	put(t, huge, make([]byte, MaxFile+1))
	garbage := filepath.Join(dir, "garbage.pem")
	put(t, garbage, []byte("\x00\x01not a certificate"))
	for _, c := range []struct{ cert, key, want string }{
		{filepath.Join(dir, "none.pem"), keyFile, "none.pem: no such file"},
		{certFile, filepath.Join(dir, "none.key"), "none.key: no such file"},
		{certFile, otherKey, "private key does not match"},
		{keyFile, keyFile, "a.key with key"},
		{garbage, keyFile, "garbage.pem"},
		{huge, keyFile, "more than a certificate can have"},
		{dir, keyFile, "not a regular file"},
		{oldCert, oldKey, "expired on"},
		{caFile, caKey, "an authority's certificate"},
	} {
		if _, err := Load(c.cert, c.key); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Load(%s, %s): got %v, want an error with %q", filepath.Base(c.cert), filepath.Base(c.key), err, c.want)
		}
	}
}

func TestReloadKeepsTheOldOneWhenTheNewIsWrong(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	p := a.open(dir, "a", hosts("a.example"))
	before := p.TLS()

	_, wrongKey := a.write(t.TempDir(), "x", hosts("x.example"))
	wrong, err := os.ReadFile(wrongKey)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, "a.key"), wrong)
	p.reload()
	if p.TLS() != before {
		t.Fatal("a certificate with a wrong key was taken up")
	}
	if got := p.Status().Problem; !strings.Contains(got, "does not match") {
		t.Errorf("problem: got %q, want one that says that the key does not match", got)
	}

	a.write(dir, "a", hosts("a.example", "b.example"))
	p.reload()
	if got := p.Leaf().DNSNames; len(got) != 2 {
		t.Fatalf("after a good change: names %v, want two", got)
	}
	if got := p.Status().Problem; got != "" {
		t.Errorf("problem after a good change: %q, want none", got)
	}
}

func TestAChangedFileIsLoaded(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	loaded := make(chan struct{}, 1)
	certFile, keyFile := a.write(dir, "a", hosts("a.example"))
	p := newCertificate("a", NewFiles(certFile, keyFile), slog.New(slog.NewTextHandler(onWrite(func(line string) {
		if strings.Contains(line, "certificate loaded") {
			loaded <- struct{}{}
		}
	}), nil)))
	p.follow()
	defer p.retire()
	a.write(dir, "a", hosts("changed.example"))
	ctx, cancel := testhouse.Patient(t.Context())
	defer cancel()
	select {
	case <-loaded:
	case <-ctx.Done():
		t.Fatal("the changed files were not loaded")
	}
	if got := p.Leaf().DNSNames[0]; got != "changed.example" {
		t.Errorf("got %s, want changed.example", got)
	}
}

func TestTheLogHearsOfTheEnd(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	template := hosts("a.example")
	template.NotAfter = time.Now().Add(30 * 24 * time.Hour)
	p := a.open(dir, "a", template)
	var log strings.Builder
	q := &Certificate{name: "a", log: slog.New(slog.NewTextHandler(&log, nil))}
	q.current.Store(p.TLS())
	end := p.Leaf().NotAfter
	told := Valid
	for _, before := range []time.Duration{20 * 24 * time.Hour, 9 * 24 * time.Hour, 8 * 24 * time.Hour, -time.Second, -time.Hour} {
		told = q.logState(told, end.Add(-before))
	}
	if got := log.String(); strings.Count(got, "expires soon") != 1 || strings.Count(got, "has expired") != 1 || told != Expired {
		t.Errorf("state %s; got\n%s\nwant one line each for the near end and the end", told, got)
	}
}

// TestTicketKeysChange holds that old keys open tickets for a while, and that no
// more than a few are kept.
func TestTicketKeysChange(t *testing.T) {
	tickets := NewTickets()
	tickets.Start()
	defer tickets.Retire()
	cfg := NewConfig(Policy{MinVersion: tls.VersionTLS12}, NewSet(nil, nil, nil, nil), tickets)
	first := tickets.mu.keys[0]
	for range ticketKeys - 1 {
		tickets.mu.timer.Stop()
		tickets.rotate()
	}
	if got := tickets.mu.keys; len(got) != ticketKeys || got[ticketKeys-1] != first {
		t.Errorf("after %d changes the first key is not the last of %d", ticketKeys-1, len(got))
	}
	tickets.mu.timer.Stop()
	tickets.rotate()
	if got := tickets.mu.keys; len(got) != ticketKeys || got[ticketKeys-1] == first {
		t.Errorf("the first key is kept for ever, among %d", len(got))
	}
	tickets.Forget(cfg)
	if n := len(tickets.mu.configs); n != 0 {
		t.Errorf("%d configurations are kept, want none", n)
	}
}

// TestCiphersOfTLS12 holds that no cipher is offered that HTTP/2 forbids.
func TestCiphersOfTLS12(t *testing.T) {
	tickets := NewTickets()
	defer tickets.Retire()
	cfg := NewConfig(Policy{MinVersion: tls.VersionTLS12}, NewSet(nil, nil, nil, nil), tickets)
	for _, id := range cfg.CipherSuites {
		if name := tls.CipherSuiteName(id); !strings.HasPrefix(name, "TLS_ECDHE_") || strings.Contains(name, "_CBC_") || strings.Contains(name, "RC4") {
			t.Errorf("%s is offered", name)
		}
	}
	if len(cfg.CipherSuites) == 0 {
		t.Error("all ciphers of crypto/tls are offered")
	}
}

type onWrite func(string)

func (f onWrite) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }

func TestSelfSignedIsKept(t *testing.T) {
	kept := store.ValuesOf(memory.New())
	first, err := OpenSelfSigned(kept)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Load(store.KeySelfSigned); err == nil {
		t.Error("it is written before anybody wants it kept")
	}
	if err := first.Keep(); err != nil {
		t.Fatal(err)
	}
	second, err := OpenSelfSigned(kept)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.current().Certificate[0], second.current().Certificate[0]) {
		t.Error("another certificate after a restart, want the same")
	}
	if err := kept.Keep(store.KeySelfSigned, []byte("broken")); err != nil {
		t.Fatal(err)
	}
	if third, err := OpenSelfSigned(kept); err != nil || third.current() == nil {
		t.Errorf("with a broken one: %v, want a new certificate", err)
	}
}

// Who trusts the public key, such as an agent on another machine, trusts the next certificate.
func TestTheNextSelfSignedCertificateHasTheKey(t *testing.T) {
	kept := store.ValuesOf(memory.New())
	old, err := generate(nil, time.Now().Add(selfSignedRenew-selfSignedLife-time.Hour))
	if err == nil {
		err = kept.Keep(store.KeySelfSigned, old)
	}
	if err != nil {
		t.Fatal(err)
	}
	former, err := tls.X509KeyPair(old, old)
	if err != nil {
		t.Fatal(err)
	}
	c, err := OpenSelfSigned(kept)
	if err != nil {
		t.Fatal(err)
	}
	restarted := c.current().Leaf
	ends := *restarted
	ends.NotAfter = time.Now() // as if the process ran on for a year
	c.mu.cert = &tls.Certificate{Certificate: c.mu.cert.Certificate, PrivateKey: c.mu.cert.PrivateKey, Leaf: &ends}
	later := c.current().Leaf
	for _, leaf := range []*x509.Certificate{restarted, later} {
		if leaf.Equal(former.Leaf) || time.Until(leaf.NotAfter) < selfSignedRenew {
			t.Errorf("the certificate until %v is not renewed", leaf.NotAfter)
		}
		if KeyFingerprint(leaf) != KeyFingerprint(former.Leaf) {
			t.Errorf("the public key changed from %s to %s", KeyFingerprint(former.Leaf), KeyFingerprint(leaf))
		}
	}
	if restarted.Equal(later) {
		t.Error("the certificate is not renewed while the process runs")
	}
}

// TestStaple plays a responder for a certificate that names it.
func TestStaple(t *testing.T) {
	dir, a := t.TempDir(), newAuthority(t)
	status, left := ocsp.Good, time.Hour
	var leaf *x509.Certificate
	responder := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer, err := ocsp.CreateResponse(a.Leaf, a.Leaf, ocsp.Response{Status: status, SerialNumber: leaf.SerialNumber,
			ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(left)}, a.PrivateKey.(crypto.Signer))
		if err != nil {
			t.Error(err)
		}
		w.Write(answer)
	}))
	defer responder.Close()
	template := hosts("a.example")
	template.OCSPServer = []string{responder.URL}
	certFile, keyFile := a.write(dir, "a", template)
	cert, err := Load(certFile, keyFile)
	if err != nil {
		t.Fatal(err)
	}
	leaf = cert.Leaf
	p := &Certificate{name: "a", log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	p.current.Store(cert)

	if next := p.stapleOnce(context.Background()); next > time.Hour || p.TLS().OCSPStaple == nil {
		t.Fatalf("no answer was stapled; next look in %v", next)
	}
	status = ocsp.Revoked
	if next := p.stapleOnce(context.Background()); next != stapleRetry || p.TLS().OCSPStaple == nil {
		t.Errorf("a revoked answer: next look in %v, want %v and the good answer kept until it ends", next, stapleRetry)
	}

	p.loader = NewFiles(certFile, keyFile)
	p.staple.wake = make(chan struct{}, 1)
	p.reload() // the same one, as when its files were touched
	if p.TLS().OCSPStaple == nil {
		t.Error("the answer was dropped with a certificate that is the same")
	}
	status, left = ocsp.Good, 3*time.Minute
	if next := p.stapleOnce(context.Background()); next > left {
		t.Errorf("an answer that ends in %v is asked for again in %v", left, next)
	}
	status = ocsp.Revoked
	if next := p.stapleOnce(context.Background()); next > left {
		t.Errorf("an answer that ends in %v is looked at again in %v", left, next)
	}

	elsewhere := *cert.Leaf
	elsewhere.OCSPServer = []string{"http://169.254.169.254/latest/api/token"}
	cert.Leaf = &elsewhere
	if _, _, err := askOCSP(t.Context(), cert); !errors.Is(err, safedial.ErrRefused) {
		t.Errorf("a certificate sends us to the addresses of the link: %v", err)
	}
}
