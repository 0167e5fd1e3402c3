//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// nginxModules is where Debian puts nginx's modules, and nginxStream the one for TCP; an
// nginx that is built with it has no such file.
const (
	nginxModules = "/usr/lib/nginx/modules"
	nginxStream  = "ngx_stream_module.so"
)

// streamRows are the rows of TCP proxying. The payload is HTTP: the load and the upstream
// are those of the other rows.
func streamRows() []row {
	relays := func(p peer) bool { return p.name != "net/http" }
	relay := func() []setup { return []setup{{stream: true}} }
	return []row{
		{
			name: "tcp", title: "TCP relay, download", unit: "ms CPU per GB",
			goals: []goal{{"nginx", 0.5}, {"haproxy", 0.5}}, only: relays,
			setups: relay, measure: measureRelay,
		},
		{
			name: "tcpsmall", title: "TCP relay, exchanges of 100 B, c=64", unit: "µs CPU per exchange",
			goals: []goal{{"nginx", 0.95}}, only: relays,
			setups: relay, measure: measureRequests,
		},
		{
			name: "tcpconn", title: "TCP relay, a connection per exchange of 100 B", unit: "µs CPU per connection",
			goals: []goal{{"nginx", 1.1}}, only: relays,
			setups: relay, measure: measureNewConnections,
		},
		{
			name: "tcpidle", title: "memory of an idle connection through a TCP relay", unit: "KiB",
			only: relays, fresh: true,
			setups: relay, measure: measureIdle,
		},
	}
}

// measureRelay is measureBodies for each GB.
func measureRelay(b *bench, all []*running) (sample, error) {
	s, err := measureBodies(b, all)
	s.value *= float64(1e9) / bodySize
	return s, err
}

// proof returns a request and its answer that show that the peer does its work.
func (s *setup) proof() (request []byte, want string) {
	if s.stream || s.paced {
		return get("/", "upstream"), hundredBytes
	}
	host := s.host(0)
	return get("/fields", host), fieldsAs(host, s.scheme())
}

// nginxRelay is nginx's configuration of a relay.
func nginxRelay(s setup, modules string) string {
	var c strings.Builder
	module, err := filepath.Abs(filepath.Join(modules, nginxStream))
	if err == nil {
		_, err = os.Stat(module)
	}
	if err == nil {
		fmt.Fprintf(&c, "load_module %s;\n", module)
	}
	c.WriteString(nginxHead(1) + "stream {\n  proxy_timeout 1h;\n  tcp_nodelay on;\n  upstream up {\n")
	for _, u := range s.upstreams {
		fmt.Fprintf(&c, "    server %s;\n", u)
	}
	fmt.Fprintf(&c, "  }\n  server { listen %s; proxy_pass up; }\n}\n", s.address)
	return c.String()
}

// haproxyRelay is HAProxy's configuration of a relay.
func haproxyRelay(s setup) string {
	var c strings.Builder
	fmt.Fprintf(&c, `global
  nbthread 1
  maxconn %d

defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  option splice-auto

listen relay
  bind %s
`, maxConnections, s.address)
	for i, u := range s.upstreams {
		fmt.Fprintf(&c, "  server s%d %s\n", i, u)
	}
	return c.String()
}

// headgateRelay is headgate's configuration of a relay.
func headgateRelay(s setup) string {
	servers := make([]string, len(s.upstreams))
	for i, u := range s.upstreams {
		servers[i] = fmt.Sprintf("{address: %q}", u)
	}
	return fmt.Sprintf("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\ntcp_proxies:\n  relay: {address: %q, servers: [%s], idle_timeout: %s}\n",
		s.address, strings.Join(servers, ", "), time.Hour)
}
