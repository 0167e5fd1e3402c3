package upstream

import (
	"errors"
	"net"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
)

// breaking is a body that panics.
type breaking struct{}

func (breaking) Read([]byte) (int, error) { panic("a test broke it") }
func (breaking) Ready() bool              { return false }
func (breaking) Close() error             { return nil }

// A panic in the goroutine that sends a body is an error of the body.
func TestABrokenBodyEndsItsUpload(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	nc := netconn.New(near)
	defer nc.Close()
	ex := &exchange.Exchange{}
	ex.Request.Body = breaking{}
	err := startUpload(nc, ex, plain).wait()
	if e := (*exchange.Error)(nil); !errors.As(err, &e) || e.Reason != exchange.Internal {
		t.Errorf("got %v, want the reason internal", err)
	}
}
