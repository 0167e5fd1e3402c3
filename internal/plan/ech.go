package plan

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/certs"
	"headgate/internal/certs/acme"
	"headgate/internal/config"
)

// hideNames gives a policy the keys of Encrypted Client Hello of a port. It returns what
// identifies them.
func (c *compiler) hideNames(port *Port, policy *certs.Policy) string {
	if c.house.ECH == nil {
		return "without ECH"
	}
	ring := c.house.ECH(port.publicName())
	policy.ECH = ring.Accepted
	return fmt.Sprintf("ECH %p", ring)
}

// logUncoveredPublic logs a public name without a certificate.
func (c *compiler) logUncoveredPublic(port *Port) {
	name := port.publicName()
	if name == "" || port.tls.set.Has(name) || isAwaited(c.awaited(), name) {
		return
	}
	if !slices.Contains(port.uncovered, name) {
		port.uncovered = append(port.uncovered, name)
	}
	c.warn("the public name of Encrypted Client Hello has no certificate: clients with an outdated key cannot connect", "port", port.Name(), "public_name", name,
		"remedy", "add a certificate for it, or a proxy with this virtual host and acme")
}

// isAwaited reports whether ACME gets a certificate for a name, or for its wildcard.
func isAwaited(awaited map[string]bool, name string) bool {
	_, parent, _ := strings.Cut(name, ".")
	return awaited[name] || awaited["*."+parent]
}

// Hidden is a port with Encrypted Client Hello, together with the http3 port that has its
// number and its keys.
type Hidden struct {
	// Port and PublicName are the names, Number is the number of the port.
	Port, PublicName string
	Number           uint16
	// DNS is the ACME entry whose provider writes the HTTPS records, "" if none does.
	DNS string
	// Covered is whether a certificate has the public name.
	Covered bool
	// Beside is the http3 port with the number that has no Encrypted Client Hello, or another
	// public name; "" if there is none.
	Beside string

	on, joined *Port // joined is the http3 port, or nil
}

// HiddenHost is a host whose clients can hide its name.
type HiddenHost struct {
	// Name is the host, or a wildcard.
	Name string
	// Protocols are those of the host on the port as ALPN has them, the preferred first.
	Protocols []string
}

// Hidden returns the active ports with Encrypted Client Hello, by name.
func (p *Plan) Hidden() []Hidden {
	var all []Hidden
	joined := map[*Port]bool{}
	for _, port := range p.ports {
		if port.quic != nil && port.publicName() != "" && port.quic.publicName() == port.publicName() {
			joined[port.quic] = true
		}
	}
	for _, port := range p.ports {
		name := port.publicName()
		if name == "" || port.tls == nil || joined[port] {
			continue
		}
		h := Hidden{Port: port.Name(), PublicName: name, Number: port.Address().Port(), Covered: port.tls.set.Has(name), on: port}
		switch beside := port.quic; {
		case joined[beside]:
			h.joined = beside
		case beside != nil:
			h.Beside = beside.Name()
		}
		h.DNS = h.writer()
		all = append(all, h)
	}
	return all
}

// writer returns the ACME entry of the port, or else that of the http3 port.
func (h *Hidden) writer() string {
	for _, on := range []*Port{h.on, h.joined} {
		if on == nil {
			continue
		}
		if entry := on.settings.TLS.ECH.DNS; entry != "" && entry != acme.None {
			return entry
		}
	}
	return ""
}

// Hosts returns the hosts and wildcards of the proxies on the port, without the public name
// and without those of TCP proxies, in order.
func (h *Hidden) Hosts() []HiddenHost {
	protocols := map[string][]string{}
	for _, on := range []*Port{h.joined, h.on} {
		if on == nil {
			continue
		}
		speaks := "h2"
		if on.Protocol() == config.HTTP3 {
			speaks = "h3"
		}
		for _, name := range on.hidable(h.PublicName) {
			protocols[name] = append(protocols[name], speaks)
		}
	}
	hosts := make([]HiddenHost, 0, len(protocols))
	for _, name := range slices.Sorted(maps.Keys(protocols)) {
		hosts = append(hosts, HiddenHost{name, protocols[name]})
	}
	return hosts
}

// hidable returns the hosts of a port that clients find in the DNS.
func (p *Port) hidable(public string) (names []string) {
	for name := range p.hosts.exact {
		_, noAddress := netip.ParseAddr(strings.Trim(name, "[]"))
		if name != public && noAddress != nil && (p.streams == nil || !p.streams.reserves(name)) {
			names = append(names, name)
		}
	}
	for name := range p.hosts.wildcard {
		if p.streams == nil || p.streams.wildcard[name].all == nil {
			names = append(names, "*."+name)
		}
	}
	return names
}

// hides returns the name that clients show in place of a host on a port with Encrypted Client
// Hello; "" if they show the host.
func (p *Port) hides(host string) string {
	public := p.publicName()
	if public == "" || host == "" || host == public || p.streams != nil && p.streams.reserves(host) {
		return ""
	}
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return "" // clients send no address as a name
	}
	return public
}

// publicName returns the public name of the port, "" without Encrypted Client Hello.
func (p *Port) publicName() string {
	if p.settings.TLS.ECH == nil {
		return ""
	}
	return p.settings.TLS.ECH.Name()
}
