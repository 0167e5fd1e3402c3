package config

import (
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/config/decode"
	"headgate/internal/schema"
	"headgate/internal/server/target"
)

// checkECH reports a public name that clients do not accept, and one whose handshakes do not
// arrive at the port.
func checkECH(c *Config, p *Port, at schema.Place) {
	if p.TLS.ECH == nil || p.TLS.ECH.PublicName == "" {
		return // that it is missing was reported
	}
	at = at.Field("public_name")
	text := p.TLS.ECH.PublicName
	name, f := target.Host(text)
	_, noAddress := netip.ParseAddr(strings.Trim(text, "[]"))
	switch {
	case f != nil:
		at.Problem(f.What, f.Remedy)
		return
	case noAddress == nil || !strings.Contains(name, "."):
		at.Problemf("write a host name with a domain, like example.com", "%q is not the name of a host in the DNS", decode.Shorten(text))
		return
	}
	for _, other := range sortedNames(c.TCPProxies) {
		if t := c.TCPProxies[other]; t.Active && t.Port == p.Name && t.receives(name) {
			at.Problemf("use another public name", "TCP proxy %s receives all connections for %s on this port", other, name)
			return
		}
	}
}

// receives reports whether browsers that send a server name get to the proxy.
func (p *TCPProxy) receives(name string) bool {
	if len(p.ALPN) > 0 && !slices.Contains(p.ALPN, "h2") && !slices.Contains(p.ALPN, "http/1.1") {
		return false
	}
	names, err := p.Names()
	if err != nil {
		return false // was reported
	}
	return slices.ContainsFunc(names, func(h VirtualHost) bool {
		_, parent, _ := strings.Cut(name, ".")
		return h.Class == HostExact && h.Name == name || h.Class == HostWildcard && h.Name == parent
	})
}
