package plan

import (
	"net"

	"headgate/internal/bans"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/clientip"
	"headgate/internal/netconn"
)

// banRules compiles the rules by which clients are refused.
func (c *compiler) banRules() {
	rules, err := bans.Compile(c.config.BanRules(), c.house.Bans, c.env)
	if err != nil {
		c.report.Root().Field("bans").Problem(err.Error(), "")
		return
	}
	c.bans, c.plan.bans = rules, rules
}

// Bans returns the rules by which clients are refused; nil without any.
func (p *Plan) Bans() *bans.Rules { return p.bans }

// banFilter adds the filter that rejects banned clients, and counts the others. It is
// shared by the routes that trust the same proxies in front.
func (c *compiler) banFilter(b *body, f *config.Features) error {
	if c.bans == nil {
		return nil
	}
	source := sourceOf(f.ClientIP)
	filter, err := c.once(memoKey{"bans", source}, func() (exchange.Filter, error) { return c.bans.Filter(source), nil })
	if err == nil {
		c.shared.lists.share(filter)
	}
	return err
}

// sourceOf returns whose word an address of a client is that these settings found.
func sourceOf(c *clientip.Config) bans.Source {
	if c == nil || c.Off() || len(c.Trusted) == 0 && len(c.CDN) == 0 {
		return bans.Peer
	}
	return bans.SourceOf(c)
}

// Rejects reports whether a new connection of a client is to be closed, before anything
// is spoken on it.
func (p *Port) Rejects(nc net.Conn) bool {
	return p.bans != nil && p.RejectsFrom(nc.RemoteAddr())
}

// RejectsFrom is Rejects for a client of QUIC.
func (p *Port) RejectsFrom(client net.Addr) bool {
	return p.bans != nil && p.bans.Rejects(netconn.AddressOf(client))
}

// banOutside has the ports look at requests that no route takes. Who their clients are
// is what the defaults say.
func (c *compiler) banOutside() {
	if c.bans == nil || len(c.plan.ports) == 0 {
		return
	}
	settings := c.config.Defaults.ClientIP
	lists := clientip.Lists{Refresh: c.config.CDNNetworks, Values: c.house.Values, Kept: c.house.Inputs.List}
	clientIP, err := clientip.Compile(settings, lists, c.env)
	if err != nil {
		return // the routes report it
	}
	banned := c.bans.Outside(sourceOf(settings), clientIP)
	for _, port := range c.plan.ports {
		port.banned = banned
		port.bans = c.bans.Engine()
	}
}

// refusedBefore notes the answer to a request that no route takes: that of a banned
// client, or the one that the match gives.
func (e *Explanation) refusedBefore(port *Port, ex *exchange.Exchange, answer *exchange.Answer) {
	if port.banned != nil {
		if banned := port.banned(ex, answer); banned != answer {
			e.refused("bans", banned)
			return
		}
		e.Notes = append(e.Notes, ex.Notes...)
	}
	e.refused("match", answer)
}
