package config

import (
	"net"
	"net/netip"
	"strings"

	"headgate/internal/feature/ipfilter"
	"headgate/internal/proto/proxyproto"
	"headgate/internal/server/health"
	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
	"headgate/internal/upstream"
)

// TCP and UDP are the protocols of the sockets of TCP and UDP proxies. Ports cannot have
// them.
const (
	TCP Protocol = "tcp"
	UDP Protocol = "udp"
)

// TCPProxy forwards TCP connections to servers without interpreting them. It has its own
// address; or a port and names, for TLS connections on an https port. TLS of clients is
// terminated with tls, and otherwise forwarded unchanged to servers that have the
// certificate. Several proxies share an address if they differ in sni or alpn.
type TCPProxy struct {
	Object
	// Address is the IP address and port number to listen on, or a range of up to 1000 ports:
	// `0.0.0.0:5000-5100`.
	Address unit.AddressRange `json:"address,omitempty" label:"true" example:"0.0.0.0:5432"`
	// Port names the https port whose connections the proxy accepts, together with sni or
	// alpn.
	Port string `json:"port,omitempty" label:"true" max:"128" example:"websecure"`
	// SNI are the server names that TLS clients send: exact ones, or `*.` and a name
	// for any one label before it. Other names stay with the port, or with the other
	// proxies of the address. Empty means all names.
	SNI []string `json:"sni,omitempty" label:"true" max:"1000" example:"db.example.com"`
	// ALPN are application protocols, one of which a TLS client must offer. Clients that
	// offer none of them stay with the port, or with the other proxies of the address.
	// Empty means any client.
	ALPN []string `json:"alpn,omitempty" label:"true" max:"32" example:"xmpp-client"`
	// TLS terminates TLS of clients, with the certificates of https ports. Absent forwards
	// the client's bytes unchanged.
	TLS *StreamTLS `json:"tls,omitempty" label:"true"`
	// Servers are the servers that share the connections.
	Servers []*StreamServer `json:"servers" required:"true" min:"1" max:"256" object:"server,address" example:"[{address: \"127.0.0.1:5433\"}]"`
	// LoadBalancing is how connections are shared among servers: `round_robin` in
	// turn, by weight; `least_connections` to the least busy one; `random`; `first`
	// to the first that takes connections; `client_ip_hash` always to the same one
	// for an address.
	LoadBalancing string `json:"load_balancing" label:"true" default:"round_robin" enum:"round_robin,least_connections,random,first,client_ip_hash"`
	// HealthCheck checks whether the servers accept connections. Absent means no checks: a
	// server that fails connections is still ejected for a while.
	HealthCheck *StreamCheck `json:"health_check,omitempty" label:"true"`
	// ConnectTimeout is the time for a connection to a server, including name resolution;
	// then another server is tried.
	ConnectTimeout unit.Duration `json:"connect_timeout" label:"true" default:"5s" min:"10ms" max:"10m"`
	// IdleTimeout is how long a connection can be without data in both directions before
	// it is closed.
	IdleTimeout unit.Duration `json:"idle_timeout" label:"true" default:"1h" min:"1s" max:"168h"`
	// ProxyProtocol is the version of the PROXY protocol header that servers get, with the
	// client's address: `off`, `v1` or `v2`.
	ProxyProtocol SendVersion `json:"proxy_protocol" label:"true" default:"off" enum:"off,v1,v2"`
	// AcceptProxyProtocol configures which peers send a PROXY protocol header at the
	// beginning of a connection to the address. Absent means none. With port, the port's
	// settings apply.
	AcceptProxyProtocol *ProxyProtocol `json:"accept_proxy_protocol,omitempty"`
	StreamFeatures
	// MaxConnections is the largest number of open connections of the address, or of each
	// port of a range; more wait in the system's queue. 0 means as many as file descriptors allow.
	MaxConnections int `json:"max_connections" label:"true" was:"connections" min:"0" max:"10000000"`
	// DrainTimeout is how long connections can continue after the proxy is removed, its
	// address is changed or headgate is stopped. Then they are closed. Other changes do
	// not affect open connections.
	DrainTimeout unit.Duration `json:"drain_timeout" label:"true" was:"drain" default:"30s" max:"24h"`
	// AccessLog changes the access log for the connections of this proxy: off, or a file of
	// its own.
	AccessLog *ProxyLog `json:"access_log,omitempty"`
	// Nodes are the names of the nodes that have the proxy, as `headgate node list` shows
	// them. Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitempty" max:"64" example:"[web1]"`
	// Active is whether the proxy takes connections.
	Active bool `json:"active" label:"true" default:"true"`
}

// StreamFeatures are the optional features of TCP and UDP proxies, in the order in which
// they run. Nil is off.
type StreamFeatures struct {
	// IPFilter allows clients by address. Connections of others are closed, and their
	// datagrams dropped.
	IPFilter *ipfilter.Config `json:"ip_filter,omitempty" label:"true"`
}

// StreamTLS are the settings of a TCP proxy that terminates TLS. The certificate is selected
// by the server name that the client sends, as on https ports.
type StreamTLS struct {
	// MinVersion is the minimum version of TLS.
	MinVersion TLSVersion `json:"min_version" label:"true" default:"1.2" enum:"1.2,1.3"`
	// ALPN are the application protocols to negotiate, the preferred first. A client that
	// offers only others is rejected, and one that offers none is accepted. Absent means
	// those of the proxy's own alpn; without any, nothing is negotiated.
	ALPN []string `json:"alpn,omitempty" label:"true" max:"32" example:"mqtt"`
	// ClientAuth is whether clients must present a certificate: `off`; `optional`, which
	// verifies a certificate that is presented; `required`, which rejects clients without
	// one.
	ClientAuth ClientAuth `json:"client_auth" default:"off" enum:"off,optional,required"`
	// ClientCA is a PEM file with the certificates of the authorities that sign client
	// certificates. It is required unless client_auth is off. A relative path begins at the
	// configuration file.
	ClientCA string `json:"client_ca,omitempty" host:"admin" max:"4096" example:"clients-ca.pem"`
	// DefaultCertificate names the certificate for clients that send no server name, or one
	// that no certificate has. Without it they get a self-signed one.
	DefaultCertificate string `json:"default_certificate,omitempty" max:"128" example:"main"`
	// ACME is the name of the ACME entry that gets certificates for the names in sni; `none`
	// for no entry. Without it the default entry does.
	ACME string `json:"acme,omitempty" max:"128" example:"main"`
}

// Protocols returns the application protocols to negotiate with clients whose TLS the proxy
// terminates, the preferred first.
func (p *TCPProxy) Protocols() []string {
	if p.TLS != nil && len(p.TLS.ALPN) > 0 {
		return p.TLS.ALPN
	}
	return p.ALPN
}

// SpeaksTLS reports whether an active port, an active TCP proxy or the admin listener
// terminates TLS of clients.
func (c *Config) SpeaksTLS() bool {
	if c.Admin.TLS() {
		return true
	}
	for _, p := range c.Ports {
		if p.Active && c.Here(p.Nodes) && p.Protocol != HTTP {
			return true
		}
	}
	for _, p := range c.TCPProxies {
		if p.Active && c.Here(p.Nodes) && p.TLS != nil {
			return true
		}
	}
	return false
}

// ByName reports whether the proxy accepts only some TLS clients, by the server name or the
// protocols that they send.
func (p *TCPProxy) ByName() bool { return len(p.SNI) > 0 || len(p.ALPN) > 0 }

// SendVersion is the PROXY header that servers of a TCP or UDP proxy get.
type SendVersion string

// The versions of the header.
const (
	SendOff SendVersion = "off"
	SendV1  SendVersion = "v1"
	SendV2  SendVersion = "v2"
)

// Version returns the version as package proxyproto has it, 0 for none.
func (v SendVersion) Version() proxyproto.Version {
	switch v {
	case SendV1:
		return proxyproto.V1
	case SendV2:
		return proxyproto.V2
	}
	return 0
}

// StreamCheck configures the health check of a TCP proxy's servers: a connection that is
// closed immediately.
type StreamCheck struct {
	// Interval is the time between two checks of a server, with a jitter of a tenth.
	Interval unit.Duration `json:"interval" label:"true" default:"10s" min:"100ms" max:"24h"`
	// UnhealthyInterval is the time between two checks while a server is not
	// healthy, or its last check failed.
	UnhealthyInterval unit.Duration `json:"unhealthy_interval" label:"true" default:"2s" min:"100ms" max:"24h"`
	// Timeout is the time for a connection.
	Timeout unit.Duration `json:"timeout" label:"true" default:"3s" min:"10ms" max:"1m"`
	// Rise is how many checks in a row an unhealthy server must pass to be healthy
	// again.
	Rise int `json:"rise" label:"true" default:"2" min:"1" max:"100"`
	// Fall is how many checks in a row must fail for a server to be unhealthy.
	Fall int `json:"fall" label:"true" default:"3" min:"1" max:"100"`
}

// Health returns the settings as package health has them.
func (c *StreamCheck) Health() health.Config {
	return health.Config{
		Interval: c.Interval, UnhealthyInterval: c.UnhealthyInterval, Timeout: c.Timeout, Rise: c.Rise, Fall: c.Fall,
		Method: "GET", Status: "200-399",
	}
}

// UDPProxy carries datagrams to servers. The datagrams of one client address are a
// session and go to one server.
type UDPProxy struct {
	Object
	// Address is the IP address and port number to listen on, or a range of up to 1000 ports:
	// `0.0.0.0:10000-10100`.
	Address unit.AddressRange `json:"address" label:"true" required:"true" example:"0.0.0.0:53"`
	// Servers are the servers that share the sessions.
	Servers []*StreamServer `json:"servers" required:"true" min:"1" max:"256" object:"server,address" example:"[{address: \"127.0.0.1:5353\"}]"`
	// LoadBalancing is how sessions are shared among servers: `round_robin` in turn,
	// by weight; `least_connections` to the one with the fewest; `random`; `first` to
	// the first that takes some; `client_ip_hash` always to the same one for an
	// address.
	LoadBalancing string `json:"load_balancing" label:"true" default:"round_robin" enum:"round_robin,least_connections,random,first,client_ip_hash"`
	// IdleTimeout is how long both directions may be silent. Then the session
	// ends, and its client's next datagram begins another.
	IdleTimeout unit.Duration `json:"idle_timeout" label:"true" default:"60s" min:"100ms" max:"24h"`
	// MaxSessions is the maximum number of sessions at once, on each port of a range. At
	// the limit, a new session ends another one: of the clients that have sent nothing
	// since the first response, the one that has been idle for longest, because sessions
	// with forged addresses look like this.
	MaxSessions int `json:"max_sessions" was:"sessions" default:"10000" min:"1" max:"1000000"`
	// ProxyProtocol puts a PROXY protocol header of version 2 before each datagram to a
	// server, with the client's address: `off` or `v2`. The server must expect it. Its own
	// datagrams have none. The header has 28 bytes for IPv4 and 52 for IPv6.
	ProxyProtocol SendVersion `json:"proxy_protocol" label:"true" default:"off" enum:"off,v2"`
	StreamFeatures
	// AccessLog changes the access log for the sessions of this proxy: off, or a file of
	// its own.
	AccessLog *ProxyLog `json:"access_log,omitempty"`
	// Nodes are the names of the nodes that have the proxy, as `headgate node list` shows
	// them. Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitempty" max:"64" example:"[web1]"`
	// Active is whether the proxy takes datagrams.
	Active bool `json:"active" label:"true" default:"true"`
}

// StreamServer is one server of a TCP or UDP proxy.
type StreamServer struct {
	_ struct{} `later:"backup,max_connections"`

	// Address is the server's host and port: a name or an IP address, IPv6 in brackets. If
	// the proxy has a range of ports, the server can have one of the same length, whose first
	// port is for the first port of the proxy and so on; health checks use the first. With one
	// port, the server gets the clients of all ports there.
	Address string `json:"address" required:"true" max:"512" example:"127.0.0.1:5433"`
	// Weight is the server's share relative to the weights of the others. With 0 it gets no
	// new clients.
	Weight int `json:"weight" label:"true" default:"1" min:"0" max:"65535"`
	// TLS are the TLS settings for the connection to the server. Absent forwards the
	// client's bytes unchanged.
	TLS *upstream.TLS `json:"tls,omitempty" label:"true"`
}

// HostPort returns the server's address in the form in which it is dialed, with the first port
// of a range. That of a checked configuration gives no fault.
func (s *StreamServer) HostPort() (string, *target.Fault) {
	host, port, _, fault := s.split()
	return net.JoinHostPort(host, port), fault
}

// Ports returns how many ports the server has: 1, or those of its range.
func (s *StreamServer) Ports() int {
	_, port, last, _ := s.split()
	first, _ := target.PortNumber(port)
	return max(1, int(last)-int(first)+1)
}

// split divides the server's address into its host, its first port, and the last one of a
// range; 0 for none.
func (s *StreamServer) split() (host, port string, last uint16, _ *target.Fault) {
	const form = "write it as <host>:<port>, like 127.0.0.1:5432"
	if strings.Contains(s.Address, "://") {
		return "", "", 0, wrong("the address is a URL", form)
	}
	if strings.ContainsAny(s.Address, "/?#@ ") {
		return "", "", 0, wrong("the address contains more than a host and a port", form)
	}
	address, last, err := unit.CutRange(s.Address)
	if err != nil {
		return "", "", 0, wrong(err.Error(), "write the first and the last port, like 127.0.0.1:5000-5100")
	}
	host, port, err = net.SplitHostPort(address)
	if err != nil || host == "" || port == "" {
		return "", "", 0, wrong("the address has no host, or no port", form)
	}
	if strings.Contains(host, ":") && !strings.HasPrefix(address, "[") {
		return "", "", 0, wrong("an IPv6 address must be in brackets", "write it as [2001:db8::1]:5432")
	}
	host, _, fault := target.SplitAuthority(address)
	if fault != nil {
		return "", "", 0, fault
	}
	return host, port, last, nil
}

// Names returns the names of a TCP proxy in their parsed form. Those of a checked
// configuration give no fault.
func (p *TCPProxy) Names() ([]VirtualHost, *target.Fault) {
	out := make([]VirtualHost, len(p.SNI))
	for i, text := range p.SNI {
		h, f := parseSNI(text)
		if f != nil {
			return nil, f
		}
		out[i] = h
	}
	return out, nil
}

// parseSNI reads a server name that TLS clients can send.
func parseSNI(text string) (VirtualHost, *fault) {
	h, f := parseVirtualHost(text)
	switch {
	case f != nil:
		return h, f
	case h.Class == HostRegex:
		return h, wrong("a regular expression is not allowed here", `write a name, or "*." and a name`)
	case strings.HasPrefix(h.Name, "["):
		return h, wrong("TLS clients do not send IP addresses as server names", "write a name")
	}
	if _, err := netip.ParseAddr(h.Name); err == nil {
		return h, wrong("TLS clients do not send IP addresses as server names", "write a name")
	}
	return h, nil
}
