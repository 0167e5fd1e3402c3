package control

import (
	"headgate/internal/exchange"
	"headgate/internal/plan"
	"headgate/internal/server/health"
)

// StreamState is the state of a TCP or UDP proxy. The state of its address is among the
// ports.
type StreamState struct {
	// Name is the proxy's name.
	Name string `json:"name" required:"true"`
	// Protocol is tcp or udp.
	Protocol string `json:"protocol" required:"true"`
	// Origin is where the proxy comes from: "shop.yaml:12:3".
	Origin string `json:"origin,omitempty"`
	// Issues are what needs an operator, such as issues of discovery.
	Issues []string `json:"issues,omitempty"`
	// Address is where the proxy listens; "" if it accepts connections of a port.
	Address string `json:"address,omitempty"`
	// Port is the https port whose connections the proxy accepts.
	Port string `json:"port,omitempty"`
	// SNI are the server names of the TLS clients that the proxy accepts; empty means all.
	SNI []string `json:"sni,omitempty"`
	// ALPN are the protocols of the TLS clients that the proxy accepts; empty means all.
	ALPN []string `json:"alpn,omitempty"`
	// TerminatesTLS is whether TLS of clients is terminated.
	TerminatesTLS bool `json:"terminates_tls,omitempty"`
	// Connections is the number of open connections, or of UDP sessions.
	Connections int `json:"connections" required:"true"`
	// Accepted is the number of all connections or sessions so far.
	Accepted uint64 `json:"accepted"`
	// MaxConnections is how many there may be at once; absent means no limit of the
	// proxy's own. One more session of UDP replaces another.
	MaxConnections int `json:"max_connections,omitempty"`
	// Received is the number of bytes from clients.
	Received uint64 `json:"bytes_received"`
	// Sent is the number of bytes to clients.
	Sent uint64 `json:"bytes_sent"`
	// Errors counts what failed, by the word of the access log.
	Errors map[string]uint64 `json:"errors,omitempty"`
	plan.Verdict
	// Healthy is the number of healthy servers.
	Healthy int `json:"healthy" required:"true"`
	// Unknown is the number of servers whose health is not known yet.
	Unknown int `json:"unknown" required:"true"`
	// Servers are in the order of the configuration.
	Servers []StreamServerState `json:"servers" required:"true"`
}

// StreamServerState is the state of a server of a TCP or UDP proxy.
type StreamServerState struct {
	// Address is the host and port of the server.
	Address string `json:"address" required:"true"`
	// Weight is its share of the connections.
	Weight int `json:"weight" required:"true"`
	health.Status
}

// StreamStates returns the states of the active TCP and UDP proxies, by name.
func (c *Control) StreamStates() (tcp, udp []StreamState) {
	if p := c.current.Load(); p != nil {
		return streamStates(p, "")
	}
	return nil, nil
}

// streamStates returns the states of the TCP and UDP proxies of a plan, or of the one with
// this name.
func streamStates(p *plan.Plan, name string) (tcp, udp []StreamState) {
	for _, t := range p.TCPProxies() {
		if name != "" && t.Settings.Name != name {
			continue
		}
		s := streamState(t.Settings.Name, "tcp", t.Proxy.Roster.Counts(), t.Servers)
		if t.Settings.Address.IsValid() {
			s.Address = t.Settings.Address.String()
		}
		s.Port, s.SNI, s.ALPN = t.Settings.Port, t.Settings.SNI, t.Settings.ALPN
		s.TerminatesTLS, s.MaxConnections = t.Settings.TLS != nil, t.Settings.MaxConnections
		tcp = append(tcp, s)
	}
	for _, u := range p.UDPProxies() {
		if name != "" && u.Settings.Name != name {
			continue
		}
		s := streamState(u.Settings.Name, "udp", u.Proxy.Tally.Counts(), u.Servers)
		s.Address, s.MaxConnections = u.Settings.Address.String(), u.Settings.MaxSessions*u.Settings.Address.Ports()
		udp = append(udp, s)
	}
	return tcp, udp
}

func streamState(name, protocol string, n exchange.StreamCounts, servers []*plan.StreamServer) StreamState {
	s := StreamState{
		Name: name, Protocol: protocol, Connections: n.Open, Accepted: n.Accepted, Received: n.Received, Sent: n.Sent,
		Errors: map[string]uint64{},
	}
	for reason, n := range n.Errors {
		s.Errors[reason.String()] = n
	}
	for _, server := range servers {
		status := server.Live.Status(true)
		switch {
		case server.Weight == 0 && status.Usable():
			status.State, status.Reason = health.Draining, "its weight is 0"
		case status.State == health.Healthy || status.State == health.SlowStart:
			s.Healthy++
		case status.State == health.Unknown:
			s.Unknown++
		}
		s.Servers = append(s.Servers, StreamServerState{server.Address, server.Weight, status})
	}
	s.Verdict = plan.JudgeStream(servers)
	return s
}
