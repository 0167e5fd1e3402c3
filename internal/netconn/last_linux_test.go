//go:build linux && !race && (amd64 || arm64)

package netconn_test

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/netconn"
)

// segments returns how many segments of TCP have come to the far end.
func segments(t *testing.T, far *net.TCPConn) (n uint32) {
	t.Helper()
	raw, err := far.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Control(func(fd uintptr) {
		var info *unix.TCPInfo
		if info, err = unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO); err == nil {
			n = info.Segs_in
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The last bytes and the end of a stream go in one segment, under TLS together with what
// TLS says at its end. An acknowledgement that the kernel had put off may come in between
// on a busy machine: then the next pair of sockets shows it.
func TestTheEndGoesWithTheLastBytes(t *testing.T) {
	const pairs = 20
	inOne := func(t *testing.T, c *netconn.Conn, far *net.TCPConn, from io.Reader) bool {
		t.Helper()
		before := segments(t, far)
		c.Write([]byte("the last words"))
		if err := c.Finish(); err != nil {
			t.Fatal(err)
		}
		if p, err := io.ReadAll(from); err != nil || string(p) != "the last words" {
			t.Fatalf("got %q, %v", p, err)
		}
		return segments(t, far)-before == 1
	}
	t.Run("plain", func(t *testing.T) {
		for range pairs {
			c, far := socketPair(t)
			if inOne(t, c, far, far) {
				return
			}
		}
		t.Error("it always took more than one segment")
	})
	t.Run("TLS", func(t *testing.T) {
		for range pairs {
			near, far := sockets(t)
			c, client := overTLS(t, near, far)
			if inOne(t, c, far, client) {
				return
			}
		}
		t.Error("it always took more than one segment")
	})
	t.Run("much", func(t *testing.T) {
		c, far := socketPair(t)
		const size = 8 << 20 // more than there is room for
		end := make(chan error)
		go func() {
			_, err := c.Write(make([]byte, size))
			if err == nil {
				c.Write([]byte("and a little"))
				err = c.CloseWrite()
			}
			end <- err
		}()
		n, err := io.Copy(io.Discard, far)
		if werr := <-end; err != nil || werr != nil || n != size+12 {
			t.Errorf("%d bytes, %v, %v", n, err, werr)
		}
	})
}

// What is carried costs no memory, and its connections stay with the watcher.
func TestACarriedMessageAllocatesNothing(t *testing.T) {
	_, client, server, end := relay(t, time.Minute)
	p := make([]byte, 100)
	exchange := func() {
		client.Write(p)
		if _, err := io.ReadFull(server, p); err != nil {
			t.Fatal(err)
		}
		server.Write(p)
		if _, err := io.ReadFull(client, p); err != nil {
			t.Fatal(err)
		}
	}
	awaitParked(t, 2)
	exchange()
	if n := testing.AllocsPerRun(200, exchange); n >= 1 {
		t.Errorf("%.1f allocations for an exchange", n)
	}
	if n, _ := netconn.Parked(); n != 2 {
		t.Errorf("%d directions are carried after small messages, want 2", n)
	}
	client.Close()
	server.Close()
	if err := <-end; err != nil {
		t.Error(err)
	}
	awaitParked(t, 0)
}
