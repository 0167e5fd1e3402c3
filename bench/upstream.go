//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// bodySize is the size of the large body, in bytes.
const bodySize = 100 << 20

// upstream is the nginx that all proxies forward to. It listens on two addresses.
type upstream struct {
	dir       string // where the large body is
	process   *process
	addresses [2]string
	secure    string // an address where it speaks TLS

	calls *process // the upstream of gRPC
	grpc  string   // its address
}

// startUpstream starts the upstream on its core and waits until it answers.
func startUpstream(b *bench) (*upstream, error) {
	dir, err := makeDir(b.dir, "upstream")
	if err != nil {
		return nil, err
	}
	addresses, err := freeAddresses(3)
	if err != nil {
		return nil, err
	}
	u := &upstream{dir: dir, addresses: [2]string(addresses), secure: addresses[2]}
	if err := makeBody(filepath.Join(dir, "body")); err != nil {
		return nil, err
	}
	if err := makePage(dir); err != nil {
		return nil, err
	}
	if err := makeKept(dir); err != nil {
		return nil, err
	}
	if err := writeFile(dir, "nginx.conf", u.config(dir, b.certificate)); err != nil {
		return nil, err
	}
	u.process, err = startProcess(b.options.upstreamCPU, dir, nil, "nginx", "-p", dir, "-c", "nginx.conf", "-e", "stderr")
	if err != nil {
		return nil, err
	}
	for _, address := range u.addresses {
		if err := ready(b.ctx, u.process, target{address: address}, get("/", "upstream"), hundredBytes); err != nil {
			u.process.stop()
			return nil, fmt.Errorf("upstream: %w", err)
		}
	}
	return u, nil
}

// hundredBytes is the body of the plain answer.
var hundredBytes = strings.Repeat("0123456789", 10)

// config makes the upstream's configuration. An answer to /sink comes once the
// whole body of the request is there: nginx would answer by itself before.
func (u *upstream) config(dir string, c *certificate) string {
	servers := ""
	for i, address := range append(u.addresses[:], u.secure) {
		listen := fmt.Sprintf("listen %s backlog=4096;", address)
		if address == u.secure {
			listen = fmt.Sprintf("listen %s ssl backlog=4096;\n    ssl_certificate %s;\n    ssl_certificate_key %s;\n%s", address, c.file, c.key, nginxTLS)
		}
		servers += fmt.Sprintf(`
  server {
    %s
    location / { return 200 "%s"; }
    location = /which { return 200 "%d"; }
    location = /fields { return 200 "$http_forwarded|$http_x_forwarded_for|$http_x_forwarded_proto|$http_x_forwarded_host|$http_via"; }
    location = /body { root %s; }
    location = /page { root %s; }
%s    location = /sink {
      client_max_body_size 0;
      client_body_buffer_size %d;
      proxy_pass_request_body off;
      proxy_set_header Content-Length "";
      proxy_pass http://%s/;
    }
  }`, listen, hundredBytes, i, dir, dir, keptLocations(dir), bodySize+1, u.addresses[0])
	}
	return nginxHead(1) + `
http {
  access_log off;
  default_type text/plain;
  sendfile on;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;` + nginxPaths + servers + "\n}\n"
}

// fieldsAs is what /fields answers when all five forwarded fields are right.
func fieldsAs(host, scheme string) string {
	return fmt.Sprintf("for=127.0.0.1, host=%s, proto=%s|127.0.0.1|%s|%s|proxy", host, scheme, scheme, host)
}

// makeBody makes the large file. It has no blocks on the disk; reading it once
// puts its pages into memory.
func makeBody(path string) error {
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		return err
	}
	if err := os.Truncate(path, bodySize); err != nil {
		return err
	}
	_, err := os.ReadFile(path)
	return err
}

// makeDir makes a folder that a worker of another user may enter too.
func makeDir(parent, name string) (string, error) {
	dir := filepath.Join(parent, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	return dir, os.Chmod(parent, 0o755)
}

// writeFile puts a file in place whole: a reader sees the old one or the new.
func writeFile(dir, name, text string) error {
	whole := filepath.Join(dir, "."+name+".new")
	if err := os.WriteFile(whole, []byte(text), 0o644); err != nil {
		return err
	}
	return os.Rename(whole, filepath.Join(dir, name))
}
