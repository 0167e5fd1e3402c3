package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/server/resolve"
)

// errDial marks errors before a connection was established: no byte was sent.
var errDial = errors.New("connect")

// dialError says which address could not be reached and why.
type dialError struct {
	address string
	err     error
}

// Error says what was tried and why it failed once, not in every layer's words:
// "connect to app:3000 (10.0.0.7:3000): connection refused".
func (e *dialError) Error() string {
	var op *net.OpError
	if !errors.As(e.err, &op) || op.Op != "dial" {
		return fmt.Sprintf("connect to %s: %v", e.address, e.err)
	}
	address, why := e.address, op.Err
	if op.Addr != nil && !strings.HasSuffix(address, op.Addr.String()) {
		address += " (" + op.Addr.String() + ")"
	}
	if call, ok := why.(*os.SyscallError); ok {
		why = call.Err
	}
	return fmt.Sprintf("connect to %s: %v", address, why)
}

func (e *dialError) Unwrap() error        { return e.err }
func (e *dialError) Is(target error) bool { return target == errDial }

// dialReason names the reason for a connection that did not come about.
func dialReason(err error) exchange.Reason {
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	var secure *tlsError
	switch {
	case errors.As(err, &secure):
		return exchange.UpstreamTLS
	case errors.As(err, &dns):
		return exchange.UpstreamDNS
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return exchange.UpstreamTimeout
	}
	return exchange.UpstreamRefused
}

// names turns the name of a server into connections.
type names struct {
	*resolve.Name
	shown string
}

func newNames(t *Target, settings Settings, log *slog.Logger) *names {
	o := resolve.Options{Interval: settings.ResolveInterval, Servers: settings.Resolvers, Log: log}
	if t.Reach != "" {
		return &names{resolve.New(t.Reach, o), t.Address}
	}
	if t.Network == "srv" {
		return &names{resolve.NewService(t.Address, o), t.Address}
	}
	return &names{resolve.New(t.Address, o), t.Address}
}

// dial connects to the first address that answers. timeout bounds all of it; 0 is
// no bound but the system's own.
func (n *names) dial(timeout time.Duration) (net.Conn, error) {
	ctx := context.Background()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	nc, err := n.Dial(ctx)
	if err != nil {
		return nil, &dialError{n.shown, err}
	}
	return nc, nil
}
