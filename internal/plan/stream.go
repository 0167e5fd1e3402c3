package plan

import (
	"maps"
	"slices"
	"strings"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/stream/tcp"
	"headgate/internal/upstream"
)

// passthrough is the TCP proxies of an https port, by the names that clients ask
// for.
type passthrough struct {
	exact, wildcard map[string]*tcp.Proxy
}

// find returns the proxy for a name, or nil. A wildcard matches one label.
func (t *passthrough) find(name string) *tcp.Proxy {
	if p := t.exact[name]; p != nil {
		return p
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		return t.wildcard[rest]
	}
	return nil
}

// PassesThrough reports whether the port has TCP proxies, so that it has to be
// known what a client asks for before it is spoken to.
func (p *Port) PassesThrough() bool { return p.passthrough != nil }

// Passthrough returns the TCP proxy for the connections of clients with a server name,
// which is in lower case; nil if the port terminates TLS.
func (p *Port) Passthrough(name string) *tcp.Proxy {
	if p.passthrough == nil {
		return nil
	}
	return p.passthrough.find(name)
}

// Stream returns the TCP proxy whose address this is, nil if the port speaks HTTP.
func (p *Port) Stream() *tcp.Proxy { return p.stream }

// TCPProxy is a TCP proxy of a plan.
type TCPProxy struct {
	// Settings are those of the configuration.
	Settings *config.TCPProxy
	// Proxy is its compiled form.
	Proxy *tcp.Proxy
	// Servers are its servers, in the order of the configuration.
	Servers []*StreamServer
}

// TCPProxies returns the active TCP proxies by name. The slice is the plan's own.
func (p *Plan) TCPProxies() []TCPProxy { return p.tcpProxies }

// tcp compiles the TCP proxies.
func (c *compiler) tcp() {
	for _, name := range slices.Sorted(maps.Keys(c.config.TCPProxies)) {
		settings := c.config.TCPProxies[name]
		if !settings.Active {
			continue
		}
		at := c.report.Root().Field("tcp_proxies").Field(name).Called("TCP proxy", name)
		proxy, servers := c.tcpProxy(settings, at)
		if proxy == nil {
			continue
		}
		c.plan.tcpProxies = append(c.plan.tcpProxies, TCPProxy{settings, proxy, servers})
		if settings.Address.IsValid() {
			c.plan.streams = append(c.plan.streams, c.newStream(settings, proxy, at))
			continue
		}
		if port := c.plan.Port(settings.Port); port != nil {
			port.passThrough(settings, proxy, at)
		}
	}
}

// streamRooms compiles the features of a TCP or UDP proxy, in the order of the table of
// rooms. It reports false after a problem.
func (c *compiler) streamRooms(scope string, f *config.StreamFeatures, at schema.Place) (filters exchange.StreamFilters, ok bool) {
	env := c.env
	env.Scope = scope
	if c.bans != nil {
		filters = append(filters, c.bans.Admit()) // bans act everywhere, without settings of a proxy
	}
	for i := range c.shared.filters {
		r := &c.shared.filters[i]
		if r.stream == nil {
			continue
		}
		switch filter, err := r.stream(f, env); {
		case err != nil:
			at.Field(r.name).Problem(err.Error(), "")
			return nil, false
		case filter.Admit != nil:
			filters = append(filters, filter)
		}
	}
	return filters, true
}

// newStream returns the port of a TCP proxy with an address.
func (c *compiler) newStream(settings *config.TCPProxy, proxy *tcp.Proxy, at schema.Place) *Port {
	return &Port{
		settings: &config.Port{
			Object: config.Object{Name: settings.Name}, Address: settings.Address, Protocol: config.TCP, DrainTimeout: settings.DrainTimeout, Active: true,
			Limits: config.Limits{MaxConnections: settings.MaxConnections},
		},
		front:      exchange.Port{Place: &exchange.Place{Port: settings.Name}},
		stream:     proxy,
		announcers: newAnnouncers(settings.AcceptProxyProtocol, at.Field("accept_proxy_protocol")),
	}
}

// passThrough gives the port a TCP proxy for names.
func (p *Port) passThrough(settings *config.TCPProxy, proxy *tcp.Proxy, at schema.Place) {
	names, fault := settings.Names()
	if fault != nil {
		at.Field("sni").Problem(fault.What, fault.Remedy)
		return
	}
	if p.passthrough == nil {
		p.passthrough = &passthrough{exact: map[string]*tcp.Proxy{}, wildcard: map[string]*tcp.Proxy{}}
	}
	for _, name := range names {
		if name.Class == config.HostWildcard {
			p.passthrough.wildcard[name.Name] = proxy
		} else {
			p.passthrough.exact[name.Name] = proxy
		}
	}
}

// tcpProxy compiles one TCP proxy; nil after a problem.
func (c *compiler) tcpProxy(settings *config.TCPProxy, at schema.Place) (*tcp.Proxy, []*StreamServer) {
	out := tcp.Settings{
		Name:           settings.Name,
		ConnectTimeout: settings.ConnectTimeout.D(),
		IdleTimeout:    settings.IdleTimeout.D(),
		Drain:          settings.DrainTimeout.D(),
		Send:           settings.ProxyProtocol.Version(),
	}
	var ok bool
	if out.Filters, ok = c.streamRooms("TCP proxy "+settings.Name, &settings.StreamFeatures, at); !ok {
		return nil, nil
	}
	list, group := c.streamServers(streamKind{"tcp", settings.Name, settings.Servers, settings.LoadBalancing, settings.HealthCheck, at})
	if group == nil {
		return nil, nil
	}
	out.Group = group
	for i, s := range list {
		server := &tcp.Server{Address: s.Address, Dial: s.name.Dial, Gauge: &s.Live.Gauge, Told: s.count, Fault: upstream.Fault}
		if settings.Servers[i].TLS != nil {
			if server.TLS = c.secureStream(settings.Name, i, settings.Servers[i], at); server.TLS == nil {
				return nil, nil
			}
		}
		out.Servers = append(out.Servers, server)
	}
	out.Record = c.recordSession(settings.AccessLog)
	out.Roster = c.env.Keep("tcp proxy\x00"+settings.Name, func() exchange.Kept { return tcp.NewRoster() }).(*tcp.Roster)
	if c.house.Metrics != nil {
		c.count(c.house.Metrics.Stream("tcp", settings.Name, out.Roster.Counts))
	}
	return tcp.New(out), list
}
