package plan

import (
	"slices"
	"strconv"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	gatefeature "headgate/internal/feature/gate"
	people "headgate/internal/gate"
)

// beforeReserved are the rooms that act on headgate's own paths on the hosts of a gate: those
// that come before it in the order of features.
var beforeReserved = []string{"client_ip", "gate", "tracing", "bans", "ip_filter", "rate_limit", "redirect_http_to_https"}

// gateGuard adds what keeps headgate's cookies, and fields that name people, away from
// servers: to all routes of a proxy that has a gate somewhere, and to the sign-in page.
func (c *compiler) gateGuard(b *body, _ *config.Features) error {
	if !b.reserved && b.settings.SignIn == nil && !b.proxy.Gated() {
		return nil
	}
	headers := &c.config.SignIn.Headers
	guard, err := c.once(memoKey{"gate guard", headers}, func() (exchange.Filter, error) { return gatefeature.Guard(headers), nil })
	if err == nil {
		c.shared.lists.share(guard)
	}
	return err
}

// peopleGate adds the gate of a route.
func (c *compiler) peopleGate(b *body, f *config.Features) error {
	if f.Gate == nil {
		return nil
	}
	allow, err := people.ParseAllow(f.Gate.Allow)
	if err != nil {
		return err
	}
	b.allow = allow
	own := f.Gate == b.settings.Gate
	framed := b.proxy.FramedGate()
	filter, err := c.once(memoKey{"gate", [3]any{f.Gate, strings.Join(b.proxy.Ports, "\n"), framed}}, func() (exchange.Filter, error) {
		return gatefeature.Compile(f.Gate, &c.config.SignIn.Headers, c.house.Gate, framed, c.envFor(b, own))
	})
	if err == nil {
		c.shared.lists.share(filter)
	}
	return err
}

// Site implements gate.Sites: the address is looked up as a request for it would be.
func (p *Plan) Site(host string, port int, path string) (people.Site, bool) {
	s, r := p.site(host, port, path)
	return s, r != nil
}

// site returns an application and its route, nil if there is none.
func (p *Plan) site(host string, port int, path string) (people.Site, *Route) {
	if host == "" || strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return people.Site{}, nil
	}
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Scheme: "https"}, nil)
	ex.Request.Method, ex.Request.Scheme, ex.Request.Host, ex.Request.Path, ex.Request.Proto = "GET", "https", host, path, exchange.HTTP11
	if normalise(ex) != nil {
		return people.Site{}, nil
	}
	name := hostName(host, &ex.Text)
	for _, on := range p.reachedBy(port) {
		r := on.hosts.route(ex, name, ex.Request.Path)
		if r == nil || r.allow == nil || on.hosts.ambiguous(ex, name, ex.Request.Path, r) != nil {
			continue
		}
		s := people.Site{Origin: "https://" + name, Host: strings.Clone(name), Path: strings.Clone(ex.Request.Path), Wildcard: on.hosts.exact[name] == nil, Allow: r.allow}
		if port != config.UsualHTTPS {
			s.Origin += ":" + strconv.Itoa(port)
		}
		return s, r
	}
	return people.Site{}, nil
}

// Applications implements gate.Sites: for each exact host with a gate, its first page.
// A page with icons needs them for each icon, and a plan does not change: they are collected once.
func (p *Plan) Applications() []people.Application {
	p.applications.Do(func() { p.found = p.findApplications() })
	return p.found
}

func (p *Plan) findApplications() (out []people.Application) {
	for _, name := range p.config.GateNames() {
		proxy := p.config.Proxies[name]
		hosts, err := proxy.Hosts()
		if err != nil {
			continue
		}
		number := 0
		for _, port := range p.ports {
			if n := int(port.Address().Port()); onPort(proxy, port) && port.Secure() && (number == 0 || n == config.UsualHTTPS) {
				number = n
			}
		}
		if number == 0 {
			number = config.UsualHTTPS // something in front terminates TLS
		}
		for _, h := range hosts {
			if h.Class == config.HostExact {
				if site, r := p.site(h.Name, number, "/"); r != nil {
					out = append(out, people.Application{Site: site, Name: titleOf(proxy), Source: r.source, State: func() people.AppState { return p.stateOf(name) }})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b people.Application) int { return strings.Compare(a.Host, b.Host) })
	return out
}

// titleOf returns what people call an application: the description of its proxy if that is short,
// else the name.
func titleOf(p *config.Proxy) string {
	if d := strings.TrimSpace(p.Description); d != "" && len(d) <= maxTitle {
		return d
	}
	return p.Name
}

// maxTitle is the longest description, in bytes, that is the title of an application.
const maxTitle = 40

// stateOf returns whether the application of a proxy can be used.
func (p *Plan) stateOf(name string) people.AppState {
	for _, s := range p.ProxiesNamed([]string{name}) {
		switch s.State {
		case ProxyDown:
			return people.AppDown
		case ProxyMaintenance:
			return people.AppMaintenance
		}
	}
	return people.AppActive
}

// reachedBy returns the ports that clients of https may reach under a number: those that
// have it; for the usual one also those that something in front forwards to.
func (p *Plan) reachedBy(number int) []*Port {
	var same, secure []*Port
	for _, port := range p.ports {
		if port.Secure() {
			secure = append(secure, port)
			if int(port.Address().Port()) == number {
				same = append(same, port)
			}
		}
	}
	switch {
	case len(same) > 0:
		return same
	case number != config.UsualHTTPS:
		return nil
	case len(secure) > 0:
		return secure
	}
	return p.ports
}

// SignInHost implements gate.Sites.
func (p *Plan) SignInHost() (host string, ports map[string]int) {
	page := p.config.SignInProxy()
	if page == nil {
		return "", nil
	}
	hosts, err := page.Hosts()
	if err != nil || len(hosts) != 1 {
		return "", nil
	}
	ports = map[string]int{"": config.UsualHTTPS}
	var numbers []int
	for _, port := range p.ports {
		if onPort(page, port) && port.Secure() {
			n := int(port.Address().Port())
			ports[port.Name()] = n
			if port.Protocol() == config.HTTPS {
				numbers = append(numbers, n)
			}
		}
	}
	if len(numbers) > 0 && !slices.Contains(numbers, config.UsualHTTPS) {
		ports[""] = slices.Min(numbers)
	}
	return hosts[0].Name, ports
}
