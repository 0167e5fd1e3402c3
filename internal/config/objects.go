// Package config holds the objects of a configuration and reads them from YAML:
// Load turns a file into a Config and tells every problem in it at once, with
// its place; Format writes a file in its canonical form.
//
// It does not know what a configuration does: internal/plan compiles it.
package config

import (
	"net/netip"
	"strings"

	"headgate/internal/unit"
)

// Config is the whole configuration.
//
// It is not changed once it was loaded; a change makes another Config. It may
// be read by several goroutines at once.
type Config struct {
	_ struct{} `later:"tcp_proxies,udp_proxies,acme,discovery,users,tokens,webhooks"`

	// Version is the version of the configuration format. It is 1.
	Version int `json:"version" required:"true" min:"1" max:"1" example:"1"`
	// Ports are the sockets headgate listens on, by name.
	Ports map[string]*Port `json:"ports,omitempty" max:"1000" object:"port"`
	// Proxies are virtual hosts with their routes, by name.
	Proxies map[string]*Proxy `json:"proxies,omitempty" max:"10000" object:"proxy"`
	// Certificates are what HTTPS ports choose from, by name.
	Certificates map[string]*Certificate `json:"certificates,omitempty" max:"10000" object:"certificate"`
	// AccessLog says where and how requests are logged.
	AccessLog AccessLog `json:"access_log"`
	// Upstreams holds what is common to the connections to all servers.
	Upstreams Upstreams `json:"upstreams"`
	// Admin is the listener for /metrics, /status and the health pages.
	Admin Admin `json:"admin"`
}

// Protocol is what a port speaks to clients.
type Protocol string

// The protocols of a port. HTTP3 cannot be used in this version.
const (
	HTTP  Protocol = "http"
	HTTPS Protocol = "https"
	HTTP3 Protocol = "http3"
)

// Port is a socket headgate listens on. A change of its address or protocol
// needs no restart.
type Port struct {
	_ struct{} `later:"proxy_protocol"`

	// Name is the port's name in the configuration.
	Name string `json:"-"`
	// Address is the IP address and port number to listen on. IPv6 stands in
	// brackets; "[::]:80" takes IPv4 too. Two active ports of the same
	// transport cannot have the same address.
	Address netip.AddrPort `json:"address" required:"true" example:"0.0.0.0:80"`
	// Protocol is what clients speak on the port: `http`, or `https` for TLS with
	// HTTP/2 and HTTP/1.1, whichever the client prefers.
	Protocol Protocol `json:"protocol" required:"true" enum:"http,https" later:"http3" example:"http"`
	// H2C is whether an http port also takes HTTP/2 from clients that begin with
	// it without asking (prior knowledge).
	H2C bool `json:"h2c" default:"false"`
	// TLS says how an https port speaks TLS.
	TLS TLS `json:"tls"`
	// Active is whether the port is opened. An inactive port keeps its settings
	// and its place in the lists that name it.
	Active bool `json:"active" default:"true"`
	// Drain is how long running requests may go on after the port was closed or
	// moved, or headgate was stopped. Then their connections are cut.
	Drain unit.Duration `json:"drain" default:"30s" max:"24h"`
	// Limits bound what a client of this port may send and how long it may take.
	Limits Limits `json:"limits"`
}

// TLS says how an https port speaks TLS.
type TLS struct {
	// MinVersion is the oldest version of TLS that is spoken.
	MinVersion TLSVersion `json:"min_version" default:"1.2" enum:"1.2,1.3"`
	// ClientAuth is whether clients show a certificate of their own: `off`;
	// `optional`, which checks one that is shown; `required`, which refuses
	// clients without. One that client_ca has not signed is refused.
	ClientAuth ClientAuth `json:"client_auth" default:"off" enum:"off,optional,required"`
	// ClientCA is a PEM file with the certificates of the authorities that sign
	// clients' certificates. It is needed unless client_auth is off. A relative
	// path begins at the configuration file.
	ClientCA string `json:"client_ca,omitempty" max:"4096" example:"clients-ca.pem"`
	// DefaultCertificate names the certificate for clients that ask for no name
	// or for one that no certificate has. Without it they get a self-signed one.
	DefaultCertificate string `json:"default_certificate,omitempty" max:"128" example:"main"`
}

// TLSVersion is a version of TLS.
type TLSVersion string

// The versions of TLS.
const (
	TLS12 TLSVersion = "1.2"
	TLS13 TLSVersion = "1.3"
)

// ClientAuth is whether clients show a certificate.
type ClientAuth string

// The ways of client_auth.
const (
	ClientAuthOff      ClientAuth = "off"
	ClientAuthOptional ClientAuth = "optional"
	ClientAuthRequired ClientAuth = "required"
)

// Certificate is a certificate with its key, in files. The files are watched:
// when they change, the new certificate is used for new connections; when what
// they hold then cannot be used, the one before is kept and the log says why.
type Certificate struct {
	// Name is the certificate's name in the configuration.
	Name string `json:"-"`
	// CertFile is a PEM file with the certificate, followed by those that lead
	// to its authority. A relative path begins at the configuration file.
	CertFile string `json:"cert_file" required:"true" max:"4096" example:"cert.pem"`
	// KeyFile is a PEM file with the certificate's private key. A relative path
	// begins at the configuration file.
	KeyFile string `json:"key_file" required:"true" max:"4096" example:"key.pem"`
}

// Limits bound what one client may send to a port and how long it may take.
type Limits struct {
	// HeadTimeout is the time for a whole request head to arrive, from its
	// first byte (or from the connection's begin). Then 408 and close.
	HeadTimeout unit.Duration `json:"head_timeout" default:"30s" min:"100ms" max:"1h"`
	// BodyIdleTimeout is the longest pause in a request body before the
	// connection is cut.
	BodyIdleTimeout unit.Duration `json:"body_idle_timeout" default:"60s" min:"100ms" max:"24h"`
	// WriteIdleTimeout is how long a client may take no byte of a response
	// before its connection is cut.
	WriteIdleTimeout unit.Duration `json:"write_idle_timeout" default:"60s" min:"100ms" max:"24h"`
	// KeepAlive is how long a connection may wait for its next request. 0
	// closes connections after each response.
	KeepAlive unit.Duration `json:"keep_alive" default:"120s" max:"24h"`
	// TunnelIdleTimeout is how long an upgraded connection (WebSocket) may be
	// silent in both directions.
	TunnelIdleTimeout unit.Duration `json:"tunnel_idle_timeout" default:"1h" min:"1s" max:"168h"`
	// HeadSize is the largest request head, in bytes: request line and fields.
	// A larger one gets 431.
	HeadSize unit.Size `json:"head_size" default:"32KiB" min:"1KiB" max:"1MiB"`
	// HeadFields is the largest number of fields in a request head. More get
	// 431.
	HeadFields int `json:"head_fields" default:"200" min:"10" max:"10000"`
	// URISize is the longest request target, in bytes. A longer one gets 414.
	URISize unit.Size `json:"uri_size" default:"16KiB" min:"256" max:"1MiB"`
	// Connections is the largest number of open connections of the port; more
	// wait in the system's queue. 0 means as many as file descriptors allow.
	Connections int `json:"connections" min:"0" max:"10000000"`
}

// HostHeader values that have a meaning; every other value is sent as it is.
const (
	HostPreserve = "preserve"
	HostUpstream = "upstream"
)

// ForwardedStyle is the form of the forwarded fields that a server gets.
type ForwardedStyle string

// The forwarded styles.
const (
	ForwardedCompat  ForwardedStyle = "compat"
	ForwardedRFC7239 ForwardedStyle = "rfc7239"
	ForwardedOff     ForwardedStyle = "off"
)

// ViaStyle is the form of the Via field that a server gets.
type ViaStyle string

// The Via styles.
const (
	ViaCompat  ViaStyle = "compat"
	ViaRFC9110 ViaStyle = "rfc9110"
)

// Proxy is a set of virtual hosts and the routes that answer for them.
type Proxy struct {
	_ struct{} `later:"redirect_http_to_https"`

	// Name is the proxy's name in the configuration.
	Name string `json:"-"`
	// VirtualHosts are the host names the proxy answers for: an exact name
	// ("shop.example.com"), a wildcard for one label ("*.example.com"), or an
	// RE2 expression from ~^ to $ ("~^shop[0-9]+\.example\.com$"). Exact names
	// win over wildcards, wildcards over expressions. Empty means every host
	// that no other proxy names. Names are compared in lower case and in their
	// ASCII form; no port stands in them.
	VirtualHosts []string `json:"virtual_hosts,omitempty" max:"1000" example:"shop.example.com"`
	// Ports names the ports the proxy answers on. Empty means all.
	Ports []string `json:"ports,omitempty" max:"1000" example:"web"`
	// Active is whether the proxy takes requests. An inactive proxy is checked
	// and otherwise ignored.
	Active bool `json:"active" default:"true"`
	// HostHeader is the Host that servers get: `preserve` for what the client
	// sent, `upstream` for the host and port of the server's URL, or a fixed
	// value, sent as it is.
	HostHeader string `json:"host_header" default:"preserve" max:"259"`
	// ForwardedStyle is the form of the forwarded fields: `compat` sends
	// forwarded with commas (for=…, host=…, proto=…) and the x-forwarded
	// fields; `rfc7239` sends forwarded with semicolons as RFC 7239 writes it,
	// and the x-forwarded fields; `off` sends none of them.
	ForwardedStyle ForwardedStyle `json:"forwarded_style" default:"compat" enum:"compat,rfc7239,off"`
	// ViaStyle is the form of the Via field: `compat` sends the fixed token
	// proxy; `rfc9110` sends the protocol version and a name.
	ViaStyle ViaStyle `json:"via_style" default:"compat" enum:"compat,rfc9110"`
	// AccessLog changes the access log for this proxy. Absent means as
	// configured for all.
	AccessLog *ProxyLog `json:"access_log,omitempty"`
	// Features that every route of the proxy inherits.
	Features
	// Routes are the paths the proxy answers and what answers there. Their
	// order does not matter: the longest path wins.
	Routes []*Route `json:"routes" required:"true" max:"500" object:"route,path" example:"[{servers: [{url: http://127.0.0.1:3000}]}]"`
}

// ProxyLog changes the access log for one proxy.
type ProxyLog struct {
	// Enabled is whether requests of this proxy are logged.
	Enabled bool `json:"enabled" default:"true"`
}

// Route is a path prefix and what answers there: exactly one of servers and
// fixed_response. Every feature set on a route replaces the proxy's.
type Route struct {
	_ struct{} `later:"health_check,sticky_cookie,retry,circuit_breaker"`

	// Path is matched as a prefix of whole segments: /api takes /api and
	// /api/users, not /apis. The longest path of all proxies of a host wins. A
	// slash at its end makes no difference.
	Path string `json:"path" default:"/" max:"2048" example:"/api"`
	// Servers are the upstream servers that share the route's requests.
	Servers []*Server `json:"servers,omitempty" max:"256" object:"server,url"`
	// FixedResponse makes the route answer by itself.
	FixedResponse *FixedResponse `json:"fixed_response,omitempty"`
	// StripPrefix is whether the route's path is taken off before the path is
	// joined to the server's base path.
	StripPrefix bool `json:"strip_prefix" default:"true"`
	// LoadBalancing is how requests are shared among servers. round_robin is
	// smooth and follows the weights.
	LoadBalancing string `json:"load_balancing" default:"round_robin" enum:"round_robin" later:"least_connections,p2c_ewma,random,first,client_ip_hash"`
	// Timeouts bound the steps towards the route's servers.
	Timeouts Timeouts `json:"timeouts"`
	// Features of this route, in place of the proxy's.
	Features
}

// Prefix returns the path without a slash at its end; "" matches every path.
func (r *Route) Prefix() string { return strings.TrimSuffix(r.Path, "/") }

// Timeouts bound the steps of a request towards a server.
type Timeouts struct {
	// Connect is the time for a connection to a server, name look-up included.
	Connect unit.Duration `json:"connect" default:"5s" min:"10ms" max:"10m"`
}

// Server is one upstream address of a route.
type Server struct {
	_ struct{} `later:"tls,max_connections,backup"`

	// URL is where requests go: scheme, host, port (80 when absent) and base
	// path. The base path is put in front of the path that the route leaves.
	URL string `json:"url" required:"true" max:"2048" example:"http://127.0.0.1:3000/v2/"`
	// Weight is the server's share of the route's requests, against the weights
	// of the others. 0 takes no new clients.
	Weight int `json:"weight" default:"1" min:"0" max:"65535"`
}

// Admin is the listener for operators: /metrics, /status, /healthz, /livez and
// /readyz.
type Admin struct {
	// Address is the IP address and port number to listen on. An empty string
	// switches the listener off. It has no sign-in: keep it on loopback or
	// behind a firewall.
	Address netip.AddrPort `json:"address" default:"127.0.0.1:9080"`
}

// LogFormat is how an access log line is written.
type LogFormat string

// The formats of the access log.
const (
	LogJSON     LogFormat = "json"
	LogCombined LogFormat = "combined"
)

// AccessLog says where and how requests are logged.
type AccessLog struct {
	// Enabled is whether requests are logged.
	Enabled bool `json:"enabled" default:"true"`
	// Format is `json` for one object a line with every field, or `combined`
	// for the form of the same name known from nginx and Apache.
	Format LogFormat `json:"format" default:"json" enum:"json,combined"`
	// Path is `stdout`, `stderr` or a file, which is opened again on SIGUSR1
	// for log rotation.
	Path string `json:"path" default:"stdout" max:"4096"`
}

// Upstreams holds what is common to the connections to all servers.
type Upstreams struct {
	// IdleTimeout is how long an unused connection to a server is kept. 0 keeps
	// none.
	IdleTimeout unit.Duration `json:"idle_timeout" default:"90s" max:"24h"`
	// IdleConnections is the largest number of unused connections kept for one
	// server. 0 keeps none.
	IdleConnections int `json:"idle_connections" default:"128" min:"0" max:"100000"`
	// BodyIdleTimeout is the longest pause in a response body before the
	// response is broken off.
	BodyIdleTimeout unit.Duration `json:"body_idle_timeout" default:"60s" min:"100ms" max:"24h"`
	// HeadSize is the largest response head, in bytes. A larger one is answered
	// with 502.
	HeadSize unit.Size `json:"head_size" default:"64KiB" min:"1KiB" max:"16MiB"`
	// ResolveInterval is how often the names of servers are looked up again.
	ResolveInterval unit.Duration `json:"resolve_interval" default:"30s" min:"1s" max:"24h"`
}
