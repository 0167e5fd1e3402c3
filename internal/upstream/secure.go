package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"headgate/internal/netconn"
)

// tlsError is a TLS handshake that failed. It counts as a connection that did
// not come about.
type tlsError struct {
	address string
	what    string
	err     error
}

// Error says with which server, and what is wrong.
func (e *tlsError) Error() string { return fmt.Sprintf("TLS with %s: %s", e.address, e.what) }

// Unwrap returns the error of crypto/tls.
func (e *tlsError) Unwrap() error { return e.err }

// Is reports whether target is errDial: no part of the request was sent.
func (e *tlsError) Is(target error) bool { return target == errDial }

// shake makes a TLS connection of nc by end. nc is closed if it fails.
func (p *Pool) shake(nc net.Conn, cfg *tls.Config, end time.Time) (*tls.Conn, error) {
	ctx := context.Background()
	if !end.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, end)
		defer cancel()
	}
	secure := tls.Client(netconn.NewLazy(nc), cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		nc.Close()
		if errors.Is(err, os.ErrDeadlineExceeded) || ctx.Err() != nil {
			return nil, &dialError{p.address, fmt.Errorf("the TLS handshake timed out: %w", context.DeadlineExceeded)}
		}
		return nil, &tlsError{p.address, tlsFault(err), err}
	}
	return secure, nil
}

// lateFault explains why a server closed a connection after our side of the
// handshake: with TLS 1.3 it checks our certificate only then. If it closes at
// once, its alert may be lost.
func (p *Pool) lateFault(err error) error {
	what := "the server requested a client certificate, and closed the connection after it received ours"
	switch {
	case refusedByAlert(err):
		what = tlsFault(err)
	case !p.shows:
		what = "the server requested a client certificate, and closed the connection without one; set tls.client_cert_file"
	}
	return &tlsError{p.address, what, err}
}

// tlsFault says in one line why a handshake failed, and what helps.
func tlsFault(err error) string {
	var name x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &name):
		return fmt.Sprintf("the server's certificate is for %s and not for %s; tls.server_name says which name to expect", namesOf(name.Certificate), name.Host)
	case errors.As(err, &unknown):
		return fmt.Sprintf("the server's certificate is signed by an authority that is not known here (%s); tls.ca_file names it", issuerOf(unknown.Cert))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return expiry(invalid.Cert)
	case errors.As(err, &invalid):
		return "the server's certificate cannot be trusted: " + strings.TrimPrefix(invalid.Error(), "x509: ")
	case errors.As(err, &record):
		return "the server does not speak TLS; is its scheme http?"
	case refusedByAlert(err):
		return "the server refused the handshake: " + alertText(err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isEnd(err):
		return "the server closed the connection during the handshake"
	}
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "tls: "), "x509: ")
}

// expiry says how a certificate and the time do not fit.
func expiry(cert *x509.Certificate) string {
	if now := time.Now(); now.Before(cert.NotBefore) {
		return "the server's certificate is not valid before " + cert.NotBefore.UTC().Format(time.RFC3339)
	}
	return "the server's certificate has expired on " + cert.NotAfter.UTC().Format(time.RFC3339)
}

// maxNames limits the names of a certificate in a message.
const maxNames = 5

// namesOf returns the names that a certificate is for.
func namesOf(cert *x509.Certificate) string {
	names := append([]string(nil), cert.DNSNames...)
	for _, ip := range cert.IPAddresses {
		names = append(names, ip.String())
	}
	switch {
	case len(names) == 0:
		return "no name at all"
	case len(names) > maxNames:
		return strings.Join(names[:maxNames], ", ") + " and others"
	}
	return strings.Join(names, ", ")
}

func issuerOf(cert *x509.Certificate) string {
	if cert == nil || cert.Issuer.String() == "" {
		return "it has no name"
	}
	return cert.Issuer.String()
}

// refusedByAlert reports whether the server has sent a fatal alert: it does not
// like our certificate, or that there is none, or the name, or the protocols.
func refusedByAlert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}

// alertText returns the alert, with what it most often means.
func alertText(err error) string {
	var op *net.OpError
	errors.As(err, &op)
	text := strings.TrimPrefix(op.Err.Error(), "tls: ")
	switch text {
	case "certificate required", "bad certificate", "handshake failure", "unknown certificate authority", "unknown certificate":
		text += "; if the server requires a client certificate, set tls.client_cert_file"
	case "unrecognized name":
		text += "; tls.server_name sets the requested server name"
	}
	return text
}
