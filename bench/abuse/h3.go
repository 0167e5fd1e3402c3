//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"headgate/internal/proto/qpack"
)

// canceled is H3_REQUEST_CANCELLED (RFC 9114, section 8.1).
const canceled = 0x10c

// dialQUIC connects over HTTP/3, and sends SETTINGS. A window of 0 is the usual one.
func dialQUIC(ctx context.Context, t *target, window uint64) (*quic.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	qc, err := quic.DialAddr(ctx, t.h3, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h3"}, ServerName: "a.test"},
		&quic.Config{InitialStreamReceiveWindow: window, MaxStreamReceiveWindow: window, MaxIdleTimeout: time.Minute})
	if err != nil {
		return nil, err
	}
	control, err := qc.OpenUniStream()
	if err == nil {
		_, err = control.Write([]byte{0, 4, 0})
	}
	return qc, err
}

// getH3 returns the bytes of a request stream.
func getH3(path string) []byte {
	b := qpack.AppendPrefix(nil)
	for _, f := range [][2]string{{":method", "GET"}, {":scheme", "https"}, {":authority", "a.test"}, {":path", path}} {
		if i, ok := qpack.IndexField(f[0], f[1]); ok {
			b = qpack.AppendIndexed(b, i)
			continue
		}
		i, _ := qpack.Index(f[0])
		b = qpack.AppendNamed(b, i, f[1], false)
	}
	return append([]byte{1, byte(len(b))}, b...) // a HEADERS frame of less than 64 bytes
}

// againH3 is again over HTTP/3.
func againH3(ctx context.Context, t *target, what string, use func(context.Context, *quic.Conn) error) string {
	var all sync.WaitGroup
	var opened, used atomic.Int64
	for range clients {
		all.Go(func() {
			for ctx.Err() == nil {
				qc, err := dialQUIC(ctx, t, 0)
				if err != nil {
					continue
				}
				opened.Add(1)
				stop := context.AfterFunc(ctx, func() { _ = qc.CloseWithError(0, "") })
				for ctx.Err() == nil && use(ctx, qc) == nil {
					used.Add(1)
				}
				stop()
				_ = qc.CloseWithError(0, "")
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d %s on %d connections", used.Load(), what, opened.Load())
}

// resetH3 takes its requests back at once.
func resetH3(ctx context.Context, t *target) string {
	request := getH3("/probe")
	return againH3(ctx, t, "requests", func(ctx context.Context, qc *quic.Conn) error {
		s, err := qc.OpenStreamSync(ctx)
		if err != nil {
			return err
		}
		_, err = s.Write(request)
		s.CancelWrite(canceled)
		s.CancelRead(canceled)
		return err
	})
}

// uniH3 resets unidirectional streams before it says what they are.
func uniH3(ctx context.Context, t *target) string {
	return againH3(ctx, t, "streams", func(ctx context.Context, qc *quic.Conn) error {
		s, err := qc.OpenUniStreamSync(ctx)
		if err != nil {
			return err
		}
		_, err = s.Write([]byte{0x40}) // the first of two bytes
		s.CancelWrite(canceled)
		return err
	})
}

// windowH3 asks for long responses on as many streams as it may, and takes a few bytes
// of each.
func windowH3(ctx context.Context, t *target) string {
	request := getH3("/big")
	var asked atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			qc, err := dialQUIC(ctx, t, 512)
			if err != nil {
				return
			}
			held.add(quicCloser{qc})
			for range 256 {
				s, err := qc.OpenStream() // as many as the proxy grants
				if err != nil {
					return
				}
				if _, err = s.Write(request); err != nil {
					return
				}
				_ = s.Close()
				asked.Add(1)
			}
		})
	}
	all.Wait()
	return fmt.Sprintf("%d streams were opened", asked.Load())
}

// quicCloser is a connection of QUIC among those of TCP.
type quicCloser struct{ qc *quic.Conn }

// Close ends the connection.
func (c quicCloser) Close() error { return c.qc.CloseWithError(0, "") }

var _ io.Closer = quicCloser{}

// freePacketAddress returns an address of loopback with a port that no UDP socket has.
func freePacketAddress() (string, error) {
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer pc.Close()
	return pc.LocalAddr().String(), nil
}
