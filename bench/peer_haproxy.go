//go:build linux

package main

import (
	"fmt"
	"strings"
)

// haproxyPeer is HAProxy with one thread. It is not asked for many proxies or
// for changes: its way of doing either is another than a list of servers.
func haproxyPeer(program string) peer {
	return peer{
		name:     "haproxy",
		program:  program,
		about:    "-vv",
		quicWord: "+QUIC ",
		file:     "haproxy.cfg",
		config:   haproxyConfig,
		argv: func(setup) []string {
			return []string{program, "-db", "-f", "haproxy.cfg"}
		},
	}
}

func haproxyConfig(s setup) string {
	if s.stream {
		return haproxyRelay(s)
	}
	var c strings.Builder
	fmt.Fprintf(&c, `global
  nbthread %d
  maxconn %d
`, s.workers(), maxConnections)
	if s.quic {
		c.WriteString("  tune.quic.frontend.max-idle-timeout 1h\n")
	}
	if s.accessLog {
		c.WriteString("  log stdout format raw local0 info\n")
	}
	c.WriteString(`
defaults
  mode http
  timeout connect 5s
  timeout client 1h
  timeout server 1h
  timeout http-keep-alive 1h
  option http-keep-alive
  option splice-auto
  http-reuse always
`)
	if s.accessLog {
		c.WriteString("  log global\n  option httplog\n")
	}
	secure := ""
	if s.tls {
		secure = " ssl crt " + s.certificate.both + " alpn h2,http/1.1 ssl-min-ver TLSv1.3 ciphersuites TLS_AES_128_GCM_SHA256"
	}
	quic := ""
	if s.quic {
		quic = fmt.Sprintf("  bind quic4@%s ssl crt %s alpn h3 ciphersuites TLS_AES_128_GCM_SHA256\n  http-request return status 200 content-type text/plain string %q if { path %s }\n",
			s.address, s.certificate.both, hundredBytes, fixedPath)
	}
	fmt.Fprintf(&c, `
frontend web
  bind %s%s
%s  http-request set-header Forwarded "for=%%[src], host=%%[req.hdr(host)], proto=%s"
  http-request set-header X-Forwarded-For %%[src]
  http-request set-header X-Forwarded-Proto %s
  http-request set-header X-Forwarded-Host %%[req.hdr(host)]
  http-request set-header Via proxy
`, s.address, secure, quic, s.scheme(), s.scheme())
	if s.rules {
		c.WriteString("  http-request set-header X-Real-IP %[src]\n  http-response set-header Strict-Transport-Security max-age=63072000\n  http-response del-header X-Powered-By\n")
	}
	c.WriteString("  default_backend up\n\nbackend up\n")
	for i, u := range s.upstreams {
		fmt.Fprintf(&c, "  server s%d %s\n", i, u)
	}
	return c.String()
}
