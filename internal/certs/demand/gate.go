// Package demand gets certificates when a client first connects with a host name. A Gate is
// asked in the handshake: it finds the rule for the host, has the host allowed by the list of
// the rule or by the operator's application (ask.go), has the certificate ordered, and lets
// the handshake wait for it, for a limited time.
//
// Clients choose the names, so everything here is bounded: names that cannot have a
// certificate are refused without a request, refusals are remembered, requests are limited for
// each client and in all, and so are the handshakes that wait. What is unclear is refused.
// Certificates that exist are served without this package.
package demand

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/bucket"
	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/server/safedial"
	"headgate/internal/store"
)

// Issuer orders certificates: an acme.Manager.
type Issuer interface {
	// Progress returns the state of the certificate for a host.
	Progress(host string) acme.Progress
	// OrderOnDemand orders one; it does not wait for it.
	OrderOnDemand(ctx context.Context, host string, d *acme.Demand) error
}

// Options are the options of a Gate.
type Options struct {
	// Log is the application's log.
	Log *slog.Logger
	// Agent is how we call ourselves to applications, such as headgate/1.0.
	Agent string
	// Limited is called when a limit of a rule is reached, at most once within an hour for
	// each limit of a proxy. It may be nil.
	Limited func(proxy string, l *acme.Limited)
	// Now returns the moments of the limits in nanoseconds: clock.Now.
	Now func() int64
}

// The limits of handshakes and of names.
const (
	// maxWait is how long a handshake waits. It is less than the time of a handshake, so that
	// the client gets an alert.
	maxWait = 9 * time.Second
	// maxWaiting is how many handshakes wait, in all and for one host.
	maxWaiting, maxWaitingHost = 512, 32
	// maxHosts is how many hosts are asked for or ordered at once.
	maxHosts = 256
	// maxFlight is how long a host is among them.
	maxFlight = 2 * time.Minute
)

// The limits of requests to applications: of one client, IPv6 by its /64, and of one proxy.
var (
	clientLimit = bucket.New(1, 3*time.Second, 20)
	proxyLimit  = bucket.New(20, time.Second, 100)
)

// Gate decides in handshakes. Its methods may be called by several goroutines at once.
type Gate struct {
	// constant
	Options
	issuer  Issuer
	client  *http.Client
	asking  chan struct{} // holds one for each request to an application
	seed    bucket.Seed
	ctx     context.Context
	stop    context.CancelFunc
	stopped sync.WaitGroup

	clients, proxies bucket.Table
	find             atomic.Pointer[Rules]
	counts           [outcomes]atomic.Uint64

	mu struct {
		sync.Mutex
		flights  map[string]*flight // by host
		waiting  int
		refused  refusals
		reported map[string]time.Time // limits, by proxy and setting
		closed   bool
	}
}

// Rules finds the rule for a host on a port, nil if there is none.
type Rules func(port, host string) *acme.Demand

// flight is a host that is asked for or ordered.
type flight struct {
	done    chan struct{} // closed at the end
	err     error         // set before that
	waiting int           // guarded by Gate.mu
}

// New returns a gate without rules. Close ends it.
func New(o Options) *Gate {
	g := &Gate{Options: o, client: safedial.Client(askTime, nil), asking: make(chan struct{}, maxAsking), seed: bucket.NewSeed()}
	g.mu.flights, g.mu.refused, g.mu.reported = map[string]*flight{}, newRefusals(), map[string]time.Time{}
	g.ctx, g.stop = context.WithCancel(context.Background())
	return g
}

// Use sets who orders certificates. It must be called before the first handshake.
func (g *Gate) Use(i Issuer) { g.issuer = i }

// Set sets the rules.
func (g *Gate) Set(r Rules) { g.find.Store(&r) }

// Close ends requests and waiting handshakes.
func (g *Gate) Close() {
	g.mu.Lock()
	g.mu.closed = true
	g.mu.Unlock()
	g.stop()
	g.stopped.Wait()
	g.client.CloseIdleConnections()
}

// errLater is the error of a handshake whose certificate is not there in time, or for which
// there is no room: the client may try again.
var errLater = errors.New("no certificate for the host yet")

// Await waits until there is a certificate for the host that a client requests on a port, if
// there is a rule for it. It must be called for hosts without a valid certificate only. The
// error wraps certs.ErrNoCertificate for a host that is refused.
func (g *Gate) Await(port string, hello *tls.ClientHelloInfo) error {
	find := g.find.Load()
	if find == nil {
		return nil
	}
	host := strings.ToLower(strings.TrimSuffix(hello.ServerName, "."))
	d := (*find)(port, host)
	if d == nil {
		return nil
	}
	if !canHave(host) {
		return g.refuse(badName)
	}
	client, ok := clientOf(hello.Conn)
	if !ok { // HTTP/3, whose addresses can be forged: clients come over TCP first
		return g.refuse(overQUIC)
	}
	f, err := g.board(host, client, d)
	if err != nil {
		return err
	}
	defer g.leave(f)
	wait := func() { err = g.wait(f) }
	if o, ok := hello.Conn.(interface{ Outside(func()) error }); ok {
		if oerr := o.Outside(wait); oerr != nil {
			return oerr
		}
		return err
	}
	wait()
	return err
}

// canHave reports whether a server name can have a certificate: it is a host name in ASCII,
// and neither an address nor a wildcard (RFC 6066, section 3).
func canHave(host string) bool {
	for i := range len(host) {
		if host[i] >= 0x80 || host[i] == '*' {
			return false
		}
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return false
	}
	what, _ := acme.CheckName(host)
	return what == ""
}

// clientOf returns the address of a client that has a connection of TCP.
func clientOf(c net.Conn) (netip.Addr, bool) {
	if c == nil {
		return netip.Addr{}, false
	}
	if _, udp := c.RemoteAddr().(*net.UDPAddr); udp {
		return netip.Addr{}, false
	}
	at, err := netip.ParseAddrPort(c.RemoteAddr().String())
	if err != nil {
		return netip.IPv6Unspecified(), true // one limit for all of those
	}
	return at.Addr().Unmap(), true
}

// refuse counts a refused handshake and returns its error.
func (g *Gate) refuse(o outcome) error {
	g.counts[o].Add(1)
	return certs.ErrNoCertificate
}

// board makes a handshake wait for a host, which is asked for or ordered if it is not yet.
func (g *Gate) board(host string, client netip.Addr, d *acme.Demand) (*flight, error) {
	p := g.issuer.Progress(host)
	if !p.Valid && !p.Ordering && time.Now().Before(p.NotBefore) {
		return nil, g.refuse(failedBefore)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.mu.closed {
		return nil, errLater
	}
	f := g.mu.flights[host]
	switch {
	case f == nil && g.mu.refused.has(host, time.Now()):
		return nil, g.refuse(refused)
	case g.mu.waiting >= maxWaiting, f != nil && f.waiting >= maxWaitingHost, f == nil && len(g.mu.flights) >= maxHosts:
		g.counts[tooMany].Add(1)
		return nil, errLater
	}
	if f == nil {
		if !p.Valid && !p.Ordering && !g.mayAsk(client, d) {
			return nil, g.refuse(tooOften)
		}
		f = &flight{done: make(chan struct{})}
		g.mu.flights[host] = f
		g.stopped.Go(func() { g.fly(f, host, d) })
	}
	f.waiting++
	g.mu.waiting++
	return f, nil
}

// mayAsk counts a new host of a client.
func (g *Gate) mayAsk(client netip.Addr, d *acme.Demand) bool {
	now := g.Now()
	if _, wait := g.clients.Admit(g.seed.Address(client), now, &clientLimit, false); wait > 0 {
		return false
	}
	_, wait := g.proxies.Admit(g.seed.String(d.Proxy), now, &proxyLimit, false)
	return wait == 0
}

func (g *Gate) leave(f *flight) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f.waiting--
	g.mu.waiting--
}

// wait waits for the end of a flight.
func (g *Gate) wait(f *flight) error {
	timer := time.NewTimer(maxWait)
	defer timer.Stop()
	select {
	case <-f.done:
		return f.err
	case <-timer.C:
		g.counts[tooSlow].Add(1)
		return errLater
	}
}

// fly asks for a host, orders its certificate and waits for it.
func (g *Gate) fly(f *flight, host string, d *acme.Demand) {
	ctx, cancel := context.WithTimeout(g.ctx, maxFlight)
	defer cancel()
	f.err = g.obtain(ctx, host, d)
	g.mu.Lock()
	delete(g.mu.flights, host)
	g.mu.Unlock()
	close(f.done)
}

func (g *Gate) obtain(ctx context.Context, host string, d *acme.Demand) error {
	ordered := false
	for {
		p := g.issuer.Progress(host)
		switch {
		case p.Valid:
			if ordered {
				g.counts[issued].Add(1)
			}
			return nil
		case p.Ordering:
			ordered = true
			select {
			case <-p.Changed:
				continue
			case <-ctx.Done():
				return errLater
			}
		case ordered:
			return g.refuse(failed)
		}
		if err := g.order(ctx, host, d); err != nil {
			return err
		}
		ordered = true
	}
}

// order orders the certificate for a host, if that is allowed.
func (g *Gate) order(ctx context.Context, host string, d *acme.Demand) error {
	if err := g.Allowed(ctx, d, host); err != nil {
		pause := pauseFailed
		outcome := askFailed
		if errors.Is(err, acme.ErrNotAllowed) {
			pause, outcome = pauseRefused, refused
		} else if ctx.Err() == nil {
			g.Log.Warn("no certificate on demand, it is not known whether the host is allowed", "host", host, "proxy", d.Proxy, "error", err)
		}
		g.remember(host, pause)
		return g.refuse(outcome)
	}
	err := g.issuer.OrderOnDemand(ctx, host, d)
	if l := (*acme.Limited)(nil); errors.As(err, &l) {
		g.reportLimit(d.Proxy, l)
		g.remember(host, pauseFailed)
		return g.refuse(limited)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() == nil {
		g.Log.Warn("no certificate on demand", "host", host, "proxy", d.Proxy, "error", err)
	}
	g.remember(host, pauseFailed)
	if errors.Is(err, store.ErrUnavailable) || errors.Is(err, acme.ErrNotAllowed) { // such as without the leader of a pair
		return g.refuse(failed)
	}
	g.counts[failed].Add(1)
	return errLater
}

// remember refuses a host for a while without a request.
func (g *Gate) remember(host string, pause time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.mu.refused.add(host, time.Now(), pause)
}

// reportEvery is how often a limit that is reached is reported.
const reportEvery = time.Hour

func (g *Gate) reportLimit(proxy string, l *acme.Limited) {
	key, now := proxy+"\x00"+l.Bound, time.Now()
	g.mu.Lock()
	last, known := g.mu.reported[key]
	due := !known || now.Sub(last).Abs() >= reportEvery
	if due {
		if len(g.mu.reported) >= maxReported {
			clear(g.mu.reported)
		}
		g.mu.reported[key] = now
	}
	g.mu.Unlock()
	if !due {
		return
	}
	g.Log.Warn("new hosts get no certificate on demand, a limit is reached", "proxy", proxy, "setting", l.Bound, "limit", l.Max, "until", l.Until)
	if g.Limited != nil {
		g.Limited(proxy, l)
	}
}

// maxReported is how many limits are remembered as reported.
const maxReported = 1000
