package interop

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// caddyConfig is a Caddyfile whose directives the import calls the same, or close in ways
// that the requests of the test do not meet.
const caddyConfig = `{
	admin off
	auto_https off
	default_bind 127.0.0.1
}
(frame) {
	header X-Frame-Options DENY
}
http://shop.example.com:%[1]s, http://www.shop.example.com:%[1]s {
	import frame
	@write {
		path /api/*
		method POST PUT
	}
	@beta {
		header X-Beta 1*
		method GET HEAD POST PUT DELETE
	}
	@asked query a=1
	handle @write {
		reverse_proxy %[2]s {
			header_up X-Host write
		}
	}
	handle @beta {
		respond "beta" 200
	}
	handle @asked {
		respond "asked" 200
	}
	handle_path /api/* {
		reverse_proxy %[2]s
	}
	handle /kept/* {
		reverse_proxy %[2]s
	}
	handle {
		reverse_proxy %[2]s
	}
}
http://old.example.com:%[1]s {
	redir https://new.example.com{uri} 301
}
http://*.wild.example.com:%[1]s {
	respond "hello {host}" 200
}
`

// TestAnImportOfCaddyAnswersAsCaddyDoes gives Caddy and headgate, by the import of the
// same Caddyfile, the same requests.
func TestAnImportOfCaddyAnswersAsCaddyDoes(t *testing.T) {
	program := needed(t, "caddy", "caddy")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s host=%s x-host=%s", r.Method, r.URL.RequestURI(), r.Host, r.Header.Get("X-Host"))
	}))
	defer server.Close()
	theirs, ours, dir := free(t), free(t), t.TempDir()
	_, port, err := net.SplitHostPort(theirs)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "Caddyfile")
	if err := os.WriteFile(file, fmt.Appendf(nil, caddyConfig, port, strings.TrimPrefix(server.URL, "http://")), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	background(t, program, "run", "--adapter", "caddyfile", "--config", file)
	out, err := exec.Command(os.Getenv(binaryFolder), "import", "caddy", file).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(string(out), theirs, ours))
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if r := askWith(theirs, "GET", "shop.example.com", "/", nil); !strings.HasPrefix(r, "error") {
			break
		} else if time.Now().After(end) {
			t.Fatal("Caddy does not answer: " + r)
		}
	}
	asked, different := 0, 0
	for _, host := range []string{"shop.example.com", "www.shop.example.com", "old.example.com", "a.wild.example.com"} {
		for _, path := range []string{"/", "/a", "/a/b?c=d&e", "/api/", "/api/users", "/api/users?page=2", "/apix", "/kept/x", "/kept/%20y", "/?a=1", "/b?x=2&a=1", "/b?a=11"} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE"} {
				for _, beta := range []string{"", "1", "12", "2"} {
					asked++
					var header http.Header
					if beta != "" {
						header = http.Header{"X-Beta": {beta}}
					}
					if want, got := askWith(theirs, method, host, path, header), askWith(ours, method, host, path, header); want != got {
						different++
						t.Errorf("%s %s %s with X-Beta %q:\ncaddy    %s\nheadgate %s", method, host, path, beta, want, got)
					}
				}
			}
		}
	}
	t.Logf("%d requests, %d were answered otherwise", asked, different)
}

// askWith returns what can be seen of the answer to a request with a header.
func askWith(address, method, host, path string, header http.Header) string {
	req, err := http.NewRequest(method, "http://"+address, http.NoBody)
	if err != nil {
		return "error: " + err.Error()
	}
	req.Host, req.Header, req.URL.Opaque = host, header.Clone(), path
	if req.Header == nil {
		req.Header = http.Header{}
	}
	return seen(req)
}

// caddyRules are sites whose routes are asked in their order: those of JSON, which
// "caddy adapt" makes of them, are translated by their order alone.
const caddyRules = `{
	admin %[5]s
	auto_https off
	default_bind 127.0.0.1
}
http://shop.example.com:%[1]s, http://www.shop.example.com:%[1]s {
	@write {
		path /api/*
		method POST PUT
	}
	@beta {
		header X-Beta 1*
		not path /kept/*
	}
	@asked query a=1
	@office not remote_ip 192.0.2.0/24
	@office2 path /office/*
	header X-Frame-Options DENY
	handle @write {
		reverse_proxy %[2]s {
			header_up X-Secret write
			header_up Host fixed.example.com
		}
	}
	handle @beta {
		respond "beta" 200
	}
	handle @asked {
		respond "asked" 200
	}
	handle_path /api/* {
		handle /deep/* {
			reverse_proxy %[3]s
		}
		handle {
			reverse_proxy %[2]s
		}
	}
	handle /kept/* {
		request_header X-Secret kept
		reverse_proxy %[2]s
	}
	handle /rewritten/* {
		uri replace /rewritten /new
		reverse_proxy %[3]s
	}
	handle /office/* {
		respond @office 403
		reverse_proxy %[2]s
	}
	handle /staff/* {
		basicauth {
			anna $2a$04$%[6]s
		}
		reverse_proxy %[2]s
	}
	handle /private/* {
		forward_auth %[4]s {
			uri /check
			copy_headers X-Who
		}
		reverse_proxy %[2]s
	}
	handle /gone/* {
		error 404
	}
	redir /old /new 301
	redir /older/* https://new.example.com{uri} 307
	handle {
		reverse_proxy %[2]s
	}
}
http://old.example.com:%[1]s {
	redir https://new.example.com{uri} 301
}
http://*.wild.example.com:%[1]s {
	@x header X-Version 2
	respond @x "two" 200
	respond "hello {host}" 200
}
http://a.wild.example.com:%[1]s {
	reverse_proxy %[3]s
}
`

// TestCaddysJSONAnswersAsCaddyDoes gives Caddy and headgate the same requests, by the
// import of what Caddy runs: once of the file that it adapted, once of its admin address.
func TestCaddysJSONAnswersAsCaddyDoes(t *testing.T) {
	program := needed(t, "caddy", "caddy")
	theirs, admin, dir := free(t), free(t), t.TempDir()
	_, port, err := net.SplitHostPort(theirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", dir)
	file, adapted := filepath.Join(dir, "Caddyfile"), filepath.Join(dir, "caddy.json")
	const secret = "T6HZlQBSa6aaMTkvgOTGMuZ0p8yVnXk2G8NRoLlFdcRZ8QeBuLBq6" // not of a password that is asked
	if err := os.WriteFile(file, fmt.Appendf(nil, caddyRules, port, echo(t, "one"), echo(t, "two"), doorkeeper(t), admin, secret), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, "adapt", "--pretty", "--config", file).Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := os.WriteFile(adapted, out, 0o600); err != nil {
		t.Fatal(err)
	}
	startPeer(t, theirs, program, "run", "--config", adapted)

	var requests []wanted
	for _, host := range []string{"shop.example.com", "WWW.shop.example.com", "www.shop.example.com:8080", "old.example.com", "a.wild.example.com", "b.wild.example.com", "a.b.wild.example.com"} {
		for _, path := range []string{"/", "/a/b?c=d&e", "/api/", "/api", "/api/users?page=2", "/apix", "/api/deep/x", "/api/deep", "/kept/x", "/kept", "/rewritten/x?y", "/office/x", "/staff/x", "/private/x", "/gone/x",
			"/old", "/old/x", "/older/x?y=z", "/?a=1", "/b?x=2&a=1", "/kept/x?a=1", "/API/x"} {
			for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
				for _, header := range []http.Header{{}, {"X-Beta": {"12"}}, {"X-Beta": {"2"}}, {"X-Version": {"2"}}, {"X-Secret": {"mine"}}, {authHeader: {"right"}}} {
					requests = append(requests, wanted{method: method, host: host, path: path, header: header})
				}
			}
		}
	}
	for _, source := range []string{adapted, "http://" + admin} {
		ours := free(t)
		got := importOf(t, "caddy", source)
		start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(got.document, theirs, ours))
		equivalent(t, theirs, ours, got, requests, []told{
			{"with Caddy, they are not", func(rq wanted, _, _ answer) bool { return strings.HasPrefix(rq.path, "/API") }},
			{"without the slash matches too", func(rq wanted, _, _ answer) bool {
				return rq.path == "/api" || rq.path == "/api/deep" || rq.path == "/kept"
			}},
			{"the challenge names UTF-8", func(_ wanted, want, have answer) bool {
				return want.status == 401 && strings.TrimSuffix(have.auth, `, charset="UTF-8"`) == want.auth
			}},
			{"where Caddy answers 200 without a body", func(rq wanted, want, have answer) bool {
				return rq.host == "a.b.wild.example.com" && have.status == 404 && want.status == 200 && want.body == ""
			}},
		})
	}
}
