// Package download fetches files from URLs that operators name, such as lists of addresses
// and geo databases: bounded in size and time, over https, through a few redirects, and
// from no address that package safedial refuses.
package download

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"time"

	"headgate/internal/server/safedial"
)

// maxRedirects is how many redirects are followed. Each hop has to be https, and its
// address is checked when it is dialed.
const maxRedirects = 3

// timeout is the maximum time of one download.
const timeout = 2 * time.Minute

// Client downloads files. It is safe for concurrent use.
type Client struct {
	http  *http.Client
	agent string
	// authorization is the value of the Authorization header, "" for none.
	authorization string
}

// New returns a client that introduces itself as agent. Roots are the authorities to
// trust, nil for those of the system.
func New(agent string, roots *x509.CertPool) *Client {
	return &Client{agent: agent, http: &http.Client{
		Timeout: timeout, Transport: safedial.Transport(roots), CheckRedirect: follow,
	}}
}

// NewFor returns a client like New for one server: it sends the value of an Authorization
// header, unless that is "", follows redirects to the same host and scheme only, and a
// download takes at most limit.
func NewFor(agent string, roots *x509.CertPool, authorization string, limit time.Duration) *Client {
	c := New(agent, roots)
	c.authorization, c.http.Timeout = authorization, limit
	c.http.CheckRedirect = func(rq *http.Request, via []*http.Request) error {
		switch first := via[0].URL; {
		case len(via) > maxRedirects:
			return fmt.Errorf("more than %d redirects", maxRedirects)
		case rq.URL.Scheme != first.Scheme || rq.URL.Host != first.Host:
			return fmt.Errorf("redirected to %s, which is another server", rq.URL.Host)
		}
		return nil
	}
	return c
}

// follow follows a few redirects, and none that leaves TLS.
func follow(rq *http.Request, via []*http.Request) error {
	switch {
	case len(via) > maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	case rq.URL.Scheme != "https":
		return fmt.Errorf("redirected to %s, which is not https", rq.URL.Redacted())
	}
	return nil
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Version holds the validators of a file, so that it is only sent again when it has
// changed.
type Version struct{ ETag, Modified string }

// ErrUnchanged says that the server still has the version that is known.
var ErrUnchanged = errors.New("not modified")

// Get downloads a file of at most max bytes, after decompression. It returns ErrUnchanged
// if the server has the known version still.
func (c *Client) Get(ctx context.Context, address string, known Version, max int64) ([]byte, Version, error) {
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, known, err
	}
	rq.Header.Set("User-Agent", c.agent)
	if c.authorization != "" {
		rq.Header.Set("Authorization", c.authorization)
	}
	if known.ETag != "" {
		rq.Header.Set("If-None-Match", known.ETag)
	}
	if known.Modified != "" {
		rq.Header.Set("If-Modified-Since", known.Modified)
	}
	rs, err := c.http.Do(rq)
	if err != nil {
		return nil, known, reasonOf(err)
	}
	defer rs.Body.Close()
	switch {
	case rs.StatusCode == http.StatusNotModified && known != (Version{}):
		return nil, known, ErrUnchanged
	case rs.StatusCode != http.StatusOK:
		return nil, known, fmt.Errorf("the server answered %s", rs.Status)
	case rs.ContentLength > max:
		return nil, known, tooLarge(max)
	}
	body, err := io.ReadAll(io.LimitReader(rs.Body, max+1))
	if err == nil && int64(len(body)) > max {
		err = tooLarge(max)
	}
	if err != nil {
		return nil, known, reasonOf(err)
	}
	return body, Version{rs.Header.Get("ETag"), rs.Header.Get("Last-Modified")}, nil
}

func tooLarge(max int64) error {
	return fmt.Errorf("the file is larger than %d MiB", max>>20)
}

// reasonOf returns an error without the URL, which may have a secret in its query.
func reasonOf(err error) error {
	if u := (*url.Error)(nil); errors.As(err, &u) {
		return u.Err
	}
	return err
}

// Check reports problems of a URL in the settings, and what to write; nothing if it
// can be downloaded from. Plain http is for this machine only.
func Check(text string) (what, remedy string) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "":
		return "invalid URL", "write it as https://lists.example.com/drop.txt"
	case u.Scheme == "https", u.Scheme == "http" && local(u.Hostname()):
		return "", ""
	}
	return fmt.Sprintf("headgate does not download files over %q", u.Scheme), "write an https:// URL"
}

// local reports whether a host is this machine.
func local(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Shown returns a URL without its credentials and its query, which may be secrets.
func Shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	u.User, u.RawQuery = nil, ""
	return u.String()
}
