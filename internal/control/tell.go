package control

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"headgate/internal/config"
)

// mostLines bounds the lines that tell of one change.
const mostLines = 100

// tell logs what a change has changed, a line for each object.
func (c *Control) tell(ch *change, took time.Duration) {
	c.log.Info("configuration applied", "revision", ch.revision, "took", took.Round(time.Microsecond).String(),
		"ports", len(ch.config.Ports), "proxies", len(ch.config.Proxies))
	for _, n := range ch.notes {
		c.log.Warn("note: "+n.Error(), "object", n.Object)
	}
	if ch.before == nil {
		return
	}
	difference(ch.before.Ports, ch.config.Ports, func(name, what string) {
		attrs := []any{"port", name}
		if was, is := ch.before.Ports[name], ch.config.Ports[name]; was != nil && is != nil && was.Address != is.Address {
			attrs = append(attrs, "from", was.Address.String(), "to", is.Address.String())
		}
		c.log.Info("port "+what, attrs...)
	})
	changed := 0
	difference(ch.before.Proxies, ch.config.Proxies, func(name, what string) {
		if changed++; changed <= mostLines {
			c.log.Info("proxy "+what, "proxy", name)
		}
	})
	if changed > mostLines {
		c.log.Info("more proxies added, changed or removed", "proxies", changed-mostLines)
	}
	difference(ch.before.TCPProxies, ch.config.TCPProxies, func(name, what string) {
		c.log.Info("TCP proxy "+what, "tcp_proxy", name)
	})
	difference(ch.before.UDPProxies, ch.config.UDPProxies, func(name, what string) {
		c.log.Info("UDP proxy "+what, "udp_proxy", name)
	})
	if !reflect.DeepEqual(rest(ch.before), rest(ch.config)) {
		c.log.Info("settings changed")
	}
}

// tellRefused tells why a configuration was not applied.
func (c *Control) tellRefused(r *Refused) {
	what := "configuration refused, everything stays as it was"
	if c.current.Load() == nil {
		what = "configuration refused, nothing is served"
	}
	c.log.Error(what, "problems", max(len(r.Problems), 1))
	for _, p := range r.Problems[:min(len(r.Problems), mostLines)] {
		c.log.Error(p.Error())
	}
	if more := len(r.Problems) - mostLines; more > 0 {
		c.log.Error("more problems, headgate validate tells them all", "problems", more)
	}
	if r.Err != nil {
		c.log.Error(r.Err.Error())
	}
}

// rest is what is neither a port nor a proxy of any kind.
func rest(cfg *config.Config) config.Config {
	other := *cfg
	other.Ports, other.Proxies, other.TCPProxies, other.UDPProxies = nil, nil, nil, nil
	return other
}

// difference tells of each name whether its object was added, changed or
// removed.
func difference[T any](before, after map[string]*T, tell func(name, what string)) {
	all := maps.Clone(before)
	if all == nil {
		all = map[string]*T{}
	}
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch was, is := before[name], after[name]; {
		case was == nil:
			tell(name, "added")
		case is == nil:
			tell(name, "removed")
		case !reflect.DeepEqual(was, is):
			tell(name, "changed")
		}
	}
}
