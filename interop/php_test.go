package interop

import (
	"bytes"
	"crypto/md5"
	"encoding/hex"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// phpScript answers as applications do: with what it was given, as a stream, with a large
// body, a status or a redirect.
const phpScript = `<?php
if (isset($_GET['notice'])) error_log('a notice');
if (isset($_GET['stream'])) { echo "first\n"; @ob_flush(); flush(); while (!file_exists($_GET['stream'])) { usleep(10000); clearstatcache(); } echo "second\n"; exit; }
if (isset($_GET['large'])) { header('Content-Type: application/octet-stream'); for ($i = 0; $i < 1024 * $_GET['large']; $i++) echo str_repeat('x', 1024); exit; }
if (isset($_GET['moved'])) { header('Location: /elsewhere'); exit; }
if (isset($_GET['status'])) http_response_code((int)$_GET['status']);
foreach ($_FILES as $name => $f) echo "file=$name $f[name] $f[size] ", md5_file($f['tmp_name']), "\n";
foreach (['SCRIPT_FILENAME', 'SCRIPT_NAME', 'PATH_INFO', 'DOCUMENT_ROOT', 'REQUEST_URI', 'PHP_SELF', 'HTTP_PROXY', 'HTTP_X_USER', 'HTTPS', 'REMOTE_ADDR', 'APP_ENV', 'PHP_AUTH_USER'] as $k) echo "$k=", $_SERVER[$k] ?? 'none', "\n";
echo 'body=', md5(file_get_contents('php://input')), "\n";
`

// startPHP starts php-fpm with a pool at a Unix socket or an address.
func startPHP(t *testing.T, listen string) {
	t.Helper()
	found, _ := filepath.Glob("/usr/sbin/php-fpm*")
	if len(found) == 0 {
		if os.Getenv("HEADGATE_TOOLS") == "required" {
			t.Fatal("php-fpm is missing")
		}
		t.Skip("php-fpm is not installed")
	}
	dir := shortDir(t)
	pool := "[global]\nerror_log = " + filepath.Join(dir, "log") + "\ndaemonize = no\n[www]\nuser = root\ngroup = root\nlisten = " + listen +
		"\npm = static\npm.max_children = 3\nping.path = /ping\ncatch_workers_output = yes\nphp_admin_value[upload_max_filesize] = 64M\nphp_admin_value[post_max_size] = 64M\nphp_admin_value[cgi.fix_pathinfo] = 1\nphp_admin_value[output_buffering] = 0\n"
	conf := filepath.Join(dir, "pool.conf")
	if err := os.WriteFile(conf, []byte(pool), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-y", conf}
	if os.Getuid() == 0 {
		args = append(args, "-R")
	}
	cmd := exec.Command(found[0], args...)
	var out record
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd.WaitDelay = time.Second
	t.Cleanup(func() { // the processes of the pool end with their master
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	})
	network := "tcp"
	if strings.HasPrefix(listen, "/") {
		network = "unix"
	}
	for begun := time.Now(); ; <-time.After(20 * time.Millisecond) {
		if c, err := net.Dial(network, listen); err == nil {
			c.Close()
			return
		}
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("php-fpm does not listen: %s", out.String())
		}
	}
}

// phpSite writes a folder with the entry points of WordPress and Nextcloud by shape.
func phpSite(t *testing.T) string {
	t.Helper()
	root := shortDir(t)
	for name, text := range map[string]string{
		"index.php": phpScript, "remote.php": phpScript, "wp-admin/index.php": phpScript, "wp-content/style.css": "css",
		"wp-content/uploads/x.jpg": "<?php echo 'EVIL';", "wp-config.php~": "SECRET",
	} {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// PHP applications run on Debian's php-fpm, over TCP and a Unix socket, with connections
// that are kept and that are not.
func TestPHP(t *testing.T) {
	socket := filepath.Join(shortDir(t), "fpm.sock")
	tcp := free(t)
	startPHP(t, socket)
	startPHP(t, tcp)
	root, web := phpSite(t), free(t)
	g := start(t, fmt.Sprintf(`version: 1
admin: {address: %q}
ports: {web: {address: %q, protocol: http}}
proxies:
  unix: {virtual_hosts: [unix.test], routes: [{servers: [{url: "fcgi+unix:%s"}], health_check: {path: /ping, interval: 200ms}, fastcgi: {root: %q, params: [{name: APP_ENV, value: test}]}}]}
  tcp: {virtual_hosts: [tcp.test], routes: [{path: /cloud, servers: [{url: "fcgi://%s", max_requests: 3}], fastcgi: {root: %q, keep_connections: true, front_controller: false}}]}
`, free(t), web, socket, root, tcp, root))
	defer g.end()
	for _, to := range []struct{ host, prefix, missing string }{{"unix.test", "", "200"}, {"tcp.test", "/cloud", "404"}} {
		t.Run(to.host, func(t *testing.T) { askPHP(t, web, to.host, to.prefix, root, to.missing) })
	}
	for begun := time.Now(); serverState(t, g, "unix").State != "healthy"; <-time.After(20 * time.Millisecond) {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("%+v", serverState(t, g, "unix"))
		}
	}
}

func askPHP(t *testing.T, web, host, prefix, root, missing string) {
	client := &http.Client{Timeout: 30 * time.Second, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	request := func(method, path string, body io.Reader, fields ...string) (*http.Response, string) {
		t.Helper()
		rq, err := http.NewRequest(method, "http://"+web+prefix+path, body)
		if err != nil {
			t.Fatal(err)
		}
		rq.Host = host
		for i := 0; i < len(fields); i += 2 {
			rq.Header[fields[i]] = []string{fields[i+1]}
		}
		rs, err := client.Do(rq)
		if err != nil {
			t.Fatal(err)
		}
		defer rs.Body.Close()
		text, err := io.ReadAll(rs.Body)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		return rs, string(text)
	}
	wants := func(text string, lines ...string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(text, line+"\n") {
				t.Errorf("no line %q in\n%s", line, text)
			}
		}
	}
	_, text := request("GET", "/index.php/apps/files/a%20b?x=1", nil, "Proxy", "evil", "X_User", "evil", "X-User", "me", "Authorization", "Basic YW5uYTpw")
	wants(text, "SCRIPT_FILENAME="+root+"/index.php", "SCRIPT_NAME="+prefix+"/index.php", "PATH_INFO=/apps/files/a b", "DOCUMENT_ROOT="+root, "REQUEST_URI="+prefix+"/index.php/apps/files/a%20b?x=1",
		"PHP_SELF="+prefix+"/index.php/apps/files/a b", "HTTP_PROXY=none", "HTTP_X_USER=me", "HTTPS=none", "REMOTE_ADDR=127.0.0.1", "PHP_AUTH_USER=anna")
	_, text = request("PROPFIND", "/remote.php/dav/files/.hidden", nil)
	wants(text, "SCRIPT_NAME="+prefix+"/remote.php", "PATH_INFO=/dav/files/.hidden")
	_, text = request("GET", "/wp-admin/", nil)
	wants(text, "SCRIPT_NAME="+prefix+"/wp-admin/index.php")
	if rs, _ := request("GET", "/wp-admin", nil); rs.StatusCode != 301 || !strings.HasSuffix(rs.Header.Get("Location"), prefix+"/wp-admin/") {
		t.Errorf("a folder: %d %s", rs.StatusCode, rs.Header.Get("Location"))
	}
	rs, text := request("GET", "/2024/05/a-permalink/", nil)
	if fmt.Sprint(rs.StatusCode) != missing {
		t.Errorf("a permalink: %d, want %s", rs.StatusCode, missing)
	} else if rs.StatusCode == 200 {
		wants(text, "SCRIPT_NAME=/index.php", "REQUEST_URI=/2024/05/a-permalink/", "APP_ENV=test")
	}
	for _, path := range []string{"/wp-content/uploads/x.jpg/a.php", "/wp-content/uploads/x.jpg%2fa.php", "/wp-config.php~", "/WP-CONFIG.PHP~"} {
		if rs, text := request("GET", path, nil); fmt.Sprint(rs.StatusCode) != missing || strings.Contains(text, "EVIL") || strings.Contains(text, "SECRET") {
			t.Errorf("%s: %d %.100q", path, rs.StatusCode, text)
		}
	}
	if rs, text := request("GET", "/wp-content/style.css", nil); text != "css" || rs.Header.Get("Content-Type") != "text/css; charset=utf-8" {
		t.Errorf("a file: %q %s", text, rs.Header.Get("Content-Type"))
	}
	if rs, _ := request("GET", "/index.php?moved=1", nil); rs.StatusCode != 302 || rs.Header.Get("Location") != "/elsewhere" {
		t.Errorf("a redirect: %d %s", rs.StatusCode, rs.Header.Get("Location"))
	}
	if rs, _ := request("HEAD", "/index.php?status=404", nil); rs.StatusCode != 404 {
		t.Errorf("a status: %d", rs.StatusCode)
	}
	if _, text := request("GET", "/index.php?large=32", nil); len(text) != 32<<20 {
		t.Errorf("a large download: %d bytes", len(text))
	}
	uploadPHP(t, request)
	streamPHP(t, client, web, host, prefix)
}

// uploadPHP sends bodies of every kind.
func uploadPHP(t *testing.T, request func(method, path string, body io.Reader, fields ...string) (*http.Response, string)) {
	t.Helper()
	large := bytes.Repeat([]byte("0123456789abcdef"), 1<<20)
	sum := func(b []byte) string { d := md5.Sum(b); return hex.EncodeToString(d[:]) }
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	part, _ := w.CreateFormFile("f", "large.bin")
	part.Write(large)
	w.Close()
	for _, c := range []struct {
		body io.Reader
		kind string
		want string
	}{
		{bytes.NewReader(large), "application/octet-stream", "body=" + sum(large)},
		{&form, w.FormDataContentType(), fmt.Sprintf("file=f large.bin %d %s", len(large), sum(large))},
		{io.MultiReader(bytes.NewReader(large[:500000])), "application/octet-stream", "body=" + sum(large[:500000])}, // chunked
	} {
		if rs, text := request("POST", "/index.php", c.body, "Content-Type", c.kind); rs.StatusCode != 200 || !strings.Contains(text, c.want+"\n") {
			t.Errorf("%d, no %q in\n%.500s", rs.StatusCode, c.want, text)
		}
	}
	if rs, _ := request("POST", "/index.php", io.MultiReader(bytes.NewReader(large[:1<<20+100])), "Content-Type", "application/octet-stream"); rs.StatusCode != 411 {
		t.Errorf("more than 1 MiB without a length: %d, want 411", rs.StatusCode)
	}
}

// streamPHP reads the beginning of a response before the script goes on.
func streamPHP(t *testing.T, client *http.Client, web, host, prefix string) {
	t.Helper()
	signal := filepath.Join(shortDir(t), "go")
	rq, _ := http.NewRequest("GET", "http://"+web+prefix+"/index.php?stream="+signal, nil)
	rq.Host = host
	rs, err := client.Do(rq)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	first := make([]byte, len("first\n"))
	if _, err := io.ReadFull(rs.Body, first); err != nil || string(first) != "first\n" {
		t.Fatalf("%q, %v", first, err)
	}
	if err := os.WriteFile(signal, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(rs.Body); err != nil || string(rest) != "second\n" {
		t.Errorf("%q, %v", rest, err)
	}
}
