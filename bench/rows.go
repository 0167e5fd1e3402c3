//go:build linux

package main

import (
	"fmt"
	"slices"
)

// wide is how many proxies the rows of many proxies have.
const wide = 10_000

// allRows returns every row, in the order of the table.
func allRows() []row {
	return slices.Concat(requestRows(), h2Rows(), h3Rows(), tunnelRows(), serverRows(), handshakeRows(), latencyRows(),
		idleRows(), manyRows(), contentRows(), cachingRows(), streamRows())
}

func canChange(p peer) bool { return p.canChange }

// overTLS is a plain setup with TLS.
func overTLS() []setup { return []setup{{tls: true}} }

// requestRows are of HTTP/1.1.
func requestRows() []row {
	return []row{
		{
			name: "keepalive", title: "HTTP/1.1 keep-alive, 100 B, c=64", unit: "µs CPU per request",
			goals:   []goal{{"nginx", 0.85}, {"haproxy", 0.85}, {"net/http", 0.35}},
			measure: measureRequests,
		},
		{
			name: "log", title: "the same with an access log", unit: "µs CPU per request",
			goals:   []goal{{"nginx", 0.95}},
			setups:  func() []setup { return []setup{{accessLog: true}} },
			measure: measureRequests,
		},
		{
			name: "newconn", title: "a new connection per request, c=64", unit: "µs CPU per request",
			goals:   []goal{{"nginx", 1}},
			measure: measureNewConnections,
		},
		{
			name: "body", title: "100 MiB body", unit: "ms CPU per download",
			goals:   []goal{{"nginx", 0.25}},
			measure: measureBodies,
		},
		{
			name: "tls", title: "HTTP/1.1 keep-alive over TLS 1.3, 100 B, c=32", unit: "µs CPU per request",
			goals:   []goal{{"nginx", 0.8}},
			setups:  overTLS,
			measure: measureTLS,
		},
	}
}

// h2Rows are of HTTP/2 over TLS.
func h2Rows() []row {
	return []row{
		{
			name: "h2", title: "HTTP/2 over TLS 1.3, 100 B, 8 × 16 streams", unit: "µs CPU per request",
			goals: []goal{{"nginx", 0.6}}, needs: "h2load",
			setups:  overTLS,
			measure: measureH2,
		},
		{
			name: "h2body", title: "100 MiB body over HTTP/2, download", unit: "ms CPU per download",
			goals: []goal{{"nginx", 1}}, needs: "h2load",
			setups:  overTLS,
			measure: measureH2Downloads,
		},
		{
			name: "h2upload", title: "100 MiB body over HTTP/2, upload", unit: "ms CPU per upload",
			goals: []goal{{"nginx", 1}}, needs: "h2load",
			setups:  overTLS,
			measure: measureH2Uploads,
		},
	}
}

// h3Rows are of HTTP/3.
func h3Rows() []row {
	return []row{
		{
			name: "h3", title: "HTTP/3, 100 B, answered by the proxy itself, 8 × 16 streams", unit: "µs CPU per request",
			goals: []goal{{"nginx", 0.9}, {"net/http", 1.3}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3,
		},
		{
			name: "h3proxy", title: "HTTP/3 with an upstream, 100 B, 8 × 16 streams", unit: "µs CPU per request",
			goals: []goal{{"nginx", 0.9}, {"net/http", 0.8}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3Proxy,
		},
		{
			name: "h3body", title: "100 MiB body over HTTP/3, download", unit: "ms CPU per download",
			goals: []goal{{"nginx", 1}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3Downloads,
		},
		{
			name: "h3conn", title: "a new HTTP/3 connection and one request", unit: "µs CPU per connection",
			goals: []goal{{"nginx", 0.7}}, only: speaksQUIC,
			setups:  overQUIC,
			measure: measureH3Connections,
		},
		{
			name: "idleh3", title: "memory of an idle HTTP/3 connection", unit: "KiB",
			goals: []goal{{"", 50}}, only: speaksQUIC, fresh: true,
			setups:  overQUIC,
			measure: measureIdleH3,
		},
	}
}

// tunnelRows are of WebSockets.
func tunnelRows() []row {
	return []row{
		{
			name: "ws", title: "WebSocket echo of 100 B, c=64", unit: "µs CPU per message",
			goals: []goal{{"nginx", 0.9}}, only: passesTunnels,
			setups:  withTunnels,
			measure: measureTunnels,
		},
		{
			name: "idlews", title: "memory of an idle WebSocket", unit: "KiB",
			goals: []goal{{"", 6}}, only: passesTunnels, fresh: true,
			setups:  withTunnels,
			measure: measureIdleTunnels,
		},
	}
}

// serverRows are of other servers than those of plain HTTP/1.1.
func serverRows() []row {
	return []row{
		{
			name: "httpsserver", title: "HTTP/1.1 keep-alive to an https server, 100 B, c=64", unit: "µs CPU per request",
			goals:   []goal{{"nginx", 1}},
			only:    func(p peer) bool { return p.canChange && p.name != "haproxy" },
			setups:  func() []setup { return []setup{{secure: "yes"}} },
			measure: measureRequests,
		},
		{
			name: "grpc", title: "gRPC unary over TLS 1.3, 40 B, 8 × 16 streams", unit: "µs CPU per call",
			goals: []goal{{"nginx", 1.2}},
			only:  func(p peer) bool { return p.canChange && p.name != "haproxy" }, needs: "h2load",
			setups:  func() []setup { return []setup{{tls: true, grpc: "yes"}} },
			measure: measureGRPC,
		},
	}
}

// handshakeRows are of connections over TLS.
func handshakeRows() []row {
	return []row{
		{
			name: "handshake", title: "full TLS 1.3 handshake, ECDSA P-256, and one request", unit: "µs CPU per connection",
			setups:  overTLS,
			measure: measureHandshakes,
		},
		{
			name: "resumed", title: "resumed TLS 1.3 handshake, and one request", unit: "µs CPU per connection",
			setups:  overTLS,
			measure: measureResumed,
		},
	}
}

// latencyRows are of a rate that nginx can hold.
func latencyRows() []row {
	return []row{
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
	}
}

// idleRows are of what connections keep that do nothing.
func idleRows() []row {
	return []row{
		{
			name: "idle", title: "memory of an idle keep-alive connection", unit: "KiB",
			goals: []goal{{"", 2}}, fresh: true,
			measure: measureIdle,
		},
		{
			name: "rest", title: "CPU time with idle keep-alive connections", unit: "µs per second",
			goals: []goal{{"", 1000}}, fresh: true,
			measure: measureRest,
		},
		{
			name: "restwakes", title: "wake-ups with idle keep-alive connections", unit: "per second",
			goals: []goal{{"nginx", 1}}, fresh: true,
			measure: measureRestWakes,
		},
		{
			name: "idletls", title: "memory of an idle TLS connection, HTTP/1.1", unit: "KiB",
			goals: []goal{{"", 12}}, fresh: true,
			setups:  overTLS,
			measure: measureIdle,
		},
		{
			name: "idleh2", title: "memory of an idle TLS connection, HTTP/2", unit: "KiB",
			goals: []goal{{"", 14}}, fresh: true,
			setups:  overTLS,
			measure: measureIdleH2,
		},
	}
}

// manyRows are of very many proxies, and of changes.
func manyRows() []row {
	return []row{
		{
			name: "many", title: "10 000 proxies × 3 routes, CPU per request", unit: "× one proxy",
			goals: []goal{{"", 1.05}}, only: canChange,
			setups:  func() []setup { return []setup{{proxies: 1}, {proxies: wide}} },
			measure: measureMany,
		},
		{
			name: "memory", title: "memory after the start, with one proxy", unit: "MiB",
			goals: []goal{{"", 20}}, fresh: true, cold: true,
			measure: measureMemory,
		},
		{
			name: "manymemory", title: "the same with 10 000 proxies × 3 routes", unit: "MiB",
			goals: []goal{{"", 120}}, only: canChange, fresh: true, cold: true,
			setups:  func() []setup { return []setup{{proxies: wide}} },
			measure: measureMemory,
		},
		{
			name: "apply", title: "a change with 10 000 proxies, until it is active", unit: "ms",
			goals: []goal{{"", 100}}, only: canChange,
			setups:  func() []setup { return []setup{{proxies: wide, generation: 1}} },
			measure: measureApply,
		},
		{
			name: "change", title: fmt.Sprintf("%d changes of ports and servers under load", changes), unit: "requests lost",
			goals: []goal{{"", 0}}, only: canChange, fresh: true,
			setups:  func() []setup { return []setup{{generation: 1, moving: "yes"}} },
			measure: measureChanges,
		},
	}
}
