//go:build linux

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/proto/qpack"
)

// How many connections of HTTP/3 ask at once, and on how many streams each.
const (
	quicConnections = 8
	quicStreams     = 16
)

// noErrorH3 is H3_NO_ERROR.
const noErrorH3 = 0x100

// fixedPath is where peers that can answer the hundred bytes by themselves do.
const fixedPath = "/fixed"

// overQUIC is a plain setup with HTTP/3 beside TLS.
func overQUIC() []setup { return []setup{{tls: true, quic: true}} }

// speaksQUIC reports the peers that are measured over HTTP/3: quic-go's own server
// carries net/http, nginx and HAProxy may be built without.
func speaksQUIC(p peer) bool { return p.quic }

// measureH3 asks for what the peer answers by itself.
func measureH3(b *bench, all []*running) (sample, error) { return b.h3(all[0], fixedPath) }

// measureH3Proxy asks for what the upstream answers.
func measureH3Proxy(b *bench, all []*running) (sample, error) { return b.h3(all[0], "/") }

// h3 returns the CPU time of the peer for each request over HTTP/3.
func (b *bench) h3(r *running, path string) (sample, error) {
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	conns, err := b.dialAllQUIC(ctx, r)
	if err != nil {
		return sample{}, err
	}
	request := h3Request(r.setup.host(0), path)
	if err := askH3(ctx, conns[0], request); err != nil {
		return sample{}, err
	}
	v, err := r.cpuPer(time.Microsecond, func() (int, error) {
		return b.repeat(quicConnections*quicStreams, func(i int) error {
			return askH3(ctx, conns[i%quicConnections], request)
		})
	})
	return sample{value: v}, err
}

// dialAllQUIC opens the connections that share the load. They end with ctx.
func (b *bench) dialAllQUIC(ctx context.Context, r *running) ([]*quic.Conn, error) {
	conns := make([]*quic.Conn, quicConnections)
	for i := range conns {
		var err error
		if conns[i], err = dialQUIC(ctx, r); err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conns[i].CloseWithError(noErrorH3, "") })
	}
	return conns, nil
}

// dialQUIC connects and sends SETTINGS.
func dialQUIC(ctx context.Context, r *running) (*quic.Conn, error) {
	cfg := r.setup.certificate.client("h3", nil)
	cfg.MinVersion = tls.VersionTLS13
	if host, _, err := net.SplitHostPort(r.setup.address); err == nil && cfg.ServerName == "" {
		cfg.ServerName = host
	}
	qc, err := quic.DialAddr(ctx, r.setup.address, cfg, &quic.Config{MaxIdleTimeout: time.Hour, MaxIncomingUniStreams: 16})
	if err != nil {
		return nil, fmt.Errorf("h3: %w", err)
	}
	control, err := qc.OpenUniStream()
	if err == nil {
		_, err = control.Write([]byte{0, 4, 0})
	}
	return qc, err
}

// h3Request returns the bytes of a request stream.
func h3Request(host, path string) []byte {
	b := qpack.AppendPrefix(nil)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", host}, {":path", path}} {
		if i, ok := qpack.IndexField(f[0], f[1]); ok {
			b = qpack.AppendIndexed(b, i)
			continue
		}
		i, _ := qpack.Index(f[0])
		b = qpack.AppendNamed(b, i, f[1], false)
	}
	return append([]byte{1, byte(len(b))}, b...) // a HEADERS frame of less than 64 bytes
}

// beginH3 sends a request on a stream of its own.
func beginH3(ctx context.Context, qc *quic.Conn, request []byte) (*quic.Stream, error) {
	s, err := qc.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.Write(request); err != nil {
		return nil, err
	}
	return s, s.Close()
}

// askH3 asks once, on a stream of its own, and wants the plain answer.
func askH3(ctx context.Context, qc *quic.Conn, request []byte) error {
	s, err := beginH3(ctx, qc, request)
	if err != nil {
		return err
	}
	var buf [1024]byte
	n := 0
	for err == nil && n < len(buf) {
		var m int
		m, err = s.Read(buf[n:])
		n += m
	}
	if err != io.EOF || !bytes.HasSuffix(buf[:n], []byte(hundredBytes)) {
		return fmt.Errorf("h3: got %q, %w", buf[:n], err)
	}
	return nil
}

// measureH3Downloads downloads the large body on one connection, over and over.
func measureH3Downloads(b *bench, all []*running) (sample, error) {
	r := all[0]
	qc, err := dialQUIC(b.ctx, r)
	if err != nil {
		return sample{}, err
	}
	defer qc.CloseWithError(noErrorH3, "")
	request := h3Request(r.setup.host(0), "/body")
	buf := make([]byte, 1<<20)
	if err := downloadH3(b.ctx, qc, request, buf); err != nil {
		return sample{}, err
	}
	v, err := r.cpuPer(time.Millisecond, func() (n int, err error) {
		for began := time.Now(); time.Since(began) < b.duration || n < fewestBodies; n++ {
			if err := downloadH3(b.ctx, qc, request, buf); err != nil {
				return n, err
			}
		}
		return n, nil
	})
	return sample{value: v}, err
}

// downloadH3 asks for the large body and throws it away. The frames are not looked at:
// with their heads and that of the response they are little more than the body.
func downloadH3(ctx context.Context, qc *quic.Conn, request, buf []byte) error {
	s, err := beginH3(ctx, qc, request)
	if err != nil {
		return err
	}
	got := 0
	for {
		n, err := s.Read(buf)
		got += n
		if err == io.EOF && got >= bodySize && got < bodySize+bodySize/100 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("h3: %d bytes came of %d: %w", got, bodySize, err)
		}
	}
}

// measureH3Connections opens a connection for each request, a few at a time.
func measureH3Connections(b *bench, all []*running) (sample, error) {
	r := all[0]
	request := h3Request(r.setup.host(0), "/")
	once := func() error {
		qc, err := dialQUIC(b.ctx, r)
		if err != nil {
			return err
		}
		defer qc.CloseWithError(noErrorH3, "")
		return askH3(b.ctx, qc, request)
	}
	if err := once(); err != nil {
		return sample{}, err
	}
	v, err := r.cpuPer(time.Microsecond, func() (int, error) {
		return b.repeat(handshakeClients, func(int) error { return once() })
	})
	return sample{value: v}, err
}

// repeat does one thing on n goroutines until the time of a measurement is over, and
// returns how often it was done.
func (b *bench) repeat(n int, once func(i int) error) (int, error) {
	var done atomic.Int64
	failures := make([]error, n)
	var wg sync.WaitGroup
	end := time.Now().Add(b.duration)
	for i := range failures {
		wg.Go(func() {
			for failures[i] == nil && time.Now().Before(end) {
				if failures[i] = once(i); failures[i] == nil {
					done.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return int(done.Load()), errors.Join(failures...)
}

// quicCloser closes a connection as one without an error.
type quicCloser struct{ *quic.Conn }

// Close closes the connection.
func (c quicCloser) Close() error { return c.CloseWithError(noErrorH3, "") }

// measureIdleH3 opens connections, asks once on each, and sees by how much the peer
// grew.
func measureIdleH3(b *bench, all []*running) (sample, error) {
	r := all[0]
	request := h3Request(r.setup.host(0), "/")
	return b.growth(r, func() (io.Closer, error) {
		qc, err := dialQUIC(b.ctx, r)
		if err != nil {
			return nil, err
		}
		return quicCloser{qc}, askH3(b.ctx, qc, request)
	})
}
