//go:build !race && (amd64 || arm64)

package netconn_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/certs/certstest"
	"headgate/internal/netconn"
)

// rawOf returns what system calls on a socket go through.
func rawOf(t *testing.T, c syscall.Conn) syscall.RawConn {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A full socket is one of TCP whose client reads nothing: it answers a write of a
// datagram as one of UDP would.
func TestADatagramWaitsForRoom(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	full, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	raw := rawOf(t, full.(*net.TCPConn))
	for piece := make([]byte, 1<<20); ; {
		var werr error
		if err := raw.Control(func(fd uintptr) { _, werr = syscall.Write(int(fd), piece) }); err != nil {
			t.Fatal(err)
		}
		if werr == syscall.EAGAIN {
			break
		}
		if werr != nil {
			t.Fatal(werr)
		}
	}
	d, _, peer := datagrams(t, "udp4", "127.0.0.1:0", "127.0.0.1")
	d.Through(func() syscall.RawConn { return raw })
	if n, _, err := d.WriteMsgUDP([]byte("word"), nil, peer.LocalAddr().(*net.UDPAddr)); n != 4 || err != nil {
		t.Fatalf("got %d, %v", n, err)
	}
	var buf [8]byte
	if n, err := peer.Read(buf[:]); err != nil || string(buf[:n]) != "word" {
		t.Errorf("got %q, %v", buf[:n], err)
	}
}

func TestAReadThatFailsIsRepeated(t *testing.T) {
	file, err := os.CreateTemp(t.TempDir(), "") // no socket: every read of it fails
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	d, c, heard := failing(t)
	bad, left := rawOf(t, file), 3
	d.Through(func() syscall.RawConn {
		if left--; left >= 0 {
			return bad
		}
		return nil
	})
	if _, err := c.WriteTo([]byte("word"), c.LocalAddr()); err != nil {
		t.Fatal(err)
	}
	c.SetReadDeadline(time.Now().Add(time.Minute))
	ms := messages(8)
	if n, err := d.ReadBatch(ms, 0); n != 1 || err != nil || string(ms[0].Buffers[0][:ms[0].N]) != "word" {
		t.Errorf("got %d, %v", n, err)
	}
	if all := heard(); len(all) != 3 || all[0] != netconn.ReceiveDatagram {
		t.Errorf("heard of %v, want three reads", all)
	}
}

// A connection goes on after the system has refused for a while to send.
func TestAConnectionOutlivesRefusedDatagrams(t *testing.T) {
	d, c, heard := failing(t)
	file, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	bad := rawOf(t, file)
	var refuse atomic.Int64
	d.Through(func() syscall.RawConn {
		if refuse.Add(-1) >= 0 {
			return bad
		}
		return nil
	})
	transport := &quic.Transport{Conn: d}
	cfg := &tls.Config{Certificates: []tls.Certificate{certstest.Sign(t, &x509.Certificate{DNSNames: []string{"h"}}, nil)}, NextProtos: []string{"echo"}, MinVersion: tls.VersionTLS13}
	l, err := transport.Listen(cfg, &quic.Config{HandshakeIdleTimeout: time.Minute, MaxIdleTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		l.Close()
		transport.Close()
		c.Close()
	}()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	go func() {
		qc, err := l.Accept(ctx)
		if err != nil {
			return
		}
		for {
			s, err := qc.AcceptStream(ctx)
			if err != nil {
				return
			}
			word, _ := io.ReadAll(s)
			if string(word) == "refused" {
				refuse.Store(3) // system calls, reads among them
			}
			s.Write(word)
			s.Close()
		}
	}()
	qc, err := quic.DialAddr(ctx, c.LocalAddr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"echo"}}, &quic.Config{HandshakeIdleTimeout: time.Minute, MaxIdleTimeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer qc.CloseWithError(0, "")
	for _, word := range []string{"before", "refused", "after"} {
		s, err := qc.OpenStreamSync(ctx)
		if err != nil {
			t.Fatalf("%s: %v", word, err)
		}
		io.WriteString(s, word)
		s.Close()
		if got, err := io.ReadAll(s); err != nil || string(got) != word {
			t.Errorf("%s: got %q, %v", word, got, err)
		}
	}
	if len(heard()) == 0 {
		t.Error("nothing was refused")
	}
}
