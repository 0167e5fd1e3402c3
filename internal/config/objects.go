// Package config defines the objects of a configuration, with their defaults and checks, and
// loads them: Load reads documents into a Config and reports all problems at once, with their
// positions.
//
// The objects are in objects.go, port.go, proxy.go, route.go, stream.go and mirror.go, and
// the settings that proxies and routes share in features.go. kind.go is the table of their
// kinds: code for objects of every kind (checks, the API, the log) uses Kinds. load.go puts a
// Config together: sections.go reads the objects of its documents, check.go and
// check_stream.go validate them together. model.go describes the types. label.go decodes
// container labels, and adder.go adds the objects that they define.
//
// Below it, package document parses and edits the text of documents, decode reads values, and
// format writes the canonical form. Above it, diff compares configurations.
//
// The package does not implement the settings: internal/plan compiles them.
package config

import (
	"net/netip"

	"headgate/internal/feature/clientip"
	"headgate/internal/gate"
	"headgate/internal/geo"
	"headgate/internal/setting/unit"
	"headgate/internal/tracing"
)

// Config is the whole configuration.
//
// It is not changed once it was loaded; a change makes another Config. It may
// be read by several goroutines at once.
type Config struct {
	_ struct{} `later:"users,tokens"`

	// Version is the version of the configuration format. It is 1.
	Version int `json:"version" required:"true" min:"1" max:"1" example:"1"`
	// Ports are the sockets headgate listens on, by name.
	Ports map[string]*Port `json:"ports,omitempty" max:"1000" object:"port"`
	// Proxies are virtual hosts with their routes, by name.
	Proxies map[string]*Proxy `json:"proxies,omitempty" max:"10000" object:"proxy"`
	// TCPProxies are the TCP proxies, by name. They forward connections to servers.
	TCPProxies map[string]*TCPProxy `json:"tcp_proxies,omitempty" max:"1000" object:"TCP proxy"`
	// UDPProxies are the UDP proxies, by name. They forward datagrams to servers.
	UDPProxies map[string]*UDPProxy `json:"udp_proxies,omitempty" max:"1000" object:"UDP proxy"`
	// Certificates are the certificates of HTTPS ports, by name.
	Certificates map[string]*Certificate `json:"certificates,omitempty" max:"10000" object:"certificate"`
	// Policies are sets of features that proxies and routes use, by name.
	Policies map[string]*Policy `json:"policies,omitempty" max:"1000" object:"policy"`
	// Defaults are the features of all proxies that do not set their own.
	Defaults Defaults `json:"defaults"`
	// Lists are lists of addresses that settings refer to as list:NAME, by name.
	Lists map[string]*List `json:"lists,omitempty" max:"1000" object:"list"`
	// Bans are the rules that ban clients for what they do, by name.
	Bans map[string]*Ban `json:"bans,omitempty" max:"100" object:"ban rule"`
	// SignIn configures how people sign in before they reach applications behind a gate.
	SignIn gate.Config `json:"sign_in"`
	// Geo are the databases of countries and networks.
	Geo geo.Config `json:"geo"`
	// ACME are the entries that obtain certificates automatically, by name. A proxy
	// selects one with its field acme.
	ACME map[string]*ACME `json:"acme,omitempty" max:"100" object:"ACME entry"`
	// Discovery configures the providers that proxies are discovered from.
	Discovery Discovery `json:"discovery"`
	// Webhooks are URLs that events are sent to, by name.
	Webhooks map[string]*Webhook `json:"webhooks,omitempty" max:"100" object:"webhook"`
	// Notices are messages to people about events, by name.
	Notices map[string]*Notice `json:"notices,omitempty" max:"100" object:"notice"`
	// AccessLog configures the access log.
	AccessLog AccessLog `json:"access_log"`
	// Tracing configures which requests are traced, and where spans are sent.
	Tracing tracing.Config `json:"tracing"`
	// Upstreams configures the connections to all servers.
	Upstreams Upstreams `json:"upstreams"`
	// CDNNetworks configures the updates of the networks of CDNs in client_ip.
	CDNNetworks clientip.Refresh `json:"cdn_networks"`
	// Admin is the listener for operators: the API, the console, /metrics, /status and
	// the health pages.
	Admin Admin `json:"admin"`

	// Dir is the folder where relative paths begin.
	Dir string `json:"-"`

	// loaded is what it was made of, nil for one that a program made.
	node     string // that it is used on; "" for all
	several  bool   // other nodes have it, too
	loaded   *Loaded
	withheld *Withhold // without effect on this machine; nil for nothing
	// documents is the configuration of the documents alone, nil if this is it; found are
	// the discovered objects, by kind and name.
	documents *Config
	found     map[[2]string]*Found
	// expanded are the texts with ${…} in them, by the path of their field.
	expanded map[string]string
	// secrets are the values of ${file:…}, each with its reference.
	secrets map[string]string
}

// Certificate is a certificate with its key, in files. The files are watched:
// when they change, the new certificate is used for new connections; when what
// they hold then cannot be used, the one before is kept and the log says why.
type Certificate struct {
	Object
	// CertFile is a PEM file with the certificate, followed by the intermediate certificates that lead
	// to its authority. A relative path begins at the configuration file.
	CertFile string `json:"cert_file,omitempty" host:"admin" max:"4096" example:"cert.pem"`
	// KeyFile is a PEM file with the certificate's private key. A relative path
	// begins at the configuration file.
	KeyFile string `json:"key_file,omitempty" host:"admin" max:"4096" example:"key.pem"`
	// Stored is the name of a certificate in the state directory, instead of files: one
	// that was uploaded, or created by `headgate certificate self-signed`. A new upload
	// with this name is used immediately.
	Stored string `json:"stored,omitempty" max:"63" example:"shop"`
}

// Admin is the listener for operators: the API, the console, /metrics, /status and
// the health pages.
type Admin struct {
	// Address is the IP address and port number to listen on. An empty string
	// switches the listener off. On an address that is not loopback it speaks TLS.
	Address netip.AddrPort `json:"address" default:"127.0.0.1:9080"`
	// Certificate names the certificate for clients that send no server name, or one that
	// no certificate has; with one the listener uses TLS on loopback, too. By default it is
	// self-signed, and the log has its fingerprint.
	Certificate string `json:"certificate,omitempty" max:"128" example:"main"`
	// Hosts are the names that clients can use for the listener, besides localhost and IP
	// addresses. Requests with other names are rejected.
	Hosts []string `json:"hosts,omitempty" max:"32" example:"[gate.example.com]"`
	// TrustedProxies are the networks of proxies in front of the listener whose
	// x-forwarded-for is trusted. The client's address limits, audits and allows sign-ins.
	TrustedProxies []string `json:"trusted_proxies,omitempty" max:"64" example:"[127.0.0.1]"`
	// UpgradeDrain is how long a process that was replaced by an upgrade keeps long-lived
	// connections, such as WebSockets and connections through TCP proxies.
	UpgradeDrain unit.Duration `json:"upgrade_drain" default:"1h" min:"0s" max:"24h"`
	// OIDC lets operators sign in through a provider that speaks OpenID Connect.
	// Users of headgate itself can always sign in.
	OIDC *OIDC `json:"oidc,omitempty"`
	// UpdateCheck is whether headgate checks once a day for a newer release. The log and
	// the console report it; nothing is installed. Only the version in use is sent.
	UpdateCheck bool `json:"update_check" default:"false"`
}

// TLS reports whether the listener speaks TLS.
func (a *Admin) TLS() bool {
	return a.Address.IsValid() && (a.Certificate != "" || !a.Address.Addr().Unmap().IsLoopback())
}

// LogFormat is how an access log line is written.
type LogFormat string

// The formats of the access log.
const (
	LogJSON     LogFormat = "json"
	LogCombined LogFormat = "combined"
)

// AccessLog configures how and where requests are logged.
type AccessLog struct {
	// Enabled is whether requests are logged.
	Enabled bool `json:"enabled" default:"true"`
	// Format is `json` for one object per line with every field, or `combined` for the
	// format that nginx and Apache call by this name.
	Format LogFormat `json:"format" default:"json" enum:"json,combined"`
	// Path is `stdout`, `stderr` or a file, which is opened again on SIGUSR1
	// for log rotation.
	Path string `json:"path" host:"admin" local:"true" default:"stdout" max:"4096"`
	// RedactQuery names query parameters whose values are logged as REDACTED, in the
	// request and in its Referer, here and in what is kept of recent requests. A name may
	// end in `*`.
	RedactQuery []string `json:"redact_query,omitempty" max:"100" example:"[token, api_key, \"x_*\"]"`
	// RequestHeaders names fields of requests that are logged too, in `json`.
	RequestHeaders []string `json:"request_headers,omitempty" max:"32" example:"[X-Tenant]"`
	// ResponseHeaders names fields of responses, as clients get them, that are logged
	// too, in `json`.
	ResponseHeaders []string `json:"response_headers,omitempty" max:"32" example:"[Content-Type]"`
	// Omit names fields that are left out in `json`: client_ip, peer, client_port, user,
	// query, user_agent, referer, cause or tls.
	Omit []string `json:"omit,omitempty" max:"16" example:"[user_agent, referer]"`
	// Sample is the percentage of successful requests that are logged. Requests with a
	// status of 400 or more, or with a reason, are always logged.
	Sample int `json:"sample" default:"100" min:"0" max:"100"`
	// Recent configures the recent requests that are kept in memory.
	Recent Recent `json:"recent"`
}

// Recent configures the last requests that are kept in memory, for logs/access of the API
// and its live stream. It does not depend on access_log.enabled; proxies with a disabled
// access_log are not included.
type Recent struct {
	// Enabled is whether the last requests are kept. Disabled, it has no cost.
	Enabled bool `json:"enabled" default:"true"`
	// MemoryLimit is the maximum memory for recent requests. It is allocated as needed.
	// When it is full, the oldest requests are removed; requests that failed or were slow
	// are kept longer.
	MemoryLimit unit.Size `json:"memory_limit" default:"32MiB" min:"1MiB" max:"4GiB"`
}

// Upstreams holds what is common to the connections to all servers.
type Upstreams struct {
	// IdleTimeout is how long an unused connection to a server is kept. 0 keeps
	// none.
	IdleTimeout unit.Duration `json:"idle_timeout" default:"90s" max:"24h"`
	// MaxIdleConnections is the largest number of unused connections kept for one
	// server. 0 keeps none.
	MaxIdleConnections int `json:"max_idle_connections" was:"idle_connections" default:"128" min:"0" max:"100000"`
	// BodyIdleTimeout is the longest pause in a response body before headgate aborts the
	// response.
	BodyIdleTimeout unit.Duration `json:"body_idle_timeout" default:"60s" min:"100ms" max:"24h"`
	// HeaderSize is the largest response head, in bytes. A larger one is answered
	// with 502.
	HeaderSize unit.Size `json:"header_size" was:"head_size" default:"64KiB" min:"1KiB" max:"16MiB"`
	// ResolveInterval is how often the names of servers are resolved again. A shorter TTL
	// from a name server is used instead, down to a second. While a name cannot be
	// resolved, its last addresses are used.
	ResolveInterval unit.Duration `json:"resolve_interval" default:"30s" min:"1s" max:"24h"`
	// Resolvers are the name servers that resolve the names of servers, in this order: an
	// address, with a port if it is not 53. Absent means those of the system. The hosts
	// file of the system always takes precedence.
	Resolvers []string `json:"resolvers,omitempty" max:"8" example:"127.0.0.11"`
}
