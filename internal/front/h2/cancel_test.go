package h2_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"headgate/internal/exchange"
	"headgate/internal/server/health"
	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
	"headgate/internal/upstream"
)

// resetter is a server of HTTP/2 that resets each stream, behind a response head and some
// data or at once. It returns its address.
func resetter(t *testing.T, code http2.ErrCode, head bool) string {
	t.Helper()
	return testhouse.Server(t, func(c net.Conn) {
		io.CopyN(io.Discard, c, int64(len(http2.ClientPreface)))
		f := http2.NewFramer(c, c)
		f.WriteSettings()
		for {
			frame, err := f.ReadFrame()
			if err != nil {
				return
			}
			h, ok := frame.(*http2.HeadersFrame)
			if !ok {
				continue
			}
			if head {
				var b bytes.Buffer
				hpack.NewEncoder(&b).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
				f.WriteHeaders(http2.HeadersFrameParam{StreamID: h.StreamID, BlockFragment: b.Bytes(), EndHeaders: true})
				f.WriteData(h.StreamID, false, []byte("some"))
			}
			f.WriteRSTStream(h.StreamID, code)
		}
	})
}

// overHTTP2 puts a route before a server of HTTP/2, one failure of which ejects it.
func overHTTP2(address string, servers **upstream.Servers) option {
	return func(p *proxy, settings *upstream.Settings) {
		env := exchange.Env{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Keep: func(_ string, open func() exchange.Kept) exchange.Kept {
			k := open()
			p.mu.kept = append(p.mu.kept, k)
			return k
		}}
		target := upstream.Target{URL: "h2c://" + address, Address: address, Authority: address, Weight: 1, HTTP2: true}
		ejection := health.Ejection{Enabled: true, Failures: 1, Time: unit.Duration(time.Hour), MaxTime: unit.Duration(time.Hour), MaxPercent: 100}
		*servers = upstream.New([]upstream.Target{target}, *settings, upstream.Policy{Health: upstream.Health{Ejection: ejection}}, env)
		p.pipe.Source = *servers
	}
}

// A stream that its server resets with CANCEL says nothing against the server where it is
// a gRPC call or has a response head: the reset is passed on as it is, and a call without
// a head gets the status CANCELLED of gRPC. Any other reset is a failure of the server.
func TestCancelOfAServerIsPassedOn(t *testing.T) {
	for _, c := range []struct {
		name    string
		code    http2.ErrCode
		head    bool
		kind    string // Content-Type of the request
		status  string
		grpc    string // grpc-status
		reset   http2.ErrCode
		reason  string
		ejected bool
	}{
		{"call", http2.ErrCodeCancel, false, "application/grpc", "200", "1", 0, "upstream_canceled", false},
		{"call of a subtype", http2.ErrCodeCancel, false, "Application/grpc+proto", "200", "1", 0, "upstream_canceled", false},
		{"call of gRPC-Web", http2.ErrCodeCancel, false, "application/grpc-web+proto", "200", "1", 0, "upstream_canceled", false},
		{"call with a head", http2.ErrCodeCancel, true, "application/grpc", "200", "", http2.ErrCodeCancel, "upstream_canceled", false},
		{"request with a head", http2.ErrCodeCancel, true, "text/plain", "200", "", http2.ErrCodeCancel, "upstream_canceled", false},
		{"request", http2.ErrCodeCancel, false, "text/plain", "502", "", 0, "upstream_reset", true},
		{"call that breaks", http2.ErrCodeInternal, false, "application/grpc", "502", "", 0, "upstream_reset", true},
		{"call that breaks behind its head", http2.ErrCodeInternal, true, "application/grpc", "200", "", http2.ErrCodeInternal, "upstream_reset", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			var servers *upstream.Servers
			p := newProxy(t, "", overHTTP2(resetter(t, c.code, c.head), &servers))
			conn := p.dial()
			conn.request(1, true, ":method", "POST", ":scheme", "http", ":authority", "h", ":path", "/s/m", "content-type", c.kind, "te", "trailers")
			conn.flush()
			rs := conn.await(1)
			if rs.status != c.status || rs.field("grpc-status") != c.grpc || rs.gone != (c.reset != 0) || rs.gone && rs.reset != c.reset {
				t.Errorf("got status %s, grpc-status %q, reset %v %v; want %s, %q, %v", rs.status, rs.field("grpc-status"), rs.gone, rs.reset, c.status, c.grpc, c.reset)
			}
			if c.grpc != "" && (len(rs.body) > 0 || rs.field("content-type") != c.kind) {
				t.Errorf("got %q with %q, want only a head", rs.field("content-type"), rs.body)
			}
			if got := p.logged(); got.reason.String() != c.reason || fmt.Sprint(got.status) != c.status {
				t.Errorf("logged %v %d: %s", got.reason, got.status, got.cause)
			}
			if got := servers.Standing(false)[0].State == health.Ejected; got != c.ejected {
				t.Errorf("ejected %v, want %v", got, c.ejected)
			}
		})
	}
}
