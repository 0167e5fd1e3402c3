package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"headgate/internal/certs"
)

// verifier returns the TLS settings of a client of an admin listener. With a fingerprint,
// it trusts exactly the certificate that has it, or whose public key does. Otherwise it trusts every certificate on
// this machine, where plain HTTP is also accepted; elsewhere the certificate must be valid
// for the host and be issued by a trusted authority.
func verifier(fingerprint, base string, loopback bool) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true} // VerifyConnection does it
	switch {
	case fingerprint != "":
		want, err := hex.DecodeString(strings.NewReplacer(":", "", " ", "").Replace(fingerprint))
		if err != nil || len(want) != sha256.Size {
			return nil, usage("invalid fingerprint %q: expected 32 bytes in hexadecimal, as headgate logs them", fingerprint)
		}
		c.VerifyConnection = func(s tls.ConnectionState) error {
			leaf := s.PeerCertificates[0]
			cert, key := sha256.Sum256(leaf.Raw), sha256.Sum256(leaf.RawSubjectPublicKeyInfo)
			if subtle.ConstantTimeCompare(cert[:], want)|subtle.ConstantTimeCompare(key[:], want) == 1 {
				return nil
			}
			return fmt.Errorf("neither the certificate (SHA-256 fingerprint %s) nor its public key (%s) matches --fingerprint, so this may be another server; if \"headgate status\" on the machine that runs headgate prints the second fingerprint, pass it: it stays the same when the certificate is renewed",
				certs.Fingerprint(leaf.Raw), certs.KeyFingerprint(leaf))
		}
	case !loopback:
		u, err := url.Parse(base)
		if err != nil {
			return nil, err
		}
		c.VerifyConnection = func(s tls.ConnectionState) error { return verify(u.Hostname(), s.PeerCertificates) }
	}
	return c, nil
}

// verify verifies a chain of certificates as every client does. Its error has the
// fingerprint of an untrusted certificate.
func verify(host string, chain []*x509.Certificate) error {
	options := x509.VerifyOptions{DNSName: host, Intermediates: x509.NewCertPool()}
	for _, c := range chain[1:] {
		options.Intermediates.AddCert(c)
	}
	_, err := chain[0].Verify(options)
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	if errors.As(err, &unknown) || errors.As(err, &name) {
		return fmt.Errorf("%w; the SHA-256 fingerprint of its public key is %s: if \"headgate status\" on the machine that runs headgate prints the same, pass it with --fingerprint", err, certs.KeyFingerprint(chain[0]))
	}
	return err
}
