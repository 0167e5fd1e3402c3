package udp

import (
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/server/balance"
)

// maxDatagram is the largest datagram there can be, in bytes.
const maxDatagram = 64 << 10

// Table serves one socket.
type Table struct {
	// constant
	socket *socket

	proxy    atomic.Pointer[Proxy]
	paused   atomic.Bool // what reads is to end
	sessions sync.WaitGroup
	reading  sync.WaitGroup

	mu struct {
		sync.Mutex
		byClient map[netip.AddrPort]*session
		order    order
		begun    uint64 // sessions, those that have ended too
		closed   bool
	}
}

// NewTable returns a table for conn, which it owns from then on, with an initial
// proxy. Nothing is read before Serve.
func NewTable(conn *net.UDPConn, p *Proxy) *Table {
	t := &Table{socket: newSocket(conn)}
	t.mu.byClient = map[netip.AddrPort]*session{}
	t.proxy.Store(p)
	return t
}

// Serve starts to receive datagrams, in the background.
func (t *Table) Serve() {
	t.proxy.Load().start(t)
	t.reading.Go(t.read)
}

// Pause stops receiving datagrams of clients, which another process that shares the socket
// receives. Sessions continue to forward what servers send. Serve resumes.
func (t *Table) Pause() {
	t.paused.Store(true)
	t.socket.conn.SetReadDeadline(time.Unix(1, 0))
	t.reading.Wait()
	t.socket.conn.SetReadDeadline(time.Time{})
	t.paused.Store(false)
}

// Use makes p the proxy that datagrams are carried by. Sessions at servers that it
// has not end; their clients' next datagrams go to another. So do all if servers get
// a PROXY header from now on, or no more.
func (t *Table) Use(p *Proxy) {
	was := t.proxy.Swap(p)
	if was == p {
		return
	}
	if was.Tally != p.Tally {
		was.Tally.leave(t)
	}
	p.start(t)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.mu.byClient {
		switch {
		case !p.has(s.server):
			s.endLocked("its server was taken out of service")
		case p.Announce != s.proxy.Announce:
			s.endLocked("proxy_protocol was changed")
		}
	}
}

// Len returns how many sessions there are.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.mu.byClient)
}

// Begun returns how many sessions there were since the socket was opened.
func (t *Table) Begun() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.mu.begun
}

// Conn returns the socket.
func (t *Table) Conn() *net.UDPConn { return t.socket.conn }

// Cut ends all sessions, and returns how many there were. The next datagrams of their
// clients start new ones.
func (t *Table) Cut() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(t.mu.byClient)
	for _, s := range t.mu.byClient {
		s.endLocked("the port was reset")
	}
	return n
}

// Close closes the socket and ends all sessions. To close again does no harm.
func (t *Table) Close() {
	t.mu.Lock()
	t.mu.closed = true
	for _, s := range t.mu.byClient {
		s.endLocked("the proxy was removed")
	}
	t.mu.Unlock()
	t.proxy.Load().Tally.leave(t)
	t.socket.conn.Close()
	t.reading.Wait()
	t.sessions.Wait()
}

// read receives datagrams until the socket is closed.
func (t *Table) read() {
	p := make([]byte, maxDatagram)
	var rest time.Duration
	for {
		n, from, local, err := t.socket.receive(p)
		switch {
		case err == nil:
			rest = 0
			t.forward(p[:n], from, local)
		case errors.Is(err, net.ErrClosed), t.paused.Load():
			return
		default:
			// An error of an unconnected socket belongs to no session; retries after
			// repeated failures are delayed.
			rest = min(2*rest+time.Millisecond, time.Second)
			time.Sleep(rest)
		}
	}
}

// forward carries a datagram of a client. local is the address that it was sent to,
// as the socket wants it back.
func (t *Table) forward(p []byte, from netip.AddrPort, local []byte) {
	proxy := t.proxy.Load()
	s := t.find(from, proxy)
	for s == nil {
		if s = t.newSession(proxy, from, local, nil); s != nil {
			break
		}
		if t.proxy.Load() == proxy {
			return
		}
		proxy = t.proxy.Load() // a change came between, and may have a server for it
	}
	s.received.Add(int64(len(p)))
	proxy.Tally.up.Add(uint64(len(p)))
	err := s.link.send(p)
	if passes(err) {
		err = s.link.send(p) // that was of an earlier one
	}
	if !unreachable(err) {
		return
	}
	// The server did not receive an earlier datagram, according to the system;
	// this one was not sent.
	failed := s.server
	s.fail(err)
	if s = t.newSession(proxy, from, local, failed); s != nil {
		s.received.Add(int64(len(p)))
		s.link.send(p)
	}
}

// find returns the session of a client, nil if there is none.
func (t *Table) find(from netip.AddrPort, proxy *Proxy) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.byClient[from]
	if s != nil {
		s.last.Store(clock.Now())
		t.mu.order.spoke(s, proxy.Sessions)
	}
	return s
}

// newSession makes a session, at a server other than avoid; nil if there cannot be one.
func (t *Table) newSession(proxy *Proxy, from netip.AddrPort, local []byte, avoid *Server) *session {
	client := from.Addr().Unmap().WithZone("")
	if answer := proxy.Filters.Admit(client); answer != nil {
		proxy.Tally.failed(answer.Reason)
		return nil
	}
	if !t.makeRoom(proxy) {
		proxy.Tally.failed(exchange.Overloaded)
		return nil
	}
	ask := balance.Ask{Now: clock.Now(), Key: balance.HashAddr(client)}
	for i, s := range proxy.Servers {
		if avoid != nil && s.Gauge == avoid.Gauge && len(proxy.Servers) > 1 {
			ask.Tried.Add(i)
		}
	}
	first := -1
	if avoid == nil {
		first = proxy.before(sender{t.port(), from})
	}
	for {
		i, outcome := first, balance.Chosen
		if first < 0 || !proxy.Group.Claim(first, &ask) {
			i, outcome = proxy.Group.Choose(&ask)
		}
		if first = -1; outcome != balance.Chosen {
			proxy.Tally.failed(exchange.NoHealthyServer)
			return nil
		}
		server := proxy.Servers[i]
		ask.Tried.Add(i)
		s, reason, err := t.open(proxy, server, from, local)
		if s == nil {
			server.Gauge.Release()
			server.count(reason, err)
			proxy.Tally.failed(reason)
			continue
		}
		if t.enter(s) {
			return s
		}
		return nil
	}
}

// errUnknown means that the name of a server has no address yet.
var errUnknown = errors.New("the address of the server is not known yet")

// open connects a socket to a server.
func (t *Table) open(proxy *Proxy, server *Server, from netip.AddrPort, local []byte) (*session, exchange.Reason, error) {
	addresses := server.Resolve()
	if len(addresses) == 0 {
		return nil, exchange.UpstreamDNS, errUnknown
	}
	conn, err := connect(addresses)
	if noDescriptor(err) && t.evict(proxy) {
		conn, err = connect(addresses) // with the descriptor of another
	}
	if err != nil {
		return nil, exchange.UpstreamRefused, err
	}
	return newSession(t, proxy, server, conn, from, local), exchange.None, nil
}

// connect connects a socket to the first of the addresses of a server to which there is a
// way. The error is that of the last.
func connect(addresses []netip.AddrPort) (conn *net.UDPConn, err error) {
	for _, to := range addresses {
		if conn, err = net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(to)); err == nil || noDescriptor(err) {
			break
		}
	}
	return conn, err
}

// noDescriptor reports whether a socket was not to be had as there are too many.
func noDescriptor(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// enter adds a new session to the table; it returns false if the table has closed, or
// its server was taken out of service meanwhile.
func (t *Table) enter(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.proxy.Load(); t.mu.closed || now != s.proxy && (!now.has(s.server) || now.Announce != s.proxy.Announce) {
		s.conn.Close()
		s.server.Gauge.Release()
		return false
	}
	t.mu.byClient[s.client] = s
	t.mu.begun++
	t.mu.order.spoke(s, s.proxy.Sessions)
	s.proxy.Tally.begun.Add(1)
	s.proxy.Tally.open.Add(1)
	t.sessions.Go(s.run)
	return true
}

// makeRoom ends a session if the limit is reached, and reports whether
// another one is allowed.
func (t *Table) makeRoom(proxy *Proxy) bool {
	for t.Len() >= proxy.Sessions {
		if !t.evict(proxy) {
			return false
		}
	}
	return true
}

// evict ends the session that is first in the order, if there is one.
func (t *Table) evict(proxy *Proxy) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.mu.order.victim(clock.Now(), proxy.IdleTimeout)
	if s == nil {
		return false
	}
	s.endLocked("closed for another session")
	return true
}
