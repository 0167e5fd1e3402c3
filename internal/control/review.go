package control

import (
	"headgate/internal/config/diff"
	"headgate/internal/control/review"
	"headgate/internal/plan"
)

// review describes the change, with information that only the running process has.
func (ch *change) review(d *diff.Difference) *review.Review {
	running := &review.Running{
		Connections:      ch.open,
		SelfSigned:       selfSigned(ch.next.Plan),
		SelfSignedBefore: selfSigned(ch.next.Previous),
		Passkeys:         ch.control.passkeys,
	}
	if from := ch.cause.From; from.IsValid() && ch.next.Plan != nil {
		running.Operator, running.Refusing = from, ch.next.Plan.Refusing(from)
		if ch.next.Previous != nil {
			running.RefusingBefore = ch.next.Previous.Refusing(from)
		}
	}
	return review.Of(review.Change{
		Before: ch.next.Before, After: ch.next.Config, Difference: d, Running: running,
		Notes: ch.notes,
	})
}

// openConnections counts the open connections of ports, TCP and UDP proxies.
func (c *Control) openConnections() map[review.Address]int {
	out := map[review.Address]int{}
	p := c.current.Load()
	if p == nil {
		return out
	}
	for _, s := range c.ports.States() {
		if p.Port(s.Name) != nil && s.State != "draining" {
			out[review.Address{Kind: "ports", Name: s.Name}] += s.Connections
		}
	}
	for _, t := range p.TCPProxies() {
		out[review.Address{Kind: "tcp_proxies", Name: t.Settings.Name}] = int(t.Proxy.Roster.Counts().Open)
	}
	for _, u := range p.UDPProxies() {
		out[review.Address{Kind: "udp_proxies", Name: u.Settings.Name}] = int(u.Proxy.Tally.Counts().Open)
	}
	return out
}

// selfSigned returns the hosts by port whose clients get a self-signed certificate.
func selfSigned(p *plan.Plan) map[string][]string {
	out := map[string][]string{}
	if p == nil {
		return out
	}
	for _, port := range p.Ports() {
		if hosts := port.SelfSigned(); len(hosts) > 0 {
			out[port.Name()] = hosts
		}
	}
	return out
}
