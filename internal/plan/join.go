package plan

import (
	"maps"
	"slices"
	"strconv"

	"headgate/internal/config"
)

// claims is what the proxies of one port want.
type claims struct {
	exact, wildcard, regex map[string][]*member
	patterns               map[string]config.VirtualHost
	any                    []*member
	members                int
}

// add claims hosts for a proxy.
func (cl *claims) add(virtual []config.VirtualHost, m *member) {
	cl.members++
	m.number = cl.members
	if len(virtual) == 0 {
		cl.any = append(cl.any, m)
	}
	for _, h := range virtual {
		switch h.Class {
		case config.HostExact:
			cl.exact[h.Name] = append(cl.exact[h.Name], m)
		case config.HostWildcard:
			cl.wildcard[h.Name] = append(cl.wildcard[h.Name], m)
		case config.HostRegex:
			cl.regex[h.Name] = append(cl.regex[h.Name], m)
			cl.patterns[h.Name] = h
		}
	}
}

// join makes the host tables of the ports.
func (c *compiler) join() {
	for i, port := range c.plan.ports {
		cl := &claims{
			exact: make(map[string][]*member, len(c.plan.proxies)), wildcard: map[string][]*member{}, regex: map[string][]*member{},
			patterns: map[string]config.VirtualHost{},
		}
		for _, p := range c.plan.proxies {
			if p.members != nil && p.members[i] != nil {
				cl.add(p.virtual, p.members[i])
			}
		}
		c.joinPort(port, cl)
	}
}

// joinPort makes the host table of a port. Hosts of the same proxies share one path
// table.
func (c *compiler) joinPort(port *Port, cl *claims) {
	j := &joiner{c: c, port: port, tables: map[string]*paths{}}
	port.hosts.exact = j.byName(cl.exact, "")
	port.hosts.wildcard = j.byName(cl.wildcard, "*.")
	for _, text := range slices.Sorted(maps.Keys(cl.regex)) {
		port.hosts.patterns = append(port.hosts.patterns, pattern{cl.patterns[text].Regex, j.table(cl.regex[text], "~"+text)})
	}
	port.hosts.sortPatterns()
	if len(cl.any) > 0 {
		port.hosts.any = j.table(cl.any, "")
	}
}

// renewed is a proxy that was compiled anew, and what it was in the plan before, nil if
// it was not there or could not have been carried over.
type renewed struct{ was, is *proxy }

// rejoin makes the host tables of the ports from those of the previous plan, if that has
// proxies of the same names, a few proxies have different routes and none has different
// hosts. Otherwise it returns false, and has changed nothing.
func (c *compiler) rejoin(prev *Plan, changed []renewed) bool {
	if len(prev.ports) != len(c.plan.ports) || len(changed) > len(prev.names)/10+1 {
		return false
	}
	for _, r := range changed {
		if !r.replaces(prev) {
			return false
		}
	}
	for i, port := range c.plan.ports {
		port.hosts = prev.ports[i].hosts
		j, copied := &joiner{c: c, port: port}, false
		for _, r := range changed {
			if r.is.members == nil || r.is.members[i] == nil {
				continue
			}
			if len(r.is.virtual) == 0 {
				port.hosts.any = j.table([]*member{r.is.members[i]}, "")
				continue
			}
			if !copied {
				port.hosts.exact, copied = maps.Clone(port.hosts.exact), true
			}
			for _, h := range r.is.virtual {
				port.hosts.exact[h.Name] = j.table([]*member{r.is.members[i]}, h.Name)
			}
		}
	}
	return true
}

// replaces reports whether a proxy can take its former place in the tables of the previous
// plan: it has the same exact hosts, or others, on the same ports, and shares them with no
// other proxy.
func (r *renewed) replaces(prev *Plan) bool {
	if r.was == nil || len(r.is.members) != len(r.was.members) || !slices.EqualFunc(r.is.virtual, r.was.virtual, func(a, b config.VirtualHost) bool {
		return a.Class == config.HostExact && b.Class == config.HostExact && a.Name == b.Name
	}) {
		return false
	}
	for i, m := range r.was.members {
		switch {
		case (m == nil) != (r.is.members[i] == nil):
			return false
		case m == nil:
			continue
		case m.table == nil, m.table.loose != nil: // loose paths guard the whole port
			return false
		case len(r.was.virtual) == 0 && prev.ports[i].hosts.any != m.table:
			return false
		}
		for _, h := range r.was.virtual {
			if prev.ports[i].hosts.exact[h.Name] != m.table {
				return false
			}
		}
	}
	return true
}

type joiner struct {
	c      *compiler
	port   *Port
	tables map[string]*paths // by the numbers of several proxies
	key    []byte
}

func (j *joiner) byName(all map[string][]*member, before string) map[string]*paths {
	if len(all) == 0 {
		return nil
	}
	out := make(map[string]*paths, len(all))
	for name, members := range all {
		out[name] = j.table(members, before+name)
	}
	return out
}

// table returns the path table of proxies that share a host.
func (j *joiner) table(members []*member, host string) *paths {
	clash := func(first, second *Route) { j.c.clash(j.port, host, first, second) }
	if len(members) == 1 {
		m := members[0]
		if m.table == nil {
			m.table = newPaths(m.routes, clash)
			m.table.loose = newLoosePaths(m.routes)
		}
		j.guard(m.table)
		return m.table
	}
	j.key = j.key[:0]
	for _, m := range members {
		j.key = append(strconv.AppendInt(j.key, int64(m.number), 10), ' ')
	}
	if t := j.tables[string(j.key)]; t != nil {
		return t
	}
	var routes []*Route
	for _, m := range members {
		routes = append(routes, m.routes...)
	}
	t := newPaths(routes, clash)
	t.loose = newLoosePaths(routes)
	j.guard(t)
	j.tables[string(j.key)] = t
	return t
}

// guard notes on the port that a table has loose paths.
func (j *joiner) guard(t *paths) { j.port.hosts.guarded = j.port.hosts.guarded || t.loose != nil }

// clash reports two routes that match the same requests, once for each pair.
func (c *compiler) clash(port *Port, host string, first, second *Route) {
	if first.reserved && second.reserved {
		return // of two proxies with one host: they are the same
	}
	pair := clash{first.settings, second.settings}
	if c.reported[pair] {
		return
	}
	c.reported[pair] = true
	where := "host " + host
	if host == "" {
		where = "no virtual host"
	}
	if second.matchers != nil {
		place(c.report, second.proxy, second.number).Field("matchers").Problemf(
			"add a matcher to one of them, or let them require different values of the same header or parameter",
			"port %s, %s: a request can match both route %s and route %s of %s, which have as many matchers",
			port.Name(), where, second.label, first.label, place(c.report, first.proxy, first.number).Path())
		return
	}
	place(c.report, second.proxy, second.number).Field("path").Problemf(
		"give one of them another path, virtual host or port, or active: false",
		"port %s, %s, path %s are also used by %s",
		port.Name(), where, second.path(), place(c.report, first.proxy, first.number).Field("path").Path())
}
