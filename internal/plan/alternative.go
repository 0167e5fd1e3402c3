package plan

import (
	"fmt"
	"slices"

	"headgate/internal/config"
	"headgate/internal/exchange"
)

// alternativeAge is how long clients may remember an http3 port, in seconds (RFC
// 7838, section 3.1). One that does not answer costs them an attempt, after which
// they come back to the https port.
const alternativeAge = 86_400

// pairPorts finds the http3 ports that https ports announce: those with the same port
// number that clients reach at the same address.
func (c *compiler) pairPorts() {
	for _, p := range c.plan.ports {
		if p.Protocol() != config.HTTPS {
			continue
		}
		for _, other := range c.plan.ports {
			a, b := p.Address(), other.Address()
			if other.Protocol() == config.HTTP3 && a.Port() == b.Port() && (a == b || a.Addr().IsUnspecified() || b.Addr().IsUnspecified()) {
				p.quic = other
				// for routes of the previous plan, too
				p.alternative = c.env.Keep("alternative\x00"+p.Name(), func() exchange.Kept { return &keptAlternative{} }).(*keptAlternative).value()
				p.outside.Alternative = p.alternative
			}
		}
	}
}

// keptAlternative is what a port announces, across plans.
type keptAlternative struct{ exchange.Alternative }

func (k *keptAlternative) value() *exchange.Alternative { return &k.Alternative }

// Retire does nothing: it holds nothing but memory.
func (k *keptAlternative) Retire() {}

// Beside returns the http3 port that the responses of an https port announce, or nil.
func (p *Port) Beside() *Port { return p.quic }

// Advertise sets whether the port of Beside listens, and so whether it is announced.
func (p *Port) Advertise(listens bool) {
	if !listens {
		p.alternative.Set("")
		return
	}
	p.alternative.Set(fmt.Sprintf(`h3=":%d"; ma=%d`, p.quic.Address().Port(), alternativeAge))
}

// alternativeOf returns what the routes of a proxy on a port announce: the http3 port, if
// the proxy uses it, too.
func (p *Port) alternativeOf(proxy *config.Proxy) *exchange.Alternative {
	if p.quic == nil || len(proxy.Ports) > 0 && !slices.Contains(proxy.Ports, p.quic.Name()) {
		return nil
	}
	return p.alternative
}
