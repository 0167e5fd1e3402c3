package admin

import (
	"io"
	"net"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// TestOneAddressHasAShareOfTheConnections holds many connections open from one address:
// another is served, and so is the first when it lets go.
func TestOneAddressHasAShareOfTheConnections(t *testing.T) {
	inner, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := share(inner, 3)
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				c.Write([]byte("x"))
				io.Copy(io.Discard, c)
				c.Close()
				c.Close() // counts once
			}()
		}
	}()
	served := func(from string) (net.Conn, bool) {
		t.Helper()
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		c, err := d.Dial("tcp4", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err = io.ReadFull(c, make([]byte, 1))
		return c, err == nil
	}
	var held []net.Conn
	for i := range 3 {
		c, ok := served("127.0.0.1")
		if held = append(held, c); !ok {
			t.Fatalf("connection %d is not served", i)
		}
	}
	for range 5 {
		if _, ok := served("127.0.0.1"); ok {
			t.Error("more than its share is served")
		}
	}
	if _, ok := served("127.0.0.2"); !ok {
		t.Error("another address is not served")
	}
	held[0].Close()
	testhouse.Eventually(t, "the first is served again", func() bool { _, ok := served("127.0.0.1"); return ok })
	l.mu.Lock()
	n := len(l.has)
	l.mu.Unlock()
	if n > 2 {
		t.Errorf("%d addresses are remembered", n)
	}
}
