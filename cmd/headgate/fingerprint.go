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

	"headgate/internal/admin"
)

// verifier returns the TLS settings of a client of an admin listener. With a fingerprint,
// it trusts exactly the certificate that has it. Otherwise it trusts every certificate on
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
			if have := sha256.Sum256(s.PeerCertificates[0].Raw); subtle.ConstantTimeCompare(have[:], want) != 1 {
				return fmt.Errorf("the SHA-256 fingerprint of the certificate is %s, which does not match --fingerprint", admin.Fingerprint(s.PeerCertificates[0].Raw))
			}
			return nil
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
		return fmt.Errorf("%w; its SHA-256 fingerprint is %s: if headgate logged the same fingerprint, pass it with --fingerprint", err, admin.Fingerprint(chain[0].Raw))
	}
	return err
}
