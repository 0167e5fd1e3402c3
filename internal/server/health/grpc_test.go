package health

import (
	"io"
	"log/slog"
	"strings"
	"testing"

	"headgate/internal/exchange"
)

func TestCheckByGRPC(t *testing.T) {
	ok := "\x00\x00\x00\x00\x02\x08\x01"
	for _, c := range []struct {
		status              int
		kind, body, trailer string
		want                string
	}{
		{200, "application/grpc", ok, "0", ""},
		{200, "application/grpc+proto", ok, "0", ""},
		{200, "application/grpc", "\x00\x00\x00\x00\x02\x08\x02", "0", "the service is NOT_SERVING"},
		{200, "application/grpc", "\x00\x00\x00\x00\x00", "0", "the service is UNKNOWN"},
		{200, "application/grpc", "\x00\x00\x00\x00\x02\x08\x09", "0", "the service has the unknown status 9"},
		{200, "application/grpc", "", "12", "the server does not know the gRPC health checking protocol"},
		{200, "application/grpc", "", "5", `the server does not know the service "shop"`},
		{200, "application/grpc", "", "14", "grpc-status 14 why"},
		{200, "application/grpc", ok, "", "grpc-status missing"},
		{200, "application/grpc", "\x00\x00\x00\x00\x09\x08\x01", "0", "the answer is not a message of the gRPC health checking protocol"},
		{200, "application/grpc", "\x01\x00\x00\x00\x02\x08\x01", "0", "the answer is not a message of the gRPC health checking protocol"},
		{200, "text/html", "ok", "0", `the answer is not gRPC: status 200, type "text/html"`},
		{404, "application/grpc", ok, "0", `the answer is not gRPC: status 404, type "application/grpc"`},
	} {
		cfg := defaults()
		cfg.Type, cfg.Path, cfg.Service = GRPC, "", "shop"
		f := &fake{respond: func(ex *exchange.Exchange) *exchange.Answer {
			rq := &ex.Request
			sent, _ := io.ReadAll(rq.Body)
			if rq.Method != "POST" || rq.Target != "/grpc.health.v1.Health/Check" || rq.Length != 11 || string(sent) != "\x00\x00\x00\x00\x06\x0a\x04shop" {
				t.Errorf("sent %s %s, %d bytes: %q", rq.Method, rq.Target, rq.Length, sent)
			}
			status(c.status, c.body)(ex)
			ex.Response.Header.AddField("Content-Type", c.kind)
			if c.trailer != "" {
				ex.Response.Trailer.AddField("grpc-status", c.trailer)
			}
			if c.trailer == "14" {
				ex.Response.Trailer.AddField("grpc-message", "why")
			}
			return nil
		}}
		r := NewCheck(cfg, Probe{Source: f}, NewRounds(), slog.New(slog.DiscardHandler)).runOnce()
		equal(t, "error", r.Error, c.want)
	}
	equal(t, "a call for the whole server", string(grpcRequest("")), "\x00\x00\x00\x00\x00")
	equal(t, "a long name", len(grpcRequest(strings.Repeat("x", 200))), 5+1+2+200)
}

func FuzzReadServing(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x02\x08\x01"))
	f.Add([]byte("\x00\x00\x00\x00\x04\x08\x01\x10\x05"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if state, ok := readServing(b); ok && state == serving && len(b) < 7 {
			t.Errorf("%q is serving", b)
		}
	})
}
