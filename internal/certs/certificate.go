// Package certs holds the certificates of HTTPS ports: it loads them from files, reloads
// them when the files change, staples OCSP responses, selects one by server name, and makes
// a self-signed one if none matches.
//
// A Certificate is a certificate with its key. A Loader loads it; when the Loader has a new
// version, the Certificate replaces it without a change of the configuration. A Keeper
// holds the certificates of the active configuration, and participates in changes: Prepare
// loads, Commit starts following files and requesting OCSP responses, Cancel discards. A
// Set is what a port selects from; it is immutable. The package does not know what a port
// is or how a certificate is configured.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// lookInterval is how often the expiry of a certificate is checked.
const lookInterval = time.Minute

// expiringBefore is how long before its end a certificate counts as expiring; one
// that lives a short time does so in the last third of it.
const expiringBefore = 14 * 24 * time.Hour

// State is the state of a certificate.
type State string

// The states of a certificate.
const (
	Valid    State = "valid"
	Expiring State = "expiring"
	Expired  State = "expired"
	Missing  State = "missing"
)

// Certificate is a certificate and its key. It is safe for concurrent use.
type Certificate struct {
	// constant
	name    string
	loader  Loader
	log     *slog.Logger
	stop    chan struct{}
	stopped sync.WaitGroup

	current atomic.Pointer[tls.Certificate] // nil while there is none that can be used
	staple  staple

	mu struct {
		sync.Mutex
		problem error // why what the loader has now is not used, or nil
		since   time.Time
	}
}

// Status is the status of a certificate.
type Status struct {
	// Name is the certificate's name in the configuration.
	Name string `json:"name"`
	// State is valid, expiring, expired or missing.
	State State `json:"state"`
	// Since is when the certificate came into use, or the problem began.
	Since time.Time `json:"since"`
	// Problem is why the current files are not used, or "".
	Problem string `json:"problem,omitempty"`
	// Names are the host names of the certificate.
	Names []string `json:"names,omitempty"`
	// NotBefore is the start of its validity.
	NotBefore time.Time `json:"not_before,omitzero"`
	// NotAfter is the end of its validity.
	NotAfter time.Time `json:"not_after,omitzero"`
	// DaysLeft is the number of whole days until it expires, negative if it has expired;
	// nil if there is none.
	DaysLeft *int `json:"days_left,omitempty"`
}

// newCertificate loads a certificate. What cannot be used is the certificate's Problem. Nothing
// runs before begin.
func newCertificate(name string, loader Loader, log *slog.Logger) *Certificate {
	p := &Certificate{name: name, loader: loader, log: log, stop: make(chan struct{}), staple: staple{wake: make(chan struct{}, 1)}}
	cert, err := loader.Load()
	p.mu.problem, p.mu.since = err, time.Now()
	if err == nil {
		p.current.Store(cert)
	}
	return p
}

// follow follows what the loader has, and keeps an OCSP answer.
func (c *Certificate) follow() {
	c.stopped.Go(func() { c.loader.Follow(c.stop, c.reload) })
	c.stopped.Go(c.watch)
	c.stopped.Go(func() { c.staple.keep(c) })
}

// retire ends what begin began, and waits until it has.
func (c *Certificate) retire() {
	close(c.stop)
	c.stopped.Wait()
}

// TLS returns the certificate as it is now, nil if there is none that can
// be used.
func (c *Certificate) TLS() *tls.Certificate { return c.current.Load() }

// from returns where the certificate comes from.
func (c *Certificate) from() string {
	if _, ok := c.loader.(*onShelf); ok {
		return "stored"
	}
	return "file"
}

// Leaf returns the server's own certificate, nil if there is none.
func (c *Certificate) Leaf() *x509.Certificate {
	if cert := c.current.Load(); cert != nil {
		return cert.Leaf
	}
	return nil
}

// ended reports whether clients refuse it by now.
func (c *Certificate) ended() bool {
	leaf := c.Leaf()
	return leaf == nil || time.Now().After(leaf.NotAfter)
}

// Problem returns why what the loader has now is not used, nil if it is.
func (c *Certificate) Problem() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.problem
}

// Status returns the status of the certificate.
func (c *Certificate) Status() Status {
	s := Status{Name: c.name, State: Missing}
	c.mu.Lock()
	s.Since = c.mu.since
	if c.mu.problem != nil {
		s.Problem = c.mu.problem.Error()
	}
	c.mu.Unlock()
	if leaf := c.Leaf(); leaf != nil {
		now := time.Now()
		days := DaysLeft(leaf.NotAfter, now)
		s.State, s.Names, s.NotBefore, s.NotAfter, s.DaysLeft = stateOf(leaf, now), leaf.DNSNames, leaf.NotBefore, leaf.NotAfter, &days
	}
	return s
}

// DaysLeft returns the whole days until a moment, rounded down: below zero it is past.
func DaysLeft(end, now time.Time) int {
	const day = 24 * time.Hour
	left := end.Sub(now)
	days := int(left / day)
	if left < 0 && left%day != 0 {
		days--
	}
	return days
}

// stateOf returns the state of a certificate at a time.
func stateOf(leaf *x509.Certificate, now time.Time) State {
	return StateAt(leaf.NotBefore, leaf.NotAfter, now)
}

// Warning returns how long before its end a certificate with a life is expiring.
func Warning(notBefore, notAfter time.Time) time.Duration {
	return min(expiringBefore, notAfter.Sub(notBefore)/3)
}

// StateAt returns the state of a certificate with a life at a time.
func StateAt(notBefore, notAfter, now time.Time) State {
	switch left := notAfter.Sub(now); {
	case left <= 0:
		return Expired
	case left < Warning(notBefore, notAfter):
		return Expiring
	}
	return Valid
}

// logState logs when the certificate that is served is about to expire and when it has
// expired, for operators who do not check the status. It returns the logged state.
func (c *Certificate) logState(logged State, now time.Time) State {
	leaf := c.Leaf()
	if leaf == nil {
		return logged
	}
	state := stateOf(leaf, now)
	switch {
	case state == logged:
	case state == Expiring:
		c.log.Warn("certificate expires soon", "certificate", c.name, "not_after", leaf.NotAfter)
	case state == Expired:
		c.log.Error("certificate has expired, clients reject it", "certificate", c.name, "not_after", leaf.NotAfter)
	}
	return state
}

// watch logs when the certificate expires.
func (c *Certificate) watch() {
	tick := time.NewTicker(lookInterval)
	defer tick.Stop()
	logged := Valid
	for {
		logged = c.logState(logged, time.Now())
		select {
		case <-c.stop:
			return
		case <-tick.C:
		}
	}
}

// reload takes up what the loader has now, if it can be used.
func (c *Certificate) reload() {
	cert, err := c.loader.Load()
	c.mu.Lock()
	c.mu.since, c.mu.problem = time.Now(), err
	c.mu.Unlock()
	if err != nil {
		what := "cannot load certificate, keeping the previous one"
		if c.TLS() == nil {
			what = "cannot load certificate, clients get a self-signed one"
		}
		c.log.Error(what, "certificate", c.name, "error", err)
		return
	}
	if was := c.TLS(); was != nil && bytes.Equal(was.Certificate[0], cert.Certificate[0]) {
		cert.OCSPStaple = was.OCSPStaple // the response is valid for this one, too
	}
	c.current.Store(cert)
	c.staple.renew()
	c.log.Info("certificate loaded", "certificate", c.name, "names", cert.Leaf.DNSNames, "not_after", cert.Leaf.NotAfter)
}
