package interop

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"
)

// namedStream starts a server at an address that says its name, and then sends back what it
// gets; nil if the address is not free.
func namedStream(t *testing.T, address, name string) net.Listener {
	l, err := net.Listen("tcp4", address)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { l.Close() })
	go acceptAll(l, func(c net.Conn) {
		io.WriteString(c, name)
		io.Copy(c, c)
	})
	return l
}

// namedDatagramsAt starts a server at an address that answers with a name; nil if the address
// is not free.
func namedDatagramsAt(t *testing.T, address, name string) net.PacketConn {
	c, err := net.ListenPacket("udp4", address)
	if err != nil {
		return nil
	}
	t.Cleanup(func() { c.Close() })
	go func() {
		p := make([]byte, 64)
		for {
			_, from, err := c.ReadFrom(p)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				c.WriteTo([]byte(name), from)
			}
		}
	}()
	return c
}

// serverName is what the i-th server of a range says.
func serverName(i int) string { return fmt.Sprintf("server %03d", i) }

// rangeOfServers starts servers of TCP and UDP at n ports in a row, and returns the first.
func rangeOfServers(t *testing.T, n int) int {
	t.Helper()
	for range 100 {
		first, started := portOf(t, free(t)), 0
		for started < n {
			at := fmt.Sprintf("127.0.0.1:%d", first+started)
			if namedStream(t, at, serverName(started)) == nil || namedDatagramsAt(t, at, serverName(started)) == nil {
				break
			}
			started++
		}
		if started == n {
			return first
		}
	}
	t.Fatal("no ports in a row are free")
	return 0
}

// freeRange returns the first of n ports in a row that are free.
func freeRange(t *testing.T, n int) int {
	t.Helper()
search:
	for range 100 {
		first := portOf(t, free(t))
		for i := range n {
			l, err := net.Listen("tcp4", fmt.Sprintf("127.0.0.1:%d", first+i))
			if err != nil {
				continue search
			}
			l.Close()
		}
		return first
	}
	t.Fatal("no ports in a row are free")
	return 0
}

// TestPortRanges holds that each port of a range leads to its server, over a change of the
// range and an upgrade, with connections that stay open.
func TestPortRanges(t *testing.T) {
	const most = 300 // more sockets than one message of an upgrade can have
	servers, at := rangeOfServers(t, most), freeRange(t, most)
	config := func(n int) string {
		return fmt.Sprintf(`
version: 1
admin: {address: ""}
tcp_proxies:
  ftp: {address: "127.0.0.1:%[1]d-%[2]d", servers: [{address: "localhost:%[3]d-%[4]d"}]}
udp_proxies:
  voice: {address: "127.0.0.1:%[1]d-%[2]d", servers: [{address: "127.0.0.1:%[3]d-%[4]d"}]}
`, at, at+n-1, servers, servers+n-1)
	}
	r := startReplaced(t, prepare(t), config(4))
	dial := func(network string, i int) net.Conn {
		t.Helper()
		c, err := net.Dial(network, fmt.Sprintf("127.0.0.1:%d", at+i))
		if err != nil {
			t.Fatal(err)
		}
		c.SetDeadline(time.Now().Add(patience))
		if network == "udp" {
			c.Write([]byte("?"))
		}
		p := make([]byte, len(serverName(i)))
		if _, err := io.ReadFull(c, p); err != nil || string(p) != serverName(i) {
			t.Fatalf("%s port %d: %q, %v", network, i, p, err)
		}
		return c
	}
	all := func(n int) {
		t.Helper()
		for i := range n {
			dial("tcp", i).Close()
			dial("udp", i).Close()
		}
	}
	all(4)
	kept := dial("tcp", 3)
	defer kept.Close()

	r.put("headgate.yaml", config(most))
	eventually(t, "the range is larger", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", at+most-1))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	all(most)
	r.upgrade()
	all(most)
	if got, err := lines(kept)([]byte("still there")); err != nil || string(got) != "still there" {
		t.Errorf("the connection from before the change: %q, %v", got, err)
	}
	kept.Close()
	r.alone()

	out, err := r.command("status")
	if want := fmt.Sprintf("127.0.0.1:%d-%d", at, at+most-1); err != nil || strings.Count(out, want) != 4 || strings.Contains(out, fmt.Sprintf(":%d ", at+1)) {
		t.Errorf("the status shows %s as one port of each protocol, and as the address of each proxy; got %v and\n%s", want, err, out)
	}
	out, err = r.command("explain", "--config", r.file, fmt.Sprintf("udp://127.0.0.1:%d", at+7))
	if want := fmt.Sprintf("127.0.0.1:%d, weight", servers+7); err != nil || !strings.Contains(out, want) {
		t.Errorf("explain has no %q: %v\n%s", want, err, out)
	}

	r.put("headgate.yaml", config(2)) // and smaller
	eventually(t, "the range is smaller", func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", at+2))
		if err == nil {
			c.Close()
		}
		return err != nil
	})
	all(2)
}
