package interop

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/quic-go/quic-go/http3"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/protobuf/proto"
)

// grpc3 makes gRPC calls over HTTP/3, which grpc-go does not speak.
type grpc3 struct {
	tr            *http3.Transport
	address, host string
}

// call3 is a call. Its messages go out by send and come back by receive.
type call3 struct {
	t    *testing.T
	out  *io.PipeWriter
	head chan *http.Response
	rs   *http.Response
}

// call begins a call of a method.
func (g *grpc3) call(ctx context.Context, t *testing.T, method string) *call3 {
	t.Helper()
	body, out := io.Pipe()
	rq, err := http.NewRequestWithContext(ctx, "POST", "https://"+g.address+"/grpc.testing.TestService/"+method, body)
	if err != nil {
		t.Fatal(err)
	}
	rq.Host = g.host
	rq.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "X-Mark": {"mark"}}
	c := &call3{t: t, out: out, head: make(chan *http.Response, 1)}
	go func() {
		rs, err := g.tr.RoundTrip(rq)
		if err != nil {
			out.CloseWithError(err)
			rs = nil
		}
		c.head <- rs
	}()
	return c
}

// send sends a message (length-prefixed, as gRPC's protocol over HTTP/2 has it).
func (c *call3) send(m proto.Message) {
	c.t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.out.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)); err != nil {
		c.t.Fatal(err)
	}
}

// receive waits for a message, or io.EOF behind the last.
func (c *call3) receive(m proto.Message) error {
	c.t.Helper()
	if c.rs == nil {
		if c.rs = <-c.head; c.rs == nil {
			return io.ErrUnexpectedEOF
		}
	}
	var prefix [5]byte
	if _, err := io.ReadFull(c.rs.Body, prefix[:]); err != nil {
		return err
	}
	b := make([]byte, binary.BigEndian.Uint32(prefix[1:]))
	if _, err := io.ReadFull(c.rs.Body, b); err != nil {
		return err
	}
	return proto.Unmarshal(b, m)
}

// ends holds that the call ends with a status.
func (c *call3) ends(want codes.Code) {
	c.t.Helper()
	c.out.Close()
	if err := c.receive(&pb.Empty{}); err != io.EOF {
		c.t.Fatalf("behind the last message: %v", err)
	}
	got := c.rs.Trailer.Get("Grpc-Status")
	if got == "" { // trailers alone are a head that is the end
		got = c.rs.Header.Get("Grpc-Status")
	}
	if got != fmt.Sprint(int(want)) {
		c.t.Errorf("status %q, want %d; head %v, trailers %v", got, want, c.rs.Header, c.rs.Trailer)
	}
}

// TestGRPCOverHTTP3 holds that clients of HTTP/3 make calls of every kind: heads,
// messages and trailers go both ways as they come, and the end of a call reaches
// the service.
func TestGRPCOverHTTP3(t *testing.T) {
	t.Parallel()
	g := newGRPC(t)
	for i, host := range []string{"h2c", "https", "unix"} {
		tr := &http3.Transport{TLSClientConfig: &tls.Config{RootCAs: g.trust, ServerName: host}}
		t.Cleanup(func() { tr.Close() })
		t.Run(host, func(t *testing.T) { grpc3Calls(t, &grpc3{tr, g.secure, host}, g.services[i]) })
	}
}

func grpc3Calls(t *testing.T, g *grpc3, service *echoService) {
	unary := g.call(within(t), t, "UnaryCall")
	unary.send(&pb.SimpleRequest{Payload: text(100_000)})
	unary.out.Close()
	var rs pb.SimpleResponse
	if err := unary.receive(&rs); err != nil || len(rs.GetPayload().GetBody()) != 100_000 {
		t.Fatalf("unary: %d bytes, %v", len(rs.GetPayload().GetBody()), err)
	}
	unary.ends(codes.OK)
	if head, trailer := unary.rs.Header.Get("X-Head"), unary.rs.Trailer.Get("X-Trailer-Bin"); head != "mark" || trailer != "bWFyawD/" {
		t.Errorf("unary: head %q, trailer %q", head, trailer)
	}
	failing := g.call(within(t), t, "UnaryCall")
	failing.send(&pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Code: int32(codes.NotFound)}})
	failing.ends(codes.NotFound)
	none := g.call(within(t), t, "UnimplementedCall")
	none.send(&pb.Empty{})
	none.ends(codes.Unimplemented)

	// Each message of a stream is answered before the next is sent.
	both := g.call(within(t), t, "FullDuplexCall")
	for n := range 20 {
		var rs pb.StreamingOutputCallResponse
		both.send(&pb.StreamingOutputCallRequest{Payload: text(n)})
		if err := both.receive(&rs); err != nil || len(rs.GetPayload().GetBody()) != n {
			t.Fatalf("both ways: %d bytes, %v, want %d", len(rs.GetPayload().GetBody()), err, n)
		}
	}
	both.ends(codes.OK)
	if got := both.rs.Trailer.Get("X-Trailer-Bin"); got != "bWFyawD/" {
		t.Errorf("both ways: trailer %q", got)
	}
	up := g.call(within(t), t, "StreamingInputCall")
	for range 50 {
		up.send(&pb.StreamingInputCallRequest{Payload: text(10_000)})
	}
	up.out.Close()
	var sum pb.StreamingInputCallResponse
	if err := up.receive(&sum); err != nil || sum.AggregatedPayloadSize != 500_000 {
		t.Errorf("to the server: %v, %v", &sum, err)
	}
	up.ends(codes.OK)

	ctx, cancel := context.WithCancel(within(t))
	left := g.call(ctx, t, "FullDuplexCall")
	left.send(&pb.StreamingOutputCallRequest{Payload: text(1)})
	if err := left.receive(&pb.StreamingOutputCallResponse{}); err != nil {
		t.Fatal(err)
	}
	cancel()
	hears(t, service.parted)
}
