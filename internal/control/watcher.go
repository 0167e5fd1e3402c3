package control

import (
	"headgate/internal/bans"
	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/gate"
	"headgate/internal/lists"
	"headgate/internal/ports"
)

// Watcher is notified of state changes outside of configuration changes. Its methods are
// called with locks held, and Servers on the path of requests: they must only record the
// notification.
type Watcher interface {
	// Servers reports a change of the servers of a proxy.
	Servers(proxy string)
	// Ports reports a change of the ports.
	Ports()
	// Held reports that an operator has drained, disabled or enabled a server.
	Held(HeldServer)
	// Split reports that the share of a candidate has changed, or who decides about it.
	Split(SplitState)
	// Order reports a change of an ACME certificate. The record is immutable.
	Order(*acme.Record)
	// DemandLimited reports that a limit of certificates on demand was reached.
	DemandLimited(proxy string, l *acme.Limited)
	// ECHRecords reports HTTPS records that could not be written to the DNS.
	ECHRecords(ECHFailure)
	// Ban reports that a client was banned, or is no longer.
	Ban(bans.Event)
	// List reports that a list of addresses was loaded, or could not be.
	List(lists.Event)
	// Person reports a person who has signed in or out at applications, or tried to.
	Person(gate.Event)
	// Node reports what happened to a machine or to the shared store.
	Node(NodeEvent)
	// Discovery reports a change of the providers or their issues.
	Discovery()
}

// unwatched ignores all notifications.
type unwatched struct{}

func (unwatched) Servers(string)                      {}
func (unwatched) Ports()                              {}
func (unwatched) Held(HeldServer)                     {}
func (unwatched) Split(SplitState)                    {}
func (unwatched) Order(*acme.Record)                  {}
func (unwatched) DemandLimited(string, *acme.Limited) {}
func (unwatched) ECHRecords(ECHFailure)               {}
func (unwatched) Ban(bans.Event)                      {}
func (unwatched) List(lists.Event)                    {}
func (unwatched) Person(gate.Event)                   {}
func (unwatched) Node(NodeEvent)                      {}
func (unwatched) Discovery()                          {}

// Ports returns the states of the ports that listen, wait or drain, in no order.
func (c *Control) Ports() []ports.State { return c.ports.States() }

// Streams returns the states of the TCP and UDP proxies of a name, those of all for "".
func (c *Control) Streams(name string) []StreamState {
	p := c.current.Load()
	if p == nil {
		return nil
	}
	tcp, udp := streamStates(p, name)
	return append(tcp, udp...)
}

// Certificates returns the states of the certificates from files, and of ACME certificates.
func (c *Control) Certificates() ([]certs.Status, []*acme.Record) {
	var own []certs.Status
	if p := c.current.Load(); p != nil {
		own = p.Certificates()
	}
	return own, c.issuer.manager.Records()
}
