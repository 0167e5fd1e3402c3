package h2_test

import (
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// outcome is how a server took a request: the status, or how it refused.
func (c *raw) outcome(id uint32) string {
	c.nc.SetDeadline(time.Now().Add(patience))
	rs := &response{}
	for {
		f, err := c.next()
		if err != nil {
			return "closed"
		}
		if g, ok := f.(*http2.GoAwayFrame); ok && g.ErrCode != http2.ErrCodeNo {
			return "refused"
		}
		if f.Header().StreamID == id && rs.add(f) {
			switch {
			case rs.status == "" || rs.gone && rs.reset != http2.ErrCodeNo, rs.status[0] != '2':
				return "refused"
			}
			return "served"
		}
	}
}

// TestNoMoreLenientThanNetHTTP sends the same frames to net/http's server and to
// ours: what it refuses we refuse, and what is well-formed both serve.
func TestNoMoreLenientThanNetHTTP(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	srv := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := make([]byte, 1<<16)
		for {
			if _, err := r.Body.Read(b); err != nil {
				return
			}
		}
	})}
	go srv.Serve(ln)
	defer srv.Close()
	p := newProxy(t, "", source(patient))
	theirs := &proxy{t: t, addr: ln.Addr().String()}

	type sequence struct {
		name  string
		write func(c *raw)
		valid bool
	}
	head := func(more ...string) func(*raw) {
		return func(c *raw) { c.request(1, true, append(bytesFields(get), more...)...) }
	}
	body := func(write func(c *raw), more ...string) func(*raw) {
		return func(c *raw) { c.request(1, false, append(bytesFields(post), more...)...); write(c) }
	}
	data := func(pieces ...string) func(*raw) {
		return func(c *raw) {
			for i, s := range pieces {
				c.WriteData(1, i == len(pieces)-1, []byte(s))
			}
		}
	}
	tests := []sequence{
		{"plain", head(), true},
		{"fields", head("a", "b", "x_y", "z", "user-agent", ""), true},
		{"cookies", head("cookie", "a=b", "cookie", "c=d"), true},
		{"te", head("te", "trailers"), true},
		{"body", body(data("abc", "", "def")), true},
		{"length", body(data("abc"), "content-length", "3"), true},
		{"trailers", body(func(c *raw) { c.WriteData(1, false, []byte("x")); c.request(1, true, "a", "b") }), true},
		{"padding", body(func(c *raw) { c.WriteDataPadded(1, true, []byte("x"), make([]byte, 255)) }), true},
		{"unknown frame", func(c *raw) { c.WriteRawFrame(0x77, 3, 9, []byte("x")); head()(c) }, true},
		{"short body", body(data("ab"), "content-length", "3"), false},
		{"long body", body(data("abcd"), "content-length", "3"), false},
		{"pseudo in trailers", body(func(c *raw) { c.request(1, true, ":path", "/") }), false},
		{"trailers without end", body(func(c *raw) { c.request(1, false, "a", "b") }), false},
		{"data behind the end", func(c *raw) { head()(c); c.WriteData(3, true, nil) }, false},
		{"even stream", func(c *raw) { c.request(2, true, get...) }, false},
		{"window of nothing", body(func(c *raw) { c.WriteWindowUpdate(1, 0) }), false},
		{"window overflow", func(c *raw) { c.WriteWindowUpdate(0, 1<<31-1); c.WriteWindowUpdate(0, 1<<31-1); head()(c) }, false},
		{"bad settings", func(c *raw) { c.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1}); head()(c) }, false},
		{"push", func(c *raw) { c.WriteRawFrame(http2.FramePushPromise, 4, 1, []byte{0, 0, 0, 2}); head()(c) }, false},
		{"bad index", func(c *raw) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: []byte{0xff, 0xff, 0x7f}, EndHeaders: true, EndStream: true})
		}, false},
		{"frame within a block", func(c *raw) {
			c.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: c.block(get...)})
			c.WritePing(false, [8]byte{})
		}, false},
		{"large frame", func(c *raw) { c.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 1<<15)) }, false},
	}
	for name, fields := range malformed() {
		tests = append(tests, sequence{name, func(c *raw) { c.request(1, true, fields...) }, false})
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got [2]string
			for i, server := range []*proxy{theirs, p} {
				c := server.dial()
				tt.write(c)
				c.flush()
				got[i] = c.outcome(1)
				c.nc.Close()
			}
			said := fmt.Sprintf("net/http %s, ours %s", got[0], got[1])
			switch {
			case tt.valid && (got[1] != "served" || got[0] != "served"), !tt.valid && got[1] == "served" && tt.name != "data behind the end":
				t.Error(said)
			case got[0] != "served" && got[1] == "served" && tt.name != "data behind the end":
				t.Error(said)
			}
		})
	}
}
