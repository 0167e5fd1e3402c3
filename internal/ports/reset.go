package ports

import (
	"net/netip"

	"headgate/internal/config"
)

// Reset closes everything that is open on a port at once, also on its draining sockets,
// and tries at once to open it if it waits. New clients are served as before. of selects
// among a port, a TCP proxy and a UDP proxy with the same name, by the protocols that it
// accepts.
//
// It returns how many connections and sessions were closed, and the states of the port,
// one for each socket; none if it has no socket and waits for none.
func (s *Set) Reset(name string, of func(config.Protocol) bool) (closed int, stands []State) {
	meant := func(v *State) bool { return v.Name == name && of(v.Protocol) }
	for _, l := range s.listeners() {
		if v := l.state("", l.since); meant(&v) {
			closed += l.Cut()
		}
	}
	s.openWaiting(meant)
	for _, v := range s.States() {
		if meant(&v) {
			stands = append(stands, v)
		}
	}
	if len(stands) > 0 {
		s.log.Info("port reset", "port", name, "connections", closed)
	}
	return closed, stands
}

// Shed makes the open HTTP connections end with their next response, so that clients with
// kept connections connect again, to another machine if this one is drained. Connections of
// TCP proxies and sessions of UDP proxies go on.
func (s *Set) Shed() {
	for _, l := range s.listeners() {
		l.Shed()
	}
}

// CutFrom closes the connections of the clients in a network at once, and returns how
// many there were. Sessions of UDP proxies go on.
func (s *Set) CutFrom(n netip.Prefix) (cut int) {
	for _, l := range s.listeners() {
		cut += l.CutFrom(n)
	}
	return cut
}

// listeners returns those that are open and those that drain.
func (s *Set) listeners() []*listener {
	all := s.standing.Load().open
	draining := s.drains.all()
	out := make([]*listener, 0, len(all)+len(draining))
	for _, l := range all {
		if _, ok := draining[l]; !ok {
			out = append(out, l)
		}
	}
	for l := range draining {
		out = append(out, l)
	}
	return out
}

// openWaiting opens the selected waiting ports whose address is free. The process that has
// the address of the others is looked up again, because it may have changed.
func (s *Set) openWaiting(meant func(*State) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.closed {
		return
	}
	p, tried := s.current.Load(), false
	for k, before := range s.mu.waiting {
		if !meant(before) {
			continue
		}
		tried = true
		s.retryLocked(p, k, nil)
		if now := s.mu.waiting[k]; now != nil && now.Reason == before.Reason {
			now.Since = before.Since
		}
	}
	if tried {
		s.endLocked(p)
	}
}
