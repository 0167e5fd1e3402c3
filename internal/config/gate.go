package config

import (
	"slices"
	"strings"

	"headgate/internal/feature/headers"
	"headgate/internal/gate"
	"headgate/internal/gate/people"
	"headgate/internal/proto/header"
	"headgate/internal/schema"
)

// SignInProxy returns the proxy with the sign-in page, nil if there is none.
func (c *Config) SignInProxy() *Proxy {
	for _, name := range sortedNames(c.Proxies) {
		if p := c.Proxies[name]; p.Active && p.SignsIn() {
			return p
		}
	}
	return nil
}

// SignsIn reports whether a route of the proxy is the sign-in page.
func (p *Proxy) SignsIn() bool {
	return slices.ContainsFunc(p.Routes, func(r *Route) bool { return r.SignIn != nil })
}

// Gated reports whether a route of the proxy has a gate that is not off.
func (p *Proxy) Gated() bool {
	return slices.ContainsFunc(p.Routes, func(r *Route) bool { return p.gateOf(r) != nil })
}

// GateNames returns the names of the active proxies with a gate.
func (c *Config) GateNames() []string {
	out := []string{}
	for _, name := range sortedNames(c.Proxies) {
		if p := c.Proxies[name]; p.Active && p.Gated() {
			out = append(out, name)
		}
	}
	return out
}

// Allowed returns the entries of all gates of a proxy.
func (c *Config) Allowed(name string) (out []string) {
	p := c.Proxies[name]
	if p == nil {
		return nil
	}
	for _, r := range p.Routes {
		if g := p.gateOf(r); g != nil {
			out = append(out, g.Allow...)
		}
	}
	return out
}

// GatedHosts returns the hosts of the active proxies with a gate, as they are written, in
// lower case.
func (c *Config) GatedHosts() (out []string) {
	for _, name := range c.GateNames() {
		for _, host := range c.Proxies[name].VirtualHosts {
			out = append(out, strings.ToLower(host))
		}
	}
	return out
}

// gateOf returns the gate of a route, nil for none. The sign-in page never has one.
func (p *Proxy) gateOf(r *Route) *Gate {
	g := r.Gate
	if g == nil {
		g = p.Gate
	}
	if g == nil || g.Off() || r.SignIn != nil {
		return nil
	}
	return g
}

// FramedGate reports whether browsers send the sessions of the proxy's hosts from frames of other
// sites, too: its routes share the cookie, so one gate with same_site: none decides for all.
func (p *Proxy) FramedGate() bool {
	return slices.ContainsFunc(p.Routes, func(r *Route) bool {
		g := p.gateOf(r)
		return g != nil && g.Framed()
	})
}

// GateBypasses returns the requests that pass a gate of the proxy without a sign-in, in
// words: those of bypass, addresses in from, and routes on which the gate is off.
func (p *Proxy) GateBypasses() []string {
	if !p.mentionsGate() || !p.Gated() {
		return nil
	}
	var out []string
	add := func(text string) {
		if !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	for _, r := range p.Routes {
		g := p.gateOf(r)
		if g == nil {
			add("route " + r.Label())
			continue
		}
		for _, text := range g.Bypasses() {
			add(text)
		}
		for _, text := range g.From {
			add("from " + text)
		}
	}
	return out
}

// signIn reports what is wrong with how people sign in.
func (ch *checker) signIn(at schema.Place) {
	ch.c.SignIn.Check(at)
	if ch.c.SignIn.Configured() && ch.c.SignInProxy() == nil && !at.Root().Field("proxies").Reported() {
		at.Note("no route is the sign-in page, so people cannot sign in", "add a proxy with a host of its own and routes: [{path: /, sign_in: {}}]")
	}
}

// gates reports what is wrong with gates and the sign-in page among all proxies.
func (ch *checker) gates() {
	page := ""
	for _, name := range sortedNames(ch.c.Proxies) {
		p := ch.c.Proxies[name]
		if !p.mentionsGate() {
			continue
		}
		at := ch.root.Field("proxies").Field(name).Called("proxy", name)
		if p.SignsIn() {
			ch.signInPage(p, at)
			if page != "" && p.Active {
				at.Problemf("keep one of them", "proxy %s has the sign-in page, too", page)
			}
			if p.Active {
				page = name
			}
		}
		if p.Gated() {
			ch.gated(p, at)
		}
	}
}

// mentionsGate reports whether a proxy has anything to do with signing in.
func (p *Proxy) mentionsGate() bool {
	return p.Gate != nil || slices.ContainsFunc(p.Routes, func(r *Route) bool { return r.Gate != nil || r.SignIn != nil })
}

// signInPage reports what is wrong with the proxy of the sign-in page.
func (ch *checker) signInPage(p *Proxy, at schema.Place) {
	route := at.Field("routes").Index(0)
	for i, r := range p.Routes {
		if r.SignIn != nil {
			route = at.Field("routes").Index(i).Called("route", r.Label())
		}
	}
	hosts, err := p.Hosts()
	switch {
	case err != nil:
		// reported already
	case len(hosts) != 1 || hosts[0].Class != HostExact || strings.HasPrefix(hosts[0].Name, "["):
		at.Field("virtual_hosts").Problem("the sign-in page needs exactly one host", "write one name without * and ~, such as login.example.com")
	case slices.Contains(ch.c.Admin.Hosts, hosts[0].Name):
		at.Field("virtual_hosts").Problem("this is the console's host", "give the sign-in page a host of its own: a session there must not reach the console")
	default:
		ch.aloneAt(p, hosts[0].Name, at)
	}
	if len(p.Routes) != 1 || p.Routes[0].Prefix() != "" || p.Routes[0].Matchers != nil {
		at.Field("routes").Problem("the sign-in page needs a host with no other route", "keep the route with sign_in alone, with path / and without matchers")
	}
	if p.ShareHosts {
		at.Field("share_hosts").Problem("containers could serve paths of the sign-in page", "remove share_hosts")
	}
	if !ch.c.SignIn.Configured() {
		route.Field("sign_in").Problem("there is no way to sign in", "add a provider under sign_in, or write local: true there")
	}
	ch.needsHTTPS(p, at, "the sign-in page")
}

// aloneAt reports a proxy that has the host of the sign-in page, too.
func (ch *checker) aloneAt(p *Proxy, host string, at schema.Place) {
	for _, name := range sortedNames(ch.c.Proxies) {
		other := ch.c.Proxies[name]
		if other == p || !other.Active || !p.Active || !slices.ContainsFunc(other.VirtualHosts, func(text string) bool { return strings.EqualFold(text, host) }) {
			continue
		}
		at.Field("virtual_hosts").Problemf("give the sign-in page a host of its own", "proxy %s has the host, too", name)
		return
	}
}

// needsHTTPS reports a proxy that people cannot reach over https.
func (ch *checker) needsHTTPS(p *Proxy, at schema.Place, what string) {
	if !p.Active || len(ch.c.SecurePorts(p)) > 0 || trustsProxies(p.ClientIP) || at.Root().Field("ports").Reported() || at.Field("ports").Reported() {
		return
	}
	at.Problemf("add a port with protocol: https, or, if a CDN or proxy in front terminates TLS, name it in client_ip", "%s works over https only, and the proxy has no active https port", what)
}

// gated reports what is wrong with a proxy that has a gate.
func (ch *checker) gated(p *Proxy, at schema.Place) {
	hosts, err := p.Hosts()
	if err == nil && len(hosts) == 0 {
		at.Field("virtual_hosts").Problem("a gate needs hosts: people are sent back to them when they have signed in", "name the hosts of the application")
	}
	for i, h := range hosts {
		if h.Class == HostRegex {
			at.Field("virtual_hosts").Index(i).Problem("a gate needs names or wildcards", "write names, or *. and a name, in the place of the expression")
		}
	}
	if p.ShareHosts {
		at.Field("share_hosts").Problem("containers could serve paths of a host with a gate, and read the requests of people who signed in", "remove share_hosts, or the gate")
	}
	if ch.c.SignInProxy() == nil && !at.Root().Field("proxies").Reported() {
		at.Field("gate").Problem("there is no sign-in page, so the gate would reject everyone", "add sign_in with a provider, and a proxy with routes: [{path: /, sign_in: {}}]")
	}
	ch.needsHTTPS(p, at, "a gate")
	written := p.Written()
	ch.ownsIdentity(&written.Features, at)
	for i, r := range written.Routes {
		place := at.Field("routes").Index(i).Called("route", r.Label())
		if prefix := r.Prefix(); prefix == gate.Reserve || strings.HasPrefix(prefix, gate.Reserve+"/") {
			place.Field("path").Problemf("choose another path", "%s is reserved on hosts with a gate", gate.Reserve)
		}
		ch.ownsIdentity(&r.Features, place)
	}
	for i, r := range p.Routes {
		if f := p.Effective(r); f.Gate != nil && f.Gate.BasicTokens && f.BasicAuth != nil {
			at.Field("routes").Index(i).Called("route", r.Label()).Problem("basic_tokens of the gate and basic_auth read the same field", "remove basic_auth, or basic_tokens")
		}
	}
	for _, use := range slices.Concat(append([][]string{written.Use}, usesOf(written)...)...) {
		if policy := ch.c.Policies[use]; policy != nil {
			ch.ownsIdentity(&policy.Features, ch.root.Field("policies").Field(use).Called("policy", use))
		}
	}
	ch.ownsIdentity(&ch.c.Defaults.Features, ch.root.Field("defaults"))
}

func usesOf(p *Proxy) (out [][]string) {
	for _, r := range p.Routes {
		out = append(out, r.Use)
	}
	return out
}

// ownsIdentity reports settings that would tell servers who a client is in the name of the
// gate.
func (ch *checker) ownsIdentity(f *Features, at schema.Place) {
	names := ch.c.SignIn.Headers.Names()
	owned := func(name string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return header.Twins(n, name) })
	}
	const remedy = "remove it, or choose other names in sign_in.headers"
	for i := range f.Headers {
		if rule := &f.Headers[i]; rule.Direction == headers.Request && owned(rule.Name) {
			at.Field("headers").Index(i).Called("header rule", rule.Name).Field("name").Problemf(remedy, "the header %s is reserved for the identity of people who passed the gate", rule.Name)
		}
	}
	if f.ForwardAuth != nil {
		for i, name := range f.ForwardAuth.ResponseHeaders {
			if owned(name) {
				at.Field("forward_auth").Field("response_headers").Index(i).Problemf(remedy, "the header %s is reserved for the identity of people who passed the gate", name)
			}
		}
	}
}

// gateEntries reports people of a provider that is not there.
func (ch *checker) gateEntries(g *Gate, at schema.Place) {
	for i, text := range g.Allow {
		e, err := gate.ParseEntry(text)
		if err == nil && e.Provider == people.Provider && !ch.c.SignIn.Local && !at.Root().Field("sign_in").Reported() {
			at.Field("allow").Index(i).Problemf("set sign_in: {local: true}, or name a provider, such as group:PROVIDER/NAME", "%s is a local group or person, and local people cannot sign in", text)
			continue
		}
		if err != nil || e.Provider == "" || e.Provider == people.Provider || ch.c.SignIn.Providers[e.Provider] != nil || at.Root().Field("sign_in").Reported() {
			continue
		}
		remedy := "add it under sign_in.providers"
		if near := schema.Nearest(e.Provider, sortedNames(ch.c.SignIn.Providers)); near != "" {
			remedy = "did you mean " + near + "?"
		}
		at.Field("allow").Index(i).Problemf(remedy, "there is no sign-in provider %q", e.Provider)
	}
}

// gateByLabels reports policies that labels must not use: they could let more people in than
// the operator wants.
func (ch *checker) gateByLabels(p *Proxy, at schema.Place) {
	tell := func(use []string, at schema.Place) {
		for i, name := range use {
			policy := ch.c.Policies[name]
			if policy == nil || policy.Gate == nil {
				continue
			}
			if policy.Gate.Off() || ch.c.Defaults.Gate != nil {
				at.Field("use").Index(i).Problemf("use another policy: labels can only add a gate where there is none", "policy %s would change the gate", name)
			}
		}
	}
	tell(p.Use, at)
	for i, r := range p.Routes {
		tell(r.Use, at.Field("routes").Index(i).Called("route", r.Label()))
		if len(r.Use) > 0 && len(p.Use) > 0 && gatedBy(ch.c, p.Use) && gatedBy(ch.c, r.Use) {
			at.Field("routes").Index(i).Field("use").Problem("the policies of the proxy and of the route both have a gate", "use one of them")
		}
	}
}

func gatedBy(c *Config, use []string) bool {
	return slices.ContainsFunc(use, func(name string) bool { return c.Policies[name] != nil && c.Policies[name].Gate != nil })
}
