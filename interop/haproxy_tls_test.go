package interop

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// haproxyTLS ends TLS with certificates of a list, passes other names on as they are,
// keeps clients at their servers, counts requests, and checks its servers.
const haproxyTLS = `
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s

frontend secure
    bind %[1]s ssl crt-list %[2]s/list
    use_backend two if { ssl_fc_sni -i b.example.com }
    default_backend one

frontend plain
    bind %[3]s
    stick-table type ip size 1k expire 10m store http_req_rate(10m)
    http-request track-sc0 src
    http-request deny deny_status 429 if { path_beg /limited } { sc_http_req_rate(0) gt 20 }
    use_backend sticky if { path_reg ^/sticky(/|$) }
    use_backend checked if { path_reg ^/checked(/|$) }
    default_backend one

frontend named
    mode tcp
    bind %[4]s
    tcp-request inspect-delay 5s
    tcp-request content accept if { req.ssl_hello_type 1 }
    use_backend tlsone if { req.ssl_sni -i c.example.com }
    use_backend tlstwo if { req.ssl_sni -i d.example.com }

backend one
    server s %[5]s
backend two
    server s %[6]s
backend sticky
    balance roundrobin
    cookie SRV insert indirect nocache
    server a %[5]s cookie a
    server b %[6]s cookie b
backend checked
    option httpchk GET /up
    http-check expect status 200
    default-server check inter 100ms rise 1 fall 1
    server well %[5]s
    server ill %[7]s
backend tlsone
    mode tcp
    server s %[8]s
backend tlstwo
    mode tcp
    server s %[9]s
`

// TestHAProxysTLSAndSessions gives HAProxy and headgate connections by names in TLS, a
// client with a cookie, one that asks too often, and a server that fails its checks.
func TestHAProxysTLSAndSessions(t *testing.T) {
	program := needed(t, "haproxy", "haproxy")
	dir := t.TempDir()
	list := ""
	for _, name := range []string{"a.example.com", "b.example.com"} {
		id := newIdentity(t, name)
		if err := os.WriteFile(filepath.Join(dir, name+".pem"), append([]byte(id.cert), id.key...), 0o600); err != nil {
			t.Fatal(err)
		}
		list += filepath.Join(dir, name+".pem") + "\n"
	}
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	ill := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusInternalServerError) }))
	t.Cleanup(ill.Close)
	var theirs, ours [3]string
	for i := range theirs {
		theirs[i], ours[i] = free(t), free(t)
	}
	conf := filepath.Join(dir, "haproxy.cfg")
	text := fmt.Sprintf(haproxyTLS, theirs[0], dir, theirs[1], theirs[2], echo(t, "one"), echo(t, "two"), strings.TrimPrefix(ill.URL, "http://"), secured(t, "c.example.com"), secured(t, "d.example.com"))
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	startPeer(t, theirs[1], program, "-db", "-f", conf)
	document := importOf(t, "haproxy", conf).document
	for i := range theirs {
		document = strings.ReplaceAll(document, theirs[i], ours[i])
	}
	start(t, "admin: {address: \"\"}\n"+document)

	for _, side := range []struct {
		name    string
		address [3]string
	}{{"HAProxy", theirs}, {"headgate", ours}} {
		t.Run(side.name, func(t *testing.T) {
			// First of all: HAProxy counts every request of a client, headgate those of the route.
			if n := let(t, "http://"+side.address[1]+"/limited"); n == 0 || n > 20 {
				t.Errorf("%d of 60 requests in a row were let through", n)
			}
			for name, want := range map[string]string{"a.example.com": "a.example.com one", "b.example.com": "b.example.com two"} {
				if got := overTLS(t, side.address[0], name); got != want {
					t.Errorf("TLS for %s: %q, want %q", name, got, want)
				}
			}
			for _, name := range []string{"c.example.com", "d.example.com"} {
				if got := overTLS(t, side.address[2], name); got != name+" "+name {
					t.Errorf("passed on by %s: %q", name, got)
				}
			}
			sticks(t, "http://"+side.address[1]+"/sticky")
			allWell(t, "http://"+side.address[1]+"/checked")
		})
	}
}

// secured is a server with a certificate, which answers with its name.
func secured(t *testing.T, name string) (address string) {
	t.Helper()
	id := newIdentity(t, name)
	cert, err := tls.X509KeyPair([]byte(id.cert), []byte(id.key))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X-Server", name) }))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{cert}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "https://")
}

// overTLS returns the name in the certificate of a connection, and who answered.
func overTLS(t *testing.T, address, name string) string {
	t.Helper()
	var shown string
	tr := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{ServerName: name, InsecureSkipVerify: true, VerifyConnection: func(s tls.ConnectionState) error {
		shown = s.PeerCertificates[0].DNSNames[0]
		return nil
	}}}
	tr.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", address)
	}
	rs, err := (&http.Client{Transport: tr, Timeout: patience}).Get("https://" + name + "/")
	if err != nil {
		return err.Error()
	}
	rs.Body.Close()
	return shown + " " + rs.Header.Get("X-Server")
}

// sticks holds that a client with the cookie of its first answer keeps its server.
func sticks(t *testing.T, url string) {
	t.Helper()
	seen := map[string]bool{}
	for range 4 {
		first, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		first.Body.Close()
		server := first.Header.Get("X-Server")
		seen[server] = true
		if len(first.Cookies()) != 1 || first.Cookies()[0].Name != "SRV" {
			t.Fatalf("the cookies are %v", first.Cookies())
		}
		for range 5 {
			rq, _ := http.NewRequest(http.MethodGet, url, nil)
			rq.AddCookie(&http.Cookie{Name: "SRV", Value: first.Cookies()[0].Value})
			rs, err := http.DefaultClient.Do(rq)
			if err != nil {
				t.Fatal(err)
			}
			rs.Body.Close()
			if got := rs.Header.Get("X-Server"); got != server {
				t.Fatalf("the client of %s got %s", server, got)
			}
		}
	}
	if len(seen) != 2 {
		t.Errorf("new clients got %v", seen)
	}
}

// allWell waits until a server that fails its checks gets nothing any more.
func allWell(t *testing.T, url string) {
	t.Helper()
	well := 0
	for end := time.Now().Add(patience); well < 10; {
		rs, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
		if well++; rs.StatusCode != http.StatusOK {
			well = 0
		}
		if time.Now().After(end) {
			t.Fatal("the server that fails its checks still gets requests")
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// let returns how many of 60 requests in a row are answered by a server.
func let(t *testing.T, url string) (n int) {
	t.Helper()
	for range 60 {
		rs, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		rs.Body.Close()
		switch rs.StatusCode {
		case http.StatusOK:
			n++
		case http.StatusTooManyRequests:
		default:
			t.Fatalf("status %d", rs.StatusCode)
		}
	}
	return n
}
