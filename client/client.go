// Package client is a client of the management API of headgate, for programs written in Go.
// It depends on the standard library only.
//
//	c, err := client.New(client.Options{URL: "https://gate.example.com:9080", Token: token})
//	…
//	for proxy, err := range c.ListProxies(ctx) {
//		…
//	}
//
// On the machine that headgate runs on, Options.Socket is the path of its admin socket, which
// requires no token for root and for the user that headgate runs as.
//
// Each operation of the API has a method and each record a type; both are generated from the
// table that the server is built from (operations.gen.go, types.gen.go). A rejected request
// returns a *Problem. Do calls operations by their path, and with the caller's types.
//
// A client does not retry, keeps no state besides idle connections, and may be used by
// several goroutines at once. The command line of headgate uses this package.
package client

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Prefix is the path prefix of the API.
const Prefix = "/api/v1"

// The limits of a response: the time until its headers are received, and its size in bytes.
const (
	headTimeout = 30 * time.Second
	maxResponse = 256 << 20
)

// DefaultTimeout is how long Do waits for a response if Options.Timeout is 0.
const DefaultTimeout = time.Minute

// Options selects a headgate and how to authenticate.
type Options struct {
	// URL is that of the admin listener: "https://gate.example.com:9080". A path is not
	// allowed. With Socket it may be empty.
	URL string
	// Socket is the path of an admin socket to connect to.
	Socket string
	// Token is sent with each request unless it is empty. A request with a token is sent
	// over TLS, to a socket or to a loopback address only.
	Token string
	// Name is what errors call the server; by default URL or Socket.
	Name string
	// SignInHelp is the remedy of problems with the status 401, in place of the server's.
	SignInHelp string
	// Timeout limits a request and its response, except for streams, backup and restore;
	// 0 means DefaultTimeout.
	Timeout time.Duration
	// Transport sends the requests; by default, connections are direct, and the certificate
	// of the server must be valid.
	Transport http.RoundTripper
}

// Client sends requests to one headgate.
type Client struct {
	options Options
	base    string
	http    *http.Client
}

// New returns a client. It connects with the first request.
func New(o Options) (*Client, error) {
	base := o.URL
	if base == "" && o.Socket != "" {
		base = "http://headgate"
	}
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "", strings.Trim(u.Path, "/") != "", u.RawQuery != "", u.User != nil:
		return nil, fmt.Errorf("invalid URL %q: expected a URL like https://gate.example.com:9080", base)
	case o.Token != "" && u.Scheme == "http" && o.Socket == "" && o.Transport == nil && !isLoopback(u.Hostname()):
		return nil, fmt.Errorf("refusing to send a token to %s without encryption", u.Host)
	}
	o.Name = cmp.Or(o.Name, o.Socket, o.URL)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	if o.Transport == nil {
		o.Transport = direct(o.Socket)
	}
	return &Client{options: o, base: u.Scheme + "://" + u.Host, http: &http.Client{Transport: o.Transport, CheckRedirect: keepResponse}}, nil
}

// direct returns a transport that uses no proxy of the environment.
func direct(socket string) *http.Transport {
	t := &http.Transport{ResponseHeaderTimeout: headTimeout, TLSHandshakeTimeout: headTimeout}
	if socket != "" {
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}
	}
	return t
}

// keepResponse returns redirects to the caller: the API has none, and a token must not be
// sent elsewhere.
func keepResponse(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Name returns what errors call the server.
func (c *Client) Name() string { return c.options.Name }

// Send sends a request to any path of the server and returns the response, whatever its
// status is. The caller closes the body. The headers may be nil.
func (c *Client) Send(ctx context.Context, method, path string, body io.Reader, headers http.Header) (*http.Response, error) {
	rq, err := http.NewRequestWithContext(ctx, method, c.base+path, body)
	if err != nil {
		return nil, err
	}
	for name, values := range headers {
		rq.Header[name] = values
	}
	if c.options.Token != "" {
		rq.Header.Set("Authorization", "Bearer "+c.options.Token)
	}
	rs, err := c.http.Do(rq)
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", c.options.Name, causeOf(err))
	}
	return rs, nil
}

// causeOf removes from an error of http.Client the method and URL, which the message has.
func causeOf(err error) error {
	if e := (*url.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Open sends a request to a path below Prefix and returns a successful response, whose body
// the caller closes. Other responses are returned as *Problem. in is sent as JSON unless it
// is nil, or as it is if it is an io.Reader.
func (c *Client) Open(ctx context.Context, method, path string, in any, options ...Option) (*http.Response, error) {
	o := &request{query: url.Values{}, headers: http.Header{}}
	if method != http.MethodGet {
		o.headers.Set("If-Match", "*")
	}
	body, err := o.encode(in)
	if err != nil {
		return nil, err
	}
	for _, set := range options {
		set(o)
	}
	if len(o.query) > 0 {
		separator := "?"
		if strings.Contains(path, "?") {
			separator = "&"
		}
		path += separator + o.query.Encode()
	}
	rs, err := c.Send(ctx, method, Prefix+path, body, o.headers)
	if err != nil {
		return nil, err
	}
	if rs.StatusCode/100 == 2 {
		if o.etag != nil {
			*o.etag = rs.Header.Get("ETag")
		}
		return rs, nil
	}
	defer rs.Body.Close()
	return nil, c.problemOf(rs)
}

// problemOf reads why a request was rejected.
func (c *Client) problemOf(rs *http.Response) *Problem {
	p := ProblemOf(rs)
	if p.Status == http.StatusUnauthorized && c.options.SignInHelp != "" {
		p.Remedy = c.options.SignInHelp
	}
	return p
}

// Do sends a request to a path below Prefix, with in as JSON unless it is nil, and reads the
// response into out unless that is nil.
func (c *Client) Do(ctx context.Context, method, path string, in, out any, options ...Option) error {
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	rs, err := c.Open(ctx, method, path, in, options...)
	if err != nil {
		return err
	}
	defer rs.Body.Close()
	return c.Read(rs, out)
}

// Read reads a response into out. It reads the JSON text itself into a *json.RawMessage, and
// nothing if out is nil or the response has no body.
func (c *Client) Read(rs *http.Response, out any) error {
	if out == nil || rs.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := io.ReadAll(http.MaxBytesReader(nil, rs.Body, maxResponse))
	if err == nil {
		if raw, ok := out.(*json.RawMessage); ok {
			*raw = data
			return nil
		}
		err = json.Unmarshal(data, out)
	}
	if err != nil {
		return fmt.Errorf("read the response of %s: %w", c.options.Name, err)
	}
	return nil
}

// ListAll returns the entries of a list of the API, page after page. The first error ends it.
func ListAll[T any](ctx context.Context, c *Client, path string, options ...Option) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		cursor := ""
		for {
			var page struct {
				Items []T    `json:"items"`
				Next  string `json:"next"`
			}
			if err := c.Do(ctx, http.MethodGet, path, nil, &page, append(options[:len(options):len(options)], after(cursor))...); err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, item := range page.Items {
				if !yield(item, nil) {
					return
				}
			}
			if page.Next == "" || page.Next == cursor {
				return
			}
			cursor = page.Next
		}
	}
}

// after selects a page of the largest size unless the caller has set another one.
func after(cursor string) Option {
	return func(o *request) {
		if !o.query.Has("limit") {
			o.query.Set("limit", "1000")
		}
		if cursor != "" {
			o.query.Set("cursor", cursor)
		}
	}
}

// result sends a request and returns the response as a T.
func result[T any](ctx context.Context, c *Client, method, path string, in any, options []Option) (*T, error) {
	out := new(T)
	if err := c.Do(ctx, method, path, in, out, options...); err != nil {
		return nil, err
	}
	return out, nil
}

// request is what options change.
type request struct {
	query   url.Values
	headers http.Header
	etag    *string
}

// encode returns the body of a request.
func (o *request) encode(in any) (io.Reader, error) {
	switch in := in.(type) {
	case nil:
		return nil, nil
	case io.Reader:
		o.headers.Set("Content-Type", "application/octet-stream")
		return in, nil
	}
	data, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	o.headers.Set("Content-Type", "application/json")
	return bytes.NewReader(data), nil
}

// Option changes a request.
type Option func(*request)

// Query sets a query parameter; the method's comment lists those of an operation. An empty
// value is omitted.
func Query(name, value string) Option {
	return func(o *request) {
		if value != "" {
			o.query.Set(name, value)
		}
	}
}

// DryRun makes the server check a change and describe it without applying it.
func DryRun() Option { return Query("dry_run", "true") }

// IfMatch makes a change conditional: it is rejected with the status 412 if the object no
// longer has the entity tag. Without it, a change applies to whatever is there.
func IfMatch(etag string) Option {
	return func(o *request) { o.headers.Set("If-Match", etag) }
}

// ETag stores the entity tag of the response in etag, for IfMatch.
func ETag(etag *string) Option {
	return func(o *request) { o.etag = etag }
}

// SetHeader sets a header of the request.
func SetHeader(name, value string) Option {
	return func(o *request) { o.headers.Set(name, value) }
}

// Passphrase sends the passphrase of an encrypted archive with a restore.
func Passphrase(text string) Option {
	return SetHeader("Headgate-Passphrase", base64.StdEncoding.EncodeToString([]byte(text)))
}
