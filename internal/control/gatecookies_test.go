package control

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"headgate/internal/gate"
)

// sessionOf returns the value of a browser's cookie at an application.
func (b *browser) sessionOf(host string) string {
	b.t.Helper()
	u, err := url.Parse(b.at(host, "/"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, c := range b.client.Jar.Cookies(u) {
		if c.Name == gate.CookieGate {
			return c.Value
		}
	}
	b.t.Fatalf("the browser has no session at %s", host)
	return ""
}

// raw sends a request as it is written over a connection of its own, and returns the status and the
// body. The Host field and the end of the head are added.
func (g *gated) raw(host string, lines ...string) (int, string) {
	g.t.Helper()
	nc, err := tls.Dial("tcp", "127.0.0.1:"+g.port, &tls.Config{InsecureSkipVerify: true, ServerName: host + ".example.com"})
	if err != nil {
		g.t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(20 * time.Second))
	head := append([]string{lines[0], "Host: " + host + ".example.com:" + g.port, "Connection: close"}, lines[1:]...)
	if _, err := io.WriteString(nc, strings.Join(head, "\r\n")); err != nil {
		g.t.Fatal(err)
	}
	rs, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		g.t.Fatal(err)
	}
	defer rs.Body.Close()
	text, err := io.ReadAll(rs.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return rs.StatusCode, string(text)
}

// A sibling host can set a cookie for the whole domain, which browsers send beside the own one in an
// order that the sibling chooses by its path (cookie tossing). Neither counts then: a person would
// otherwise work in the session of an attacker.
func TestTossedCookiesAreRefused(t *testing.T) {
	g := startGated(t)
	ann, eve := g.browser(), g.browser()
	ann.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	eve.signIn(g.at("wiki", "/"), "eve", "staff").want(t, 200)
	own, tossed := gate.CookieGate+"="+ann.sessionOf("wiki"), gate.CookieGate+"="+eve.sessionOf("wiki")
	if status, text := g.raw("wiki", "GET /x HTTP/1.1", "Cookie: "+own, "", ""); status != 200 || !strings.Contains(text, "Remote-User: ann@example.com") {
		t.Fatalf("the own cookie alone: status %d, %s", status, text)
	}
	for name, fields := range map[string][]string{
		"own first":              {"Cookie: " + own + "; " + tossed},
		"tossed first":           {"Cookie: " + tossed + "; " + own},
		"two fields":             {"Cookie: " + own, "Cookie: " + tossed},
		"two fields, other way":  {"Cookie: " + tossed, "Cookie: " + own},
		"others between":         {"Cookie: a=1; " + tossed + "; b=2; " + own + "; c=3"},
		"the same twice":         {"Cookie: " + own + "; " + own},
		"an empty one":           {"Cookie: " + gate.CookieGate + "=; " + own + "; " + gate.CookieGate + "=" + strings.Repeat("a", 43)},
		"an empty one first":     {"Cookie: " + gate.CookieGate + "=; " + own},
		"another nonce":          {"Cookie: " + gate.CookieNonce + "=" + strings.Repeat("a", 43) + "; " + gate.CookieNonce + "=" + strings.Repeat("b", 43) + "; " + own},
		"without the own prefix": {"Cookie: headgate-gate=" + ann.sessionOf("wiki")},
		"the prefix of another":  {"Cookie: __Secure-headgate-gate=" + ann.sessionOf("wiki")},
		"another case":           {"Cookie: __host-Headgate-Gate=" + ann.sessionOf("wiki")},
		"quoted":                 {"Cookie: " + gate.CookieGate + "=\"" + ann.sessionOf("wiki") + "\""},
	} {
		status, text := g.raw("wiki", append(append([]string{"GET /x HTTP/1.1"}, fields...), "", "")...)
		if status != 401 || strings.Contains(text, "Remote-") {
			t.Errorf("%s: status %d, %s", name, status, text)
		}
	}
	// On the sign-in page, two sessions are an error, in both orders.
	first, second := gate.CookieSignIn+"="+strings.Repeat("a", 43), gate.CookieSignIn+"="+strings.Repeat("b", 43)
	for _, cookies := range []string{first + "; " + second, second + "; " + first} {
		if status, text := g.raw("login", "GET / HTTP/1.1", "Cookie: "+cookies, "Accept: text/html", "", ""); status != 400 {
			t.Errorf("the sign-in page with two sessions: status %d, %s", status, text)
		}
	}
}

// Fields that name people do not reach a server from a trailer, from a list of names in Trailer or
// Connection, or in names that servers may read as the same.
func TestNobodyIsNamedByATrailer(t *testing.T) {
	g := startGated(t)
	ann := g.browser()
	ann.signIn(g.at("wiki", "/"), "ann").want(t, 200)
	cookie := "Cookie: " + gate.CookieGate + "=" + ann.sessionOf("wiki")
	for _, forged := range []string{"Remote-User", "remote-user", "REMOTE_USER", "Remote_User", "Remote-Groups", "remote_groups", "X-Headgate-Token", "Cookie"} {
		for _, path := range []string{"/x", "/public/x"} {
			status, text := g.raw("wiki", "POST "+path+" HTTP/1.1", cookie, "Transfer-Encoding: chunked", "TE: trailers", "Trailer: "+forged, "", "1", "x", "0", forged+": root", "", "")
			if status != 200 || strings.Contains(text, "root") {
				t.Errorf("trailer %s at %s: status %d, %s", forged, path, status, text)
			}
		}
	}
	// A hop-by-hop option must not remove what the gate has added.
	if status, text := g.raw("wiki", "GET /x HTTP/1.1", cookie, "Connection: close, Remote-User, remote-groups", "", ""); status != 200 || !strings.Contains(text, "Remote-User: ann@example.com") {
		t.Errorf("Connection that names the field: status %d, %s", status, text)
	}
}

// h2 is a connection of HTTP/2 that sends heads as they are written.
type h2 struct {
	t      *testing.T
	framer *http2.Framer
	write  *hpack.Encoder
	block  *bytes.Buffer
	stream uint32
}

// h2 connects with a server name.
func (g *gated) h2(name string) *h2 {
	g.t.Helper()
	nc, err := tls.Dial("tcp", "127.0.0.1:"+g.port, &tls.Config{InsecureSkipVerify: true, ServerName: name + ".example.com", NextProtos: []string{"h2"}})
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { nc.Close() })
	nc.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(nc, http2.ClientPreface); err != nil {
		g.t.Fatal(err)
	}
	c := &h2{t: g.t, framer: http2.NewFramer(nc, nc), block: &bytes.Buffer{}, stream: 1}
	c.write = hpack.NewEncoder(c.block)
	c.framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if err := c.framer.WriteSettings(); err != nil {
		g.t.Fatal(err)
	}
	return c
}

// asH2 is the head of a GET.
func (g *gated) asH2(host, path string, more ...string) []string {
	return append([]string{":method", "GET", ":scheme", "https", ":authority", host + ".example.com:" + g.port, ":path", path}, more...)
}
