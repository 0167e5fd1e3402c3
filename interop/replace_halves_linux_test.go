package interop

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// heldConn is a connection of TCP that sends the first bytes, and keeps the rest until it is
// released.
type heldConn struct {
	net.Conn
	mu    sync.Mutex
	first int // bytes that are still to be sent at once
	open  bool
	rest  []byte
	sent  chan struct{} // closed when the first bytes are sent
}

func (h *heldConn) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open {
		return h.Conn.Write(p)
	}
	n := min(h.first, len(p))
	if _, err := h.Conn.Write(p[:n]); err != nil {
		return 0, err
	}
	h.rest = append(h.rest, p[n:]...)
	if h.first -= n; h.first == 0 && n > 0 {
		close(h.sent)
	}
	return len(p), nil
}

// release sends the rest, and what follows.
func (h *heldConn) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = true
	_, err := h.Conn.Write(h.rest)
	return err
}

// heldPackets is a socket of a QUIC client that sends the first datagrams, and keeps the rest
// until it is released.
type heldPackets struct {
	*net.UDPConn
	mu    sync.Mutex
	first int // datagrams that are still to be sent at once
	open  bool
	rest  [][]byte
	to    net.Addr
	sent  chan struct{} // closed when a datagram is kept
}

func (h *heldPackets) WriteTo(p []byte, to net.Addr) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.open:
	case h.first > 0:
		h.first--
	default:
		if h.rest = append(h.rest, append([]byte(nil), p...)); len(h.rest) == 1 {
			h.to = to
			close(h.sent)
		}
		return len(p), nil
	}
	return h.UDPConn.WriteTo(p, to)
}

// release sends what was kept, and what follows.
func (h *heldPackets) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open = true
	for _, p := range h.rest {
		if _, err := h.UDPConn.WriteTo(p, h.to); err != nil {
			return err
		}
	}
	return nil
}

// packetsOnly hides what else a UDP socket can do, so that quic-go calls WriteTo.
type packetsOnly struct{ net.PacketConn }

// halves is a client in the middle of something when the process is replaced.
type halves struct {
	sent    <-chan struct{} // closed when the first part is sent
	release func() error    // sends the second part
	result  chan error      // of the whole
	udp     string          // the address that datagrams go to; "" for TCP
}

// echoed sends a body and verifies that it comes back.
func echoed(rt http.RoundTripper, url string) error {
	body := strings.Repeat("half and half, ", 200)
	got, err := posts(rt, url)([]byte(body))
	if err == nil && string(got) != body {
		err = fmt.Errorf("got %d bytes back, want %d", len(got), len(body))
	}
	return err
}

// holdStream starts a request over a connection whose first bytes are sent before the rest.
func holdStream(t *testing.T, address string, first int, config *tls.Config) *halves {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { nc.Close() })
	h := &heldConn{Conn: nc, first: first, sent: make(chan struct{})}
	dial := func(context.Context, string, string) (net.Conn, error) { return h, nil }
	tr, url := &http.Transport{DialContext: dial}, "http://"+address+"/"
	if config != nil {
		tr.TLSClientConfig, tr.ForceAttemptHTTP2, url = config.Clone(), true, "https://"+address+"/"
	}
	out := &halves{sent: h.sent, release: h.release, result: make(chan error, 1)}
	go func() { out.result <- echoed(tr, url) }()
	return out
}

// holdQUIC starts a request over HTTP/3 whose first datagrams are sent before the rest.
func holdQUIC(t *testing.T, address string, first int, config *tls.Config) *halves {
	t.Helper()
	udp, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	h := &heldPackets{UDPConn: udp, first: first, sent: make(chan struct{})}
	transport := &quic.Transport{Conn: packetsOnly{h}}
	tr := &http3.Transport{TLSClientConfig: config.Clone(), Dial: func(ctx context.Context, address string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
		to, err := net.ResolveUDPAddr("udp4", address)
		if err != nil {
			return nil, err
		}
		qc = qc.Clone()
		qc.HandshakeIdleTimeout = patience
		return transport.DialEarly(ctx, to, tc, qc)
	}}
	t.Cleanup(func() {
		tr.Close()
		transport.Close()
		udp.Close()
	})
	out := &halves{sent: h.sent, release: h.release, result: make(chan error, 1), udp: address}
	go func() { out.result <- echoed(tr, "https://"+address+"/") }()
	return out
}

// TestUpgradeInTheMiddleOfAHandshake replaces the process when clients have sent the first part
// of what starts a connection, and nothing else is open: the old process stays until it has
// the second part.
func TestUpgradeInTheMiddleOfAHandshake(t *testing.T) {
	id := newIdentity(t, "one.example")
	plain, secure := free(t), free(t)
	config := trusting(id) // offers ML-KEM: the ClientHello has more than 1200 bytes
	for _, c := range []struct {
		name  string
		start func() *halves
	}{
		{"HTTP/1.1 request head", func() *halves { return holdStream(t, plain, 30, nil) }},
		{"TLS ClientHello", func() *halves { return holdStream(t, secure, 700, config) }},
		{"TLS ClientHello, five bytes", func() *halves { return holdStream(t, secure, 5, config) }},
		{"QUIC, the first of two datagrams of the ClientHello", func() *halves { return holdQUIC(t, secure, 1, config) }},
		{"QUIC, all but the end of the handshake", func() *halves { return holdQUIC(t, secure, 2, config) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := prepare(t)
			g.put("cert.pem", id.cert)
			g.put("key.pem", id.key)
			r := startReplaced(t, g, fmt.Sprintf(`
version: 1
admin: {address: ""}
ports:
  plain: {address: %q, protocol: http}
  secure: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies: {all: {routes: [{servers: [{url: %q}]}]}}
`, plain, secure, secure, echoRequests(t)))
			old := r.pid
			h := c.start()
			<-h.sent
			eventually(t, "the old process has read the first part", func() bool { return r.begun(h.udp) })
			r.upgrade()
			eventually(t, "the old process reports what it has begun", func() bool {
				s, err := r.state()
				return err == nil && s.Previous != nil && s.Previous.PID == old && s.Previous.Connections == 1
			})
			if err := h.release(); err != nil {
				t.Fatal(err)
			}
			if err := <-h.result; err != nil {
				t.Error(err)
			}
			r.alone()
		})
	}
}

// begun reports whether headgate has what a client has sent: a connection of TCP, or all
// datagrams.
func (r *replaced) begun(address string) bool {
	var s struct {
		Ports []struct {
			Protocol    string `json:"protocol"`
			Connections int    `json:"connections"`
		} `json:"ports"`
	}
	if r.status("", &s) != nil {
		return false
	}
	for _, p := range s.Ports {
		if p.Connections == 1 {
			return true
		}
	}
	_, port, _ := strings.Cut(address, ":")
	number, _ := strconv.Atoi(port)
	table, _ := os.ReadFile("/proc/thread-self/net/udp")
	for row := range strings.Lines(string(table)) {
		if f := strings.Fields(row); len(f) > 4 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", number)) {
			return strings.HasSuffix(f[4], ":00000000")
		}
	}
	return false
}

// TestSilentClientsOfTheOldProcess replaces the process when clients are connected and have
// sent nothing: the system has not delivered those yet (deferred accept). The new process
// serves them.
func TestSilentClientsOfTheOldProcess(t *testing.T) {
	plain := free(t)
	r := startReplaced(t, prepare(t), fmt.Sprintf(`
version: 1
admin: {address: ""}
ports: {plain: {address: %q, protocol: http}}
proxies: {all: {routes: [{servers: [{url: %q}]}]}}
`, plain, echoRequests(t)))
	var silent []net.Conn
	for range 20 {
		c, err := net.Dial("tcp", plain)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		silent = append(silent, c)
	}
	r.upgrade()
	for i, c := range silent {
		c.SetDeadline(time.Now().Add(patience))
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		rs, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatalf("client %d: %v", i, err)
		}
		if rs.StatusCode != 200 {
			t.Errorf("client %d: %s", i, rs.Status)
		}
	}
	r.alone()
}
