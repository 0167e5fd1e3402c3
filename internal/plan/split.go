package plan

import (
	"errors"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/server/split"
	"headgate/internal/upstream"
)

// splitServers opens the source of a route with two groups of servers.
func (c *compiler) splitServers(b *body) error {
	stable, err := c.groupServers(b, false)
	if err != nil {
		return err
	}
	candidate, err := c.groupServers(b, true)
	if err != nil {
		return err
	}
	key, _ := split.ParseKey(b.settings.Split.Key)
	start := b.settings.Split.Program().Start
	b.servers = stable
	b.split = upstream.NewSplit(stable, candidate, upstream.SplitPolicy{
		Proxy: b.proxy.Name, Sticky: b.settings.Split.Sticky, Key: key, AffinityKey: c.affinityKey(), Start: start, Live: c.liveSplit(b),
	})
	b.source = b.split
	return nil
}

// groupServers opens the servers of a group, as those of a route of their own. The candidate
// does not fail open: the stable servers get its requests.
func (c *compiler) groupServers(b *body, candidate bool) (*upstream.Servers, error) {
	settings := *b.settings
	settings.Servers = nil
	var at []int
	for i, s := range b.settings.Servers {
		if s.IsCandidate() == candidate {
			settings.Servers, at = append(settings.Servers, s), append(at, i)
		}
	}
	settings.FailOpen = settings.FailOpen && !candidate
	as := &body{proxy: b.proxy, settings: &settings, number: b.number, prefix: b.prefix, label: b.label}
	err := c.servers(as)
	if fault := (*serverFault)(nil); errors.As(err, &fault) {
		fault.server = at[fault.server]
	}
	return as.servers, err
}

// liveSplit returns the run-time side of a split, which outlives changes of its settings.
func (c *compiler) liveSplit(b *body) *split.Live {
	of := struct{ proxy, route string }{b.proxy.Name, b.label}
	return exchange.Keep(c.env, "split", of, split.NewLive)
}

// splitFilter adds what decides about the group of a request.
func (c *compiler) splitFilter(b *body, _ *config.Features) error {
	if b.split != nil {
		c.shared.lists.add(b.split.Filter())
	}
	return nil
}

// list returns the servers of a route, of both groups of a split.
func (b *body) list() []*upstream.Server {
	if b.split != nil {
		return b.split.List()
	}
	return b.servers.List()
}

// Split is a split of a route.
type Split struct {
	// Proxy and Route are the names of the proxy, and of the route with its matchers.
	Proxy, Route string
	// Config are its settings.
	Config *split.Config
	// Live is its run-time side.
	Live *split.Live
	// Active is whether the proxy is active.
	Active bool

	body *body
}

// Splits returns all splits, by proxy, in the order of the routes.
func (p *Plan) Splits() (all []Split) {
	for _, proxy := range p.proxies {
		for _, b := range proxy.bodies {
			if b.split != nil {
				all = append(all, Split{Proxy: b.proxy.Name, Route: b.label, Config: b.settings.Split, Live: b.split.Live(), Active: b.proxy.Active, body: b})
			}
		}
	}
	return all
}
