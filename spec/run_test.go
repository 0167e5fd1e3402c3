package spec

import (
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/quic-go/quic-go"

	"headgate/internal/bans"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/front/h1"
	"headgate/internal/front/h2"
	"headgate/internal/front/h3"
	"headgate/internal/netconn"
	"headgate/internal/plan"
	"headgate/internal/plan/inputs"
	"headgate/internal/ports/listen"
	"headgate/internal/testhouse"
)

// stage is where a script plays: a compiled configuration, a socket that serves
// its port, and the servers.
type stage struct {
	t               *testing.T
	way             transport
	addr            string
	dead            string
	server, server2 *server
}

// newStage compiles a configuration and serves its one port.
func newStage(t *testing.T, text string, way transport) *stage {
	t.Helper()
	if way.http3 {
		s := playing(t, way)
		s.serveQUIC(text)
		return s
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newStageOn(t, l, text, way)
}

// playing returns a stage with its servers.
func playing(t *testing.T, way transport) *stage {
	t.Helper()
	s := &stage{t: t, way: way, server: newServer(t, "upstream"), server2: newServer(t, "upstream2")}
	s.server.loose, s.server2.loose = way.streams(), way.streams()
	s.dead = testhouse.Address(t)
	return s
}

// newStageOn is newStage on a listener of the test's.
func newStageOn(t *testing.T, l net.Listener, text string, way transport) *stage {
	t.Helper()
	s := playing(t, way)
	s.addr = l.Addr().String()
	p := compile(t, expand(way.onPort(text), s))
	p.Start()
	s.serve(l, p)
	t.Cleanup(func() { p.Retire(nil) })
	return s
}

// compile takes the way of every change: load, check, compile.
func compile(t *testing.T, text string) *plan.Plan {
	t.Helper()
	cfg, doc, problems := config.Load("config", []byte(text))
	var p *plan.Plan
	if len(problems) == 0 {
		values := state(t)
		loader := inputs.NewLoader(inputs.Options{Values: values})
		t.Cleanup(loader.Close)
		set := loader.Prepare(cfg, "")
		set.Commit()
		engine := bans.New(bans.Options{})
		t.Cleanup(engine.Close)
		p, problems = plan.Compile(cfg, nil, plan.House{Values: values, Inputs: set, Bans: engine}, doc.Report())
		engine.Use(cfg.BanRules(), nil)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
	if len(problems) > 0 {
		t.FailNow()
	}
	return p
}

// serve serves the first port of the plan until the test ends.
func (s *stage) serve(l net.Listener, p *plan.Plan) {
	var open sync.WaitGroup
	var mu sync.Mutex
	var conns []io.Closer
	closeLater := func(c io.Closer) {
		mu.Lock()
		defer mu.Unlock()
		conns = append(conns, c)
	}
	open.Go(func() {
		for serial := uint64(1); ; serial++ {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			closeLater(nc)
			open.Go(func() {
				if c := s.speak(nc, p.Ports()[0], serial); c != nil {
					closeLater(c)
					testhouse.Serve(c)
				}
			})
		}
	})
	s.t.Cleanup(func() {
		l.Close()
		mu.Lock()
		for _, c := range conns {
			c.Close()
		}
		mu.Unlock()
		open.Wait()
	})
}

// serveQUIC is newStage and serve for HTTP/3.
func (s *stage) serveQUIC(text string) {
	s.t.Helper()
	var port atomic.Pointer[plan.Port]
	f := &h3.Front{Port: func() *exchange.Port { return port.Load().Front() }}
	q, err := listen.OpenQUIC(netip.MustParseAddrPort("127.0.0.1:0"), nil, nil, listen.QUICSettings{
		TLS: func() (*tls.Config, error) { return port.Load().TLS(), nil }, Config: f.Config,
		Full: func() {}, Failed: func() {},
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = q.Bound().String()
	p := compile(s.t, expand(s.way.onPort(text), s))
	p.Start()
	s.t.Cleanup(func() { p.Retire(nil) })
	port.Store(p.Ports()[0])
	var serials atomic.Uint64
	if err := q.Serve(func(qc *quic.Conn) listen.Conn { return f.NewConn(qc, serials.Add(1)) }); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		q.Close()
		p.Retire(nil)
	})
}

// conn is a connection of any front.
type conn interface {
	Serve() (park func(resume func()) bool)
	Close() error
}

// speak returns what speaks to a client on a port, as internal/control does.
func (s *stage) speak(nc net.Conn, port *plan.Port, serial uint64) conn {
	front := func() *exchange.Port { return port.Front() }
	scheme := s.way.scheme()
	if port.TLS() != nil {
		secure := tls.Server(netconn.NewLazy(nc), port.TLS())
		if err := secure.Handshake(); err != nil {
			nc.Close()
			return nil
		}
		nc = secure
		if secure.ConnectionState().NegotiatedProtocol == "h2" {
			return (&h2.Front{Scheme: scheme, Port: front}).NewConn(nc, serial)
		}
	}
	return (&h1.Front{Scheme: scheme, Port: front}).NewConn(nc, serial)
}
