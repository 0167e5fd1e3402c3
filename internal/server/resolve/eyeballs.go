package resolve

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"syscall"
	"time"

	"headgate/internal/netconn"
)

// attemptDelay is how long an address has for itself before the next one is tried
// beside it (RFC 8305, section 5).
const attemptDelay = 250 * time.Millisecond

// race connects to the first address of a list that accepts a connection ("happy
// eyeballs"). After an address that fails, the next one is tried immediately, after one
// that does not respond, soon. The losers are cancelled.
func race(ctx context.Context, list []netip.AddrPort) (net.Conn, error) {
	if len(list) == 1 {
		return netconn.Dial(ctx, list[0])
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &runners{results: make(chan result, len(list)), dial: func(a netip.AddrPort) (net.Conn, error) { return netconn.Dial(ctx, a) }}
	nc, err := r.run(ctx, list)
	cancel()
	r.giveUp()
	return nc, err
}

type result struct {
	nc  net.Conn
	err error
}

// runners are the attempts of one race.
type runners struct {
	dial    func(netip.AddrPort) (net.Conn, error)
	results chan result
	running int
}

func (r *runners) start(a netip.AddrPort) {
	r.running++
	go func() {
		nc, err := r.dial(a)
		r.results <- result{nc, err}
	}()
}

// run returns the first connection, or the error of the first address.
func (r *runners) run(ctx context.Context, list []netip.AddrPort) (net.Conn, error) {
	r.start(list[0])
	list = list[1:]
	next := time.NewTimer(attemptDelay)
	defer next.Stop()
	var first error
	for {
		select {
		case got := <-r.results:
			r.running--
			if got.err == nil {
				return got.nc, nil
			}
			if first == nil {
				first = got.err
			}
			if ctx.Err() != nil || errors.Is(got.err, syscall.EMFILE) || errors.Is(got.err, syscall.ENFILE) {
				list = nil // no other address helps
			}
			if len(list) == 0 && r.running == 0 {
				return nil, first
			}
		case <-next.C:
		}
		if len(list) > 0 {
			r.start(list[0])
			list = list[1:]
			next.Reset(attemptDelay)
		}
	}
}

// giveUp waits for the running attempts, which were cancelled, and closes their
// connections.
func (r *runners) giveUp() {
	for ; r.running > 0; r.running-- {
		if got := <-r.results; got.nc != nil {
			got.nc.Close()
		}
	}
}
