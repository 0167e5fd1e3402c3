package https

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// tool is a program that people use, run against a house.
type tool struct {
	t    *testing.T
	path string
}

// needed returns a program of a Debian package. Where HEADGATE_TOOLS is
// "required" it has to be there: .ci/steps installs it.
func needed(t *testing.T, program, debian string) tool {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		if os.Getenv("HEADGATE_TOOLS") == "required" {
			t.Fatalf("%s is missing: install Debian's %s", program, debian)
		}
		t.Skipf("%s is missing: Debian has it in %s, and make test installs it as root", program, debian)
	}
	return tool{t, path}
}

// run returns what the program prints. It has to succeed.
func (p tool) run(input string, args ...string) (out, errors string) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		p.t.Fatalf("%s %s: %v\n%s\n%s", filepath.Base(p.path), strings.Join(args, " "), err, tail(stderr.String()), tail(stdout.String()))
	}
	return stdout.String(), stderr.String()
}

func tail(s string) string { return s[max(0, len(s)-4000):] }

// site is a house in front of a server, with a certificate for a.example that is
// signed by the authority in ca.
type site struct {
	*house
	address, port, ca string
	leaf              []byte // DER of the certificate's public key
}

func newSite(t *testing.T, handler http.Handler) *site {
	h, a := newHouse(t), newAuthority(t, "test authority")
	upstream := httptest.NewServer(handler)
	t.Cleanup(upstream.Close)
	cert := a.host([]string{"a.example"})
	keep(t, h.dir, "main", cert)
	s := &site{house: h, address: testhouse.Address(t), ca: filepath.Join(h.dir, "ca.pem"), leaf: cert.Leaf.RawSubjectPublicKeyInfo}
	put(t, s.ca, a.pem())
	_, s.port, _ = strings.Cut(s.address, ":")
	h.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  web: {address: %q, protocol: https, tls: {default_certificate: main}}
  quic: {address: %q, protocol: http3, tls: {default_certificate: main}}
certificates: {main: {cert_file: main.pem, key_file: main.key}}
proxies: {all: {routes: [{servers: [{url: %q}]}]}}
`, s.address, s.address, upstream.URL))
	return s
}

// echo answers with what it was sent.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	http.NewResponseController(w).EnableFullDuplex()
	fmt.Fprintf(w, "%s %s %s\n", r.Method, r.URL.Path, r.Header.Get("X-Forwarded-Proto"))
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Body.Read(buf)
		w.Write(buf[:n])
		if err != nil {
			return
		}
	}
})

func TestCurl(t *testing.T) {
	t.Parallel()
	curl := needed(t, "curl", "curl")
	s := newSite(t, echo)
	large := strings.Repeat("0123456789abcdef", 1<<16)
	for _, c := range []struct {
		args []string
		want string // protocol and version of TLS
	}{
		{[]string{"--http1.1"}, "1.1"},
		{[]string{"--http2"}, "2"},
		{[]string{"--http1.1", "--tls-max", "1.2"}, "1.1"},
		{[]string{"--http2", "--tls-max", "1.2"}, "2"},
	} {
		args := append([]string{"-sS", "--cacert", s.ca, "--resolve", "a.example:" + s.port + ":127.0.0.1", "-w", "\n%{http_version} %{http_code}"}, c.args...)
		out, _ := curl.run("", append(args, "https://a.example:"+s.port+"/x")...)
		if want := "GET /x https\n\n" + c.want + " 200"; out != want {
			t.Errorf("curl %v: got %q, want %q", c.args, out, want)
		}
		out, _ = curl.run(large, append(args, "--data-binary", "@-", "https://a.example:"+s.port+"/up")...)
		if want := "POST /up https\n" + large + "\n" + c.want + " 200"; out != want {
			t.Errorf("curl %v of %d bytes: got %d bytes, want %d", c.args, len(large), len(out), len(want))
		}
	}
}

func TestOpenSSL(t *testing.T) {
	t.Parallel()
	openssl := needed(t, "openssl", "openssl")
	s := newSite(t, echo)
	base := []string{"s_client", "-connect", s.address, "-servername", "a.example", "-CAfile", s.ca, "-verify_return_error", "-verify_hostname", "a.example"}
	out, _ := openssl.run("", append(base, "-alpn", "h2,http/1.1", "-tls1_3")...)
	for _, want := range []string{"ALPN protocol: h2", "Verify return code: 0 (ok)", "New, TLSv1.3"} {
		if !strings.Contains(out, want) {
			t.Errorf("TLS 1.3: %q is not in\n%s", want, out)
		}
	}
	out, _ = openssl.run("", append(base, "-tls1_2", "-reconnect")...)
	if n := strings.Count(out, "Reused, TLSv1.2"); n != 5 {
		t.Errorf("TLS 1.2: %d of 5 connections took the session up again\n%s", n, out)
	}
	session := filepath.Join(s.dir, "session")
	request := "GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n"
	openssl.run(request, append(base, "-tls1_3", "-ign_eof", "-sess_out", session)...)
	out, _ = openssl.run(request, append(base, "-tls1_3", "-ign_eof", "-sess_in", session)...)
	for _, want := range []string{"Reused, TLSv1.3", "HTTP/1.1 200 OK", "GET / https"} {
		if !strings.Contains(out, want) {
			t.Errorf("TLS 1.3 again: %q is not in\n%s", want, out)
		}
	}
}

func TestNghttp(t *testing.T) {
	t.Parallel()
	nghttp := needed(t, "nghttp", "nghttp2-client")
	h2load := needed(t, "h2load", "nghttp2-client")
	s := newSite(t, echo)
	out, _ := nghttp.run("", "-n", "-s", "-m", "50", "https://"+s.address+"/")
	if n := strings.Count(out, " 200 "); n != 50 {
		t.Errorf("nghttp: %d of 50 requests got 200\n%s", n, out)
	}
	out, _ = h2load.run("", "-n", "2000", "-c", "4", "-m", "32", "https://"+s.address+"/")
	if !strings.Contains(out, "2000 succeeded, 0 failed, 0 errored") {
		t.Errorf("h2load:\n%s", out)
	}
}

// scan is what sslscan tells.
type scan struct {
	Protocols []struct {
		Type    string `xml:"type,attr"`
		Version string `xml:"version,attr"`
		Enabled int    `xml:"enabled,attr"`
	} `xml:"ssltest>protocol"`
	Ciphers []struct {
		Name     string `xml:"cipher,attr"`
		Version  string `xml:"sslversion,attr"`
		Strength string `xml:"strength,attr"`
	} `xml:"ssltest>cipher"`
	Heartbleed []struct {
		Vulnerable int `xml:"vulnerable,attr"`
	} `xml:"ssltest>heartbleed"`
	Compression   []supported `xml:"ssltest>compression"` // told only by some builds
	Renegotiation []supported `xml:"ssltest>renegotiation"`
	Groups        []struct {
		Name string `xml:"name,attr"`
		Bits int    `xml:"bits,attr"`
	} `xml:"ssltest>group"`
}

type supported struct {
	Supported int `xml:"supported,attr"`
}

func TestNothingWeakIsOffered(t *testing.T) {
	t.Parallel()
	sslscan := needed(t, "sslscan", "sslscan")
	s := newSite(t, echo)
	out, _ := sslscan.run("", "--xml=-", "--sni-name=a.example", s.address)
	var got scan
	if err := xml.Unmarshal([]byte(out), &got); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if len(got.Protocols) < 5 || len(got.Ciphers) < 4 || len(got.Heartbleed) == 0 || len(got.Renegotiation) == 0 || len(got.Groups) == 0 {
		t.Fatalf("the scan is not whole: %+v\n%s", got, out)
	}
	for _, p := range got.Protocols {
		if want := p.Type == "tls" && (p.Version == "1.2" || p.Version == "1.3"); want != (p.Enabled == 1) {
			t.Errorf("%s %s: enabled %d", p.Type, p.Version, p.Enabled)
		}
	}
	for _, c := range got.Ciphers {
		modern := strings.Contains(c.Name, "GCM") || strings.Contains(c.Name, "CHACHA20")
		secret := c.Version == "TLSv1.3" || strings.HasPrefix(c.Name, "ECDHE-")
		if !modern || !secret || c.Strength != "strong" && c.Strength != "acceptable" {
			t.Errorf("%s %s is %s", c.Version, c.Name, c.Strength)
		}
	}
	for _, h := range got.Heartbleed {
		if h.Vulnerable != 0 {
			t.Error("heartbleed")
		}
	}
	for what, all := range map[string][]supported{"compression": got.Compression, "renegotiation": got.Renegotiation} {
		for _, one := range all {
			if one.Supported != 0 {
				t.Errorf("%s is supported", what)
			}
		}
	}
	for _, g := range got.Groups {
		if g.Bits < 112 {
			t.Errorf("group %s has %d bits", g.Name, g.Bits)
		}
	}
}

// resources is how many the page of TestChromium has, of each kind.
const resources = 100

// page has a hundred scripts and a hundred pictures, and tells when it is loaded
// what came of them.
func page(protocol string) string {
	var b strings.Builder
	b.WriteString("<!doctype html><html><head><title>page</title><script>scripts = 0; pictures = 0</script></head><body>\n")
	for n := range resources {
		fmt.Fprintf(&b, "<script src=/script/%d></script><img src=/picture/%d onload='pictures++'>\n", n, n)
	}
	fmt.Fprintf(&b, "<script>spoken = '%s'</script>", protocol)
	b.WriteString(`<p id=result></p><script>onload = () => {
		const all = performance.getEntriesByType('resource').concat(performance.getEntriesByType('navigation'));
		const right = all.filter(e => e.nextHopProtocol === spoken).length;
		document.getElementById('result').textContent = 'scripts ' + scripts + ', pictures ' + pictures + ', ' + spoken + ' ' + right + ' of ' + all.length;
	}</script></body></html>`)
	return b.String()
}

// pageServer serves the page of a browser that speaks a protocol.
func pageServer(protocol string) http.Handler {
	filler := strings.Repeat("x", 64<<10)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind, n, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		size, _ := strconv.Atoi(n)
		switch kind {
		case "":
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprint(w, page(protocol))
		case "script":
			w.Header().Set("Content-Type", "text/javascript")
			fmt.Fprintf(w, "scripts++ /* %s */", filler[:size*100])
		case "picture":
			w.Header().Set("Content-Type", "image/svg+xml")
			fmt.Fprintf(w, "<svg xmlns='http://www.w3.org/2000/svg' width='1' height='1'><!-- %s --></svg>", filler[:size*600])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	})
}

func TestChromium(t *testing.T) {
	t.Parallel()
	newSite(t, pageServer("h2")).browse(t, "h2", "--disable-quic")
}

func TestChromiumOverHTTP3(t *testing.T) {
	t.Parallel()
	s := newSite(t, pageServer("h3"))
	s.browse(t, "h3", "--enable-quic", "--origin-to-force-quic-on=a.example:"+s.port)
}

// browse holds that a browser loads all of the page by a protocol.
func (s *site) browse(t *testing.T, protocol string, more ...string) {
	t.Helper()
	chromium := needed(t, "chromium", "chromium")
	pin := sha256.Sum256(s.leaf)
	out, errors := chromium.run("", append(more, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
		"--user-data-dir="+t.TempDir(), "--ignore-certificate-errors-spki-list="+base64.StdEncoding.EncodeToString(pin[:]),
		"--host-resolver-rules=MAP a.example 127.0.0.1, MAP * ~NOTFOUND", "--timeout=30000", "--dump-dom", "https://a.example:"+s.port+"/")...)
	want := fmt.Sprintf("scripts %d, pictures %[1]d, %s %d of %[3]d", resources, protocol, 2*resources+1)
	if !strings.Contains(out, want) {
		t.Errorf("the page does not say %q:\n%s\n%s", want, tail(out), tail(errors))
	}
}
