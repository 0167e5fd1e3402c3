package config

import (
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/certs/acme"
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
	checkRecordWriter(c, p.TLS.ECH.DNS, at.Field("dns"))
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

// checkRecordWriter reports an ACME entry that cannot write HTTPS records; "" is none.
func checkRecordWriter(c *Config, entry string, at schema.Place) {
	if entry == "" || at.Root().Field("acme").Reported() {
		return
	}
	checkIssued(c, entry, nil, at)
	e := c.ACME[entry]
	switch can := strings.Join(acme.HTTPSProviders(), ", "); {
	case e == nil:
	case e.DNS == nil:
		at.Problemf("add dns: {provider: …} to the entry, or remove this and copy the records that headgate ech prints", "acme entry %s has no DNS provider", entry)
	case !acme.WritesHTTPS(e.DNS.Provider):
		at.Problemf("remove this and copy the records that headgate ech prints; "+can+" can write them", "%s cannot write HTTPS records", e.DNS.Provider)
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
