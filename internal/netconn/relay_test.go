package netconn_test

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

// relay joins two pairs and returns the far ends, and where its error comes.
func relay(t *testing.T, idle time.Duration) (r *netconn.Relay, client, server *net.TCPConn, end chan error) {
	t.Helper()
	return relayOver(t, pair, idle)
}

// relayOver is relay over pairs of another kind.
func relayOver(t *testing.T, pair func(testing.TB) (*netconn.Conn, *net.TCPConn), idle time.Duration) (r *netconn.Relay, client, server *net.TCPConn, end chan error) {
	t.Helper()
	near, far := pair(t)
	toServer, atServer := pair(t)
	r, end = join(near, toServer, far, atServer, idle)
	return r, far, atServer, end
}

// join joins two connections whose far ends are given, and returns where the error of
// the relay comes.
func join(near, toServer *netconn.Conn, far, atServer *net.TCPConn, idle time.Duration) (*netconn.Relay, chan error) {
	r := &netconn.Relay{Client: near, Server: toServer, Idle: idle, Up: &atomic.Uint64{}, Down: &atomic.Uint64{}}
	end := make(chan error, 1)
	go r.Start(func(err error) { end <- err })
	far.SetDeadline(time.Now().Add(time.Minute))
	atServer.SetDeadline(time.Now().Add(time.Minute))
	return r, end
}

func TestRelayCarriesBothWaysToTheEnd(t *testing.T) {
	r, client, server, end := relay(t, time.Minute)
	var all sync.WaitGroup
	var sums [4][]byte
	var sizes [2]int64
	for i, c := range []*net.TCPConn{client, server} {
		all.Go(func() {
			h := sha256.New()
			_, err := io.Copy(h, c)
			if err != nil {
				t.Error(err)
			}
			sums[i] = h.Sum(nil)
		})
		all.Go(func() {
			defer c.CloseWrite()
			h := sha256.New()
			n, err := send(io.MultiWriter(h, c), uint64(i))
			if err != nil {
				t.Error(err)
			}
			sums[3-i], sizes[i] = h.Sum(nil), n
		})
	}
	all.Wait()
	if err := <-end; err != nil {
		t.Error(err)
	}
	for i := range 2 {
		if !bytes.Equal(sums[i], sums[2+i]) {
			t.Errorf("side %d got other bytes than the other has sent", i)
		}
	}
	up, down := r.Moved()
	if up != sizes[0] || down != sizes[1] || r.Up.Load() != uint64(up) || r.Down.Load() != uint64(down) {
		t.Errorf("counted %d up and %d down, want %d and %d", up, down, sizes[0], sizes[1])
	}
}

// send writes pieces of many sizes and returns how many bytes they were.
func send(w io.Writer, seed uint64) (size int64, err error) {
	random := rand.New(rand.NewPCG(seed, 1))
	p := make([]byte, 100<<10)
	for i := range p {
		p[i] = byte(random.Uint32())
	}
	for range 400 {
		n := 1 + random.IntN(200)
		if random.IntN(2) == 0 {
			n = 1 + random.IntN(len(p))
		}
		m, err := w.Write(p[len(p)-n:])
		if size += int64(m); err != nil {
			return size, err
		}
	}
	return size, nil
}

func TestRelayKeepsAHalfOpenConnection(t *testing.T) {
	_, client, server, end := relay(t, time.Minute)
	io.WriteString(client, "question")
	client.CloseWrite()
	if b, err := io.ReadAll(server); string(b) != "question" || err != nil {
		t.Fatalf("the server got %q and %v", b, err)
	}
	for range 3 { // the server answers in its own time
		io.WriteString(server, "answer")
		b := make([]byte, 6)
		if _, err := io.ReadFull(client, b); err != nil {
			t.Fatal(err)
		}
	}
	server.Close()
	if _, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("the client got %v, want the end", err)
	}
	if err := <-end; err != nil {
		t.Error(err)
	}
}

func TestRelayPassesAResetOn(t *testing.T) {
	for _, byClient := range []bool{true, false} {
		_, client, server, end := relay(t, time.Minute)
		io.WriteString(client, "x")
		server.Read(make([]byte, 1))
		from, to := server, client
		if byClient {
			from, to = client, server
		}
		from.SetLinger(0)
		from.Close()
		if _, err := to.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reset by the client %v: the other side got %v, want a reset", byClient, err)
		}
		err := <-end
		var client1 *netconn.ClientError
		var server1 *netconn.ServerError
		if byClient && !errors.As(err, &client1) || !byClient && !errors.As(err, &server1) {
			t.Errorf("reset by the client %v: got %v", byClient, err)
		}
	}
}

func TestRelayEndsWhenNothingMoves(t *testing.T) {
	const idle = time.Second
	_, client, server, end := relay(t, idle)
	began := time.Now()
	for range 5 { // one direction is enough to keep both
		<-time.After(idle / 4)
		io.WriteString(client, "x")
		if _, err := server.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-end; !errors.Is(err, netconn.ErrTimeout) {
		t.Errorf("got %v, want %v", err, netconn.ErrTimeout)
	}
	if took := time.Since(began); took < 2*idle {
		t.Errorf("it ended after %v although something moved", took)
	}
}

func TestRelayIsCut(t *testing.T) {
	r, client, server, end := relay(t, time.Minute)
	io.WriteString(client, "x")
	server.Read(make([]byte, 1))
	// The server takes nothing, so the relay is stuck in a write.
	go io.Copy(client, zeros{})
	for r.Up.Load() < 1<<20 {
		<-time.After(time.Millisecond)
	}
	r.Cut()
	if err := <-end; !errors.Is(err, netconn.ErrCut) {
		t.Errorf("got %v, want %v", err, netconn.ErrCut)
	}
	isReset(t, "the server", server) // the client has heard of it when it sent
}

// isReset reads until a connection is reset.
func isReset(t *testing.T, whose string, c net.Conn) {
	t.Helper()
	if n, err := io.Copy(io.Discard, c); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("%s got %d bytes and then %v, want a reset", whose, n, err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// An end that comes right behind the last bytes is passed on, after any number of
// exchanges.
func TestRelayPassesOnAnEndBehindTheLastBytes(t *testing.T) {
	for rounds := range 8 {
		_, client, server, end := relay(t, time.Minute)
		p := make([]byte, 4)
		for range rounds {
			client.Write([]byte("ask"))
			if _, err := io.ReadFull(server, p[:3]); err != nil {
				t.Fatal(err)
			}
			server.Write([]byte("told"))
			if _, err := io.ReadFull(client, p); err != nil {
				t.Fatal(err)
			}
		}
		server.Write([]byte("last"))
		server.Close()
		if b, err := io.ReadAll(client); string(b) != "last" || err != nil {
			t.Fatalf("after %d rounds the client got %q, %v", rounds, b, err)
		}
		client.Close()
		if err := <-end; err != nil {
			t.Error(err)
		}
	}
}

// overTLS shakes hands over two ends, and returns ours and the client at the far one.
func overTLS(t *testing.T, near, far net.Conn) (*netconn.Conn, *tls.Conn) {
	t.Helper()
	server := httptest.NewTLSServer(nil) // for its certificate
	server.Close()
	secure := tls.Server(netconn.NewLazy(near), &tls.Config{Certificates: server.TLS.Certificates, SessionTicketsDisabled: true})
	client := tls.Client(far, &tls.Config{InsecureSkipVerify: true})
	shaken := make(chan error)
	go func() { shaken <- secure.Handshake() }()
	if err := client.Handshake(); err != nil {
		t.Fatal(err)
	}
	if err := <-shaken; err != nil {
		t.Fatal(err)
	}
	c := netconn.New(secure)
	c.SetReadWait(patience)
	c.SetWriteWait(patience)
	far.SetDeadline(time.Now().Add(patience))
	return c, client
}

// Our side of a TLS connection may end while the other direction is read.
func TestASideEndsWhileTheOtherIsRead(t *testing.T) {
	for range 20 {
		near, far := testhouse.Pair(t)
		c, client := overTLS(t, near, far)
		read := make(chan error)
		go func() {
			var buf netconn.Buffer
			err := c.Fill(&buf)
			if err == nil && string(buf.Bytes()) != "word" {
				err = fmt.Errorf("got %q", buf.Bytes())
			}
			read <- err
		}()
		go client.Write([]byte("word"))
		c.Write([]byte("the last words"))
		if err := c.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		if p, err := io.ReadAll(client); err != nil || string(p) != "the last words" {
			t.Fatalf("got %q, %v", p, err)
		}
	}
}
