package listen

import (
	"log/slog"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/exchange"
)

// Conn is a connection as its socket sees it.
type Conn interface {
	// Serve serves the connection to its end, closes it and returns nil. One that
	// has been idle for a while may return what waits for it without a goroutine:
	// that func calls resume once, in a goroutine of its own, when there is something
	// to do, and Serve is called again then; or it returns false, and Serve is to be
	// called at once.
	Serve() (park func(resume func()) bool)
	// Drain makes the connection end after the request at hand, or soon.
	Drain()
	// Close ends the connection at once.
	Close() error
}

// conns is a socket as far as its connections go, of TCP and of QUIC alike: it
// serves them, knows which are open, and waits for their end.
type conns struct {
	// constant
	address netip.AddrPort
	log     *slog.Logger
	share   *Share

	accepted atomic.Uint64
	running  sync.WaitGroup

	mu struct {
		sync.Mutex
		open     map[Conn]struct{}
		draining bool
		left     bool          // to another process, see Socket.Leave; implies draining
		news     chan struct{} // closed when one of these changes; nil without waiters
	}
}

func (c *conns) init(address netip.AddrPort, share *Share, log *slog.Logger) {
	c.address, c.share, c.log = address, share, log
	if share == nil {
		c.share = new(Limit).NewShare(nil)
	}
	c.share.belong(c)
	c.mu.open = map[Conn]struct{}{}
}

// Address returns what the socket is bound to.
func (c *conns) Address() netip.AddrPort { return c.address }

// Accepted returns how many connections were accepted.
func (c *conns) Accepted() uint64 { return c.accepted.Load() }

// Len returns how many connections are open.
func (c *conns) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.mu.open)
}

// Draining reports whether the socket drains.
func (c *conns) Draining() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.draining
}

// Renew makes the open connections end soon; new ones are accepted as before.
func (c *conns) Renew() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drainOpenLocked()
}

// Shed makes each open connection end with its next response, or when its idle timeout is
// over. New ones are accepted as before.
func (c *conns) Shed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.mu.open {
		Leave(conn)
	}
}

func (c *conns) drainOpenLocked() {
	for conn := range c.mu.open {
		conn.Drain()
	}
}

// start serves a connection that has its place in the share.
func (c *conns) start(conn Conn) {
	c.mu.Lock()
	c.mu.open[conn] = struct{}{}
	draining, left := c.mu.draining, c.mu.left
	c.mu.Unlock()
	c.running.Go(func() { c.run(conn) })
	if left {
		Leave(conn)
	} else if draining {
		conn.Drain()
	}
}

// run serves a connection. A broken invariant ends this connection and no other.
func (c *conns) run(conn Conn) {
	parked := false
	defer func() {
		if v := recover(); v != nil {
			exchange.Broken(c.log, v, "connection", "address", c.address.String())
			go conn.Close() // it may wait for a lock that was left held
		}
		if !parked {
			c.remove(conn)
		}
	}()
	for {
		park := conn.Serve()
		if park == nil {
			return
		}
		// From here on the connection may be served again already.
		if parked = park(func() { c.resume(conn) }); parked {
			return
		}
	}
}

// resume serves a connection that was parked, in the goroutine that it is called in.
func (c *conns) resume(conn Conn) {
	c.running.Add(1)
	defer c.running.Done()
	c.run(conn)
}

func (c *conns) remove(conn Conn) {
	c.share.remove()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.mu.open, conn)
	c.newsLocked()
}

// newsLocked lets those look again who wait for a change.
func (c *conns) newsLocked() {
	if c.mu.news != nil {
		close(c.mu.news)
		c.mu.news = nil
	}
}

// await waits until over reports, with mu held, that there is nothing to wait for. It
// reports false when the time has come first.
func (c *conns) await(late <-chan time.Time, over func() bool) bool {
	for {
		c.mu.Lock()
		if over() {
			c.mu.Unlock()
			return true
		}
		if c.mu.news == nil {
			c.mu.news = make(chan struct{})
		}
		news := c.mu.news
		c.mu.Unlock()
		select {
		case <-news:
		case <-late:
			return false
		}
	}
}

// Cut closes the open connections at once, and returns how many there were. The
// socket accepts new ones as before.
func (c *conns) Cut() int {
	all := c.all()
	for _, conn := range all {
		conn.Close()
	}
	return len(all)
}

// remote is what connections are that know the address of their client.
type remote interface{ Remote() netip.Addr }

// CutFrom closes the connections of clients in a network at once, and returns how many
// there were.
func (c *conns) CutFrom(n netip.Prefix) (cut int) {
	for _, conn := range c.all() {
		if r, ok := conn.(remote); ok {
			if a := r.Remote(); a.IsValid() && n.Contains(a.Unmap().WithZone("")) {
				conn.Close()
				cut++
			}
		}
	}
	return cut
}
