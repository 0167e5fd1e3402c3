package interop

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go/http3"

	"headgate/internal/testhouse"
)

// changes is how often the configuration changes under load.
const changes = 20

// mixed is load of many kinds at once. What is not answered, or not as it was sent,
// is lost.
type mixed struct {
	t     *testing.T
	stop  chan struct{}
	all   sync.WaitGroup
	kinds []*kind
	// counts is for servers that may lose something: that is counted, and the client goes on
	// with another line.
	counts bool
}

// kind is one kind of load.
type kind struct {
	name               string
	rounds, lost, size atomic.Int64 // size is the bytes that came back
	longest            atomic.Int64 // round, in ns
	why                sync.Map     // errors of lost rounds, when they are counted only
}

// took records how long a round has taken.
func (k *kind) took(d time.Duration) {
	for was := k.longest.Load(); int64(d) > was && !k.longest.CompareAndSwap(was, int64(d)); {
		was = k.longest.Load()
	}
}

// run starts clients of a kind. Each opens a line and uses it until the load ends:
// a round sends p and returns what came back.
func (m *mixed) run(name string, clients int, open func() (round func(p []byte) ([]byte, error), end func())) {
	k := &kind{name: name}
	m.kinds = append(m.kinds, k)
	for i := range clients {
		m.all.Go(func() {
			round, end := open()
			defer func() { end() }()
			p := make([]byte, 40_000)
			for n := 0; ; n++ {
				select {
				case <-m.stop:
					return
				default:
				}
				testhouse.Pause()
				p := p[:1+n*7919%[]int{1000, len(p)}[min(1, n%8/7)]]
				for j := range p {
					p[j] = byte(i + n + j)
				}
				start := time.Now()
				got, err := round(p)
				k.took(time.Since(start))
				if err == nil && !bytes.Equal(got, p) {
					err = fmt.Errorf("%d bytes came back as %d others", len(p), len(got))
				}
				if err != nil && m.counts {
					k.lost.Add(1)
					k.why.Store(err.Error(), n)
					end()
					round, end = open()
					continue
				}
				if err != nil {
					if k.lost.Add(1) < 5 {
						m.t.Errorf("%s: client %d, round %d: %v", name, i, n, err)
					}
					return
				}
				k.rounds.Add(1)
				k.size.Add(int64(len(got)))
			}
		})
	}
}

// progress waits until every kind has had ten rounds more.
func (m *mixed) progress() {
	m.t.Helper()
	before := map[*kind]int64{}
	for _, k := range m.kinds {
		before[k] = k.rounds.Load()
	}
	eventually(m.t, "all kinds of load go on", func() bool {
		for _, k := range m.kinds {
			if k.rounds.Load() < before[k]+10 && (m.counts || k.lost.Load() == 0) {
				return false
			}
		}
		return true
	})
}

// posts asks by a client of HTTP. A body that cannot be sent twice keeps the client
// from trying again by itself what headgate has lost.
func posts(tr http.RoundTripper, url string) func(p []byte) ([]byte, error) {
	client := &http.Client{Transport: tr, Timeout: patience}
	return func(p []byte) ([]byte, error) {
		rq, err := http.NewRequest("POST", url, io.MultiReader(bytes.NewReader(p)))
		if err != nil {
			return nil, err
		}
		rq.ContentLength = int64(len(p))
		rs, err := client.Do(rq)
		if err != nil {
			return nil, err
		}
		defer rs.Body.Close()
		got, err := io.ReadAll(rs.Body)
		if err == nil && rs.StatusCode != 200 {
			err = fmt.Errorf("%s: %s", rs.Status, got)
		}
		return got, err
	}
}

// lines sends over something that echoes.
func lines(c io.ReadWriter) func(p []byte) ([]byte, error) {
	return func(p []byte) ([]byte, error) {
		sent := make(chan error, 1)
		go func() {
			_, err := c.Write(p)
			sent <- err
		}()
		got := make([]byte, len(p))
		n, err := io.ReadFull(c, got)
		if werr := <-sent; err == nil {
			err = werr
		}
		return got[:n], err
	}
}

// echoStreams starts a TCP server that sends back what it gets.
func echoStreams(t *testing.T) string {
	t.Helper()
	return serveStreams(t, func(c net.Conn) { io.Copy(c, c) })
}

// echoDatagrams starts a UDP server that sends back what it gets.
func echoDatagrams(t *testing.T) string {
	t.Helper()
	c, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		p := make([]byte, 1<<16)
		for {
			n, from, err := c.ReadFrom(p)
			if err != nil {
				return
			}
			c.WriteTo(p[:n], from)
		}
	}()
	return c.LocalAddr().String()
}

// echoRequests starts an HTTP server that sends bodies back.
func echoRequests(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		w.Write(p)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestMixedLoadOverChanges holds that nothing is lost over changes of ports,
// certificates and servers while clients of HTTP/1.1, HTTP/2 and HTTP/3, WebSockets
// over each of them, TCP and UDP are served.
func TestMixedLoadOverChanges(t *testing.T) {
	ids := []*identity{newIdentity(t, "one.example"), newIdentity(t, "two.example")}
	trust := x509.NewCertPool()
	for _, id := range ids {
		trust.AppendCertsFromPEM([]byte(id.cert))
	}
	config := &tls.Config{RootCAs: trust, ServerName: "localhost"}
	plain := []string{free(t), free(t)}
	moving := []string{free(t), free(t)}
	secure, extra, tcp, udp := free(t), free(t), free(t), free(t)
	tcpMoving := []string{free(t), free(t)}
	servers := []string{echoRequests(t), echoRequests(t), echoRequests(t)}
	tcpServers := []string{echoStreams(t), echoStreams(t)}
	udpServers := []string{echoDatagrams(t), echoDatagrams(t)}
	socket := echoUpgrades(t)
	// Ports swap their addresses, move, come and go; of three servers another one
	// is missing each time; certificates are renewed.
	text := func(i int) string {
		extras := []string{
			"", fmt.Sprintf("\n  extra: {address: %q, protocol: http}", extra), fmt.Sprintf("\n  extra: {address: %q, protocol: https}", extra),
			fmt.Sprintf("\n  extra: {address: %q, protocol: http3}", extra),
		}
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  one: {address: %q, protocol: http, drain_timeout: %ds}
  two: {address: %q, protocol: http}
  moving: {address: %q, protocol: http}
  secure: {address: %q, protocol: https, limits: {header_size: %dKiB}}
  quic: {address: %q, protocol: http3}%s
certificates: {main: {cert_file: cert%d.pem, key_file: key%d.pem}}
proxies:
  all:
    routes:
      - {servers: [{url: %q}, {url: %q, weight: %d}]}
      - {path: /ws, servers: [{url: %q}]}
      - {path: /new%d, fixed_response: {status: 204}}
tcp_proxies:
  same: {address: %q, servers: [{address: %q}]}
  changing: {address: %q, servers: [{address: %q}]}
udp_proxies:
  same: {address: %q, servers: [{address: %q}], idle_timeout: %ds}
`, plain[i%2], 30+i, plain[1-i%2], moving[i/2%2], secure, 32+i, secure, extras[i%4], i%2, i%2,
			servers[i%3], servers[(i+1)%3], 1+i%5, socket, i,
			tcp, tcpServers[0], tcpMoving[i/3%2], tcpServers[i%2], udp, udpServers[0], 60+i)
	}
	g := prepare(t)
	for i, id := range ids {
		g.put(fmt.Sprintf("cert%d.pem", i), id.cert)
		g.put(fmt.Sprintf("key%d.pem", i), id.key)
	}
	g.start(text(0))

	m := &mixed{t: t, stop: make(chan struct{})}
	var change sync.RWMutex // held while a client dials what may move, and while it moves
	at := 0
	m.run("HTTP/1.1", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{}
		return posts(tr, "http://"+plain[0]+"/"), tr.CloseIdleConnections
	})
	m.run("HTTP/1.1 and TLS, each on a new connection", 1, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{TLSClientConfig: config.Clone(), DisableKeepAlives: true}
		return posts(tr, "https://"+secure+"/"), tr.CloseIdleConnections
	})
	m.run("HTTP/1.1 to a port that moves", 2, func() (func([]byte) ([]byte, error), func()) {
		return func(p []byte) ([]byte, error) {
			change.RLock()
			c, err := net.Dial("tcp", moving[at/2%2])
			change.RUnlock()
			if err != nil {
				return nil, err
			}
			tr := &http.Transport{DisableKeepAlives: true, Dial: func(string, string) (net.Conn, error) { return c, nil }}
			return posts(tr, "http://"+plain[0]+"/")(p)
		}, func() {}
	})
	m.run("HTTP/2", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http.Transport{TLSClientConfig: config.Clone(), ForceAttemptHTTP2: true}
		return posts(tr, "https://"+secure+"/"), tr.CloseIdleConnections
	})
	m.run("HTTP/3", 3, func() (func([]byte) ([]byte, error), func()) {
		tr := &http3.Transport{TLSClientConfig: config.Clone()}
		return posts(tr, "https://"+secure+"/"), func() { tr.Close() }
	})
	for name, open := range map[string]func(*testing.T, string, *tls.Config) io.ReadWriteCloser{"1.1": upgrade1, "2": upgrade2, "3": upgrade3} {
		address := map[string]string{"1.1": plain[1], "2": secure, "3": secure}[name]
		m.run("WebSocket over HTTP/"+name, 1, func() (func([]byte) ([]byte, error), func()) {
			c := open(t, address, config.Clone())
			return lines(c), func() { c.Close() }
		})
	}
	m.run("TCP", 2, func() (func([]byte) ([]byte, error), func()) {
		c := dial(t, "tcp", tcp)
		return lines(c), func() { c.Close() }
	})
	m.run("TCP to a proxy that moves", 2, func() (func([]byte) ([]byte, error), func()) {
		return func(p []byte) ([]byte, error) {
			change.RLock()
			c, err := net.Dial("tcp", tcpMoving[at/3%2])
			change.RUnlock()
			if err != nil {
				return nil, err
			}
			defer c.Close()
			c.SetDeadline(time.Now().Add(patience))
			return lines(c)(p)
		}, func() {}
	})
	m.run("UDP", 2, func() (func([]byte) ([]byte, error), func()) {
		c := dial(t, "udp", udp)
		return lines(c), func() { c.Close() }
	})
	for i := 1; i <= changes; i++ {
		m.progress()
		change.Lock()
		g.apply(text(i))
		at = i
		change.Unlock()
	}
	m.progress()
	close(m.stop)
	m.all.Wait()
	var lost int64
	for _, k := range m.kinds {
		t.Logf("%-44s %6d rounds, %10d bytes, %d lost", k.name, k.rounds.Load(), k.size.Load(), k.lost.Load())
		lost += k.lost.Load()
	}
	t.Logf("%d changes, %d lost", changes, lost)
}

// dial opens a connection whose every use has a deadline.
func dial(t *testing.T, network, address string) net.Conn {
	c, err := net.Dial(network, address)
	if err != nil {
		t.Error(err)
		return nil
	}
	return hurried{c}
}

// hurried is a connection that does not wait for ever.
type hurried struct{ net.Conn }

// Read reads within the test's patience.
func (c hurried) Read(p []byte) (int, error) {
	c.SetReadDeadline(time.Now().Add(patience))
	return c.Conn.Read(p)
}
