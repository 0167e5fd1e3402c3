package control

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// announced is a configuration with two ports that take PROXY headers from
// trusted, and an upstream that tells what it hears of the client.
func announced(t *testing.T, trusted string, at []string, more string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		io.WriteString(w, "from "+rq.Header.Get("X-Forwarded-For"))
	}))
	t.Cleanup(server.Close)
	return fmt.Sprintf(`version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  plain: {address: %q, protocol: http, proxy_protocol: {trusted: [%s], timeout: 300ms}}
  secure: {address: %q, protocol: https, proxy_protocol: {trusted: [%s], timeout: 300ms}}
proxies:
  all: {routes: [{servers: [{url: %q}]}]%s}
`, at[0], trusted, at[1], trusted, server.URL, more)
}

// sendHeader sends a header and a request, each byte in a packet of its own if slowly
// is set, and returns what comes back.
func sendHeader(t *testing.T, address, header string, secure, slowly bool) string {
	t.Helper()
	nc, err := net.DialTimeout("tcp", address, patience)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	const request = "GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"
	switch {
	case secure:
		io.WriteString(nc, header)
		nc = tls.Client(nc, &tls.Config{InsecureSkipVerify: true})
		io.WriteString(nc, request)
	case slowly:
		for i := range len(header) + len(request) {
			io.WriteString(nc, (header + request)[i:i+1])
		}
	default:
		io.WriteString(nc, header+request)
	}
	b, _ := io.ReadAll(nc)
	return string(b)
}

func TestATrustedPeerTellsTheClientsAddress(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	h := start(t, announced(t, "127.0.0.0/8", at, ""))
	const v1 = "PROXY TCP4 192.0.2.77 198.51.100.1 4000 80\r\n"
	const v2 = "\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x0c\xc0\x00\x02\x4d\xc6\x33\x64\x01\x0f\xa0\x00\x50"
	for _, header := range []string{v1, v2} {
		for _, c := range []struct{ secure, slowly bool }{{false, false}, {false, true}, {true, false}} {
			address := at[0]
			if c.secure {
				address = at[1]
			}
			if got := sendHeader(t, address, header, c.secure, c.slowly); !strings.HasSuffix(got, "from 192.0.2.77") {
				t.Errorf("%q, %+v: got %q", header, c, got)
			}
		}
	}
	for _, header := range []string{"PROXY UNKNOWN\r\n", "\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"} {
		if got := sendHeader(t, at[0], header, false, false); !strings.HasSuffix(got, "from 127.0.0.1") {
			t.Errorf("%q: got %q", header, got)
		}
	}
	// What is missing, forged or cut closes the connection without a word.
	for _, header := range []string{"", "PROXY TCP4 192.0.2.77", "\r\n\r\n\x00\r\nQUIX\n" + v2[12:], "PROXY TCP4 192.0.2.999 198.51.100.1 4000 80\r\n"} {
		for i := range at {
			if got := sendHeader(t, at[i], header, i == 1, false); got != "" {
				t.Errorf("%q: got %q, want nothing", header, got)
			}
		}
	}
	w := httptest.NewRecorder()
	h.c.metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if want := `headgate_connections_refused_total{port="plain",reason="proxy_protocol"} 4`; !strings.Contains(w.Body.String(), want) {
		t.Errorf("the metrics lack %s", want)
	}
	testhouse.Eventually(t, "every connection has ended", func() bool {
		p, _ := h.port("plain", at[0])
		return p.Connections == 0
	})
}

func TestAnAnnouncedAddressIsFiltered(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	start(t, announced(t, "127.0.0.1", at, `, ip_filter: {deny: [192.0.2.66]}`))
	if got := sendHeader(t, at[0], "PROXY TCP4 192.0.2.66 198.51.100.1 4000 80\r\n", false, false); !strings.HasPrefix(got, "HTTP/1.1 403") {
		t.Errorf("got %q, want 403", got)
	}
	if got := sendHeader(t, at[0], "PROXY TCP4 192.0.2.67 198.51.100.1 4000 80\r\n", false, false); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("got %q, want 200", got)
	}
}

func TestAHeaderOfAStrangerIsABadRequest(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 2)
	start(t, announced(t, "192.0.2.0/24", at, ""))
	if got := sendHeader(t, at[0], "PROXY TCP4 192.0.2.77 198.51.100.1 4000 80\r\n", false, false); !strings.HasPrefix(got, "HTTP/1.1 400") {
		t.Errorf("got %q, want 400", got)
	}
	if got := sendHeader(t, at[0], "", false, false); !strings.HasSuffix(got, "from 127.0.0.1") {
		t.Errorf("without a header: got %q", got)
	}
	if got := sendHeader(t, at[1], "", true, false); !strings.HasSuffix(got, "from 127.0.0.1") {
		t.Errorf("without a header over TLS: got %q", got)
	}
}

func TestAnAnnouncedClientPassesThroughByName(t *testing.T) {
	t.Parallel()
	at := testhouse.Addresses(t, 1)
	heard := make(chan string, 1)
	server := testhouse.Server(t, func(c net.Conn) {
		line, _ := bufio.NewReader(c).ReadString('\n')
		heard <- line
	})
	start(t, fmt.Sprintf(`version: 1
admin: {address: ""}
ports: {secure: {address: %q, protocol: https, proxy_protocol: {trusted: [127.0.0.1]}}}
proxies: {all: {routes: [{fixed_response: {status: 204}}]}}
tcp_proxies:
  db: {port: secure, sni: [db.example.com], proxy_protocol: v1, ip_filter: {allow: [192.0.2.0/24]}, servers: [{address: %q}]}
`, at[0], server))
	const header = "PROXY TCP4 192.0.2.77 198.51.100.1 4000 443\r\n"
	nc, err := net.DialTimeout("tcp", at[0], patience)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	io.WriteString(nc, header)
	go tls.Client(nc, &tls.Config{InsecureSkipVerify: true, ServerName: "db.example.com"}).Handshake()
	select {
	case line := <-heard:
		if line != header {
			t.Errorf("the server heard %q, want %q", line, header)
		}
	case <-time.After(patience):
		t.Error("the server heard nothing")
	}
}
