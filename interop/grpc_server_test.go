package interop

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// echoService answers with what it was asked to.
type echoService struct {
	pb.UnimplementedTestServiceServer
	begun  chan struct{} // a call that hangs has come
	left   chan error    // why the context of a call that hangs has ended
	parted chan error    // why that of a duplex call has
}

const hang = "hang" // the user name of a request that is never answered

// UnaryCall answers with as many bytes as were wanted, or with a status.
func (s *echoService) UnaryCall(ctx context.Context, rq *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if string(rq.GetPayload().GetBody()) == hang {
		s.begun <- struct{}{}
		<-ctx.Done()
		s.left <- ctx.Err()
		return nil, ctx.Err()
	}
	s.metadata(ctx, func(md metadata.MD) { grpc.SetHeader(ctx, md) }, func(md metadata.MD) { grpc.SetTrailer(ctx, md) })
	if want := rq.GetResponseStatus(); want != nil {
		return nil, status.Error(codes.Code(want.Code), want.Message)
	}
	body := rq.GetPayload().GetBody()
	if rq.ResponseSize > 0 {
		body = bytes.Repeat([]byte("x"), int(rq.ResponseSize))
	}
	return &pb.SimpleResponse{Payload: &pb.Payload{Body: body}}, nil
}

// metadata sends the caller's x-mark back in the head and behind the answer.
func (s *echoService) metadata(ctx context.Context, head, trailer func(metadata.MD)) {
	md, _ := metadata.FromIncomingContext(ctx)
	if mark := md.Get("x-mark"); len(mark) > 0 {
		head(metadata.Pairs("x-head", mark[0]))
		trailer(metadata.Pairs("x-trailer-bin", mark[0]+"\x00\xff"))
	}
}

// StreamingOutputCall sends an answer for each size.
func (s *echoService) StreamingOutputCall(rq *pb.StreamingOutputCallRequest, stream grpc.ServerStreamingServer[pb.StreamingOutputCallResponse]) error {
	for _, p := range rq.GetResponseParameters() {
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: &pb.Payload{Body: make([]byte, p.Size)}}); err != nil {
			return err
		}
	}
	return nil
}

// StreamingInputCall tells how much came.
func (s *echoService) StreamingInputCall(stream grpc.ClientStreamingServer[pb.StreamingInputCallRequest, pb.StreamingInputCallResponse]) error {
	sum := 0
	for {
		rq, err := stream.Recv()
		if err == io.EOF {
			return stream.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: int32(sum)})
		}
		if err != nil {
			return err
		}
		sum += len(rq.GetPayload().GetBody())
	}
}

// FullDuplexCall answers each message before it reads the next.
func (s *echoService) FullDuplexCall(stream grpc.BidiStreamingServer[pb.StreamingOutputCallRequest, pb.StreamingOutputCallResponse]) error {
	s.metadata(stream.Context(), func(md metadata.MD) { stream.SetHeader(md) }, stream.SetTrailer)
	for {
		rq, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			select {
			case s.parted <- stream.Context().Err():
			default:
			}
			return err
		}
		if err := stream.Send(&pb.StreamingOutputCallResponse{Payload: rq.GetPayload()}); err != nil {
			return err
		}
	}
}

// grpcServer runs a service until the test ends. It returns the address.
func grpcServer(t *testing.T, network, address string, id *identity, options ...grpc.ServerOption) (string, *echoService) {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	if id != nil {
		options = append(options, grpc.Creds(credentials.NewServerTLSFromCert(&id.tls)))
	}
	options = append(options, grpc.MaxRecvMsgSize(64<<20))
	server, service := grpc.NewServer(options...), &echoService{begun: make(chan struct{}, 16), left: make(chan error, 16), parted: make(chan error, 16)}
	pb.RegisterTestServiceServer(server, service)
	go server.Serve(l)
	t.Cleanup(server.Stop)
	return l.Addr().String(), service
}

// within returns a context that ends with the test's patience.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// hears waits for the end of a call that a service sees.
func hears(t *testing.T, ended <-chan error) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(patience):
		t.Error("the server does not hear that the call has ended")
	}
}
