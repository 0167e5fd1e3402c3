package interop

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nginxRules is a configuration that decides by conditions, maps, expressions and named
// locations.
const nginxRules = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
  upstream one { server %[3]s; }
  upstream two { server %[4]s; }
  upstream gone { server 127.0.0.1:1; }
  map $http_x_version $byversion { default one; 2 two; "" one; }
  map $request_method $readonly { default 1; GET 0; HEAD 0; }
  map $host $byhost { default one; b.maps.example.com two; }
  proxy_set_header Host $http_host;
  proxy_set_header X-Real-IP $remote_addr;
  server { listen %[2]s default_server; server_name _; return 404; }
  server {
    listen %[2]s;
    server_name a.example.com b.example.com www.old.example.com old.example.com;
    if ($host = b.example.com) { return 302 https://a.example.com/moved; }
    if ($host ~* ^www\.(.*)$) { set $bare $1; rewrite ^(.*)$ http://$bare$1 permanent; }
    if ($request_method !~ ^(GET|HEAD|POST)$) { return 405; }
    if ($http_x_bad) { return 403; }
    if ($arg_debug = "1") { return 204; }
    set $flag 0;
    if ($http_x_flag = "on") { set $flag 1; }
    location / { proxy_pass http://one; }
    location /post/ { if ($request_method = POST) { return 307 https://post.example.com$request_uri; } proxy_pass http://one; }
    location /flag/ { if ($flag = 1) { return 200 "flagged"; } proxy_pass http://one; }
    location /ab/ { if ($cookie_beta = yes) { proxy_pass http://two; } proxy_pass http://one; }
    location /map/ { proxy_pass http://$byversion; }
    location = /map/exact { return 301 https://exact.example.com/; }
    location ~ ^/regex/(v1|v2)(/|$) { proxy_pass http://two; }
    location ~ ^/gone/(.*)$ { return 301 /new/$1; }
    location ^~ /gone/not/ { proxy_pass http://two; }
    location ~* \.(old)$ { rewrite ^/(.*)\.old$ /$1.new permanent; }
    location /readonly/ { if ($readonly) { return 405; } proxy_pass http://one; }
    location /named/ { try_files /nothing/at/all @named; }
    location @named { proxy_pass http://two; proxy_set_header X-Secret named; proxy_set_header Host $http_host; }
    location /teapot/ { error_page 418 = @named; return 418; }
    location /errors/ { error_page 404 /404.html; return 404; }
    location = /404.html { internal; root %[1]s/pages; }
    location /net/ { allow 127.0.0.1; deny 127.0.0.0/8; allow all; proxy_pass http://one; }
    location /net2/ { deny 127.0.0.1; allow 127.0.0.0/8; deny all; proxy_pass http://one; }
    location /real/ { set_real_ip_from 127.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on; proxy_pass http://one; }
    location /inner/ { proxy_set_header X-Secret own; proxy_set_header Host $http_host; proxy_pass http://one; location /inner/deep/ { proxy_pass http://two/x/; } }
    location /rewrite/ { rewrite ^/rewrite/(.*)$ /to/$1 break; proxy_pass http://one; }
    location /last/ { rewrite ^/last/(.*)$ /named2/$1 last; }
    location /named2/ { proxy_pass http://two/base/; }
    location /host/ { proxy_set_header Host fixed.example.com; proxy_pass http://one; }
    location /type/ { default_type application/json; return 200 "{}"; }
    location /private/ { auth_request /auth; auth_request_set $who $upstream_http_x_who; proxy_set_header X-Who $who; proxy_set_header Host $http_host; proxy_pass http://one; }
    location = /auth { internal; proxy_pass http://%[5]s/check; proxy_pass_request_body off; proxy_set_header Content-Length ""; }
    location /location/ { proxy_pass http://one; proxy_redirect http://internal.example.com/ https://public.example.com/; }
  }
  server {
    listen %[2]s;
    server_name *.maps.example.com;
    location / { proxy_pass http://$byhost; }
  }
}
`

// TestNginxRulesDecideAsNginxDoes gives nginx and headgate requests that each condition,
// map, expression and named location decides about.
func TestNginxRulesDecideAsNginxDoes(t *testing.T) {
	program := needed(t, "nginx", "nginx-light")
	theirs, ours, dir := free(t), free(t), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "pages"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "pages", "404.html"), []byte("<h1>nothing here</h1>"), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "nginx.conf")
	text := fmt.Sprintf(nginxRules, dir, theirs, echo(t, "one"), echo(t, "two"), doorkeeper(t))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startPeer(t, theirs, program, "-p", dir, "-c", conf)
	got := importOf(t, "nginx", conf)
	start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(got.document, theirs, ours))

	var requests []wanted
	hosts := []string{"a.example.com", "A.example.com:8080", "b.example.com", "www.old.example.com", "old.example.com", "a.maps.example.com", "b.maps.example.com", "unknown.example.com"}
	paths := []string{"/", "/x?debug=1", "/x?debug=2", "/post/x?y", "/post", "/flag/x", "/ab/x", "/map/x", "/map/exact", "/map/exact/x", "/regex/v1", "/regex/v1/x", "/regex/v3", "/regex/v1x", "/gone/a?b", "/gone/not/x",
		"/some/page.old?x", "/readonly/x", "/named/x", "/teapot/x", "/errors/x", "/404.html", "/net/x", "/net2/x", "/real/x", "/inner/x", "/inner/deep/x", "/rewrite/a?b", "/last/x?y", "/named2/x",
		"/host/x", "/type/x", "/private/x", "/auth", "/location/x"}
	headers := []http.Header{{}, {"X-Bad": {"1"}}, {"X-Bad": {"0"}}, {"X-Flag": {"on"}}, {"X-Flag": {"ON"}}, {"X-Version": {"2"}}, {"X-Version": {"22"}}, {"Cookie": {"a=b; beta=yes"}}, {"Cookie": {"beta=yesterday"}},
		{"X-Forwarded-For": {"192.0.2.1"}}, {"X-Forwarded-For": {"192.0.2.1, 127.0.0.9"}}, {authHeader: {"right"}}, {"X-Secret": {"mine"}}}
	for _, host := range hosts {
		for _, path := range paths {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
				for _, header := range headers {
					requests = append(requests, wanted{method: method, host: host, path: path, header: header})
				}
			}
		}
	}
	equivalent(t, theirs, ours, got, requests, []told{
		{"Location is relative", relative},
	})
}

// relative reports whether the answers differ in that headgate's Location has no scheme,
// host and port in front.
func relative(_ wanted, want, have answer) bool {
	return want.status == have.status && want.status/100 == 3 && strings.HasPrefix(have.location, "/") && strings.HasSuffix(want.location, have.location)
}
