//go:build unix

package https

import (
	"bufio"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/testhouse"
)

// plainHouse is a house with one certificate, and its address.
func plainHouse(t *testing.T) (*house, string) {
	h, a := newHouse(t), newAuthority(t, "test authority")
	keep(t, h.dir, "main", a.host([]string{"a.example"}))
	address := testhouse.Address(t)
	h.start(secured(address, ""))
	return h, address
}

// raw connects without TLS.
func raw(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp4", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(3 * patience))
	return c
}

// hello returns the first bytes that a client sends.
func hello(t *testing.T) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	go func() {
		tls.Client(theirs, &tls.Config{ServerName: "a.example", InsecureSkipVerify: true}).Handshake()
		theirs.Close()
	}()
	b := make([]byte, 16<<10)
	n, err := ours.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return b[:n]
}

func TestPlainHTTPOnATLSPortIsToldSo(t *testing.T) {
	t.Parallel()
	_, address := plainHouse(t)
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"HEAD / HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"PROPFIND / HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\n\r\n",
		"POST /long HTTP/1.1\r\nHost: a.example\r\nContent-Length: 40000\r\n\r\n" + strings.Repeat("x", 40000),
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
	} {
		c := raw(t, address)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		c.(*net.TCPConn).CloseWrite()
		rs, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%.20q: %v", text, err)
			continue
		}
		b, err := io.ReadAll(rs.Body)
		if rs.StatusCode != 400 || err != nil || !strings.Contains(string(b), "https://") {
			t.Errorf("%.20q: got %d %q, %v; want 400 and a hint at https://", text, rs.StatusCode, b, err)
		}
	}
}

// What is no TLS ends the connection, at once or when the time for a handshake
// is over, and disturbs nobody.
func TestGarbageEndsItsConnection(t *testing.T) {
	t.Parallel()
	_, address := plainHouse(t)
	first := hello(t)
	for name, b := range map[string][]byte{
		"zeros":             make([]byte, 100),
		"ssh":               []byte("SSH-2.0-OpenSSH_9.2\r\n"),
		"lower case":        []byte("hello, world\r\n"),
		"a bad record":      append([]byte{22, 3, 1, 0xff, 0xff}, make([]byte, 2000)...),
		"an alert":          {21, 3, 3, 0, 2, 2, 80},
		"application data":  append([]byte{23, 3, 3, 0, 32}, make([]byte, 32)...),
		"hello, then zeros": append(append([]byte{}, first...), make([]byte, 64)...),
		"SSL 2":             {0x80, 0x2e, 1, 0, 2, 0, 21, 0, 0, 0, 16, 1, 0, 128},
	} {
		c := raw(t, address)
		if _, err := c.Write(b); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		io.Copy(io.Discard, c) // to the end, however it comes
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("%s: the connection ended after %v", name, took)
		}
	}
	dialed{address: address, name: "a.example"}.must(t).want(t, "a.example", "/", 200, "")
}

// Half a ClientHello, and one that comes byte by byte, get ten seconds. More of
// them than handshakes may compute at once hold up nobody.
func TestSlowHandshakesHoldUpNobody(t *testing.T) {
	t.Parallel()
	_, address := plainHouse(t)
	first := hello(t)
	var slow []net.Conn
	for n := range 400 {
		c := raw(t, address)
		part := first[:1+n%len(first)] // of some the whole: they never answer ours
		if n%2 == 0 {
			part = first
		}
		if _, err := c.Write(part); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	ended := make(chan time.Duration, 1)
	go func() { // one byte each 300 ms
		began := time.Now()
		c := slow[1]
		tick := time.NewTicker(300 * time.Millisecond)
		defer tick.Stop()
		for _, b := range first[2:] {
			if _, err := c.Write([]byte{b}); err != nil {
				break
			}
			<-tick.C
		}
		ended <- time.Since(began)
	}()
	began := time.Now()
	for range 20 {
		dialed{address: address, name: "a.example"}.must(t).want(t, "a.example", "/", 200, "")
	}
	took := time.Since(began)
	t.Logf("20 clients among 400 slow ones took %v", took)
	if took > 5*time.Second {
		t.Errorf("20 clients took %v", took)
	}
	if lived := <-ended; lived < 5*time.Second || lived > 15*time.Second {
		t.Errorf("a client that sends a byte now and then lived %v, want ten seconds", lived)
	}
	for _, c := range slow {
		if _, err := io.Copy(io.Discard, c); err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatalf("a slow client was not let go: %v", err)
		}
	}
}

// Ten thousand clients that say nothing, or as many as there are descriptors for,
// cost others nothing.
func TestSilentClients(t *testing.T) {
	t.Parallel()
	_, address := plainHouse(t)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	// Both ends are ours, and a port takes half of what there is.
	n := min(10000, max((int(limit.Cur)-2000)/2, 50))
	before := heap()
	for range n {
		raw(t, address)
	}
	began := time.Now()
	dialed{address: address, name: "a.example"}.must(t).want(t, "a.example", "/", 200, "")
	dialed{address: address, name: "a.example", proto: "h2"}.must(t).want(t, "a.example", "/", 200, "")
	t.Logf("%d silent clients: two others served in %v; %d bytes of heap and stack a connection, both ends", n, time.Since(began), (heap()-before)/n)
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("served after %v", took)
	}
}

// heap returns the bytes in use.
func heap() int {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}

// While strangers make as many handshakes as they can, those who are connected
// are served, and new ones come in.
func TestHandshakeFlood(t *testing.T) {
	t.Parallel()
	_, address := plainHouse(t)
	first := hello(t)
	done := make(chan struct{})
	var made atomic.Int64
	var flood sync.WaitGroup
	for range 64 {
		flood.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				// Our side of the handshake costs nothing: the first bytes are
				// always the same, and the answer is thrown away.
				c, err := net.Dial("tcp4", address)
				if err != nil {
					continue
				}
				c.Write(first)
				if n, _ := c.Read(make([]byte, 1)); n > 0 {
					made.Add(1)
				}
				c.(*net.TCPConn).SetLinger(0)
				c.Close()
			}
		})
	}
	c := dialed{address: address, name: "a.example"}.must(t)
	var worst time.Duration
	began := time.Now()
	requests := 0
	for time.Since(began) < time.Second {
		at := time.Now()
		c.want(t, "a.example", "/", 200, "")
		worst = max(worst, time.Since(at))
		requests++
	}
	rate := float64(made.Load()) / time.Since(began).Seconds()
	at := time.Now()
	dialed{address: address, name: "a.example"}.must(t).want(t, "a.example", "/", 200, "")
	in := time.Since(at)
	close(done)
	flood.Wait()
	t.Logf("under %.0f handshakes a second: %d requests on one connection, the longest took %v; a new client was served in %v", rate, requests, worst, in)
	if made.Load() == 0 || worst > 2*time.Second || in > 5*time.Second {
		t.Error("those who were connected had to wait")
	}
}
