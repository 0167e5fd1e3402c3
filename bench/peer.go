//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"time"
)

// hostFormat makes the host of the n-th proxy. A setup of one proxy takes any
// host.
const hostFormat = "h%05d.bench.example"

// The protocols of ALPN.
const (
	h1 = "http/1.1"
	h2 = "h2"
)

// maxConnections is how many connections the peers are told to take.
const maxConnections = 7000

// setup is what a peer must do: the same for all of them.
type setup struct {
	dir        string   // the peer's own folder
	address    string   // to listen on
	moving     string   // a second address to listen on; empty means none
	upstreams  []string // servers of every route
	secure     string   // one by https in their place; empty means none
	grpc       string   // the server of the calls of gRPC; empty means none
	accessLog  bool     // write one, in the combined format
	proxies    int      // hosts with three routes each; 0 means one route for any host
	compress   string   // the coding of text; empty means none
	rules      bool     // set two fields, and take one away
	cache      bool     // keep answers
	processors int      // of the proxy; 0 means one, of which it has the core for itself
	paced      bool     // the upstream is the loop
	limited    bool     // bound the rate of requests by client, far above what is sent
	stream     bool     // carry TCP connections, and look at nothing in them
	generation int      // what /generation answers; 0 means there is no such route

	tunnels     bool         // pass upgrades at tunnelPath on to echo
	echo        string       // the address of the echo server
	quic        bool         // speak HTTP/3 too, and answer fixedPath; needs tls
	tls         bool         // speak TLS 1.3, with HTTP/2 and HTTP/1.1 over it
	certificate *certificate // to show when tls is set
}

// scheme returns http or https.
func (s *setup) scheme() string {
	if s.tls {
		return "https"
	}
	return "http"
}

// target returns where a client finds the peer, with a protocol of ALPN that
// matters only where TLS is spoken.
func (s *setup) target(protocol string, sessions tls.ClientSessionCache) target {
	t := target{address: s.address}
	if s.tls {
		t.tls = s.certificate.client(protocol, sessions)
	}
	return t
}

// workers returns how many processors the proxy uses.
func (s *setup) workers() int { return max(1, s.processors) }

// host returns the host of the n-th proxy.
func (s *setup) host(n int) string { return fmt.Sprintf(hostFormat, n) }

// peer is a proxy that can be measured.
type peer struct {
	name    string
	program string
	// file is the name of its configuration in the setup's folder; config
	// makes it.
	file   string
	config func(setup) string
	// about is the argument that makes it tell how it was built; quicWord is in that
	// where it speaks HTTP/3, and empty where it always does. quic is what was found.
	about, quicWord string
	quic            bool
	// argv and env start it in the setup's folder.
	argv func(setup) []string
	// env returns variables of its environment; nil means none.
	env func(setup) []string
	// reload makes it read its configuration again. It is nil when it does so
	// by itself, and the peer has no changes where canChange is false.
	reload    func(*process) error
	canChange bool
}

// programs are the paths of peers, or their names where they are in the path.
type programs struct{ headgate, before, nginx, haproxy string }

// allPeers returns every peer that the harness knows.
func allPeers(p programs) []peer {
	before := headgatePeer(p.before)
	before.name = "before"
	return []peer{headgatePeer(p.headgate), before, nginxPeer(p.nginx), haproxyPeer(p.haproxy), reverseProxyPeer()}
}

// running is a peer that was started.
type running struct {
	peer    peer
	setup   setup
	process *process
}

// start starts a peer and waits until it forwards, with all five fields right.
func (b *bench) start(p peer, s setup) (*running, error) {
	dir, err := makeDir(s.dir, strings.ReplaceAll(p.name, "/", "-"))
	if err != nil {
		return nil, err
	}
	s.dir = dir
	if err := writeFile(dir, p.file, p.config(s)); err != nil {
		return nil, err
	}
	cpu, env := b.options.proxyCPU, []string(nil)
	if s.workers() > 1 {
		cpu = anyCPU
	}
	if p.env != nil {
		env = p.env(s)
	}
	process, err := startProcess(cpu, dir, env, p.argv(s)...)
	if err != nil {
		return nil, err
	}
	request, want := s.proof()
	if err := ready(b.ctx, process, s.target(h1, nil), request, want); err != nil {
		process.stop()
		return nil, fmt.Errorf("%s: %w", p.name, err)
	}
	return &running{peer: p, setup: s, process: process}, nil
}

// change gives the peer a new configuration and returns once it had the time to
// notice; whether it acts already is for the caller to see.
func (r *running) change(s setup) error {
	s.dir = r.setup.dir
	r.setup = s
	if err := writeFile(s.dir, r.peer.file, r.peer.config(s)); err != nil {
		return err
	}
	if r.peer.reload == nil {
		return nil
	}
	return r.peer.reload(r.process)
}

// ready waits until an address gives the wanted body. The last that it gave is
// in the error when it never does.
func ready(ctx context.Context, p *process, t target, request []byte, want string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := sendRequest(t, request)
		switch {
		case err == nil && got == want:
			return nil
		case p.ended():
			return fmt.Errorf("ended:\n%s", p.lastLines())
		case ctx.Err() != nil && err != nil:
			return fmt.Errorf("not ready: %w\n%s", err, p.lastLines())
		case ctx.Err() != nil:
			return fmt.Errorf("not ready: got %q, want %q", got, want)
		}
		<-tick.C
	}
}

// freeAddresses returns n free addresses of 127.0.0.1.
func freeAddresses(n int) ([]string, error) {
	var addresses []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}
