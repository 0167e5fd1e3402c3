package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"sync"
	"time"

	"headgate/internal/store"
)

// How long a self-signed certificate is made for, and how long before its end
// another one is made.
const (
	selfSignedLife  = 365 * 24 * time.Hour
	selfSignedRenew = 30 * 24 * time.Hour
)

// selfSignedName is the name in self-signed certificates. It is no host.
const selfSignedName = "headgate.invalid"

// SelfSigned is the certificate that is presented if no other certificate matches. It is saved, so
// that clients have to trust it only once; renewed certificates have the same key. It is safe for
// concurrent use.
type SelfSigned struct {
	kept store.Values // nil for nowhere
	mu   struct {
		sync.Mutex
		cert   *tls.Certificate
		keeps  bool   // new certificates are written
		unkept []byte // a certificate that was made before that
	}
}

// OpenSelfSigned loads the self-signed certificate from where it is kept, or makes one.
// Nothing is written before Keep. Nil keeps nothing.
func OpenSelfSigned(kept store.Values) (*SelfSigned, error) {
	c := &SelfSigned{kept: kept}
	return c, c.load()
}

// Keep stores the certificate, and every later one. If it returns an error, there will be a
// new certificate after a restart, which clients have to trust again.
func (c *SelfSigned) Keep() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mu.keeps = true
	pem := c.mu.unkept
	if c.kept == nil || pem == nil {
		return nil
	}
	c.mu.unkept = nil
	return c.write(pem)
}

// current returns the certificate, a new one when it is about to expire.
func (c *SelfSigned) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Until(c.mu.cert.Leaf.NotAfter) < selfSignedRenew {
		if cert, _ := c.make(); cert != nil {
			c.mu.cert = cert // also one that could not be written
		}
	}
	return c.mu.cert
}

// load takes the one that is kept, or makes a certificate where that cannot be used.
func (c *SelfSigned) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept != nil {
		if pemBytes, err := c.kept.Load(store.KeySelfSigned); err == nil {
			cert, err := tls.X509KeyPair(pemBytes, pemBytes)
			if err == nil {
				c.mu.cert = &cert
			}
			if err == nil && time.Until(cert.Leaf.NotAfter) > selfSignedRenew {
				return nil
			}
		}
	}
	cert, err := c.make()
	c.mu.cert = cert
	return err
}

// make creates a certificate, with the key of the previous one if there is one, and saves it
// after Keep was called.
func (c *SelfSigned) make() (*tls.Certificate, error) {
	var key *ecdsa.PrivateKey
	if c.mu.cert != nil {
		key, _ = c.mu.cert.PrivateKey.(*ecdsa.PrivateKey)
	}
	pemBytes, err := generate(key, time.Now())
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(pemBytes, pemBytes)
	if err != nil {
		return nil, err
	}
	switch {
	case c.kept == nil:
	case c.mu.keeps:
		err = c.write(pemBytes)
	default:
		c.mu.unkept = pemBytes
	}
	return &cert, err
}

func (c *SelfSigned) write(pemBytes []byte) error {
	if err := c.kept.Keep(store.KeySelfSigned, pemBytes); err != nil {
		return fmt.Errorf("keep the self-signed certificate: %w", err)
	}
	return nil
}

// generate returns a certificate for a key, and the key. If the key is nil, it creates one.
func generate(key *ecdsa.PrivateKey, now time.Time) (_ []byte, err error) {
	if key == nil {
		if key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
			return nil, err
		}
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

// Fingerprint returns the SHA-256 fingerprint of a certificate in DER form, as browsers
// show it, or of a public key.
func Fingerprint(der []byte) string {
	sum := sha256.Sum256(der)
	return strings.ReplaceAll(fmt.Sprintf("% X", sum), " ", ":")
}

// KeyFingerprint returns the SHA-256 fingerprint of the public key of a certificate (its
// SubjectPublicKeyInfo). Later certificates for the key have the same.
func KeyFingerprint(leaf *x509.Certificate) string { return Fingerprint(leaf.RawSubjectPublicKeyInfo) }
