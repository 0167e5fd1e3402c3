package interop

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nginxBorders is a configuration whose rules have borders: each of the requests of the
// test is on one side of one.
const nginxBorders = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream one { server %[3]s weight=2; }
  upstream two { server %[4]s; server 127.0.0.1:1 backup; }
  server {
    listen %[2]s default_server;
    server_name _;
    return 404;
  }
  server {
    listen %[2]s;
    server_name shop.example.com *.shop.example.com;
    location / { proxy_pass http://one; proxy_set_header Host $http_host; }
    location = /exact { proxy_pass http://two; proxy_set_header Host $http_host; }
    location ^~ /static/ { proxy_pass http://two; proxy_set_header Host $http_host; proxy_set_header X-Secret ""; }
    location /api { proxy_pass http://two; proxy_set_header Host $http_host; }
    location /base/ { proxy_pass http://two/v1/; proxy_set_header Host $http_host; }
    location /rewritten/ { rewrite ^/rewritten/(.*)$ /new/$1 break; proxy_pass http://one; proxy_set_header Host $http_host; }
    location /there { return 307 https://new.example.com/fixed; }
    location /staff/ { auth_basic Staff; auth_basic_user_file %[1]s/users; proxy_pass http://one; proxy_set_header Host $http_host; }
    location /office/ { allow 192.0.2.0/24; deny all; proxy_pass http://one; proxy_set_header Host $http_host; }
    location /headers/ { add_header X-Frame-Options DENY always; proxy_pass http://one; proxy_set_header Host $http_host; proxy_set_header X-Real-IP $remote_addr; }
  }
  server {
    listen %[2]s;
    server_name ~^v[0-9]+\.example\.org$ .dot.example.net;
    location / { proxy_pass http://two; proxy_set_header Host $http_host; }
  }
}
`

// TestNginxAtItsBorders gives nginx and headgate requests at the borders of each rule.
func TestNginxAtItsBorders(t *testing.T) {
	program := needed(t, "nginx", "nginx-light")
	theirs, ours, dir := free(t), free(t), t.TempDir()
	users := "anna:$apr1$abcdefgh$h9FWgUz3n9YxylKLlR5SQ/\n" // secret
	if err := os.WriteFile(filepath.Join(dir, "users"), []byte(users), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxBorders, dir, theirs, echo(t, "one"), echo(t, "two"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startPeer(t, theirs, program, "-p", dir, "-c", conf)
	got := importOf(t, "nginx", conf)
	start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(got.document, theirs, ours))

	var requests []wanted
	for _, host := range []string{"shop.example.com", "SHOP.example.com:8080", "a.shop.example.com", "a.b.shop.example.com", "v1.example.org", "vx.example.org", "dot.example.net", "x.dot.example.net", "unknown.example.com"} {
		for _, path := range []string{"/", "/a", "/a?b=c&d", "/exact", "/exact/", "/exact/x", "/exactly", "/static/x", "/static", "/statics", "/api", "/api/", "/api/x?y", "/apix", "/base/", "/base/x?y", "/base", "/bases",
			"/rewritten/x?y", "/rewritten/", "/there", "/there/x", "/thereabouts", "/staff/x", "/staff", "/office/x", "/office", "/headers/x", "/kept/%20y"} {
			for _, method := range []string{"GET", "HEAD", "POST", "DELETE"} {
				requests = append(requests, wanted{method: method, host: host, path: path, header: http.Header{"X-Secret": {"hush"}}},
					wanted{method: method, host: host, path: path, header: http.Header{"Authorization": {"Basic YW5uYTpzZWNyZXQ="}}})
			}
		}
	}
	equivalent(t, theirs, ours, got, requests, []told{
		{"there is no exact match", func(rq wanted, _, _ answer) bool { return strings.HasPrefix(rq.path, "/exact/") }},
		{"a path matches whole segments", func(rq wanted, _, _ answer) bool { return rq.path == "/apix" || rq.path == "/thereabouts" }},
		{"Location is relative", relative},
		{"does not look at allow and deny there", func(rq wanted, _, have answer) bool { return rq.path == "/office" && have.status == 403 }},
		{"a wildcard matches one label", func(rq wanted, _, _ answer) bool { return rq.host == "a.b.shop.example.com" }},
		{"the challenge names UTF-8", func(rq wanted, want, have answer) bool {
			return want.status == 401 && strings.TrimSuffix(have.auth, `, charset="UTF-8"`) == want.auth
		}},
	})
}
