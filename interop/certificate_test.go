package interop

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"testing"

	"headgate/internal/certs/certstest"
)

// identity is a certificate for localhost, 127.0.0.1 and other names, that signs
// itself.
type identity struct {
	tls       tls.Certificate
	cert, key string // in PEM form
	pool      *x509.CertPool
}

func newIdentity(t *testing.T, names ...string) *identity {
	t.Helper()
	template := certstest.Authority("localhost")
	template.DNSNames, template.IPAddresses = append(names, "localhost"), []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage |= x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	id := &identity{tls: certstest.Sign(t, template, nil), pool: x509.NewCertPool()}
	id.cert, id.key = string(certstest.PEM(id.tls)), string(certstest.KeyPEM(t, id.tls))
	id.pool.AddCert(id.tls.Leaf)
	return id
}
