package listen

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/certs/certstest"
	"headgate/internal/netconn"
)

// quicEcho is a connection that sends each stream back.
type quicEcho struct{ *quic.Conn }

// Serve answers streams until the connection ends.
func (e *quicEcho) Serve() (park func(resume func()) bool) {
	for {
		s, err := e.AcceptStream(context.Background())
		if err != nil {
			return nil
		}
		io.Copy(s, s)
		s.Close()
	}
}

func (e *quicEcho) Drain()       {}
func (e *quicEcho) Close() error { return e.CloseWithError(0, "") }

// serveQUIC serves echoes until the test ends.
func serveQUIC(t *testing.T, settings QUICSettings, log *slog.Logger) *QUIC {
	t.Helper()
	cfg := &tls.Config{Certificates: []tls.Certificate{certstest.Sign(t, &x509.Certificate{DNSNames: []string{"h"}}, nil)}, NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13}
	settings.TLS = func() (*tls.Config, error) { return cfg, nil }
	settings.Config = func() *quic.Config { return &quic.Config{HandshakeIdleTimeout: patience, MaxIdleTimeout: patience} }
	settings.Full, settings.Failed = func() {}, func() {}
	q, err := OpenQUIC(anyPort, nil, nil, settings, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(q.Close)
	if err := q.Serve(func(qc *quic.Conn) Conn { return &quicEcho{qc} }); err != nil {
		t.Fatal(err)
	}
	return q
}

// recorder is a client's socket that keeps the first datagram that came.
type recorder struct {
	net.PacketConn
	once  sync.Once
	first []byte
}

func (r *recorder) ReadFrom(p []byte) (int, net.Addr, error) {
	n, from, err := r.PacketConn.ReadFrom(p)
	if n > 0 {
		r.once.Do(func() { r.first = append(r.first, p[:n]...) })
	}
	return n, from, err
}

// dialQUIC returns a client that opens connections through one socket.
func dialQUIC(t *testing.T, q *QUIC, wrap func(net.PacketConn) net.PacketConn) func(context.Context) (*quic.Conn, error) {
	t.Helper()
	pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { pc.Close() })
	transport := &quic.Transport{Conn: wrap(pc), ConnectionIDLength: 8}
	t.Cleanup(func() { transport.Close() })
	return func(ctx context.Context) (*quic.Conn, error) {
		return transport.Dial(ctx, q.udp.LocalAddr(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}},
			&quic.Config{HandshakeIdleTimeout: patience, MaxIdleTimeout: patience})
	}
}

// echoWord sends a word over a stream of its own, and wants it back.
func echoWord(ctx context.Context, qc *quic.Conn, word string) error {
	s, err := qc.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(s, word); err != nil {
		return err
	}
	s.Close()
	got, err := io.ReadAll(s)
	if err == nil && string(got) != word {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// The IDs of two connections of a busy port must never be the same by chance: what comes
// for the one would go to the other, and its client hears nothing any more.
func TestTheIDsOfConnectionsAreLong(t *testing.T) {
	q := serveQUIC(t, QUICSettings{}, slog.New(slog.DiscardHandler))
	var r *recorder
	dial := dialQUIC(t, q, func(pc net.PacketConn) net.PacketConn { r = &recorder{PacketConn: pc}; return r })
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	qc, err := dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer qc.CloseWithError(0, "")
	// A long header: flags, four bytes of version, and both IDs behind their lengths
	// (RFC 9000, section 17.2).
	b := r.first
	if len(b) < 6 || b[0]&0x80 == 0 || len(b) <= 6+int(b[5]) {
		t.Fatalf("the first datagram has no long header: %x", b[:min(len(b), 32)])
	}
	if got := int(b[6+int(b[5])]); got < 8 {
		t.Errorf("the ID of a connection has %d bytes, want 8 or more", got)
	}
}

// refused reports whether a connection was refused.
func refused(err error) bool {
	transport, ok := errors.AsType[*quic.TransportError](err)
	return ok && transport.ErrorCode == quic.ConnectionRefused
}

func TestManyConnectionsOfQUICAtOnce(t *testing.T) {
	q := serveQUIC(t, QUICSettings{}, slog.New(slog.DiscardHandler))
	dial := dialQUIC(t, q, func(pc net.PacketConn) net.PacketConn { return pc })
	ctx, stop := context.WithTimeout(context.Background(), patience)
	defer stop()
	const clients = 200
	open, failures := make(chan *quic.Conn, clients), make(chan error, clients)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			qc, err := dial(ctx)
			for refused(err) { // quic-go does so where the machine is busy
				qc, err = dial(ctx)
			}
			if err == nil {
				open <- qc
				err = echoWord(ctx, qc, "word")
			}
			if err != nil {
				failures <- err
			}
		})
	}
	wg.Wait()
	close(open)
	close(failures)
	few := 0 // a client hears of it after its own side of the handshake, too
	for err := range failures {
		if !refused(err) {
			t.Error(err)
		} else if few++; few == clients/4 {
			t.Errorf("%d clients or more of %d were refused", few, clients)
		}
	}
	for qc := range open {
		qc.CloseWithError(0, "")
	}
}

func TestLostDatagramsAreCountedAndToldOnce(t *testing.T) {
	var log strings.Builder
	counted := map[string]int{}
	q := serveQUIC(t, QUICSettings{Lost: func(op string) { counted[op]++ }}, slog.New(slog.NewTextHandler(&log, nil)))
	for range 3 {
		q.failed(netconn.SendDatagram, syscall.ENOBUFS)
	}
	q.failed(netconn.ReceiveDatagram, syscall.ENOMEM)
	if counted["send"] != 3 || counted["receive"] != 1 {
		t.Errorf("counted %v", counted)
	}
	if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), "operation=send") || !strings.Contains(log.String(), syscall.ENOBUFS.Error()) {
		t.Errorf("the log has %d lines, want one of the first error:\n%s", lines, log.String())
	}
	q.said.Last.Add(-int64(sayEvery + time.Second))
	q.failed(netconn.ReceiveDatagram, syscall.ENOMEM)
	if !strings.Contains(log.String(), "operation=receive") {
		t.Errorf("a minute later nothing is told:\n%s", log.String())
	}
}

// TestTokenOfAnotherProcess checks that an address which a client has proven to a process is
// proven to the one that replaces it, which has the same keys: no Retry packet follows.
func TestTokenOfAnotherProcess(t *testing.T) {
	store := quic.NewLRUTokenStore(1, 4)
	config := &quic.Config{HandshakeIdleTimeout: patience, MaxIdleTimeout: patience, TokenStore: store}
	retried := func(keys *QUICKeys) bool {
		t.Helper()
		cfg := &tls.Config{Certificates: []tls.Certificate{certstest.Sign(t, &x509.Certificate{DNSNames: []string{"h"}}, nil)}, NextProtos: []string{"h3"}, MinVersion: tls.VersionTLS13}
		q, err := OpenQUIC(anyPort, nil, nil, QUICSettings{Keys: keys, Full: func() {}, Failed: func() {},
			TLS:    func() (*tls.Config, error) { return cfg, nil },
			Config: func() *quic.Config { return &quic.Config{HandshakeIdleTimeout: patience, MaxIdleTimeout: patience} },
		}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		q.transport.VerifySourceAddress = func(net.Addr) bool { return true }
		if err := q.Serve(func(qc *quic.Conn) Conn { return &quicEcho{qc} }); err != nil {
			t.Fatal(err)
		}
		pc, err := net.ListenPacket("udp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer pc.Close()
		r := &recorder{PacketConn: pc}
		transport := &quic.Transport{Conn: r}
		defer transport.Close()
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		qc, err := transport.Dial(ctx, q.udp.LocalAddr(), &tls.Config{InsecureSkipVerify: true, ServerName: "h", NextProtos: []string{"h3"}}, config)
		if err != nil {
			t.Fatal(err)
		}
		defer qc.CloseWithError(0, "")
		if err := echoWord(ctx, qc, "word"); err != nil { // the token comes after the handshake
			t.Fatal(err)
		}
		return r.first[0]>>4 == 0xf // a Retry packet (RFC 9000, section 17.2.5)
	}
	old := NewQUICKeys(1)
	if !retried(old) {
		t.Fatal("the address of a new client is not verified")
	}
	next := NewQUICKeys(2)
	next.Reset, next.Token = old.Reset, old.Token
	if retried(next) {
		t.Error("the next process does not accept the token")
	}
	if !retried(NewQUICKeys(3)) {
		t.Error("a process with other keys accepts the token")
	}
}
