// Package resolve turns the names of servers into connections: it resolves names, caches
// the addresses for their TTL, keeps the last valid addresses when resolution fails, and
// connects to the address that responds first.
//
// A Name is host:port, or a service with SRV records; use it with Dial. asker.go queries
// name servers, endpoint.go makes servers of addresses, eyeballs.go connects. Nothing runs
// between dials.
package resolve

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
)

// Options configure how names are resolved.
type Options struct {
	// Interval is the longest time for which addresses are cached. The TTL of a name server
	// may be shorter. 0 is 30 seconds.
	Interval time.Duration
	// Servers are the name servers, in this order; the default is the system's. The hosts
	// file of the system always takes precedence.
	Servers []netip.AddrPort
	// Log records when a name can no longer be resolved, and when it can again. It is never
	// nil.
	Log *slog.Logger
}

// The times of a look-up.
const (
	// lookupTimeout bounds one look-up.
	lookupTimeout = 10 * time.Second
	// shortest is the minimum time that addresses are cached.
	shortest = time.Second
	// defaultInterval is the Interval of Options that name none.
	defaultInterval = 30 * time.Second
	// askAgain is how long a failed lookup is cached, askAgainSoon if there are no
	// addresses.
	askAgain, askAgainSoon = 5 * time.Second, time.Second
	// refreshWait is how long a dial waits for a look-up when the addresses it
	// has are old. Then those are better than none.
	refreshWait = 2 * time.Second
	// goneAfter is how long addresses are used after a response that the name does not
	// exist. Names disappear while a server restarts.
	goneAfter = 5 * time.Minute
)

// Name is the name of a server, with its addresses. It is safe for concurrent use.
type Name struct {
	// constant
	shown   string
	options Options
	ask     func(context.Context) ([]Endpoint, time.Duration, error) // nil for an address

	next    atomic.Uint32 // whose turn it is
	due     atomic.Int64  // when Poll starts the next lookup
	version atomic.Uint64 // of set

	mu struct {
		sync.Mutex
		set     []Endpoint // never changed, only replaced
		until   int64      // how long set, or a failure, is cached
		gone    int64      // since when responses say that the name does not exist
		err     error      // of the last look-up
		running bool
		ready   chan struct{} // closed when the look-up that runs has ended
	}
}

// New returns the name of a server, host:port. The host may be an address; several
// addresses with commas between them are one server that is reached by any.
func New(address string, o Options) *Name {
	n := newName(address, o)
	if list := literal(address); list != nil {
		n.mu.set = []Endpoint{{Addresses: list, Weight: 1}}
		return n
	}
	host, port, _ := net.SplitHostPort(address)
	number, _ := strconv.ParseUint(port, 10, 16)
	a := asker{n.options.Servers, n.options.Log, n.shown}
	n.ask = func(ctx context.Context) ([]Endpoint, time.Duration, error) { return a.host(ctx, host, uint16(number)) }
	return n
}

// literal returns the addresses that a text consists of, nil if there is a name in
// it.
func literal(text string) (list []netip.AddrPort) {
	for part := range strings.SplitSeq(text, ",") {
		ap, err := netip.ParseAddrPort(part)
		if err != nil {
			return nil
		}
		list = append(list, ap)
	}
	return list
}

// NewService returns the name of a service that has SRV records (RFC 2782), such
// as _http._tcp.example.com.
func NewService(service string, o Options) *Name {
	n := newName(service, o)
	a := asker{n.options.Servers, n.options.Log, n.shown}
	n.ask = func(ctx context.Context) ([]Endpoint, time.Duration, error) { return a.service(ctx, service) }
	return n
}

func newName(shown string, o Options) *Name {
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	n := &Name{shown: shown, options: o}
	n.mu.until = math.MinInt64
	n.due.Store(math.MinInt64)
	return n
}

// Dial connects to an address of the name, beginning with a different one each time. ctx
// limits all of it. An error is a *net.DNSError if there is no address, and else the error
// of the first one. Users of the connection detect with netconn.KeepAlive that the server
// disappeared silently.
func (n *Name) Dial(ctx context.Context) (net.Conn, error) { return n.DialShifted(ctx, 0) }

// DialShifted is Dial with a number added to the port of each address.
func (n *Name) DialShifted(ctx context.Context, shift uint16) (net.Conn, error) {
	set, err := n.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	var room [maxDials]netip.AddrPort
	order := appendOrder(room[:0], set, n.next.Add(1)-1)
	if shift != 0 {
		for i, a := range order {
			order[i] = netip.AddrPortFrom(a.Addr(), a.Port()+shift)
		}
	}
	return race(ctx, order)
}

// Endpoints returns the known servers of the name, without a lookup. The caller must not
// change them.
func (n *Name) Endpoints() []Endpoint {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.mu.set
}

// Now returns the known servers of the name, and starts a lookup if one is due, without
// waiting for it. The caller must not change them.
func (n *Name) Now() []Endpoint {
	n.Poll(clock.Now())
	return n.Endpoints()
}

// Fixed reports whether the name is an address, of which nothing changes.
func (n *Name) Fixed() bool { return n.ask == nil }

// Poll starts a lookup in the background if one is due at now, by package
// clock, and returns a number that grows whenever Endpoints changes. It costs
// next to nothing otherwise.
func (n *Name) Poll(now int64) uint64 {
	if n.ask != nil && now >= n.due.Load() {
		n.mu.Lock()
		n.beginLocked(now)
		n.mu.Unlock()
	}
	return n.version.Load()
}

// beginLocked starts a lookup if it is due and none is running.
func (n *Name) beginLocked(now int64) {
	if now >= n.mu.until && !n.mu.running {
		n.mu.running, n.mu.ready = true, make(chan struct{})
		n.due.Store(math.MaxInt64) // until it has ended
		go n.lookUp()
	}
}

// endpoints returns the servers of the name. It starts a lookup if one is due and waits for
// it if there are no valid addresses.
func (n *Name) endpoints(ctx context.Context) ([]Endpoint, error) {
	if n.ask == nil {
		return n.mu.set, nil
	}
	n.mu.Lock()
	now := clock.Now()
	n.beginLocked(now)
	set, ready := n.mu.set, n.mu.ready
	old := n.mu.err == nil && now >= n.mu.until+int64(n.options.Interval)
	failed := n.mu.err != nil && !n.mu.running
	err := n.mu.err
	n.mu.Unlock()
	switch {
	case len(set) > 0 && !old:
		return set, nil
	case len(set) == 0 && failed:
		return nil, err
	}
	return n.await(ctx, ready, len(set) > 0)
}

// await waits for the look-up that runs.
func (n *Name) await(ctx context.Context, ready chan struct{}, known bool) ([]Endpoint, error) {
	if known {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, refreshWait)
		defer cancel()
	}
	select {
	case <-ready:
	case <-ctx.Done():
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case len(n.mu.set) > 0:
		return n.mu.set, nil
	case n.mu.running || n.mu.err == nil:
		return nil, &net.DNSError{Err: "the lookup timed out", Name: n.shown, IsTimeout: true}
	}
	return nil, n.mu.err
}

// lookUp sends queries, and ends after lookupTimeout.
func (n *Name) lookUp() {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	set, ttl, err := n.guarded(ctx)
	now := clock.Now()
	n.mu.Lock()
	before, was := n.mu.set, n.mu.err
	if err == nil {
		n.mu.set, n.mu.gone = set, 0
		n.mu.until = now + int64(n.cachedFor(ttl))
	} else {
		n.failedLocked(err, now)
	}
	n.mu.err, n.mu.running = err, false
	n.due.Store(n.mu.until)
	if !slices.EqualFunc(before, n.mu.set, Endpoint.equal) {
		n.version.Add(1)
	}
	kept := len(n.mu.set)
	close(n.mu.ready)
	n.mu.Unlock()
	n.logChange(before, set, was, err, kept)
}

// guarded runs a lookup. A panic makes the lookup fail instead of ending the
// process.
func (n *Name) guarded(ctx context.Context) (set []Endpoint, ttl time.Duration, err error) {
	defer func() {
		if v := recover(); v != nil {
			set, err = nil, broken(n.options.Log, v, n.shown)
		}
	}()
	return n.ask(ctx)
}

// broken logs a broken invariant of a lookup, and returns its error.
func broken(log *slog.Logger, v any, name string) error {
	exchange.Broken(log, v, "look-up of a server name", "name", name)
	return fmt.Errorf("broken invariant: %v", v)
}

// failedLocked records a failed lookup. If name servers do not respond, known addresses are
// kept; if they respond that the name does not exist, they are dropped after a while.
func (n *Name) failedLocked(err error, now int64) {
	if !notFound(err) {
		n.mu.gone = 0
	} else if n.mu.gone == 0 {
		n.mu.gone = now
	}
	if n.mu.gone != 0 && now-n.mu.gone >= int64(goneAfter) {
		n.mu.set = nil
	}
	n.mu.until = now + int64(askAgain)
	if len(n.mu.set) == 0 {
		n.mu.until = now + int64(askAgainSoon)
	}
}

// cachedFor returns how long addresses with a TTL are cached. Below 0 the TTL is unknown.
func (n *Name) cachedFor(ttl time.Duration) time.Duration {
	if ttl < 0 {
		return n.options.Interval
	}
	return min(max(ttl, shortest), n.options.Interval)
}

// logChange logs what changed.
func (n *Name) logChange(before, set []Endpoint, was, err error, kept int) {
	switch log := n.options.Log; {
	case err != nil && was == nil && kept > 0:
		log.Warn("cannot resolve server name, keeping its last addresses", "name", n.shown, "error", err)
	case err != nil && len(before) > 0 && kept == 0:
		log.Error("server name no longer exists, dropping its addresses", "name", n.shown, "error", err)
	case err == nil && was != nil:
		log.Info("server name can be resolved again", "name", n.shown, "servers", len(set))
	case err == nil && len(before) > 0 && !slices.EqualFunc(before, set, Endpoint.equal):
		log.Info("server name resolves to other addresses", "name", n.shown, "servers", len(set))
	}
}
