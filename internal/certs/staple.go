package certs

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"golang.org/x/crypto/ocsp"

	"headgate/internal/server/safedial"
)

// Bounds of asking an OCSP responder.
const (
	stapleTimeout = 15 * time.Second
	stapleRetry   = 10 * time.Minute
	stapleMaxSize = 64 << 10
	stapleLongest = 12 * time.Hour // an answer is renewed at least this often
	stapleSoonest = time.Minute    // and at most this often
)

// staple keeps the OCSP answer of a Certificate fresh (RFC 6066, section 8).
type staple struct {
	wake chan struct{} // buffered: one new certificate waits
}

// renew requests an OCSP response for a new certificate.
func (s *staple) renew() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// keep fetches answers until p is retired. It fails open: without an answer the
// certificate is served without one, and with an old answer until that ends.
func (s *staple) keep(p *Certificate) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	timer := time.NewTimer(0)
	defer timer.Stop()
	stopped := make(chan struct{})
	defer close(stopped)
	go func() {
		select {
		case <-p.stop:
			cancel()
		case <-stopped:
		}
	}()
	for {
		select {
		case <-p.stop:
			return
		case <-s.wake:
		case <-timer.C:
		}
		timer.Reset(p.stapleOnce(ctx))
	}
}

// never is a wait for certificates without a responder; a new certificate ends
// it.
const never = 365 * 24 * time.Hour

// stapleOnce fetches one answer and returns when to fetch the next.
func (p *Certificate) stapleOnce(ctx context.Context) time.Duration {
	cert := p.TLS()
	if cert == nil || len(cert.Leaf.OCSPServer) == 0 || len(cert.Certificate) < 2 {
		return never
	}
	ctx, cancel := context.WithTimeout(ctx, stapleTimeout)
	defer cancel()
	raw, answer, err := askOCSP(ctx, cert)
	if err != nil {
		p.log.Warn("no OCSP response, serving the certificate without a staple", "certificate", p.name, "error", err)
		return p.keepStaple(cert)
	}
	stapled := *cert
	stapled.OCSPStaple = raw
	p.current.CompareAndSwap(cert, &stapled)
	left := time.Until(answer.NextUpdate)
	return max(min(max(left/2, stapleRetry), left, stapleLongest), stapleSoonest)
}

// keepStaple keeps the answer that is there and returns when to ask for another. One that
// has ended is taken away: clients would refuse it.
func (p *Certificate) keepStaple(cert *tls.Certificate) time.Duration {
	if cert.OCSPStaple == nil {
		return stapleRetry
	}
	answer, err := ocsp.ParseResponse(cert.OCSPStaple, nil)
	if err == nil && time.Now().Before(answer.NextUpdate) {
		return min(time.Until(answer.NextUpdate)+time.Millisecond, stapleRetry)
	}
	bare := *cert
	bare.OCSPStaple = nil
	p.current.CompareAndSwap(cert, &bare)
	return stapleRetry
}

// responders is the client for URLs in certificates. It connects to no addresses that only
// this machine can reach, since uploading a certificate needs fewer rights.
var responders = func() *http.Client {
	t := safedial.Transport(nil)
	t.Proxy = http.ProxyFromEnvironment
	return &http.Client{Timeout: stapleTimeout, Transport: t}
}()

// askOCSP queries the responder that the certificate names.
func askOCSP(ctx context.Context, cert *tls.Certificate) ([]byte, *ocsp.Response, error) {
	issuer, err := x509.ParseCertificate(cert.Certificate[1])
	if err != nil {
		return nil, nil, fmt.Errorf("issuer: %w", err)
	}
	question, err := ocsp.CreateRequest(cert.Leaf, issuer, nil)
	if err != nil {
		return nil, nil, err
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodPost, cert.Leaf.OCSPServer[0], bytes.NewReader(question))
	if err != nil {
		return nil, nil, err
	}
	rq.Header.Set("Content-Type", "application/ocsp-request")
	rs, err := responders.Do(rq)
	if err != nil {
		return nil, nil, err
	}
	defer rs.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(rs.Body, stapleMaxSize))
	if err != nil {
		return nil, nil, err
	}
	answer, err := ocsp.ParseResponseForCert(raw, cert.Leaf, issuer)
	switch {
	case err != nil:
		return nil, nil, err
	case answer.Status != ocsp.Good:
		return nil, nil, errors.New("the certificate is revoked or unknown, according to the authority")
	case time.Now().After(answer.NextUpdate):
		return nil, nil, errors.New("the answer is out of date")
	}
	return raw, answer, nil
}
