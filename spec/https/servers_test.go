package https

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// secureServer runs an https server until the test ends and returns its address.
// Nobody hears of handshakes that fail: that is what most of these are for.
func secureServer(t *testing.T, cfg *tls.Config, handler http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.TLS = cfg
	s.EnableHTTP2 = len(cfg.NextProtos) == 0
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// sayProto answers with the protocol and the name that was asked for.
func sayProto(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s", r.Proto, r.TLS.ServerName)
}

// inFront is a house in front of servers, each of which has a route.
type inFront struct {
	*house
	address string
	text    string // the configuration, with a %s for the routes
}

// front readies a house whose routes are to have https servers.
func front(t *testing.T) *inFront {
	t.Helper()
	f := &inFront{house: newHouse(t), address: testhouse.Address(t)}
	f.text = fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {path: %q}
ports: {web: {address: %q, protocol: http}}
proxies: {all: {routes: [%%s]}}
`, filepath.Join(f.dir, "access.log"), f.address)
	return f
}

// route returns a route to one server.
func route(path, url, tls string) string {
	return fmt.Sprintf("{path: %q, servers: [{url: %q, tls: {%s}}]}", path, url, tls)
}

// get asks for a path and returns status and body.
func (f *inFront) get(path string) (int, string) {
	f.t.Helper()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
	rs, err := client.Get("http://" + f.address + path)
	if err != nil {
		f.t.Fatal(err)
	}
	defer rs.Body.Close()
	body, err := io.ReadAll(rs.Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return rs.StatusCode, string(body)
}

// logged returns the reason and the cause that the access log has for a path.
func (f *inFront) logged(path string) (reason, cause string) {
	f.t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); runtime.Gosched() {
		data, _ := os.ReadFile(filepath.Join(f.dir, "access.log"))
		for line := range strings.Lines(string(data)) {
			var l struct{ Path, Reason, Cause string }
			if json.Unmarshal([]byte(line), &l) == nil && l.Path == path {
				return l.Reason, l.Cause
			}
		}
	}
	f.t.Fatalf("the access log does not have %s", path)
	return "", ""
}

// TestServersAreVerified holds what is told of servers that TLS does not come
// about with, and that what is right works.
func TestServersAreVerified(t *testing.T) {
	t.Parallel()
	f := front(t)
	a, other, people := newAuthority(t, "servers"), newAuthority(t, "someone else"), newAuthority(t, "people")
	put(t, filepath.Join(f.dir, "ca.pem"), a.pem())
	keep(t, f.dir, "me", people.person("headgate"))
	keep(t, f.dir, "stranger", other.person("stranger"))
	with := func(c tls.Certificate, change ...func(*tls.Config)) string {
		cfg := &tls.Config{Certificates: []tls.Certificate{c}}
		for _, f := range change {
			f(cfg)
		}
		return secureServer(t, cfg, sayProto)
	}
	asks := func(cfg *tls.Config) {
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, people.pool()
	}
	old := func(cfg *tls.Config) { cfg.MaxVersion = tls.VersionTLS12 }
	ancient := func(cfg *tls.Config) { cfg.MinVersion, cfg.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 }
	onlyH1 := func(cfg *tls.Config) { cfg.NextProtos = []string{"http/1.1"} }
	foreign := func(cfg *tls.Config) { cfg.NextProtos = []string{"foreign"} }
	here := forAddress("127.0.0.1")
	const ca, client = "ca_file: ca.pem", ", client_cert_file: me.pem, client_key_file: me.key"
	all := []struct {
		name, address, tls string
		want               string // the body, or what the cause holds if it is none
	}{
		{"by address", with(a.host([]string{"app.internal"}, here), onlyH1), ca, "HTTP/1.1 "},
		{"HTTP/2", with(a.host([]string{"app.internal"}, here)), ca, "HTTP/2.0 "},
		{"HTTP/2 over TLS 1.2", with(a.host([]string{"app.internal"}, here), old), ca, "HTTP/2.0 "},
		{"shown over HTTP/2", with(a.host([]string{"x"}, here), asks), ca + client, "HTTP/2.0 "},
		{"not shown over HTTP/2", with(a.host([]string{"x"}, here), asks), ca, "tls.client_cert_file"},
		{"by name", with(a.host([]string{"app.internal"}), onlyH1), ca + ", server_name: App.Internal.", "HTTP/1.1 app.internal"},
		{"TLS 1.2", with(a.host([]string{"app.internal"}, here), old, onlyH1), ca, "HTTP/1.1 "},
		{"not looked at", with(other.host([]string{"x"}, expired), onlyH1), "insecure_skip_verify: true", "HTTP/1.1 "},
		{"shown", with(a.host([]string{"x"}, here), asks, onlyH1), ca + client, "HTTP/1.1 "},
		{"shown over TLS 1.2", with(a.host([]string{"x"}, here), asks, old, onlyH1), ca + client, "HTTP/1.1 "},
		{"system", with(a.host([]string{"x"}, here)), "", "authority that is not known here (CN=servers); tls.ca_file names it"},
		{"unknown", with(other.host([]string{"x"}, here)), ca, "authority that is not known here (CN=someone else)"},
		{"another name", with(a.host([]string{"app.internal"}, here)), ca + ", server_name: b.internal", "for app.internal, 127.0.0.1 and not for b.internal; tls.server_name"},
		{"no such address", with(a.host([]string{"app.internal"})), ca, "for app.internal and not for 127.0.0.1"},
		{"expired", with(a.host([]string{"x"}, here, expired)), ca, "has expired on"},
		{"not shown", with(a.host([]string{"x"}, here), asks, onlyH1), ca, "tls.client_cert_file"},
		{"not shown over TLS 1.2", with(a.host([]string{"x"}, here), asks, old), ca, "the server refused the handshake"},
		{"shown a stranger's", with(a.host([]string{"x"}, here), asks, onlyH1), ca + ", client_cert_file: stranger.pem, client_key_file: stranger.key", "the server "},
		{"too old", with(a.host([]string{"x"}, here), ancient), ca, "the server refused the handshake: protocol version"},
		{"other protocols", with(a.host([]string{"x"}, here), foreign), ca, "no application protocol"},
		{"no TLS", testhouse.Server(t, func(nc net.Conn) {
			nc.Read(make([]byte, 1<<10))
			fmt.Fprint(nc, "HTTP/1.1 400 Bad Request\r\n\r\n")
		}), ca, "does not speak TLS; is its scheme http?"},
		{"closes in the handshake", testhouse.Server(t, func(nc net.Conn) { nc.Read(make([]byte, 10)) }), ca, "closed the connection during the handshake"},
	}
	var routes []string
	for i, c := range all {
		routes = append(routes, route(fmt.Sprintf("/%d", i), "https://"+c.address, c.tls))
	}
	f.start(fmt.Sprintf(f.text, strings.Join(routes, ", ")))
	for i, c := range all {
		path := fmt.Sprintf("/%d", i)
		status, body := f.get(path)
		if strings.HasPrefix(c.want, "HTTP/") {
			if status != 200 || body != c.want {
				t.Errorf("%s: got %d %q, want %q", c.name, status, body, c.want)
			}
			continue
		}
		reason, cause := f.logged(path)
		if status != 502 || reason != "upstream_tls" || !strings.Contains(cause, c.want) {
			t.Errorf("%s: got %d, %s, %q; want %q", c.name, status, reason, cause, c.want)
		}
	}
	unverified := f.Status().Unverified
	if len(unverified) != 1 || unverified[0].Route != "/7" {
		t.Errorf("the state warns of %+v", unverified)
	}
	f.log.await(t, "server certificate is not verified", "routes[7].servers[0].tls.insecure_skip_verify")
}

// TestServerTLSFilesAreTold holds what is told of files that cannot be used.
func TestServerTLSFilesAreTold(t *testing.T) {
	t.Parallel()
	f := front(t)
	a := newAuthority(t, "servers")
	put(t, filepath.Join(f.dir, "junk.pem"), []byte("junk"))
	keep(t, f.dir, "one", a.person("one"))
	keep(t, f.dir, "two", a.person("two"))
	f.start(fmt.Sprintf(f.text, "{fixed_response: {status: 200}}"))
	for tls, want := range map[string]string{
		"ca_file: none.pem": "routes[0].servers[0].tls.ca_file: read ",
		"ca_file: junk.pem": "it holds no certificate in PEM form; name a PEM file",
		"client_cert_file: one.pem, client_key_file: two.key": "tls.client_cert_file: certificate ",
		"client_cert_file: one.pem":                           "the certificate has no key; add client_key_file",
		"client_key_file: one.key":                            "the key has no certificate; add client_cert_file",
		"server_name: a b":                                    "tls.server_name: host name",
		"ca_file: one.pem, insecure_skip_verify: true":        "ca_file has no effect",
	} {
		put(t, f.file, fmt.Appendf(nil, f.text, route("/", "https://127.0.0.1:1", tls)))
		if err := f.Reload(); err == nil || !strings.Contains(fmt.Sprint(f.Status().Refused.Problems), want) {
			t.Errorf("%s: %v, %v; want %q", tls, err, f.Status().Refused, want)
		}
	}
}

// TestServerThatFailsTLSIsLeftForAnother holds that a handshake that fails counts
// as a connection that did not come about.
func TestServerThatFailsTLSIsLeftForAnother(t *testing.T) {
	t.Parallel()
	f := front(t)
	a := newAuthority(t, "servers")
	put(t, filepath.Join(f.dir, "ca.pem"), a.pem())
	server := func(options ...option) string {
		return "https://" + secureServer(t, &tls.Config{Certificates: []tls.Certificate{a.host([]string{"x"}, options...)}}, sayProto)
	}
	f.start(fmt.Sprintf(f.text, fmt.Sprintf("{servers: [{url: %q, tls: {ca_file: ca.pem}}, {url: %q, tls: {ca_file: ca.pem}}]}",
		server(forAddress("127.0.0.1"), expired), server(forAddress("127.0.0.1")))))
	for range 4 {
		if status, body := f.get("/"); status != 200 {
			t.Errorf("got %d %q", status, body)
		}
	}
}

// TestKeptTLSConnectionThatWasClosed holds that a connection which the server has
// closed meanwhile is not used again: a request that could not be sent twice gets
// its answer.
func TestKeptTLSConnectionThatWasClosed(t *testing.T) {
	t.Parallel()
	for _, protos := range [][]string{nil, {"http/1.1"}} {
		f := front(t)
		a := newAuthority(t, "servers")
		put(t, filepath.Join(f.dir, "ca.pem"), a.pem())
		s := httptest.NewUnstartedServer(http.HandlerFunc(sayProto))
		s.TLS = &tls.Config{Certificates: []tls.Certificate{a.host([]string{"x"}, forAddress("127.0.0.1"))}, NextProtos: protos}
		s.EnableHTTP2 = protos == nil
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		s.StartTLS()
		t.Cleanup(s.Close)
		f.start(fmt.Sprintf(f.text, route("/", s.URL, "ca_file: ca.pem")))
		for n := range 20 {
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
			rs, err := client.Post("http://"+f.address+"/", "text/plain", strings.NewReader("text"))
			if err != nil {
				t.Fatal(err)
			}
			rs.Body.Close()
			if rs.StatusCode != 200 {
				t.Errorf("%v: request %d got %s", protos, n, rs.Status)
			}
			s.CloseClientConnections()
		}
	}
}
