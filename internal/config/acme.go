package config

import (
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"headgate/internal/certs/acme"
	"headgate/internal/schema"
)

// ACME is an entry by which certificates come by themselves.
type ACME struct {
	Object
	acme.Config
}

// acme reports problems of an entry.
func (ch *checker) acme(e *ACME, at schema.Place) {
	if e.Name == acme.None {
		at.Problem("none is reserved for proxies without an entry", "rename the entry")
	}
	e.Config.Check(at)
	if e.Default {
		for _, name := range sortedNames(ch.c.ACME) {
			if name < e.Name && ch.c.ACME[name].Default {
				at.Field("default").Problemf("let one entry be the default", "entry %q is the default too", name)
			}
		}
	}
}

// checkACME reports a proxy that names an entry which does not exist, or which cannot issue
// a certificate for it.
func checkACME(c *Config, p *Proxy, at schema.Place) {
	if p.ACME == "" || p.ACME == acme.None {
		return // without a list of its hosts
	}
	hosts := ACMEHosts(p)
	if p.OnDemand != nil {
		hosts = withoutWildcards(hosts)
	} else if c.ACME[p.ACME] != nil && len(hosts) == 0 {
		at.Problem("no certificate can be issued, because the proxy has no host name", "add its hosts under virtual_hosts; expressions get no certificates")
	}
	checkIssued(c, p.ACME, hosts, at)
}

// checkOnDemand reports a proxy whose hosts cannot get certificates on demand.
func checkOnDemand(c *Config, p *Proxy, at schema.Place) {
	if p.OnDemand == nil {
		return
	}
	p.OnDemand.Check(at)
	if c.acmeEntry(p.ACME) == nil && (p.ACME == "" || p.ACME == acme.None) {
		at.Problem("no acme entry applies to the proxy", "name one with acme, or set default: true on an entry")
	}
	if len(p.VirtualHosts) > 0 && !slices.ContainsFunc(p.VirtualHosts, func(text string) bool {
		h, problem := parseVirtualHost(text)
		return problem != nil || h.Class != HostExact
	}) {
		at.Problem("every virtual host of the proxy is a name, and gets its certificate without it", "remove it, or use a wildcard or an expression under virtual_hosts, or none for all hosts that no other proxy has")
	}
}

// withoutWildcards returns the hosts that are names.
func withoutWildcards(hosts []string) []string {
	return slices.DeleteFunc(slices.Clone(hosts), func(h string) bool { return strings.HasPrefix(h, "*.") })
}

// OnDemand returns the rule by which hosts of a proxy get certificates on demand, nil if it
// has none or is inactive.
func (c *Config) OnDemand(p *Proxy) *acme.Demand {
	if p.OnDemand == nil || !p.Active {
		return nil
	}
	e := c.acmeEntry(p.ACME)
	if e == nil || c.Withheld("acme", e.Name) {
		return nil
	}
	return &acme.Demand{Proxy: p.Name, Entry: e.Name, Settings: p.OnDemand}
}

// checkIssued reports a reference to an ACME entry that does not exist, or that cannot issue
// a certificate for one of the hosts. "" and none are no reference.
func checkIssued(c *Config, entry string, hosts []string, at schema.Place) {
	if entry == "" || entry == acme.None {
		return
	}
	if c.ACME[entry] == nil {
		remedy := "add it under acme, such as acme: {main: {email: you@example.com}}"
		if near := schema.Nearest(entry, sortedNames(c.ACME)); near != "" {
			remedy = fmt.Sprintf("did you mean %q?", near)
		}
		at.Problemf(remedy, "there is no acme entry %q", entry)
		return
	}
	for _, name := range hosts {
		what, remedy := acme.CheckName(name)
		if what == "" && strings.HasPrefix(name, "*.") && c.ACME[entry].DNS == nil {
			what, remedy = "a wildcard needs dns-01, and the entry has no dns", "add dns: {provider: …} to the entry"
		}
		if what != "" {
			at.Problemf(remedy, "no certificate for %s: %s", name, what)
		}
	}
}

// checkStreamACME reports a TCP proxy that names an entry which does not exist, or which
// cannot issue a certificate for it.
func checkStreamACME(c *Config, p *TCPProxy, at schema.Place) {
	if name := p.TLS.ACME; name != "" && name != acme.None && len(p.SNI) == 0 {
		at.Problem("no certificate can be issued, because the proxy has no server name", "add names under sni, or under domains of the ACME entry")
	} else {
		checkIssued(c, name, p.acmeHosts(), at)
	}
}

// ACMEEntry returns the entry of a proxy, nil if it has none.
func (c *Config) ACMEEntry(p *Proxy) *ACME {
	if len(p.VirtualHosts) == 0 {
		return nil
	}
	return c.acmeEntry(p.ACME)
}

// acmeEntry returns the entry with a name: that of the proxy, the default one for "", nil
// for none.
func (c *Config) acmeEntry(name string) *ACME {
	switch name {
	case acme.None:
		return nil
	case "":
	default:
		return c.ACME[name]
	}
	for _, e := range c.ACME {
		if e.Default {
			return e
		}
	}
	return nil
}

// ACMEHosts returns the virtual hosts of a proxy that a certificate can be for: all
// but expressions.
func ACMEHosts(p *Proxy) []string {
	var hosts []string
	for _, text := range p.VirtualHosts {
		if h, problem := parseVirtualHost(text); problem == nil && h.Class != HostRegex {
			hosts = append(hosts, strings.Trim(h.String(), "[]"))
		}
	}
	return hosts
}

// acmeHosts returns the server names of a TCP proxy that a certificate can be for.
func (p *TCPProxy) acmeHosts() []string {
	if p.TLS == nil {
		return nil
	}
	var hosts []string
	for _, text := range p.SNI {
		if h, problem := parseSNI(text); problem == nil {
			hosts = append(hosts, h.String())
		}
	}
	return hosts
}

// ACMEHolders yields the ACME entry and the hosts of each active proxy, and of each active
// TCP proxy that terminates TLS, that gets certificates from an entry.
func (c *Config) ACMEHolders() iter.Seq2[*ACME, []string] {
	return c.acmeHolders(false)
}

// acmeHolders is ACMEHolders, with or without the wildcards whose hosts get certificates on
// demand.
func (c *Config) acmeHolders(listed bool) iter.Seq2[*ACME, []string] {
	return func(yield func(*ACME, []string) bool) {
		if len(c.ACME) == 0 {
			return // without a look at each proxy
		}
		for _, p := range c.Proxies {
			e := c.ACMEEntry(p)
			if e == nil || !p.Active {
				continue
			}
			hosts := ACMEHosts(p)
			if listed && p.OnDemand != nil {
				hosts = withoutWildcards(hosts)
			}
			if !yield(e, hosts) {
				return
			}
		}
		for _, p := range c.TCPProxies {
			if hosts := p.acmeHosts(); len(hosts) > 0 && p.Active && c.Here(p.Nodes) {
				if e := c.acmeEntry(p.TLS.ACME); e != nil && !yield(e, hosts) {
					return
				}
			}
		}
	}
}

// ACMEWants returns the certificates that the active proxies and the domains of the
// entries want, without those for names that covered reports to be covered by
// another certificate.
func (c *Config) ACMEWants(covered func(name string) bool) (entries map[string]*acme.Config, wants []acme.Want) {
	if len(c.ACME) == 0 {
		return nil, nil // without a look at each proxy
	}
	names := map[*ACME][]string{}
	for _, e := range c.ACME {
		names[e] = slices.Clone(e.Domains)
	}
	for e, hosts := range c.acmeHolders(true) {
		for _, host := range hosts {
			if what, _ := acme.CheckName(host); what == "" {
				names[e] = append(names[e], host)
			}
		}
	}
	entries, taken := map[string]*acme.Config{}, map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.ACME)) {
		if c.Withheld("acme", name) {
			continue // other machines order
		}
		settings := c.ACME[name].Config
		if f := settings.CAFile; f != "" && !filepath.IsAbs(f) {
			settings.CAFile = filepath.Join(c.Dir, f)
		}
		entries[name] = &settings
		wanted := slices.DeleteFunc(names[c.ACME[name]], covered)
		for _, group := range acme.Group(wanted) {
			if !taken[group[0]] { // two entries want the same: the first has it
				taken[group[0]] = true
				wants = append(wants, acme.Want{Entry: name, Settings: &settings, Names: group})
			}
		}
	}
	return entries, wants
}
