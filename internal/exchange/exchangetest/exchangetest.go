// Package exchangetest makes exchanges for the tests of rooms, without a
// connection: New gives one, Run takes it through filters as a pipeline does,
// and the Front in it records what a client would get.
package exchangetest

import (
	"context"
	"io"
	"log/slog"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/file"
	"headgate/internal/proto/header"
)

// Option changes an exchange before New returns it.
type Option func(*exchange.Exchange)

// New returns an exchange whose head came whole: GET / for example.com over
// http from 192.0.2.1, unless options say otherwise. It is at the point where
// the filters of a route begin: Path is matched, and Target is the path.
func New(t testing.TB, options ...Option) *exchange.Exchange {
	t.Helper()
	conn := &exchange.Conn{
		Remote: netip.MustParseAddrPort("192.0.2.1:4711"), Local: netip.MustParseAddrPort("192.0.2.254:8080"),
		Peer: "192.0.2.1", Scheme: "http", Serial: 1,
	}
	ex := &exchange.Exchange{}
	ex.Reset(conn, &Front{})
	ex.Place = &exchange.Place{Port: "web", Proxy: "site", Route: "/"}
	ex.ClientIP = conn.Remote.Addr()
	ex.Times.Start = exchange.Now()
	rq := &ex.Request
	rq.Method, rq.Scheme, rq.Host, rq.Proto = "GET", "http", "example.com", exchange.HTTP11
	rq.Path, rq.Target = "/", "/"
	for _, o := range options {
		o(ex)
	}
	return ex
}

// Head sets method, path and query, and adds fields that are written as
// "Name: value".
func Head(method, target string, fields ...string) Option {
	return func(ex *exchange.Exchange) {
		rq := &ex.Request
		rq.Method, rq.Path, rq.Query = method, target, ""
		if i := strings.IndexByte(target, '?'); i >= 0 {
			rq.Path, rq.Query = target[:i], target[i:]
		}
		rq.Target = rq.Path
		addAll(&rq.Header, fields)
	}
}

// Host sets the host of the request.
func Host(host string) Option {
	return func(ex *exchange.Exchange) { ex.Request.Host = host }
}

// From sets the address of the peer and the client.
func From(address string) Option {
	return func(ex *exchange.Exchange) {
		ip := netip.MustParseAddr(address)
		ex.ClientIP, ex.Conn.Peer = ip, ip.String()
		ex.Conn.Remote = netip.AddrPortFrom(ip, ex.Conn.Remote.Port())
	}
}

// Secure makes it a request over https.
func Secure() Option {
	return func(ex *exchange.Exchange) { ex.Conn.Scheme, ex.Request.Scheme = "https", "https" }
}

// Content gives the request a body with a length.
func Content(text string) Option {
	return func(ex *exchange.Exchange) {
		ex.Request.Length, ex.Request.Body = int64(len(text)), Body(text)
	}
}

// Chunks gives the request a body whose length is known only at its end. Each
// read gives one of the pieces.
func Chunks(pieces ...string) Option {
	return func(ex *exchange.Exchange) {
		ex.Request.Length, ex.Request.Body = -1, Body(pieces...)
	}
}

// Run takes ex through the filters to the source and back, as the pipeline of a
// route does, and returns what the client would get.
func Run(t testing.TB, ex *exchange.Exchange, source exchange.Source, filters ...exchange.Filter) *Front {
	t.Helper()
	p := &exchange.Pipeline{Filters: filters, Source: source, Log: slog.New(slog.NewTextHandler(t.Output(), nil))}
	p.Serve(ex)
	return ex.Front.(*Front)
}

// Source answers with a status, fields written as "Name: value", and a body of
// known length.
type Source struct {
	Status int
	Fields []string
	Body   string
	// Asked counts the requests.
	Asked int
}

// Respond makes the response. It reads the body of the request to its end, and
// answers with the reason if that fails.
func (s *Source) Respond(ex *exchange.Exchange) *exchange.Answer {
	s.Asked++
	if ex.Request.Body != nil {
		n, err := io.Copy(io.Discard, ex.Request.Body)
		ex.Received = n
		if e, ok := err.(*exchange.Error); ok {
			return exchange.Fail(e.Reason, e.Error())
		}
	}
	rs := &ex.Response
	rs.Reset()
	rs.Status, rs.Length, rs.Body = s.Status, int64(len(s.Body)), Body(s.Body)
	addAll(&rs.Header, s.Fields)
	return nil
}

// Describe returns "test".
func (s *Source) Describe() string { return "test" }

// Front records what a client would get. Its strings are copies.
type Front struct {
	Status  int
	Fields  []string // "Name: value", in order
	Body    string
	Err     error    // that ended the body early
	Interim []int    // statuses of interim responses
	Aborted bool     // the connection was broken off
	Left    bool     // Gone reports it
	Trailer []string // "Name: value"
}

// Send records the response.
func (f *Front) Send(ex *exchange.Exchange) error {
	rs := &ex.Response
	rs.HeadSent = true
	f.Status, f.Fields = rs.Status, texts(&rs.Header)
	body := string(rs.Text)
	if rs.Body != nil {
		var b []byte
		b, f.Err = io.ReadAll(rs.Body)
		body = string(b)
	}
	f.Body, ex.Sent, f.Trailer = body, int64(len(body)), texts(ex.ResponseTrailer())
	return f.Err
}

// Inform records the status.
func (f *Front) Inform(_ *exchange.Exchange, status int, _ *header.List) error {
	f.Interim = append(f.Interim, status)
	return nil
}

// Abort records that it was called.
func (f *Front) Abort(*exchange.Exchange) { f.Aborted = true }

// Gone returns Left.
func (f *Front) Gone() bool { return f.Left }

// Field returns the value of the first field with this name, in any case, or "".
func (f *Front) Field(name string) string {
	for _, line := range f.Fields {
		if n, v, _ := strings.Cut(line, ": "); header.EqualFold(n, name) {
			return v
		}
	}
	return ""
}

func addAll(list *header.List, fields []string) {
	for _, line := range fields {
		name, value, _ := strings.Cut(line, ": ")
		list.AddField(name, value)
	}
}

func texts(list *header.List) (all []string) {
	for _, f := range list.All() {
		all = append(all, strings.Clone(f.Name)+": "+strings.Clone(f.Value))
	}
	return all
}

// Body returns a body that gives one piece a read, and never waits.
func Body(pieces ...string) exchange.Body { return &body{pieces: pieces} }

type body struct {
	pieces []string
	closed bool
}

func (b *body) Read(p []byte) (int, error) {
	for len(b.pieces) > 0 && b.pieces[0] == "" {
		b.pieces = b.pieces[1:]
	}
	if b.closed || len(b.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, b.pieces[0])
	b.pieces[0] = b.pieces[0][n:]
	return n, nil
}

func (b *body) Ready() bool { return true }

func (b *body) Close() error {
	b.closed = true
	return nil
}

// Env returns the environment of a feature: a log that the test shows, the system's clock
// unless now is given, and a Keep that keeps what it opened for as long as the Env is used.
func Env(t testing.TB, now ...func() time.Time) exchange.Env {
	t.Helper()
	return EnvIn(t, "", now...)
}

// EnvIn is Env for settings whose files lie in dir.
func EnvIn(t testing.TB, dir string, now ...func() time.Time) exchange.Env {
	t.Helper()
	kept := map[string]exchange.Kept{}
	env := exchange.Env{Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Clock: time.Now, Scope: "proxy site"}
	env.Keep = func(key string, open func() exchange.Kept) exchange.Kept {
		if kept[key] == nil {
			kept[key] = open()
		}
		return kept[key]
	}
	env.File = func(name string) (*file.Followed, error) {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return file.Follow(name, 1<<20, "more than a file of a test")
	}
	env.Note = func(n exchange.Note) { env.Log.Log(context.Background(), n.Level, n.Text, n.Attrs...) }
	if len(now) > 0 {
		env.Clock = now[0]
	}
	return env
}
