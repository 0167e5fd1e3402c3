package admin

import (
	"net/netip"
	"time"
)

// How long the listener waits for the next try when its address is busy.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 30 * time.Second
)

// waitLocked makes the listener wait for an address, and try it again after a while;
// the zero address ends the wait.
func (s *Server) waitLocked(address netip.AddrPort, after time.Duration) {
	s.mu.waiting = address
	if s.mu.retry != nil {
		s.mu.retry.Stop()
		s.mu.retry = nil
	}
	if address.IsValid() && !s.mu.closed {
		s.mu.retry = time.AfterFunc(after, func() { s.try(address, after) })
	}
}

// try opens the address if it is still waited for.
func (s *Server) try(address netip.AddrPort, waited time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed || s.mu.waiting != address || s.mu.open != nil {
		return
	}
	l, err := s.listenLocked(address, s.mu.tls)
	if err != nil {
		s.waitLocked(address, min(2*waited, s.last))
		return
	}
	s.waitLocked(netip.AddrPort{}, 0)
	s.serveLocked(l)
	s.log.Info("admin listener opened", "address", address.String())
}
