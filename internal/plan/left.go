package plan

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/matchers"
)

// Left reports whether a route is no longer there in the plan, and how long what it
// began may go on. A port that is gone takes its own connections along: its routes
// count as there.
func (p *Plan) Left(place *exchange.Place) (gone bool, within time.Duration) {
	port := p.Port(place.Port)
	if port == nil || p.has(place) {
		return false, 0
	}
	return true, port.Drain()
}

// has reports whether a proxy has a route with this path on a port.
func (p *Plan) has(place *exchange.Place) bool {
	proxy := p.config.Proxies[place.Proxy]
	if proxy == nil || !proxy.Active || len(proxy.Ports) > 0 && !slices.Contains(proxy.Ports, place.Port) {
		return false
	}
	for _, r := range proxy.Routes {
		path, err := onePath(r.Path)
		if err == nil && matchers.Label(cmp.Or(strings.TrimSuffix(path, "/"), "/"), r.Matchers) == place.Route && r.FixedResponse == nil {
			return true
		}
	}
	return false
}
