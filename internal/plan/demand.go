package plan

import (
	"crypto/tls"
	"strings"

	"headgate/internal/certs/acme"
	"headgate/internal/config"
)

// Demands gets certificates when clients connect. Its method is called in handshakes, by many
// goroutines at once.
type Demands interface {
	// Await waits until there is a certificate for the host that a client requests on a port,
	// if there is a rule for it. An error ends the handshake.
	Await(port string, hello *tls.ClientHelloInfo) error
}

// demands are the rules of a port by which hosts get certificates on demand. Which rule
// applies is decided by the host table, as for requests: a name has none.
type demands struct {
	wildcard, pattern map[string]*acme.Demand
	any               *acme.Demand
}

// setDemands gives the ports their rules.
func (c *compiler) setDemands() {
	for n, p := range c.plan.proxies {
		d := c.config.OnDemand(c.config.Proxies[c.plan.names[n]])
		if d == nil {
			continue
		}
		for i, port := range c.plan.ports {
			if p.members == nil || p.members[i] == nil {
				continue
			}
			if port.demands == nil {
				port.demands = &demands{wildcard: map[string]*acme.Demand{}, pattern: map[string]*acme.Demand{}}
			}
			port.demands.add(p, d)
		}
	}
}

// add adds the rule of a proxy for its hosts.
func (t *demands) add(p *proxy, d *acme.Demand) {
	if len(p.virtual) == 0 {
		t.any = d
	}
	for _, h := range p.virtual {
		switch h.Class {
		case config.HostWildcard:
			t.wildcard[h.Name] = d
		case config.HostRegex:
			t.pattern[h.Regex.String()] = d
		}
	}
}

// find returns the rule for a host in lower case and ASCII form, nil if there is none.
func (t *demands) find(h *hosts, name string) *acme.Demand {
	if h.exact[name] != nil {
		return nil
	}
	if _, rest, dotted := strings.Cut(name, "."); dotted && h.wildcard[rest] != nil {
		return t.wildcard[rest]
	}
	matched := false
	for i := range h.patterns {
		if regex := h.patterns[i].regex; regex.MatchString(name) {
			if d := t.pattern[regex.String()]; d != nil {
				return d
			}
			matched = true
		}
	}
	if matched {
		return nil
	}
	return t.any
}

// demand returns the rule for a host on the port, nil if there is none.
func (p *Port) demand(host string) *acme.Demand {
	if p.demands == nil {
		return nil
	}
	return p.demands.find(&p.hosts, host)
}

// OnDemand returns the rule by which a host gets a certificate on demand on a port, nil if
// there is none. Without a port it is the rule of any port with TLS. The host is in lower
// case and ASCII form.
func (p *Plan) OnDemand(port, host string) *acme.Demand {
	if p == nil {
		return nil
	}
	for _, at := range p.ports {
		if at.demands == nil || !at.Secure() || port != "" && port != at.Name() {
			continue
		}
		if d := at.demand(host); d != nil {
			return d
		}
	}
	return nil
}
