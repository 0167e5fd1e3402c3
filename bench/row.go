//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
)

// sample is one measurement.
type sample struct {
	value float64
	of    int // for counts: of how many; else 0
}

// row is one line of the table: some work, and how it is measured.
type row struct {
	name  string
	title string
	unit  string
	goals []goal
	// only leaves out peers that cannot do it; nil means all can.
	only func(peer) bool
	// setups returns what is started of each peer; nil means one plain setup.
	setups func() []setup
	// needs is the program that makes the load beside wrk; empty means none.
	needs string
	// fresh starts the peer anew for each measurement.
	fresh bool
	// measure measures once.
	measure func(*bench, []*running) (sample, error)
}

// goal is how good headgate is to be in a row: at most this much times the peer,
// or at most this much in the row's unit when there is no peer.
type goal struct {
	peer string
	most float64
}

// wide is how many proxies the rows of many proxies have.
const wide = 10_000

// allRows returns every row, in the order of the table.
func allRows() []row {
	canChange := func(p peer) bool { return p.canChange }
	return append([]row{
		{
			name: "keepalive", title: "HTTP/1.1 keep-alive, 100 B, c=64", unit: "µs CPU a request",
			goals:   []goal{{"nginx", 0.95}, {"haproxy", 0.85}, {"net/http", 0.35}},
			measure: measureRequests,
		},
		{
			name: "log", title: "the same with an access log", unit: "µs CPU a request",
			goals:   []goal{{"nginx", 0.95}},
			setups:  func() []setup { return []setup{{accessLog: true}} },
			measure: measureRequests,
		},
		{
			name: "newconn", title: "a new connection for each request, c=64", unit: "µs CPU a request",
			goals:   []goal{{"nginx", 1.1}},
			measure: measureNewConnections,
		},
		{
			name: "body", title: "100 MiB body", unit: "ms CPU a download",
			goals:   []goal{{"nginx", 0.35}},
			measure: measureBodies,
		},
		{
			name: "tls", title: "HTTP/1.1 keep-alive over TLS 1.3, 100 B, c=32", unit: "µs CPU a request",
			goals:   []goal{{"nginx", 1}},
			setups:  overTLS,
			measure: measureTLS,
		},
		{
			name: "h2", title: "HTTP/2 over TLS 1.3, 100 B, 8 × 16 streams", unit: "µs CPU a request",
			goals: []goal{{"nginx", 0.95}}, needs: "h2load",
			setups:  overTLS,
			measure: measureH2,
		},
		{
			name: "h2body", title: "100 MiB body over HTTP/2, download", unit: "ms CPU a download",
			goals: []goal{{"nginx", 1}}, needs: "h2load",
			setups:  overTLS,
			measure: measureH2Downloads,
		},
		{
			name: "h2upload", title: "100 MiB body over HTTP/2, upload", unit: "ms CPU an upload",
			goals: []goal{{"nginx", 1}}, needs: "h2load",
			setups:  overTLS,
			measure: measureH2Uploads,
		},
		{
			name: "h3", title: "HTTP/3, 100 B answered by the peer itself, 8 × 16 streams", unit: "µs CPU a request",
			goals: []goal{{"nginx", 0.9}, {"net/http", 1.3}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3,
		},
		{
			name: "h3proxy", title: "HTTP/3 with an upstream, 100 B, 8 × 16 streams", unit: "µs CPU a request",
			goals: []goal{{"nginx", 0.9}, {"net/http", 0.8}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3Proxy,
		},
		{
			name: "h3body", title: "100 MiB body over HTTP/3, download", unit: "ms CPU a download",
			goals: []goal{{"nginx", 1}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3Downloads,
		},
		{
			name: "h3conn", title: "a new connection of HTTP/3, and one request", unit: "µs CPU a connection",
			goals: []goal{{"nginx", 0.7}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3Connections,
		},
		{
			name: "idleh3", title: "memory of an idle connection of HTTP/3", unit: "KiB",
			goals: []goal{{"", 50}}, only: speaksQUIC, fresh: true,
			setups:  overQUIC,
			measure: measureIdleH3,
		},
		{
			name: "ws", title: "WebSocket echo of 100 B, c=64", unit: "µs CPU a message",
			goals: []goal{{"nginx", 0.95}}, only: passesTunnels,
			setups:  withTunnels,
			measure: measureTunnels,
		},
		{
			name: "idlews", title: "memory of an idle WebSocket", unit: "KiB",
			goals: []goal{{"", 12}}, only: passesTunnels, fresh: true,
			setups:  withTunnels,
			measure: measureIdleTunnels,
		},
		{
			name: "httpsserver", title: "HTTP/1.1 keep-alive to an https server, 100 B, c=64", unit: "µs CPU a request",
			goals:   []goal{{"nginx", 1}},
			only:    func(p peer) bool { return p.canChange && p.name != "haproxy" },
			setups:  func() []setup { return []setup{{secure: "yes"}} },
			measure: measureRequests,
		},
		{
			name: "grpc", title: "gRPC unary over TLS 1.3, 40 B, 8 × 16 streams", unit: "µs CPU a call",
			goals: []goal{{"nginx", 1.2}},
			only:  func(p peer) bool { return p.canChange && p.name != "haproxy" }, needs: "h2load",
			setups:  func() []setup { return []setup{{tls: true, grpc: "yes"}} },
			measure: measureGRPC,
		},
		{
			name: "handshake", title: "full TLS 1.3 handshake, ECDSA P-256, and one request", unit: "µs CPU a connection",
			setups:  overTLS,
			measure: measureHandshakes,
		},
		{
			name: "resumed", title: "resumed TLS 1.3 handshake, and one request", unit: "µs CPU a connection",
			setups:  overTLS,
			measure: measureResumed,
		},
		{
			name: "latency", title: "p99 latency at half of nginx's peak rate, HTTP/1.1", unit: "µs",
			goals:   []goal{{"nginx", 1}},
			setups:  paced,
			measure: measureLatency,
		},
		{
			name: "latencyh2", title: "the same over HTTP/2 and TLS 1.3", unit: "µs",
			goals: []goal{{"nginx", 1}}, needs: "h2load",
			setups:  pacedTLS,
			measure: measureLatencyH2,
		},
		{
			name: "idle", title: "memory of an idle keep-alive connection", unit: "KiB",
			goals: []goal{{"", 6}}, fresh: true,
			measure: measureIdle,
		},
		{
			name: "idletls", title: "memory of an idle TLS connection, HTTP/1.1", unit: "KiB",
			goals: []goal{{"", 20}}, fresh: true,
			setups:  overTLS,
			measure: measureIdle,
		},
		{
			name: "idleh2", title: "memory of an idle TLS connection, HTTP/2", unit: "KiB",
			goals: []goal{{"", 20}}, fresh: true,
			setups:  overTLS,
			measure: measureIdleH2,
		},
		{
			name: "many", title: "10 000 proxies × 3 routes, CPU a request", unit: "× one proxy",
			goals: []goal{{"", 1.05}}, only: canChange,
			setups:  func() []setup { return []setup{{proxies: 1}, {proxies: wide}} },
			measure: measureMany,
		},
		{
			name: "apply", title: "a change with 10 000 proxies, until it acts", unit: "ms",
			goals: []goal{{"", 200}}, only: canChange,
			setups:  func() []setup { return []setup{{proxies: wide, generation: 1}} },
			measure: measureApply,
		},
		{
			name: "change", title: fmt.Sprintf("%d changes of ports and servers under load", changes), unit: "requests lost",
			goals: []goal{{"", 0}}, only: canChange, fresh: true,
			setups:  func() []setup { return []setup{{generation: 1, moving: "yes"}} },
			measure: measureChanges,
		},
	}, slices.Concat(contentRows(), cachingRows(), streamRows())...)
}

// overTLS is a plain setup with TLS.
func overTLS() []setup { return []setup{{tls: true}} }

func rowNames() []string {
	var names []string
	for _, r := range allRows() {
		names = append(names, r.name)
	}
	return names
}

// chooseRows returns the rows of a list with commas, or all.
func chooseRows(list string) ([]row, error) {
	if list == "" {
		return allRows(), nil
	}
	var chosen []row
next:
	for name := range strings.SplitSeq(list, ",") {
		for _, r := range allRows() {
			if r.name == name {
				chosen = append(chosen, r)
				continue next
			}
		}
		return nil, fmt.Errorf("no row named %q; there are %s", name, strings.Join(rowNames(), ", "))
	}
	return chosen, nil
}

// result is what was measured of a row, by peer.
type result struct {
	row     row
	samples map[string][]sample
}

// row measures one row: all peers in turn, then all again.
func (b *bench) row(r row) (result, error) {
	res := result{row: r, samples: map[string][]sample{}}
	started := map[string][]*running{}
	defer func() {
		for _, all := range started {
			stopAll(all)
		}
	}()
	fmt.Printf("%s: %s, %s\n", r.name, r.title, r.unit)
	for round := range b.options.rounds {
		for _, p := range b.peers {
			if r.only != nil && !r.only(p) {
				continue
			}
			if started[p.name] == nil {
				all, err := b.startAll(r, p, round)
				if err != nil {
					return res, err
				}
				started[p.name] = all
			}
			s, err := r.measure(b, started[p.name])
			if err != nil {
				return res, fmt.Errorf("%s: %w", p.name, err)
			}
			res.samples[p.name] = append(res.samples[p.name], s)
			fmt.Printf("  %d %-9s %s\n", round+1, p.name, s)
			if r.fresh {
				stopAll(started[p.name])
				delete(started, p.name)
			}
		}
	}
	return res, nil
}

// startAll starts what a row needs of a peer, and warms it.
func (b *bench) startAll(r row, p peer, round int) ([]*running, error) {
	setups := []setup{{}}
	if r.setups != nil {
		setups = r.setups()
	}
	addresses, err := freeAddresses(2 * len(setups))
	if err != nil {
		return nil, err
	}
	var all []*running
	for i, s := range setups {
		s.dir, err = makeDir(b.dir, fmt.Sprintf("%s-%d-%d", r.name, round, i))
		if err != nil {
			break
		}
		s.address = addresses[2*i]
		if s.moving != "" {
			s.moving = addresses[2*i+1]
		}
		s.upstreams = b.upstream.addresses[:1]
		if s.paced {
			s.upstreams = []string{b.loop.address}
		}
		s.certificate, s.echo = b.certificate, b.echo.address
		if s.secure != "" {
			s.secure = b.upstream.secure
		}
		if s.grpc != "" {
			s.grpc = b.upstream.grpc
		}
		var one *running
		if one, err = b.start(p, s); err != nil {
			break
		}
		all = append(all, one)
		if _, err = b.wrk(one, warmSeconds, "-c16"); err != nil {
			break
		}
	}
	if err != nil {
		stopAll(all)
		return nil, err
	}
	return all, nil
}

func stopAll(all []*running) {
	for _, r := range all {
		r.process.stop()
	}
}

// String writes a sample as it stands in the table.
func (s sample) String() string {
	if s.of > 0 {
		return fmt.Sprintf("%.0f of %d", s.value, s.of)
	}
	return short(s.value)
}
