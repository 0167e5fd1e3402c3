package spec

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"

	"headgate/internal/certs/certstest"
)

// socket has the server listen on a Unix socket too, and returns its path.
func (s *server) socket() string {
	s.t.Helper()
	// The path of a test's own folder may be too long for a socket.
	dir, err := os.MkdirTemp("", "spec")
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		s.t.Fatal(err)
	}
	s.listen(l)
	return path
}

// secure has the server speak TLS too, with HTTP/1.1 above it, and returns the
// address, and a file with the certificate, which signs itself.
func (s *server) secure() (address, ca string) {
	s.t.Helper()
	cert, ca := selfSigned(s.t)
	l, err := tls.Listen("tcp4", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"http/1.1"}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.listen(l)
	return l.Addr().String(), ca
}

// listen takes connections of another listener until the test ends.
func (s *server) listen(l net.Listener) {
	s.t.Cleanup(func() { l.Close() })
	go s.accept(l)
}

// selfSigned returns a certificate for 127.0.0.1, and a file that holds it.
func selfSigned(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	template := certstest.Authority("127.0.0.1")
	template.IPAddresses, template.KeyUsage = []net.IP{net.IPv4(127, 0, 0, 1)}, template.KeyUsage|x509.KeyUsageDigitalSignature
	cert := certstest.Sign(t, template, nil)
	file, _ := certstest.Write(t, t.TempDir(), "ca", cert)
	return cert, file
}
