// Package certstest makes certificates for tests: Sign gives one that signs itself,
// or one of an authority that Sign made before, and Write keeps it in files as
// operators do.
package certstest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"path/filepath"
	"testing"
	"time"

	"headgate/internal/file"
)

// Sign returns a certificate for a template, with a new key, signed by an authority or, if
// that is nil, self-signed. Missing fields of the template are set: the serial number, and
// a validity from two days ago to 90 days from now. The chain ends with the authority.
func Sign(t testing.TB, template *x509.Certificate, authority *tls.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if template.SerialNumber == nil {
		template.SerialNumber = big.NewInt(time.Now().UnixNano())
	}
	if template.NotBefore.IsZero() {
		template.NotBefore = time.Now().Add(-48 * time.Hour)
	}
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(90 * 24 * time.Hour)
	}
	made := tls.Certificate{PrivateKey: key}
	parent, signer := template, any(key)
	if authority != nil {
		parent, signer = authority.Leaf, authority.PrivateKey
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	if made.Leaf, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	made.Certificate = [][]byte{der}
	if authority != nil {
		made.Certificate = append(made.Certificate, authority.Certificate...)
	}
	return made
}

// Authority returns the template of a certificate that can sign others.
func Authority(name string) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}
}

// PEM returns the chain of a certificate in PEM.
func PEM(c tls.Certificate) (chain []byte) {
	for _, der := range c.Certificate {
		chain = append(chain, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})...)
	}
	return chain
}

// KeyPEM returns the private key of a certificate in PEM.
func KeyPEM(t testing.TB, c tls.Certificate) []byte {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(c.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// Write writes the chain to NAME.pem and the key to NAME.key, each in one step, and
// returns the names of the files.
func Write(t testing.TB, dir, name string, c tls.Certificate) (certFile, keyFile string) {
	t.Helper()
	certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+".key")
	if err := file.Replace(certFile, PEM(c)); err != nil {
		t.Fatal(err)
	}
	if err := file.Replace(keyFile, KeyPEM(t, c)); err != nil {
		t.Fatal(err)
	}
	return certFile, keyFile
}
