package config

import (
	"net/netip"

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
	// Address is the IP address and port number to listen on. IPv6 stands in
	// brackets; "[::]:80" takes IPv4 too. Two active ports of the same
	// transport cannot have the same address.
	Address netip.AddrPort `json:"address" required:"true" example:"0.0.0.0:80"`
	// Protocol is what clients speak on the port: `http`; `https` for TLS with
	// HTTP/2 and HTTP/1.1, whichever the client prefers; or `http3` for HTTP/3 over
	// QUIC, which takes UDP. An http3 port may have the address of an https port,
	// whose responses then tell clients of it (Alt-Svc).
	Protocol Protocol `json:"protocol" required:"true" enum:"http,https,http3" example:"http"`
	// H2C is whether an http port also takes HTTP/2 from clients that begin with
	// it without asking (prior knowledge).
	H2C bool `json:"h2c" default:"false"`
	// TLS says how an https or http3 port speaks TLS.
	TLS TLS `json:"tls"`
	// ProxyProtocol says which peers begin their connections with a header that
	// tells whose connection it is. Absent means none.
	ProxyProtocol *ProxyProtocol `json:"proxy_protocol,omitempty"`
	// Active is whether the port is opened. An inactive port keeps its settings
	// and its place in the lists that name it.
	Active bool `json:"active" default:"true"`
	// DrainTimeout is how long running requests may go on after the port was closed or
	// moved, or headgate was stopped. Then their connections are cut.
	DrainTimeout unit.Duration `json:"drain_timeout" was:"drain" default:"30s" max:"24h"`
	// StrictTarget is whether a request target with octets that are not ASCII, such as
	// /café in raw UTF-8, gets 400. Without it they are percent-encoded (/caf%C3%A9)
	// before the request is matched and sent.
	StrictTarget bool `json:"strict_target" default:"false"`
	// Limits bound what a client of this port may send and how long it may take.
	Limits Limits `json:"limits"`
}

// ProxyProtocol says who may tell by a PROXY header, version 1 or 2, whose
// connection it passes on: load balancers in front. The address in the header
// then is the client's for everything that looks at addresses.
type ProxyProtocol struct {
	// Trusted are the addresses and networks of the peers that send a header.
	// They have to: a connection of theirs that does not begin with one is
	// closed. A header of anybody else is not looked at, and makes a request
	// that is none.
	Trusted []string `json:"trusted" required:"true" min:"1" max:"10000" example:"[192.0.2.0/24]"`
	// Timeout is the time for the header to arrive. Then the connection is closed.
	Timeout unit.Duration `json:"timeout" default:"5s" min:"100ms" max:"1m"`
}

// TLS says how an https or http3 port speaks TLS.
type TLS struct {
	// MinVersion is the oldest version of TLS that is spoken. HTTP/3 has TLS 1.3
	// in any case.
	MinVersion TLSVersion `json:"min_version" default:"1.2" enum:"1.2,1.3"`
	// ClientAuth is whether clients show a certificate of their own: `off`;
	// `optional`, which checks one that is shown; `required`, which refuses
	// clients without. One that client_ca has not signed is refused.
	ClientAuth ClientAuth `json:"client_auth" default:"off" enum:"off,optional,required"`
	// ClientCA is a PEM file with the certificates of the authorities that sign
	// clients' certificates. It is needed unless client_auth is off. A relative
	// path begins at the configuration file.
	ClientCA string `json:"client_ca,omitempty" host:"admin" max:"4096" example:"clients-ca.pem"`
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

// Limits bound what one client may send to a port and how long it may take.
type Limits struct {
	// HeaderTimeout is the time for a whole request head to arrive, from its
	// first byte (or from the connection's begin, which on Linux is a second
	// late for a client that says nothing). Then 408 and close.
	HeaderTimeout unit.Duration `json:"header_timeout" was:"head_timeout" default:"30s" min:"100ms" max:"1h"`
	// BodyIdleTimeout is the longest pause in a request body before the
	// connection is cut.
	BodyIdleTimeout unit.Duration `json:"body_idle_timeout" default:"60s" min:"100ms" max:"24h"`
	// MinBodyRate is how many bytes a second a client has to send of a request body.
	// headgate waits for it as long as body_idle_timeout in all, and for what it sent
	// as long again as that takes at this rate; then the request ends with 408. Time in
	// which a server does not take the body does not count. Streams that clients keep
	// open, such as those of gRPC, are held to it too. 0 is no bound.
	MinBodyRate unit.Size `json:"min_body_rate" default:"0" min:"0" max:"1GiB" example:"1KiB"`
	// WriteIdleTimeout is how long a client may take no byte of a response
	// before its connection is cut.
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
	// MaxConcurrentStreams is the largest number of requests that a client may have under way
	// on one HTTP/2 or HTTP/3 connection; more are refused, and clients send them
	// again.
	MaxConcurrentStreams int `json:"max_concurrent_streams" was:"streams" default:"256" min:"1" max:"10000"`
	// MaxMemory bounds the memory that requests hold while they are under way, with
	// what is buffered of their heads and bodies. A request over HTTP/2 and HTTP/3 counts
	// as 64 KiB, and what was not read yet of its body on top; one over HTTP/1.1 as 32 KiB
	// while its client or server is waited for, and a head that did not come whole as its
	// size. A client may have as much as is left of it, so one alone gets half, and a
	// newcomer always something; what is more is refused (over HTTP/1.1 with 503), and
	// clients send it again. 0 is no bound.
	MaxMemory unit.Size `json:"max_memory" default:"1GiB" min:"0" max:"1TiB"`
	// MaxMemoryPerClient is the same for one client address (IPv6 by /64). Raise it
	// where a load balancer or CDN in front has few addresses and many clients. 0 is
	// no bound but max_memory.
	MaxMemoryPerClient unit.Size `json:"max_memory_per_client" default:"128MiB" min:"0" max:"1TiB"`
	// MaxConnections is the largest number of open connections of the port; a new one
	// takes the place of one without a request, or waits in the system's queue. 0 means
	// as many as file descriptors allow.
	MaxConnections int `json:"max_connections" was:"connections" min:"0" max:"10000000"`
}
