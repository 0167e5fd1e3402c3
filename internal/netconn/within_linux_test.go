package netconn_test

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"headgate/internal/netconn"
	"headgate/internal/testhouse"
)

// pieces is a connection that sends a few bytes at a time.
type pieces struct{ *net.TCPConn }

func (p pieces) Write(b []byte) (n int, err error) {
	for err == nil && n < len(b) {
		var sent int
		sent, err = p.TCPConn.Write(b[n:min(len(b), n+1+n%7)])
		n += sent
	}
	return n, err
}

// A record that comes in many pieces is served once it is whole, and so are several that
// come at once.
func TestServeTakesRecordsInPieces(t *testing.T) {
	near, far := testhouse.Pair(t)
	c, client := overTLS(t, near, pieces{far})
	served := make(chan error, 1)
	go func() {
		var b netconn.Buffer
		served <- c.Serve(&b, func() bool {
			c.Write(b.Bytes())
			b.Use(b.Len())
			return true
		})
	}()
	for round := range 50 {
		want := strings.Repeat("x", 1+round)
		for _, word := range []string{want, want} { // a record each
			if _, err := client.Write([]byte(word)); err != nil {
				t.Fatal(err)
			}
		}
		got := make([]byte, 2*len(want))
		if _, err := io.ReadFull(client, got); err != nil || string(got) != want+want {
			t.Fatalf("round %d: got %q, %v; want %q twice", round, got, err, want)
		}
	}
	client.CloseWrite()
	if err := <-served; err != io.EOF {
		t.Errorf("at the end: %v, want io.EOF", err)
	}
}

// The end that comes along with the first bytes is seen at once, with what TLS says at its
// end and without.
func TestEndThatCameWithTheFirstBytesUnderTLS(t *testing.T) {
	for name, end := range map[string]func(*tls.Conn, *net.TCPConn){
		"close_notify": func(client *tls.Conn, _ *net.TCPConn) { client.CloseWrite() },
		"FIN":          func(_ *tls.Conn, far *net.TCPConn) { far.CloseWrite() },
	} {
		t.Run(name, func(t *testing.T) {
			near, far := testhouse.Pair(t)
			c, client := overTLS(t, near, far)
			client.Write([]byte("last"))
			end(client, far)
			var b netconn.Buffer
			got, began := "", time.Now()
			err := c.Serve(&b, func() bool {
				got += string(b.Bytes())
				b.Use(b.Len())
				return true
			})
			if took := time.Since(began); err != io.EOF || got != "last" || took > time.Second {
				t.Errorf("got %q and %v after %v", got, err, took)
			}
		})
	}
}
