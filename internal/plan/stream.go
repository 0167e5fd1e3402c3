package plan

import (
	"crypto/tls"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/stream/tcp"
	"headgate/internal/upstream"
)

// streamTable finds the TCP proxy for a connection by the server name and the application
// protocols that its TLS client sends: among those of an https port, or of an address that
// several share.
type streamTable struct {
	// exact and wildcard are by name, and for all names.
	exact, wildcard map[string]byProtocol
	any             byProtocol
	// rest accepts what no other does, also connections without TLS; nil on https ports, and
	// where every proxy has names or protocols.
	rest *tcp.Proxy
}

// byProtocol are the proxies for a name: those for some protocols, and the one for clients
// that offer none of them.
type byProtocol struct {
	some []protocolEntry
	all  *tcp.Proxy
}

// protocolEntry is a proxy for clients that offer a protocol.
type protocolEntry struct {
	protocol string
	proxy    *tcp.Proxy
}

// find returns the proxy for a client that offers protocols. The client's preference
// decides if there are several.
func (b byProtocol) find(offered []string) *tcp.Proxy {
	if b.all == nil && len(b.some) > 0 && len(offered) == 1 && offered[0] == certs.ChallengeProtocol && b.some[0].proxy.Secure != nil {
		return b.some[0].proxy // headgate responds to the authority itself
	}
	for _, protocol := range offered {
		for _, e := range b.some {
			if e.protocol == protocol {
				return e.proxy
			}
		}
	}
	return b.all
}

// with returns b with a proxy for protocols, or for all without any.
func (b byProtocol) with(proxy *tcp.Proxy, protocols []string) byProtocol {
	if len(protocols) == 0 {
		b.all = proxy
	}
	for _, protocol := range protocols {
		b.some = append(b.some, protocolEntry{protocol, proxy})
	}
	return b
}

// find returns the proxy for a server name in lower case and protocols, or nil. An exact
// name has precedence over a wildcard, which matches one label, and both over all names.
func (t *streamTable) find(name string, protocols []string) *tcp.Proxy {
	if p := t.exact[name].find(protocols); p != nil {
		return p
	}
	if _, rest, ok := strings.Cut(name, "."); ok {
		if p := t.wildcard[rest].find(protocols); p != nil {
			return p
		}
	}
	if p := t.any.find(protocols); p != nil {
		return p
	}
	return t.rest
}

// reserves reports whether all clients with a name are for TCP proxies, whatever they offer.
func (t *streamTable) reserves(name string) bool {
	_, rest, _ := strings.Cut(name, ".")
	return t.exact[name].all != nil || t.wildcard[rest].all != nil
}

// add adds a proxy of an address or an https port.
func (t *streamTable) add(settings *config.TCPProxy, proxy *tcp.Proxy, at schema.Place) {
	names, fault := settings.Names()
	switch {
	case fault != nil:
		at.Field("sni").Problem(fault.What, fault.Remedy)
	case !settings.ByName():
		t.rest = proxy
	case len(names) == 0:
		t.any = t.any.with(proxy, settings.ALPN)
	}
	for _, name := range names {
		in := t.exact
		if name.Class == config.HostWildcard {
			in = t.wildcard
		}
		in[name.Name] = in[name.Name].with(proxy, settings.ALPN)
	}
}

func newStreamTable() *streamTable {
	return &streamTable{exact: map[string]byProtocol{}, wildcard: map[string]byProtocol{}}
}

// alone reports whether one proxy accepts all connections.
func (t *streamTable) alone() bool {
	return len(t.exact) == 0 && len(t.wildcard) == 0 && len(t.any.some) == 0
}

// ReadsHello reports whether TCP proxies of the port are found by what a TLS client sends,
// so that its ClientHello has to be read first.
func (p *Port) ReadsHello() bool { return p.streams != nil && !p.direct }

// StreamFor returns the TCP proxy for the connection of a client with a server name, which
// is in lower case, and the application protocols that it offers. It is nil if the port
// itself terminates TLS, or if no proxy of the address accepts the client.
func (p *Port) StreamFor(name string, protocols []string) *tcp.Proxy {
	if p.streams == nil {
		return nil
	}
	return p.streams.find(name, protocols)
}

// Rest returns the TCP proxy for connections without TLS, or without a known name; nil if
// there is none.
func (p *Port) Rest() *tcp.Proxy {
	if p.streams == nil {
		return nil
	}
	return p.streams.rest
}

// IsStream reports whether the address is that of TCP proxies, and no HTTP is spoken.
func (p *Port) IsStream() bool { return p.Protocol() == config.TCP }

// TCPProxy is a TCP proxy of a plan.
type TCPProxy struct {
	// Settings are those of the configuration.
	Settings *config.TCPProxy
	// Proxy is its compiled form, of the first port of a range.
	Proxy *tcp.Proxy
	// Servers are its servers, in the order of the configuration.
	Servers []*StreamServer

	tls *portTLS // nil if TLS of clients is not terminated
}

// portIndex returns the place of a port number in the proxy's range; 0 without an address.
func (t *TCPProxy) portIndex(number uint16) int {
	if !t.Settings.Address.Has(number) {
		return 0
	}
	return int(number - t.Settings.Address.Port())
}

// TCPProxies returns the active TCP proxies by name. The slice is the plan's own.
func (p *Plan) TCPProxies() []TCPProxy { return p.tcpProxies }

// tcp compiles the TCP proxies.
func (c *compiler) tcp() {
	for _, name := range slices.Sorted(maps.Keys(c.config.TCPProxies)) {
		settings := c.config.TCPProxies[name]
		if !settings.Active || !c.config.Here(settings.Nodes) {
			continue
		}
		at := c.report.Root().Field("tcp_proxies").Field(name).Called("TCP proxy", name)
		secure, ok := c.secureClients(settings, at)
		if !ok {
			continue
		}
		proxies, servers := c.tcpProxy(settings, secure, at)
		if proxies == nil {
			continue
		}
		proxy := proxies[0]
		c.plan.tcpProxies = append(c.plan.tcpProxies, TCPProxy{settings, proxy, servers, secure})
		if settings.Address.IsValid() {
			for i, proxy := range proxies {
				c.listenFor(settings, settings.Address.At(i), proxy, at)
			}
		} else if port := c.plan.Port(settings.Port); port != nil {
			if port.streams == nil {
				port.streams = newStreamTable()
			}
			port.streams.add(settings, proxy, at)
		}
	}
}

// listenFor adds a TCP proxy to the port of an address, which it shares with others.
func (c *compiler) listenFor(settings *config.TCPProxy, address netip.AddrPort, proxy *tcp.Proxy, at schema.Place) {
	i := slices.IndexFunc(c.plan.streams, func(p *Port) bool { return p.Address() == address })
	if i < 0 {
		i = len(c.plan.streams)
		c.plan.streams = append(c.plan.streams, c.newStream(settings, address, at))
	}
	port := c.plan.streams[i]
	port.streams.add(settings, proxy, at)
	port.settings.DrainTimeout = max(port.settings.DrainTimeout, settings.DrainTimeout)
	port.direct = !settings.ByName() && port.streams.alone()
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

// newStream returns the port of the first TCP proxy of an address.
func (c *compiler) newStream(settings *config.TCPProxy, address netip.AddrPort, at schema.Place) *Port {
	return &Port{
		settings: &config.Port{
			Object: config.Object{Name: settings.Name}, Address: address, Protocol: config.TCP, DrainTimeout: settings.DrainTimeout, Active: true,
			Limits: config.Limits{MaxConnections: settings.MaxConnections},
		},
		front:      exchange.Port{Place: &exchange.Place{Port: settings.Name}},
		streams:    newStreamTable(),
		announcers: newAnnouncers(settings.AcceptProxyProtocol, at.Field("accept_proxy_protocol")),
	}
}

// tcpProxy compiles one TCP proxy, once for each of its ports; nil after a problem.
func (c *compiler) tcpProxy(settings *config.TCPProxy, secure *portTLS, at schema.Place) ([]*tcp.Proxy, []*StreamServer) {
	out := tcp.Settings{
		Name:           settings.Name,
		ConnectTimeout: settings.ConnectTimeout.D(),
		IdleTimeout:    settings.IdleTimeout.D(),
		Drain:          settings.DrainTimeout.D(),
		Send:           settings.ProxyProtocol.Version(),
	}
	if secure != nil {
		out.Secure = secure.config
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
	tlsTo := make([]*tls.Config, len(list))
	for i := range list {
		if settings.Servers[i].TLS == nil {
			continue
		}
		if tlsTo[i] = c.secureStream(settings.Name, i, settings.Servers[i], at); tlsTo[i] == nil {
			return nil, nil
		}
	}
	out.Record = c.recordSession(settings.AccessLog)
	out.Roster = c.env.Keep("tcp proxy\x00"+settings.Name, func() exchange.Kept { return tcp.NewRoster() }).(*tcp.Roster)
	if c.house.Metrics != nil {
		c.count(c.house.Metrics.Stream("tcp", settings.Name, out.Roster.Counts))
	}
	var proxies []*tcp.Proxy
	for port := range settings.Address.Ports() {
		out.Servers = nil
		for i, s := range list {
			out.Servers = append(out.Servers, &tcp.Server{Address: s.addressAt(port), Dial: s.dialAt(port), TLS: tlsTo[i], Gauge: &s.Live.Gauge, Told: s.count, Fault: upstream.Fault})
		}
		proxies = append(proxies, tcp.New(out))
	}
	return proxies, list
}
