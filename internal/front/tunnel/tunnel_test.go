package tunnel_test

import (
	"io"
	"sync"
	"syscall"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/front/tunnel"
)

// side is one side of a tunnel: silent until it is closed, or broken.
type side struct {
	broken bool
	once   sync.Once
	closed chan struct{}
}

func newSide(broken bool) *side { return &side{broken: broken, closed: make(chan struct{})} }

func (s *side) Read([]byte) (int, error) {
	if s.broken {
		panic("a test broke it")
	}
	<-s.closed
	return 0, io.ErrClosedPipe
}

func (s *side) Write(p []byte) (int, error) { return len(p), nil }
func (s *side) CloseWrite() error           { return nil }
func (s *side) SetIdle(time.Duration)       {}
func (s *side) Abort() error                { return s.Close() }
func (s *side) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// A direction that panics ends its tunnel, whichever goroutine carries it, and not the
// process.
func TestABrokenDirectionEndsItsTunnel(t *testing.T) {
	for _, broken := range []struct{ client, server bool }{{client: true}, {server: true}} {
		client, server := newSide(broken.client), newSide(broken.server)
		tunnel.Join(&exchange.Exchange{}, client, server, 0)
		<-client.closed
		<-server.closed
	}
}

// reset is a side whose peer has sent some bytes and reset the connection: the bytes are
// there to read, and the end of the other side cannot be passed on.
type reset struct {
	*side
	told chan struct{} // closed when CloseWrite has failed
	left []byte
}

func (r *reset) CloseWrite() error {
	defer close(r.told)
	return syscall.ENOTCONN
}

func (r *reset) Read(p []byte) (int, error) {
	<-r.told
	n := copy(p, r.left)
	if r.left = r.left[n:]; n == 0 {
		return 0, syscall.ECONNRESET
	}
	time.Sleep(time.Millisecond) // the other direction is the slower one
	return n, nil
}

// ended is a side that has nothing to send, and keeps what it receives until it is closed.
type ended struct {
	*side
	got []byte
}

func (e *ended) Read([]byte) (int, error) { return 0, io.EOF }
func (e *ended) Write(p []byte) (int, error) {
	select {
	case <-e.closed:
		return 0, io.ErrClosedPipe
	default:
		e.got = append(e.got, p...)
		return len(p), nil
	}
}

// What a server had sent before it reset its connection reaches a client that has ended its
// own direction just then.
func TestEndThatCannotBePassedOnLosesNothing(t *testing.T) {
	client := &ended{side: newSide(false)}
	server := &reset{side: newSide(false), told: make(chan struct{}), left: []byte("sent before the reset")}
	tunnel.Join(&exchange.Exchange{}, client, server, 0)
	if string(client.got) != "sent before the reset" {
		t.Errorf("the client received %q", client.got)
	}
}
