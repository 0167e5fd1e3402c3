package config

import (
	"net/netip"

	"headgate/internal/server/target"
	"headgate/internal/setting/unit"
)

// Protocol is what a port speaks to clients.
type Protocol string

// The protocols of a port.
const (
	HTTP  Protocol = "http"
	HTTPS Protocol = "https"
	HTTP3 Protocol = "http3"
)

// Port is a socket headgate listens on. A change of its address or protocol
// needs no restart.
type Port struct {
	Object
	// Address is the IP address and port number to listen on. IPv6 addresses are in
	// brackets; "[::]:80" includes IPv4. Two active ports of the same transport cannot have
	// the same address.
	Address netip.AddrPort `json:"address" required:"true" example:"0.0.0.0:80"`
	// Protocol is the protocol of the port: `http`; `https` for TLS with HTTP/2 and
	// HTTP/1.1, as the client prefers; or `http3` for HTTP/3 over QUIC, which uses UDP. An
	// http3 port can have the address of an https port, which then announces it to clients
	// (Alt-Svc).
	Protocol Protocol `json:"protocol" required:"true" enum:"http,https,http3" example:"http"`
	// H2C is whether an http port also accepts HTTP/2 without negotiation (prior
	// knowledge).
	H2C bool `json:"h2c" default:"false"`
	// TLS are the TLS settings of an https or http3 port.
	TLS TLS `json:"tls"`
	// ProxyProtocol configures which peers send a PROXY protocol header at the beginning of
	// a connection. Absent means none.
	ProxyProtocol *ProxyProtocol `json:"proxy_protocol,omitempty"`
	// Active is whether the port is opened. An inactive port keeps its settings
	// and its place in the lists that name it.
	Active bool `json:"active" default:"true"`
	// Nodes are the names of the nodes that open the port, as `headgate node list` shows
	// them. Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitempty" max:"64" example:"[web1]"`
	// DrainTimeout is how long requests in progress can continue after the port is closed
	// or moved, or headgate is stopped. Then their connections are closed.
	DrainTimeout unit.Duration `json:"drain_timeout" was:"drain" default:"30s" max:"24h"`
	// StrictTarget is whether a request target with octets that are not ASCII, such as
	// /café in raw UTF-8, gets 400. Without it they are percent-encoded (/caf%C3%A9)
	// before the request is matched and sent.
	StrictTarget bool `json:"strict_target" default:"false"`
	// Limits bound what a client of this port may send and how long it may take.
	Limits Limits `json:"limits"`
}

// ProxyProtocol configures the load balancers in front that send the client's address in a
// PROXY protocol header, version 1 or 2. The address in the header becomes the client's
// address for all features.
type ProxyProtocol struct {
	// Trusted are the addresses and networks of the peers that send a header. The header is
	// required: a connection from them without one is closed. A header from other peers is
	// not parsed, and makes the request malformed.
	Trusted []string `json:"trusted" required:"true" min:"1" max:"10000" example:"[192.0.2.0/24]"`
	// Timeout is the time for the header to arrive. Then the connection is closed.
	Timeout unit.Duration `json:"timeout" default:"5s" min:"100ms" max:"1m"`
}

// TLS are the TLS settings of an https or http3 port.
type TLS struct {
	// MinVersion is the minimum version of TLS. HTTP/3 always uses TLS 1.3.
	MinVersion TLSVersion `json:"min_version" default:"1.2" enum:"1.2,1.3"`
	// ClientAuth is whether clients must present a certificate: `off`; `optional`, which
	// verifies a certificate that is presented; `required`, which rejects clients without
	// one. A certificate that is not signed by client_ca is rejected.
	ClientAuth ClientAuth `json:"client_auth" default:"off" enum:"off,optional,required"`
	// ClientCA is a PEM file with the certificates of the authorities that sign
	// clients' certificates. It is needed unless client_auth is off. A relative
	// path begins at the configuration file.
	ClientCA string `json:"client_ca,omitempty" host:"admin" max:"4096" example:"clients-ca.pem"`
	// DefaultCertificate names the certificate for clients that send no server name, or
	// one that no certificate has. Without it they get a self-signed one.
	DefaultCertificate string `json:"default_certificate,omitempty" max:"128" example:"main"`
	// ECH hides the requested host in the TLS handshake of clients that support Encrypted
	// Client Hello (RFC 9849) and have its key from the DNS. Absent turns it off. headgate
	// makes and rotates the keys. `headgate ech` prints the DNS records; with dns, headgate
	// writes them.
	ECH *ECH `json:"ech,omitempty"`
}

// ECH are the settings of Encrypted Client Hello.
type ECH struct {
	// PublicName is the name that clients show in place of the requested host, and that
	// everyone on the way can read. It resolves to this server, and a certificate has it.
	// Ports with the same name have the same keys.
	PublicName string `json:"public_name" required:"true" max:"253" example:"example.com"`
	// DNS is the ACME entry through whose DNS provider headgate writes the HTTPS records for
	// the hosts of the port. The provider must be rfc2136 or cloudflare. In an existing record,
	// headgate replaces only the parameter ech; it removes no record. Absent means that you copy
	// the records yourself.
	DNS string `json:"dns,omitempty" max:"256" example:"main"`
}

// Name returns the public name in lower case and ASCII form, "" if it is none.
func (e *ECH) Name() string {
	name, f := target.Host(e.PublicName)
	if f != nil {
		return ""
	}
	return name
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

// Limits bound what one client may send to a port and how long it may take.
type Limits struct {
	// HeaderTimeout is the time for a whole request head to arrive, from its first byte, or
	// from the beginning of the connection, which Linux reports after a second if the
	// client sends nothing. Then headgate responds with 408 and closes the connection.
	HeaderTimeout unit.Duration `json:"header_timeout" was:"head_timeout" default:"30s" min:"100ms" max:"1h"`
	// BodyIdleTimeout is the longest pause in a request body before the connection is
	// closed.
	BodyIdleTimeout unit.Duration `json:"body_idle_timeout" default:"60s" min:"100ms" max:"24h"`
	// MinBodyRate is the minimum rate of a request body, in bytes per second. A client has
	// body_idle_timeout, plus the time that the bytes sent so far take at this rate; then
	// the request ends with 408. Time in which a server does not accept the body does not
	// count. Streams that clients keep open, such as those of gRPC, must keep this rate,
	// too. 0 means no limit.
	MinBodyRate unit.Size `json:"min_body_rate" default:"0" min:"0" max:"1GiB" example:"1KiB"`
	// WriteIdleTimeout is how long a client can accept no bytes of a response before its
	// connection is closed.
	WriteIdleTimeout unit.Duration `json:"write_idle_timeout" default:"60s" min:"100ms" max:"24h"`
	// KeepAliveTimeout is how long a connection may wait for its next request. 0
	// closes connections after each response.
	KeepAliveTimeout unit.Duration `json:"keep_alive_timeout" was:"keep_alive" default:"120s" max:"24h"`
	// TunnelIdleTimeout is how long an upgraded connection (WebSocket) may be
	// silent in both directions.
	TunnelIdleTimeout unit.Duration `json:"tunnel_idle_timeout" default:"1h" min:"1s" max:"168h"`
	// HeaderSize is the largest request head, in bytes: request line and fields.
	// A larger one gets 431.
	HeaderSize unit.Size `json:"header_size" was:"head_size" default:"32KiB" min:"1KiB" max:"1MiB"`
	// HeaderFields is the largest number of fields in a request head. More get
	// 431.
	HeaderFields int `json:"header_fields" was:"head_fields" default:"200" min:"10" max:"10000"`
	// URISize is the longest request target, in bytes. A longer one gets 414.
	URISize unit.Size `json:"uri_size" default:"16KiB" min:"256" max:"1MiB"`
	// MaxConcurrentStreams is the maximum number of requests in progress on one HTTP/2 or
	// HTTP/3 connection. More are refused, and clients send them again.
	MaxConcurrentStreams int `json:"max_concurrent_streams" was:"streams" default:"256" min:"1" max:"10000"`
	// MaxMemory is the maximum memory for requests in progress, with the buffered parts of
	// their heads and bodies. A request over HTTP/2 and HTTP/3 counts as 64 KiB plus the
	// part of its body that was not read yet; one over HTTP/1.1 counts as 32 KiB while
	// headgate waits for its client or server, and an incomplete head as its size. One
	// client can use as much as is left, so a single client gets half, and a new client
	// always gets some. More requests are refused (over HTTP/1.1 with 503), and clients
	// send them again. 0 means no limit.
	MaxMemory unit.Size `json:"max_memory" default:"1GiB" min:"0" max:"1TiB"`
	// MaxMemoryPerClient is the same limit for one client address (IPv6: for a /64).
	// Increase it if a load balancer or CDN in front has few addresses and many clients. 0
	// means no limit except max_memory.
	MaxMemoryPerClient unit.Size `json:"max_memory_per_client" default:"128MiB" min:"0" max:"1TiB"`
	// MaxConnections is the largest number of open connections of the port; a new one
	// takes the place of one without a request, or waits in the system's queue. 0 means
	// as many as file descriptors allow.
	MaxConnections int `json:"max_connections" was:"connections" min:"0" max:"10000000"`
}
