package config

import "headgate/internal/certs/acme"

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
	Object
	// VirtualHosts are the host names of the proxy: an exact name ("shop.example.com"), a
	// wildcard for one label ("*.example.com"), or an RE2 expression from ~^ to $
	// ("~^shop[0-9]+\.example\.com$"). Exact names take precedence over wildcards,
	// wildcards over expressions. Empty means every host that no other proxy has. Names are
	// compared in lower case and in their ASCII form, without a port.
	VirtualHosts []string `json:"virtual_hosts,omitempty" label:"true" max:"1000" example:"shop.example.com"`
	// Ports names the ports of the proxy. Empty means all.
	Ports []string `json:"ports,omitempty" label:"true" max:"1000" example:"web"`
	// Active is whether the proxy takes requests. An inactive proxy is checked
	// and otherwise ignored.
	Active bool `json:"active" label:"true" default:"true"`
	// ShareHosts is whether container labels can add paths to the hosts of the proxy, and
	// use hosts that match its wildcards and expressions. Paths of the proxy itself always
	// take precedence.
	ShareHosts bool `json:"share_hosts" default:"false"`
	// HostHeader is the Host that servers get: `preserve` for what the client
	// sent, `upstream` for the host and port of the server's URL, or a fixed
	// value, sent as it is.
	HostHeader string `json:"host_header" label:"true" default:"preserve" max:"259"`
	// ForwardedStyle is the form of the forwarded fields: `compat` sends
	// forwarded with commas (for=…, host=…, proto=…) and the x-forwarded
	// fields; `rfc7239` sends forwarded with semicolons as RFC 7239 writes it,
	// and the x-forwarded fields; `off` sends none of them.
	ForwardedStyle ForwardedStyle `json:"forwarded_style" label:"true" default:"compat" enum:"compat,rfc7239,off"`
	// ViaStyle is the form of the Via field: `compat` sends the fixed token
	// proxy; `rfc9110` sends the protocol version and a name.
	ViaStyle ViaStyle `json:"via_style" label:"true" default:"compat" enum:"compat,rfc9110"`
	// ACME is the entry by which the virtual hosts get certificates, or `none`.
	// Absent means the entry that is the default, if one is. Hosts that another
	// certificate covers already get none.
	ACME string `json:"acme,omitempty" label:"true" max:"256" example:"main"`
	// OnDemand orders certificates when a client first connects with a host that matches a
	// wildcard or an expression, or that no other proxy has. It needs an ACME entry. The
	// handshake waits for at most 9 seconds; a host that is refused gets the TLS alert
	// unrecognized_name. Absent means that such hosts get no certificates of their own.
	OnDemand *acme.OnDemand `json:"on_demand,omitempty"`
	// AccessLog changes the access log for this proxy. Absent means as
	// configured for all.
	AccessLog *ProxyLog `json:"access_log,omitempty"`
	// Use names policies, whose features apply as if they were set here. If two set the
	// same feature, the later one applies; features that are set here take precedence over
	// policies.
	Use []string `json:"use,omitempty" label:"true" max:"32" example:"staff"`
	// Features that every route of the proxy inherits.
	Features
	// Routes are the paths the proxy answers and what answers there. Their
	// order does not matter: the longest path wins.
	Routes []*Route `json:"routes" label:"true" required:"true" max:"500" order:"no" object:"route,path" example:"[{servers: [{url: http://127.0.0.1:3000}]}]"`

	// written is the proxy as defined in its document, nil if that is the same.
	written *Proxy
}

// ProxyLog changes the access log for one proxy.
type ProxyLog struct {
	// Enabled is whether requests of this proxy are logged; of a TCP or UDP proxy,
	// connections or sessions.
	Enabled bool `json:"enabled" default:"true"`
	// Path is `stdout`, `stderr` or a file that they are logged to, in the form and with
	// the fields of the common access log. Several proxies may name one file. It is
	// opened again as the common one is. Absent is the path of the common log.
	Path string `json:"path,omitempty" host:"admin" local:"true" max:"4096" example:"/var/log/headgate/shop.log"`
}
