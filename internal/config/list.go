package config

import (
	"fmt"
	"net/netip"
	"strings"

	"headgate/internal/bans"
	"headgate/internal/feature/ratelimit"
	"headgate/internal/lists"
	"headgate/internal/schema"
	"headgate/internal/setting/ipset"
)

// List is a list of addresses with a name, which other settings refer to as list:NAME.
type List struct {
	Object
	lists.Config
}

// list reports what is wrong with a list.
func (ch *checker) list(l *List, at schema.Place) {
	if l.Name == ipset.PrivateList {
		at.Problem("list:private is part of headgate", "give the list another name")
	}
	l.Config.Check(at)
}

// Ban is a rule by which clients are refused that misbehave.
type Ban struct {
	Object
	bans.Config
}

// BanRules returns the settings of all ban rules, by name.
func (c *Config) BanRules() map[string]*bans.Config {
	out := make(map[string]*bans.Config, len(c.Bans))
	for name, b := range c.Bans {
		out[name] = &b.Config
	}
	return out
}

// TrustedNetworks returns the networks of all proxies in front that the configuration
// trusts: for client_ip anywhere, for the PROXY protocol, and for the admin listener.
func (c *Config) TrustedNetworks() (out []netip.Prefix) {
	add := func(list []string) {
		for _, text := range list {
			if p, err := ipset.Parse(text); err == nil {
				out = append(out, p)
			}
		}
	}
	for _, p := range c.Ports {
		if p.ProxyProtocol != nil {
			add(p.ProxyProtocol.Trusted)
		}
	}
	for _, p := range c.TCPProxies {
		if p.AcceptProxyProtocol != nil {
			add(p.AcceptProxyProtocol.Trusted)
		}
	}
	add(c.Admin.TrustedProxies)
	features := func(f *Features) {
		if f.ClientIP != nil {
			add(f.ClientIP.Trusted)
		}
	}
	features(&c.Defaults.Features)
	for _, p := range c.Policies {
		features(&p.Features)
	}
	for _, p := range c.Proxies {
		features(&p.Features)
		for _, r := range p.Routes {
			features(&r.Features)
		}
	}
	return out
}

// ListConfigs returns the settings of all lists, by name.
func (c *Config) ListConfigs() map[string]*lists.Config {
	out := make(map[string]*lists.Config, len(c.Lists))
	for name, l := range c.Lists {
		out[name] = &l.Config
	}
	return out
}

// referring is settings that may refer to lists, countries or networks by number.
type referring struct {
	kind, name string
	route      int    // of a proxy; -1 for the object's own
	feature    string // "" for the object itself
	lists      []ipset.Referrer
	key        *ratelimit.Config // identifies clients with a database, or nil
}

// path returns where a list of r is.
func (r *referring) path(field string) string {
	path := r.kind
	if r.name != "" {
		path = schema.JoinPath(path, r.name)
	}
	if r.route >= 0 {
		path = fmt.Sprintf("%s.routes[%d]", path, r.route)
	}
	if r.feature != "" {
		path += "." + r.feature
	}
	return path + "." + field
}

// place returns where an entry of a list of r is, for problems.
func (r *referring) place(root schema.Place, c *Config, field string, index int) schema.Place {
	return r.at(root, c, field).Index(index)
}

// at returns where a field of r is.
func (r *referring) at(root schema.Place, c *Config, field string) schema.Place {
	at := root.Field(r.kind)
	if r.name != "" {
		at = at.Field(r.name).Called(KindOf(r.kind).Noun, r.name)
	}
	if r.route >= 0 {
		at = at.Field("routes").Index(r.route).Called("route", c.Proxies[r.name].Routes[r.route].Label())
	}
	if r.feature != "" {
		at = at.Field(r.feature)
	}
	for step := range strings.SplitSeq(field, ".") {
		at = at.Field(step)
	}
	return at
}

// referring calls visit for all settings that may refer to lists, as the documents have
// them.
func (c *Config) referring(visit func(r referring)) {
	features := func(kind, name string, route int, f *Features) {
		if f.IPFilter != nil {
			visit(referring{kind, name, route, "ip_filter", f.IPFilter.References(), nil})
		}
		if f.RateLimit != nil {
			visit(referring{kind, name, route, "rate_limit", f.RateLimit.References(), f.RateLimit})
		}
		if f.Gate != nil {
			visit(referring{kind, name, route, "gate", f.Gate.References(), nil})
		}
		if f.Maintenance != nil {
			visit(referring{kind, name, route, "maintenance", f.Maintenance.References(), nil})
		}
	}
	for _, name := range sortedNames(c.Policies) {
		features("policies", name, -1, &c.Policies[name].Features)
	}
	features("defaults", "", -1, &c.Defaults.Features)
	for _, name := range sortedNames(c.Proxies) {
		p := c.Proxies[name].Written()
		features("proxies", name, -1, &p.Features)
		for i, r := range p.Routes {
			features("proxies", name, i, &r.Features)
		}
	}
	for _, name := range sortedNames(c.Bans) {
		visit(referring{"bans", name, -1, "", c.Bans[name].References(), nil})
	}
	for _, name := range sortedNames(c.TCPProxies) {
		if f := c.TCPProxies[name].IPFilter; f != nil {
			visit(referring{"tcp_proxies", name, -1, "ip_filter", f.References(), nil})
		}
	}
	for _, name := range sortedNames(c.UDPProxies) {
		if f := c.UDPProxies[name].IPFilter; f != nil {
			visit(referring{"udp_proxies", name, -1, "ip_filter", f.References(), nil})
		}
	}
}

// checkReferences reports references to lists that are not there, and to countries and
// networks without a database.
func (ch *checker) checkReferences() {
	c := ch.c
	c.referring(func(r referring) {
		if r.key != nil {
			if kind, ok := r.key.Located(); ok {
				if what, remedy := c.missing(ipset.Reference{Kind: kind}); what != "" {
					r.at(ch.root, c, "key").Problem(what, remedy)
				}
			}
		}
		for _, list := range r.lists {
			for _, ref := range ipset.References(list.Entries) {
				if what, remedy := c.missing(ref); what != "" {
					r.place(ch.root, c, list.Field, ref.Index).Problem(what, remedy)
				}
			}
		}
	})
}

// missing returns what a reference lacks, and how to fix it.
func (c *Config) missing(ref ipset.Reference) (what, remedy string) {
	switch ref.Kind {
	case ipset.ToList:
		if ref.Name == ipset.PrivateList || c.Lists[ref.Name] != nil {
			return "", ""
		}
		remedy = "add it under lists"
		if near := schema.Nearest(ref.Name, append(sortedNames(c.Lists), ipset.PrivateList)); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", ipset.ListReference(near))
		}
		return fmt.Sprintf("there is no list %q", ref.Name), remedy
	case ipset.ToCountry:
		if !c.Geo.Country.Set() {
			return "there is no database of countries", "add geo: {country: {file: country.mmdb}}"
		}
	case ipset.ToASN:
		if !c.Geo.ASN.Set() {
			return "there is no database of networks by number", "add geo: {asn: {file: asn.mmdb}}"
		}
	}
	return "", ""
}

// listUsers returns who refers to a list.
func (c *Config) listUsers(name string) (out []Reference) {
	c.referring(func(r referring) {
		for _, list := range r.lists {
			for _, ref := range ipset.References(list.Entries) {
				if ref.Kind == ipset.ToList && ref.Name == name {
					out = append(out, Reference{Kind: r.kind, Name: r.name, Path: fmt.Sprintf("%s[%d]", r.path(list.Field), ref.Index)})
				}
			}
		}
	})
	return out
}
