package api

import (
	"fmt"
	"net/http"

	"headgate/internal/config"
	"headgate/internal/event"
	"headgate/internal/ports"
)

// portRows are the rows of what operators do to open ports at run time.
func (a *API) portRows() []row {
	reset := func(kind, about string) row {
		return row{method: http.MethodPost, path: "/" + kind + "/{name}/reset", access: editor, area: areaPorts, in: of[resetInput](), out: of[resetBody](), dry: true, may: []int{409}, about: about,
			handle: withBody(func(c *call, in *resetInput) (any, error) { return a.resetPort(c, in, config.KindOf(kind)) })}
	}
	return []row{
		reset("ports", "Closes all connections of a port immediately, including those of draining sockets. If the port is waiting for its address, retries now. New connections are accepted as before. The configuration does not change."),
		reset("tcp_proxies", "Closes all connections of the address of a TCP proxy, including those of proxies that share it. If it is waiting for the address, retries now."),
		reset("udp_proxies", "Ends all sessions of a UDP proxy. If it is waiting for its address, retries now."),
	}
}

// resetInput is the body of a reset.
type resetInput struct {
	// Why is the reason for the reset, for the event and the audit log.
	Why string `json:"why,omitempty" max:"1024"`
}

// resetBody is the result of a reset.
type resetBody struct {
	// Port is the name of the port, or of the TCP or UDP proxy.
	Port string `json:"port"`
	// Closed is how many connections or sessions were closed, or would be in a dry run.
	Closed int `json:"closed"`
	// State is the state after the reset: listening, draining, waiting, permission_denied
	// or error.
	State string `json:"state"`
	// Address is the configured address.
	Address string `json:"address"`
	// Reason is a keyword for why it does not listen.
	Reason string `json:"reason,omitempty"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
}

// resetPort closes what is open on a port.
func (a *API) resetPort(c *call, in *resetInput, k *config.Kind) (any, error) {
	cfg, err := a.running()
	if err != nil {
		return nil, err
	}
	var closed int
	var stands []ports.State
	if c.dryRun {
		stands = a.Control.PortStands(k.Name, c.name())
		for _, s := range stands {
			closed += s.Connections
		}
	} else {
		closed, stands = a.Control.ResetPort(k.Name, c.name())
	}
	if len(stands) == 0 {
		if k.Find(cfg, c.name()) == nil {
			return nil, noObject(k)
		}
		return nil, refuse("not_open", "", "the "+k.Noun+" has no socket", "an inactive one has none; for a TCP proxy with names, reset the port that it uses")
	}
	b := resetBody{Port: c.name(), Closed: closed}
	for _, s := range stands { // one that is wanted, before those that drain
		if b.State == "" || s.State != "draining" {
			b.State, b.Address, b.Reason, b.Hint = s.State, s.Address, s.Reason, s.Hint
		}
	}
	if !c.dryRun {
		a.recordReset(c, in, k, &b)
	}
	return b, nil
}

// recordReset records a reset in the audit log and sends an event.
func (a *API) recordReset(c *call, in *resetInput, k *config.Kind, b *resetBody) {
	what := fmt.Sprintf("connections closed: %d", b.Closed)
	if in.Why != "" {
		what = in.Why + "; " + what
	}
	c.note("port.reset", k.Name+"/"+b.Port, what)
	a.Events.Send(event.PortReset{
		Port: event.Port{Port: b.Port, Address: b.Address, Reason: b.Reason, Hint: b.Hint}, Closed: b.Closed, Who: c.who.Name, Why: in.Why,
	})
}
