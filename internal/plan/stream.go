package plan

import (
	"context"
	"maps"
	"net"
	"slices"
	"strings"
	"time"

	"headgate/internal/balance"
	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/feature/ipfilter"
	"headgate/internal/schema"
	"headgate/internal/tcpproxy"
)

// passthrough is the TCP proxies of an https port, by the names that clients ask
// for.
type passthrough struct {
	exact, wildcard map[string]*tcpproxy.Proxy
}

// find returns the proxy for a name, or nil. A wildcard stands for one label.
func (t *passthrough) find(name string) *tcpproxy.Proxy {
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

// Passthrough returns the TCP proxy that takes the connections of clients who ask
// for a name, which is in lower case; nil if the port itself does.
func (p *Port) Passthrough(name string) *tcpproxy.Proxy {
	if p.passthrough == nil {
		return nil
	}
	return p.passthrough.find(name)
}

// Stream returns the TCP proxy whose address this is, nil if the port speaks HTTP.
func (p *Port) Stream() *tcpproxy.Proxy { return p.stream }

// TCPProxy is a TCP proxy of a plan.
type TCPProxy struct {
	// Settings are those of the configuration.
	Settings *config.TCPProxy
	// Proxy is its compiled form.
	Proxy *tcpproxy.Proxy
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
		proxy := c.tcpProxy(settings, at)
		if proxy == nil {
			continue
		}
		c.plan.tcpProxies = append(c.plan.tcpProxies, TCPProxy{settings, proxy})
		if settings.Address.IsValid() {
			c.plan.streams = append(c.plan.streams, c.newStream(settings, proxy, at))
			continue
		}
		if port := c.plan.Port(settings.Port); port != nil {
			port.passThrough(settings, proxy, at)
		}
	}
}

// newStream returns the port of a TCP proxy with an address.
func (c *compiler) newStream(settings *config.TCPProxy, proxy *tcpproxy.Proxy, at schema.Place) *Port {
	return &Port{
		settings: &config.Port{
			Name: settings.Name, Address: settings.Address, Protocol: config.TCP, Drain: settings.Drain, Active: true,
			Limits: config.Limits{Connections: settings.Connections},
		},
		front:      exchange.Port{Place: &exchange.Place{Port: settings.Name}},
		stream:     proxy,
		announcers: newAnnouncers(settings.AcceptProxyProtocol, at.Field("accept_proxy_protocol")),
	}
}

// passThrough gives the port a TCP proxy for names.
func (p *Port) passThrough(settings *config.TCPProxy, proxy *tcpproxy.Proxy, at schema.Place) {
	names, fault := settings.Names()
	if fault != nil {
		at.Field("sni").Problem(fault.What, fault.Remedy)
		return
	}
	if p.passthrough == nil {
		p.passthrough = &passthrough{exact: map[string]*tcpproxy.Proxy{}, wildcard: map[string]*tcpproxy.Proxy{}}
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
func (c *compiler) tcpProxy(settings *config.TCPProxy, at schema.Place) *tcpproxy.Proxy {
	out := tcpproxy.Settings{
		Name:           settings.Name,
		ConnectTimeout: settings.ConnectTimeout.D(),
		IdleTimeout:    settings.IdleTimeout.D(),
		Drain:          settings.Drain.D(),
		Send:           settings.ProxyProtocol.Version(),
	}
	if f := settings.IPFilter; f != nil && !f.Off() {
		denied, err := ipfilter.Denier(f, c.env)
		if err != nil {
			at.Field("ip_filter").Problem(err.Error(), "")
			return nil
		}
		out.Denied = denied
	}
	list, group := c.streamServers("tcp", settings.Name, settings.Servers, settings.LoadBalancing, at)
	if group == nil {
		return nil
	}
	out.Group = group
	for _, s := range list {
		out.Servers = append(out.Servers, &tcpproxy.Server{Address: s.address, Dial: dialer(s.address), Gauge: s.gauge, Told: s.told})
	}
	if c.config.AccessLog.Enabled {
		out.Record = c.house.RecordPassage
	}
	out.Roster = c.env.Keep("tcp proxy\x00"+settings.Name, func() exchange.Kept { return tcpproxy.NewRoster() }).(*tcpproxy.Roster)
	if c.house.Metrics != nil {
		c.plan.counters = append(c.plan.counters, c.house.Metrics.Stream("tcp", settings.Name, out.Roster.Counts))
	}
	return tcpproxy.New(out)
}

// streamServer is a server of a TCP or UDP proxy.
type streamServer struct {
	address string
	gauge   *balance.Gauge
	told    func(exchange.Reason)
}

// streamServers compiles the servers of a TCP or UDP proxy; the group is nil after
// a problem.
func (c *compiler) streamServers(protocol, proxy string, settings []*config.StreamServer, how string, at schema.Place) ([]streamServer, *balance.Group) {
	choice, what, remedy := balance.Parse(how)
	if what != "" {
		at.Field("load_balancing").Problem(what, remedy)
		return nil, nil
	}
	var list []streamServer
	var members []balance.Member
	for i, s := range settings {
		address, fault := s.HostPort()
		if fault != nil {
			at.Field("servers").Index(i).Field("address").Problem(fault.What, fault.Remedy)
			return nil, nil
		}
		key := strings.Join([]string{"stream server", protocol, proxy, address}, "\x00")
		gauge := c.env.Keep(key, func() exchange.Kept { return keptGauge{balance.NewGauge(0, nil)} }).(keptGauge).Gauge
		server := streamServer{address: address, gauge: gauge}
		if c.house.Metrics != nil {
			counter := c.house.Metrics.Server(proxy, protocol, protocol+"://"+address)
			c.plan.counters = append(c.plan.counters, counter)
			server.told = counter.Tried
		}
		list = append(list, server)
		members = append(members, balance.Member{ID: address, Weight: s.Weight, Gauge: gauge})
	}
	return list, balance.New(members, balance.Options{Method: choice.Method})
}

// keptGauge is a gauge that outlives plans.
type keptGauge struct{ *balance.Gauge }

// Retire does nothing: a gauge holds nothing but memory.
func (keptGauge) Retire() {}

// dialer returns what connects to an address.
func dialer(address string) func(context.Context) (net.Conn, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: time.Minute, Interval: 15 * time.Second, Count: 4}}
	return func(ctx context.Context) (net.Conn, error) { return d.DialContext(ctx, "tcp", address) }
}
