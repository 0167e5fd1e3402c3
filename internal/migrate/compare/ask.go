package compare

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// answer is what one side said.
type answer struct {
	err       error
	status    int
	proto     string
	header    http.Header
	body      string   // hash of the decoded body
	size      int64    // of the decoded body, as far as it was read
	page      pageText // the beginning of the decoded body of an error response
	cut       bool     // the body is longer than what is compared
	broken    bool     // the body ended too early, or could not be decoded
	headAfter time.Duration
	tls       *tlsFacts
}

// tlsFacts are what a client checks of a certificate.
type tlsFacts struct {
	version  uint16
	covers   bool // the certificate names the host
	trusted  bool // it leads to an authority that this machine trusts
	issuer   string
	notAfter time.Time
}

// Summary is an answer in a report.
type Summary struct {
	// Status is that of the answer, 0 if there was none.
	Status int `json:"status,omitempty"`
	// Proto is the version of HTTP.
	Proto string `json:"protocol,omitempty"`
	// Size is that of the body after decoding, in bytes.
	Size int64 `json:"size"`
	// HeadMS is after how many milliseconds the header came.
	HeadMS float64 `json:"head_ms"`
	// Error is why there is no answer.
	Error string `json:"error,omitempty"`
}

// silent reports whether no server responded in time, which is what makes comparisons slow.
// A closed connection counts as a response.
func (a *answer) silent() bool {
	var op *net.OpError
	return errors.Is(a.err, errLate) || errors.As(a.err, &op) && op.Op == "dial"
}

// errLate is the error of an answer that did not come in time.
var errLate = errors.New("no answer in time")

func (a *answer) summary() Summary {
	s := Summary{Status: a.status, Proto: a.proto, Size: a.size, HeadMS: float64(a.headAfter.Microseconds()) / 1000}
	if a.err != nil {
		s.Error = a.err.Error()
	}
	return s
}

// client sends requests to one side.
type client struct {
	side      Side
	transport *http.Transport
	timeout   time.Duration
	maxBody   int64
}

// maxHeader bounds the header of an answer.
const maxHeader = 256 << 10

func newClient(side Side, o Options) *client {
	c := &client{side: side, timeout: o.Timeout, maxBody: o.MaxBody}
	dialer := &net.Dialer{Timeout: o.Timeout, ControlContext: o.Dial}
	c.transport = &http.Transport{
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, ctx.Value(addressKey{}).(string))
		},
		// Certificates are compared as differences, not verified in the handshake: during a
		// test side by side the new side's can be self-signed, and the old one can use an
		// obsolete TLS version.
		TLSClientConfig:        &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10}, //nolint:gosec // compared, see tlsFacts
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    atOnce,
		MaxIdleConns:           64,
		IdleConnTimeout:        30 * time.Second,
		ResponseHeaderTimeout:  o.Timeout,
		TLSHandshakeTimeout:    o.Timeout,
		MaxResponseHeaderBytes: maxHeader,
	}
	return c
}

// addressKey carries the address that a connection is made to, in place of the
// host of the URL.
type addressKey struct{}

func (c *client) close() { c.transport.CloseIdleConnections() }

// send sends a request and reads its answer.
func (c *client) send(ctx context.Context, rq Request) *answer {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, addressKey{}, c.side.address(rq.Scheme)), c.timeout)
	defer cancel()
	sent, err := build(ctx, rq)
	if err != nil {
		return &answer{err: err}
	}
	began := time.Now()
	rs, err := c.transport.RoundTrip(sent)
	if err != nil {
		return &answer{err: plain(err), headAfter: time.Since(began)}
	}
	defer rs.Body.Close()
	a := &answer{status: rs.StatusCode, proto: rs.Proto, header: rs.Header, headAfter: time.Since(began)}
	if rs.TLS != nil {
		a.tls = factsOf(rs.TLS, sent.URL.Hostname())
	}
	if rs.StatusCode == http.StatusSwitchingProtocols {
		return a // what follows is no content, and the request's deadline does not end it
	}
	a.readBody(rs, c.maxBody)
	return a
}

func build(ctx context.Context, rq Request) (*http.Request, error) {
	u, err := url.Parse(rq.Scheme + "://" + rq.Host)
	if err != nil || u.Host == "" || u.Path != "" {
		return nil, fmt.Errorf("invalid host %q", rq.Host)
	}
	if !strings.HasPrefix(rq.Target, "/") {
		return nil, fmt.Errorf("invalid target %q: it starts with a slash", rq.Target)
	}
	// The target is kept byte for byte: what both sides make of %2F and of dots is
	// part of what is compared. An Opaque that starts with // would be sent with the
	// scheme, so such a path is set in another way.
	path, query, asked := strings.Cut(rq.Target, "?")
	u.RawQuery, u.ForceQuery = query, asked && query == ""
	if u.Opaque = path; strings.HasPrefix(path, "//") {
		u.Opaque = ""
		if u.Path, err = url.PathUnescape(path); err != nil {
			return nil, fmt.Errorf("invalid path %q: %w", path, err)
		}
		u.RawPath = path
	}
	sent := (&http.Request{Method: rq.Method, URL: u, Host: rq.Host, Header: http.Header{}, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}).WithContext(ctx)
	sent.Header.Set("User-Agent", "headgate-compare")
	sent.Header.Set("Accept-Encoding", "gzip")
	for name, values := range rq.Header {
		sent.Header[name] = values
	}
	return sent, nil
}

// plain removes what differs from run to run from an error: ports of our own end.
func plain(err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return errLate
	case errors.As(err, &op):
		return &net.OpError{Op: op.Op, Err: op.Err}
	case len(err.Error()) > maxShown: // it may quote what came
		return errors.New(shorten(err.Error()))
	}
	return err
}

func factsOf(s *tls.ConnectionState, host string) *tlsFacts {
	leaf := s.PeerCertificates[0]
	between := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{Intermediates: between})
	return &tlsFacts{version: s.Version, covers: leaf.VerifyHostname(host) == nil, trusted: err == nil,
		issuer: leaf.Issuer.String(), notAfter: leaf.NotAfter}
}

// readBody hashes the body, decoded, up to a bound.
func (a *answer) readBody(rs *http.Response, limit int64) {
	limited := &io.LimitedReader{R: rs.Body, N: limit + 1}
	var body io.Reader = limited
	if strings.EqualFold(rs.Header.Get("Content-Encoding"), "gzip") && rs.ContentLength != 0 && rs.Request.Method != http.MethodHead {
		z, err := gzip.NewReader(limited)
		if err != nil {
			a.broken = true
			return
		}
		// The decoded size is limited too: a small body may decode to a large
		// one.
		body = io.LimitReader(z, 16*limit)
	}
	hash := sha256.New()
	var to io.Writer = hash
	if a.status >= 400 {
		to = io.MultiWriter(hash, &a.page)
	}
	n, err := io.Copy(to, body)
	a.size, a.cut = n, limited.N == 0
	a.broken = err != nil && !a.cut
	a.body = hex.EncodeToString(hash.Sum(nil)[:8])
}
