package interop

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The line of slow clients: half of the time of a round trip, and how many datagrams of 100 are
// lost in each direction. The system here cannot delay or drop packets, so a relay does.
const (
	lineDelay = 100 * time.Millisecond
	lineLoss  = 3
)

// slowLine is a line between clients and a server that delays everything and loses datagrams.
type slowLine struct {
	t       *testing.T
	mu      sync.Mutex
	random  *rand.Rand // decides which datagrams are lost
	passed  atomic.Int64
	dropped atomic.Int64
}

// newSlowLine returns a line. The same seed loses the same datagrams of a sequence.
func newSlowLine(t *testing.T, seed uint64) *slowLine {
	return &slowLine{t: t, random: rand.New(rand.NewPCG(seed, seed))}
}

// later is something that arrives at a time.
type later struct {
	at time.Time
	p  []byte
}

// queue returns a channel whose elements are delivered when their time has come. The end of
// the channel is delivered as nil.
func queue(deliver func(p []byte)) chan<- later {
	c := make(chan later, 1<<14)
	go func() {
		for l := range c {
			<-time.After(time.Until(l.at))
			deliver(l.p)
		}
		deliver(nil)
	}()
	return c
}

// stream returns an address whose TCP connections go to a server.
func (s *slowLine) stream(to string) string {
	s.t.Helper()
	l := listenTCP(s.t)
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			go s.carry(client.(*net.TCPConn), to)
		}
	}()
	return l.Addr().String()
}

// carry carries a connection.
func (s *slowLine) carry(client *net.TCPConn, to string) {
	c, err := net.Dial("tcp", to)
	if err != nil {
		client.Close()
		return
	}
	server := c.(*net.TCPConn)
	var ends sync.WaitGroup
	for from, to := range map[*net.TCPConn]*net.TCPConn{client: server, server: client} {
		ends.Add(1)
		q := queue(func(p []byte) {
			if p != nil {
				to.Write(p) // the other direction finds an error
				return
			}
			to.CloseWrite()
			ends.Done()
		})
		go func() {
			defer close(q)
			for {
				p := make([]byte, 16<<10)
				n, err := from.Read(p)
				if n > 0 {
					q <- later{time.Now().Add(lineDelay), p[:n]}
				}
				if err != nil {
					return
				}
			}
		}()
	}
	ends.Wait()
	client.Close()
	server.Close()
}

// datagrams returns an address whose datagrams go to a server. Those of each client have a
// socket of their own.
func (s *slowLine) datagrams(to string) string {
	s.t.Helper()
	front, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		s.t.Fatal(err)
	}
	front.SetReadBuffer(4 << 20)
	clients := map[string]chan<- later{}
	var backs []*net.UDPConn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for p := make([]byte, 64<<10); ; {
			n, from, err := front.ReadFromUDP(p)
			if err != nil {
				return
			}
			q := clients[from.String()]
			if q == nil {
				back, err := net.Dial("udp4", to)
				if err != nil {
					return
				}
				backs = append(backs, back.(*net.UDPConn))
				q = queue(func(p []byte) { back.Write(p) })
				clients[from.String()] = q
				go s.answers(back.(*net.UDPConn), func(p []byte) { front.WriteToUDP(p, from) })
			}
			s.pass(q, p[:n])
		}
	}()
	s.t.Cleanup(func() {
		front.Close()
		<-ended
		for _, q := range clients {
			close(q)
		}
		for _, b := range backs {
			b.Close()
		}
	})
	return front.LocalAddr().String()
}

// answers carries what a server sends to a client.
func (s *slowLine) answers(from *net.UDPConn, deliver func(p []byte)) {
	from.SetReadBuffer(1 << 20)
	q := queue(func(p []byte) {
		if p != nil {
			deliver(p)
		}
	})
	defer close(q)
	for p := make([]byte, 64<<10); ; {
		n, err := from.Read(p)
		if err != nil {
			return
		}
		s.pass(q, p[:n])
	}
}

// pass has a datagram arrive later, or loses it.
func (s *slowLine) pass(q chan<- later, p []byte) {
	s.mu.Lock()
	lose := s.random.IntN(100) < lineLoss
	s.mu.Unlock()
	if lose {
		s.dropped.Add(1)
		return
	}
	s.passed.Add(1)
	q <- later{time.Now().Add(lineDelay), append([]byte(nil), p...)}
}

// TestUpgradesOverASlowLine holds that nothing is lost when the process is replaced and clients
// are 200 ms away on a line that loses packets: requests are on their way to a connection that
// the server closes, and handshakes of two datagrams are in the middle.
func TestUpgradesOverASlowLine(t *testing.T) {
	if os.Getenv(upgradesVariable) == "" {
		t.Skip("make upgrades-slow runs it: a machine that is busy as well loses handshakes by their time limit")
	}
	count := upgradesInARow(2)
	id := newIdentity(t, "one.example")
	plain, secure, tcp := free(t), free(t), free(t)
	calls, _ := grpcServer(t, "tcp4", "127.0.0.1:0", nil)
	g := prepare(t)
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	r := startReplaced(t, g, fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  plain: {address: %q, protocol: http}
  secure: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies:
  all:
    routes:
      - {servers: [{url: %q}]}
      - {path: /ws, servers: [{url: %q}]}
      - {path: /grpc.testing.TestService, servers: [{url: "h2c://%s/grpc.testing.TestService"}]}
tcp_proxies:
  stream: {address: %q, servers: [{address: %q}]}
`, plain, secure, secure, echoRequests(t), echoUpgrades(t), calls, tcp, echoStreams(t)))
	line := newSlowLine(t, 41)
	m := &upgradeLoad{mixed: &mixed{t: t, stop: make(chan struct{})}, config: trusting(id),
		plain: line.stream(plain), secure: line.stream(secure), packets: line.datagrams(secure), tcp: line.stream(tcp)}
	m.http()
	m.tunnels()
	m.extended()
	for range count {
		m.progress()
		took := r.upgrade()
		t.Logf("until serving %v", took)
		m.progress()
		m.over.Add(1)
		r.alone()
	}
	m.progress()
	lost := m.end()
	t.Logf("%d upgrades, %d lost; the line has passed %d datagrams and dropped %d", count, lost, line.passed.Load(), line.dropped.Load())
	if line.dropped.Load() == 0 {
		t.Error("the line has lost no datagram")
	}
}
