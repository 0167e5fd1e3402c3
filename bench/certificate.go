//go:build linux

package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"path/filepath"
	"time"
)

// certificate is the one that every peer shows: self-made, ECDSA P-256, for the
// hosts of the harness and for 127.0.0.1, which is what wrk asks for.
type certificate struct {
	file string // PEM, the certificate
	key  string // PEM, its key
	both string // PEM, one after the other: HAProxy wants one file
	leaf []byte // DER
}

// makeCertificate makes a certificate and puts it into dir.
func makeCertificate(dir string) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: "bench.example"},
		DNSNames:     []string{"bench.example", "*.bench.example"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().AddDate(0, 0, 30),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	leaf, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	certText := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf}))
	keyText := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}))
	for name, text := range map[string]string{"cert.pem": certText, "key.pem": keyText, "both.pem": certText + keyText} {
		if err := writeFile(dir, name, text); err != nil {
			return nil, err
		}
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	return &certificate{file: in("cert.pem"), key: in("key.pem"), both: in("both.pem"), leaf: leaf}, nil
}

// client returns what a client of this harness speaks TLS with: version 1.3 and
// X25519, which all peers know. It fails where a peer shows another certificate
// or agrees on anything else than the others do. Sessions are resumed when there
// is a cache.
func (c *certificate) client(protocol string, sessions tls.ClientSessionCache) *tls.Config {
	return &tls.Config{
		ServerName:       fmt.Sprintf(hostFormat, 0),
		MinVersion:       tls.VersionTLS13,
		CurvePreferences: []tls.CurveID{tls.X25519},
		NextProtos:       []string{protocol},
		// The certificate is compared below: cheaper, and stricter.
		InsecureSkipVerify: true,
		ClientSessionCache: sessions,
		VerifyConnection: func(s tls.ConnectionState) error {
			return c.agreed(s, protocol)
		},
	}
}

// agreed reports what is not as it is for every peer.
func (c *certificate) agreed(s tls.ConnectionState, protocol string) error {
	switch {
	case len(s.PeerCertificates) == 0 || !bytes.Equal(s.PeerCertificates[0].Raw, c.leaf):
		return errors.New("another certificate than the configured one")
	case s.CipherSuite != tls.TLS_AES_128_GCM_SHA256:
		return fmt.Errorf("cipher suite %s", tls.CipherSuiteName(s.CipherSuite))
	case s.NegotiatedProtocol != protocol:
		return fmt.Errorf("protocol %q, want %q", s.NegotiatedProtocol, protocol)
	}
	return nil
}
