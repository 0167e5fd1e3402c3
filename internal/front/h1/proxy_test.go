package h1_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/clients"
	"headgate/internal/front/h1"
	"headgate/internal/netconn"
	"headgate/internal/testhouse"
	"headgate/internal/upstream"
)

// patience is how long a test waits for what must come at once.
const patience = time.Minute

// proxy is a port with one route to one server, with real sockets on both
// sides.
type proxy struct {
	t      testing.TB
	addr   string
	port   *exchange.Port
	pipe   *exchange.Pipeline
	front  *h1.Front
	ln     net.Listener
	served sync.WaitGroup
	entry  chan entry

	mu struct {
		sync.Mutex
		conns []*h1.Conn
		kept  []exchange.Kept
	}
	serial atomic.Uint64
}

// entry is what the log hears of an exchange.
type entry struct {
	reason         exchange.Reason
	cause          string
	status         int
	method, path   string
	host, agent    string
	sent, received int64
}

// option changes a proxy before it begins.
type option func(*proxy, *upstream.Settings)

func limits(change func(*exchange.Port)) option {
	return func(p *proxy, _ *upstream.Settings) { change(p.port) }
}

func servers(change func(*upstream.Settings)) option {
	return func(_ *proxy, s *upstream.Settings) { change(s) }
}

// filter puts a filter before the server.
func filter(f exchange.Filter) option {
	return func(p *proxy, _ *upstream.Settings) { p.pipe.Filters = append(p.pipe.Filters, f) }
}

// newProxy starts a proxy before the server at address.
func newProxy(t testing.TB, address string, options ...option) *proxy {
	t.Helper()
	p := &proxy{t: t, entry: make(chan entry, 1024)}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	env := exchange.Env{Log: log, Clock: time.Now, Keep: func(_ string, open func() exchange.Kept) exchange.Kept {
		k := open()
		p.mu.kept = append(p.mu.kept, k)
		return k
	}}
	p.pipe = &exchange.Pipeline{Log: log, Done: []func(*exchange.Exchange){p.done}}
	p.pipe.Filters = []exchange.Filter{{Name: "target", Request: func(ex *exchange.Exchange) *exchange.Answer {
		ex.Request.Target = ex.Request.Path
		return nil
	}}, upstream.Forward(upstream.Compat, false)}
	p.port = &exchange.Port{
		Place: &exchange.Place{Port: "web"}, HeadTimeout: patience, KeepAlive: patience, WriteIdle: patience,
		HeadSize: 32 << 10, HeadFields: 200, URISize: 16 << 10,
		Limits: exchange.Limits{RequestTimeout: patience, ConnectTimeout: patience, BodyIdle: patience, TunnelIdle: patience},
		Serve:  p.pipe.Serve, Refuse: p.pipe.Refuse,
	}
	settings := upstream.Settings{IdleTimeout: patience, IdleConnections: 16, BodyIdle: patience, HeadSize: 64 << 10}
	for _, o := range options {
		o(p, &settings)
	}
	if p.pipe.Source == nil {
		target := upstream.Target{URL: "http://" + address, Address: address, Authority: address, Weight: 1}
		p.pipe.Source = upstream.New([]upstream.Target{target}, settings, upstream.Policy{}, env)
	}
	p.front = &h1.Front{Port: func() *exchange.Port { return p.port }, Scheme: "http", Clients: clients.New()}
	p.listen()
	return p
}

func (p *proxy) listen() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr = ln.Addr().String()
	p.ln = netconn.NewListener(ln.(*net.TCPListener)) // as a socket of the product does
	accepting := make(chan struct{})
	go func() {
		defer close(accepting)
		for {
			nc, err := p.ln.Accept()
			if err != nil {
				return
			}
			c := p.front.NewConn(nc, p.serial.Add(1))
			p.served.Add(1) // before wait can know of it
			p.mu.Lock()
			p.mu.conns = append(p.mu.conns, c)
			p.mu.Unlock()
			go func() {
				defer p.served.Done()
				testhouse.Serve(c)
			}()
		}
	}()
	p.t.Cleanup(func() {
		p.ln.Close()
		<-accepting
		p.mu.Lock()
		for _, c := range p.mu.conns {
			c.Close()
		}
		p.mu.Unlock()
		p.wait()
		for _, k := range p.mu.kept {
			k.Retire()
		}
	})
}

// conn returns the connection that was accepted last.
func (p *proxy) conn() *h1.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.conns[len(p.mu.conns)-1]
}

// wait waits until every connection has ended.
func (p *proxy) wait() {
	p.t.Helper()
	ended := make(chan struct{})
	go func() {
		p.served.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(patience):
		p.t.Fatal("a connection of a client does not end")
	}
}

func (p *proxy) done(ex *exchange.Exchange) {
	agent, _ := ex.Request.Header.Lookup("User-Agent")
	e := entry{
		reason: ex.Reason, cause: strings.Clone(ex.Cause), status: ex.Status(),
		method: strings.Clone(ex.Request.Method), path: strings.Clone(ex.Request.Path),
		host: strings.Clone(ex.Request.Host), agent: strings.Clone(agent), sent: ex.Sent, received: ex.Received,
	}
	select {
	case p.entry <- e:
	default:
	}
}

// logged returns the next line of the log.
func (p *proxy) logged() entry {
	p.t.Helper()
	select {
	case e := <-p.entry:
		return e
	case <-time.After(patience):
		p.t.Fatal("no exchange ended")
		return entry{}
	}
}

// peer is one side of a connection, spoken to byte by byte.
type peer struct {
	t testing.TB
	*net.TCPConn
	r *bufio.Reader
}

func newPeer(t testing.TB, nc net.Conn) *peer {
	nc.SetDeadline(time.Now().Add(patience))
	return &peer{t, nc.(*net.TCPConn), bufio.NewReader(nc)}
}

// client connects to the proxy.
func (p *proxy) client() *peer {
	p.t.Helper()
	nc, err := net.Dial("tcp", p.addr)
	if err != nil {
		p.t.Fatal(err)
	}
	c := newPeer(p.t, nc)
	p.t.Cleanup(func() { c.Close() })
	return c
}

// send writes text.
func (c *peer) send(text ...string) {
	c.t.Helper()
	for _, s := range text {
		if _, err := io.WriteString(c.TCPConn, s); err != nil {
			c.t.Errorf("send %.60q: %v", s, err)
		}
	}
}

// try writes text and lets it fail.
func (c *peer) try(text string) error {
	_, err := io.WriteString(c.TCPConn, text)
	return err
}

// head reads up to the empty line.
func (c *peer) head() string {
	c.t.Helper()
	var b strings.Builder
	for {
		line, err := c.r.ReadString('\n')
		b.WriteString(line)
		if err != nil {
			c.t.Errorf("read head: %v after %q", err, b.String())
			return b.String()
		}
		if line == "\r\n" {
			return b.String()
		}
	}
}

// bytes reads n bytes.
func (c *peer) bytes(n int) string {
	c.t.Helper()
	b := make([]byte, n)
	if m, err := io.ReadFull(c.r, b); err != nil {
		c.t.Errorf("read %d bytes: %v after %.200q", n, err, b[:m])
	}
	return string(b)
}

// rest reads to the end of the stream.
func (c *peer) rest() string {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	if err != nil {
		c.t.Errorf("read to the end: %v after %.200q", err, b)
	}
	return string(b)
}

// answer is a response with its whole body.
type answer struct {
	*http.Response
	body string
	err  error // of the body
}

// answer reads one final response to a request with this method.
func (c *peer) answer(method string) answer {
	c.t.Helper()
	rs, err := http.ReadResponse(c.r, &http.Request{Method: method})
	if err != nil {
		c.t.Errorf("read response: %v", err)
		return answer{Response: &http.Response{}}
	}
	body, err := io.ReadAll(rs.Body)
	return answer{rs, string(body), err}
}

// get asks for path and returns the answer.
func (c *peer) get(path string) answer {
	c.t.Helper()
	c.send("GET " + path + " HTTP/1.1\r\nHost: a.test\r\n\r\n")
	return c.answer("GET")
}

// ends checks that the stream ends in an orderly way and holds nothing more.
func (c *peer) ends() {
	c.t.Helper()
	if b, err := io.ReadAll(c.r); err != nil || len(b) > 0 {
		c.t.Errorf("at the end: %q, %v", b, err)
	}
}

// gone checks that the connection ended, in an orderly way or not, and returns
// what came before.
func (c *peer) gone() string {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.t.Error("the connection stays open")
	}
	return string(b)
}

// isReset reads until the connection is reset.
func (c *peer) isReset() {
	c.t.Helper()
	if _, err := io.ReadAll(c.r); !errors.Is(err, syscall.ECONNRESET) {
		c.t.Errorf("the connection ended by %v, want a reset", err)
	}
}

// reset closes the connection with a reset.
func (c *peer) reset() {
	c.SetLinger(0)
	c.Close()
}

// origin is a server that plays what a test says, one connection after the
// other.
type origin struct {
	addr  string
	conns atomic.Int32
}

// newOrigin starts a server. play is run for each connection, which is closed
// behind it; n counts connections from 1.
func newOrigin(t testing.TB, play func(c *peer, n int)) *origin {
	t.Helper()
	o := &origin{}
	o.addr = testhouse.Server(t, func(nc net.Conn) {
		n := int(o.conns.Add(1))
		c := newPeer(t, nc)
		defer c.Close()
		play(c, n)
	})
	return o
}

// request reads one request whole. It returns nil at the end of the stream and
// tells anything else that is not a request.
func (c *peer) request() *received {
	var raw bytes.Buffer
	rq, err := http.ReadRequest(bufio.NewReader(io.TeeReader(oneByte{c.r}, &raw)))
	if err != nil {
		if raw.Len() > 0 {
			c.t.Errorf("the server got what is no request: %v\n%q", err, raw.Bytes())
		}
		return nil
	}
	head := raw.String()
	body, err := io.ReadAll(rq.Body)
	return &received{rq, head, string(body), err}
}

// received is a request as a server got it.
type received struct {
	*http.Request
	raw  string // the head, byte for byte
	body string
	err  error // of the body
}

// oneByte reads one byte at a time, so that a reader above takes no more than
// it needs.
type oneByte struct{ r io.Reader }

func (o oneByte) Read(p []byte) (int, error) { return o.r.Read(p[:min(1, len(p))]) }

// echo answers every request with its request line and body.
func echo(c *peer, _ int) {
	for rq := c.request(); rq != nil; rq = c.request() {
		c.ok(rq.Method + " " + rq.RequestURI + " " + rq.body)
	}
}

// ok sends a response with a body.
func (c *peer) ok(body string) {
	c.try("HTTP/1.1 200 OK\r\nContent-Length: " + itoa(len(body)) + "\r\n\r\n" + body)
}

// readAll reads to the end of the stream, whichever it is.
func readAll(c *peer) (string, error) {
	b, err := io.ReadAll(c.r)
	return string(b), err
}

// answerBody reads the body behind a head as it is on the wire.
func (c *peer) answerBody(head string) string {
	c.t.Helper()
	switch _, after, ok := strings.Cut(head, "Content-Length: "); {
	case ok:
		digits, _, _ := strings.Cut(after, "\r\n")
		n, _ := strconv.Atoi(digits)
		return c.bytes(n)
	case strings.Contains(head, "chunked"):
		var b strings.Builder
		for !strings.HasSuffix(b.String(), "0\r\n\r\n") {
			b.WriteString(c.bytes(1))
		}
		return b.String()
	}
	return ""
}

// refuseAll answers every request without a server.
func refuseAll(p *proxy, _ *upstream.Settings) {
	answer := exchange.Fail(exchange.NoRoute, "")
	p.pipe.Filters = []exchange.Filter{{Request: func(*exchange.Exchange) *exchange.Answer { return answer }}}
}
