package spec

import (
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/front/h1"
	"headgate/internal/plan"
)

// stage is where a script plays: a compiled configuration, a socket that serves
// its port, and the servers.
type stage struct {
	t               *testing.T
	addr            string
	dead            string
	server, server2 *server
}

// newStage compiles a configuration and serves its one port.
func newStage(t *testing.T, text string) *stage {
	t.Helper()
	s := &stage{t: t, server: newServer(t, "upstream"), server2: newServer(t, "upstream2")}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	s.dead = deadAddress(t)
	p := compile(t, expand(text, s))
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
		p, problems = plan.Compile(cfg, nil, plan.House{}, doc.Report())
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
	front := &h1.Front{Scheme: "http", Port: func() *exchange.Port { return p.Ports()[0].Front() }}
	var serial atomic.Uint64
	var open sync.WaitGroup
	var mu sync.Mutex
	var conns []*h1.Conn
	open.Go(func() {
		for {
			nc, err := l.Accept()
			if err != nil {
				return
			}
			c := front.NewConn(nc, serial.Add(1))
			mu.Lock()
			conns = append(conns, c)
			mu.Unlock()
			open.Go(c.Serve)
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

func (s *stage) dial() *peer {
	s.t.Helper()
	c, err := net.Dial("tcp4", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	return newPeer(s.t, "client", c)
}

// deadAddress returns an address where nobody listens: one that is bound by a
// socket which never listens.
func deadAddress(t *testing.T) string {
	l, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	// The TCP port of the same number is free in practice; the system hands out
	// others first.
	return strings.Replace(l.LocalAddr().String(), "udp", "tcp", 1)
}
