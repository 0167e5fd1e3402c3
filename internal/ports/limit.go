package ports

import (
	"headgate/internal/clock"
	"headgate/internal/ports/listen"
)

// divideLocked divides the connection limit among the ports. The limit of one port
// is its setting; together they reserve some for connections to servers, and no port
// uses the reserve of another.
func (s *Set) divideLocked() {
	max := map[*listen.Share]int{}
	for _, l := range s.mu.open {
		if l.key.kind != udpKind {
			max[l.share] = l.view.Load().on.Connections()
		}
	}
	s.limit.Divide(connectionLimit(), max)
}

// full is called when a port has no capacity for a new connection, and when it has
// again.
func (s *Set) full(l *listener, full bool) {
	l.counter.Load().AtLimit(full)
	s.changed()
	if !full || !l.told.Due(clock.Now(), tellEvery) {
		return
	}
	hint := "raise the limit of open files of the process (LimitNOFILE in systemd, ulimit -n)"
	if max := l.view.Load().on.Connections(); max > 0 && l.Len() >= max {
		hint = "raise limits.max_connections of the port, or find out who holds the connections"
	}
	s.log.Warn("connection limit reached, idle connections are closed for new ones, or these wait", "port", l.name(), "address", l.key.address.String(), "connections", l.Len(), "hint", hint)
}
