package config

import (
	"slices"

	"headgate/internal/schema"
)

// pin is the identity of a sticky cookie in browsers: its name, the path of its route and
// the host. Cookies do not depend on the port (RFC 6265, section 8.5).
type pin struct{ host, path, cookie string }

// pinned is a route that sets a sticky cookie.
type pinned struct {
	proxy *Proxy
	index int // of the route
}

func (p pinned) route() *Route { return p.proxy.Routes[p.index] }

// pins are the routes with sticky cookies, those of all proxies. Nil is none.
type pins map[pin][]pinned

// add adds the routes of a proxy. Unless it is nil, report is called for each route that
// sets the cookie of another one for different servers: its clients would lose the server
// that they are assigned to. It returns the added cookies.
func (all *pins) add(p *Proxy, report func(i int, before pinned)) (added []pin) {
	if !p.Active {
		return nil
	}
	var hosts []string
	for i, r := range p.Routes {
		if r.StickyCookie == nil || !r.StickyCookie.Enabled {
			continue
		}
		if hosts == nil {
			hosts = pinHosts(p)
		}
		refused := false
		for _, host := range hosts {
			at, now := pin{host, r.Prefix(), r.StickyCookie.Name}, pinned{p, i}
			for _, before := range (*all)[at] {
				if report != nil && !refused && !sameServers(r, before.route()) {
					report(i, before)
					refused = true
				}
			}
			if *all == nil {
				*all = pins{}
			}
			(*all)[at] = append((*all)[at], now)
			added = append(added, at)
		}
	}
	return added
}

// drop takes out what add has added last.
func (all pins) drop(added []pin) {
	for _, at := range added {
		if all[at] = all[at][:len(all[at])-1]; len(all[at]) == 0 {
			delete(all, at)
		}
	}
}

// pinHosts returns the hosts of a proxy, "" for one that takes all.
func pinHosts(p *Proxy) []string {
	hosts, err := p.Hosts()
	if err != nil || len(hosts) == 0 {
		return []string{""}
	}
	out := make([]string, len(hosts))
	for i, h := range hosts {
		out[i] = h.String()
	}
	return out
}

// sticky reports routes of all proxies that overwrite each other's sticky cookies.
func (ch *checker) sticky(root schema.Place) {
	for _, name := range ch.c.special().pinning {
		p := ch.c.Proxies[name]
		ch.pins.add(p, reportPinned(p, root.Field("proxies").Field(name).Called("proxy", name)))
	}
}

// reportPinned returns a function that reports the routes of a proxy at a place.
func reportPinned(p *Proxy, at schema.Place) func(i int, before pinned) {
	return func(i int, before pinned) {
		r, of := p.Routes[i], ""
		if before.proxy != p {
			of = " of proxy " + before.proxy.Name
		}
		at.Field("routes").Index(i).Called("route", r.Label()).Field("sticky_cookie").Field("name").Problemf("give one of them another name",
			"routes[%d]%s, %s, has the cookie %s for other servers, and browsers keep one of a name, host and path", before.index, of, before.route().Label(), r.StickyCookie.Name)
	}
}

// sameServers reports whether two routes have the servers of the same URLs.
func sameServers(a, b *Route) bool {
	urls := func(r *Route) []string {
		var out []string
		for _, s := range r.Servers {
			out = append(out, s.URL)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return slices.Equal(urls(a), urls(b))
}

// pinsClients reports whether an object is a proxy with a route that has a sticky
// cookie.
func pinsClients(o any) bool {
	p, ok := o.(*Proxy)
	return ok && slices.ContainsFunc(p.Routes, func(r *Route) bool { return r.StickyCookie != nil && r.StickyCookie.Enabled })
}
