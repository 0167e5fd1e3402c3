package interop

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// speaksPage is the page that has the rows.
const speaksPage = "../docs/reference/protocols.md"

// spoken is what a proxy was found to speak.
type spoken struct {
	name, version string
	errs          []error // by capability; nil where it speaks it
}

// cell is the entry of a row.
func (s *spoken) cell(i int) string {
	if s.errs[i] != nil {
		return " no |"
	}
	return " yes |"
}

// otherSpeaker is a proxy beside which headgate is tried.
type otherSpeaker struct {
	name    string
	program string // the variable of the environment that names it, or a name in PATH where that is empty
	about   []string
	version string // expression whose first group is the version, in the path or in what about prints
	files   map[string]string
	args    []string
}

// speakers are configured to speak as much as their documentation says they can, and without
// modules that are not part of them. In the texts, names in braces stand for addresses.
var speakers = []*otherSpeaker{
	{name: "nginx", program: "HEADGATE_NGINX", about: []string{"-v"}, version: `nginx/([\d.]+)`, args: []string{"-p", "{dir}", "-c", "{dir}/nginx.conf", "-e", "stderr"}, files: map[string]string{"nginx.conf": `
daemon off; worker_processes 1; pid {dir}/nginx.pid; user root; error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path {dir}/a; proxy_temp_path {dir}/b; fastcgi_temp_path {dir}/c; uwsgi_temp_path {dir}/d; scgi_temp_path {dir}/e;
  map $http_upgrade $hop { default upgrade; "" "te"; }
  gzip on; gzip_types text/plain; gzip_proxied any;
  set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;
  proxy_http_version 1.1;
  proxy_set_header Host $host; proxy_set_header X-Forwarded-For $remote_addr;
  proxy_set_header Connection $hop; proxy_set_header Upgrade $http_upgrade; proxy_set_header TE trailers;
  proxy_pass_trailers on; early_hints 1;
  server {
    listen {plain}; listen {proxied} proxy_protocol; listen {secure} ssl; listen {secure} quic;
    http2 on; http3 on;
    ssl_certificate {dir}/cert.pem; ssl_certificate_key {dir}/key.pem; ssl_protocols TLSv1.2 TLSv1.3;
    location / { proxy_pass http://{server}; }
    location /ws { proxy_pass http://{ws}; }
    location /unix/ { proxy_pass http://unix:{unix}; }
    location /h2c/ { proxy_http_version 2; proxy_set_header Host $host; proxy_pass http://{h2c}; }
    location /h2/ { proxy_http_version 2; proxy_set_header Host $host; proxy_pass https://{h2}; }
    location /grpc.testing.TestService/ { grpc_pass grpc://{grpc}; }
  }
}
`}},
	{name: "HAProxy", program: "HEADGATE_HAPROXY", about: []string{"-v"}, version: `version ([\d.]+)`, args: []string{"-db", "-f", "{dir}/haproxy.cfg"}, files: map[string]string{"haproxy.cfg": `
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  option forwardfor
frontend all
  bind {plain}
  bind {proxied} accept-proxy
  bind {secure} ssl crt {dir}/both.pem alpn h2,http/1.1 ssl-min-ver TLSv1.2
  bind quic4@{secure} ssl crt {dir}/both.pem alpn h3
  filter compression
  compression algo gzip
  compression type text/plain
  use_backend ws if { path /ws }
  use_backend unix if { path_beg /unix/ }
  use_backend h2 if { path_beg /h2/ }
  use_backend h2c if { path_beg /h2c/ }
  use_backend grpc if { path_beg /grpc.testing.TestService/ }
  default_backend server
backend server
  server s {server}
backend ws
  server s {ws}
backend unix
  server s unix@{unix}
backend h2
  server s {h2} ssl verify none alpn h2
backend h2c
  server s {h2c} proto h2
backend grpc
  server s {grpc} proto h2
`}},
	{name: "Caddy", program: "HEADGATE_CADDY", about: []string{"build-info"}, version: `caddy/v2\s+v([\d.]+)`, args: []string{"run", "--adapter", "caddyfile", "--config", "{dir}/Caddyfile"}, files: map[string]string{"Caddyfile": `
{
	admin off
	auto_https off
	ech ` + speakersPublicName + `
	storage file_system {dir}/storage
	servers {plain} {
		protocols h1 h2c
	}
	servers {proxied} {
		listener_wrappers {
			proxy_protocol {
				allow 127.0.0.0/8
			}
		}
	}
}
(all) {
	encode zstd gzip
	reverse_proxy /ws {ws}
	reverse_proxy /unix/* unix/{unix}
	reverse_proxy /h2/* https://{h2} {
		transport http {
			tls_insecure_skip_verify
			versions 2
		}
	}
	reverse_proxy /h2c/* h2c://{h2c}
	reverse_proxy /grpc.testing.TestService/* h2c://{grpc}
	reverse_proxy {server}
}
http://:{plain port} {
	bind 127.0.0.1
	import all
}
http://:{proxied port} {
	bind 127.0.0.1
	import all
}
https://:{secure port} {
	bind 127.0.0.1
	tls {dir}/cert.pem {dir}/key.pem
	import all
}
`}},
	{name: "Traefik", program: "HEADGATE_TRAEFIK", about: []string{"version"}, version: `traefik-v([\d.]+)`, args: []string{"--configFile={dir}/traefik.yml"}, files: map[string]string{"traefik.yml": `
entryPoints:
  plain: {address: "{plain}"}
  proxied: {address: "{proxied}", proxyProtocol: {insecure: true}}
  secure: {address: "{secure}", http3: {}}
providers: {file: {filename: {dir}/dynamic.yml}}
global: {checkNewVersion: false, sendAnonymousUsage: false}
`, "dynamic.yml": `
tls: {certificates: [{certFile: {dir}/cert.pem, keyFile: {dir}/key.pem}]}
http:
  middlewares: {small: {compress: {encodings: [zstd, br, gzip]}}}
  serversTransports: {trusting: {insecureSkipVerify: true}}
  services:
    server: {loadBalancer: {servers: [{url: "http://{server}"}]}}
    ws: {loadBalancer: {servers: [{url: "http://{ws}"}]}}
    h2: {loadBalancer: {serversTransport: trusting, servers: [{url: "https://{h2}"}]}}
    h2c: {loadBalancer: {servers: [{url: "h2c://{h2c}"}]}}
    grpc: {loadBalancer: {servers: [{url: "h2c://{grpc}"}]}}
    unix: {loadBalancer: {servers: [{url: "unix:{unix}"}]}}
  routers:
    server: {rule: "PathPrefix(` + "`/`" + `)", service: server, middlewares: [small]}
    ws: {rule: "PathPrefix(` + "`/ws`" + `)", service: ws}
    h2: {rule: "PathPrefix(` + "`/h2/`" + `)", service: h2}
    h2c: {rule: "PathPrefix(` + "`/h2c/`" + `)", service: h2c}
    grpc: {rule: "PathPrefix(` + "`/grpc.testing.TestService/`" + `)", service: grpc}
    unix: {rule: "PathPrefix(` + "`/unix/`" + `)", service: unix}
    serverTLS: {rule: "PathPrefix(` + "`/`" + `)", service: server, middlewares: [small], tls: {}}
    wsTLS: {rule: "PathPrefix(` + "`/ws`" + `)", service: ws, tls: {}}
    h2TLS: {rule: "PathPrefix(` + "`/h2/`" + `)", service: h2, tls: {}}
    h2cTLS: {rule: "PathPrefix(` + "`/h2c/`" + `)", service: h2c, tls: {}}
    grpcTLS: {rule: "PathPrefix(` + "`/grpc.testing.TestService/`" + `)", service: grpc, tls: {}}
    unixTLS: {rule: "PathPrefix(` + "`/unix/`" + `)", service: unix, tls: {}}
`}},
}

// newSpeaker chooses the addresses of a proxy.
func newSpeaker(t *testing.T, id *identity) *speaker {
	t.Helper()
	return &speaker{plain: free(t), secure: free(t), proxied: free(t), trust: &tls.Config{RootCAs: id.pool, ServerName: "localhost"}}
}

// askHeadgate starts headgate, and tries everything.
func askHeadgate(t *testing.T, id *identity, to *speakersServers) *spoken {
	t.Helper()
	s := newSpeaker(t, id)
	g := prepare(t)
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	g.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
ports:
  plain: {address: %q, protocol: http, h2c: true}
  proxied: {address: %q, protocol: http, proxy_protocol: {trusted: [127.0.0.0/8]}}
  secure: {address: %q, protocol: https, tls: {ech: {public_name: `+speakersPublicName+`}}}
  quic: {address: %q, protocol: http3, tls: {ech: {public_name: `+speakersPublicName+`}}}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies:
  all:
    compression: {}
    routes:
      - {servers: [{url: "http://%s"}]}
      - {path: /ws, servers: [{url: "http://%s"}]}
      - {path: /unix/, servers: [{url: "unix:%s"}]}
      - {path: /h2/, servers: [{url: "https://%s", tls: {ca_file: %q}}]}
      - {path: /h2c/, servers: [{url: "h2c://%s"}]}
      - {path: /grpc.testing.TestService, strip_prefix: false, servers: [{url: "h2c://%s"}]}
`, s.plain, s.proxied, s.secure, s.secure, to.plain, to.ws, to.unix, to.h2, to.ca, to.h2c, to.grpc))
	return &spoken{name: "headgate", errs: s.tryAll(t.Context())}
}

// askSpeaker starts another proxy, and tries everything.
func askSpeaker(t *testing.T, p *otherSpeaker, id *identity, to *speakersServers) *spoken {
	t.Helper()
	program := os.Getenv(p.program)
	if program == "" {
		t.Fatalf("%s names no %s", p.program, p.name)
	}
	out, err := exec.Command(program, p.about...).CombinedOutput()
	version := regexp.MustCompile(p.version).FindSubmatch(append([]byte(program+"\n"), out...))
	if err != nil || version == nil {
		t.Fatalf("%s %v: %v\n%s", program, p.about, err, out)
	}
	s, dir := newSpeaker(t, id), t.TempDir()
	port := func(address string) string { return fmt.Sprint(portOf(t, address)) }
	values := strings.NewReplacer("{dir}", dir, "{plain}", s.plain, "{secure}", s.secure, "{proxied}", s.proxied, "{server}", to.plain, "{ws}", to.ws, "{unix}", to.unix,
		"{h2}", to.h2, "{h2c}", to.h2c, "{grpc}", to.grpc, "{plain port}", port(s.plain), "{proxied port}", port(s.proxied), "{secure port}", port(s.secure))
	files := map[string]string{"cert.pem": id.cert, "key.pem": id.key, "both.pem": id.cert + id.key}
	for name, text := range p.files {
		files[name] = values.Replace(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	log := &record{}
	cmd := exec.Command(program)
	for _, a := range p.args {
		cmd.Args = append(cmd.Args, values.Replace(a))
	}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = log, log, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cmd.Process.Signal(syscall.SIGTERM) // it ends its own processes
		cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	}()
	eventually(t, p.name+" serves", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		return capabilities[0].try(ctx, s) == nil
	})
	found := &spoken{name: p.name, version: string(version[1]), errs: s.tryAll(t.Context())}
	for i, err := range found.errs {
		if err != nil {
			t.Logf("%s does not speak %s: %v", p.name, capabilities[i].name, err)
		}
	}
	return found
}

// speaksRow is the beginning of a row.
func speaksRow(c capability) string { return fmt.Sprintf("| %s | %s |", c.name, c.spec) }

// writeSpeaks returns the page.
func writeSpeaks(all []*spoken) string {
	var b strings.Builder
	b.WriteString(`# What headgate speaks

<!-- Generated by TestWhatHeadgateSpeaks in interop ("make speaks"). Do not edit. -->

A test starts each proxy, tries each line with a client, and writes this page. Each proxy has the settings that its documentation
gives for these protocols, and only modules that are part of it. "no" means that the client did not get what the line says. The
guide [Protocols](../guides/protocols.md) has the settings of headgate.

Tried on ` + time.Now().UTC().Format("2 January 2006") + ` with `)
	for i, s := range all[1:] {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", s.name, s.version)
	}
	b.WriteString(". nginx speaks Encrypted Client Hello if it is built with OpenSSL 4.0 or later; this one is not.\n")
	for i, c := range capabilities {
		if c.group != "" {
			fmt.Fprintf(&b, "\n## %s\n\n| | |", c.group)
			for _, s := range all {
				b.WriteString(" " + s.name + " |")
			}
			b.WriteString("\n|---|---|" + strings.Repeat("---|", len(all)) + "\n")
		}
		b.WriteString(speaksRow(c))
		for _, s := range all {
			b.WriteString(s.cell(i))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
