package upstream

import (
	"io"
	"net"
	"testing"
	"time"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/http2"
	"headgate/internal/testhouse"
)

// refuses starts a server that speaks HTTP/2, refuses its first request when the
// body has come, and is gone then.
func refuses(t *testing.T) Target {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		ln.Close()
		if err != nil {
			return
		}
		defer c.Close()
		c.Write(http2.AppendFrame(nil, 0, http2.FrameSettings, 0, 0))
		io.CopyN(io.Discard, c, int64(len(http2.Preface)))
		head := make([]byte, http2.FrameHeaderSize)
		for {
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			f := http2.ParseFrame(head)
			io.CopyN(io.Discard, c, int64(f.Length))
			if f.Type == http2.FrameData {
				b := http2.AppendRSTStream(nil, f.Stream, http2.RefusedStream)
				c.Write(http2.AppendGoAway(b, 0, http2.NoError, ""))
				return
			}
		}
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	to := target(ln.Addr().String(), 1)
	to.HTTP2 = true
	return to
}

// A server that accepts no request gets none, and another one is used.
func TestServerThatTakesNoStreamsGetsNone(t *testing.T) {
	requests := make(chan struct{}, 100)
	address := testhouse.Server(t, func(c net.Conn) {
		b := http2.AppendFrame(nil, http2.SettingSize, http2.FrameSettings, 0, 0)
		c.Write(http2.AppendSetting(b, http2.SettingMaxConcurrentStreams, 0))
		io.CopyN(io.Discard, c, int64(len(http2.Preface)))
		for head := make([]byte, http2.FrameHeaderSize); ; {
			if _, err := io.ReadFull(c, head); err != nil {
				return
			}
			f := http2.ParseFrame(head)
			io.CopyN(io.Discard, c, int64(f.Length))
			if f.Type == http2.FrameHeaders {
				requests <- struct{}{}
				c.Write(http2.AppendRSTStream(nil, f.Stream, http2.RefusedStream))
			}
		}
	})
	full := target(address, 1)
	full.HTTP2 = true
	good := newOdd(t, respondText(fine))
	s := newServersWith(t, Policy{}, full, target(good.address, 1))
	ex := exchangetest.New(t)
	ex.Limits.ConnectTimeout, ex.Limits.RequestTimeout = 5*time.Second, 5*time.Second
	equal(t, "status", exchangetest.Run(t, ex, s).Status, 200)
	equal(t, "requests of the server that takes none", len(requests), 0)
}

// A body of which a server has seen something that it did not want goes to the
// next one whole: a head that tells of a body without one would leave the server
// waiting for it, and take the next request on the connection for it.
func TestRefusedBodyReachesTheNextServerWhole(t *testing.T) {
	for name, option := range map[string]exchangetest.Option{
		"of a known length": exchangetest.Content("some text"),
		"in chunks":         exchangetest.Chunks("some", " text"),
	} {
		t.Run(name, func(t *testing.T) {
			good := newOdd(t, respondText(fine))
			s := newServersWith(t, Policy{Retry: on("503")}, refuses(t), target(good.address, 1))
			ex := exchangetest.New(t, exchangetest.Head("PUT", "/"), option)
			ex.Limits.ConnectTimeout, ex.Limits.RequestTimeout = 5*time.Second, 2*time.Second
			front := exchangetest.Run(t, ex, s)
			equal(t, "status", front.Status, 200)
			equal(t, "attempts", ex.Attempts, 2)
			good.mu.Lock()
			defer good.mu.Unlock()
			if len(good.mu.bodies) != 1 || good.mu.bodies[0] != "some text" {
				t.Errorf("the next server got %q, want some text", good.mu.bodies)
			}
		})
	}
}
