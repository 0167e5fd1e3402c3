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

// State is how a port stands.
type State struct {
	// Name is the port's name, Address where it listens.
	Name     string          `json:"name"`
	Address  string          `json:"address"`
	Protocol config.Protocol `json:"protocol"`
	// State is listening, draining, waiting, permission_denied, error or
	// inactive, since Since.
	State string    `json:"state"`
	Since time.Time `json:"since"`
	// Reason is the word for why the port does not listen, Hint what helps.
	Reason string `json:"reason,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Connections are open now, Accepted were taken since the socket was opened.
	// Of UDP they are sessions.
	Connections int    `json:"connections"`
	Accepted    uint64 `json:"accepted"`
	// SelfSigned are the hosts whose clients get a self-signed certificate,
	// which browsers refuse; "*" stands for all.
	SelfSigned []string `json:"self_signed,omitempty"`
}

// standing is what a change leaves behind for States, so that States never waits
// for a change. It is not changed.
type standing struct {
	sockets []*socket
	quics   []*quicSocket
	udps    map[*udpSocket]*plan.Port
	waiting []State
}

// publishLocked shows how things stand when a change has ended.
func (c *Set) publishLocked() {
	s := &standing{}
	for _, open := range c.mu.sockets {
		s.sockets = append(s.sockets, open)
	}
	s.udps = make(map[*udpSocket]*plan.Port, len(c.mu.udps))
	for _, open := range c.mu.udps {
		s.udps[open] = open.port
	}
	for _, open := range c.mu.quics {
		s.quics = append(s.quics, open)
	}
	for _, waiting := range c.mu.waiting {
		s.waiting = append(s.waiting, *waiting)
	}
	c.standing.Store(s)
}

// States returns how the ports stand that listen, wait or drain, in no order.
func (c *Set) States() []State {
	var out []State
	s := c.standing.Load()
	draining := c.drains.all()
	for d, since := range draining {
		out = append(out, d.state("draining", since))
	}
	for _, open := range s.sockets {
		if _, ok := draining[open]; !ok {
			out = append(out, open.state("listening", open.since))
		}
	}
	for open, port := range s.udps {
		out = append(out, open.state(port))
	}
	for _, open := range s.quics {
		if !open.Draining() {
			out = append(out, open.state("listening", open.since))
		}
	}
	out = append(out, c.quicDrains.states()...)
	return append(out, s.waiting...)
}

func (s *socket) state(word string, since time.Time) State {
	on := s.view.Load().on
	return State{
		Name: on.Name(), Address: s.Address().String(), Protocol: on.Protocol(),
		State: word, Since: since, Connections: s.Len(), Accepted: s.Accepted(), SelfSigned: on.SelfSigned(),
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
		s.Since, s.Hint = before.Since, before.Hint // to find out who has an address takes its time
		return s
	}
	s.Hint = help(err, port)
	return s
}

// tell logs which ports were opened at the start, by address, and which wait that
// did not wait before.
func (c *Set) tell(ch *Change) {
	if ch.previous == nil {
		c.tellOpened(ch.opened)
	}
	for _, address := range slices.Sorted(maps.Keys(ch.opened.waiting)) {
		if w := ch.opened.waiting[address]; !ch.waited[address] {
			c.log.Warn("port waits, all others are served", "port", w.Name, "address", address, "reason", w.Reason, "hint", w.Hint)
		}
	}
}

// tellOpened tells of the ports that were opened at the start, by address.
func (c *Set) tellOpened(o *opened) {
	var ports []*plan.Port
	for _, s := range o.sockets {
		ports = append(ports, s.view.Load().on)
	}
	for _, s := range o.quics {
		ports = append(ports, s.view.Load().on)
	}
	for _, s := range o.udps {
		ports = append(ports, s.port)
	}
	slices.SortFunc(ports, func(a, b *plan.Port) int {
		return cmp.Or(a.Address().Compare(b.Address()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, port := range ports {
		c.log.Info("port opened", "port", port.Name(), "address", port.Address().String(), "protocol", port.Protocol())
	}
}
