package config

import (
	"bytes"
	"cmp"
	"reflect"
	"slices"
	"strings"

	"headgate/internal/matchers"
	"headgate/internal/schema"
)

// Grant is a place at which a configuration lets clients pass a gate that another one does
// not let pass.
type Grant struct {
	// Path is the path of the object or field in the configuration files.
	Path string
	// Detail says what is granted, in words.
	Detail string
}

// NewGrant returns a place at which a change from one configuration to another grants access
// behind a gate, nil without one. A change grants access if
//
//   - a gate lets in more people, tokens, addresses or requests than before, or is off;
//   - a route without a gate, or with a wider one, gets paths of a host that has one;
//   - a proxy with a gate, or one of its hosts, is removed: the next change could add it again
//     without the gate;
//   - people sign in differently;
//   - what a gate's from refers to, or how its client addresses are determined, is different.
//
// The same server under a host that never had a gate is not recognized: who may publish a
// server decides who reaches it.
func NewGrant(before, after *Config) *Grant {
	if !before.same("sign_in", "", after) && (before.SignIn.Configured() || before.mentionsGates()) {
		return &Grant{"sign_in", "people would sign in differently"}
	}
	for _, name := range sortedNames(before.Proxies) {
		if p := before.Proxies[name]; p.mentionsGate() && p.Gated() {
			if detail := before.grantOf(p, after.Proxies[name], after); detail != "" {
				return &Grant{schema.JoinPath("proxies", name), detail}
			}
		}
	}
	old := map[exposure]bool{}
	for _, p := range before.exposures(before) {
		old[p] = true
	}
	for _, p := range before.exposures(after) {
		if !old[p] {
			return &Grant{schema.JoinPath("proxies", p.proxy), "route " + p.route + " of host " + p.host + " " + p.detail}
		}
	}
	return nil
}

func (c *Config) mentionsGates() bool {
	for _, p := range c.Proxies {
		if p.mentionsGate() {
			return true
		}
	}
	return false
}

// same reports whether two configurations have the same object of a kind, or neither has it.
func (c *Config) same(kind, name string, other *Config) bool {
	a, _ := c.Canonical(kind, name, false)
	b, _ := other.Canonical(kind, name, false)
	return bytes.Equal(a, b)
}

// grantOf returns what a proxy with a gate grants after a change, "" for nothing.
func (c *Config) grantOf(before, after *Proxy, next *Config) string {
	if after == nil {
		return "a proxy with a gate would be removed"
	}
	for _, host := range before.VirtualHosts {
		if !slices.ContainsFunc(after.VirtualHosts, func(h string) bool { return strings.EqualFold(h, host) }) {
			return "host " + host + " would no longer have a gate"
		}
	}
	for _, r := range before.Routes {
		gate := before.gateOf(r)
		if gate == nil || len(gate.From) == 0 {
			continue
		}
		if !reflect.DeepEqual(before.ClientIP, after.ClientIP) {
			return "the client addresses that the gate compares with from would be determined differently"
		}
		for _, entry := range gate.From {
			if list, ok := strings.CutPrefix(entry, "list:"); ok && !c.same("lists", list, next) {
				return "list " + list + " would let in other addresses without a sign-in"
			}
		}
	}
	return ""
}

// widened returns what a gate lets pass that another one does not, in words.
func widened(before, after *Gate) (out []string) {
	switch {
	case after == before:
		return nil
	case after == nil:
		return []string{"would need no sign-in"}
	}
	for _, text := range added(after.Allow, before.Allow) {
		out = append(out, "would let in "+text)
	}
	for _, text := range added(after.From, before.From) {
		out = append(out, "would let in "+text+" without a sign-in")
	}
	for _, text := range added(after.Bypasses(), before.Bypasses()) {
		out = append(out, "would need no sign-in for "+text)
	}
	if after.SharedCache && !before.SharedCache {
		out = append(out, "would let caches share responses")
	}
	if after.Framed() && !before.Framed() {
		out = append(out, "would send the session from frames of other sites")
	}
	return out
}

// added returns the texts that others do not contain.
func added(after, before []string) (out []string) {
	for _, text := range after {
		if !slices.Contains(before, text) {
			out = append(out, text)
		}
	}
	return out
}

// exposure is a route that may handle requests which a gate covers, and lets more of them pass.
type exposure struct {
	// like is the route whose requests both handle.
	host, like, gated, proxy, route, detail string
}

// hostRoute is a route of one of the proxies with a host.
type hostRoute struct {
	proxy string
	route *Route
	gate  *Gate // nil without one
}

// exposures returns the routes of a configuration that let pass what the gates of c do not.
// Ports are not considered: two proxies with the same host may be on different ones.
func (c *Config) exposures(in *Config) (out []exposure) {
	hosts := map[string]bool{}
	for _, p := range c.Proxies {
		if p.mentionsGate() && p.Gated() {
			for _, host := range p.VirtualHosts {
				hosts[strings.ToLower(host)] = true
			}
		}
	}
	if len(hosts) == 0 {
		return nil
	}
	before, after := c.routesOf(hosts), in.routesOf(hosts)
	for _, host := range sortedNames(hosts) {
		for _, like := range slices.Concat(before[host], after[host]) {
			for _, was := range handlers(before[host], like.route) {
				if was.gate == nil {
					continue
				}
				for _, is := range handlers(after[host], like.route) {
					for _, detail := range widened(was.gate, is.gate) {
						out = append(out, exposure{host, like.route.Label(), was.proxy + was.route.Label(), is.proxy, is.route.Label(), detail})
					}
				}
			}
		}
	}
	return out
}

// routesOf returns the routes of some hosts, also of proxies that are not active.
func (c *Config) routesOf(hosts map[string]bool) map[string][]hostRoute {
	out := map[string][]hostRoute{}
	for _, name := range sortedNames(c.Proxies) {
		p := c.Proxies[name]
		for _, host := range p.VirtualHosts {
			host = strings.ToLower(host)
			for _, r := range p.Routes {
				if hosts[host] {
					out[host] = append(out[host], hostRoute{name, r, p.gateOf(r)})
				}
			}
		}
	}
	return out
}

// handlers returns the routes that may handle the requests for which a route is written: those
// with the longest prefix first, up to one that handles all that is left.
func handlers(routes []hostRoute, like *Route) (out []hostRoute) {
	for _, r := range routes {
		if within(like.Prefix(), r.route.Prefix()) && matchers.Overlap(r.route.Matchers, like.Matchers) {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b hostRoute) int {
		return cmp.Or(cmp.Compare(len(b.route.Prefix()), len(a.route.Prefix())), cmp.Compare(b.route.Matchers.Count(), a.route.Matchers.Count()))
	})
	label := matchers.Label("", like.Matchers)
	for i, r := range out {
		if r.route.Matchers.Count() == 0 || matchers.Label("", r.route.Matchers) == label {
			return out[:i+1]
		}
	}
	return out
}

// within reports whether a path is a prefix, or has its segments at the front.
func within(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}
