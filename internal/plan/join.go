package plan

import (
	"maps"
	"slices"
	"strconv"
)

// join makes the host table of a port. Hosts of the same proxies share one path
// table.
func (c *compiler) join(port *Port) {
	cl := c.claims[port]
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

// clash tells of two routes that want the same requests, once for each pair.
func (c *compiler) clash(port *Port, host string, first, second *Route) {
	pair := clash{first.settings, second.settings}
	if c.told[pair] {
		return
	}
	c.told[pair] = true
	where := "host " + host
	if host == "" {
		where = "no virtual host"
	}
	if second.matchers != nil {
		place(c.report, second.proxy, second.number).Field("matchers").Problemf(
			"add a matcher to one of them, or let them want different values of the same header or parameter",
			"port %s, %s: a request can match both route %s and route %s of %s, which have as many matchers",
			port.Name(), where, second.label, first.label, place(c.report, first.proxy, first.number).Path())
		return
	}
	place(c.report, second.proxy, second.number).Field("path").Problemf(
		"give one of them another path, virtual host or port, or active: false",
		"port %s, %s, path %s belong to %s too",
		port.Name(), where, second.path(), place(c.report, first.proxy, first.number).Field("path").Path())
}
