package tunnel_test

import (
	"io"
	"sync"
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
