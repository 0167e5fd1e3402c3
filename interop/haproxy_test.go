package interop

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const haproxyConfig = `
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s

userlist staff
    user anna insecure-password secret

frontend www
    bind %[1]s
    acl shop hdr(host),field(1,:) -i shop.example.com www.shop.example.com
    acl api path_reg ^/api(/|$)
    acl admin path_reg ^/admin(/|$)
    acl writes method POST PUT
    http-request deny if shop { path_reg ^/api/internal(/|$) }
    http-request deny deny_status 404 if shop { path_reg ^/hidden(/|$) } !writes
    http-request deny if { path_reg ^/office(/|$) } !{ src 192.0.2.0/24 }
    http-request deny if { path_reg ^/home(/|$) } !{ src 127.0.0.0/8 }
    http-request auth realm Staff if admin !{ http_auth(staff) }
    http-request set-header X-Real-IP %%[src]
    http-request del-header X-Secret
    http-request add-header X-List %%[method] if writes
    http-request return status 200 content-type text/plain string "it is fine" if { path_beg /health }
    http-request redirect prefix https://new.example.com code 301 if { hdr(host),field(1,:) -i old.example.com }
    http-request redirect location https://www.example.com/all code 307 if { path_reg ^/all(/|$) }
    http-response set-header X-Frame-Options DENY
    http-response add-header X-Answer added
    use_backend %%[req.hdr(host),field(1,:),lower,map(%[5]s)] if { req.hdr(host),field(1,:),lower,map(%[5]s) -m found }
    use_backend two if shop api writes
    use_backend three if shop api { hdr(X-Version) 2 }
    use_backend three if shop !api { url_param(beta) -m found }
    use_backend rewritten if shop { path_reg ^/old(/|$) }
    use_backend none if shop { path_reg ^/none(/|$) }
    use_backend one if shop
    use_backend three if { hdr(host),field(1,:) -m end -i .apps.example.com }
    use_backend two if { hdr_beg(host) -i static. }
    default_backend rest

backend one
    server s %[2]s
backend two
    http-request set-header Host fixed.example.com
    server s %[3]s
backend three
    server s %[4]s
backend rewritten
    http-request replace-path /old/(.*) /new/\1
    server s %[2]s
backend rest
    http-request set-path /rest%%[path]
    http-response del-header X-Answer
    server s %[3]s
backend none
`

// TestAnImportOfHAProxyAnswersAsHAProxyDoes gives HAProxy and headgate, by the import of
// the same configuration, the same requests.
func TestAnImportOfHAProxyAnswersAsHAProxyDoes(t *testing.T) {
	program := needed(t, "haproxy", "haproxy")
	theirs, ours, dir := free(t), free(t), t.TempDir()
	hosts := filepath.Join(dir, "hosts.map")
	if err := os.WriteFile(hosts, []byte("# hosts\nblog.example.com one\nwiki.example.com two\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Sprintf(haproxyConfig, theirs, echo(t, "one"), echo(t, "two"), echo(t, "three"), hosts)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startPeer(t, theirs, program, "-db", "-f", conf)
	got := importOf(t, "haproxy", conf)
	start(t, "admin: {address: \"\"}\n"+strings.ReplaceAll(got.document, theirs, ours))

	var requests []wanted
	for _, host := range []string{"shop.example.com", "WWW.shop.example.com", "shop.example.com:8080", "a.shop.example.com", "blog.example.com", "wiki.example.com", "old.example.com",
		"x.apps.example.com", "x.y.apps.example.com", "apps.example.com", "static.example.org", "unknown.example.com"} {
		for _, path := range []string{"/", "/a", "/a/b?c=d&e", "/api", "/api/", "/api/users?page=2", "/apix", "/api/internal", "/api/internal/x", "/api/internals", "/admin", "/admin/x", "/administrator",
			"/hidden", "/hidden/x", "/office/x", "/home/x", "/health", "/healthy", "/health/x", "/all", "/all/x?y=z", "/old/page?q", "/old", "/none", "/a?beta", "/a?beta=1", "/api?beta=1", "/kept/%20y", "/a?b=beta"} {
			for _, m := range []struct{ method, body string }{{"GET", ""}, {"HEAD", ""}, {"POST", "some"}, {"PUT", strings.Repeat("x", 3000)}, {"DELETE", ""}} {
				for i, header := range []http.Header{{}, {"X-Version": {"2"}, "X-Secret": {"hush"}, "X-List": {"mine"}}, {"X-Version": {"1, 2"}, "X-Real-Ip": {"192.0.2.9"}}, {"Authorization": {"Basic YW5uYTpzZWNyZXQ="}}, {"Authorization": {"Basic YW5uYTp3cm9uZw=="}}} {
					if i == 4 && (host != "shop.example.com" || path != "/admin") {
						continue // an address with many wrong passwords is told to wait
					}
					if i > 0 && m.method != "GET" && m.method != "POST" {
						continue
					}
					requests = append(requests, wanted{m.method, host, path, m.body, header})
				}
			}
		}
	}
	challenge := func(a answer) answer {
		a.auth = strings.TrimSuffix(a.auth, `, charset="UTF-8"`)
		return a.bare()
	}
	equivalent(t, theirs, ours, got, requests, []told{
		{"/health", func(rq wanted, _, _ answer) bool { return strings.HasPrefix(rq.path, "/healthy") }},
		{"it acts on headgate's own errors", func(_ wanted, want, have answer) bool { return !have.served && want == have.bare() }},
		{"the challenge names UTF-8", func(_ wanted, want, have answer) bool { return have.status == 401 && want == challenge(have) }},
		{"clients are redirected before a password is required", func(rq wanted, want, have answer) bool {
			return rq.host == "old.example.com" && strings.HasPrefix(rq.path, "/admin") && want.status == 401 && have.status == 301
		}},
		{"a parameter without = counts as there", func(rq wanted, _, _ answer) bool { return strings.HasSuffix(rq.path, "?beta") }},
		{"where HAProxy compares each of its parts", func(rq wanted, _, _ answer) bool { return rq.header.Get("X-Version") == "1, 2" }},
	})
}
