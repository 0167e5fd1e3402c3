//go:build !race && (amd64 || arm64)

package netconn_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"headgate/internal/netconn"
)

// datagrams opens a socket, and one that sends to it.
func datagrams(t *testing.T, network, address, from string) (*netconn.Datagrams, *net.UDPConn, *net.UDPConn) {
	t.Helper()
	at, _ := net.ResolveUDPAddr(network, address)
	c, err := net.ListenUDP(network, at)
	if err != nil {
		t.Skipf("%s %s: %v", network, address, err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(time.Minute))
	peer, err := net.DialUDP("udp", nil, &net.UDPAddr{IP: net.ParseIP(from), Port: c.LocalAddr().(*net.UDPAddr).Port})
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { peer.Close() })
	peer.SetReadDeadline(time.Now().Add(time.Minute))
	d, err := netconn.NewDatagrams(c, func(op string, err error) { t.Errorf("%s: %v", op, err) })
	if err != nil {
		t.Fatal(err)
	}
	return d, c, peer
}

func TestDatagramsGoBothWays(t *testing.T) {
	for _, tt := range []struct{ name, network, address, from string }{
		{"IPv4", "udp4", "127.0.0.1:0", "127.0.0.1"},
		{"IPv6", "udp6", "[::1]:0", "::1"},
		{"IPv4 on a socket of both", "udp", "[::]:0", "127.0.0.1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, _, peer := datagrams(t, tt.network, tt.address, tt.from)
			want := map[string]bool{"one": true, "two": true, "three": true}
			for text := range want {
				if _, err := peer.Write([]byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			var from *net.UDPAddr
			for ms := messages(8); len(want) > 0; {
				n, err := d.ReadBatch(ms, 0)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range ms[:n] {
					if text := string(m.Buffers[0][:m.N]); !want[text] {
						t.Errorf("got %q", text)
					} else {
						delete(want, text)
					}
					if from == nil {
						from = m.Addr.(*net.UDPAddr)
					}
					if m.Addr != net.Addr(from) {
						t.Errorf("an address that was seen is made anew: %v", m.Addr)
					}
				}
			}
			if got, want := from.AddrPort(), peer.LocalAddr().(*net.UDPAddr).AddrPort(); got.Port() != want.Port() || got.Addr().Unmap() != want.Addr().Unmap() {
				t.Errorf("got an address of %v, want %v", got, want)
			}
			for _, text := range []string{"answer", ""} { // the second by the way of net
				if n, _, err := d.WriteMsgUDP([]byte(text), nil, from); err != nil || n != len(text) {
					t.Fatalf("write: %d, %v", n, err)
				}
				var buf [64]byte
				if n, err := peer.Read(buf[:]); err != nil || string(buf[:n]) != text {
					t.Errorf("got %q, %v, want %q", buf[:n], err, text)
				}
			}
		})
	}
}

func TestDatagramsTellOfErrors(t *testing.T) {
	d, c, _ := datagrams(t, "udp4", "127.0.0.1:0", "127.0.0.1")
	if _, _, err := d.WriteMsgUDP([]byte("x"), nil, &net.UDPAddr{IP: net.IPv6loopback, Port: 1}); err == nil {
		t.Error("an address of IPv6 was reached by IPv4")
	}
	var system *net.OpError
	if _, _, err := d.WriteMsgUDP(make([]byte, 70_000), nil, c.LocalAddr().(*net.UDPAddr)); !errors.As(err, &system) {
		t.Errorf("a datagram that is too large: got %v", err)
	}
	c.SetReadDeadline(time.Unix(1, 0))
	var late net.Error
	if _, err := d.ReadBatch(messages(1), 0); !errors.As(err, &late) || !late.Timeout() {
		t.Errorf("after the deadline: got %v", err)
	}
	c.Close()
	if _, err := d.ReadBatch(messages(1), 0); !errors.Is(err, net.ErrClosed) {
		t.Errorf("read after close: got %v", err)
	}
	if _, _, err := d.WriteMsgUDP([]byte("x"), nil, c.LocalAddr().(*net.UDPAddr)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("write after close: got %v", err)
	}
}

func TestDatagramsAllocateNothing(t *testing.T) {
	d, c, _ := datagrams(t, "udp4", "127.0.0.1:0", "127.0.0.1")
	ms, text, to := messages(8), []byte("x"), c.LocalAddr().(*net.UDPAddr)
	if n := testing.AllocsPerRun(100, func() {
		if _, _, err := d.WriteMsgUDP(text, nil, to); err != nil {
			t.Fatal(err)
		}
		if _, err := d.ReadBatch(ms, 0); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}
