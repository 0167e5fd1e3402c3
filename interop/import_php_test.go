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
