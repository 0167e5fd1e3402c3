package https

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
	"headgate/internal/file"
)

// authority signs certificates.
type authority struct {
	t *testing.T
	tls.Certificate
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	return &authority{t, certstest.Sign(t, certstest.Authority(name), nil)}
}

// option changes a certificate before it is signed.
type option func(*x509.Certificate)

// expired makes a certificate that has ended.
func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }

// forAddress gives a certificate an address as a name.
func forAddress(ip string) option {
	return func(c *x509.Certificate) { c.IPAddresses = append(c.IPAddresses, net.ParseIP(ip)) }
}

// host returns the certificate of a server with names, the first of which is its
// subject too.
func (a *authority) host(names []string, options ...option) tls.Certificate {
	a.t.Helper()
	return a.make(&x509.Certificate{Subject: pkix.Name{CommonName: names[0]}, DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}, options)
}

// person returns the certificate of a client.
func (a *authority) person(name string, options ...option) tls.Certificate {
	a.t.Helper()
	return a.make(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, options)
}

func (a *authority) make(template *x509.Certificate, options []option) tls.Certificate {
	for _, o := range options {
		o(template)
	}
	return certstest.Sign(a.t, template, &a.Certificate)
}

// pool returns a pool with the authority alone.
func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.Leaf)
	return p
}

// pem returns the authority's own certificate.
func (a *authority) pem() []byte { return certstest.PEM(a.Certificate) }

// keep writes a certificate and its key to NAME.pem and NAME.key.
func keep(t *testing.T, dir, name string, c tls.Certificate) {
	t.Helper()
	certstest.Write(t, dir, name, c)
}

// put writes a file in one step.
func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := file.Replace(name, data); err != nil {
		t.Fatal(err)
	}
}
