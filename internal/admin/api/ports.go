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
		reset("ports", "Closes all open connections of a port at once, those of sockets that drain too, and tries at once to open it if it waits. New clients are served as before. No document is touched."),
		reset("tcp_proxies", "Closes all connections of a TCP proxy that has an address of its own, and tries at once to open that if it waits."),
		reset("udp_proxies", "Ends all sessions of a UDP proxy, and tries at once to open its address if it waits."),
	}
}

// resetInput says why.
type resetInput struct {
	// Why is what it is for. The event and the audit tell it.
	Why string `json:"why,omitempty" max:"1024"`
}

// resetBody is what became of a reset.
type resetBody struct {
	// Port is the name of the port, or of the TCP or UDP proxy.
	Port string `json:"port"`
	// Closed is how many connections or sessions were closed, or would be in a dry run.
	Closed int `json:"closed"`
	// State is how the port stands now: listening, draining, waiting, permission_denied or
	// error.
	State string `json:"state"`
	// Address is where it listens, or wants to.
	Address string `json:"address"`
	// Reason is why it does not listen, in one word.
	Reason string `json:"reason,omitempty"`
	// Hint is what helps.
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
		return nil, refuse("not_open", "", "the "+k.Noun+" has no socket of its own, and waits for none", "one that is not active has none; of a TCP proxy with names, reset the port that it uses")
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

// recordReset keeps in the audit and tells by an event what was done.
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
