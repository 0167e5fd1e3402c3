package upstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"headgate/internal/exchange"
)

// errDial marks errors from before a connection stood: no byte was sent.
var errDial = errors.New("connect")

// dialError says which address could not be reached and why.
type dialError struct {
	address string
	err     error
}

func (e *dialError) Error() string        { return fmt.Sprintf("connect to %s: %v", e.address, e.err) }
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

// lookupTimeout bounds one look-up of a name. A dial does not wait longer than
// its own time-out for it.
const lookupTimeout = 10 * time.Second

// names turns host:port into addresses to connect to. The addresses of a name
// are looked up when they are first needed and believed for an interval; when a
// later look-up fails the last good ones stay.
type names struct {
	address  string
	host     string
	port     uint16
	interval time.Duration
	log      *slog.Logger

	mu struct {
		sync.Mutex
		addrs   []netip.AddrPort
		since   int64 // when addrs were looked up
		running bool  // a look-up is under way
		ready   chan struct{}
		err     error
		next    int
	}
}

func newNames(address string, interval time.Duration, log *slog.Logger) *names {
	n := &names{address: address, interval: interval, log: log}
	if ap, err := netip.ParseAddrPort(address); err == nil {
		n.mu.addrs = []netip.AddrPort{ap}
		n.interval = 0
		return n
	}
	host, port, _ := net.SplitHostPort(address)
	n.host = host
	p, err := net.DefaultResolver.LookupPort(context.Background(), "tcp", port)
	if err == nil {
		n.port = uint16(p)
	}
	return n
}

// dial connects to the first address that answers, beginning with another one
// each time. timeout bounds all of it; 0 is no bound but the system's own.
func (n *names) dial(timeout time.Duration) (net.Conn, error) {
	ctx := context.Background()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	addrs, first, err := n.addresses(ctx)
	if err != nil {
		return nil, &dialError{n.address, err}
	}
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}}
	for i := range addrs {
		addr := addrs[(first+i)%len(addrs)]
		step, cancel := share(ctx, len(addrs)-i)
		var nc net.Conn
		nc, err = d.DialContext(step, "tcp", addr.String())
		cancel()
		if err == nil {
			return nc, nil
		}
		if ctx.Err() != nil || errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			break
		}
	}
	return nil, &dialError{n.address, err}
}

// share gives one of several tries an equal part of the time that is left.
func share(ctx context.Context, tries int) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok || tries < 2 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Until(end)/time.Duration(tries))
}

// addresses returns what the name stands for and where to begin.
func (n *names) addresses(ctx context.Context) ([]netip.AddrPort, int, error) {
	n.mu.Lock()
	if n.host != "" && !n.freshLocked() && !n.mu.running {
		n.mu.running = true
		n.mu.ready = make(chan struct{})
		go n.lookUp(n.mu.ready)
	}
	addrs, ready := n.mu.addrs, n.mu.ready
	n.mu.next++
	first := n.mu.next
	n.mu.Unlock()
	if len(addrs) > 0 {
		return addrs, first % len(addrs), nil
	}
	select {
	case <-ready:
	case <-ctx.Done():
		return nil, 0, &net.DNSError{Err: "look-up took too long", Name: n.host, IsTimeout: true}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.mu.addrs) == 0 {
		return nil, 0, n.mu.err
	}
	return n.mu.addrs, first % len(n.mu.addrs), nil
}

// retryLookUp is how long a failed look-up is believed when no address is
// known.
const retryLookUp = int64(time.Second)

func (n *names) freshLocked() bool {
	if n.mu.since == 0 {
		return false
	}
	age := exchange.Now() - n.mu.since
	if n.mu.err != nil && len(n.mu.addrs) == 0 {
		return age < retryLookUp
	}
	return age < int64(n.interval)
}

// lookUp asks the resolver. It ends by itself after lookupTimeout.
func (n *names) lookUp(ready chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", n.host)
	var addrs []netip.AddrPort
	for _, ip := range ips {
		addrs = append(addrs, netip.AddrPortFrom(ip.Unmap(), n.port))
	}
	if err == nil && len(addrs) == 0 {
		err = &net.DNSError{Err: "the name has no addresses", Name: n.host, IsNotFound: true}
	}
	n.mu.Lock()
	n.mu.since, n.mu.running, n.mu.err = exchange.Now(), false, err
	stale := err != nil && len(n.mu.addrs) > 0
	if err == nil {
		n.mu.addrs = addrs
	}
	n.mu.Unlock()
	close(ready)
	if stale {
		n.log.Warn("server name cannot be resolved, last addresses are kept", "name", n.host, "err", err)
	}
}
