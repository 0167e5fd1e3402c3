package interop

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	pb "google.golang.org/grpc/interop/grpc_testing"
)

// stateSize is how large the file system of the state directory is: large enough for
// headgate, and small enough to fill it.
const stateSize = "size=64m,mode=0700"

// smallDisk gives the state directory a file system of its own, if that is allowed here.
func (s *soak) smallDisk() {
	s.state = filepath.Join(s.g.dir, "state")
	if err := os.MkdirAll(s.state, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", s.state, "tmpfs", 0, stateSize); err != nil {
		s.t.Logf("the disk is not filled: mount: %v", err)
		return
	}
	s.t.Cleanup(func() { unix.Unmount(s.state, unix.MNT_DETACH) }) // after headgate has ended
	s.fills = true
}

// hardships fills the disk and takes descriptors away, one after the other, and gives them
// back. What fails meanwhile is counted and not wrong; a wrong response is.
func (s *soak) hardships() {
	s.each(1, func(r *rand.Rand) {
		s.pause(r, 20*time.Second)
		if s.ctx.Err() != nil {
			return
		}
		if s.fills && r.IntN(2) == 0 {
			s.fillDisk(r)
		} else {
			s.fewDescriptors(r)
		}
	})
}

// during has what fails be excused, and for a while after.
func (s *soak) during(what string, do func()) {
	s.hardship.Store(&what)
	do()
	select {
	case <-s.ctx.Done():
	case <-time.After(5 * time.Second):
	}
	s.hardship.Store(nil)
	s.saw("hardship: " + what)
}

// fillDisk leaves no byte to the state directory. Traffic needs none.
func (s *soak) fillDisk(r *rand.Rand) {
	s.during("full disk", func() {
		name := filepath.Join(s.state, "filler")
		f, err := os.Create(name)
		if err != nil {
			s.saw("full disk: no filler")
			return
		}
		block := bytes.Repeat([]byte("x"), 1<<16)
		for err == nil {
			_, err = f.Write(block)
		}
		if !errors.Is(err, syscall.ENOSPC) {
			s.t.Errorf("fill %s: %v", name, err)
		}
		f.Close()
		s.pause(r, 4*time.Second)
		if err := os.Remove(name); err != nil {
			s.t.Error(err)
		}
	})
}

// fewDescriptors leaves a few descriptors more than headgate has at this moment, whatever
// those are.
func (s *soak) fewDescriptors(r *rand.Rand) {
	s.during("few descriptors", func() {
		pid := s.g.cmd.Process.Pid
		open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
		if err != nil {
			return
		}
		var was unix.Rlimit
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &was); err != nil {
			s.t.Error(err)
			return
		}
		few := unix.Rlimit{Cur: min(uint64(len(open)+r.IntN(6)), was.Cur), Max: was.Max}
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
			s.t.Error(err)
			return
		}
		s.pause(r, 3*time.Second)
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &was, nil); err != nil {
			s.t.Error(err)
		}
	})
}

// calls are those of a real gRPC client to a real gRPC service.
func (s *soak) calls() {
	conn, err := grpc.NewClient("passthrough:///"+s.secure, grpc.WithAuthority("grpc.test"),
		grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	client := pb.NewTestServiceClient(conn)
	s.each(2, func(r *rand.Rand) {
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		defer cancel()
		body := content(fmt.Sprintf("/%d/%d", r.IntN(1<<30), r.IntN(100_000)))
		if r.IntN(2) == 0 {
			rs, err := client.UnaryCall(ctx, &pb.SimpleRequest{Payload: &pb.Payload{Body: body}})
			if err != nil || !bytes.Equal(rs.GetPayload().GetBody(), body) {
				s.wrong("a call with %d bytes: %d bytes, %v", len(body), len(rs.GetPayload().GetBody()), err)
				return
			}
			s.saw("gRPC call")
			return
		}
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			s.wrong("a duplex call: %v", err)
			return
		}
		for i := range 1 + r.IntN(20) {
			message := &pb.StreamingOutputCallRequest{Payload: &pb.Payload{Body: body[:len(body)/(i+1)]}}
			if err = stream.Send(message); err != nil {
				break
			}
			rs, e := stream.Recv()
			if err = e; err == nil && !bytes.Equal(rs.GetPayload().GetBody(), message.Payload.Body) {
				err = fmt.Errorf("message %d came back with %d bytes, not %d", i, len(rs.GetPayload().GetBody()), len(message.Payload.Body))
			}
			if err != nil {
				break
			}
		}
		if err != nil {
			s.wrong("a duplex call: %v", err)
			return
		}
		stream.CloseSend()
		s.saw("gRPC duplex")
	})
}
