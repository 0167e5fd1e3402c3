package udp

import (
	"errors"
	"net"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"

	"headgate/internal/clock"
	"headgate/internal/exchange"
	"headgate/internal/proto/proxyproto"
)

// session is the datagrams of one client address.
type session struct {
	// constant
	table  *Table
	proxy  *Proxy // that it started with
	server *Server
	client netip.AddrPort // as the socket has it
	conn   *net.UDPConn   // connected to the server
	link   link

	last           atomic.Int64 // when something came, from either side
	answered       atomic.Bool  // by the server
	received, sent atomic.Int64

	// guarded by table.mu
	before, after *session
	proven        bool
	ended         bool
	told          exchange.Session
}

func newSession(t *Table, p *Proxy, server *Server, conn *net.UDPConn, client netip.AddrPort, local []byte) *session {
	s := &session{table: t, proxy: p, server: server, client: client, conn: conn}
	s.link.open(t.socket, conn, client, local)
	if p.Announce {
		s.link.announce = proxyproto.AppendDatagram(nil, client, t.socket.destination(local))
	}
	s.last.Store(clock.Now())
	plain := netip.AddrPortFrom(client.Addr().Unmap().WithZone(""), client.Port())
	s.told = exchange.Session{
		Protocol: "udp", Proxy: p.Name, Client: plain, Peer: plain, Server: server.Address, Attempts: 1,
		Start: exchange.Now(), Connected: exchange.Now(),
	}
	return s
}

// run passes the server's datagrams to the client, until nothing came for the idle
// time or the session was ended.
func (s *session) run() {
	idle := s.proxy.IdleTimeout
	s.conn.SetReadDeadline(clock.At(s.last.Load() + int64(idle)))
	for {
		err := s.link.receive(s.answer)
		switch {
		case err == nil:
			continue
		case errors.Is(err, os.ErrDeadlineExceeded):
			until := s.last.Load() + int64(idle)
			if until > clock.Now() {
				s.conn.SetReadDeadline(clock.At(until))
				continue
			}
			s.end("nothing came for the idle time")
		case unreachable(err):
			s.fail(err)
		case passes(err):
			continue
		default:
			s.end(err.Error())
		}
		return
	}
}

// answer passes one datagram of the server to the client.
func (s *session) answer(p []byte) {
	s.last.Store(clock.Now())
	if !s.answered.Swap(true) {
		s.server.count(exchange.None, nil)
	}
	if s.link.answer(p) == nil {
		s.sent.Add(int64(len(p)))
		s.proxy.Tally.down.Add(uint64(len(p)))
	}
}

// unreachable reports whether an error is that of a server that is not there: an
// ICMP message has come for an earlier datagram.
func unreachable(err error) bool {
	return errors.Is(err, syscall.ECONNREFUSED) || errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH)
}

// passes reports whether an error is only about one lost datagram: one that is too large
// for a part of the network path, or that a host on it rejects. Later ones may arrive.
func passes(err error) bool {
	return errors.Is(err, syscall.EMSGSIZE) || errors.Is(err, syscall.EPROTO) || errors.Is(err, syscall.EOPNOTSUPP)
}

// fail ends a session whose server is not there.
func (s *session) fail(err error) {
	s.table.mu.Lock()
	if !s.ended {
		s.told.Reason = exchange.UpstreamRefused
		s.server.count(exchange.UpstreamRefused, err)
		s.proxy.Tally.failed(exchange.UpstreamRefused)
	}
	s.endLocked(err.Error())
	s.table.mu.Unlock()
}

func (s *session) end(cause string) {
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	s.endLocked(cause)
}

// endLocked removes the session from its table and closes its socket, which ends
// run.
func (s *session) endLocked(cause string) {
	if s.ended {
		return
	}
	s.ended = true
	if t := s.table; t.mu.byClient[s.client] == s {
		delete(t.mu.byClient, s.client)
		t.mu.order.remove(s)
	}
	s.conn.Close() // waits for an answer that is on its way, which waits for nothing
	s.server.Gauge.Release()
	s.proxy.Tally.open.Add(-1)
	s.told.Cause = cause
	s.told.End = exchange.Now()
	s.told.Received, s.told.Sent = s.received.Load(), s.sent.Load()
	if s.proxy.Record != nil {
		s.proxy.Record(&s.told)
	}
}
