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

// fixedPath is where peers that can answer the hundred bytes by themselves do.
const fixedPath = "/fixed"

// overQUIC is a plain setup with HTTP/3 beside TLS.
func overQUIC() []setup { return []setup{{tls: true, quic: true}} }

// speaksQUIC reports the peers that are measured over HTTP/3: quic-go's own server
// carries net/http.
func speaksQUIC(p peer) bool { return p.name == "headgate" || p.name == "net/http" }

// measureH3 asks for what the peer answers by itself.
func measureH3(b *bench, all []*running) (sample, error) { return b.h3(all[0], fixedPath) }

// measureH3Proxy asks for what the upstream answers.
func measureH3Proxy(b *bench, all []*running) (sample, error) { return b.h3(all[0], "/") }

// h3 returns the CPU time of the peer for each request over HTTP/3.
func (b *bench) h3(r *running, path string) (sample, error) {
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	conns := make([]*quic.Conn, quicConnections)
	for i := range conns {
		var err error
		if conns[i], err = dialQUIC(ctx, r); err != nil {
			return sample{}, err
		}
		defer conns[i].CloseWithError(0x100, "")
	}
	request := h3Request(r.setup.host(0), path)
	if err := askH3(ctx, conns[0], request); err != nil {
		return sample{}, err
	}
	v, err := r.cpuPer(time.Microsecond, func() (int, error) {
		var done atomic.Int64
		failures := make([]error, quicConnections*quicStreams)
		var wg sync.WaitGroup
		end := time.Now().Add(b.duration)
		for i := range failures {
			wg.Go(func() {
				for failures[i] == nil && time.Now().Before(end) {
					if failures[i] = askH3(ctx, conns[i%quicConnections], request); failures[i] == nil {
						done.Add(1)
					}
				}
			})
		}
		wg.Wait()
		return int(done.Load()), errors.Join(failures...)
	})
	return sample{value: v}, err
}

// dialQUIC connects and sends SETTINGS.
func dialQUIC(ctx context.Context, r *running) (*quic.Conn, error) {
	cfg := r.setup.certificate.client("h3", nil)
	cfg.MinVersion = tls.VersionTLS13
	if host, _, err := net.SplitHostPort(r.setup.address); err == nil && cfg.ServerName == "" {
		cfg.ServerName = host
	}
	qc, err := quic.DialAddr(ctx, r.setup.address, cfg, nil)
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

// askH3 asks once, on a stream of its own, and wants the plain answer.
func askH3(ctx context.Context, qc *quic.Conn, request []byte) error {
	s, err := qc.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	if _, err := s.Write(request); err != nil {
		return err
	}
	if err := s.Close(); err != nil {
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
