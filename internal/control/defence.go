package control

import (
	"net/netip"
	"slices"

	"headgate/internal/bans"
	"headgate/internal/exchange"
	"headgate/internal/geo"
	"headgate/internal/lists"
	"headgate/internal/metrics"
)

// defence configures the ban engine: the rules, and the trusted proxies in front.
type defence struct {
	engine  *bans.Engine
	lists   *lists.Manager
	trusted []netip.Prefix // of the configuration in use
}

// Prepare reads the configuration.
func (d *defence) Prepare(next *Next) (Change, error) {
	ch := &defending{defence: d}
	if c := next.Config; len(c.Bans)+len(c.Lists) > 0 {
		ch.rules, ch.next = c.BanRules(), c.TrustedNetworks()
	}
	return ch, nil
}

// defending is what a configuration says.
type defending struct {
	*defence
	rules map[string]*bans.Config
	next  []netip.Prefix
}

// Commit takes it into use.
func (ch *defending) Commit() {
	ch.engine.Use(ch.rules, ch.next)
	if !slices.Equal(ch.trusted, ch.next) {
		ch.trusted = ch.next
		ch.lists.Rescreen()
	}
}

// Cancel does nothing.
func (*defending) Cancel() {}

// cutFrom ends the connections of banned clients.
func (c *Control) cutFrom(n netip.Prefix) {
	if cut := c.ports.CutFrom(n); cut > 0 {
		c.log.Info("connections of a banned client closed", "client", n.String(), "connections", cut)
	}
}

// Bans knows who is banned.
func (c *Control) Bans() *bans.Engine { return c.bans }

// BanRules returns what the rules in use have done, by name.
func (c *Control) BanRules() []bans.RuleState {
	if p := c.Plan(); p != nil {
		return p.Bans().States()
	}
	return nil
}

// Lists keeps the lists of addresses.
func (c *Control) Lists() *lists.Manager { return c.lists }

// Geo returns the states of the databases of countries and networks.
func (c *Control) Geo() []geo.State { return c.geo.States() }

// Located is what is known of where an address is.
func (c *Control) Located(a netip.Addr) (country string, asn uint32) {
	var l exchange.Locator = c.geo.Current()
	if l == nil {
		return "", 0
	}
	return l.Country(a), l.ASN(a)
}

// defenceMetrics says how lists and bans are.
func (c *Control) defenceMetrics() metrics.Defence {
	var d metrics.Defence
	d.Active, d.Made, d.Refused = c.bans.Counts()
	for _, s := range c.lists.States() {
		d.Lists = append(d.Lists, metrics.List{Name: s.Name, Up: s.State == lists.Ready, Entries: s.Entries})
	}
	return d
}
