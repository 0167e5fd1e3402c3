package plan

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"headgate/internal/config"
	"headgate/internal/exchange"
	"headgate/internal/schema"
	"headgate/internal/server/balance"
	"headgate/internal/server/health"
	"headgate/internal/server/resolve"
	"headgate/internal/server/target"
)

// StreamServer is a server of a TCP or UDP proxy.
type StreamServer struct {
	// Address is its host and port, the first of a range; Weight is its share.
	Address string
	Weight  int
	// Ports is how many ports it has: 1, or as many as the proxy.
	Ports int
	// Live is what is known of it at run time.
	Live *health.Server

	name  *resolve.Name
	judge *health.Policy
	tried func(reason exchange.Reason, firstByte time.Duration)
	turn  atomic.Uint32 // whose turn it is among the addresses of a name
}

// shift returns what is added to the server's port number for the i-th port of the proxy.
func (s *StreamServer) shift(i int) uint16 {
	if s.Ports == 1 {
		return 0
	}
	return uint16(i)
}

// addressAt returns the server's host and port for the i-th port of the proxy.
func (s *StreamServer) addressAt(i int) string {
	if s.shift(i) == 0 {
		return s.Address
	}
	host, port, _ := net.SplitHostPort(s.Address)
	first, _ := target.PortNumber(port)
	return net.JoinHostPort(host, strconv.Itoa(int(first+s.shift(i))))
}

// dialAt returns what connects to the server for the i-th port of the proxy.
func (s *StreamServer) dialAt(i int) func(context.Context) (net.Conn, error) {
	shift := s.shift(i)
	return func(ctx context.Context) (net.Conn, error) { return s.name.DialShifted(ctx, shift) }
}

// count counts an attempt at the server: over its whole length where the server accepted it. A
// closed port of a range is not held against the server: those of passive FTP and RTP are open
// only while they are used, and any client can connect to the others.
func (s *StreamServer) count(reason exchange.Reason, err error) {
	if s.tried != nil {
		s.tried(reason, 0)
	}
	switch {
	case reason == exchange.None:
		s.Live.Answered()
		s.Live.Ended()
	case s.Ports > 1 && health.ClosedPort(err):
	default:
		s.Live.Failed(s.judge, &exchange.Error{Reason: reason, Err: err})
	}
}

// streamKind is what the servers of TCP and of UDP proxies have in common.
type streamKind struct {
	protocol string // tcp or udp
	proxy    string
	servers  []*config.StreamServer
	balance  string
	check    *config.StreamCheck
	at       schema.Place
}

// streamServers compiles the servers of a TCP or UDP proxy; the group is nil after
// a problem. What is known of a server is kept by the proxy's name and its address.
func (c *compiler) streamServers(k streamKind) ([]*StreamServer, *balance.Group) {
	choice, what, remedy := balance.Parse(k.balance)
	if what != "" {
		k.at.Field("load_balancing").Problem(what, remedy)
		return nil, nil
	}
	judge := &health.Policy{Ejection: c.shared.ejection}
	var list []*StreamServer
	var members []balance.Member
	for i, settings := range k.servers {
		address, fault := settings.HostPort()
		if fault != nil {
			k.at.Field("servers").Index(i).Field("address").Problem(fault.What, fault.Remedy)
			return nil, nil
		}
		s := c.streamServer(k, address, settings.Weight)
		s.judge, s.Ports = judge, settings.Ports()
		judge.Servers = append(judge.Servers, s.Live)
		list = append(list, s)
		members = append(members, balance.Member{ID: address, Weight: settings.Weight, Gauge: &s.Live.Gauge})
	}
	return list, balance.New(members, balance.Options{Method: choice.Method})
}

// streamServer compiles one server.
func (c *compiler) streamServer(k streamKind, address string, weight int) *StreamServer {
	s := &StreamServer{Address: address, Weight: weight, name: c.streamName(address)}
	url := k.protocol + "://" + address
	of := streamPlace{protocol: k.protocol, proxy: k.proxy, address: address}
	s.Live = exchange.Keep(c.env, "server of a stream", of, func() *health.Server {
		return health.NewServer(health.Name{Proxy: k.proxy, Route: k.protocol, Server: url}, health.Options{Log: c.house.Log, Changed: c.env.Standing}).Join(c.env.Holds)
	})
	if c.house.Metrics != nil {
		counter := c.house.Metrics.Server(k.proxy, k.protocol, url)
		c.count(counter)
		s.tried = counter.Tried
	}
	if k.check != nil {
		c.checkStream(k, s, of)
	}
	return s
}

// streamPlace identifies a server of a stream.
type streamPlace struct{ protocol, proxy, address string }

// checkStream has a server asked whether it takes connections. One check serves
// all proxies that want the same of the same address.
func (c *compiler) checkStream(k streamKind, s *StreamServer, at streamPlace) {
	rounds := health.KeepRounds(c.env)
	settings := k.check.Health()
	of := streamChecked{s.Address, c.shared.settings, settings}
	check := exchange.Keep(c.env, "check of a stream", of, func() *health.Check {
		return health.NewCheck(&settings, health.Probe{Name: "tcp://" + s.Address, Connect: connects(s.name)}, rounds, c.house.Log)
	})
	watch := struct {
		streamPlace
		streamChecked
	}{at, of}
	exchange.Keep(c.env, "watch of a stream", watch, func() exchange.Kept { return check.Watch(s.Live, 0) })
}

// streamChecked is what a check asks, where, and with which settings of upstreams.
type streamChecked struct {
	address, upstream string
	check             health.Config
}

// connects returns what opens a connection and closes it again.
func connects(name *resolve.Name) func(time.Duration) error {
	return func(timeout time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		nc, err := name.Dial(ctx)
		if err != nil {
			return err
		}
		return nc.Close()
	}
}

// streamName returns the name of a server with its addresses, which all streams share.
func (c *compiler) streamName(address string) *resolve.Name {
	u := &c.shared.upstream
	return exchange.Keep(c.env, "name of a stream", [2]string{address, c.shared.settings}, func() keptName {
		return keptName{resolve.New(address, resolve.Options{Interval: u.ResolveInterval, Servers: u.Resolvers, Log: c.house.Log})}
	}).Name
}

// keptName is a name that outlives plans.
type keptName struct{ *resolve.Name }

// Retire does nothing: there is no background work.
func (keptName) Retire() {}

// secureStream returns how TLS is spoken to a TCP proxy's server; nil after a problem.
func (c *compiler) secureStream(proxy string, i int, settings *config.StreamServer, at schema.Place) *tls.Config {
	address, _ := settings.HostPort()
	host, _, _ := net.SplitHostPort(address)
	secure, fault := c.secureServer(&config.Server{TLS: settings.TLS}, target.Target{Host: host})
	if fault != nil {
		at.Field("servers").Index(i).Called("server", settings.Address).Field("tls").Field(fault.field).Problem(fault.err.Error(), fault.remedy)
		return nil
	}
	if secure.Unverified {
		url := "tcp://" + address
		c.plan.unverified = append(c.plan.unverified, Unverified{Proxy: proxy, Route: "tcp", Server: url})
	}
	return exchange.Keep(c.env, "tls of a stream", secure.Key, func() keptTLS { return keptTLS{secure.Config()} }).Config
}

// keptTLS is how TLS is spoken to servers, with the sessions of earlier
// connections.
type keptTLS struct{ *tls.Config }

// Retire does nothing: sessions hold nothing but memory.
func (keptTLS) Retire() {}
