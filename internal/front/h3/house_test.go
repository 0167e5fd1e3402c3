package h3_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
	"go.uber.org/goleak"

	"headgate/internal/certs/certstest"
	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/front/h3"
	"headgate/internal/ports/listen"
)

// patience is how long a test waits for what must come at once.
const patience = time.Minute

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// entry is what the log hears of an exchange.
type entry struct {
	reason exchange.Reason
	cause  string
	status int
	ex     seen
}

// seen is what a source sees of a request.
type seen struct {
	method, host, path string
	length             int64
	bodiless           bool
}

// front is a port with one source.
type front struct {
	speak  *h3.Front
	served chan *quic.Conn
	last   atomic.Pointer[h3.Conn] // that was served
	t      testing.TB
	addr   string
	port   *exchange.Port
	quic   *listen.QUIC
	entry  chan entry
}

// source answers an exchange.
type source func(*exchange.Exchange) *exchange.Answer

func (s source) Respond(ex *exchange.Exchange) *exchange.Answer { return s(ex) }
func (s source) Describe() string                               { return "test" }

// text is a source with a short response.
func text(body string) source {
	return func(ex *exchange.Exchange) *exchange.Answer {
		ex.Response.Status, ex.Response.Text, ex.Response.Length = 200, []byte(body), int64(len(body))
		return nil
	}
}

// newFront serves a source until the test ends. change may be nil.
func newFront(t testing.TB, s source, change func(*exchange.Port), fronts ...func(*h3.Front)) *front {
	t.Helper()
	f := &front{t: t, entry: make(chan entry, 1000), served: make(chan *quic.Conn, 1000)}
	pipe := &exchange.Pipeline{Source: s, Log: slog.New(slog.DiscardHandler), Done: []func(*exchange.Exchange){func(ex *exchange.Exchange) {
		rq := &ex.Request
		c := strings.Clone // what is looked at later, when the stream's memory serves another
		e := entry{ex.Reason, c(ex.Cause), ex.Status(), seen{c(rq.Method), c(rq.Host), c(rq.Path), rq.Length, rq.Body == nil}}
		select {
		case f.entry <- e:
		default:
		}
	}}}
	f.port = &exchange.Port{
		Place: &exchange.Place{Port: "p"}, HeadTimeout: patience, KeepAlive: time.Minute, WriteIdle: patience,
		HeadSize: 32 << 10, HeadFields: 200, URISize: 16 << 10, Streams: 256,
		Limits: exchange.Limits{BodyIdle: patience, TunnelIdle: patience}, Serve: pipe.Serve, Refuse: pipe.Refuse,
	}
	if change != nil {
		change(f.port)
	}
	f.speak = &h3.Front{Port: func() *exchange.Port { return f.port }, Clients: clients.New()}
	for _, set := range fronts {
		set(f.speak)
	}
	cfg := &tls.Config{Certificates: []tls.Certificate{certstest.Sign(t, &x509.Certificate{DNSNames: []string{"h"}}, nil)}, NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13}
	var err error
	f.quic, err = listen.OpenQUIC(netip.MustParseAddrPort("127.0.0.1:0"), nil, nil, listen.QUICSettings{
		TLS: func() (*tls.Config, error) { return cfg, nil }, Config: func() *quic.Config { return f.speak.Config() },
		Full: func() {}, Failed: func() {},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f.addr = f.quic.Bound().String()
	var serials atomic.Uint64
	if err := f.quic.Serve(func(qc *quic.Conn) listen.Conn {
		f.served <- qc
		c := f.speak.NewConn(qc, serials.Add(1))
		f.last.Store(c)
		return c
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.quic.Close)
	return f
}

// logged returns what the log hears next.
func (f *front) logged() entry {
	f.t.Helper()
	select {
	case e := <-f.entry:
		return e
	case <-time.After(patience):
		f.t.Fatal("nothing was logged")
		return entry{}
	}
}

// raw is a client that writes any bytes.
type raw struct {
	t    testing.TB
	conn *quic.Conn
}

// dial connects and sends nothing.
func (f *front) dial() *raw {
	f.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	qc, err := quic.DialAddr(ctx, f.addr, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}}, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { qc.CloseWithError(0x100, "") })
	return &raw{f.t, qc}
}

// frame makes a frame.
func frame(kind uint64, payload []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...)
}

// section encodes fields, given as name, value, name, value.
func section(fields ...string) []byte {
	var b bytes.Buffer
	e := qpack.NewEncoder(&b)
	for i := 0; i < len(fields); i += 2 {
		e.WriteField(qpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

// get is a good request.
var get = []string{":method", "GET", ":scheme", "https", ":authority", "h", ":path", "/"}

func with(more ...string) []string { return append(append([]string{}, get...), more...) }

// stream opens a request stream, writes bytes, and ends it if end is set.
func (c *raw) stream(b []byte, end bool) *quic.Stream {
	c.t.Helper()
	s, err := c.conn.OpenStream()
	if err != nil {
		c.t.Fatal(err)
	}
	s.SetDeadline(time.Now().Add(patience))
	s.Write(b)
	if end {
		s.Close()
	}
	return s
}

// apart does something when what was written before has left, in a packet of its
// own.
func (c *raw) apart(do func()) {
	c.t.Helper()
	for last, quiet := uint64(0), 0; quiet < 5; {
		now := c.conn.ConnectionStats().BytesSent
		if quiet++; now != last {
			last, quiet = now, 0
		}
		time.Sleep(2 * time.Millisecond)
	}
	do()
}

// uni opens a unidirectional stream and writes bytes.
func (c *raw) uni(b []byte) *quic.SendStream {
	c.t.Helper()
	s, err := c.conn.OpenUniStream()
	if err != nil {
		c.t.Fatal(err)
	}
	s.Write(b)
	return s
}

// stopControl has us know that the client reads our control stream no more.
func (c *raw) stopControl() {
	c.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	s, err := c.conn.AcceptUniStream(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	s.CancelRead(0)
}

// reply is a response as it came.
type reply struct {
	status  string
	interim []string
	body    string
	trailer []qpack.HeaderField
	err     error // of the stream, or nil at its clean end
}

// await reads the response.
func (c *raw) await(s *quic.Stream) (rs reply) {
	r := quicvarint.NewReader(s)
	for {
		kind, err := quicvarint.Read(r)
		if err == io.EOF {
			return rs
		}
		var length uint64
		if err == nil {
			length, err = quicvarint.Read(r)
		}
		payload := make([]byte, length)
		if err == nil {
			_, err = io.ReadFull(r, payload)
		}
		if err != nil {
			rs.err = err
			return rs
		}
		switch kind {
		case 0:
			rs.body += string(payload)
		case 1:
			rs.addSection(payload)
		}
	}
}

func (rs *reply) addSection(section []byte) {
	next := qpack.NewDecoder().Decode(section)
	for {
		f, err := next()
		switch {
		case err == io.EOF:
			return
		case err != nil:
			rs.err = err
			return
		case f.Name == ":status" && f.Value[0] == '1':
			rs.interim = append(rs.interim, f.Value)
		case f.Name == ":status":
			rs.status = f.Value
		case rs.body != "":
			rs.trailer = append(rs.trailer, f)
		}
	}
}

// reset returns the code with which a stream was reset, 0 if it was not.
func (rs *reply) reset() uint64 {
	var e *quic.StreamError
	if errors.As(rs.err, &e) {
		return uint64(e.ErrorCode)
	}
	return 0
}

// ended waits for the end of the connection and returns its code.
func (c *raw) ended() uint64 {
	c.t.Helper()
	select {
	case <-c.conn.Context().Done():
	case <-time.After(patience):
		c.t.Error("the connection lives on")
		return 0
	}
	var e *quic.ApplicationError
	if !errors.As(context.Cause(c.conn.Context()), &e) {
		c.t.Errorf("the connection ended by %v", context.Cause(c.conn.Context()))
		return 0
	}
	return uint64(e.ErrorCode)
}
