package control

import (
	"headgate/internal/bans"
	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/gate"
	"headgate/internal/lists"
	"headgate/internal/ports"
)

// Watcher hears that something may stand otherwise than before, without a change of
// the configuration. Its methods are called with locks held, and Servers on the way of
// a request: they must only take a note.
type Watcher interface {
	// Servers tells of the servers of a proxy.
	Servers(proxy string)
	// Ports tells of the ports.
	Ports()
	// Held tells that an operator has drained, disabled or enabled a server.
	Held(HeldServer)
	// Order tells of a certificate by ACME. The record is not changed.
	Order(*acme.Record)
	// Ban tells of a client that was banned, or is no longer.
	Ban(bans.Event)
	// List tells of a list of addresses that was loaded, or could not be.
	List(lists.Event)
	// Person reports somebody who has signed in or out at applications, or tried to.
	Person(gate.Event)
	// Discovery tells of the providers and their issues.
	Discovery()
}

// unwatched is what hears nothing.
type unwatched struct{}

func (unwatched) Servers(string)     {}
func (unwatched) Ports()             {}
func (unwatched) Held(HeldServer)    {}
func (unwatched) Order(*acme.Record) {}
func (unwatched) Ban(bans.Event)     {}
func (unwatched) List(lists.Event)   {}
func (unwatched) Person(gate.Event)  {}
func (unwatched) Discovery()         {}

// Ports returns how the ports stand that listen, wait or drain, in no order.
func (c *Control) Ports() []ports.State { return c.ports.States() }

// Streams returns how the TCP and UDP proxies of a name stand, those of all for "".
func (c *Control) Streams(name string) []StreamState {
	p := c.current.Load()
	if p == nil {
		return nil
	}
	tcp, udp := streamStates(p, name)
	return append(tcp, udp...)
}

// Certificates returns how the certificates stand that come from files, and those that
// come by ACME.
func (c *Control) Certificates() ([]certs.Status, []*acme.Record) {
	var own []certs.Status
	if p := c.current.Load(); p != nil {
		own = p.Certificates()
	}
	return own, c.issuer.manager.Records()
}
