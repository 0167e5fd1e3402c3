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
	// Proxy is its compiled form.
	Proxy *udp.Proxy
	// Servers are its servers, in the order of the configuration.
	Servers []*StreamServer
	// Port is where it listens.
	Port *Port
}

// UDPProxies returns the active UDP proxies by name. The slice is the plan's own.
func (p *Plan) UDPProxies() []*UDPProxy { return p.udpProxies }

// AtUDP returns the active UDP proxy that listens on this address, or nil.
func (p *Plan) AtUDP(address netip.AddrPort) *UDPProxy {
	for _, u := range p.udpProxies {
		if u.Settings.Address == address {
			return u
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
	out := udp.Settings{Name: settings.Name, IdleTimeout: settings.IdleTimeout.D(), Sessions: settings.MaxSessions, Announce: settings.ProxyProtocol == config.SendV2}
	var ok bool
	if out.Filters, ok = c.streamRooms("UDP proxy "+settings.Name, &settings.StreamFeatures, at); !ok {
		return nil
	}
	list, group := c.streamServers(streamKind{"udp", settings.Name, settings.Servers, settings.LoadBalancing, nil, at})
	if group == nil {
		return nil
	}
	out.Group = group
	for _, s := range list {
		out.Servers = append(out.Servers, &udp.Server{Address: s.Address, Resolve: s.addresses, Gauge: &s.Live.Gauge, Told: s.count})
	}
	out.Record = c.recordSession(settings.AccessLog)
	out.Tally = c.env.Keep("udp proxy\x00"+settings.Name, func() exchange.Kept { return udp.NewTally() }).(*udp.Tally)
	if c.house.Metrics != nil {
		c.count(c.house.Metrics.Stream("udp", settings.Name, out.Tally.Counts))
	}
	port := &Port{
		settings: &config.Port{Object: config.Object{Name: settings.Name}, Address: settings.Address, Protocol: config.UDP, Active: true},
		front:    exchange.Port{Place: &exchange.Place{Port: settings.Name}},
	}
	return &UDPProxy{settings, udp.New(out), list, port}
}

// addresses returns where the datagrams of a new session go, as far as it is known
// now. The names of servers with several addresses take turns.
func (s *StreamServer) addresses() []netip.AddrPort {
	endpoints := s.name.Now()
	if len(endpoints) == 0 {
		return nil
	}
	return endpoints[int(s.turn.Add(1)-1)%len(endpoints)].Addresses
}
