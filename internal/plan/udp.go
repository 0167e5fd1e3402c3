package plan

import (
	"maps"
	"net/netip"
	"slices"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/stream/udp"
)

// UDPProxy is a UDP proxy of a plan.
type UDPProxy struct {
	// Settings are those of the configuration.
	Settings *config.UDPProxy
	// Proxy is its compiled form, of the first port.
	Proxy *udp.Proxy
	// Servers are its servers, in the order of the configuration.
	Servers []*StreamServer
	// Ports is where it listens: on one port, or on each of a range.
	Ports []UDPPort
}

// UDPPort is one port of a UDP proxy.
type UDPPort struct {
	// Port is the port, Proxy what serves it.
	Port  *Port
	Proxy *udp.Proxy
}

// UDPProxies returns the active UDP proxies by name. The slice is the plan's own.
func (p *Plan) UDPProxies() []*UDPProxy { return p.udpProxies }

// AtUDP returns the port of the active UDP proxy that listens on this address, or nil.
func (p *Plan) AtUDP(address netip.AddrPort) *UDPPort {
	for _, u := range p.udpProxies {
		if a := u.Settings.Address; a.Addr() == address.Addr() && a.Has(address.Port()) {
			return &u.Ports[address.Port()-a.Port()]
		}
	}
	return nil
}

// udp compiles the UDP proxies.
func (c *compiler) udp() {
	for _, name := range slices.Sorted(maps.Keys(c.config.UDPProxies)) {
		settings := c.config.UDPProxies[name]
		if !settings.Active || !c.config.Here(settings.Nodes) {
			continue
		}
		at := c.report.Root().Field("udp_proxies").Field(name).Called("UDP proxy", name)
		if u := c.udpProxy(settings, at); u != nil {
			c.plan.udpProxies = append(c.plan.udpProxies, u)
		}
	}
}

// udpProxy compiles one UDP proxy; nil after a problem.
func (c *compiler) udpProxy(settings *config.UDPProxy, at schema.Place) *UDPProxy {
	out := udp.Settings{
		Name: settings.Name, IdleTimeout: settings.IdleTimeout.D(), Sessions: settings.MaxSessions, Ports: settings.Address.Ports(),
		Announce: settings.ProxyProtocol == config.SendV2,
	}
	var ok bool
	if out.Filters, ok = c.streamRooms("UDP proxy "+settings.Name, &settings.StreamFeatures, at); !ok {
		return nil
	}
	list, group := c.streamServers(streamKind{"udp", settings.Name, settings.Servers, settings.LoadBalancing, nil, at})
	if group == nil {
		return nil
	}
	out.Group = group
	out.Record = c.recordSession(settings.AccessLog)
	out.Tally = c.env.Keep("udp proxy\x00"+settings.Name, func() exchange.Kept { return udp.NewTally() }).(*udp.Tally)
	if c.house.Metrics != nil {
		c.count(c.house.Metrics.Stream("udp", settings.Name, out.Tally.Counts))
	}
	u := &UDPProxy{Settings: settings, Servers: list}
	for i := range settings.Address.Ports() {
		port := &Port{
			settings: &config.Port{Object: config.Object{Name: settings.Name}, Address: settings.Address.At(i), Protocol: config.UDP, Active: true},
			front:    exchange.Port{Place: &exchange.Place{Port: settings.Name}},
		}
		out.Servers = nil
		for _, s := range list {
			out.Servers = append(out.Servers, &udp.Server{Address: s.addressAt(i), Resolve: s.resolveAt(i), Gauge: &s.Live.Gauge, Told: s.count})
		}
		u.Ports = append(u.Ports, UDPPort{port, udp.New(out)})
	}
	u.Proxy = u.Ports[0].Proxy
	return u
}

// resolveAt returns what says where the datagrams of a new session of the i-th port of a
// proxy go, as far as it is known. The names of servers with several addresses take turns.
func (s *StreamServer) resolveAt(i int) func() []netip.AddrPort {
	shift := s.shift(i)
	return func() []netip.AddrPort {
		endpoints := s.name.Now()
		if len(endpoints) == 0 {
			return nil
		}
		all := endpoints[int(s.turn.Add(1)-1)%len(endpoints)].Addresses
		if shift == 0 {
			return all
		}
		shifted := make([]netip.AddrPort, len(all))
		for i, a := range all {
			shifted[i] = netip.AddrPortFrom(a.Addr(), a.Port()+shift)
		}
		return shifted
	}
}
