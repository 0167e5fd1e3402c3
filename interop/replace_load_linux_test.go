package interop

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/http3"
)

// upgradeLoad is load of every protocol on a server whose process is replaced. A client sends
// bodies of up to 40 kB and compares what comes back.
type upgradeLoad struct {
	*mixed
	config                      *tls.Config // of clients
	plain, secure, packets, tcp string      // addresses; packets is that of HTTP/3

	over     atomic.Int64 // upgrades whose tunnels have been seen to go on
	repeated atomic.Int64 // requests that were refused with GOAWAY and sent again
	quic     quicCount
}

// quicCount counts the packets of connections of QUIC clients.
type quicCount struct {
	sync.Mutex
	open       []*quic.Conn
	sent, lost uint64 // of connections that were closed
}

// of has the count include a connection.
func (q *quicCount) of(c *quic.Conn) {
	q.Lock()
	q.open = append(q.open, c)
	q.Unlock()
}

// total returns how many packets clients have sent, and how many of those they have not got
// acknowledged by the time at which they must have been.
func (q *quicCount) total() (sent, lost uint64) {
	q.Lock()
	defer q.Unlock()
	open := q.open[:0]
	for _, c := range q.open {
		st := c.ConnectionStats()
		if c.Context().Err() != nil {
			q.sent, q.lost = q.sent+st.PacketsSent, q.lost+st.PacketsLost
			continue
		}
		sent, lost = sent+st.PacketsSent, lost+st.PacketsLost
		open = append(open, c)
	}
	q.open = open
	return sent + q.sent, lost + q.lost
}

// dial opens a connection whose packets are counted.
func (q *quicCount) dial(ctx context.Context, address string, tc *tls.Config, qc *quic.Config) (*quic.Conn, error) {
	// Deadlines of the client must not decide while another process of this machine runs.
	qc = qc.Clone()
	qc.HandshakeIdleTimeout, qc.MaxIdleTimeout = patience, 2*patience
	c, err := quic.DialAddrEarly(ctx, address, tc, qc)
	if err == nil {
		q.of(c)
	}
	return c, err
}

// trusting returns the configuration of clients that trust a certificate.
func trusting(id *identity) *tls.Config {
	trust := x509.NewCertPool()
	trust.AppendCertsFromPEM([]byte(id.cert))
	return &tls.Config{RootCAs: trust, ServerName: "localhost"}
}

// http starts the clients of HTTP. Those of HTTP/3 are left out where no address is for them.
func (l *upgradeLoad) http() {
	l.run("HTTP/1.1", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{}
		return posts(tr, "http://"+l.plain+"/"), tr.CloseIdleConnections
	})
	l.run("HTTP/1.1 and TLS, each on a new connection", 2, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{TLSClientConfig: l.config.Clone(), DisableKeepAlives: true}
		return posts(tr, "https://"+l.secure+"/"), tr.CloseIdleConnections
	})
	l.run("HTTP/2", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{TLSClientConfig: l.config.Clone(), ForceAttemptHTTP2: true}
		return l.againIfRefused(posts(tr, "https://"+l.secure+"/")), tr.CloseIdleConnections
	})
	if l.packets == "" {
		return
	}
	l.run("HTTP/3", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http3.Transport{TLSClientConfig: l.config.Clone(), Dial: l.quic.dial}
		return l.againIfRefused(posts(tr, "https://"+l.packets+"/")), func() { tr.Close() }
	})
	l.run("HTTP/3, each on a new connection", 1, func() (func([]byte) ([]byte, error), func()) {
		return func(p []byte) ([]byte, error) {
			tr := &http3.Transport{TLSClientConfig: l.config.Clone(), Dial: l.quic.dial}
			defer tr.Close()
			return posts(tr, "https://"+l.packets+"/")(p)
		}, func() {}
	})
}

// tunnel starts a client of a connection that lives until one upgrade is over, as two
// generations is the most there is.
func (l *upgradeLoad) tunnel(name string, open func() (io.ReadWriteCloser, error)) {
	l.run(name, 1, func() (func([]byte) ([]byte, error), func()) {
		var c io.ReadWriteCloser
		of := int64(-1)
		end := func() {
			if c != nil {
				c.Close()
			}
		}
		return func(p []byte) (got []byte, err error) {
			if now := l.over.Load(); now != of {
				end()
				if c, err = open(); err != nil {
					c = nil
					return nil, err
				}
				of = now
			}
			return lines(c)(p)
		}, end
	})
}

// opened is what opens a tunnel, and has failed the test if it could not.
func opened(open func() io.ReadWriteCloser) func() (io.ReadWriteCloser, error) {
	return func() (io.ReadWriteCloser, error) {
		if c := open(); c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("it could not be opened")
	}
}

// tunnels starts the clients of WebSockets, gRPC and TCP.
func (l *upgradeLoad) tunnels() {
	l.tunnel("WebSocket over HTTP/1.1", func() (io.ReadWriteCloser, error) { return webSocket(l.plain) })
	l.tunnel("gRPC stream", opened(func() io.ReadWriteCloser { return duplexCall(l.t, l.secure, l.config.Clone()) }))
	if l.tcp != "" {
		l.tunnel("TCP", func() (io.ReadWriteCloser, error) {
			c, err := net.Dial("tcp", l.tcp)
			return hurried{c}, err
		})
	}
}

// extended starts the clients of WebSockets over HTTP/2 and HTTP/3, which not all servers
// have.
func (l *upgradeLoad) extended() {
	l.tunnel("WebSocket over HTTP/2", opened(func() io.ReadWriteCloser { return upgrade2(l.t, l.secure, l.config.Clone()) }))
	l.tunnel("WebSocket over HTTP/3", opened(func() io.ReadWriteCloser { return upgrade3(l.t, l.packets, l.config.Clone()) }))
}

// readyz starts a client that reads /readyz, each time on a new connection.
func (l *upgradeLoad) readyz(address string) {
	l.run("readyz", 1, func() (func([]byte) ([]byte, error), func()) {
		return func(p []byte) ([]byte, error) {
			rs, err := (&http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}).Get("http://" + address + "/readyz")
			if err != nil {
				return nil, err
			}
			rs.Body.Close()
			if rs.StatusCode != 200 {
				return nil, fmt.Errorf("%s", rs.Status)
			}
			return p, nil
		}, func() {}
	})
}

// end ends the load and reports it, by protocol. It returns how much was lost in all.
func (l *upgradeLoad) end() (lost int64) {
	l.t.Helper()
	close(l.stop)
	l.all.Wait()
	for _, k := range l.kinds {
		l.t.Logf("%-44s %6d rounds, %10d bytes, %d lost, the longest took %v", k.name, k.rounds.Load(), k.size.Load(), k.lost.Load(), time.Duration(k.longest.Load()).Round(time.Millisecond))
		lost += k.lost.Load()
		k.why.Range(func(why, _ any) bool {
			l.t.Logf("    lost: %s", why)
			return true
		})
	}
	sent, unacknowledged := l.quic.total()
	l.t.Logf("clients of HTTP/3 sent %d packets of QUIC, %d of them were not acknowledged in time; %d requests were refused with GOAWAY and sent again", sent, unacknowledged, l.repeated.Load())
	return lost
}

// refusals are in the errors of requests that clients did not send, or that were not processed.
var refusals = []string{"cannot rewind body after connection loss", "H3_REQUEST_REJECTED", "H3_NO_ERROR (local)"}

// againIfRefused sends a request again that net/http would send again by itself, if it could
// read the body twice: the connection had its GOAWAY before the request was processed (RFC
// 9113, section 8.7; RFC 9114, section 5.2). A client under load may pass over the last round
// trip between the two GOAWAY frames, and the one of quic-go closes its connection after them, also
// when a request is about to be sent on it: that one ends with H3_NO_ERROR (local).
func (l *upgradeLoad) againIfRefused(round func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
	return func(p []byte) ([]byte, error) {
		got, err := round(p)
		if err != nil && slices.ContainsFunc(refusals, func(text string) bool { return strings.Contains(err.Error(), text) }) {
			l.repeated.Add(1)
			return round(p)
		}
		return got, err
	}
}

// socketDrops returns how many datagrams the system has dropped as the queue of the socket at
// an address was full: a socket that two processes have has one queue.
func socketDrops(t *testing.T, address string) (drops int) {
	t.Helper()
	_, text, _ := strings.Cut(address, ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	// Not /proc/net: that is of the first thread, which another test may have moved into a
	// namespace of its own.
	table, err := os.ReadFile("/proc/thread-self/net/udp")
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for row := range strings.Lines(string(table)) {
		if f := strings.Fields(row); len(f) > 12 && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", port)) {
			n, _ := strconv.Atoi(f[len(f)-1])
			drops, found = drops+n, true
		}
	}
	if !found {
		t.Errorf("no socket is at %s", address)
	}
	return drops
}
