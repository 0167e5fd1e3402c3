package control

import (
	"cmp"
	"errors"
	"slices"
	"syscall"
	"time"

	"headgate/internal/config"
	"headgate/internal/plan"
)

// Status is how everything stands.
type Status struct {
	// Since is when the current configuration was applied, Revision its name in
	// the state directory.
	Since    time.Time `json:"since"`
	Revision string    `json:"revision"`
	// Refused is why the configuration that was tried last was refused; "" if it
	// was applied.
	Refused string `json:"refused,omitempty"`
	// Ports are the ports by name.
	Ports []PortState `json:"ports"`
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
	// Connections are open now, Accepted were taken since Since.
	Connections int    `json:"connections"`
	Accepted    uint64 `json:"accepted"`
}

type portState = PortState

// Status returns how everything stands.
func (c *Control) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Status{Since: c.mu.since, Revision: c.mu.revision}
	if c.mu.refused != nil {
		s.Refused = c.mu.refused.Error()
	}
	for _, open := range c.mu.sockets {
		s.Ports = append(s.Ports, open.state("listening"))
	}
	for _, waiting := range c.mu.waiting {
		s.Ports = append(s.Ports, *waiting)
	}
	s.Ports = append(s.Ports, c.drains.states()...)
	if p := c.current.Load(); p != nil {
		for name, port := range p.Config().Ports {
			if !port.Active {
				s.Ports = append(s.Ports, PortState{Name: name, Address: port.Address.String(), Protocol: port.Protocol, State: "inactive", Since: c.mu.since})
			}
		}
	}
	slices.SortFunc(s.Ports, func(a, b PortState) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Address, b.Address))
	})
	return s
}

func (s *socket) state(word string) PortState {
	return PortState{
		Name: s.view.Load().port.Place.Port, Address: s.Address().String(), Protocol: config.HTTP,
		State: word, Since: s.since, Connections: s.Len(), Accepted: s.Accepted(),
	}
}

// waitingState is the state of a port that cannot be opened yet.
func (c *Control) waitingState(port *plan.Port, err error) *portState {
	s := &portState{Name: port.Name(), Address: port.Address().String(), Protocol: port.Protocol(), State: "waiting", Since: time.Now()}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		s.Reason = "address_in_use"
	case errors.Is(err, syscall.EACCES):
		s.State, s.Reason = "permission_denied", "permission_denied"
	default:
		s.State, s.Reason = "error", err.Error()
	}
	s.Hint = help(err, port.Address())
	return s
}
