package upstream

import (
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/netconn"
	"headgate/internal/proto/http1"
)

// lookAfter is how long a pooled connection may be idle before it is checked when it is
// used. Under load a connection is idle for one round over all clients, well below a
// millisecond; data that a server sends unexpectedly in that time could arrive after the
// check as well. So the check, which is a system call, is skipped then. With a longer
// time more checks would be skipped, but a second response soon after the first one would
// be used as that of the next request. A request that could not be sent again is always
// checked, and so is a connection whose last response may have been followed by more
// data.
const lookAfter = int64(time.Millisecond)

// Pool holds the connections to one address. It outlives plans that leave the
// address and the settings alone.
type Pool struct {
	// constant
	network  string // "tcp", "unix" or "srv"
	address  string
	tls      *tls.Config // nil speaks no TLS
	shows    bool        // we have a certificate to show
	settings Settings
	limits   http1.Limits
	names    *names
	log      *slog.Logger
	multi    *multi // nil if the server is spoken to in HTTP/1.1 only, or FastCGI
	fastCGI  bool   // the server speaks FastCGI,
	// keepsConn is whether it is asked to leave connections open.
	keepsConn bool

	asked atomic.Bool // the server has requested a certificate

	mu struct {
		sync.Mutex
		idle    []*conn // the most recently used last
		retired bool
		sweep   *time.Timer // set while something is idle
	}
}

func newPool(t *Target, settings Settings, log *slog.Logger) *Pool {
	p := &Pool{network: t.Network, address: t.Address, settings: settings, log: log, fastCGI: t.FastCGI, keepsConn: t.KeepConnections}
	p.limits = http1.Limits{HeadSize: settings.HeadSize}
	if t.Secure != nil {
		p.shows = t.Secure.Certificate != nil
		asked := func() { p.asked.Store(true) }
		p.tls = t.Secure.config(asked, "http/1.1")
		p.multi = &multi{tls: t.Secure.config(asked, "h2", "http/1.1")}
	} else if t.HTTP2 {
		p.multi = &multi{only: true}
	}
	if p.network != "unix" {
		p.names = newNames(t, settings, log)
	}
	return p
}

// get returns a kept connection, the one used last, or nil. now is
// approximately the current time. Connections that were closed by the server
// meanwhile, or on which it sent unexpected data, are closed. look requires
// that check in any case.
func (p *Pool) get(now int64, look bool) *conn {
	for {
		c := p.pop()
		if c == nil {
			return nil
		}
		c.looked = look || c.doubted || now-c.since >= lookAfter
		if !c.looked || c.nc.Quiet() {
			return c
		}
		c.close()
	}
}

func (p *Pool) pop() *conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.mu.idle)
	if n == 0 {
		return nil
	}
	c := p.mu.idle[n-1]
	p.mu.idle[n-1] = nil
	p.mu.idle = p.mu.idle[:n-1]
	return c
}

// put keeps a connection for the next request, or closes it if enough are
// kept. since is the start of its idle time.
func (p *Pool) put(c *conn, since int64) {
	c.since = since
	p.mu.Lock()
	if p.mu.retired || len(p.mu.idle) >= p.settings.IdleConnections || p.settings.IdleTimeout <= 0 {
		p.mu.Unlock()
		c.close()
		return
	}
	p.mu.idle = append(p.mu.idle, c)
	if p.mu.sweep == nil {
		p.mu.sweep = time.AfterFunc(p.settings.IdleTimeout/2, p.sweep)
	}
	p.mu.Unlock()
}

// sweep closes what has rested too long. It runs again while anything is idle.
func (p *Pool) sweep() {
	oldest := exchange.Now() - int64(p.settings.IdleTimeout)
	var dead []*conn
	p.mu.Lock()
	n := 0
	for n < len(p.mu.idle) && p.mu.idle[n].since < oldest {
		n++
	}
	dead = append(dead, p.mu.idle[:n]...)
	kept := copy(p.mu.idle, p.mu.idle[n:])
	clear(p.mu.idle[kept:])
	p.mu.idle = p.mu.idle[:kept]
	if kept > 0 && !p.mu.retired {
		p.mu.sweep.Reset(p.settings.IdleTimeout / 2)
	} else {
		p.mu.sweep = nil
	}
	p.mu.Unlock()
	for _, c := range dead {
		c.close()
	}
}

// Idle returns how many connections are kept.
func (p *Pool) Idle() int {
	n := 0
	if p.multi != nil {
		n = p.multi.idle()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return n + len(p.mu.idle)
}

// Retire closes the kept connections and keeps none from now on. Connections in
// use go on.
func (p *Pool) Retire() {
	p.mu.Lock()
	idle := p.mu.idle
	p.mu.idle, p.mu.retired = nil, true
	if p.mu.sweep != nil {
		p.mu.sweep.Stop()
		p.mu.sweep = nil
	}
	p.mu.Unlock()
	for _, c := range idle {
		c.close()
	}
	if p.multi != nil {
		p.multi.retire()
	}
}

// dial opens a connection to the address and shakes hands if TLS is spoken.
// timeout bounds both together; 0 is no bound but the system's own.
func (p *Pool) dial(timeout time.Duration) (*conn, error) {
	var end time.Time
	if timeout > 0 {
		end = time.Now().Add(timeout)
	}
	nc, err := p.connect(timeout)
	if err != nil {
		return nil, err
	}
	if p.tls == nil {
		return newConn(netconn.New(nc), p), nil
	}
	secure, err := p.shake(nc, p.tls, end)
	if err != nil {
		return nil, err
	}
	return newConn(netconn.New(secure), p), nil
}

// connect opens a connection to the address.
func (p *Pool) connect(timeout time.Duration) (net.Conn, error) {
	if p.network == "unix" {
		nc, err := net.DialTimeout("unix", p.address, timeout)
		if err != nil {
			return nil, &dialError{"unix:" + p.address, err}
		}
		return nc, nil
	}
	nc, err := p.names.dial(timeout)
	if err != nil {
		return nil, err
	}
	netconn.KeepAlive(nc)
	return nc, nil
}
