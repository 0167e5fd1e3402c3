//go:build linux

package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// headgatePeer is headgate with one processor. It watches its file, so that a change needs
// no reload.
func headgatePeer(program string) peer {
	return peer{
		name:    "headgate",
		program: program,
		file:    "headgate.yaml",
		config:  headgateConfig,
		argv: func(setup) []string {
			return []string{program, "run", "--config", "headgate.yaml", "--state", "state"}
		},
		env:       goProcessors,
		canChange: true,
	}
}

// goProcessors is the environment of a peer in Go.
func goProcessors(s setup) []string { return []string{fmt.Sprintf("GOMAXPROCS=%d", s.workers())} }

func headgateConfig(s setup) string {
	if s.stream {
		return headgateRelay(s)
	}
	var c strings.Builder
	c.WriteString("version: 1\nadmin: {address: \"\"}\n")
	if s.accessLog {
		fmt.Fprintf(&c, "access_log: {enabled: true, format: combined, path: %q}\n", filepath.Join(s.dir, "access.log"))
	} else {
		c.WriteString("access_log: {enabled: false}\n")
	}
	if s.tls {
		fmt.Fprintf(&c, "certificates:\n  main: {cert_file: %q, key_file: %q}\n", s.certificate.file, s.certificate.key)
		fmt.Fprintf(&c, "ports:\n  web: {address: %q, protocol: https, limits: {keep_alive_timeout: 1h}, tls: {min_version: \"1.3\", default_certificate: main}}\n", s.address)
		if s.quic {
			fmt.Fprintf(&c, "  quic: {address: %q, protocol: http3, limits: {keep_alive_timeout: 1h}, tls: {default_certificate: main}}\n", s.address)
		}
	} else {
		fmt.Fprintf(&c, "ports:\n  web: {address: %q, protocol: http, limits: {keep_alive_timeout: 1h}}\n", s.address)
	}
	if s.moving != "" {
		fmt.Fprintf(&c, "  moving: {address: %q, protocol: http}\n", s.moving)
	}
	servers := ""
	for _, u := range s.upstreams {
		servers += fmt.Sprintf("{url: \"http://%s\"}, ", u)
	}
	if s.secure != "" {
		servers = fmt.Sprintf("{url: \"https://%s\", tls: {ca_file: %q}}", s.secure, s.certificate.file)
	}
	servers = "servers: [" + strings.TrimSuffix(servers, ", ") + "]"
	if s.compress != "" {
		servers += fmt.Sprintf(", compression: {algorithms: [%s]}", s.compress)
	}
	if s.cache {
		servers += ", cache: {}"
	}
	if s.limited {
		servers += ", rate_limit: {requests: 1000000, period: 1s, burst: 1000000}"
	}
	if s.rules {
		servers += ", headers: [" +
			"{direction: request, name: X-Real-IP, value: \"{client_ip}\"}, " +
			"{direction: response, name: Strict-Transport-Security, value: max-age=63072000}, " +
			"{direction: response, operation: remove, name: X-Powered-By}]"
	}
	generation := ""
	if s.generation > 0 {
		generation = fmt.Sprintf("      - {path: /generation, fixed_response: {status: 200, body: \"%d\"}}\n", s.generation)
	}
	if s.quic {
		generation += fmt.Sprintf("      - {path: %s, fixed_response: {status: 200, body: %q}}\n", fixedPath, hundredBytes)
	}
	if s.tunnels {
		generation += fmt.Sprintf("      - {path: %s, servers: [{url: \"http://%s\"}]}\n", tunnelPath, s.echo)
	}
	if s.grpc != "" {
		generation += fmt.Sprintf("      - {path: %s, strip_prefix: false, servers: [{url: \"h2c://%s\"}]}\n", grpcPath, s.grpc)
	}
	c.WriteString("proxies:\n")
	if s.proxies == 0 {
		fmt.Fprintf(&c, "  any:\n    routes:\n%s      - {path: /, %s}\n", generation, servers)
	}
	for n := range s.proxies {
		fmt.Fprintf(&c, "  p%05d:\n    virtual_hosts: [%s]\n    routes:\n", n, s.host(n))
		if n == 0 {
			c.WriteString(generation)
		}
		for _, path := range []string{"/", "/api", "/static"} {
			fmt.Fprintf(&c, "      - {path: %s, %s}\n", path, servers)
		}
	}
	return c.String()
}
