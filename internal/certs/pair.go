// Package certs holds the certificates of HTTPS ports: it loads them from files,
// loads them again when the files change, staples OCSP answers, chooses one by
// the name that a client asks for, and makes a self-signed one where none fits.
//
// A Pair is one certificate with its key and lives as long as a plan names it.
// A Set is what a port chooses from; it is immutable. Neither knows what a port
// is or how a certificate is configured.
package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/file"
)

// maxFile is the largest certificate or key file that is read, in bytes.
const maxFile = 1 << 20

// pollInterval is how often the files of a certificate are looked at.
const pollInterval = 2 * time.Second

// expiringBefore is how long before its end a certificate counts as expiring; one
// that lives a short time does so in the last third of it.
const expiringBefore = 14 * 24 * time.Hour

// State is how a certificate stands.
type State string

// The states of a certificate.
const (
	Valid    State = "valid"
	Expiring State = "expiring"
	Expired  State = "expired"
	Missing  State = "missing"
)

// Pair is a certificate and its key. It is safe for use by many goroutines at
// once.
type Pair struct {
	// constant
	name, certFile, keyFile string
	log                     *slog.Logger
	stop                    chan struct{}
	stopped                 sync.WaitGroup

	current atomic.Pointer[tls.Certificate]
	staple  staple

	mu struct {
		sync.Mutex
		problem string // why the files as they are now are not used, or ""
		since   time.Time
	}
}

// Status is what is told of a certificate.
type Status struct {
	// Name is the certificate's name in the configuration.
	Name string `json:"name"`
	// State is valid, expiring, expired or missing.
	State State `json:"state"`
	// Since is when the certificate came into use, or the problem began.
	Since time.Time `json:"since"`
	// Problem is why the files as they are now are not used, or "".
	Problem string `json:"problem,omitempty"`
	// Names are the host names of the certificate, NotAfter its end.
	Names    []string  `json:"names,omitempty"`
	NotAfter time.Time `json:"not_after,omitzero"`
}

// Load reads a certificate and its key from PEM files. The error says which
// file and what is wrong with it.
func Load(certFile, keyFile string) (*tls.Certificate, error) {
	certPEM, err := read(certFile)
	if err != nil {
		return nil, err
	}
	keyPEM, err := read(keyFile)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return nil, fmt.Errorf("certificate %s with key %s: %w", certFile, keyFile, plain(err))
	}
	if cert.Leaf.IsCA && len(cert.Leaf.DNSNames)+len(cert.Leaf.IPAddresses) == 0 {
		return nil, fmt.Errorf("certificate %s: it is an authority's certificate, not a server's; the server's must come first in the file", certFile)
	}
	if now := time.Now(); now.After(cert.Leaf.NotAfter) {
		return nil, fmt.Errorf("certificate %s: expired on %s", certFile, cert.Leaf.NotAfter.Format(time.DateOnly))
	}
	return &cert, nil
}

// plain takes the package name off an error of crypto/tls.
func plain(err error) error {
	if text, ok := bytes.CutPrefix([]byte(err.Error()), []byte("tls: ")); ok {
		return errors.New(string(text))
	}
	return err
}

func read(name string) ([]byte, error) {
	return file.Read(name, maxFile, "more than a certificate can have")
}

// Open loads a certificate and keeps it as its files are: when they change they
// are loaded again, and when what they hold then cannot be used the certificate
// before stays and the log says why. name is what the log calls it. Retire
// stops that.
func Open(name, certFile, keyFile string, log *slog.Logger) (*Pair, error) {
	p := &Pair{name: name, certFile: certFile, keyFile: keyFile, log: log, stop: make(chan struct{}), staple: staple{wake: make(chan struct{}, 1)}}
	seen := p.look()
	cert, err := Load(certFile, keyFile)
	if err != nil {
		return nil, err
	}
	p.current.Store(cert)
	p.mu.since = time.Now()
	p.stopped.Go(func() { p.watch(seen) })
	p.stopped.Go(func() { p.staple.keep(p) })
	return p, nil
}

// Retire stops the watch over the files and waits until it has ended.
func (p *Pair) Retire() {
	close(p.stop)
	p.stopped.Wait()
}

// Certificate returns the certificate as it is now.
func (p *Pair) Certificate() *tls.Certificate { return p.current.Load() }

// Leaf returns the server's own certificate.
func (p *Pair) Leaf() *x509.Certificate { return p.current.Load().Leaf }

// Status returns how the certificate stands.
func (p *Pair) Status() Status {
	leaf := p.Leaf()
	p.mu.Lock()
	defer p.mu.Unlock()
	return Status{
		Name: p.name, State: stateOf(leaf, time.Now()), Since: p.mu.since, Problem: p.mu.problem,
		Names: leaf.DNSNames, NotAfter: leaf.NotAfter,
	}
}

// stateOf returns how a certificate stands at a time.
func stateOf(leaf *x509.Certificate, now time.Time) State {
	switch left := leaf.NotAfter.Sub(now); {
	case left <= 0:
		return Expired
	case left < min(expiringBefore, leaf.NotAfter.Sub(leaf.NotBefore)/3):
		return Expiring
	}
	return Valid
}

// tell tells the log when the certificate that is served nears its end and when
// it has come: nobody else may look. It returns the state that was told.
func (p *Pair) tell(told State, now time.Time) State {
	leaf := p.Leaf()
	state := stateOf(leaf, now)
	switch {
	case state == told:
	case state == Expiring:
		p.log.Warn("certificate ends soon", "certificate", p.name, "not_after", leaf.NotAfter)
	case state == Expired:
		p.log.Error("certificate has expired, clients refuse it", "certificate", p.name, "not_after", leaf.NotAfter)
	}
	return state
}

// stamp tells one version of the two files from another.
type stamp [2]struct {
	size    int64
	changed time.Time
	mode    fs.FileMode
}

func (p *Pair) look() (s stamp) {
	for i, name := range []string{p.certFile, p.keyFile} {
		if info, err := os.Stat(name); err == nil {
			s[i].size, s[i].changed, s[i].mode = info.Size(), info.ModTime(), info.Mode()
		}
	}
	return s
}

// watch loads the files again when they changed. A change is taken up when it
// has been the same for two looks, so that a file is not read half-written.
func (p *Pair) watch(used stamp) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	last, told := used, Valid
	for {
		told = p.tell(told, time.Now())
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		now := p.look()
		if now != used && now == last {
			used = now
			p.reload()
		}
		last = now
	}
}

// reload takes up what the files hold now, if it can be used.
func (p *Pair) reload() {
	cert, err := Load(p.certFile, p.keyFile)
	p.mu.Lock()
	p.mu.since, p.mu.problem = time.Now(), ""
	if err != nil {
		p.mu.problem = err.Error()
	}
	p.mu.Unlock()
	if err != nil {
		p.log.Error("certificate cannot be used, the one before is kept", "certificate", p.name, "error", err)
		return
	}
	p.current.Store(cert)
	p.staple.renew()
	p.log.Info("certificate loaded", "certificate", p.name, "names", cert.Leaf.DNSNames, "not_after", cert.Leaf.NotAfter)
}
