package config

import (
	"cmp"
	"maps"
	"slices"

	"headgate/internal/feature/clientip"
	"headgate/internal/schema"
	"headgate/internal/setting/unit"
)

// UsualHTTPS is the port number of https URLs that name none.
const UsualHTTPS = 443

// SecurePorts returns the active https ports that a proxy answers on, by number.
func (c *Config) SecurePorts(p *Proxy) []*Port {
	var all []*Port
	for name, port := range c.Ports {
		if port.Active && c.Here(port.Nodes) && port.Protocol == HTTPS && (len(p.Ports) == 0 || slices.Contains(p.Ports, name)) {
			all = append(all, port)
		}
	}
	slices.SortFunc(all, func(a, b *Port) int {
		return cmp.Or(cmp.Compare(a.Address.Port(), b.Address.Port()), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// SecurePort returns the port number that clients of an http port are redirected to for
// HTTPS: that of the https port whose number corresponds to it as 443 to 80 and 8443 to
// 8080; else 443; else that of the first https port. It is 443 if the proxy has no https
// port: then a proxy in front terminates TLS.
func (c *Config) SecurePort(p *Proxy, from *Port) int {
	const apart = UsualHTTPS - 80
	number := 0
	for _, port := range c.SecurePorts(p) {
		switch n := int(port.Address.Port()); {
		case n == int(from.Address.Port())+apart:
			return n
		case n == UsualHTTPS || number == 0:
			number = n
		}
	}
	return cmp.Or(number, UsualHTTPS)
}

// checkToHTTPS reports a redirect to HTTPS that cannot work: the proxy has no https port,
// and no trusted proxy in front that could terminate TLS.
func checkToHTTPS(c *Config, p *Proxy, at schema.Place) {
	if len(c.SecurePorts(p)) > 0 || at.Root().Field("ports").Reported() || at.Field("ports").Reported() {
		return
	}
	inFront := trustsProxies(p.ClientIP)
	tell := func(set *unit.Switch, at schema.Place) {
		if set != nil && *set == unit.On {
			at.Field("redirect_http_to_https").Problem("no active port of the proxy speaks https",
				"add a port with protocol: https, or name under client_ip who speaks TLS in front")
		}
	}
	for i, r := range p.Routes {
		trusted := trustsProxies(p.Effective(r).ClientIP)
		inFront = inFront || trusted
		if !trusted {
			tell(r.RedirectHTTPToHTTPS, at.Field("routes").Index(i).Called("route", r.Label()))
		}
	}
	if !inFront {
		tell(p.RedirectHTTPToHTTPS, at)
	}
}

// trustsProxies reports whether settings trust a proxy in front.
func trustsProxies(c *clientip.Config) bool {
	return c != nil && c.Enabled && (len(c.CDN) > 0 || len(c.Trusted) > 0)
}

// noteOpenPasswords reports passwords that are sent in plain text: a proxy requires them on
// a port without TLS, does not redirect to HTTPS, and trusts no proxy in front that
// terminates TLS.
func noteOpenPasswords(c *Config, p *Proxy, at schema.Place) {
	open := ""
	for _, name := range slices.Sorted(maps.Keys(c.Ports)) {
		if port := c.Ports[name]; port.Active && port.Protocol == HTTP && (len(p.Ports) == 0 || slices.Contains(p.Ports, name)) && !port.Address.Addr().IsLoopback() {
			open = name
			break
		}
	}
	if open == "" {
		return
	}
	tell := func(at schema.Place) {
		at.Field("basic_auth").Note("passwords are sent unencrypted to port "+open+", whose protocol is http",
			"add redirect_http_to_https: true, or name under client_ip who speaks TLS in front")
	}
	inherited := false
	for i, r := range p.Routes {
		f := p.Effective(r)
		if f.BasicAuth == nil || f.RedirectHTTPToHTTPS != nil || trustsProxies(f.ClientIP) {
			continue
		}
		if r.BasicAuth == nil {
			inherited = true
			continue
		}
		tell(at.Field("routes").Index(i).Called("route", r.Label()))
	}
	if inherited {
		tell(at)
	}
}

// noteUnknownUsers reports rate limits by user without authentication: all clients are then
// counted by address.
func noteUnknownUsers(p *Proxy, at schema.Place) {
	const what = "there is no authentication here, so clients are counted by address"
	const remedy = "add basic_auth or forward_auth, or use another key"
	inherited := false
	for i, r := range p.Routes {
		f := p.Effective(r)
		if f.RateLimit == nil || !f.RateLimit.AfterSignIn() || f.BasicAuth != nil || f.ForwardAuth != nil {
			continue
		}
		if r.RateLimit == nil {
			inherited = true
			continue
		}
		at.Field("routes").Index(i).Called("route", r.Label()).Field("rate_limit").Field("key").Note(what, remedy)
	}
	if inherited {
		at.Field("rate_limit").Field("key").Note(what, remedy)
	}
}
