package docker

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// newest is the newest version of the API that headgate uses. An older engine is
// queried with its own version.
var newest = apiVersion{1, 52}

// Bounds of what an engine answers, and of the time it has for that. The stream of
// events has no end; it is bounded by the size of one event.
const (
	maxContainers  = 10_000
	maxContainer   = 4 << 20
	maxList        = 64 << 20
	maxEvent       = 1 << 20
	maxHead        = 64 << 10
	maxText        = 512
	pingTimeout    = 10 * time.Second
	listTimeout    = 30 * time.Second
	connectTimeout = 5 * time.Second
)

// engine queries one engine, with three calls: /_ping, /containers/json and /events.
// Connections are not kept: a socket that was mounted into a container leads nowhere
// after its engine was restarted, and only a new connection finds that out.
type engine struct {
	// endpoint is what the settings say, for messages.
	endpoint string
	// socket is the path of a Unix socket, "" for tcp.
	socket string
	client *http.Client
	url    string
	// version is the prefix of calls, nil for none. Listing and events run
	// concurrently, and each may find that it is rejected.
	version atomic.Pointer[string]
	// peer is the address that answered last; invalid for a socket.
	peer atomic.Pointer[netip.Addr]
}

// apiVersion is a version of the engine's API.
type apiVersion [2]int

// String returns the version as in paths: "1.41".
func (v apiVersion) String() string { return strconv.Itoa(v[0]) + "." + strconv.Itoa(v[1]) }

// less reports whether v is older than w.
func (v apiVersion) less(w apiVersion) bool { return v[0] < w[0] || v[0] == w[0] && v[1] < w[1] }

// parseVersion reads a version of the API. It returns false for what is none.
func parseVersion(text string) (apiVersion, bool) {
	major, minor, ok := strings.Cut(strings.TrimSpace(text), ".")
	a, err := strconv.ParseUint(major, 10, 16)
	b, err2 := strconv.ParseUint(minor, 10, 16)
	return apiVersion{int(a), int(b)}, ok && err == nil && err2 == nil
}

// newEngine returns the engine at an endpoint: unix://PATH, tcp://HOST:PORT or
// https://HOST:PORT. TLS is nil for plain connections. It opens nothing.
func newEngine(endpoint string, secure *tls.Config) (*engine, error) {
	e := &engine{endpoint: endpoint}
	d := &net.Dialer{Timeout: connectTimeout}
	dial := d.DialContext
	scheme, rest, ok := strings.Cut(endpoint, "://")
	switch {
	case ok && scheme == "unix":
		if !filepath.IsAbs(rest) {
			return nil, fmt.Errorf("endpoint %s: the path of the socket is not absolute", endpoint)
		}
		e.socket, e.url = rest, "http://docker"
		dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return d.DialContext(ctx, "unix", rest) }
	case ok && (scheme == "tcp" || scheme == "http" || scheme == "https"):
		u, err := url.Parse(endpoint)
		if err != nil || u.Port() == "" || u.Hostname() == "" {
			return nil, fmt.Errorf("endpoint %s: want a host and a port", endpoint)
		}
		e.url = "http://" + u.Host
		if secure != nil || scheme == "https" {
			e.url = "https://" + u.Host
		}
	default:
		return nil, fmt.Errorf("endpoint %s: want unix://, tcp:// or https://", endpoint)
	}
	e.client = &http.Client{
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := dial(ctx, network, address)
				if err == nil {
					e.met(c.RemoteAddr())
				}
				return c, err
			},
			TLSClientConfig: secure, TLSHandshakeTimeout: connectTimeout,
			DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: maxHead,
		},
		// an engine sends no redirects
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return e, nil
}

// met notes who answers.
func (e *engine) met(a net.Addr) {
	if t, ok := a.(*net.TCPAddr); ok {
		ip := t.AddrPort().Addr().Unmap()
		e.peer.Store(&ip)
	}
}

// reached returns the address of the engine, invalid for a socket.
func (e *engine) reached() netip.Addr {
	if ip := e.peer.Load(); ip != nil {
		return *ip
	}
	return netip.Addr{}
}

// ping checks whether the engine responds, and negotiates the API version. It returns the
// engine's time. If a socket proxy rejects it, calls have no version, for which engines use
// their newest.
func (e *engine) ping(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	e.version.Store(nil)
	rs, err := e.get(ctx, "/_ping", nil)
	if err != nil {
		return time.Time{}, err
	}
	defer rs.Body.Close()
	now := time.Now()
	if at, err := http.ParseTime(rs.Header.Get("Date")); err == nil {
		now = at
	}
	switch rs.StatusCode {
	case http.StatusOK:
	case http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return now, nil
	default:
		return now, refused(rs)
	}
	version, known := parseVersion(rs.Header.Get("Api-Version"))
	body, _ := io.ReadAll(io.LimitReader(rs.Body, maxText))
	if text := strings.TrimSpace(string(body)); !known && text != "OK" {
		return now, &answerError{call: "/_ping", what: "it does not speak as an engine: " + quoted(text)}
	}
	if known {
		if newest.less(version) {
			version = newest
		}
		prefix := "/v" + version.String()
		e.version.Store(&prefix)
	}
	return now, nil
}

// list returns the running containers that pass the filters. Those that could not be
// read are counted by what was wrong with them.
func (e *engine) list(ctx context.Context, filters map[string][]string) (*listing, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	asked := time.Now()
	rs, err := e.versioned(ctx, "/containers/json", query(filters))
	if err != nil {
		return nil, err
	}
	defer rs.Body.Close()
	l, err := readList(rs.Body)
	if err != nil {
		return nil, &answerError{call: "/containers/json", what: err.Error(), err: err}
	}
	l.asked = asked
	return l, nil
}

// events requests the events since a time. The caller reads the stream and closes
// it; the context ends it.
func (e *engine) events(ctx context.Context, since time.Time) (io.ReadCloser, error) {
	q := query(map[string][]string{"type": {"container", "network"}})
	q.Set("since", strconv.FormatInt(since.Unix(), 10))
	rs, err := e.versioned(ctx, "/events", q)
	if err != nil {
		return nil, err
	}
	return rs.Body, nil
}

// versioned sends a request with the version that ping found. An engine that
// rejects this version, as its oldest is newer, gets one without.
func (e *engine) versioned(ctx context.Context, path string, q url.Values) (*http.Response, error) {
	version := ""
	if v := e.version.Load(); v != nil {
		version = *v
	}
	rs, err := e.get(ctx, version+path, q)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode == http.StatusBadRequest && version != "" {
		rs.Body.Close()
		e.version.Store(nil)
		if rs, err = e.get(ctx, path, q); err != nil {
			return nil, err
		}
	}
	if rs.StatusCode != http.StatusOK {
		defer rs.Body.Close()
		return nil, refused(rs)
	}
	return rs, nil
}

func (e *engine) get(ctx context.Context, path string, q url.Values) (*http.Response, error) {
	target := e.url + path
	if len(q) > 0 {
		target += "?" + q.Encode()
	}
	rq, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, err
	}
	rs, err := e.client.Do(rq)
	var failed *url.Error
	if errors.As(err, &failed) {
		err = failed.Err // without the URL, which is not in the configuration
	}
	return rs, err
}
