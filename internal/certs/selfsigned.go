package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"path/filepath"
	"sync"
	"time"

	"headgate/internal/file"
)

// How long a self-signed certificate is made for, and how long before its end
// another one is made.
const (
	selfSignedLife  = 365 * 24 * time.Hour
	selfSignedRenew = 30 * 24 * time.Hour
)

// selfSignedName is the name in self-signed certificates. It is no host.
const selfSignedName = "headgate.invalid"

// Certificate is the self-signed certificate that answers where no other fits.
// It is kept in a file, so that who trusted it once finds it again. It is safe
// for use by many goroutines at once.
type Certificate struct {
	file string
	mu   struct {
		sync.Mutex
		cert   *tls.Certificate
		keeps  bool   // new certificates are written
		unkept []byte // a certificate that was made before that
	}
}

// SelfSigned reads the self-signed certificate from dir, or makes one. Nothing is
// written before Keep. An empty dir keeps nothing.
func SelfSigned(dir string) (*Certificate, error) {
	c := &Certificate{}
	if dir != "" {
		c.file = filepath.Join(dir, "self-signed.pem")
	}
	return c, c.load()
}

// Keep writes a certificate that was made to its file, readable for its owner only,
// and every later one. The error says why it could not be: who trusts the
// certificate does not find it again after a restart then.
func (c *Certificate) Keep() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.keeps = true
	pem := c.mu.unkept
	if c.file == "" || pem == nil {
		return nil
	}
	c.mu.unkept = nil
	return c.write(pem)
}

// current returns the certificate, a new one when it is about to end.
func (c *Certificate) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Until(c.mu.cert.Leaf.NotAfter) < selfSignedRenew {
		if cert, _ := c.make(); cert != nil {
			c.mu.cert = cert // also one that could not be written
		}
	}
	return c.mu.cert
}

// load reads the file, or makes a certificate where that cannot be used.
func (c *Certificate) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != "" {
		if pemBytes, err := read(c.file); err == nil {
			cert, err := tls.X509KeyPair(pemBytes, pemBytes)
			if err == nil && time.Until(cert.Leaf.NotAfter) > selfSignedRenew {
				c.mu.cert = &cert
				return nil
			}
		}
	}
	cert, err := c.make()
	c.mu.cert = cert
	return err
}

// make makes a certificate, and writes it to the file if it is to be kept.
func (c *Certificate) make() (*tls.Certificate, error) {
	pemBytes, err := generate(time.Now())
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pemBytes, pemBytes)
	if err != nil {
		return nil, err
	}
	switch {
	case c.file == "":
	case c.mu.keeps:
		err = c.write(pemBytes)
	default:
		c.mu.unkept = pemBytes
	}
	return &cert, err
}

func (c *Certificate) write(pemBytes []byte) error {
	if err := file.Replace(c.file, pemBytes); err != nil {
		return fmt.Errorf("keep the self-signed certificate: %w", err)
	}
	return nil
}

func generate(now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: selfSignedName, Organization: []string{"headgate, self-signed"}},
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(selfSignedLife),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
		DNSNames:              []string{selfSignedName},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	out := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return append(out, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})...), nil
}
