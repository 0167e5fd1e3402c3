package plan

import (
	"net/netip"

	"headgate/internal/exchange"
)

// Refusing returns the routes, by proxy, whose ip_filter rejects a direct client with an
// address: the labels of the routes, each once. Routes that are closed otherwise are not
// included.
func (p *Plan) Refusing(client netip.Addr) map[string][]string {
	out := map[string][]string{}
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Remote: netip.AddrPortFrom(client, 0)}, nil)
	ex.ClientIP, ex.Rehearsal = client, true
	if len(p.ports) > 0 {
		ex.Locator = p.ports[0].locator
	}
	for _, proxy := range p.proxies {
		for _, b := range proxy.bodies {
			for _, f := range b.filters {
				if f.Name == "ip_filter" && f.Request(ex) != nil {
					out[proxy.settings.Name] = append(out[proxy.settings.Name], b.label)
				}
			}
		}
	}
	return out
}
