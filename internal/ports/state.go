package ports

import (
	"cmp"
	"errors"
	"maps"
	"slices"
	"syscall"
	"time"

	"headgate/internal/config"
	"headgate/internal/plan"
)

// State is the state of a port.
type State struct {
	// Name is the port's name. The ports of a range in the same state are one.
	Name string `json:"name" required:"true"`
	// Address is where the port listens, such as 0.0.0.0:5000-5100 for a range.
	Address string `json:"address" required:"true"`
	// Protocol is http, https, http3, tcp or udp.
	Protocol config.Protocol `json:"protocol" required:"true"`
	// Origin is where the port comes from: "shop.yaml:12:3". It is absent for one that
	// drains.
	Origin string `json:"origin,omitempty"`
	// State is listening, draining, waiting, permission_denied, error, inactive, or
	// elsewhere for a port that only other nodes open.
	State string `json:"state" required:"true"`
	// Since is when the state began.
	Since time.Time `json:"since" required:"true"`
	// Nodes are the nodes that open the port if this one does not.
	Nodes []string `json:"nodes,omitempty"`
	// Reason is why the port does not listen, in one word.
	Reason string `json:"reason,omitempty"`
	// Hint is what to do.
	Hint string `json:"hint,omitempty"`
	// Connections is the number of open connections, or of sessions for UDP.
	Connections int `json:"connections" required:"true"`
	// Accepted is the number of connections or sessions since the socket was opened.
	Accepted uint64 `json:"accepted" required:"true"`
	// AtLimit says that there are as many connections as there may be, and that more
	// wait or are refused.
	AtLimit bool `json:"at_limit,omitempty"`
	// Holds says of a port that drains that its address is not free yet for another
	// process: that of HTTP/3 and UDP has to wait for its last connection.
	Holds bool `json:"holds_address,omitempty"`
	// SelfSigned are the hosts whose clients get a self-signed certificate,
	// which browsers reject; "*" means all.
	SelfSigned []string `json:"self_signed,omitempty"`
}

// standing is what a change leaves for States, so that States never waits for a
// change. It is immutable.
type standing struct {
	open    []*listener
	waiting []State
}

// publishLocked publishes the states at the end of a change.
func (s *Set) publishLocked() {
	now := &standing{open: slices.Collect(maps.Values(s.mu.open))}
	for _, waiting := range s.mu.waiting {
		now.waiting = append(now.waiting, *waiting)
	}
	s.standing.Store(now)
	s.changed()
}

// States returns the states of the ports that listen, wait or drain, in no
// order.
func (s *Set) States() []State {
	now := s.standing.Load()
	out := slices.Clone(now.waiting)
	draining := s.drains.all()
	for l, since := range draining {
		s := l.state("draining", since)
		select {
		case <-l.Released():
		default:
			s.Holds = true
		}
		out = append(out, s)
	}
	for _, l := range now.open {
		if _, ok := draining[l]; !ok {
			out = append(out, l.state("listening", l.since))
		}
	}
	return joinRanges(out)
}

func (l *listener) state(word string, since time.Time) State {
	on := l.view.Load().on
	return State{
		Name: on.Name(), Address: l.key.address.String(), Protocol: on.Protocol(), State: word, Since: since,
		Connections: l.Len(), Accepted: l.Accepted(), AtLimit: l.share.Full(), SelfSigned: on.SelfSigned(),
	}
}

// waitingState is the state of a port that cannot be opened yet; before is that
// of the try before, or nil.
func waitingState(port *plan.Port, err error, before *State) *State {
	s := &State{Name: port.Name(), Address: port.Address().String(), Protocol: port.Protocol(), State: "waiting", Since: time.Now()}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		s.Reason = "address_in_use"
	case errors.Is(err, syscall.EACCES):
		s.State, s.Reason = "permission_denied", "permission_denied"
	default:
		s.State, s.Reason = "error", err.Error()
	}
	if before != nil && before.Reason == s.Reason {
		s.Since, s.Hint = before.Since, before.Hint // finding the process that has an address is slow
		return s
	}
	s.Hint = help(err, port)
	return s
}

// tellWaiting logs which ports wait that did not wait before.
func (s *Set) tellWaiting(before map[key]*State) {
	var told []State
	for _, k := range slices.SortedFunc(maps.Keys(s.mu.waiting), compareKeys) {
		if before[k] == nil {
			told = append(told, *s.mu.waiting[k])
		}
	}
	for _, w := range joinRanges(told) {
		s.log.Warn("cannot bind port, retrying; other ports are serving", "port", w.Name, "address", w.place(), "reason", w.Reason, "hint", w.Hint)
	}
}

// tellOpened logs which ports were opened at the start, by address.
func (s *Set) tellOpened(opened map[key]*listener) {
	var told []State
	for _, k := range slices.SortedFunc(maps.Keys(opened), compareKeys) {
		told = append(told, opened[k].state("", time.Time{}))
	}
	for _, o := range joinRanges(told) {
		s.log.Info("port opened", "port", o.Name, "address", o.Address, "protocol", o.Protocol)
	}
}

// place returns the address, with udp/ in front for UDP.
func (s *State) place() string {
	if s.Protocol == config.HTTP3 || s.Protocol == config.UDP {
		return "udp/" + s.Address
	}
	return s.Address
}

func compareKeys(a, b key) int {
	return cmp.Or(a.address.Compare(b.address), cmp.Compare(a.kind, b.kind))
}
