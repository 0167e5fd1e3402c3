package h2_test

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/certs/certstest"
	"headgate/internal/exchange"
	"headgate/internal/front/h2"
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
	front  *h2.Front
	tls    *tls.Config
	served sync.WaitGroup
	entry  chan entry
	floods chan h2.Flood

	mu struct {
		sync.Mutex
		conns []*h2.Conn
		kept  []exchange.Kept
	}
	serial atomic.Uint64
	open   atomic.Int64
}

// entry is what the log hears of an exchange.
type entry struct {
	reason         exchange.Reason
	cause          string
	status         int
	method, path   string
	sent, received int64
}

// option changes a proxy before it begins.
type option func(*proxy, *upstream.Settings)

func limits(change func(*exchange.Port)) option {
	return func(p *proxy, _ *upstream.Settings) { change(p.port) }
}

// source replaces the server.
func source(respond func(*exchange.Exchange) *exchange.Answer) option {
	return func(p *proxy, _ *upstream.Settings) { p.pipe.Source = respondFunc(respond) }
}

type respondFunc func(*exchange.Exchange) *exchange.Answer

func (f respondFunc) Respond(ex *exchange.Exchange) *exchange.Answer { return f(ex) }
func (f respondFunc) Describe() string                               { return "test" }

// text answers every request with a short text.
func text(body string) option {
	b := []byte(body)
	return source(func(ex *exchange.Exchange) *exchange.Answer {
		ex.Response.Status = 200
		ex.Response.Text, ex.Response.Length = b, int64(len(b))
		return nil
	})
}

func overTLS(p *proxy, _ *upstream.Settings) {
	p.tls = &tls.Config{Certificates: []tls.Certificate{certificate(p.t)}, NextProtos: []string{"h2"}}
	p.front.Scheme = "https"
}

// newProxy starts a proxy before the server at address.
func newProxy(t testing.TB, address string, options ...option) *proxy {
	t.Helper()
	p := &proxy{t: t, entry: make(chan entry, 1<<16), floods: make(chan h2.Flood, 64)}
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
	p.front = &h2.Front{Port: func() *exchange.Port { return p.port }, Scheme: "http", Log: log, Flooded: func(f h2.Flood) { p.floods <- f }}
	settings := upstream.Settings{IdleTimeout: patience, IdleConnections: 512, BodyIdle: patience, HeadSize: 64 << 10}
	for _, o := range options {
		o(p, &settings)
	}
	if p.pipe.Source == nil {
		target := upstream.Target{URL: "http://" + address, Address: address, Authority: address, Weight: 1}
		p.pipe.Source = upstream.New([]upstream.Target{target}, settings, upstream.Policy{}, env)
	}
	p.listen()
	return p
}

func (p *proxy) listen() {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	p.addr = ln.Addr().String()
	p.served.Add(1)
	go func() {
		defer p.served.Done()
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			p.served.Add(1)
			go p.serve(nc)
		}
	}()
	p.t.Cleanup(func() {
		ln.Close()
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

func (p *proxy) serve(nc net.Conn) {
	defer p.served.Done()
	if p.tls != nil {
		secure := tls.Server(netconn.NewLazy(nc), p.tls) // as the sockets do it
		if secure.Handshake() != nil {
			nc.Close()
			return
		}
		nc = secure
	}
	c := p.front.NewConn(nc, p.serial.Add(1))
	p.mu.Lock()
	p.mu.conns = append(p.mu.conns, c)
	p.mu.Unlock()
	p.open.Add(1)
	defer p.open.Add(-1)
	testhouse.Serve(c)
}

// wait waits until every connection has ended.
func (p *proxy) wait() {
	done := make(chan struct{})
	go func() { p.served.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(patience):
		p.t.Error("a connection did not end")
	}
}

// conn returns the nth connection that was served.
func (p *proxy) conn(n int) *h2.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.conns[n]
}

func (p *proxy) done(ex *exchange.Exchange) {
	p.entry <- entry{ex.Reason, ex.Cause, ex.Status(), string([]byte(ex.Request.Method)), string([]byte(ex.Request.Path)), ex.Sent, ex.Received}
}

// logged returns the next line of the log.
func (p *proxy) logged() entry {
	p.t.Helper()
	select {
	case e := <-p.entry:
		return e
	case <-time.After(patience):
		p.t.Fatal("nothing was logged")
	}
	return entry{}
}

// flooded returns the next flood that was counted.
func (p *proxy) flooded() h2.Flood {
	p.t.Helper()
	select {
	case f := <-p.floods:
		return f
	case <-time.After(patience):
		p.t.Fatal("no flood was counted")
	}
	return h2.NoFlood
}

// certificate makes a certificate for 127.0.0.1 and example.com.
func certificate(t testing.TB) tls.Certificate {
	return certstest.Sign(t, &x509.Certificate{DNSNames: []string{"example.com"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, nil)
}

const exchangeNone = exchange.None

// quiet keeps no log.
func quiet(p *proxy, _ *upstream.Settings) { p.pipe.Done = nil }

// wait0 waits until the connections that were accepted have ended.
func (p *proxy) wait0() {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		if p.open.Load() == 0 {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatal("a connection did not end")
		}
	}
}
