package h2_test

import (
	"bytes"
	"io"
	"net/http"
	"sync/atomic"
	"testing"

	"golang.org/x/net/http2"

	"headgate/internal/exchange"
	"headgate/internal/front/h2"
)

// TestFloods holds that each way to make us work for nothing ends the connection
// with a reason, after a bounded number of actions, while others are served.
func TestFloods(t *testing.T) {
	const many = 20000
	each := func(write func(c *raw, id uint32)) func(*raw) {
		return func(c *raw) {
			for i := range uint32(many) {
				write(c, 2*i+1)
			}
		}
	}
	upper := append(bytesFields(get), "Upper", "x")
	tests := []struct {
		name   string
		want   h2.Flood
		attack func(*raw)
	}{
		{"rapid reset", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, true, get...)
			c.WriteRSTStream(id, http2.ErrCodeCancel)
		})},
		{"rapid reset of bodies", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, false, post...)
			c.WriteRSTStream(id, http2.ErrCodeCancel)
		})},
		{"made you reset by a window of nothing", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, false, post...)
			c.WriteWindowUpdate(id, 0)
		})},
		{"made you reset by a window too large", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, false, post...)
			c.WriteWindowUpdate(id, 1<<31-1)
		})},
		{"made you reset by HEADERS behind the end", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, true, append(bytesFields(post), "x-wait", "1")...)
			c.request(id, true, get...)
		})},
		{"made you reset by PRIORITY of a wrong size", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, false, post...)
			c.WriteRawFrame(http2.FramePriority, 0, id, []byte{0})
		})},
		{"made you reset by malformed requests", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, true, upper...)
		})},
		{"too many streams at once", h2.ResetFlood, each(func(c *raw, id uint32) {
			c.request(id, true, append(bytesFields(get), "x-wait", "1")...)
		})},
		{"CONTINUATION without end", h2.ContinuationFlood, func(c *raw) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
			for range many {
				c.WriteContinuation(1, false, []byte{0, 1, 'a', 1, 'b'})
			}
		}},
		{"empty CONTINUATION", h2.ContinuationFlood, func(c *raw) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
			for range many {
				c.WriteContinuation(1, false, nil)
			}
		}},
		{"a field without end", h2.HeaderFlood, func(c *raw) {
			huge := append([]byte{0, 1, 'a', 0x7f, 0xff, 0xff, 0xff, 0x03}, bytes.Repeat([]byte("a"), 10000)...)
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: huge, EndHeaders: true})
		}},
		{"SETTINGS", h2.SettingsFlood, each(func(c *raw, _ uint32) { c.WriteSettings() })},
		{"PING", h2.PingFlood, each(func(c *raw, _ uint32) { c.WritePing(false, [8]byte{}) })},
		{"PRIORITY", h2.PriorityFlood, each(func(c *raw, id uint32) {
			c.WritePriority(id, http2.PriorityParam{StreamDep: id + 2})
		})},
		{"PRIORITY_UPDATE", h2.PriorityFlood, each(func(c *raw, id uint32) {
			c.WriteRawFrame(0x10, 0, 0, append([]byte{0, 0, 0, byte(id) | 1}, "u=1"...))
		})},
		{"unknown frames", h2.PriorityFlood, each(func(c *raw, id uint32) { c.WriteRawFrame(0xee, 0, id, nil) })},
		{"WINDOW_UPDATE", h2.WindowFlood, each(func(c *raw, _ uint32) { c.WriteWindowUpdate(0, 1) })},
		{"DATA of padding alone", h2.EmptyFlood, func(c *raw) {
			c.request(1, false, post...)
			for range many {
				c.WriteDataPadded(1, false, nil, make([]byte, 9))
			}
		}},
		{"DATA without data", h2.EmptyFlood, func(c *raw) {
			c.request(1, false, post...)
			for range many {
				c.WriteData(1, false, nil)
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var served atomic.Int64
			hold := make(chan struct{})
			p := newProxy(t, "", source(func(ex *exchange.Exchange) *exchange.Answer {
				if _, ok := ex.Request.Header.Lookup("x-wait"); ok || ex.Request.Body != nil {
					served.Add(1)
					<-hold
				}
				ex.Response.Status = 200
				return nil
			}))
			t.Cleanup(func() { close(hold) })
			others := p.client()
			check := func() {
				rs, err := others.Get(p.url("/"))
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, rs.Body)
				rs.Body.Close()
				if rs.StatusCode != http.StatusOK {
					t.Fatal(rs.Status)
				}
			}
			check()
			c := p.dial()
			tt.attack(c)
			written := make(chan struct{})
			go func() { c.flush(); close(written) }()
			code := c.goAway()
			c.nc.Close()
			<-written
			if code != http2.ErrCodeEnhanceYourCalm {
				t.Errorf("got GOAWAY with %v", code)
			}
			if got := p.flooded(); got != tt.want {
				t.Errorf("counted as %v, want %v", got, tt.want)
			}
			if n := served.Load(); n > 600 {
				t.Errorf("%d requests were begun", n)
			}
			check()
		})
	}
}

func bytesFields(fields []string) []string { return append([]string(nil), fields...) }
