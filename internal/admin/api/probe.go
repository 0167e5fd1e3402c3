package api

import (
	"context"
	"errors"
	"html"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"headgate/internal/server/safedial"
)

// The bounds of a test request: how long it may take, and how much of the response is read
// for the title of a page.
const (
	probeTime = 8 * time.Second
	probeBody = 64 << 10
	maxTitle  = 200
)

// probeInput names a server to test before it is configured.
type probeInput struct {
	// URL is the address of the server: `http://10.0.0.7:3000`.
	URL string `json:"url" required:"true" max:"2048"`
	// Host is the Host header of the request; without it that of the URL.
	Host string `json:"host,omitempty" max:"253"`
}

// probed is the response to a test request.
type probed struct {
	// Reached is whether the server responded.
	Reached bool `json:"reached" required:"true"`
	// Status is the status of the response, 0 without one.
	Status int `json:"status" required:"true"`
	// Duration is how long it took, in milliseconds.
	Duration float64 `json:"duration_ms" required:"true"`
	// Title is the title of the page, if the response is one.
	Title string `json:"title,omitempty"`
	// Server is the Server header of the response.
	Server string `json:"server,omitempty"`
	// Location is the target of a redirect.
	Location string `json:"location,omitempty"`
	// Error is why there is no response.
	Error string `json:"error,omitempty"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
}

// probe sends one GET to a server that is not configured yet. Link-local addresses and
// those of cloud metadata are refused, redirects are not followed.
func (a *API) probe(c *call, in *probeInput) (any, error) {
	u, err := url.Parse(in.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, refuse("invalid", "/url", "the URL is not valid", "write one like http://10.0.0.7:3000")
	}
	ctx, cancel := context.WithTimeout(c.rq.Context(), probeTime)
	defer cancel()
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, refuse("invalid", "/url", "the URL is not valid", "write one like http://10.0.0.7:3000")
	}
	rq.Host = in.Host
	rq.Header.Set("User-Agent", "headgate-test")
	rq.Header.Set("Accept", "text/html, */*")
	client := safedial.Client(probeTime, nil)
	defer client.CloseIdleConnections()
	begun := time.Now()
	rs, err := client.Do(rq)
	out := probed{Duration: float64(time.Since(begun).Microseconds()) / 1000}
	c.note("server.test", "server "+u.Redacted(), "")
	if err != nil {
		out.Error, out.Hint = probeTrouble(err, u)
		return out, nil
	}
	defer rs.Body.Close()
	out.Reached, out.Status, out.Server, out.Location = true, rs.StatusCode, rs.Header.Get("Server"), rs.Header.Get("Location")
	if strings.HasPrefix(rs.Header.Get("Content-Type"), "text/html") {
		page, _ := io.ReadAll(io.LimitReader(rs.Body, probeBody)) // a page that breaks off may have its title
		out.Title = titleOf(page)
	}
	return out, nil
}

// probeTrouble describes why a server does not respond, and how to fix it.
func probeTrouble(err error, u *url.URL) (text, hint string) {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	text = err.Error()
	var dns *net.DNSError
	switch {
	case errors.Is(err, safedial.ErrRefused):
		hint = "link-local addresses and those of cloud metadata cannot be tested"
	case errors.As(err, &dns):
		hint = "check the host name; in containers, use the address of the service"
	case strings.Contains(text, "connection refused"):
		hint = "check the port, and whether the application listens on this address"
	case errors.Is(err, context.DeadlineExceeded), strings.Contains(text, "timeout"):
		text, hint = "no response within "+probeTime.String(), "check the address and the firewall"
	case strings.Contains(text, "HTTP response to HTTPS client"):
		hint = "the server does not speak TLS: use http://" + u.Host
	case strings.Contains(text, "x509:"):
		hint = "name its authority with ca_file, or use insecure_skip_verify in the settings of the server"
	case u.Scheme == "http" && strings.Contains(text, "malformed HTTP response"):
		hint = "the server may speak TLS: use https://" + u.Host
	}
	return text, hint
}

var title = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)

// titleOf returns the title of a page as text.
func titleOf(page []byte) string {
	m := title.FindSubmatch(page)
	if m == nil {
		return ""
	}
	text := strings.Join(strings.Fields(html.UnescapeString(string(m[1]))), " ")
	if len(text) > maxTitle {
		text = strings.ToValidUTF8(text[:maxTitle], "") + "…"
	}
	return text
}
