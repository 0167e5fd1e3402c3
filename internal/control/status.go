package control

import (
	"cmp"
	"errors"
	"slices"
	"syscall"
	"time"

	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/plan"
)

// Status is how everything stands.
type Status struct {
	// State is starting before the first configuration was applied, serving, or
	// stopping.
	State string `json:"state"`
	// Since is when the current configuration was applied, Revision its name in
	// the state directory.
	Since    time.Time `json:"since,omitzero"`
	Revision string    `json:"revision"`
	// Refused is why the configuration that was tried last was refused; nil if
	// it was applied.
	Refused *RefusedState `json:"refused,omitempty"`
	// Ports are the ports by name.
	Ports []PortState `json:"ports"`
	// TCPProxies and UDPProxies are the active ones by name.
	TCPProxies []StreamState `json:"tcp_proxies,omitempty"`
	UDPProxies []StreamState `json:"udp_proxies,omitempty"`
	// Proxies are the proxies by name, with their servers.
	Proxies []plan.ProxyState `json:"proxies"`
	// Sources are where objects come from, with what is wrong there.
	Sources []SourceState `json:"sources"`
	// Certificates are the certificates by name, where HTTPS ports use them.
	Certificates []certs.Status `json:"certificates,omitempty"`
	// Unverified are the https servers whose certificates are not checked
	// (insecure_skip_verify).
	Unverified []plan.Unverified `json:"unverified_servers,omitempty"`
}

// SourceState is how a source of objects stands.
type SourceState struct {
	// Name is the source: configuration for the configuration file.
	Name string `json:"name"`
	// State is running, or error when what it said last was refused and what it said
	// before is in force; since Since.
	State string    `json:"state"`
	Since time.Time `json:"since,omitzero"`
	// Issues are what is wrong.
	Issues []string `json:"issues,omitempty"`
}

// RefusedState is a configuration that was refused.
type RefusedState struct {
	// Since is when it was tried.
	Since time.Time `json:"since"`
	// Problems are the mistakes in it with their places, or what went wrong; the
	// first hundred.
	Problems []string `json:"problems"`
}

// PortState is how a port stands.
type PortState struct {
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

// standing is what a change leaves behind for Status, so that Status never waits
// for a change. It is not changed.
type standing struct {
	since    time.Time
	revision string
	refused  *RefusedState
	sockets  []*socket
	quics    []*quicSocket
	udps     map[*udpSocket]*plan.Port
	waiting  []PortState
}

// publishLocked shows how things stand when a change has ended.
func (c *Control) publishLocked() {
	s := &standing{since: c.mu.since, revision: c.mu.revision, refused: c.mu.refused}
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

// Status returns how everything stands.
func (c *Control) Status() Status { return c.StatusOf("") }

// StatusOf is Status with the proxy of a name only, whatever it carries, and in
// full: with the results of its servers' checks. "" is all proxies.
func (c *Control) StatusOf(proxy string) Status {
	out := Status{State: c.word(), Ports: []PortState{}, Proxies: []plan.ProxyState{}, Sources: []SourceState{}}
	s := c.standing.Load()
	if s == nil {
		return out
	}
	out.Since, out.Revision, out.Refused = s.since, s.revision, s.refused
	out.Sources = append(out.Sources, s.configuration())
	draining := c.drains.all()
	for d, since := range draining {
		out.Ports = append(out.Ports, d.state("draining", since))
	}
	for _, open := range s.sockets {
		if _, ok := draining[open]; !ok {
			out.Ports = append(out.Ports, open.state("listening", open.since))
		}
	}
	for open, port := range s.udps {
		out.Ports = append(out.Ports, open.state(port))
	}
	for _, open := range s.quics {
		if !open.Draining() {
			out.Ports = append(out.Ports, open.state("listening", open.since))
		}
	}
	out.Ports = append(out.Ports, c.quicDrains.states()...)
	out.Ports = append(out.Ports, s.waiting...)
	if p := c.current.Load(); p != nil {
		out.TCPProxies, out.UDPProxies = streamStates(p, proxy)
		out.Certificates, out.Unverified = p.Certificates(), p.Unverified()
		out.Proxies = p.Proxies(proxy)
		for name, port := range p.Config().Ports {
			if !port.Active {
				out.Ports = append(out.Ports, PortState{Name: name, Address: port.Address.String(), Protocol: port.Protocol, State: "inactive", Since: s.since})
			}
		}
	}
	slices.SortFunc(out.Ports, func(a, b PortState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address), a.Since.Compare(b.Since))
	})
	return out
}

// configuration is the configuration file as a source.
func (s *standing) configuration() SourceState {
	out := SourceState{Name: "configuration", State: "running", Since: s.since}
	if s.refused != nil {
		out.State, out.Since, out.Issues = "error", s.refused.Since, s.refused.Problems
	}
	return out
}

// word is the state of the whole.
func (c *Control) word() string {
	switch {
	case c.stopping.Load():
		return "stopping"
	case c.current.Load() == nil:
		return "starting"
	}
	return "serving"
}

func (s *socket) state(word string, since time.Time) PortState {
	on := s.view.Load().on
	return PortState{
		Name: on.Name(), Address: s.Address().String(), Protocol: on.Protocol(),
		State: word, Since: since, Connections: s.Len(), Accepted: s.Accepted(), SelfSigned: on.SelfSigned(),
	}
}

// waitingState is the state of a port that cannot be opened yet; before is that
// of the try before, or nil.
func waitingState(port *plan.Port, err error, before *PortState) *PortState {
	s := &PortState{Name: port.Name(), Address: port.Address().String(), Protocol: port.Protocol(), State: "waiting", Since: time.Now()}
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

// mostProblems bounds what is told of a configuration that was refused.
const mostProblems = 100

func refusedState(r *Refused) *RefusedState {
	s := &RefusedState{Since: time.Now()}
	for _, p := range r.Problems[:min(len(r.Problems), mostProblems)] {
		s.Problems = append(s.Problems, p.Error())
	}
	if r.Err != nil {
		s.Problems = append(s.Problems, r.Err.Error())
	}
	return s
}
