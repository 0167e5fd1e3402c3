package discovery

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/matchers"
)

// owners are the hosts that the documents name, and whose they are.
type owners struct {
	documents *config.Config
	// hosts are by the canonical form of a virtual host, expressions without.
	hosts   map[string][]owner
	regexes []owner
	// parsed are the hosts of each object, which are parsed once.
	parsed map[config.Named][]config.VirtualHost
}

// owner is an object of the documents that names a host.
type owner struct {
	kind, name string
	host       config.VirtualHost
	proxy      *config.Proxy // nil for a TCP proxy
}

// newOwners returns the owners of the hosts of the configuration files. Those of the
// previous merge are reused if nothing changed.
func newOwners(documents *config.Config, before *Merged) *owners {
	if before.owners != nil && before.owners.documents == documents {
		return before.owners
	}
	o := &owners{documents: documents, hosts: map[string][]owner{}, parsed: map[config.Named][]config.VirtualHost{}}
	for _, name := range slices.Sorted(maps.Keys(documents.Proxies)) {
		p := documents.Proxies[name]
		o.add(p, before, p.Hosts, p.Active, owner{kind: "proxies", name: name, proxy: p})
	}
	for _, name := range slices.Sorted(maps.Keys(documents.TCPProxies)) {
		p := documents.TCPProxies[name]
		names := func() ([]config.VirtualHost, error) {
			hosts, _ := p.Names()
			return hosts, nil
		}
		o.add(p, before, names, p.Active, owner{kind: "tcp_proxies", name: name})
	}
	return o
}

func (o *owners) add(settings config.Named, before *Merged, parse func() ([]config.VirtualHost, error), active bool, by owner) {
	var hosts []config.VirtualHost
	if before.owners != nil {
		hosts = before.owners.parsed[settings]
	}
	if hosts == nil {
		hosts, _ = parse() // those of a checked configuration
	}
	o.parsed[settings] = hosts
	if !active {
		return
	}
	for _, h := range hosts {
		if by.host = h; h.Class == config.HostRegex {
			o.regexes = append(o.regexes, by)
		} else {
			o.hosts[h.String()] = append(o.hosts[h.String()], by)
		}
	}
}

// of returns the objects of the configuration files that have a host: those that
// name it, and those whose wildcards and expressions match it.
func (o *owners) of(h config.VirtualHost) []owner {
	out := slices.Clone(o.hosts[h.String()])
	if h.Class == config.HostExact {
		if _, parent, ok := strings.Cut(h.Name, "."); ok {
			out = append(out, o.hosts["*."+parent]...)
		}
	}
	for _, by := range o.regexes {
		if h.Class == config.HostExact && by.host.Regex.MatchString(h.Name) || h.Class == config.HostWildcard && mayMatchBelow(by.host.Name, h.Name) {
			out = append(out, by)
		}
	}
	return out
}

// mayMatchBelow reports whether an expression for hosts may match a name below another
// one, judging from its literal end.
func mayMatchBelow(expr, below string) bool {
	end := literalEnd(expr)
	below = "." + below
	return strings.HasSuffix(below, end) || strings.HasSuffix(end, below)
}

// literalEnd returns the text with which everything ends that an expression for whole
// hosts matches, as far as that is plain; "" if it is not.
func literalEnd(expr string) string {
	expr = strings.TrimSuffix(expr, "$")
	if strings.Contains(expr, "|") {
		return ""
	}
	end := ""
	for expr != "" {
		c := expr[len(expr)-1]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-'
		escaped := len(expr) > 1 && expr[len(expr)-2] == '\\'
		switch {
		case letter && !escaped:
			expr = expr[:len(expr)-1]
		case c == '.' && escaped:
			expr = expr[:len(expr)-2]
		default:
			return end
		}
		end = strings.ToLower(string(c)) + end
	}
	return end
}

// claim is a host and a path of an object.
type claim struct {
	ports  []string // empty is all
	prefix string
	match  *matchers.Config
	whole  bool               // all paths, as of a TCP proxy for names
	by     *config.Discovered // nil if a document has it
	owner  owner
}

// hostTaken reports an object that conflicts with another one: on a host of the
// configuration files, or on a host and path of an older container.
func (m *merge) hostTaken(o *object) bool {
	wants := wanted(o)
	for _, h := range o.hosts {
		for _, by := range m.owners.of(h) {
			if by.proxy == nil || !by.proxy.ShareHosts {
				m.handTaken(o, h, by)
				return true
			}
			for _, r := range by.proxy.Routes {
				has := claim{ports: by.proxy.Ports, prefix: r.Prefix(), match: r.Matchers, owner: by}
				if by.host.String() == h.String() && slices.ContainsFunc(wants, has.clashes) {
					m.issue(o, o.hostLabel(), HostTaken, fmt.Sprintf("%s (%s) has the path %s of %s", by.noun(), m.where(by.kind, by.name), r.Path, h), "choose another path")
					return true
				}
			}
		}
		for _, has := range m.claims[h.String()] {
			if i := slices.IndexFunc(wants, has.clashes); i >= 0 {
				m.conflict(o, has.by, o.hostLabel(), "the host "+h.String()+wants[i].path(), "give one of them another host or path")
				return true
			}
		}
	}
	return false
}

// handTaken reports a host that a configuration file names. It is one issue,
// of both.
func (m *merge) handTaken(o *object, h config.VirtualHost, by owner) {
	hint := "choose another host"
	if by.proxy != nil {
		hint += ", or write share_hosts: true in the proxy to let containers add paths to it"
	}
	i := o.issue(o.hostLabel(), HostTaken, fmt.Sprintf("the host %s is one of %s (%s)", h, by.noun(), m.where(by.kind, by.name)), hint)
	i.Owner = Reference{by.kind, by.name}
	m.add(i)
}

func (by owner) noun() string { return config.KindOf(by.kind).Noun + " " + by.name }

func (o *object) hostLabel() *config.Label {
	if o.Discovered.Kind == "tcp_proxies" {
		return o.label("sni")
	}
	return o.label("virtual_hosts")
}

// wanted returns what an object needs of each of its hosts.
func wanted(o *object) []claim {
	switch settings := o.Object.(type) {
	case *config.Proxy:
		var out []claim
		for _, r := range settings.Routes {
			if settings.Active {
				out = append(out, claim{ports: settings.Ports, prefix: r.Prefix(), match: r.Matchers, by: o.Discovered})
			}
		}
		return out
	case *config.TCPProxy:
		if settings.Active && settings.Port != "" {
			return []claim{{ports: []string{settings.Port}, whole: true, by: o.Discovered}}
		}
	}
	return nil
}

// claim notes what an object has that was added.
func (m *merge) claim(o *object) {
	for _, h := range o.hosts {
		m.claims[h.String()] = append(m.claims[h.String()], wanted(o)...)
	}
}

// clashes reports whether two cannot have both what they want of a host.
func (c claim) clashes(other claim) bool {
	if !c.whole && !other.whole && (c.prefix != other.prefix || c.match.Count() != other.match.Count() || !matchers.Overlap(c.match, other.match)) {
		return false
	}
	return len(c.ports) == 0 || len(other.ports) == 0 || slices.ContainsFunc(c.ports, func(p string) bool { return slices.Contains(other.ports, p) })
}

// path returns the words for the path of a claim.
func (c claim) path() string {
	switch {
	case c.whole:
		return ""
	case c.prefix == "":
		return " and the path /"
	}
	return " and the path " + c.prefix
}
