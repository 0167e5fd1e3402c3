package https

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// authority signs certificates.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  crypto.Signer
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{t: t}
	a.cert, a.key = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// option changes a certificate before it is signed.
type option func(*x509.Certificate)

// expired makes a certificate that has ended.
func expired(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Hour) }

// forAddress gives a certificate an address as a name.
func forAddress(ip string) option {
	return func(c *x509.Certificate) { c.IPAddresses = append(c.IPAddresses, net.ParseIP(ip)) }
}

func (a *authority) sign(template *x509.Certificate) (*x509.Certificate, crypto.Signer) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore = time.Now().Add(-48 * time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(90 * 24 * time.Hour)
	}
	parent, signer := template, crypto.Signer(key)
	if a.key != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return cert, key
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
	cert, key := a.sign(template)
	return tls.Certificate{Certificate: [][]byte{cert.Raw, a.cert.Raw}, PrivateKey: key, Leaf: cert}
}

// pool returns a pool with the authority alone.
func (a *authority) pool() *x509.CertPool {
	p := x509.NewCertPool()
	p.AddCert(a.cert)
	return p
}

// pem returns the authority's own certificate.
func (a *authority) pem() []byte { return block("CERTIFICATE", a.cert.Raw) }

func block(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// keep writes a certificate and its key to NAME.pem and NAME.key.
func keep(t *testing.T, dir, name string, c tls.Certificate) {
	t.Helper()
	var chain []byte
	for _, der := range c.Certificate {
		chain = append(chain, block("CERTIFICATE", der)...)
	}
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, name+".pem"), chain)
	put(t, filepath.Join(dir, name+".key"), block("PRIVATE KEY", der))
}

// put writes a file in one step.
func put(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.WriteFile(name+"~", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(name+"~", name); err != nil {
		t.Fatal(err)
	}
}
