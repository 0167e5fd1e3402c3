package netconn_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"golang.org/x/net/ipv4"

	"headgate/internal/netconn"
)

func messages(n int) []ipv4.Message {
	ms := make([]ipv4.Message, n)
	for i := range ms {
		ms[i].Buffers, ms[i].OOB = [][]byte{make([]byte, 64)}, make([]byte, 64)
	}
	return ms
}

// failing opens a socket whose faults are heard of: heard returns those since the last
// time.
func failing(t *testing.T) (d *netconn.Datagrams, c *net.UDPConn, heard func() []string) {
	t.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	ops := make(chan string, 1000)
	d, err = netconn.NewDatagrams(c, func(op string, err error) {
		t.Logf("%s: %v", op, err)
		ops <- op
	})
	if err != nil {
		t.Fatal(err)
	}
	return d, c, func() (all []string) {
		for {
			select {
			case op := <-ops:
				all = append(all, op)
			default:
				return all
			}
		}
	}
}

// A datagram that the system refuses is lost, and nothing else happens: quic-go would end
// a connection for an error.
func TestARefusedDatagramIsLost(t *testing.T) {
	d, c, heard := failing(t)
	for range 2 {
		// No datagram can go to this port (RFC 768 has none of this number).
		if n, _, err := d.WriteMsgUDP([]byte("word"), nil, &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}); n != 4 || err != nil {
			t.Errorf("got %d, %v, want it to be taken", n, err)
		}
	}
	if all := heard(); len(all) != 2 || all[0] != netconn.SendDatagram {
		t.Errorf("heard of %v, want two datagrams", all)
	}
	if _, _, err := d.WriteMsgUDP(make([]byte, 70_000), nil, c.LocalAddr().(*net.UDPAddr)); err == nil {
		t.Error("one that is too large was taken: quic-go looks for the size that is not")
	}
	c.Close()
	if _, _, err := d.WriteMsgUDP([]byte("word"), nil, c.LocalAddr().(*net.UDPAddr)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("on a closed socket: got %v", err)
	}
	if all := heard(); len(all) != 0 {
		t.Errorf("heard of %v, which quic-go was told of", all)
	}
}

// A peer that is gone, which the system hears of by ICMP, is no error for the others.
func TestAClosedPortIsNoError(t *testing.T) {
	d, c, heard := failing(t)
	gone, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	gone.Close()
	for range 3 {
		if _, _, err := d.WriteMsgUDP([]byte("word"), nil, gone.LocalAddr().(*net.UDPAddr)); err != nil {
			t.Error(err)
		}
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
	if _, _, err := d.WriteMsgUDP([]byte("word"), nil, c.LocalAddr().(*net.UDPAddr)); err != nil {
		t.Error(err)
	}
	ms := messages(1)
	if n, err := d.ReadBatch(ms, 0); n != 1 || err != nil || string(ms[0].Buffers[0][:ms[0].N]) != "word" {
		t.Errorf("got %d, %v", n, err)
	}
	if all := heard(); len(all) != 0 {
		t.Errorf("heard of %v", all)
	}
}
