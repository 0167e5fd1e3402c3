//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// nginxPeer is nginx with one worker.
func nginxPeer(program string) peer {
	modules := nginxModules
	if strings.ContainsRune(program, filepath.Separator) {
		modules = filepath.Join(filepath.Dir(program), "../modules")
	}
	return peer{
		name:     "nginx",
		program:  program,
		about:    "-V",
		quicWord: "http_v3_module",
		file:     "nginx.conf",
		config:   func(s setup) string { return nginxConfig(s, modules) },
		argv: func(s setup) []string {
			return []string{program, "-p", s.dir, "-c", "nginx.conf", "-e", "stderr"}
		},
		reload:    func(p *process) error { return p.signal(syscall.SIGHUP) },
		canChange: true,
	}
}

// nginxHead is the part outside http. As root the worker stays root, so that it
// may write where the harness is.
func nginxHead(workers int) string {
	user := ""
	if os.Getuid() == 0 {
		user = "user root;\n"
	}
	return user + fmt.Sprintf(`daemon off;
worker_processes %d;
worker_rlimit_nofile %d;
error_log stderr error;
pid nginx.pid;
events { worker_connections %d; }
`, workers, 2*maxConnections+1000, 2*maxConnections)
}

// nginxPaths keeps temporary files in the folder of the setup.
const nginxPaths = `
  client_body_temp_path body_temp;
  proxy_temp_path proxy_temp;
  fastcgi_temp_path fastcgi_temp;
  uwsgi_temp_path uwsgi_temp;
  scgi_temp_path scgi_temp;`

// nginxHTTP sets the forwarded fields and keeps connections on both sides. A
// large body is not put on the disk, in neither direction: that would only slow
// nginx down.
const nginxHTTP = `
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  client_max_body_size 0;
  tcp_nodelay on;
  server_names_hash_max_size 65536;
  server_names_hash_bucket_size 128;
  proxy_http_version 1.1;
  proxy_max_temp_file_size 0;
  proxy_request_buffering off;
  proxy_set_header Connection "";
  proxy_set_header Host $http_host;
  proxy_set_header Forwarded "for=$remote_addr, host=$http_host, proto=$scheme";
  proxy_set_header X-Forwarded-For $remote_addr;
  proxy_set_header X-Forwarded-Proto $scheme;
  proxy_set_header X-Forwarded-Host $http_host;
  proxy_set_header Via proxy;
`

// nginxGRPC sets the forwarded fields of calls of gRPC.
const nginxGRPC = `grpc_set_header Forwarded "for=$remote_addr, host=$http_host, proto=$scheme"; ` +
	`grpc_set_header X-Forwarded-For $remote_addr; grpc_set_header X-Forwarded-Proto $scheme; ` +
	`grpc_set_header X-Forwarded-Host $http_host; grpc_set_header Via proxy; `

// nginxTLS is version 1.3 with tickets and the one cipher suite of all peers.
const nginxTLS = `    ssl_protocols TLSv1.3;
    ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
    ssl_session_tickets on;
`

func nginxConfig(s setup, modules string) string {
	if s.stream {
		return nginxRelay(s, modules)
	}
	var c strings.Builder
	c.WriteString(nginxHead(s.workers()))
	if s.quic {
		// A request of HTTP/3 has no field Host.
		c.WriteString("http {" + nginxPaths + strings.ReplaceAll(nginxHTTP, "$http_host", "$host") + "  quic_gso on;\n")
	} else {
		c.WriteString("http {" + nginxPaths + nginxHTTP)
	}
	if s.accessLog {
		c.WriteString("  access_log access.log combined buffer=64k flush=1s;\n")
	} else {
		c.WriteString("  access_log off;\n")
	}
	if s.compress != "" {
		c.WriteString("  gzip on;\n  gzip_comp_level 5;\n  gzip_min_length 1024;\n  gzip_proxied any;\n  gzip_vary on;\n  gzip_types text/plain;\n")
	}
	if s.rules {
		c.WriteString("  proxy_set_header X-Real-IP $remote_addr;\n  add_header Strict-Transport-Security max-age=63072000 always;\n  proxy_hide_header X-Powered-By;\n")
	}
	if s.limited {
		c.WriteString("  limit_req_zone $binary_remote_addr zone=clients:1m rate=1000000r/s;\n  limit_req zone=clients burst=1000000 nodelay;\n")
	}
	if s.cache {
		// Its files stay in the page cache, and open.
		c.WriteString("  proxy_cache_path kept keys_zone=kept:16m inactive=1h max_size=256m;\n  proxy_cache kept;\n" +
			"  sendfile on;\n  open_file_cache max=1000 inactive=1h;\n  open_file_cache_valid 1h;\n  add_header Cache-Status $upstream_cache_status;\n")
	}
	c.WriteString("  upstream up {\n    keepalive 128;\n    keepalive_requests 1000000000;\n    keepalive_timeout 1h;\n")
	pass, secured := "http://up", ""
	if s.secure != "" {
		s.upstreams, pass = []string{s.secure}, "https://up"
		secured = "  proxy_ssl_protocols TLSv1.3;\n"
	}
	for _, u := range s.upstreams {
		fmt.Fprintf(&c, "    server %s;\n", u)
	}
	c.WriteString("  }\n" + secured)
	if s.grpc != "" {
		fmt.Fprintf(&c, "  upstream calls {\n    keepalive 128;\n    keepalive_requests 1000000000;\n    keepalive_timeout 1h;\n    server %s;\n  }\n", s.grpc)
	}
	if s.proxies == 0 {
		c.WriteString("  server {\n" + nginxListen(s))
		if s.generation > 0 {
			fmt.Fprintf(&c, "    location = /generation { return 200 \"%d\"; }\n", s.generation)
		}
		if s.tunnels {
			fmt.Fprintf(&c, "    location %s { proxy_pass http://%s; proxy_set_header Connection upgrade; proxy_set_header Upgrade $http_upgrade; proxy_read_timeout 1h; }\n", tunnelPath, s.echo)
		}
		if s.grpc != "" {
			fmt.Fprintf(&c, "    location %s { grpc_pass grpc://calls; %s}\n", grpcPath, nginxGRPC)
		}
		fmt.Fprintf(&c, "    location / { proxy_pass %s; }\n  }\n", pass)
	}
	for n := range s.proxies {
		fmt.Fprintf(&c, "  server {\n%s    server_name %s;\n", nginxListen(s), s.host(n))
		if n == 0 && s.generation > 0 {
			fmt.Fprintf(&c, "    location = /generation { return 200 \"%d\"; }\n", s.generation)
		}
		c.WriteString("    location / { proxy_pass http://up; }\n" +
			"    location /api/ { proxy_pass http://up/; }\n" +
			"    location /static/ { proxy_pass http://up/; }\n  }\n")
	}
	c.WriteString("}\n")
	return c.String()
}

func nginxListen(s setup) string {
	listen := fmt.Sprintf("    listen %s;\n", s.address)
	if s.tls {
		listen = fmt.Sprintf("    listen %s ssl http2;\n    ssl_certificate %s;\n    ssl_certificate_key %s;\n",
			s.address, s.certificate.file, s.certificate.key) + nginxTLS
	}
	if s.quic {
		listen += fmt.Sprintf("    listen %s quic reuseport;\n    location = %s { default_type text/plain; return 200 \"%s\"; }\n", s.address, fixedPath, hundredBytes)
	}
	if s.moving != "" {
		listen += fmt.Sprintf("    listen %s;\n", s.moving)
	}
	return listen
}
