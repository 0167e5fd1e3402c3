package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// grpcGate is a headgate in front of a gRPC service, with the ways to it.
type grpcGate struct {
	*gate
	clients  map[string]pb.TestServiceClient // by how they speak
	services []*echoService
	secure   string // the address of HTTPS and of HTTP/3
	trust    *x509.CertPool
}

// newGRPC runs headgate with one host for each kind of upstream.
func newGRPC(t *testing.T, options ...grpc.ServerOption) *grpcGate {
	t.Helper()
	hosts := []string{"h2c", "https", "unix", "dead"}
	id := newIdentity(t, hosts...)
	g := &grpcGate{gate: prepare(t), clients: map[string]pb.TestServiceClient{}}
	g.put("cert.pem", id.cert)
	g.put("key.pem", id.key)
	plain, s1 := grpcServer(t, "tcp", "127.0.0.1:0", nil, options...)
	secure, s2 := grpcServer(t, "tcp", "127.0.0.1:0", id, options...)
	socket, s3 := grpcServer(t, "unix", filepath.Join(shortDir(t), "s"), nil, options...)
	g.services = []*echoService{s1, s2, s3}
	tlsPort, plainPort := free(t), free(t)
	g.secure, g.trust = tlsPort, id.pool
	g.start(fmt.Sprintf(`
version: 1
admin: {address: ""}
access_log: {path: stderr}
ports:
  secure: {address: %q, protocol: https}
  quic: {address: %q, protocol: http3}
  plain: {address: %q, protocol: http, h2c: true}
certificates: {main: {cert_file: cert.pem, key_file: key.pem}}
proxies:
  h2c: {virtual_hosts: [h2c], routes: [{servers: [{url: "h2c://%s"}]}]}
  https: {virtual_hosts: [https], routes: [{servers: [{url: "https://%s", tls: {ca_file: cert.pem}}]}]}
  unix: {virtual_hosts: [unix], routes: [{servers: [{url: "unix+h2c:%s"}]}]}
  dead: {virtual_hosts: [dead], routes: [{servers: [{url: "h2c://%s"}]}]}
`, tlsPort, tlsPort, plainPort, plain, secure, socket, free(t)))
	for _, host := range hosts {
		g.dial("TLS to "+host, tlsPort, host, credentials.NewTLS(&tls.Config{RootCAs: id.pool}))
		g.dial("h2c to "+host, plainPort, host, insecure.NewCredentials())
	}
	return g
}

// dial adds a client that asks for a host.
func (g *grpcGate) dial(name, address, host string, creds credentials.TransportCredentials) {
	g.t.Helper()
	cc, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(creds), grpc.WithAuthority(host),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { cc.Close() })
	g.clients[name] = pb.NewTestServiceClient(cc)
}

// each runs a test over every way that leads to a service.
func (g *grpcGate) each(t *testing.T, run func(*testing.T, pb.TestServiceClient, *echoService)) {
	for name, client := range g.clients {
		for i, host := range []string{"h2c", "https", "unix"} {
			if name == "TLS to "+host || name == "h2c to "+host {
				t.Run(name, func(t *testing.T) { run(t, client, g.services[i]) })
			}
		}
	}
}

func text(n int) *pb.Payload { return &pb.Payload{Body: bytes.Repeat([]byte("g"), n)} }

func TestGRPCKinds(t *testing.T) {
	t.Parallel()
	newGRPC(t).each(t, func(t *testing.T, client pb.TestServiceClient, _ *echoService) {
		ctx := metadata.AppendToOutgoingContext(within(t), "x-mark", "mark")
		var head, trailer metadata.MD
		rs, err := client.UnaryCall(ctx, &pb.SimpleRequest{Payload: text(100)}, grpc.Header(&head), grpc.Trailer(&trailer))
		if err != nil || len(rs.GetPayload().GetBody()) != 100 {
			t.Fatalf("unary: %v, %v", rs, err)
		}
		if fmt.Sprint(head["x-head"], trailer["x-trailer-bin"]) != fmt.Sprint([]string{"mark"}, []string{"mark\x00\xff"}) {
			t.Errorf("unary: head %v, trailer %v", head, trailer)
		}
		testDown(t, client)
		testUp(t, client)
		testDuplex(t, client)
	})
}

func testDown(t *testing.T, client pb.TestServiceClient) {
	sizes := []int32{0, 1, 1000, 100_000, 3}
	var want []*pb.ResponseParameters
	for _, n := range sizes {
		want = append(want, &pb.ResponseParameters{Size: n})
	}
	down, err := client.StreamingOutputCall(within(t), &pb.StreamingOutputCallRequest{ResponseParameters: want})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range sizes {
		if rs, err := down.Recv(); err != nil || len(rs.GetPayload().GetBody()) != int(n) {
			t.Errorf("from the server: %d bytes, %v, want %d", len(rs.GetPayload().GetBody()), err, n)
		}
	}
	if _, err := down.Recv(); err != io.EOF {
		t.Errorf("from the server: the end is %v", err)
	}
}

func testUp(t *testing.T, client pb.TestServiceClient) {
	up, err := client.StreamingInputCall(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if err := up.Send(&pb.StreamingInputCallRequest{Payload: text(10_000)}); err != nil {
			t.Fatal(err)
		}
	}
	if rs, err := up.CloseAndRecv(); err != nil || rs.AggregatedPayloadSize != 500_000 {
		t.Errorf("to the server: %v, %v", rs, err)
	}
}

func testDuplex(t *testing.T, client pb.TestServiceClient) {
	both, err := client.FullDuplexCall(metadata.AppendToOutgoingContext(within(t), "x-mark", "mark"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 20 {
		if err := both.Send(&pb.StreamingOutputCallRequest{Payload: text(n)}); err != nil {
			t.Fatal(err)
		}
		if rs, err := both.Recv(); err != nil || len(rs.GetPayload().GetBody()) != n {
			t.Fatalf("both ways: %v, %v", rs, err)
		}
	}
	both.CloseSend()
	if _, err := both.Recv(); err != io.EOF {
		t.Errorf("both ways: the end is %v", err)
	}
	if got := both.Trailer()["x-trailer-bin"]; fmt.Sprint(got) != "[mark\x00\xff]" {
		t.Errorf("both ways: trailer %q", got)
	}
}

func TestGRPCLargeMessages(t *testing.T) {
	t.Parallel()
	newGRPC(t).each(t, func(t *testing.T, client pb.TestServiceClient, _ *echoService) {
		const size = 8 << 20
		rs, err := client.UnaryCall(within(t), &pb.SimpleRequest{Payload: text(size)})
		if err != nil || len(rs.GetPayload().GetBody()) != size {
			t.Errorf("%d bytes, %v", len(rs.GetPayload().GetBody()), err)
		}
	})
}

// A status without an answer is trailers alone. It comes through as it is.
func TestGRPCStatus(t *testing.T) {
	t.Parallel()
	newGRPC(t).each(t, func(t *testing.T, client pb.TestServiceClient, _ *echoService) {
		for _, code := range []codes.Code{codes.NotFound, codes.ResourceExhausted, codes.Unauthenticated} {
			want := &pb.EchoStatus{Code: int32(code), Message: "what went wrong: ü \n%"}
			_, err := client.UnaryCall(within(t), &pb.SimpleRequest{ResponseStatus: want})
			if s := status.Convert(err); s.Code() != code || s.Message() != want.Message {
				t.Errorf("%v, want %v", err, code)
			}
		}
		if _, err := client.UnimplementedCall(within(t), &pb.Empty{}); status.Code(err) != codes.Unimplemented {
			t.Error(err)
		}
	})
}

func TestGRPCDeadlineAndCancel(t *testing.T) {
	t.Parallel()
	newGRPC(t).each(t, func(t *testing.T, client pb.TestServiceClient, service *echoService) {
		// On a busy machine a short deadline passes before the call has come to the server.
		for time, came := 50*time.Millisecond, false; !came; time *= 2 {
			ctx, cancel := context.WithTimeout(t.Context(), time)
			_, err := client.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: []byte(hang)}})
			cancel()
			// The server keeps the same deadline. When it is the first to give up, it cancels
			// the call, or the proxy has no answer to pass on.
			if code := status.Code(err); code != codes.DeadlineExceeded && code != codes.Canceled && code != codes.Unavailable {
				t.Error(err)
			}
			select {
			case <-service.begun:
				came = true
			default:
				if time > patience {
					t.Fatal("the call does not come to the server")
				}
			}
		}
		hears(t, service.left)

		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		both, err := client.FullDuplexCall(ctx)
		if err != nil {
			t.Fatal(err)
		}
		both.Send(&pb.StreamingOutputCallRequest{Payload: text(1)})
		if _, err := both.Recv(); err != nil {
			t.Fatal(err)
		}
		cancel()
		if _, err := both.Recv(); status.Code(err) != codes.Canceled {
			t.Error(err)
		}
		hears(t, service.parted)
	})
}

// A failure of headgate's own is a status that gRPC clients understand.
func TestGRPCServerThatIsNotThere(t *testing.T) {
	t.Parallel()
	g := newGRPC(t)
	for _, name := range []string{"TLS to dead", "h2c to dead"} {
		if _, err := g.clients[name].UnaryCall(within(t), &pb.SimpleRequest{}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGRPCGoAway holds that a server which ends its connections all the time costs
// no call.
func TestGRPCGoAway(t *testing.T) {
	t.Parallel()
	g := newGRPC(t, grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionAge: 20 * time.Millisecond, MaxConnectionAgeGrace: patience}))
	var all sync.WaitGroup
	g.each(t, func(t *testing.T, client pb.TestServiceClient, _ *echoService) {
		for range 8 {
			all.Go(func() {
				for n := range 200 {
					rs, err := client.UnaryCall(within(t), &pb.SimpleRequest{Payload: text(n)})
					if err != nil || len(rs.GetPayload().GetBody()) != n {
						t.Errorf("call %d: %v", n, err)
						return
					}
				}
			})
			all.Go(func() {
				for range 10 {
					testDuplex(t, client)
				}
			})
		}
		all.Wait()
	})
}
