package interop

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// phpRequests are paths of a site of PHP, with what may differ by the report: the status
// of files that headgate never sends.
var phpRequests = []string{"/", "/?a=1", "/index.php", "/index.php/apps/files?x=y", "/remote.php/dav", "/wp-content/style.css", "/wp-admin/", "/wp-admin/?p=2", "/2024/05/hello", "/absent.php", "/wp-content/"}

// answersAlike compares the answers of the scripts to the same requests.
func answersAlike(t *testing.T, theirs, ours, host string, paths []string) {
	t.Helper()
	for _, path := range paths {
		for _, method := range []string{"GET", "POST"} {
			rq := wanted{method: method, host: host, path: path, header: http.Header{"X-User": {"ann"}}}
			if method == "POST" {
				rq.body, rq.header["Content-Type"] = "a=b", []string{"application/x-www-form-urlencoded"}
			}
			want, have := askAll(theirs, rq), askAll(ours, rq)
			if want.status == http.StatusOK && strings.HasSuffix(path, ".css") && method == "POST" {
				continue // files are for GET
			}
			if want != have || want.err != nil {
				t.Errorf("%s %s:\ntheirs %+v\nours   %+v", method, path, want, have)
			}
		}
	}
}

// waitFor waits until a proxy answers.
func waitFor(t *testing.T, address string) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if c, err := net.Dial("tcp", address); err == nil {
			c.Close()
			return
		} else if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// TestAnImportOfPHPFromCaddyAnswersAsCaddyDoes runs the same scripts by Caddy and by
// headgate with the import of the Caddyfile, and of the JSON that Caddy makes of it.
func TestAnImportOfPHPFromCaddyAnswersAsCaddyDoes(t *testing.T) {
	program := needed(t, "caddy", "caddy")
	socket := filepath.Join(shortDir(t), "fpm.sock")
	startPHP(t, socket)
	root, theirs, dir := phpSite(t), free(t), t.TempDir()
	_, port, err := net.SplitHostPort(theirs)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "Caddyfile")
	text := fmt.Sprintf("{\n\tadmin off\n\tauto_https off\n\tdefault_bind 127.0.0.1\n}\nhttp://php.example.com:%s {\n\troot * %s\n\tphp_fastcgi unix/%s {\n\t\tenv APP_ENV prod\n\t\tdial_timeout 3s\n\t}\n\tfile_server\n}\n", port, root, socket)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	adapted := filepath.Join(dir, "caddy.json")
	out, err := exec.Command(program, "adapt", "--adapter", "caddyfile", "--config", file).Output()
	if err == nil {
		err = os.WriteFile(adapted, out, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	background(t, program, "run", "--adapter", "caddyfile", "--config", file)
	waitFor(t, theirs)
	for _, source := range []string{file, adapted} {
		t.Run(filepath.Base(source), func(t *testing.T) {
			ours := free(t)
			got := importOf(t, "caddy", source)
			g := start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(got.document, theirs, ours))
			defer g.end()
			answersAlike(t, theirs, ours, "php.example.com", phpRequests)
			for _, e := range got.entries {
				if e.Verdict == "impossible" {
					t.Errorf("%+v", e)
				}
			}
			if hidden := askAll(ours, wanted{method: "GET", host: "php.example.com", path: "/wp-config.php~"}); strings.Contains(hidden.body, "SECRET") {
				t.Errorf("a backup of a script is sent: %+v", hidden)
			}
		})
	}
}

// phpNginx is a site with two servers of PHP as an upstream, by a socket and an address.
const phpNginx = `daemon off; master_process off; pid %[1]s/pid; error_log %[1]s/error.log;
events {}
http {
	access_log off;
	client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/fastcgi; uwsgi_temp_path %[1]s/uwsgi; scgi_temp_path %[1]s/scgi;
	types { text/css css; }
	upstream php { server unix:%[2]s; server %[3]s; }
	server {
		listen %[4]s;
		server_name php.example.com;
		root %[5]s;
		index index.php;
		location / { try_files $uri $uri/ /index.php?$args; }
		location ~ \.php(/|$) {
			fastcgi_split_path_info ^(.+?\.php)(/.*)$;
			fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
			fastcgi_param SCRIPT_NAME $fastcgi_script_name;
			fastcgi_param PATH_INFO $fastcgi_path_info;
			fastcgi_param DOCUMENT_ROOT $document_root;
			fastcgi_param QUERY_STRING $query_string;
			fastcgi_param REQUEST_METHOD $request_method;
			fastcgi_param REQUEST_URI $request_uri;
			fastcgi_param CONTENT_TYPE $content_type;
			fastcgi_param CONTENT_LENGTH $content_length;
			fastcgi_param REMOTE_ADDR $remote_addr;
			fastcgi_param APP_ENV prod;
			fastcgi_pass php;
			fastcgi_connect_timeout 3s;
			fastcgi_read_timeout 30s;
		}
	}
}
`

// TestAnImportOfPHPFromNginxAnswersAsNginxDoes runs the same scripts by nginx and by
// headgate with the import, on the servers of an upstream.
func TestAnImportOfPHPFromNginxAnswersAsNginxDoes(t *testing.T) {
	program := needed(t, "nginx", "nginx-light")
	socket, tcp := filepath.Join(shortDir(t), "fpm.sock"), free(t)
	startPHP(t, socket)
	startPHP(t, tcp)
	root, theirs, ours, dir := phpSite(t), free(t), free(t), shortDir(t)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, phpNginx, dir, socket, tcp, theirs, root), 0o644); err != nil {
		t.Fatal(err)
	}
	background(t, program, "-c", file)
	waitFor(t, theirs)
	got := importOf(t, "nginx", file)
	if !strings.Contains(got.document, "fcgi+unix:"+socket) || !strings.Contains(got.document, "fcgi://"+tcp) {
		t.Fatalf("no servers of the upstream in\n%s", got.document)
	}
	g := start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(got.document, theirs, ours))
	defer g.end()
	answersAlike(t, theirs, ours, "php.example.com", []string{"/", "/?a=1", "/index.php", "/index.php/apps/files?x=y", "/remote.php/dav", "/wp-content/style.css", "/wp-admin/", "/2024/05/hello"})
}
