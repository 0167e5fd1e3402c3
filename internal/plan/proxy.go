package plan

import (
	"maps"
	"slices"

	"headgate/internal/config"
	"headgate/internal/schema"
)

// proxy is a proxy with its routes. The next plan takes it over whole if its settings
// are the same object, as config.Load has it for those whose text did not change, and
// nothing else has changed that it was compiled with.
type proxy struct {
	unit
	settings *config.Proxy
	virtual  []config.VirtualHost
	bodies   []*body // nil when it is not active
	// members are the proxy on each port of the plan, nil where it is not.
	members []*member
	stores  []stored // what caches hold
	// unverified are the servers whose certificates are not checked.
	unverified []Unverified
	// sends is whether a route has redirect rules.
	sends bool
}

// member is a proxy on a port.
type member struct {
	routes []*Route
	table  *paths // of this proxy alone; made when it is needed
	number int    // in the compile under way
}

// proxies compiles the proxies, or carries them over, and makes the host tables of the
// ports.
func (c *compiler) proxies(prev *Plan) {
	before := c.carried(prev)
	if before != nil && c.replaced(prev) {
		return
	}
	names, settings := proxyNames(c.config, prev)
	c.plan.names = names
	c.plan.proxies = make([]*proxy, 0, len(names))
	var changed []renewed
	for i, name := range names {
		for len(before) > 0 && before[0].settings.Name < name {
			before = before[1:]
		}
		var was *proxy
		if len(before) > 0 && before[0].settings.Name == name {
			was = before[0]
		}
		if was != nil && was.settings == settings[i] && was.same(&c.house) {
			c.plan.proxies = append(c.plan.proxies, was)
			continue
		}
		is := c.proxy(settings[i])
		c.plan.proxies = append(c.plan.proxies, is)
		changed = append(changed, renewed{was, is})
	}
	c.compiling, c.keeper.unit = nil, c.plan.rest
	for i := range c.plan.proxies {
		c.plan.watch(i)
	}
	if prev == nil || len(names) != len(prev.names) || !c.rejoin(prev, changed) {
		c.join()
	}
}

// replaced is proxies for the case that the changed ones are known, and none was added or
// removed: the others are skipped.
func (c *compiler) replaced(prev *Plan) bool {
	names, ok := c.config.ProxiesSince(prev.config)
	if !ok || len(names) > len(prev.names)/10+1 {
		return false
	}
	at := make([]int, 0, len(names)+len(prev.watching))
	for _, name := range names {
		i, was := slices.BinarySearch(prev.names, name)
		if !was || c.config.Proxies[name] == nil {
			return false
		}
		at = append(at, i)
	}
	for _, i := range prev.watching {
		if !prev.proxies[i].same(&c.house) {
			at = append(at, i)
		}
	}
	slices.Sort(at)
	c.plan.names, c.plan.proxies = prev.names, slices.Clone(prev.proxies)
	changed := make([]renewed, 0, len(at))
	for _, i := range slices.Compact(at) {
		is := c.proxy(c.config.Proxies[prev.names[i]])
		changed = append(changed, renewed{prev.proxies[i], is})
		c.plan.proxies[i] = is
	}
	c.compiling, c.keeper.unit = nil, c.plan.rest
	c.plan.watching = slices.Clone(prev.watching)
	for _, i := range at {
		c.plan.watch(i)
	}
	if !c.rejoin(prev, changed) {
		c.join()
	}
	return true
}

// watch notes whether a proxy was compiled with what may change by itself.
func (p *Plan) watch(i int) {
	at, found := slices.BinarySearch(p.watching, i)
	switch u := &p.proxies[i].unit; {
	case len(u.files)+len(u.pairs) == 0 && found:
		p.watching = slices.Delete(p.watching, at, at+1)
	case len(u.files)+len(u.pairs) > 0 && !found:
		p.watching = slices.Insert(p.watching, at, i)
	}
}

// proxyNames returns the names of the proxies in their order, which is that of the
// plan before if it has the same, and the settings of each.
func proxyNames(cfg *config.Config, prev *Plan) ([]string, []*config.Proxy) {
	var names []string
	if prev != nil && len(prev.names) == len(cfg.Proxies) {
		names = prev.names
	}
	settings := make([]*config.Proxy, 0, len(cfg.Proxies))
	for _, name := range names {
		if p := cfg.Proxies[name]; p != nil {
			settings = append(settings, p)
		}
	}
	if len(settings) == len(cfg.Proxies) {
		return names, settings
	}
	names, settings = slices.Sorted(maps.Keys(cfg.Proxies)), settings[:0]
	for _, name := range names {
		settings = append(settings, cfg.Proxies[name])
	}
	return names, settings
}

// carried returns the proxies of the plan before that may be taken over, by name:
// none if anything has changed that is around all of them.
func (c *compiler) carried(prev *Plan) []*proxy {
	if prev == nil || !c.config.SameAround(prev.config) {
		return nil
	}
	was, is := &prev.house, &c.house
	switch {
	case was.Metrics != is.Metrics, was.Tunnels != is.Tunnels, was.Log != is.Log, was.Values != is.Values, was.Recent != is.Recent, was.Gate != is.Gate,
		was.RecordOf != is.RecordOf, (was.Record == nil) != (is.Record == nil), is.Record != nil && is.RecordOf == nil,
		was.Inputs.AffinityKey() != is.Inputs.AffinityKey():
		return nil
	}
	return prev.proxies
}

// proxy compiles one proxy.
func (c *compiler) proxy(settings *config.Proxy) *proxy {
	p := &proxy{settings: settings}
	if !settings.Active {
		return p
	}
	at := c.report.Root().Field("proxies").Field(settings.Name).Called("proxy", settings.Name)
	c.compiling, c.keeper.unit = p, &p.unit
	var err error
	if p.virtual, err = settings.Hosts(); err != nil {
		at.Field("virtual_hosts").Problem(err.Error(), "")
	}
	p.bodies = c.bodies(settings, at)
	p.members = make([]*member, len(c.plan.ports))
	for i, port := range c.plan.ports {
		if onPort(settings, port) {
			p.members[i] = &member{routes: c.routes(port, settings, p.bodies)}
		}
	}
	for _, b := range p.bodies {
		p.sends = p.sends || len(b.redirects) > 0
	}
	return p
}

// place returns the place of a route in the configuration.
func place(report *schema.Report, p *config.Proxy, number int) schema.Place {
	return report.Root().Field("proxies").Field(p.Name).Called("proxy", p.Name).
		Field("routes").Index(number).Called("route", p.Routes[number].Label())
}
