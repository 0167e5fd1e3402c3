// Package safedial makes requests to addresses that operators configure through the API,
// such as webhooks and sign-in providers, or that a certificate names. The resolved address
// is checked before connecting, so that a DNS response cannot redirect it: link-local
// addresses and those of cloud metadata services are rejected.
package safedial

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// ErrRefused is wrapped by the error of a request to an address that is refused.
var ErrRefused = errors.New("requests to this address are not allowed")

const (
	dialTimeout = 5 * time.Second
	tlsTimeout  = 5 * time.Second
	headTimeout = 10 * time.Second
	idleTimeout = 30 * time.Second
	maxIdle     = 16
	maxHead     = 64 << 10
)

// metadata are addresses of cloud metadata services that are not link-local.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd20:ce::254"),    // Google
}

// The networks whose addresses hold an IPv4 address.
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96")
	sixto4 = netip.MustParsePrefix("2002::/16")
	compat = netip.MustParsePrefix("::/96")
)

// Check returns an error that wraps ErrRefused for an address that nothing is to be
// sent to.
func Check(a netip.Addr) error {
	inner := embedded(a)
	for _, at := range []netip.Addr{a.Unmap().WithZone(""), inner} {
		switch {
		case !at.IsValid():
		case at.IsLinkLocalUnicast(), at.IsMulticast(), at.IsUnspecified(), at == netip.AddrFrom4([4]byte{255, 255, 255, 255}):
			return fmt.Errorf("%s: %w", a, ErrRefused)
		default:
			for _, m := range metadata {
				if at == m {
					return fmt.Errorf("%s: %w", a, ErrRefused)
				}
			}
		}
	}
	return nil
}

// embedded returns the IPv4 address that a translator would make of an address, or
// the zero Addr.
func embedded(a netip.Addr) netip.Addr {
	b := a.As16()
	switch {
	case a.Is4() || a.Is4In6():
		return netip.Addr{}
	case nat64.Contains(a):
		return netip.AddrFrom4([4]byte(b[12:]))
	case sixto4.Contains(a):
		return netip.AddrFrom4([4]byte(b[2:6]))
	case compat.Contains(a) && !a.IsLoopback():
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return netip.Addr{}
}

// Client returns a client whose requests take at most timeout in total. It follows no
// redirects. Roots are the trusted authorities, nil for those of the system. The caller
// ends it with CloseIdleConnections.
func Client(timeout time.Duration, roots *x509.CertPool) *http.Client {
	return &http.Client{
		Timeout:       timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport:     Transport(roots),
	}
}

// Transport returns a transport for clients that have more to decide than those of Client.
// It uses no proxy; the address of one that the caller sets is checked in place of the
// server's. The caller ends it with CloseIdleConnections.
func Transport(roots *x509.CertPool) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout, ControlContext: Control}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		TLSClientConfig:        &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12},
		TLSHandshakeTimeout:    tlsTimeout,
		ResponseHeaderTimeout:  headTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdle,
		MaxResponseHeaderBytes: maxHead,
		ForceAttemptHTTP2:      true,
	}
}

// Bound has a client of Client read at most max bytes of each answer's body, as Limit
// does. It returns the client.
func Bound(c *http.Client, max int64) *http.Client {
	c.Transport = &bounded{c.Transport, max}
	return c
}

type bounded struct {
	http.RoundTripper
	max int64
}

// RoundTrip sends a request.
func (b *bounded) RoundTrip(rq *http.Request) (*http.Response, error) {
	rs, err := b.RoundTripper.RoundTrip(rq)
	if err == nil {
		rs.Body = Limit(rs.Body, b.max)
	}
	return rs, err
}

// CloseIdleConnections is for http.Client.
func (b *bounded) CloseIdleConnections() {
	if c, ok := b.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// Limit returns the body of an answer, of which at most max bytes are read, as they are
// after decompression. A longer one ends with an error that says so.
func Limit(body io.ReadCloser, max int64) io.ReadCloser {
	return &limited{body, max, max}
}

type limited struct {
	io.ReadCloser
	max, left int64
}

// Read reads more.
func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1] // one more detects a longer body
	}
	n, err := l.ReadCloser.Read(p)
	if int64(n) > l.left {
		n, err = int(l.left), fmt.Errorf("the answer is larger than %d bytes", l.max)
	}
	l.left -= int64(n)
	return n, err
}

// Control sees each address as it is about to be connected to, and refuses what Check
// refuses. It is for net.Dialer.ControlContext.
func Control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, ErrRefused)
	}
	return Check(at.Addr())
}
