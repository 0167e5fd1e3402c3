package control

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"headgate/internal/config"
)

// tell logs what a change has changed, a line for each object.
func (c *Control) tell(ch *change, took time.Duration) {
	c.log.Info("configuration applied", "revision", ch.revision, "took", took.Round(time.Microsecond).String(),
		"ports", len(ch.config.Ports), "proxies", len(ch.config.Proxies))
	if ch.before == nil {
		for _, name := range slices.Sorted(maps.Keys(ch.sockets.sockets)) {
			c.log.Info("port opened", "port", ch.sockets.sockets[name].name, "address", name)
		}
		return
	}
	difference(ch.before.Ports, ch.config.Ports, func(name, what string) {
		attrs := []any{"port", name}
		if was, is := ch.before.Ports[name], ch.config.Ports[name]; was != nil && is != nil && was.Address != is.Address {
			attrs = append(attrs, "from", was.Address.String(), "to", is.Address.String())
		}
		c.log.Info("port "+what, attrs...)
	})
	difference(ch.before.Proxies, ch.config.Proxies, func(name, what string) {
		c.log.Info("proxy "+what, "proxy", name)
	})
	if !reflect.DeepEqual(rest(ch.before), rest(ch.config)) {
		c.log.Info("settings changed")
	}
}

// rest is what is neither a port nor a proxy.
func rest(cfg *config.Config) config.Config {
	other := *cfg
	other.Ports, other.Proxies = nil, nil
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
