// Code generated from the table of the API; DO NOT EDIT.

package client

import (
	"encoding/json"
	"net/netip"
	"time"
)

// ACME is an entry by which certificates come by themselves.
type ACME struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Directory is the ACME server: `letsencrypt`, `letsencrypt-staging` (for tests: browsers do not
	// trust it), `zerossl`, `google`, or the https URL of a directory. Link-local addresses
	// (169.254.0.0/16, fe80::/10) and those of cloud metadata are rejected.
	Directory string `json:"directory,omitzero"`
	// Fallbacks are the directories to use next, in this order, after one has failed twice because
	// it is unavailable or overloaded, or at once if its rate limit lasts longer than the pause
	// after a failure. A rejection, such as for a host that headgate does not control, never leads
	// to a fallback.
	Fallbacks []string `json:"fallbacks,omitzero"`
	// CaFile is a PEM file with the authorities to verify the directory's TLS certificate with, for
	// a private directory. Absent means the system's.
	CaFile string `json:"ca_file,omitzero"`
	// Email is the contact address of the account, which the directory can use before a certificate
	// expires or when it must be revoked.
	Email string `json:"email,omitzero"`
	// EAB binds the account to an existing one at the authority (RFC 8555, section 7.3.4). ZeroSSL
	// and Google require it.
	EAB *EAB `json:"eab,omitzero"`
	// KeyType is the type of the certificates' keys.
	KeyType string `json:"key_type,omitzero"`
	// Profile is a certificate profile of the directory, such as `tlsserver` or `shortlived`. Absent
	// means its default.
	Profile string `json:"profile,omitzero"`
	// Domains are names to get certificates for in addition to the virtual hosts of proxies.
	// `*.example.com` covers every host with one more label, and needs dns-01.
	Domains []string `json:"domains,omitzero"`
	// Challenge is how the authority verifies that headgate controls a host: `http-01` by a response
	// on an http port, `tls-alpn-01` in a handshake on an https port, `dns-01` by a DNS record.
	// `auto` uses those that can work.
	Challenge string `json:"challenge,omitzero"`
	// Resolvers are the name servers for all lookups of the entry, as ip:port. Absent means the
	// system's, and the authoritative servers for the records of dns-01.
	Resolvers []string `json:"resolvers,omitzero"`
	// HTTPPort is the number of the port that receives connections to the public port 80, if a
	// router forwards them to another one.
	HTTPPort *int `json:"http_port,omitzero"`
	// HTTPSPort is the number of the port that receives connections to the public port 443.
	HTTPSPort *int `json:"https_port,omitzero"`
	// DNS configures the DNS provider for dns-01.
	DNS *DNS `json:"dns,omitzero"`
	// Renew is when a certificate is renewed: `ari` when the authority suggests it (RFC 9773), or as
	// with lifetime if it suggests nothing; `lifetime` when a third of the lifetime is left, or half
	// of it for less than ten days.
	Renew string `json:"renew,omitzero"`
	// PreferredChain is the common name of the preferred root, if the authority offers several
	// chains.
	PreferredChain string `json:"preferred_chain,omitzero"`
	// Default is whether the entry applies to every proxy with virtual hosts that has no acme
	// setting. `acme: none` on a proxy excludes it.
	Default *bool `json:"default,omitzero"`
}

// ACMEObject is a ACME entry with its name, origin and state. The fields of the state are
// ignored in requests.
type ACMEObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Directory is the ACME server: `letsencrypt`, `letsencrypt-staging` (for tests: browsers do not
	// trust it), `zerossl`, `google`, or the https URL of a directory. Link-local addresses
	// (169.254.0.0/16, fe80::/10) and those of cloud metadata are rejected.
	Directory string `json:"directory,omitzero"`
	// Fallbacks are the directories to use next, in this order, after one has failed twice because
	// it is unavailable or overloaded, or at once if its rate limit lasts longer than the pause
	// after a failure. A rejection, such as for a host that headgate does not control, never leads
	// to a fallback.
	Fallbacks []string `json:"fallbacks,omitzero"`
	// CaFile is a PEM file with the authorities to verify the directory's TLS certificate with, for
	// a private directory. Absent means the system's.
	CaFile string `json:"ca_file,omitzero"`
	// Email is the contact address of the account, which the directory can use before a certificate
	// expires or when it must be revoked.
	Email string `json:"email,omitzero"`
	// EAB binds the account to an existing one at the authority (RFC 8555, section 7.3.4). ZeroSSL
	// and Google require it.
	EAB *EAB `json:"eab,omitzero"`
	// KeyType is the type of the certificates' keys.
	KeyType string `json:"key_type,omitzero"`
	// Profile is a certificate profile of the directory, such as `tlsserver` or `shortlived`. Absent
	// means its default.
	Profile string `json:"profile,omitzero"`
	// Domains are names to get certificates for in addition to the virtual hosts of proxies.
	// `*.example.com` covers every host with one more label, and needs dns-01.
	Domains []string `json:"domains,omitzero"`
	// Challenge is how the authority verifies that headgate controls a host: `http-01` by a response
	// on an http port, `tls-alpn-01` in a handshake on an https port, `dns-01` by a DNS record.
	// `auto` uses those that can work.
	Challenge string `json:"challenge,omitzero"`
	// Resolvers are the name servers for all lookups of the entry, as ip:port. Absent means the
	// system's, and the authoritative servers for the records of dns-01.
	Resolvers []string `json:"resolvers,omitzero"`
	// HTTPPort is the number of the port that receives connections to the public port 80, if a
	// router forwards them to another one.
	HTTPPort *int `json:"http_port,omitzero"`
	// HTTPSPort is the number of the port that receives connections to the public port 443.
	HTTPSPort *int `json:"https_port,omitzero"`
	// DNS configures the DNS provider for dns-01.
	DNS *DNS `json:"dns,omitzero"`
	// Renew is when a certificate is renewed: `ari` when the authority suggests it (RFC 9773), or as
	// with lifetime if it suggests nothing; `lifetime` when a third of the lifetime is left, or half
	// of it for less than ten days.
	Renew string `json:"renew,omitzero"`
	// PreferredChain is the common name of the preferred root, if the authority offers several
	// chains.
	PreferredChain string `json:"preferred_chain,omitzero"`
	// Default is whether the entry applies to every proxy with virtual hosts that has no acme
	// setting. `acme: none` on a proxy excludes it.
	Default *bool `json:"default,omitzero"`
}

// AccessLog configures how and where requests are logged.
type AccessLog struct {
	// Enabled is whether requests are logged.
	Enabled *bool `json:"enabled,omitzero"`
	// Format is `json` for one object per line with every field, or `combined` for the format that
	// nginx and Apache call by this name.
	Format string `json:"format,omitzero"`
	// Path is `stdout`, `stderr` or a file, which is opened again on SIGUSR1 for log rotation.
	Path string `json:"path,omitzero"`
	// RedactQuery names query parameters whose values are logged as REDACTED, in the request and in
	// its Referer, here and in what is kept of recent requests. A name may end in `*`.
	RedactQuery []string `json:"redact_query,omitzero"`
	// RequestHeaders names fields of requests that are logged too, in `json`.
	RequestHeaders []string `json:"request_headers,omitzero"`
	// ResponseHeaders names fields of responses, as clients get them, that are logged too, in
	// `json`.
	ResponseHeaders []string `json:"response_headers,omitzero"`
	// Omit names fields that are left out in `json`: client_ip, peer, client_port, user, query,
	// user_agent, referer, cause or tls.
	Omit []string `json:"omit,omitzero"`
	// Sample is the percentage of successful requests that are logged. Requests with a status of 400
	// or more, or with a reason, are always logged.
	Sample *int `json:"sample,omitzero"`
	// Recent configures the recent requests that are kept in memory.
	Recent *Recent `json:"recent,omitzero"`
}

// AccessLogObject is a access log with its name, origin and state. The fields of the state are
// ignored in requests.
type AccessLogObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Enabled is whether requests are logged.
	Enabled *bool `json:"enabled,omitzero"`
	// Format is `json` for one object per line with every field, or `combined` for the format that
	// nginx and Apache call by this name.
	Format string `json:"format,omitzero"`
	// Path is `stdout`, `stderr` or a file, which is opened again on SIGUSR1 for log rotation.
	Path string `json:"path,omitzero"`
	// RedactQuery names query parameters whose values are logged as REDACTED, in the request and in
	// its Referer, here and in what is kept of recent requests. A name may end in `*`.
	RedactQuery []string `json:"redact_query,omitzero"`
	// RequestHeaders names fields of requests that are logged too, in `json`.
	RequestHeaders []string `json:"request_headers,omitzero"`
	// ResponseHeaders names fields of responses, as clients get them, that are logged too, in
	// `json`.
	ResponseHeaders []string `json:"response_headers,omitzero"`
	// Omit names fields that are left out in `json`: client_ip, peer, client_port, user, query,
	// user_agent, referer, cause or tls.
	Omit []string `json:"omit,omitzero"`
	// Sample is the percentage of successful requests that are logged. Requests with a status of 400
	// or more, or with a reason, are always logged.
	Sample *int `json:"sample,omitzero"`
	// Recent configures the recent requests that are kept in memory.
	Recent *Recent `json:"recent,omitzero"`
}

// Address describes an address.
type Address struct {
	// Address is the address.
	Address string `json:"address"`
	// Lists are the names of the lists that have it; private is the one that is part of headgate.
	Lists []string `json:"lists"`
	// Bans are the bans that have it.
	Bans []BannedAddress `json:"bans"`
	// Country is its country, unknown if the database does not have it; absent without a database,
	// and for private addresses.
	Country string `json:"country,omitempty"`
	// ASN is the number of its network; absent if it is not known.
	ASN int `json:"asn,omitempty"`
	// Protected is why no rule bans it; absent if one may.
	Protected string `json:"protected,omitempty"`
}

// Admin is the listener for operators: the API, the console, /metrics, /status and the health
// pages.
type Admin struct {
	// Address is the IP address and port number to listen on. An empty string switches the listener
	// off. On an address that is not loopback it speaks TLS.
	Address netip.AddrPort `json:"address,omitzero"`
	// Certificate names the certificate for clients that send no server name, or one that no
	// certificate has; with one the listener uses TLS on loopback, too. By default it is
	// self-signed, and the log has its fingerprint.
	Certificate string `json:"certificate,omitzero"`
	// Hosts are the names that clients can use for the listener, besides localhost and IP addresses.
	// Requests with other names are rejected.
	Hosts []string `json:"hosts,omitzero"`
	// TrustedProxies are the networks of proxies in front of the listener whose x-forwarded-for is
	// trusted. The client's address limits, audits and allows sign-ins.
	TrustedProxies []string `json:"trusted_proxies,omitzero"`
	// UpgradeDrain is how long a process that was replaced by an upgrade keeps long-lived
	// connections, such as WebSockets and connections through TCP proxies.
	UpgradeDrain string `json:"upgrade_drain,omitzero"`
	// OIDC lets operators sign in through a provider that speaks OpenID Connect. Users of headgate
	// itself can always sign in.
	OIDC *OIDC `json:"oidc,omitzero"`
	// UpdateCheck is whether headgate checks once a day for a newer release. The log and the console
	// report it; nothing is installed. Only the version in use is sent.
	UpdateCheck *bool `json:"update_check,omitzero"`
}

// AdminListener is the admin listener of the configuration.
type AdminListener struct {
	// Address is its address, such as 0.0.0.0:9080.
	Address netip.AddrPort `json:"address"`
	// PublicKey is the SHA-256 fingerprint of the public key of its certificate, as the flag
	// --fingerprint of commands accepts it; absent without TLS.
	PublicKey string `json:"public_key,omitempty"`
	// SelfSigned is whether the certificate is self-signed: then clients need the fingerprint.
	SelfSigned bool `json:"self_signed,omitempty"`
}

// AdminObject is a admin listener with its name, origin and state. The fields of the state are
// ignored in requests.
type AdminObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Address is the IP address and port number to listen on. An empty string switches the listener
	// off. On an address that is not loopback it speaks TLS.
	Address netip.AddrPort `json:"address,omitzero"`
	// Certificate names the certificate for clients that send no server name, or one that no
	// certificate has; with one the listener uses TLS on loopback, too. By default it is
	// self-signed, and the log has its fingerprint.
	Certificate string `json:"certificate,omitzero"`
	// Hosts are the names that clients can use for the listener, besides localhost and IP addresses.
	// Requests with other names are rejected.
	Hosts []string `json:"hosts,omitzero"`
	// TrustedProxies are the networks of proxies in front of the listener whose x-forwarded-for is
	// trusted. The client's address limits, audits and allows sign-ins.
	TrustedProxies []string `json:"trusted_proxies,omitzero"`
	// UpgradeDrain is how long a process that was replaced by an upgrade keeps long-lived
	// connections, such as WebSockets and connections through TCP proxies.
	UpgradeDrain string `json:"upgrade_drain,omitzero"`
	// OIDC lets operators sign in through a provider that speaks OpenID Connect. Users of headgate
	// itself can always sign in.
	OIDC *OIDC `json:"oidc,omitzero"`
	// UpdateCheck is whether headgate checks once a day for a newer release. The log and the console
	// report it; nothing is installed. Only the version in use is sent.
	UpdateCheck *bool `json:"update_check,omitzero"`
}

// After is what a plan makes of a request, as far as it is known without asking a server.
type After struct {
	// Proxy is the name of the proxy that takes the request, "" if none does.
	Proxy string `json:"proxy,omitempty"`
	// Route is the path of the route that takes it.
	Route string `json:"route,omitempty"`
	// Servers are the addresses of the servers that may get it, in order. There are none when it is
	// answered without one.
	Servers []string `json:"servers,omitempty"`
	// By is the filter or source that responds without a server, "" if a server is used.
	By string `json:"by,omitempty"`
	// Status is the status of this response.
	Status int `json:"status,omitempty"`
	// Reason is the word for why it is answered.
	Reason string `json:"reason,omitempty"`
	// Location is where a redirect leads to.
	Location string `json:"location,omitempty"`
}

// Agent is another machine whose containers are published. Its agent is trusted less than
// operators: it can only report for this entry, and all servers are on the machine itself.
type Agent struct {
	// Address is the address at which the published ports of the machine are reached. Absent means
	// the address from which the agent connects, unless that is this machine.
	Address netip.Addr `json:"address,omitzero"`
	// Ports names the ports for proxies of containers; a label can select some of them. Absent means
	// all.
	Ports []string `json:"ports,omitzero"`
	// Hosts are the virtual hosts that labels may name: names, and `*.` and a name for everything
	// below it. Absent means any that the configuration files leave free, but neither `localhost`
	// nor an IP address; names in `admin.hosts` are never theirs.
	Hosts []string `json:"hosts,omitzero"`
	// ACME are the ACME entries that labels may name; `[none]` lets them name none. Absent means all
	// of them.
	ACME []string `json:"acme,omitzero"`
	// Listen are the addresses on which TCP and UDP proxies of labels may listen. Absent means none:
	// then they can only have names on an https port.
	Listen []netip.AddrPort `json:"listen,omitzero"`
}

// AgentIssue is something in the labels of containers that cannot be used.
type AgentIssue struct {
	// Container is whose it is.
	Container string `json:"container,omitempty"`
	// Label is the label that is meant, if it is one.
	Label string `json:"label,omitempty"`
	// Kind is the kind of the affected object, such as proxies.
	Kind string `json:"kind,omitempty"`
	// Name is the object's name.
	Name string `json:"name,omitempty"`
	// Code is a keyword for the kind of issue.
	Code string `json:"code"`
	// Message describes the issue.
	Message string `json:"message"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
}

// AgentLabel is a field that a label sets.
type AgentLabel struct {
	// Path is the field, such as routes.0.path.
	Path string `json:"path"`
	// Value is its value.
	Value string `json:"value"`
	// Container is the container that has the label.
	Container string `json:"container,omitempty"`
	// Name is the name of the label.
	Name string `json:"name,omitempty"`
}

// AgentObject is a proxy, TCP proxy or UDP proxy that labels define.
type AgentObject struct {
	// Kind is proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind"`
	// Name is the name of the object.
	Name string `json:"name"`
	// Container is the name of the container.
	Container string `json:"container,omitempty"`
	// Label is the label that made it an object, if one did.
	Label string `json:"label,omitempty"`
	// Created is when the container was created.
	Created time.Time `json:"created,omitzero"`
	// Labels are the fields that labels set.
	Labels []AgentLabel `json:"labels,omitempty"`
	// Servers are the published ports of the containers.
	Servers []AgentServer `json:"servers,omitempty"`
}

// AgentReport is what an agent sees of its machine.
type AgentReport struct {
	// Objects are the proxies that labels of containers define.
	Objects []AgentObject `json:"objects,omitempty"`
	// Issues are what of the labels cannot be used.
	Issues []AgentIssue `json:"issues,omitempty"`
	// Failure is why the containers are not known now. The objects are the last known ones.
	Failure string `json:"failure,omitempty"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
}

// AgentServer is a published port.
type AgentServer struct {
	// Address is a URL, or a host and a port. Its host is replaced by the address of the machine.
	Address string `json:"address"`
	// Container is whose it is.
	Container string `json:"container,omitempty"`
	// Labels are the fields of the server that labels set.
	Labels []AgentLabel `json:"labels,omitempty"`
}

// Attention is a proxy that needs attention.
type Attention struct {
	// Kind is the kind of the proxy: proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind"`
	// Name is the name of the proxy.
	Name string `json:"name"`
	// State is its state.
	State string `json:"state"`
	// Issues are what is wrong with it.
	Issues []string `json:"issues"`
}

// Audit is one record of the audit.
type Audit struct {
	// Sequence is the record's place.
	Sequence int64 `json:"sequence"`
	// Time is when.
	Time time.Time `json:"time"`
	// The operator.
	Who string `json:"who"`
	// Via is how: api, console, file, cli, docker, http or agent.
	Via string `json:"via,omitempty"`
	// Address is where from.
	Address string `json:"address,omitempty"`
	// Action is what was done.
	Action string `json:"action"`
	// Object is what it was done to.
	Object string `json:"object,omitempty"`
	// Why is what the person wrote.
	Why string `json:"why,omitempty"`
	// Before is the object as it was, without secrets.
	Before json.RawMessage `json:"before,omitempty"`
	// After is the object as it is then, without secrets.
	After json.RawMessage `json:"after,omitempty"`
}

// AuthorityProblem is a problem document of an authority (RFC 8555, section 6.7).
type AuthorityProblem struct {
	// Type is the kind, such as urn:ietf:params:acme:error:unauthorized.
	Type string `json:"type"`
	// Status is the HTTP status, 0 if it came with none.
	Status int `json:"status"`
	// Detail is the authority's own sentence.
	Detail string `json:"detail"`
	// Name is the affected host.
	Name string `json:"name,omitempty"`
	// Subproblems are those of single names.
	Subproblems []NameProblem `json:"subproblems,omitempty"`
}

// Ban is a rule by which clients are refused that misbehave.
type Ban struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// When are the conditions. Each condition counts separately, for each client address (IPv6: each
	// /64).
	When []Condition `json:"when,omitzero"`
	// Within is the time over which requests are counted.
	Within string `json:"within,omitzero"`
	// Ban is for how long clients are banned.
	Ban *Length `json:"ban,omitzero"`
	// Mode is `observe` to show whom the rule would ban, or `enforce` to ban.
	Mode string `json:"mode,omitzero"`
	// Answer is how banned clients are refused: `deny` answers with 403 and the reason, `reject`
	// also closes new connections before TLS. Connections are never closed of an address of a
	// trusted proxy, or from which a person signed in within 24 hours.
	Answer string `json:"answer,omitzero"`
	// Exempt are the addresses of clients that are never counted: addresses, networks, list:NAME,
	// country:DE or asn:64500.
	Exempt []string `json:"exempt,omitzero"`
	// IncludePrivate is whether clients with private addresses can be banned, too.
	IncludePrivate *bool `json:"include_private,omitzero"`
}

// BanInput is a ban to add.
type BanInput struct {
	// Address is an address or a network, such as 203.0.113.9 or 203.0.113.0/24.
	Address string `json:"address"`
	// For is how long the ban lasts, such as 24h.
	For string `json:"for"`
	// Why is what it is for. The client gets it in no answer; the log and the audit have it.
	Why string `json:"why,omitempty"`
	// Answer is what the client gets: `deny` answers with 403, `reject` closes new connections
	// before TLS, except for trusted proxies and addresses from which a person signed in within 24
	// hours, which get the 403. Absent means deny.
	Answer string `json:"answer,omitempty"`
}

// BanObject is a ban rule with its name, origin and state. The fields of the state are ignored
// in requests.
type BanObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// When are the conditions. Each condition counts separately, for each client address (IPv6: each
	// /64).
	When []Condition `json:"when,omitzero"`
	// Within is the time over which requests are counted.
	Within string `json:"within,omitzero"`
	// Ban is for how long clients are banned.
	Ban *Length `json:"ban,omitzero"`
	// Mode is `observe` to show whom the rule would ban, or `enforce` to ban.
	Mode string `json:"mode,omitzero"`
	// Answer is how banned clients are refused: `deny` answers with 403 and the reason, `reject`
	// also closes new connections before TLS. Connections are never closed of an address of a
	// trusted proxy, or from which a person signed in within 24 hours.
	Answer string `json:"answer,omitzero"`
	// Exempt are the addresses of clients that are never counted: addresses, networks, list:NAME,
	// country:DE or asn:64500.
	Exempt []string `json:"exempt,omitzero"`
	// IncludePrivate is whether clients with private addresses can be banned, too.
	IncludePrivate *bool `json:"include_private,omitzero"`
}

// BanRules is what the ban rules have done.
type BanRules struct {
	// Rules are the rules by name.
	Rules []RuleState `json:"rules"`
	// Never are the networks that no rule bans, by decision of an operator.
	Never []Pardon `json:"never"`
	// Issues are problems that need an operator.
	Issues []Issue `json:"issues"`
}

// BanTrial is what a rule would have done about recent requests. What is kept of these is not
// all that a rule looks at: a 401 counts only where the request had credentials, which are not
// kept, and all addresses are taken to be those of connections.
type BanTrial struct {
	// Rule is the name of the rule.
	Rule string `json:"rule"`
	// Changed is whether the rule is new, or is not in use as it is.
	Changed bool `json:"changed"`
	// Requests is how many requests it was tried on.
	Requests int `json:"requests"`
	// Since is when the oldest of them came.
	Since time.Time `json:"since,omitzero"`
	// Counted is how many met one of its conditions.
	Counted int `json:"counted"`
	// Unknown is how many got a 401 and would count if they had credentials.
	Unknown int `json:"unknown,omitempty"`
	// Refused is how many came from a client while it would have been banned.
	Refused int `json:"refused"`
	// Addresses is how many clients would have been banned.
	Addresses int `json:"addresses"`
	// SignedIn is how many of these have signed in.
	SignedIn int `json:"signed_in"`
	// Would are these clients, the latest first: at most 100.
	Would []TrialBan `json:"would,omitempty"`
}

// BannedAddress is a ban as it is shown.
type BannedAddress struct {
	// Network is the address that is banned, its IPv6 /64, or a wider network.
	Network string `json:"network"`
	// Source is peer if the ban acts on connections from there, or header if it acts where the same
	// proxies in front are trusted that told the address.
	Source string `json:"source"`
	// Rule is the ban rule that made it; absent for a ban by an operator.
	Rule string `json:"rule,omitempty"`
	// Who is the operator who made it, or headgate.
	Who string `json:"who,omitempty"`
	// Why is what it is for: "3 × /.env since 13:10", or what the operator said.
	Why string `json:"why,omitempty"`
	// Since is when it began.
	Since time.Time `json:"since"`
	// Until is when it ends by itself.
	Until time.Time `json:"until"`
	// Times is the how-manieth ban of the client it is.
	Times int `json:"times"`
	// Refused is how many requests and connections it has refused on this node.
	Refused int `json:"refused"`
	// Answer is what the client gets: deny answers with 403, reject closes new connections before
	// TLS.
	Answer string `json:"answer"`
}

// BasicAuth requires a user name and a password from clients (RFC 7617). Requests without valid
// ones get 401, for which browsers show a sign-in dialog.
type BasicAuth struct {
	// Enabled is whether authentication is required. `enabled: false` on a route admits everyone
	// there.
	Enabled *bool `json:"enabled,omitzero"`
	// Realm is a text that browsers can show in the sign-in dialog. It is limited to ASCII.
	Realm string `json:"realm,omitzero"`
	// Users are the users that can sign in. At least one is required.
	Users []BasicAuthUser `json:"users,omitzero"`
	// ForwardCredentials is whether servers get the user name and the password, too. Otherwise they
	// are removed from the request.
	ForwardCredentials *bool `json:"forward_credentials,omitzero"`
}

// BasicAuthUser is a user that can sign in.
type BasicAuthUser struct {
	// Name is the user name. It cannot contain a colon.
	Name string `json:"name,omitzero"`
	// PasswordHash is the hash of the password, never the password itself: argon2id in the PHC form,
	// bcrypt, or the weak apr1 of htpasswd files. `headgate hash-password` makes one.
	PasswordHash string `json:"password_hash,omitzero"`
}

// Bypass selects clients: those that match any of these conditions.
type Bypass struct {
	// Addresses are the addresses of clients: addresses, networks, list:NAME, country:DE or
	// asn:64500.
	Addresses []string `json:"addresses,omitzero"`
	// Header is a header with a secret value. It is not forwarded to servers.
	Header *Secret `json:"header,omitzero"`
	// Cookie is a cookie with a secret value.
	Cookie *Secret `json:"cookie,omitzero"`
}

// CDNNetworks configures the updates of the networks of CDNs in client_ip, from the lists that
// each CDN publishes. The last valid list is kept in the state directory; without one, the list
// in the program is used, which has a date.
type CDNNetworks struct {
	// Enabled is whether lists are downloaded. Only those of CDNs in client_ip are, and the requests
	// do not identify the installation. The proxy of the environment (HTTPS_PROXY) is used.
	Enabled *bool `json:"enabled,omitzero"`
	// Interval is the age of a list after which it is downloaded again.
	Interval string `json:"interval,omitzero"`
}

// CDNNetworksObject is a networks of CDNs with its name, origin and state. The fields of the
// state are ignored in requests.
type CDNNetworksObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Enabled is whether lists are downloaded. Only those of CDNs in client_ip are, and the requests
	// do not identify the installation. The proxy of the environment (HTTPS_PROXY) is used.
	Enabled *bool `json:"enabled,omitzero"`
	// Interval is the age of a list after which it is downloaded again.
	Interval string `json:"interval,omitzero"`
}

// CORS allows pages of other origins to read responses (CORS, Fetch standard). headgate responds
// to preflight requests, and replaces CORS headers of the servers.
type CORS struct {
	// Enabled is whether other origins are allowed. `enabled: false` leaves CORS to the servers.
	Enabled *bool `json:"enabled,omitzero"`
	// AllowOrigins are the origins whose pages can read responses: exact ones; with `*.` in front of
	// the host for any one label; or `*` alone for every origin.
	AllowOrigins []string `json:"allow_origins,omitzero"`
	// AllowMethods are the methods that those pages can use. `*` is all; absent means GET, HEAD and
	// POST.
	AllowMethods []string `json:"allow_methods,omitzero"`
	// AllowHeaders are the headers that their requests can have, besides those that are always
	// allowed. `*` is all.
	AllowHeaders []string `json:"allow_headers,omitzero"`
	// ExposeHeaders are the response headers that their scripts can read, besides those that are
	// always readable. `*` is all.
	ExposeHeaders []string `json:"expose_headers,omitzero"`
	// AllowCredentials is whether their requests can carry cookies and credentials. The origins must
	// then be listed.
	AllowCredentials *bool `json:"allow_credentials,omitzero"`
	// MaxAge is how long browsers cache the response to a preflight request. With 0 they send one
	// each time.
	MaxAge string `json:"max_age,omitzero"`
}

// Cache stores responses in memory and reuses them, as a shared cache of RFC 9111: the servers
// determine what is stored and for how long (Cache-Control). The routes of a proxy share one
// cache; a route with its own settings has its own.
type Cache struct {
	// Enabled is whether responses are stored. `enabled: false` on a route overrides the proxy's
	// setting.
	Enabled *bool `json:"enabled,omitzero"`
	// MemoryLimit is the maximum memory of the cache: bodies, heads and the index. When it is full,
	// entries that are requested least are removed.
	MemoryLimit string `json:"memory_limit,omitzero"`
	// MaxEntry is the largest response body that is stored. Larger ones are not stored.
	MaxEntry string `json:"max_entry,omitzero"`
	// DefaultTTL is how long a response without an explicit lifetime is fresh. With 0 it is not
	// stored.
	DefaultTTL string `json:"default_ttl,omitzero"`
	// Heuristic is the lifetime of a response without an explicit one, as a part of the time since
	// its Last-Modified, up to a day; 10% is usual. It takes precedence over default_ttl, is at
	// least a second, and does not apply to requests with a query. 0 disables it.
	Heuristic string `json:"heuristic,omitzero"`
	// StaleWhileRevalidate is how long a stale response is still served while it is fetched again in
	// the background. The response can specify its own time. A response that is expired when it
	// arrives (max-age=0, Expires: 0) is never served without validation.
	StaleWhileRevalidate string `json:"stale_while_revalidate,omitzero"`
	// StaleIfError is how long a stale response is still served when the servers fail. The response
	// can specify its own time. It does not apply to a response that is expired when it arrives.
	StaleIfError string `json:"stale_if_error,omitzero"`
	// Languages are the languages of the servers' responses. Accept-Language is replaced by the best
	// match, for the servers, too, or by the first language if none matches: a response that varies
	// by it is then stored once for each language, and not for each value that browsers send. Absent
	// leaves the header unchanged.
	Languages []string `json:"languages,omitzero"`
	// IgnoreQuery names query parameters that have no effect on a response, such as campaign
	// identifiers: requests that differ only in them share one stored response, and servers do not
	// get them when a response is fetched to be stored. A name can end in `*`; `*` alone is the
	// whole query.
	IgnoreQuery []string `json:"ignore_query,omitzero"`
}

// CacheCache is how a request would be handled.
type CacheCache struct {
	// Use is the value in the access log: hit, stale, miss or pass.
	Use string `json:"use"`
	// Why is an explanation.
	Why string `json:"why"`
	// Status is the status of the stored response, 0 if there is none.
	Status int `json:"status,omitempty"`
	// Age is its age in seconds.
	Age int64 `json:"age,omitempty"`
	// TTL is its remaining lifetime in seconds.
	TTL int64 `json:"ttl,omitempty"`
	// Answered is whether the response is served without a request to a server.
	Answered bool `json:"answered"`
}

// CacheDiagnosis explains whether the cache stores the response to a request, as a server sends
// it now, and why.
type CacheDiagnosis struct {
	// Asked is whether a request was sent to a server. It is not if the request alone decides.
	Asked bool `json:"asked"`
	// Status is the status of the response; 0 without one.
	Status int `json:"status,omitempty"`
	// Stored is whether such a response is stored.
	Stored bool `json:"stored"`
	// Detail is the keyword in Cache-Status: the detail, or fwd where the request decides.
	Detail string `json:"detail,omitempty"`
	// Why is the reason as a sentence.
	Why string `json:"why"`
	// Field is the header field that decides, as it was sent. Of a cookie, it is the name.
	Field string `json:"field,omitempty"`
	// Rule is the section of the standard, or the setting.
	Rule string `json:"rule,omitempty"`
	// Fix is what to change so that the response is stored.
	Fix string `json:"fix,omitempty"`
	// Fresh is for how many more seconds it is served without asking a server.
	Fresh int64 `json:"fresh,omitempty"`
	// StaleWhileRevalidate is for how many seconds after that it is served stale while it is
	// fetched.
	StaleWhileRevalidate int64 `json:"stale_while_revalidate,omitempty"`
	// StaleIfError is for how many seconds after that it is served if the servers fail.
	StaleIfError int64 `json:"stale_if_error,omitempty"`
	// Vary are the request headers of which each combination is stored separately.
	Vary string `json:"vary,omitempty"`
}

// CacheListing lists stored responses.
type CacheListing struct {
	// Entries are the stored responses in the requested order.
	Entries []StoredResponse `json:"entries"`
}

// CacheMemory is what a cache holds.
type CacheMemory struct {
	// Proxy is the proxy of the cache.
	Proxy string `json:"proxy"`
	// Route is the route, if the cache belongs to a single route.
	Route string `json:"route,omitempty"`
	// Bytes is the memory that the cache uses.
	Bytes int64 `json:"bytes"`
	// LimitBytes is its memory_limit.
	LimitBytes int64 `json:"limit_bytes"`
	// Entries is the number of stored responses.
	Entries int64 `json:"entries"`
	// Evicted counts the responses that were removed because the memory was full.
	Evicted int64 `json:"evicted"`
}

// CacheState is the state of all caches.
type CacheState struct {
	// Period is the number of seconds in which requests are counted. It is shorter than requested if
	// headgate started later.
	Period int `json:"period"`
	// Caches are the caches of this machine, by proxy.
	Caches []CacheMemory `json:"caches"`
	// Routes are the routes with a cache, those with the most requests in the period first.
	Routes []CachedRoute `json:"routes"`
	// Total is the number of routes with a cache.
	Total int `json:"total"`
}

// CacheUses counts requests by what a cache made of them, in the words of the access log.
type CacheUses struct {
	// Hit counts responses from memory.
	Hit int64 `json:"hit"`
	// Stale counts stale responses.
	Stale int64 `json:"stale"`
	// Revalidated counts responses that a server confirmed first.
	Revalidated int64 `json:"revalidated"`
	// Collapsed counts requests that got the response to another request.
	Collapsed int64 `json:"collapsed"`
	// Miss counts requests that a server answered.
	Miss int64 `json:"miss"`
	// Pass counts requests that cannot be cached.
	Pass int64 `json:"pass"`
}

// CachedRoute is what the cache of a route made of requests.
type CachedRoute struct {
	// Proxy=Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Route is the route with its matchers.
	Route string `json:"route"`
	// Requests are the requests in the period.
	Requests int64 `json:"requests"`
	// Hits are the requests that were answered without the server's body.
	Hits int64 `json:"hits"`
	// HitRatio is the part of hits, from 0 to 1. It is absent without requests.
	HitRatio *float64 `json:"hit_ratio,omitempty"`
	// Uses are the requests since the start of the process.
	Uses CacheUses `json:"uses"`
}

// Candidate is a server that may get the request.
type Candidate struct {
	// URL is the server's address.
	URL string `json:"url"`
	// Weight is the server's share of Total.
	Weight int `json:"weight"`
	// Total is the sum of the weights.
	Total int `json:"total"`
	// Group is the group of the server on a route with a split, or "".
	Group string `json:"group,omitempty"`
	// Pinned is whether the sticky cookie of the request names the server.
	Pinned bool `json:"pinned,omitempty"`
	// Head is the request head that the server gets, byte for byte.
	Head string `json:"head"`
	// Backup is whether the server is used only if no other is available.
	Backup bool `json:"backup,omitempty"`
	// State is its state, "" if nothing is wrong.
	State string `json:"state,omitempty"`
	// Chosen is true for the server that gets the request, when the route's load_balancing always
	// sends such requests to the same one.
	Chosen bool `json:"chosen,omitempty"`
}

// Certificate is a certificate with its key, in files. The files are watched: when they change,
// the new certificate is used for new connections; when what they hold then cannot be used, the
// one before is kept and the log says why.
type Certificate struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// CertFile is a PEM file with the certificate, followed by the intermediate certificates that
	// lead to its authority. A relative path begins at the configuration file.
	CertFile string `json:"cert_file,omitzero"`
	// KeyFile is a PEM file with the certificate's private key. A relative path begins at the
	// configuration file.
	KeyFile string `json:"key_file,omitzero"`
	// Stored is the name of a certificate in the state directory, instead of files: one that was
	// uploaded, or created by `headgate certificate self-signed`. A new upload with this name is
	// used immediately.
	Stored string `json:"stored,omitzero"`
}

// CertificateObject is a certificate with its name, origin and state. The fields of the state
// are ignored in requests.
type CertificateObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// CertFile is a PEM file with the certificate, followed by the intermediate certificates that
	// lead to its authority. A relative path begins at the configuration file.
	CertFile string `json:"cert_file,omitzero"`
	// KeyFile is a PEM file with the certificate's private key. A relative path begins at the
	// configuration file.
	KeyFile string `json:"key_file,omitzero"`
	// Stored is the name of a certificate in the state directory, instead of files: one that was
	// uploaded, or created by `headgate certificate self-signed`. A new upload with this name is
	// used immediately.
	Stored string `json:"stored,omitzero"`
}

// CertificateState is the state of a certificate, whether the configuration names it or ACME
// issues it. It is the one definition for the API, the command line, the console and the
// metrics.
type CertificateState struct {
	// Name is the name in the configuration, or of a certificate by ACME its own.
	Name string `json:"name"`
	// Source is configured or acme.
	Source string `json:"source"`
	// OnDemand is the proxy of a certificate that was ordered when a client connected.
	OnDemand string `json:"on_demand,omitempty"`
	// State is valid; expiring in its last 14 days, or in the last third of a shorter life; expired;
	// missing when its files cannot be used; and of a certificate by ACME also waiting before the
	// first order, ordering, blocked when an order would fail and is not placed, or failed. One that
	// is blocked or failed may have a certificate that is still valid: then NotAfter is set.
	State string `json:"state"`
	// Since is when the certificate or its order came to the state.
	Since time.Time `json:"since,omitzero"`
	// Problem is why the certificate is missing, or why the last order failed.
	Problem string `json:"problem,omitempty"`
	// Hint is what to do about that.
	Hint string `json:"hint,omitempty"`
	// NextTry is when ACME orders again, or renews.
	NextTry time.Time `json:"next_try,omitzero"`
	// Names are the host names of the certificate, or those that one is ordered for.
	Names []string `json:"names,omitempty"`
	// NotBefore is when its validity starts.
	NotBefore time.Time `json:"not_before,omitzero"`
	// NotAfter is when its validity ends; absent while there is no certificate.
	NotAfter time.Time `json:"not_after,omitzero"`
	// DaysLeft is how many whole days are left, below zero when it has expired.
	DaysLeft *int `json:"days_left,omitempty"`
}

// Change is the result of a change.
type Change struct {
	// Revision is that of the change, "" of a dry run.
	Revision string `json:"revision,omitempty"`
	// ETag is that of the configuration after it, "" of a dry run.
	ETag string `json:"etag,omitempty"`
	// DryRun is whether nothing was changed.
	DryRun bool `json:"dry_run,omitempty"`
	// Until is when the configuration before comes back, unless the change is confirmed.
	Until time.Time `json:"until,omitzero"`
	// Changes are the objects that are not the same, with their fields.
	Changes []ObjectChange `json:"changes"`
	// Plan describes the change, with warnings and what it affects.
	Plan *Plan `json:"plan,omitempty"`
	// WhatIf is the effect of the change on recent requests. It is set for dry runs and plans only,
	// if recent requests are recorded.
	WhatIf *WhatIf `json:"what_if,omitempty"`
	// Notes are settings that work but are not recommended, and the machines of unchecked.
	Notes []SchemaProblem `json:"notes,omitempty"`
	// Unchecked are other machines that may not be able to serve the change: they did not respond in
	// time, or also reject the active configuration.
	Unchecked []SchemaProblem `json:"unchecked,omitempty"`
}

// Chosen is which certificate the clients of a host get on a port, and why.
type Chosen struct {
	// Port is the port, or the TCP proxy with an address of its own.
	Port string `json:"port"`
	// Name is what the certificate is called, "" for the port's self-signed one.
	Name string `json:"name,omitempty"`
	// From is file, stored, acme or self-signed.
	From string `json:"from"`
	// Why says why it is this one.
	Why string `json:"why"`
	// Names are the hosts that it is for.
	Names []string `json:"names,omitempty"`
	// Issuer is who has signed it.
	Issuer string `json:"issuer,omitempty"`
	// State is valid, expiring, expired or missing.
	State string `json:"state"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after,omitzero"`
}

// ChosenCertificate is which certificate the clients of a host get on a port, and why.
type ChosenCertificate struct {
	// Host is the host.
	Host string `json:"host"`
	// Port is the port.
	Port string `json:"port"`
	// Name is what the certificate is called, left out for the port's self-signed one.
	Name string `json:"name,omitempty"`
	// From is file, stored, acme or self-signed.
	From string `json:"from"`
	// Why is why it was chosen.
	Why string `json:"why"`
	// Names are the hosts that it is valid for.
	Names []string `json:"names"`
	// Issuer is the issuer in the certificate.
	Issuer string `json:"issuer,omitempty"`
	// State is valid, expiring, expired or missing.
	State string `json:"state"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after,omitzero"`
	// DaysLeft is how many whole days of the life are left; below zero it has ended.
	DaysLeft int `json:"days_left"`
}

// ChosenChallenge is how an authority would be shown that a host is ours.
type ChosenChallenge struct {
	// Name is the host.
	Name string `json:"name"`
	// Challenge is http-01, tls-alpn-01 or dns-01.
	Challenge string `json:"challenge"`
}

// CircuitBreaker is a circuit breaker for each server of a route. When too many of its responses
// are errors, the circuit opens: for a while the server gets no requests, so that it can
// recover. Then a few probes are admitted, and if all succeed, the circuit is closed. While the
// circuits of all servers are open, clients get 503 immediately.
type CircuitBreaker struct {
	// ErrorPercent is the percentage of requests in the window that must fail to open the circuit.
	ErrorPercent *int `json:"error_percent,omitzero"`
	// Window is the time over which requests are counted.
	Window string `json:"window,omitzero"`
	// MinRequests is the minimum number of requests in the window for the circuit to open.
	MinRequests *int `json:"min_requests,omitzero"`
	// Status lists the status codes that count as errors. A missing response always counts.
	Status string `json:"status,omitzero"`
	// SlowAfter is the time after which a response counts as an error whatever its status. 0
	// disables it.
	SlowAfter string `json:"slow_after,omitzero"`
	// OpenTime is how long the circuit stays open.
	OpenTime string `json:"open_time,omitzero"`
	// Probes is how many requests are then admitted; all must succeed.
	Probes *int `json:"probes,omitzero"`
}

// ClientIP configures which peers are trusted to report the client's address. The address is
// that of the connection unless the connection comes from one of these CDNs or proxies; filters,
// limits, the log and servers use the result. From other peers, headers with a client address
// are removed.
type ClientIP struct {
	// Enabled is whether any peer is trusted. `enabled: false` on a route overrides the proxy's
	// setting.
	Enabled *bool `json:"enabled,omitzero"`
	// CDN names the CDNs in front of the proxy: `cloudflare`, `fastly`, `cloudfront`, `google`
	// (Google Cloud load balancers), `akamai` and `bunny`. Their published networks are trusted, and
	// the header that each of them sets is used. cdn_networks keeps the networks up to date.
	CDN []string `json:"cdn,omitzero"`
	// Trusted are the addresses and networks of other proxies in front, such as 192.0.2.7 or
	// 10.0.0.0/8. Only list machines that you operate: a trusted peer can claim any address.
	Trusted []string `json:"trusted,omitzero"`
	// Header is the only header that is used from trusted peers. Empty means the CDN's own header,
	// else X-Forwarded-For, else Forwarded. Set it if your proxy sets another one (X-Real-IP), or if
	// it sets Forwarded and passes X-Forwarded-For from clients unchanged.
	Header string `json:"header,omitzero"`
}

// CodeInput is a code of an authenticator.
type CodeInput struct {
	// Code has six digits.
	Code string `json:"code"`
}

// CompareInput has the options of headgate compare.
type CompareInput struct {
	// Old are the addresses of the proxy that runs today: HOST:PORT for http, https://HOST:PORT for
	// https. One without a port means 80 and 443.
	Old []string `json:"old"`
	// New are the addresses of headgate. The default is the ports of the active configuration, on
	// this machine.
	New []string `json:"new,omitempty"`
	// List has the requests: URLs, one a line, with a method before it or without, or an access log.
	// Without one they are made from the routes of the configuration.
	List string `json:"list,omitempty"`
	// Host is the host of requests from a log that names none.
	Host string `json:"host,omitempty"`
	// Domains have the hosts of requests from routes whose virtual hosts are expressions, or that
	// serve every host: example.com gives app.example.com for app.*.
	Domains []string `json:"domains,omitempty"`
	// Limit is how many requests are compared at most; 0 is 1000.
	Limit int `json:"limit,omitempty"`
	// Rate is how many requests a second each side gets at most; 0 is 20.
	Rate int `json:"rate,omitempty"`
	// TimeoutS is how many seconds one answer may take; 0 is 10.
	TimeoutS int `json:"timeout_s,omitempty"`
	// Unsafe also sends POST, PUT, DELETE and the like; servers then execute them three times.
	Unsafe bool `json:"unsafe,omitempty"`
	// NoDNS skips looking up the hosts in DNS, which finds CDNs that are missing in client_ip.
	NoDNS bool `json:"no_dns,omitempty"`
}

// CompareRequest is one request that both sides get.
type CompareRequest struct {
	// Method is the method.
	Method string `json:"method"`
	// Scheme is http or https.
	Scheme string `json:"scheme"`
	// Host is the host, with its port if the client sent one.
	Host string `json:"host"`
	// Target is path and query.
	Target string `json:"target"`
	// Proxy is the proxy of our configuration that the request belongs to; empty if that is not
	// known.
	Proxy string `json:"proxy,omitempty"`
}

// ComparedResponse is one of two responses.
type ComparedResponse struct {
	// Status is its status; 0 if there is no response.
	Status int `json:"status"`
	// Bytes is the length of the body, as far as it was read.
	Bytes int64 `json:"bytes"`
	// MS is the time to its head.
	MS float64 `json:"ms"`
	// Value is that of the field, empty if it is absent. Of a cookie it is the name; values that
	// could be secrets are replaced by "…".
	Value string `json:"value,omitempty"`
}

// Comparison is a comparison that runs or has ended.
type Comparison struct {
	// State is running, done or stopped; planned in a dry run.
	State string `json:"state"`
	// Who has begun it.
	Who string `json:"who"`
	// Began is when it was begun.
	Began time.Time `json:"began,omitzero"`
	// Done is how many requests were compared so far.
	Done int `json:"done"`
	// Requests is how many there are.
	Requests int `json:"requests"`
	// Report is what was found, once it is over: what headgate compare -o json gives.
	Report *Report `json:"report,omitempty"`
}

// ComparisonReason is a difference that several requests share.
type ComparisonReason struct {
	// Kind is what it is about.
	Kind string `json:"kind"`
	// Weight is how much it matters.
	Weight string `json:"weight"`
	// Name is the name of the header or cookie, if it is about one.
	Name string `json:"name,omitempty"`
	// Text is that of the first request that has it.
	Text string `json:"text"`
	// Example is the method and the URL of that request.
	Example string `json:"example"`
	// Requests is how many requests have it.
	Requests int `json:"requests"`
}

// ComparisonResult is the result of one request.
type ComparisonResult struct {
	// Request is the request to both sides.
	Request CompareRequest `json:"request"`
	// Old is what the old side answered, the first time.
	Old ComparisonSummary `json:"old"`
	// New is what the new side answered.
	New ComparisonSummary `json:"new"`
	// Differences are what is not alike.
	Differences []Difference `json:"differences"`
}

// ComparisonSide is one of the two proxies: its addresses for http and https.
type ComparisonSide struct {
	// HTTP is the address for http, host:port. Without one, requests of http are left out.
	HTTP string `json:"http,omitempty"`
	// HTTPS is the address for https, host:port, or empty as well.
	HTTPS string `json:"https,omitempty"`
}

// ComparisonSummary is an answer in a report.
type ComparisonSummary struct {
	// Status is that of the answer, 0 if there was none.
	Status int `json:"status,omitempty"`
	// Protocol is the version of HTTP.
	Protocol string `json:"protocol,omitempty"`
	// Size is that of the body after decoding, in bytes.
	Size int64 `json:"size"`
	// HeadMS is after how many milliseconds the header came.
	HeadMS float64 `json:"head_ms"`
	// Error is why there is no answer.
	Error string `json:"error,omitempty"`
}

// Compression compresses the bodies of responses for clients that support it.
type Compression struct {
	// Enabled is whether responses are compressed. `enabled: false` on a route overrides the proxy's
	// setting.
	Enabled *bool `json:"enabled,omitzero"`
	// Algorithms are the encodings in order of preference: `zstd`, `br` and `gzip`. The client's
	// preference comes first; among encodings that it accepts equally, the first one here is used.
	// Absent means zstd, br, gzip.
	Algorithms []string `json:"algorithms,omitzero"`
	// MinSize is the minimum size of a body to compress. A body of unknown length is held back until
	// this much has arrived, or until the server pauses.
	MinSize string `json:"min_size,omitzero"`
	// Types are the media types to compress: `text/html`, `text/*`, or `*+json` for a suffix. Absent
	// means text, JSON, JavaScript, XML, SVG, wasm, uncompressed font formats, and the like. Event
	// streams and gRPC are never compressed.
	Types []string `json:"types,omitzero"`
}

// Condition is what is counted: a request that meets all of what is set.
type Condition struct {
	// Reason is the reason of headgate's own answer, such as no_route or auth_required.
	Reason string `json:"reason,omitzero"`
	// Path are the requested paths. A path that ends with * matches every path that starts with what
	// is before it.
	Path []string `json:"path,omitzero"`
	// Status are the status codes of the response, from a server or from headgate. A 401 counts only
	// where the request had credentials: an Authorization field, or a POST to a path of the
	// condition.
	Status []int `json:"status,omitzero"`
	// Count is the number of such requests that leads to a ban.
	Count int `json:"count,omitzero"`
}

// Config is the configuration.
type Config struct {
	// ETag is that of the configuration: all documents.
	ETag string `json:"etag"`
	// Folder is the directory of the configuration files, in which others can be created. It is
	// absent if headgate serves a single file.
	Folder string `json:"folder,omitempty"`
	// Documents are the documents.
	Documents []Document `json:"documents"`
}

// ConfigDifference is what one configuration has otherwise than another.
type ConfigDifference struct {
	// Changes are the objects that are not the same, with their fields.
	Changes []ObjectChange `json:"changes"`
	// Plan describes the change from one revision to the other.
	Plan *Plan `json:"plan"`
}

// ConfigInput are documents.
type ConfigInput struct {
	// Documents are the documents that get another text. The name may be left to the last part of
	// its path; those that are not named stay. Where the configuration is a folder, one of another
	// name is made there.
	Documents []Document `json:"documents"`
}

// Confirm is the change that was confirmed or reverted.
type Confirm struct {
	// Revision is the one that waited.
	Revision string `json:"revision"`
}

// ConfirmInput is the change to confirm.
type ConfirmInput struct {
	// Revision is the revision to confirm or revert; the default is the one that waits.
	Revision string `json:"revision,omitempty"`
}

// Contender is a route that could take the request by its host.
type Contender struct {
	// Proxy is the proxy of the route.
	Proxy string `json:"proxy"`
	// Route is the route with its matchers.
	Route string `json:"route"`
	// Won is true for the route that takes the request.
	Won bool `json:"won"`
	// Why is why it won or lost.
	Why string `json:"why"`
}

// CrowdSec is a CrowdSec engine whose decisions to ban make up a list. Decisions of other types,
// such as captcha, are ignored.
type CrowdSec struct {
	// URL is the local API of the engine.
	URL string `json:"url,omitzero"`
	// Key is the bouncer key: `cscli bouncers add headgate` prints it. Each node needs a key of its
	// own.
	Key string `json:"key,omitzero"`
	// OnFailure is what happens while the engine cannot be reached: `keep` uses the last decisions,
	// `pass` treats the list as empty, and `deny` as if it contained every address.
	OnFailure string `json:"on_failure,omitzero"`
	// Interval is how often the engine is queried for new decisions.
	Interval string `json:"interval,omitzero"`
}

// Cutover is a cutover.
type Cutover struct {
	// Revision is the number of its revision; 0 in a dry run.
	Revision int `json:"revision"`
	// When is when the ports moved.
	When time.Time `json:"when,omitzero"`
	// Who moved them.
	Who string `json:"who,omitempty"`
	// State is pending, confirmed, reverted or returned; planned in a dry run.
	State string `json:"state"`
	// Moves are the ports that moved.
	Moves []MovedPort `json:"moves"`
	// Until is when a pending one is reverted unless it is confirmed.
	Until time.Time `json:"until,omitzero"`
	// Held are ports that still have a socket at an address that a port moved to, each with the
	// address. When it is empty, another proxy can listen there.
	Held []string `json:"held"`
	// Watch is the state of its watch. It is absent if there is none, or if it was another process
	// that watched.
	Watch *Watch `json:"watch,omitempty"`
	// Change is the change that was made, in responses to POST and DELETE.
	Change *Change `json:"change,omitempty"`
}

// CutoverInput is a requested cutover.
type CutoverInput struct {
	// Moves are the ports to move. Those that have the address already are left out.
	Moves []CutoverRequest `json:"moves"`
	// Watch lets headgate decide by limits whether the cutover is confirmed or reverted. It needs
	// confirm_within. Without it, someone has to confirm.
	Watch *CutoverWatch `json:"watch,omitempty"`
}

// CutoverRequest is a port that is to move.
type CutoverRequest struct {
	// Port is its name.
	Port string `json:"port"`
	// To is the new port number, or the new address as IP:PORT.
	To string `json:"to"`
}

// CutoverWatch are when a watched cutover is reverted before the time to confirm it has passed.
type CutoverWatch struct {
	// MaxErrorsPercent is the share of responses with a status 5xx, in percent from 0 to 100, above
	// which the cutover is reverted. Fewer than 20 responses are not judged.
	MaxErrorsPercent float64 `json:"max_errors_percent"`
	// MinHealthyPercent is the share of the servers that were healthy before, in percent from 0 to
	// 100; the cutover is reverted when fewer are.
	MinHealthyPercent float64 `json:"min_healthy_percent"`
}

// DNS configures the DNS provider for dns-01.
type DNS struct {
	// Provider is the provider of the zone, such as `cloudflare`; `rfc2136` for a name server with
	// dynamic updates; `exec` for your own command; `httpreq` for your own service.
	Provider string `json:"provider,omitzero"`
	// Credentials are the provider's credentials, by name.
	Credentials map[string]string `json:"credentials,omitzero"`
	// Command is the program that `exec` runs, with the arguments `present NAME VALUE` and later
	// `cleanup NAME VALUE`. It must exit with status 0 within a minute.
	Command string `json:"command,omitzero"`
	// Propagation is the maximum time until a record is visible at the zone's name servers.
	Propagation string `json:"propagation,omitzero"`
	// Zone is the zone for the records. Absent means the one that the DNS reports.
	Zone string `json:"zone,omitzero"`
}

// DeadLetter is a message that was not accepted.
type DeadLetter struct {
	// Event is the event, or the first one of the message.
	Event Event `json:"event"`
	// More is how many other events the message has.
	More int `json:"more,omitempty"`
	// First is when it was tried first.
	First time.Time `json:"first"`
	// Attempts is how often it was sent.
	Attempts int `json:"attempts"`
	// Due is when it is tried next.
	Due time.Time `json:"due,omitzero"`
	// Error is what the last try ended with.
	Error string `json:"error"`
}

// Defaults holds features for all proxies: those that a proxy has neither of its own nor from a
// policy.
type Defaults struct {
	// ClientIP configures which peers are trusted to report the client's address. By default none
	// is: the client's address is that of the connection.
	ClientIP *ClientIP `json:"client_ip,omitzero"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *RateLimit `json:"rate_limit,omitzero"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same proxy: to 443,
	// or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods 308.
	RedirectHTTPToHTTPS *string `json:"redirect_http_to_https,omitzero"`
	// CORS lets pages of other origins read responses.
	CORS *CORS `json:"cors,omitzero"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *Maintenance `json:"maintenance,omitzero"`
	// Redirects send clients from one path to another, or to another host.
	Redirects []RedirectRule `json:"redirects,omitzero"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no limit, which
	// is also the default.
	RequestBodyLimit *string `json:"request_body_limit,omitzero"`
	// RequestTimeout is the time until a server's response head, for each attempt; then 504. 0
	// switches it off. Bodies and upgraded connections have idle time-outs and no total. Absent
	// means that the value is inherited; the default is 60s.
	RequestTimeout *string `json:"request_timeout,omitzero"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitzero"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *BasicAuth `json:"basic_auth,omitzero"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get its
	// response.
	ForwardAuth *ForwardAuth `json:"forward_auth,omitzero"`
	// Rewrite changes the path that a server gets.
	Rewrite *Rewrite `json:"rewrite,omitzero"`
	// Headers change header fields of requests and responses.
	Headers []HeaderRule `json:"headers,omitzero"`
	// Cache keeps responses in memory and answers with them.
	Cache *Cache `json:"cache,omitzero"`
	// Compression compresses responses for clients that support it.
	Compression *Compression `json:"compression,omitzero"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *SecurityHeaders `json:"security_headers,omitzero"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages []ErrorPage `json:"error_pages,omitzero"`
}

// DefaultsObject is a defaults with its name, origin and state. The fields of the state are
// ignored in requests.
type DefaultsObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// ClientIP configures which peers are trusted to report the client's address. By default none
	// is: the client's address is that of the connection.
	ClientIP *ClientIP `json:"client_ip,omitzero"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *RateLimit `json:"rate_limit,omitzero"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same proxy: to 443,
	// or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods 308.
	RedirectHTTPToHTTPS *string `json:"redirect_http_to_https,omitzero"`
	// CORS lets pages of other origins read responses.
	CORS *CORS `json:"cors,omitzero"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *Maintenance `json:"maintenance,omitzero"`
	// Redirects send clients from one path to another, or to another host.
	Redirects []RedirectRule `json:"redirects,omitzero"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no limit, which
	// is also the default.
	RequestBodyLimit *string `json:"request_body_limit,omitzero"`
	// RequestTimeout is the time until a server's response head, for each attempt; then 504. 0
	// switches it off. Bodies and upgraded connections have idle time-outs and no total. Absent
	// means that the value is inherited; the default is 60s.
	RequestTimeout *string `json:"request_timeout,omitzero"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitzero"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *BasicAuth `json:"basic_auth,omitzero"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get its
	// response.
	ForwardAuth *ForwardAuth `json:"forward_auth,omitzero"`
	// Rewrite changes the path that a server gets.
	Rewrite *Rewrite `json:"rewrite,omitzero"`
	// Headers change header fields of requests and responses.
	Headers []HeaderRule `json:"headers,omitzero"`
	// Cache keeps responses in memory and answers with them.
	Cache *Cache `json:"cache,omitzero"`
	// Compression compresses responses for clients that support it.
	Compression *Compression `json:"compression,omitzero"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *SecurityHeaders `json:"security_headers,omitzero"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages []ErrorPage `json:"error_pages,omitzero"`
}

// Difference is one thing in which the new side's answer is not the old one's.
type Difference struct {
	// Kind is what it is about.
	Kind string `json:"kind"`
	// Weight is how much it matters.
	Weight string `json:"weight"`
	// Name is the name of the header or cookie; empty for others.
	Name string `json:"name,omitempty"`
	// Old is what the old side answers.
	Old string `json:"old"`
	// New is what the new side answers.
	New string `json:"new"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// Discord is a webhook of a channel.
type Discord struct {
	// URL is the webhook URL of the channel, which contains its token.
	URL string `json:"url,omitzero"`
}

// Discovery are the providers that proxies are discovered from.
type Discovery struct {
	// Docker are the container engines, Docker or Podman, by name. Labels of their containers define
	// proxies.
	Docker map[string]Docker `json:"docker,omitzero"`
	// Agent are other machines whose containers are published, by name. On each runs `headgate
	// agent` with a token of the same name, which `headgate agent invite` makes. Names differ from
	// those of docker and http.
	Agent map[string]Agent `json:"agent,omitzero"`
	// HTTP are documents with proxies that are downloaded again and again, by name. Names differ
	// from those of docker.
	HTTP map[string]HTTPDocument `json:"http,omitzero"`
}

// DiscoveryIssue is something in what a provider found that cannot be used.
type DiscoveryIssue struct {
	// Container is whose it is; absent for the provider itself and for documents.
	Container string `json:"container,omitempty"`
	// Label is the label that is meant, if it is one; or the field of an object in a document.
	Label string `json:"label,omitempty"`
	// Kind is the kind of the affected object, such as proxies.
	Kind string `json:"kind,omitempty"`
	// Name is the object's name. An object with the container's own name is not active.
	Name string `json:"name,omitempty"`
	// Owner is the object of the configuration files that already has what this one requires, if
	// that is the issue.
	Owner *Owner `json:"owner,omitempty"`
	// Code is a keyword for the kind of issue.
	Code string `json:"code"`
	// Message describes the issue.
	Message string `json:"message"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
	// Since is when it was seen first.
	Since time.Time `json:"since,omitzero"`
}

// DiscoveryObject is a discovery with its name, origin and state. The fields of the state are
// ignored in requests.
type DiscoveryObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Docker are the container engines, Docker or Podman, by name. Labels of their containers define
	// proxies.
	Docker map[string]Docker `json:"docker,omitzero"`
	// Agent are other machines whose containers are published, by name. On each runs `headgate
	// agent` with a token of the same name, which `headgate agent invite` makes. Names differ from
	// those of docker and http.
	Agent map[string]Agent `json:"agent,omitzero"`
	// HTTP are documents with proxies that are downloaded again and again, by name. Names differ
	// from those of docker.
	HTTP map[string]HTTPDocument `json:"http,omitzero"`
}

// DiscoveryState is the state of discovery.
type DiscoveryState struct {
	// Providers are the configured providers, by name.
	Providers []Provider `json:"providers"`
}

// Divergence is what a leader had of its own when it yielded to another machine.
type Divergence struct {
	// Epoch is the period that ended.
	Epoch string `json:"epoch"`
	// Node is the machine that led in it.
	Node string `json:"node"`
	// Leader is the machine that leads now.
	Leader string `json:"leader"`
	// Time is when the machine yielded.
	Time time.Time `json:"time"`
	// Folder is where the machine keeps an archive of all that it had, and the difference.
	Folder string `json:"folder"`
	// Changes describe what only this machine has: who did what, then the keys.
	Changes []string `json:"changes"`
}

// DnsProviders is the providers of the DNS challenge.
type DnsProviders struct {
	// Providers are all providers, by name.
	Providers []ProviderFields `json:"providers"`
}

// DnsTestInput are the credentials of a DNS provider to test before they are saved.
type DnsTestInput struct {
	// Host is a host, or a wildcard, that a certificate is to be issued for.
	Host string `json:"host"`
	// Provider is the DNS provider.
	Provider string `json:"provider"`
	// Credentials are its credentials by name. Those that are masked are taken from Entry.
	Credentials map[string]string `json:"credentials,omitempty"`
	// Zone is the zone that holds the record. Absent means the one that the DNS names.
	Zone string `json:"zone,omitempty"`
	// Resolvers are the name servers to query, as ip:port.
	Resolvers []string `json:"resolvers,omitempty"`
	// Entry is the acme entry whose credentials are used in place of masked ones. They are only sent
	// to the provider and endpoint that they were saved for.
	Entry string `json:"entry,omitempty"`
}

// DnsTested is the result of a test of credentials.
type DnsTested struct {
	// Ok is whether the provider accepted the credentials for the zone.
	Ok bool `json:"ok"`
	// Checked is whether the provider was queried. Some have no request that only reads.
	Checked bool `json:"checked"`
	// Zone is the zone that holds the record.
	Zone string `json:"zone,omitempty"`
	// Record is the name of the TXT record.
	Record string `json:"record,omitempty"`
	// Trouble is why the credentials cannot be used, with the answer of the provider.
	Trouble *OrderProblem `json:"trouble,omitempty"`
	// Warning is why they could not be tested.
	Warning string `json:"warning,omitempty"`
	// DurationMS is how long the test took, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
}

// Docker is a container engine. Labels are trusted less than operators; these settings restrict
// what they can do.
type Docker struct {
	// Endpoint is the address of the engine: `unix://` and the path of its socket,
	// `tcp://host:port`, or `https://host:port` with tls. Write access to the socket is equivalent
	// to root on the machine: use a socket proxy that allows /_ping, /events and /containers/json
	// only.
	Endpoint string `json:"endpoint,omitzero"`
	// TLS are the TLS settings of a tcp or https endpoint. Absent means no TLS for tcp, and
	// verification with the system's authorities for https.
	TLS *DockerTLS `json:"tls,omitzero"`
	// Nodes are the names of the nodes that watch the engine, as `headgate node list` shows them.
	// Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// ExposedByDefault is whether containers are proxied without headgate.enable or another headgate
	// label. They still need a host.
	ExposedByDefault *bool `json:"exposed_by_default,omitzero"`
	// Network is the network at which containers are reached, if a container does not name another.
	// Absent means the one that headgate's own container shares with it, or else the container's
	// only one.
	Network string `json:"network,omitzero"`
	// Filters select containers, in the syntax of `docker ps --filter`. Filters with the same key
	// are alternatives; filters with different keys must all match.
	Filters []string `json:"filters,omitzero"`
	// Ports names the ports for proxies of containers; a label can select some of them. Absent means
	// all.
	Ports []string `json:"ports,omitzero"`
	// Hosts are the virtual hosts that labels may name: names, and `*.` and a name for everything
	// below it. Absent means any that the configuration files leave free, but neither `localhost`
	// nor an IP address; names in `admin.hosts` are never theirs.
	Hosts []string `json:"hosts,omitzero"`
	// ACME are the ACME entries that labels may name; `[none]` lets them name none. Absent means all
	// of them.
	ACME []string `json:"acme,omitzero"`
	// Listen are the addresses on which TCP and UDP proxies of labels may listen. Absent means none:
	// then they can only have names on an https port.
	Listen []netip.AddrPort `json:"listen,omitzero"`
}

// DockerTLS are the TLS settings for an engine.
type DockerTLS struct {
	// CaFile is a PEM file with the certificate authorities to trust in place of the system's. A
	// relative path begins at the configuration file.
	CaFile string `json:"ca_file,omitzero"`
	// CertFile is a PEM file with the certificate that is shown to the engine. A relative path
	// begins at the configuration file.
	CertFile string `json:"cert_file,omitzero"`
	// KeyFile is a PEM file with the private key of that certificate.
	KeyFile string `json:"key_file,omitzero"`
	// ServerName is the name that the engine's certificate must have. Absent means the host of the
	// endpoint.
	ServerName string `json:"server_name,omitzero"`
}

// Document is one document.
type Document struct {
	// Name is the name of the file.
	Name string `json:"name"`
	// Text is its content: YAML or JSON.
	Text string `json:"text"`
	// ReadOnly is why it cannot be written, absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
}

// EAB binds an account to an existing one at the authority.
type EAB struct {
	// KeyID is the identifier that the authority gave.
	KeyID string `json:"key_id,omitzero"`
	// HmacKey is the key that the authority gave, in base64url.
	HmacKey string `json:"hmac_key,omitzero"`
}

// ECH are the settings of Encrypted Client Hello.
type ECH struct {
	// PublicName is the name that clients show in place of the requested host, and that everyone on
	// the way can read. It resolves to this server, and a certificate has it. Ports with the same
	// name have the same keys.
	PublicName string `json:"public_name,omitzero"`
	// DNS is the ACME entry through whose DNS provider headgate writes the HTTPS records for the
	// hosts of the port. The provider must be rfc2136 or cloudflare. In an existing record, headgate
	// replaces only the parameter ech; it removes no record. Absent means that you copy the records
	// yourself.
	DNS string `json:"dns,omitzero"`
}

// ECHKey is a key of Encrypted Client Hello, without what is secret.
type ECHKey struct {
	// ID is the number in what clients send; no other key of the public name has it.
	ID int `json:"id"`
	// Use is announced for a new key that is published soon, published for the one in the records,
	// or accepted for a former one that clients may still have.
	Use string `json:"use"`
	// Made is when the key was made.
	Made time.Time `json:"made"`
	// Until is when it is no longer accepted.
	Until time.Time `json:"until"`
}

// ECHRecord is an HTTPS record (RFC 9460) of a host.
type ECHRecord struct {
	// Host is the host, or a wildcard.
	Host string `json:"host"`
	// Name is the name of the record: the host, with the number of the port in front if it is not
	// 443.
	Name string `json:"name"`
	// Value is the data of the record, as zone files have it.
	Value string `json:"value"`
	// Line is the whole record, as zone files have it.
	Line string `json:"line"`
	// State is whether the record is in the DNS, on ports with tls.ech.dns: published; waiting until
	// it is written or visible; failed if it could not be written; skipped if the name cannot have
	// it, such as one with a CNAME.
	State string `json:"state,omitempty"`
	// Note is why the record is not in the DNS, and what to do.
	Note string `json:"note,omitempty"`
	// NextTry is when the record is checked again.
	NextTry time.Time `json:"next_try,omitzero"`
}

// ECHState is the Encrypted Client Hello of a port, with what makes clients use it.
type ECHState struct {
	// Port is the name of the port.
	Port string `json:"port"`
	// PublicName is the name that clients show.
	PublicName string `json:"public_name"`
	// DNS is the ACME entry whose DNS provider writes the records; absent if you copy them.
	DNS string `json:"dns,omitempty"`
	// ConfigList is the published ECHConfigList in base64, as `curl --ech ecl:…` takes it; absent
	// while there is no key.
	ConfigList string `json:"config_list,omitempty"`
	// Keys are the keys of the public name, the newest first.
	Keys []ECHKey `json:"keys"`
	// Records are the HTTPS records of the hosts of the port, at most 1000. The status has none.
	Records []ECHRecord `json:"records,omitempty"`
	// More is the number of other hosts.
	More int `json:"more,omitempty"`
	// Issues are reasons why the names of hosts are not hidden, or not from everyone.
	Issues []string `json:"issues,omitempty"`
}

// Edit is one edit of a document.
type Edit struct {
	// Op is what is done: set gives a field or object a value, remove takes it out, and rename gives
	// an object another name, wherever it is named.
	Op string `json:"op"`
	// Path is where: `proxies.shop.routes[0].path`. The index after the last element of a list
	// appends one.
	Path string `json:"path"`
	// Value is the value of a set, as JSON. Fields that are null are absent.
	Value json.RawMessage `json:"value,omitempty"`
	// To is the new name of a rename.
	To string `json:"to,omitempty"`
	// Document is the document that a new object goes to; without it the first. Where the
	// configuration is a folder, one that is not there is made.
	Document string `json:"document,omitempty"`
}

// EditsInput are edits.
type EditsInput struct {
	// Edits are made one after the other, all or none.
	Edits []Edit `json:"edits"`
}

// Ejection configures when a server that fails requests is ejected for a while. It is on by
// default: it needs no health checks, and it never ejects more than half of a route's servers.
type Ejection struct {
	// Enabled is whether servers are ejected.
	Enabled *bool `json:"enabled,omitzero"`
	// Failures is how many requests in a row must fail: no connection, no response in time, an
	// invalid response, or an incomplete one.
	Failures *int `json:"failures,omitzero"`
	// Time is how long a server is ejected the first time. The second time it is twice as long, and
	// so on.
	Time string `json:"time,omitzero"`
	// MaxTime limits the growth of time.
	MaxTime string `json:"max_time,omitzero"`
	// MaxPercent is the percentage of the route's servers that can be ejected at once. With 50, a
	// route's only server never is.
	MaxPercent *int `json:"max_percent,omitzero"`
}

// Email is where messages are sent by SMTP.
type Email struct {
	// Server is the SMTP server as host or host:port. The port is 587 with STARTTLS, 465 with TLS
	// and 25 without.
	Server string `json:"server,omitzero"`
	// TLS is `starttls` for a connection that is upgraded before anything is sent, TLS for one that
	// starts with TLS, or `none`. The certificate must be valid.
	TLS string `json:"tls,omitzero"`
	// User is the name to sign in with at the server. Absent means that the server requires no
	// sign-in.
	User string `json:"user,omitzero"`
	// Password is the password, or an app password.
	Password string `json:"password,omitzero"`
	// From is the sender's address.
	From string `json:"from,omitzero"`
	// To are the recipients' addresses.
	To []string `json:"to,omitzero"`
}

// Ended is how many sessions were ended.
type Ended struct {
	// Ended is the number of sessions.
	Ended int `json:"ended"`
}

// Enrolment is what an authenticator needs.
type Enrolment struct {
	// Secret is for typing in.
	Secret string `json:"secret"`
	// URI is for the picture that an authenticator reads.
	URI string `json:"uri"`
}

// Entry is one directive of the source.
type Entry struct {
	// File is where it is defined.
	File string `json:"file"`
	// Line is its line there.
	Line int `json:"line"`
	// Directive is its text, shortened.
	Directive string `json:"directive"`
	// Verdict is what became of it: same, close, ignored or not_possible.
	Verdict string `json:"verdict"`
	// Note is the reason or the difference.
	Note string `json:"note,omitempty"`
	// Became are the fields of the document that it became, such as
	// proxies.app.routes[0].servers[1], at most 8; "default" is what headgate does without a field.
	// Only same and close have any.
	Became []string `json:"became,omitempty"`
}

// ErrorPage is the body of responses with certain statuses. A page for one status takes
// precedence over one for its class.
type ErrorPage struct {
	// Status are the statuses of the page: `404`, or a class, `4xx` or `5xx`.
	Status []string `json:"status,omitzero"`
	// Body is the text of the page, with the variables of header values and {status} and {reason};
	// `{{` is a brace. In HTML, XML and JSON their values are escaped. At most 64 KiB; put a longer
	// page in a file.
	Body string `json:"body,omitzero"`
	// File is the file with the page, at most 1 MiB. Variables in it are replaced, too; all other
	// braces have no special meaning. A relative path is relative to the configuration file. Changes
	// of the file are used within seconds.
	File string `json:"file,omitzero"`
	// ContentType is the media type of the page. The default is the type of the file's extension;
	// for text, HTML if it starts with <, JSON if it starts with { or [, otherwise plain text.
	ContentType string `json:"content_type,omitzero"`
	// Upstream is whether responses of servers and fixed responses get the page, too, instead of
	// their own body. Otherwise only responses of headgate itself do.
	Upstream *bool `json:"upstream,omitzero"`
	// SendStatus is the status that is sent with the page. Absent means the original status.
	SendStatus *int `json:"send_status,omitzero"`
}

// Event is one event.
type Event struct {
	// ID grows; it is what Last-Event-ID names.
	ID int64 `json:"id"`
	// Type is the name of its kind: see the reference page of events.
	Type string `json:"type"`
	// Time is when it happened.
	Time time.Time `json:"time"`
	// Level is info, warning or error.
	Level string `json:"level"`
	// Object is the object that the event concerns.
	Object string `json:"object"`
	// Text describes the event in a sentence.
	Text string `json:"text"`
	// Data has the fields of its kind.
	Data json.RawMessage `json:"data"`
	// Node is the machine that it happened on, where several share the store.
	Node string `json:"node,omitempty"`
}

// Example is a change with the newest request that it is about.
type Example struct {
	// Count is how many requests change in the same way.
	Count int `json:"count"`
	// Method is that of the newest of them.
	Method string `json:"method"`
	// URL is that of the newest of them, without its query.
	URL string `json:"url"`
	// Before is how it is handled now.
	Before After `json:"before"`
	// After is how it would be handled.
	After After `json:"after"`
	// Refused is whether it would be refused, and is not now.
	Refused bool `json:"refused,omitempty"`
}

// ExplainInput is a request to think through.
type ExplainInput struct {
	// Method is the method of the request; without it GET.
	Method string `json:"method,omitempty"`
	// URL is its address: `https://shop.example.com/api?x=1`.
	URL string `json:"url"`
	// Headers are further header fields, each as `name: value`.
	Headers []string `json:"headers,omitempty"`
	// From is the client's address; without it 127.0.0.1.
	From string `json:"from,omitempty"`
	// HTTP3 restricts the explanation to ports that serve HTTP/3.
	HTTP3 bool `json:"http3,omitempty"`
	// As is the person or token for which the gate decides: NAME, PROVIDER/ID or an e-mail address
	// of a person, or token:NAME. Without it the client has not signed in.
	As string `json:"as,omitempty"`
}

// ExplainStreamInput is a connection, or the first datagram of a session, to explain.
type ExplainStreamInput struct {
	// Address is what the client connects to: `tcp://db.example.com:5432`, or `udp://` and an
	// address. On an https port the host is the TLS server name.
	Address string `json:"address"`
	// From is the client's address; without it 127.0.0.1.
	From string `json:"from,omitempty"`
}

// ExplainedAnswer is a response that is made without a server.
type ExplainedAnswer struct {
	// By is the filter or source that responds.
	By string `json:"by"`
	// Status is the status of the response.
	Status int `json:"status"`
	// Reason is the reason in the access log.
	Reason string `json:"reason,omitempty"`
	// Cause is what went wrong.
	Cause string `json:"cause,omitempty"`
	// Location is where a redirect leads to.
	Location string `json:"location,omitempty"`
}

// Explanation is how a request would be handled.
type Explanation struct {
	// Port is the port that receives the request, "" if there is none.
	Port string `json:"port,omitempty"`
	// Address is what it listens on.
	Address string `json:"address,omitempty"`
	// Certificate is what clients of the host get on a port with TLS; nil on others.
	Certificate *Chosen `json:"certificate,omitempty"`
	// PublicName is the name that clients with Encrypted Client Hello show in place of the host; ""
	// if the port or the host does not hide it.
	PublicName string `json:"public_name,omitempty"`
	// Notes are what was assumed, and hints.
	Notes []string `json:"notes,omitempty"`
	// Host is the normalized host.
	Host string `json:"host"`
	// Class is the kind of virtual host that matches: exact, wildcard, regex or any; "" if none
	// does.
	Class string `json:"class,omitempty"`
	// Asked is the path as the client wrote it.
	Asked string `json:"asked"`
	// Path is the normalized path that is matched.
	Path string `json:"path,omitempty"`
	// Proxy is the proxy that handles the request, "" if there is none.
	Proxy string `json:"proxy,omitempty"`
	// Route is the route that handles the request, "" if there is none.
	Route string `json:"route,omitempty"`
	// Origin is where the proxy comes from: "shop.yaml:12:3".
	Origin string `json:"origin,omitempty"`
	// Features lists the origin of each feature of the route: the route, the proxy, a policy or the
	// defaults.
	Features []FeatureOrigin `json:"features,omitempty"`
	// ClientIP is the client's address, as the filters of the route determine it.
	ClientIP string `json:"client_ip,omitempty"`
	// Peer is the address of the connection. It differs from Client behind a trusted proxy.
	Peer string `json:"peer,omitempty"`
	// Filters are the route's filters in their order.
	Filters []string `json:"filters,omitempty"`
	// Source is what creates the response.
	Source string `json:"source,omitempty"`
	// Cache is what the route's cache makes of the request.
	Cache *CacheCache `json:"cache,omitempty"`
	// Stores is whether the cache stores the response that a server sends now, if one was requested.
	Stores *CacheDiagnosis `json:"stores,omitempty"`
	// Retry is what happens when a server fails.
	Retry string `json:"retry,omitempty"`
	// Split is the group of servers that gets the request; nil without a split.
	Split *SplitDecision `json:"split,omitempty"`
	// LoadBalancing is the route's load_balancing.
	LoadBalancing string `json:"load_balancing,omitempty"`
	// Servers are the candidates, each with the head that it would get.
	Servers []Candidate `json:"servers,omitempty"`
	// Gate is what the gate of the route decides for the person or token in question.
	Gate *GateDecision `json:"gate,omitempty"`
	// Answer is the response that is made without a server.
	Answer *ExplainedAnswer `json:"answer,omitempty"`
	// Routes are all routes whose virtual hosts have the host, the winner first, with the reason for
	// the others.
	Routes []Contender `json:"routes"`
	// OtherHosts is the number of routes for other hosts.
	OtherHosts int `json:"other_hosts"`
}

// Export is a certificate with its key.
type Export struct {
	// Name is what the certificate is called.
	Name string `json:"name"`
	// Certificate is its PEM text with the intermediates.
	Certificate string `json:"certificate"`
	// Key is the PEM text of its private key.
	Key string `json:"key"`
}

// FastCGI makes a route run the scripts of a folder on a FastCGI server such as php-fpm, and
// serve the other files of the folder.
type FastCGI struct {
	// Root is the folder of the site. A relative path begins at the configuration file. A script
	// runs only if it is a regular file below it: headgate must be able to search the folder, even
	// if the server is in a container.
	Root string `json:"root,omitzero"`
	// ServerRoot is the path of the same folder on the FastCGI server, for SCRIPT_FILENAME and
	// DOCUMENT_ROOT. Absent means root.
	ServerRoot string `json:"server_root,omitzero"`
	// Index names the files that are served or run for a folder, in order of preference. Absent
	// means index.php and index.html.
	Index []string `json:"index,omitzero"`
	// SplitPath are the ends of the names of scripts. In a path, what follows the first existing
	// script is PATH_INFO. Absent means .php.
	SplitPath []string `json:"split_path,omitzero"`
	// FrontController is whether paths without a file run the first script of index in the root, as
	// WordPress, Nextcloud, Laravel and Symfony expect. With `false` the response is 404.
	FrontController *bool `json:"front_controller,omitzero"`
	// Static is whether files that are no scripts are served. Files whose name contains .php or ends
	// with another extension of PHP are never sent. With `false`, paths of files are treated as
	// paths without a file.
	Static *bool `json:"static,omitzero"`
	// Params are parameters for scripts beside those of CGI. They replace those of the same name.
	Params []Param `json:"params,omitzero"`
	// RequestBuffer is how much of a request body is buffered in memory if its length is not known
	// (`Transfer-Encoding: chunked`), because FastCGI needs the length first. Larger ones get 411.
	RequestBuffer string `json:"request_buffer,omitzero"`
	// KeepConnections is whether a connection is used for more than one request. A php-fpm process
	// serves one connection until it is closed: set max_requests of each server to at most the
	// process limit (pm.max_children), or requests wait for processes that idle connections hold.
	KeepConnections *bool `json:"keep_connections,omitzero"`
}

// FeatureOrigin is who gives a route one of its features.
type FeatureOrigin struct {
	// Feature is its name: "rate_limit".
	Feature string `json:"feature"`
	// Level is "route", "proxy" or "defaults": where the feature is written, or where the policy is
	// used.
	Level string `json:"level"`
	// Policy is the policy that has it, "" if it is set at the level itself.
	Policy string `json:"policy,omitempty"`
	// Place is the position of the object that sets it: "shop.yaml:12:3". It is "" if no document
	// has it.
	Place string `json:"place,omitempty"`
}

// FieldChange is what became of one field.
type FieldChange struct {
	// Path is the path of the field in its object: "routes[0].servers[1].weight". For a removed
	// field it is its former path.
	Path string `json:"path"`
	// Within identifies the parts of the object around the field: "route /api, server
	// http://10.0.0.7:3000". An index in a path does not identify an element that moved.
	Within string `json:"within,omitempty"`
	// Change is added, changed, removed or moved.
	Change string `json:"change"`
	// Before is the value before as JSON in its canonical form. It is absent where there was none,
	// and for a secret.
	Before json.RawMessage `json:"before,omitempty"`
	// After is the value after, in the same form.
	After json.RawMessage `json:"after,omitempty"`
	// Secret is whether the value is withheld: a password hash, or the value of ${…}. For the
	// latter, Before and After contain the text with ${…}.
	Secret bool `json:"secret,omitempty"`
}

// FieldCount is how often a header field differs.
type FieldCount struct {
	// Name is the name of the field, in lower case.
	Name string `json:"name"`
	// Requests is the number of requests.
	Requests int64 `json:"requests"`
}

// Files makes a route serve the files of a folder.
type Files struct {
	// Root is the folder. A relative path begins at the configuration file. Only files below it are
	// served: links that lead out of it, names that begin with a dot (except .well-known), devices
	// and pipes are not found. If the folder is replaced, for example by a new release behind a
	// symbolic link, the new one is used within a second.
	Root string `json:"root,omitzero"`
	// Index names the files that are served for a folder, in order of preference. Absent means
	// index.html.
	Index []string `json:"index,omitzero"`
	// Spa is whether paths without a file get the first index file of the root instead of 404, as
	// single-page applications expect.
	Spa *bool `json:"spa,omitzero"`
	// Precompressed lists the content codings whose compressed copies are served if the client
	// accepts them: `br` for FILE.br, `zstd` for FILE.zst, `gzip` for FILE.gz. If the client prefers
	// none, the first of the list is used. A copy that is older than its file is ignored. Absent
	// means none.
	Precompressed []string `json:"precompressed,omitzero"`
	// Listing is whether a folder without an index file is shown as a list of its files.
	Listing *bool `json:"listing,omitzero"`
	// CacheControl is the Cache-Control header of files. Absent means none, so that browsers use
	// their own rules.
	CacheControl string `json:"cache_control,omitzero"`
}

// FixedResponse is a response that a route returns without a server.
type FixedResponse struct {
	// Status is the status code.
	Status int `json:"status,omitzero"`
	// Body is the body. Empty means no body. It can contain the variables of header values ({host},
	// {path}, …); `{{` is a brace. In HTML, XML and JSON, according to the content type, their
	// values are escaped. At most 64 KiB.
	Body string `json:"body,omitzero"`
	// ContentType is the media type of the body. It is sent only with a body.
	ContentType string `json:"content_type,omitzero"`
}

// ForwardAuth sends a subrequest to an auth server for every request, before anything else. A
// 2xx response admits the request; any other one is sent to the client. If the auth server does
// not respond, the request is rejected.
type ForwardAuth struct {
	// Enabled is whether the auth server is queried. `enabled: false` on a route admits everyone
	// there.
	Enabled *bool `json:"enabled,omitzero"`
	// Preset is the product that runs at url: `authelia`, `authentik` or `oauth2_proxy`. It adds the
	// path to a url without one, and sets response_headers and signin_url if they are absent.
	Preset string `json:"preset,omitzero"`
	// URL is the URL of the subrequest, which is a GET without a body. It can have a query. It is
	// required.
	URL string `json:"url,omitzero"`
	// ResponseHeaders are the headers of the auth server's response that servers get. Headers of the
	// client with these names, or with names that a server could treat as the same, are removed.
	ResponseHeaders []string `json:"response_headers,omitzero"`
	// SigninURL is where a browser that opens a page is redirected when the auth server responds
	// with 401. Variables in it ({scheme}, {authority}, {path}, {query}, …) are escaped. If it has
	// no variables and no parameter rd, the URL of the page is added as rd.
	SigninURL string `json:"signin_url,omitzero"`
	// Timeout is the time limit for the auth server's response; then 504.
	Timeout string `json:"timeout,omitzero"`
	// TrustForwardHeader is whether method, host and URI from a proxy that client_ip trusts are sent
	// to the auth server instead of those of the request. Other peers are not trusted.
	TrustForwardHeader *bool `json:"trust_forward_header,omitzero"`
	// SkipPaths are paths below which no subrequest is sent, as prefixes of whole segments.
	SkipPaths []string `json:"skip_paths,omitzero"`
	// Cache stores responses that admit a request, for a short time. Absent stores none.
	Cache *ForwardAuthCache `json:"cache,omitzero"`
}

// ForwardAuthCache stores responses of the auth server that admit a request, so that a page with
// many parts does not cause a subrequest for each of them.
type ForwardAuthCache struct {
	// TTL is how long a response is stored. A session that has ended can continue for this time.
	TTL string `json:"ttl,omitzero"`
	// Key identifies a session: `cookie:NAME` or `header:NAME`. Requests without it are not cached.
	Key string `json:"key,omitzero"`
	// AnyPath is whether a response applies to every method and path of the host. Set it only if the
	// auth server's response depends on neither.
	AnyPath *bool `json:"any_path,omitzero"`
}

// Gate lets in only people who have signed in and are in the list. Signing in is configured with
// `sign_in`. Everybody else is sent to the sign-in page, or gets 401 or 403.
type Gate struct {
	// Enabled is whether people need to sign in. `enabled: false` on a route lets everyone in there.
	Enabled *bool `json:"enabled,omitzero"`
	// Allow are the people who are let in: `group:PROVIDER/GROUP` for a group of a provider,
	// `group:NAME` for a group of people kept by headgate, `person:ADDRESS`, `person:NAME` or
	// `person:PROVIDER/ID` for one person, `domain:NAME` for everybody with an e-mail address there,
	// `token:NAME` for an application with a token. Addresses count only if they are verified: see
	// `emails` of the provider.
	Allow []string `json:"allow,omitzero"`
	// From are clients that need not sign in, by address: addresses, networks, list:NAME, country:DE
	// or asn:64500. Servers learn nothing about who they are.
	From []string `json:"from,omitzero"`
	// BasicTokens is whether a token is accepted as the password of Basic authentication, with any
	// user name: many applications can do nothing else. It excludes basic_auth.
	BasicTokens *bool `json:"basic_tokens,omitzero"`
	// Bypass are requests that need no sign-in: anyone can send them. Servers do not learn who sends
	// them.
	Bypass []GateBypass `json:"bypass,omitzero"`
	// SharedCache is whether responses that a server marks as public are stored and shared as
	// without a gate: everybody who can reach such a cache can read them.
	SharedCache *bool `json:"shared_cache,omitzero"`
	// SameSite is the SameSite attribute of the cookie with which browsers come back. With `lax`,
	// pages of other sites cannot show the application in a frame, and their forms arrive without
	// the session. `none` allows both; then only WebSockets and requests that change something from
	// pages of the application's own origin are let in. It applies to all routes of the proxy as
	// soon as one of them has it, because they share the cookie.
	SameSite string `json:"same_site,omitzero"`
}

// GateAccess is how people sign in.
type GateAccess struct {
	// Configured is whether people can sign in at all.
	Configured bool `json:"configured"`
	// Local is whether people who are kept by headgate can sign in.
	Local bool `json:"local"`
	// Page is the address of the sign-in page; absent without one.
	Page string `json:"page,omitempty"`
	// Redirects are the addresses to register at providers.
	Redirects []Redirect `json:"redirects"`
	// People is the number of people kept by headgate.
	People int `json:"people"`
	// Sessions is the number of sessions of all people.
	Sessions int `json:"sessions"`
	// Passkeys is the number of passkeys.
	Passkeys int `json:"passkeys"`
	// LostPasskeys is the number of passkeys that were created at another sign-in host, where they
	// work only.
	LostPasskeys int `json:"lost_passkeys"`
	// Gated are the proxies with a gate.
	Gated []string `json:"gated"`
	// Gates are the rules of their gates, in the same order.
	Gates []GateState `json:"gates"`
}

// GateBypass are requests that need no sign-in. They never include paths that a server may read
// as other ones, such as /api/..%2fadmin.
type GateBypass struct {
	// Paths are the paths of the requests, with everything below them.
	Paths []string `json:"paths,omitzero"`
	// Preset is a set of paths that browsers and apps request without cookies. `app_files` are
	// /manifest.json, /*.webmanifest, /.well-known/assetlinks.json and apple-app-site-association,
	// by GET and HEAD.
	Preset string `json:"preset,omitzero"`
	// Matchers restrict the requests further, like those of a route.
	Matchers *Matchers `json:"matchers,omitzero"`
}

// GateDecision is what a gate decides for a person or token.
type GateDecision struct {
	// As is the person or token, as allow names it.
	As string `json:"as"`
	// In is whether the request passes.
	In bool `json:"in"`
	// Rule is the entry that lets it pass, or why it does not pass.
	Rule string `json:"rule"`
	// Session describes the session that a person has: its cookie, and when it is checked again with
	// the provider.
	Session string `json:"session,omitempty"`
}

// GateLink is a share link.
type GateLink struct {
	// ID identifies the link.
	ID string `json:"id"`
	// URL is what is shared: https://HOST/PATH of an application behind a gate, with everything
	// below the path.
	URL string `json:"url"`
	// Expires is when the link and its visits end, at most 366 days from now.
	Expires time.Time `json:"expires"`
	// Uses is how many times the link can still be opened; absent is any number of times.
	Uses int `json:"uses,omitempty"`
	// Writes is whether requests other than GET and HEAD, and WebSockets, are allowed.
	Writes bool `json:"writes,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Link is the address to pass on. It is in the response that creates it, and nowhere else.
	Link string `json:"link,omitempty"`
	// Used is whether the link cannot be opened any more.
	Used bool `json:"used,omitempty"`
	// Visits is how many browsers have opened it and may go on.
	Visits int `json:"visits"`
	// Created is when it was created.
	Created time.Time `json:"created"`
	// CreatedBy is who created it.
	CreatedBy string `json:"created_by,omitempty"`
}

// GateState is what the gates of a proxy let pass.
type GateState struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Hosts are its virtual hosts.
	Hosts []string `json:"hosts"`
	// Allow are the people and tokens that its gates let in.
	Allow []string `json:"allow"`
	// Bypasses are the requests that need no sign-in, in words: those of bypass, addresses in from,
	// and routes on which the gate is off.
	Bypasses []string `json:"bypasses"`
}

// GateToken is a token of an application.
type GateToken struct {
	// Name identifies the token: 1 to 64 lower-case letters, digits and . _ @ -. A gate accepts it
	// by token:NAME in its allow list.
	Name string `json:"name"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Person is the person that the token belongs to: an e-mail address or PROVIDER/ID of someone
	// with a session. Gates that let the person in accept the token, and servers learn who the
	// person is. Absent makes a token that only token:NAME lets in.
	Person string `json:"person,omitempty"`
	// Proxies are the names of the proxies at which the token counts; absent is all.
	Proxies []string `json:"proxies,omitempty"`
	// Paths are the paths below which the token counts; absent is all.
	Paths []string `json:"paths,omitempty"`
	// Expires is when the token ends; absent is never.
	Expires time.Time `json:"expires,omitzero"`
	// Token is the text of the token. It is in the response that creates it, and nowhere else.
	Token string `json:"token,omitempty"`
	// Created is when it was created.
	Created time.Time `json:"created"`
	// CreatedBy is who created it.
	CreatedBy string `json:"created_by,omitempty"`
	// Used is when it was used last.
	Used time.Time `json:"used,omitzero"`
	// UsedFrom is the address that it was used from.
	UsedFrom string `json:"used_from,omitempty"`
}

// Geo are the databases that map addresses to countries and to networks. headgate ships no data:
// specify a file in the MMDB format, such as DB-IP Lite, IPinfo Lite or GeoLite2, or the URL of
// one.
type Geo struct {
	// Country is the database of countries. With it, settings may refer to country:DE, and {country}
	// is a variable.
	Country *Source `json:"country,omitzero"`
	// ASN is the database of networks by number. With it, settings may refer to asn:64500, and {asn}
	// is a variable. It may be the same file as that of countries.
	ASN *Source `json:"asn,omitzero"`
}

// GeoDatabaseState is the state of a database.
type GeoDatabaseState struct {
	// Name is country or asn.
	Name string `json:"name"`
	// Location is the file or URL, without credentials and query.
	Location string `json:"location"`
	// State is loading, ready, or error if it could not be loaded: then the last valid one is used.
	State string `json:"state"`
	// Since is when the state changed last.
	Since time.Time `json:"since"`
	// Type is the type in the database.
	Type string `json:"type,omitempty"`
	// Built is when the database was made; absent if none was loaded.
	Built time.Time `json:"built,omitzero"`
	// Attribution is the attribution that the licence of the database requires.
	Attribution string `json:"attribution,omitempty"`
	// Next is when it will be downloaded next.
	Next time.Time `json:"next,omitzero"`
	// Issues are problems that need an operator.
	Issues []string `json:"issues,omitempty"`
}

// GeoObject is a geo databases with its name, origin and state. The fields of the state are
// ignored in requests.
type GeoObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Country is the database of countries. With it, settings may refer to country:DE, and {country}
	// is a variable.
	Country *Source `json:"country,omitzero"`
	// ASN is the database of networks by number. With it, settings may refer to asn:64500, and {asn}
	// is a variable. It may be the same file as that of countries.
	ASN *Source `json:"asn,omitzero"`
}

// GeoState is the databases of countries and networks.
type GeoState struct {
	// Databases are those in use.
	Databases []GeoDatabaseState `json:"databases"`
}

// Gotify is an application of a Gotify server.
type Gotify struct {
	// URL is the server.
	URL string `json:"url,omitzero"`
	// Token is the token of the application.
	Token string `json:"token,omitzero"`
}

// Group is a group of people.
type Group struct {
	// Name is the group's name. allow names it as group:NAME.
	Name string `json:"name"`
	// Members are the names of the people in it.
	Members []string `json:"members"`
	// Proxies are the proxies with a gate that names the group.
	Proxies []string `json:"proxies"`
}

// HTTPAuth are credentials for a download: bearer, or username and password.
type HTTPAuth struct {
	// Bearer is a token for the Authorization header.
	Bearer string `json:"bearer,omitzero"`
	// Username is the user of basic authentication.
	Username string `json:"username,omitzero"`
	// Password is the password of that user.
	Password string `json:"password,omitzero"`
}

// HTTPDocument is a document with proxies that another program serves over HTTP, such as an
// inventory or a Git server. Its proxies have the form of those in a configuration file, with
// the fields that container labels may set, and servers. It is trusted less than operators;
// these settings restrict what it can do.
type HTTPDocument struct {
	// URL is where the document is: https, or http on this machine. Redirects are followed on the
	// same host only. Link-local addresses and those of cloud metadata services are refused. The
	// document has at most 4 MiB.
	URL string `json:"url,omitzero"`
	// Interval is the time between two downloads, which varies by a twentieth. A document that has
	// not changed is not sent again if the server knows ETag or Last-Modified.
	Interval string `json:"interval,omitzero"`
	// Auth are the credentials that are sent with each download. Absent means none.
	Auth *HTTPAuth `json:"auth,omitzero"`
	// SHA256 is the digest of the only document that is used, in hexadecimal. Absent means any
	// document.
	SHA256 string `json:"sha256,omitzero"`
	// CaFile is a PEM file with the certificate authorities to trust in place of the system's. A
	// relative path begins at the configuration file.
	CaFile string `json:"ca_file,omitzero"`
	// Nodes are the names of the nodes that use the document, as `headgate node list` shows them;
	// each downloads it for itself. Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// Ports names the ports for proxies of the document, which can select some of them. Absent means
	// all.
	Ports []string `json:"ports,omitzero"`
	// Hosts are the virtual hosts that the document may name: names, and `*.` and a name for
	// everything below it. Absent means any that the configuration files leave free, but neither
	// `localhost` nor an IP address; names in `admin.hosts` are never its.
	Hosts []string `json:"hosts,omitzero"`
	// ACME are the ACME entries that the document may name; `[none]` lets it name none. Absent means
	// all of them.
	ACME []string `json:"acme,omitzero"`
	// Listen are the addresses on which TCP and UDP proxies of the document may listen. Absent means
	// none: then they can only have names on an https port.
	Listen []netip.AddrPort `json:"listen,omitzero"`
	// Servers are the servers that the document may name: networks, addresses, names, `*.` and a
	// name for everything below it, and `*` for every name. Absent means any address but loopback,
	// and no name, because a name can resolve to any address. Link-local addresses, those of cloud
	// metadata services and Unix sockets are never allowed.
	Servers []string `json:"servers,omitzero"`
}

// Header is a header of requests to a collector.
type Header struct {
	// Name is the name of the header.
	Name string `json:"name,omitzero"`
	// Value is the value of the header.
	Value string `json:"value,omitzero"`
}

// HeaderRule changes a header of requests on their way to servers, or of responses on their way
// to clients. Rules are applied in the order of the list; a route's list replaces its proxy's.
type HeaderRule struct {
	// Direction is `request` for what servers get, or `response` for what clients get, including
	// responses of headgate itself.
	Direction string `json:"direction,omitzero"`
	// Operation is `set`, which leaves one header with this name and value; `append`, which adds a
	// header to existing ones; `remove`; `set_if_absent`, which keeps an existing header; or
	// `replace`, which replaces what regex matches by value, in every header with this name.
	Operation string `json:"operation,omitzero"`
	// Name is the name of the header; case is ignored. In a remove, `*` matches any characters:
	// X-Debug-* is every header whose name begins so, *_* every one with an underscore.
	Name string `json:"name,omitzero"`
	// Value is the field's value; for replace, what each match becomes. The variables {client_ip},
	// {host} (without its port), {authority} (with it), {scheme}, {method}, {path}, {query},
	// {request_uri} (path and query), {port} (of the authority, or the scheme's own), {server_port}
	// (that the request came in by), {header.NAME} (a field of the request), {request_id}, {proxy},
	// {route}, {user}, {client_cert_subject} and {client_cert_fingerprint} stand for what the
	// request has, {status} and {reason} for what the response has; `{{` is a brace. In a replace,
	// $1 stands for what a group matched, and $$ for a dollar sign. A value that comes out empty
	// leaves no field.
	//
	// A literal value of a field that carries credentials, by its name (Authorization, Cookie,
	// X-Api-Key), is not shown again; write ${VARIABLE} to keep it out of the configuration.
	Value string `json:"value,omitzero"`
	// Regex is the RE2 expression of a replace. It is matched anywhere in the value.
	Regex string `json:"regex,omitzero"`
	// Secret is whether value and regex are secrets, whatever the name is: the API, the console and
	// the audit log do not show them.
	Secret *bool `json:"secret,omitzero"`
}

// Headers are the fields that tell servers who signed in. What clients send under these names,
// or under names that a server may read as the same, is removed on every route of a proxy that
// has a gate. An empty name sends none.
type Headers struct {
	// User is the field with the person's unique name.
	User string `json:"user,omitzero"`
	// Email is the field with the e-mail address, if it counts.
	Email string `json:"email,omitzero"`
	// Name is the field with the name for people to read.
	Name string `json:"name,omitzero"`
	// Groups is the field with the groups, separated by commas: PROVIDER/GROUP.
	Groups string `json:"groups,omitzero"`
}

// HealthCheck configures the health checks of a route's servers. Checks use the same addresses
// and TLS settings as requests, on a new connection each time. A server of several routes is
// checked once.
type HealthCheck struct {
	// Type is `http` for a request, or a connection if there is no path, or `grpc` for the gRPC
	// health checking protocol, over h2c or https.
	Type string `json:"type,omitzero"`
	// Service is the name of the service in a grpc check. Empty means the whole server.
	Service string `json:"service,omitzero"`
	// Path is the path of the request, from the root of the server: its base path is not added. It
	// can have a query. Empty means that the check is a connection, with a TLS handshake for https.
	Path string `json:"path,omitzero"`
	// Interval is the time between two checks of a server, with a jitter of a tenth.
	Interval string `json:"interval,omitzero"`
	// UnhealthyInterval is the time between two checks while a server is not healthy, or its last
	// check failed.
	UnhealthyInterval string `json:"unhealthy_interval,omitzero"`
	// Timeout is the time limit of a check: connection, response and the part of its body that is
	// checked.
	Timeout string `json:"timeout,omitzero"`
	// Method is the method of the request.
	Method string `json:"method,omitzero"`
	// Status lists the status codes of a healthy response, and ranges of them. Redirects are not
	// followed: their own status counts.
	Status string `json:"status,omitzero"`
	// Body is an RE2 expression that must match in the first 64KiB of the body. Empty skips the
	// body.
	Body string `json:"body,omitzero"`
	// Host is the Host of the request. Empty means that of the server's URL.
	Host string `json:"host,omitzero"`
	// Rise is how many checks in a row an unhealthy server must pass to be healthy again.
	Rise *int `json:"rise,omitzero"`
	// Fall is how many checks in a row must fail for a server to be unhealthy.
	Fall *int `json:"fall,omitzero"`
}

// HealthCheckResult is one check.
type HealthCheckResult struct {
	// At is when the check ended.
	At time.Time `json:"at"`
	// TookMS is its duration in milliseconds.
	TookMS float64 `json:"took_ms"`
	// Healthy is the result of the check.
	Healthy bool `json:"healthy"`
	// Status is the status of the response, 0 if there was none.
	Status int `json:"status,omitempty"`
	// Error is why it failed.
	Error string `json:"error,omitempty"`
}

// HeldServer is a server that an operator has drained or disabled.
type HeldServer struct {
	// Kind is the kind of the proxy: proxies, tcp_proxies or udp_proxies.
	Kind string `json:"kind"`
	// Proxy is its name.
	Proxy string `json:"proxy"`
	// Server is the address of the server.
	Server string `json:"server"`
	// Hold is draining, disabled or enabled.
	Hold string `json:"hold"`
	// Since is when it began.
	Since time.Time `json:"since"`
	// Until is when it ends by itself; absent is never.
	Until time.Time `json:"until,omitzero"`
	// Who decided it.
	Who string `json:"who,omitempty"`
	// Why is the reason that the operator gave.
	Why string `json:"why,omitempty"`
	// Active is the number of requests, connections or sessions on it now.
	Active int `json:"active"`
}

// HoldInput is the server to drain or disable, and for how long.
type HoldInput struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Kind is the kind of the proxy; it is needed only if proxies of several kinds have the name.
	Kind string `json:"kind,omitempty"`
	// Server is the address of the server as the configuration has it. Its host and port are enough
	// if no other server of the proxy has them. It is meant on all routes.
	Server string `json:"server"`
	// For is after how long it ends by itself, such as 10m; without it it does not.
	For string `json:"for,omitempty"`
	// Why is the reason, for the events and the audit log.
	Why string `json:"why,omitempty"`
}

// IPFilter says which clients are let in, by address. The address is the one that client_ip
// found. Others get 403.
type IPFilter struct {
	// Enabled is whether the filter is active. `enabled: false` on a route overrides the proxy's
	// setting.
	Enabled *bool `json:"enabled,omitzero"`
	// Allow are the addresses that are admitted, such as 192.0.2.7, 2001:db8::/32, list:office or
	// country:DE. Empty means all that are not in deny; otherwise others are rejected. A list that
	// is empty or was never loaded admits no client.
	Allow []string `json:"allow,omitzero"`
	// Deny are the addresses that are rejected, even if they are in allow, too. A list that is empty
	// or was never loaded rejects no client.
	Deny []string `json:"deny,omitzero"`
	// Mode is `enforce`, or `observe` to log clients that would be rejected, with the entry that has
	// them, without rejecting them.
	Mode string `json:"mode,omitzero"`
}

// Identity is who is asking.
type Identity struct {
	// Name is the user's name, token:NAME, oidc:NAME or local:UID.
	Name string `json:"name"`
	// Role is what it may do.
	Role string `json:"role"`
	// Scopes narrow that; none is all.
	Scopes []string `json:"scopes,omitempty"`
	// Session is the id of the session, if there is one.
	Session string `json:"session,omitempty"`
	// TOTP is whether the user has an authenticator.
	TOTP bool `json:"totp"`
	// RecoveryCodes is how many are left.
	RecoveryCodes int `json:"recovery_codes"`
}

// Impact counts what a change affects.
type Impact struct {
	// Proxies are those that change, or whose policies or defaults do.
	Proxies int `json:"proxies"`
	// Hosts are the virtual hosts of these proxies.
	Hosts int `json:"hosts"`
	// NeedPassword are the hosts that ask for a password from now on, on some of their routes or
	// all.
	NeedPassword int `json:"need_password,omitempty"`
	// NeedNoPassword are the hosts that no longer do.
	NeedNoPassword int `json:"need_no_password,omitempty"`
	// Connections are open ones that will drain. It is absent if there is no running process.
	Connections *int `json:"connections,omitempty"`
}

// Import is what a source became.
type Import struct {
	// Document is the configuration of headgate.
	Document string `json:"document"`
	// Report lists every directive of the source and how it was translated.
	Report *ImporterReport `json:"report"`
	// Problems are why the document is not valid yet; complete it by hand.
	Problems []SchemaProblem `json:"problems"`
	// Files are certificates and keys in the source, under the names that the document refers to
	// them with. Save them next to it.
	Files []ImportedFile `json:"files"`
}

// ImportInput is the configuration of another proxy.
type ImportInput struct {
	// Source is the proxy that the configuration is for, such as nginx.
	Source string `json:"source"`
	// Files are the configuration's files, including the files that it includes, under the names
	// that it refers to them with. No other file is read.
	Files []ImportedFile `json:"files,omitempty"`
	// Address is the address of the proxy's API instead, such as http://127.0.0.1:81 for npm.
	Address string `json:"address,omitempty"`
	// Token is what the proxy at the address wants to see.
	Token string `json:"token,omitempty"`
	// Ports replaces port numbers, such as 80=8080, so that headgate can run beside the other proxy.
	Ports []string `json:"ports,omitempty"`
}

// ImportedFile is one file of a source.
type ImportedFile struct {
	// Name is its name.
	Name string `json:"name"`
	// Included means that the file is only read if another one includes it.
	Included bool `json:"included,omitempty"`
	// Text is its content.
	Text string `json:"text,omitempty"`
	// Data is its content in base64, for binary files.
	Data string `json:"data,omitempty"`
}

// ImporterReport is what became of every directive.
type ImporterReport struct {
	// Source is the proxy that the configuration is for.
	Source string `json:"source"`
	// Entries are in the order of the source.
	Entries []Entry `json:"entries"`
	// Counts are the entries by verdict.
	Counts map[string]int `json:"counts"`
	// Check is what a person should look at before the document is used.
	Check []string `json:"check,omitempty"`
}

// Invitation is a token to join.
type Invitation struct {
	// Token is the text for headgate node join. It is in this response and never shown again.
	Token string `json:"token"`
	// Expires is when it becomes invalid.
	Expires time.Time `json:"expires"`
}

// InvitationInput says who may join.
type InvitationInput struct {
	// Name is the name that the machine must have; absent is any.
	Name string `json:"name,omitempty"`
	// Address is the URL at which the new machine connects to the admin listener of this one, such
	// as https://192.0.2.7:9080. It is required where machines share a database, and absent in a
	// pair, which knows it.
	Address string `json:"address,omitempty"`
}

// Invite is a link that was made.
type Invite struct {
	// Link is the address for the person. It is shown once; absent in a dry run, and while the
	// configuration has no sign-in page.
	Link string `json:"link,omitempty"`
	// Path is the path of the link at the sign-in page; absent in a dry run.
	Path string `json:"path,omitempty"`
	// Expires is until when it can be used.
	Expires time.Time `json:"expires"`
}

// InviteInput says how long a link can be used.
type InviteInput struct {
	// For is how long the link can be used, such as 72h, which is the default. It is between 1m and
	// 720h.
	For string `json:"for,omitempty"`
}

// Issue is something about bans that an operator should know.
type Issue struct {
	// Code is unknown_client: a proxy in front sends requests that no route takes, and
	// defaults.client_ip does not say whom they come from.
	Code string `json:"code"`
	// Message says what it is.
	Message string `json:"message"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
}

// JSON is a server that accepts JSON.
type JSON struct {
	// URL is where messages are sent by POST.
	URL string `json:"url,omitzero"`
	// Authorization is the value of the Authorization header.
	Authorization string `json:"authorization,omitzero"`
	// Body is the JSON document. In its texts {title}, {text}, {level}, {type}, {object}, {time} and
	// {count} are replaced.
	Body string `json:"body,omitzero"`
}

// LastChange is when an object was changed.
type LastChange struct {
	// When is the moment.
	When time.Time `json:"when"`
	// Who did it; absent when it is not known, as of a file that was edited.
	Who string `json:"who,omitempty"`
	// Via is how it came: api, console, file, cli, docker, http or agent.
	Via string `json:"via"`
	// Revision is the number of the revision.
	Revision int `json:"revision"`
}

// Length is for how long clients are banned.
type Length struct {
	// First is the length of the first ban of a client.
	First string `json:"first,omitzero"`
	// Factor is how many times as long each further ban is as the one before.
	Factor *int `json:"factor,omitzero"`
	// Max is the longest ban.
	Max string `json:"max,omitzero"`
}

// Lifetime is how long people stay signed in.
type Lifetime struct {
	// IdleTimeout is how long a session lasts without a request.
	IdleTimeout string `json:"idle_timeout,omitzero"`
	// MaxAge is how long a session lasts at most.
	MaxAge string `json:"max_age,omitzero"`
	// Recheck is how often headgate checks with the provider whether a person may stay signed in,
	// and which groups the person has now. If the provider rejects the refresh token, the session
	// ends at once. Some providers issue a refresh token only with the scope `offline_access`:
	// sessions without one, and sessions of people kept by headgate, are not checked.
	//
	// A machine that cannot reach the shared store for longer than this accepts no session that was
	// confirmed earlier, because another machine may have ended it. 0 switches both off.
	Recheck string `json:"recheck,omitzero"`
	// RecheckGrace is how long a session continues while its provider cannot be reached. It starts
	// when the provider last confirmed the session.
	RecheckGrace string `json:"recheck_grace,omitzero"`
}

// LiftInput is a ban to lift.
type LiftInput struct {
	// Address is an address or a network.
	Address string `json:"address"`
	// Never is whether no rule is to ban the address again.
	Never bool `json:"never,omitempty"`
	// Again is whether rules may ban the address again, after never.
	Again bool `json:"again,omitempty"`
	// Why is what it is for. The audit has it.
	Why string `json:"why,omitempty"`
}

// LiftedBans is what was lifted.
type LiftedBans struct {
	// Lifted are the bans that ended.
	Lifted []BannedAddress `json:"lifted"`
	// Never is whether no rule will ban the address again.
	Never bool `json:"never"`
}

// Limits bound what one client may send to a port and how long it may take.
type Limits struct {
	// HeaderTimeout is the time for a whole request head to arrive, from its first byte, or from the
	// beginning of the connection, which Linux reports after a second if the client sends nothing.
	// Then headgate responds with 408 and closes the connection.
	HeaderTimeout string `json:"header_timeout,omitzero"`
	// BodyIdleTimeout is the longest pause in a request body before the connection is closed.
	BodyIdleTimeout string `json:"body_idle_timeout,omitzero"`
	// MinBodyRate is the minimum rate of a request body, in bytes per second. A client has
	// body_idle_timeout, plus the time that the bytes sent so far take at this rate; then the
	// request ends with 408. Time in which a server does not accept the body does not count. Streams
	// that clients keep open, such as those of gRPC, must keep this rate, too. 0 means no limit.
	MinBodyRate string `json:"min_body_rate,omitzero"`
	// WriteIdleTimeout is how long a client can accept no bytes of a response before its connection
	// is closed.
	WriteIdleTimeout string `json:"write_idle_timeout,omitzero"`
	// KeepAliveTimeout is how long a connection may wait for its next request. 0 closes connections
	// after each response.
	KeepAliveTimeout string `json:"keep_alive_timeout,omitzero"`
	// TunnelIdleTimeout is how long an upgraded connection (WebSocket) may be silent in both
	// directions.
	TunnelIdleTimeout string `json:"tunnel_idle_timeout,omitzero"`
	// HeaderSize is the largest request head, in bytes: request line and fields. A larger one gets
	// 431.
	HeaderSize string `json:"header_size,omitzero"`
	// HeaderFields is the largest number of fields in a request head. More get 431.
	HeaderFields *int `json:"header_fields,omitzero"`
	// URISize is the longest request target, in bytes. A longer one gets 414.
	URISize string `json:"uri_size,omitzero"`
	// MaxConcurrentStreams is the maximum number of requests in progress on one HTTP/2 or HTTP/3
	// connection. More are refused, and clients send them again.
	MaxConcurrentStreams *int `json:"max_concurrent_streams,omitzero"`
	// MaxMemory is the maximum memory for requests in progress, with the buffered parts of their
	// heads and bodies. A request over HTTP/2 and HTTP/3 counts as 64 KiB plus the part of its body
	// that was not read yet; one over HTTP/1.1 counts as 32 KiB while headgate waits for its client
	// or server, and an incomplete head as its size. One client can use as much as is left, so a
	// single client gets half, and a new client always gets some. More requests are refused (over
	// HTTP/1.1 with 503), and clients send them again. 0 means no limit.
	MaxMemory string `json:"max_memory,omitzero"`
	// MaxMemoryPerClient is the same limit for one client address (IPv6: for a /64). Increase it if
	// a load balancer or CDN in front has few addresses and many clients. 0 means no limit except
	// max_memory.
	MaxMemoryPerClient string `json:"max_memory_per_client,omitzero"`
	// MaxConnections is the largest number of open connections of the port; a new one takes the
	// place of one without a request, or waits in the system's queue. 0 means as many as file
	// descriptors allow.
	MaxConnections *int `json:"max_connections,omitzero"`
}

// List is a list of addresses with a name, which other settings refer to as list:NAME.
type List struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Entries are addresses, networks, and host names, which are looked up again when their time to
	// live is over. While a name cannot be looked up, its last addresses are used for 24 hours.
	Entries []string `json:"entries,omitzero"`
	// URL is where the list is downloaded from, over https: one address or network per line, with
	// comments behind # or ;. At most three redirects are followed. Entries wider than /8 (IPv6
	// /20), and those with an address that is never banned, are left out.
	URL string `json:"url,omitzero"`
	// File is a file in the same form. A relative path begins at the configuration file. It is read
	// again when it changes.
	File string `json:"file,omitzero"`
	// Crowdsec takes the addresses that a CrowdSec engine has decided to ban.
	Crowdsec *CrowdSec `json:"crowdsec,omitzero"`
	// Interval is how often the list at url is downloaded.
	Interval string `json:"interval,omitzero"`
	// AllowShrink is whether a downloaded list is used that has a tenth of the entries of the one
	// before, or fewer.
	AllowShrink *bool `json:"allow_shrink,omitzero"`
}

// ListNameState is a host name of a list.
type ListNameState struct {
	// Name is the host name.
	Name string `json:"name"`
	// Addresses are what it was resolved to last.
	Addresses []string `json:"addresses"`
	// Resolved is when that was; absent if it never was.
	Resolved time.Time `json:"resolved,omitzero"`
	// Error is why it could not be resolved the last time.
	Error string `json:"error,omitempty"`
}

// ListObject is a list with its name, origin and state. The fields of the state are ignored in
// requests.
type ListObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Entries are addresses, networks, and host names, which are looked up again when their time to
	// live is over. While a name cannot be looked up, its last addresses are used for 24 hours.
	Entries []string `json:"entries,omitzero"`
	// URL is where the list is downloaded from, over https: one address or network per line, with
	// comments behind # or ;. At most three redirects are followed. Entries wider than /8 (IPv6
	// /20), and those with an address that is never banned, are left out.
	URL string `json:"url,omitzero"`
	// File is a file in the same form. A relative path begins at the configuration file. It is read
	// again when it changes.
	File string `json:"file,omitzero"`
	// Crowdsec takes the addresses that a CrowdSec engine has decided to ban.
	Crowdsec *CrowdSec `json:"crowdsec,omitzero"`
	// Interval is how often the list at url is downloaded.
	Interval string `json:"interval,omitzero"`
	// AllowShrink is whether a downloaded list is used that has a tenth of the entries of the one
	// before, or fewer.
	AllowShrink *bool `json:"allow_shrink,omitzero"`
}

// ListState is the state of a list.
type ListState struct {
	// Name is the name of the list.
	Name string `json:"name"`
	// Source is where the entries come from: entries, url, file or crowdsec.
	Source string `json:"source"`
	// Location is the URL or file, without credentials and query.
	Location string `json:"location,omitempty"`
	// State is loading until the entries were loaded for the first time, ready, or error when they
	// could not be loaded: then the last entries that could are used.
	State string `json:"state"`
	// Since is when it came to this state.
	Since time.Time `json:"since"`
	// Entries is how many addresses and networks the list has.
	Entries int `json:"entries"`
	// Loaded is when its entries were loaded last; absent if they never were.
	Loaded time.Time `json:"loaded,omitzero"`
	// Checked is when its source was asked last; absent for lists without a source to ask.
	Checked time.Time `json:"checked,omitzero"`
	// Next is when its source will be asked next.
	Next time.Time `json:"next,omitzero"`
	// Names are the host names in its entries, with their addresses.
	Names []ListNameState `json:"names,omitempty"`
	// Issues are what an operator should know.
	Issues []ListsIssue `json:"issues,omitempty"`
}

// ListsIssue is something about a list that an operator should know.
type ListsIssue struct {
	// Code is the kind of issue: list_unavailable, list_empty, list_shrunk, entries_invalid,
	// entries_too_wide, entries_protected or name_unresolved.
	Code string `json:"code"`
	// Message says what it is.
	Message string `json:"message"`
	// Hint says what to do.
	Hint string `json:"hint,omitempty"`
}

// Maintenance responds to requests with 503 during maintenance, except for clients that may
// bypass it.
type Maintenance struct {
	// Enabled is whether maintenance is on. `enabled: false` ends it and keeps the settings.
	Enabled *bool `json:"enabled,omitzero"`
	// RetryAfter is the value of Retry-After, after which clients should try again.
	RetryAfter string `json:"retry_after,omitzero"`
	// Body is the text of the page, with the variables of header values and {status} and {reason};
	// `{{` is a brace. In HTML, XML and JSON their values are escaped. At most 64 KiB; put a longer
	// page in a file.
	Body string `json:"body,omitzero"`
	// File is the file with the page, at most 1 MiB. Variables in it are replaced, too; all other
	// braces have no special meaning. A relative path is relative to the configuration file. Changes
	// of the file are used within seconds.
	File string `json:"file,omitzero"`
	// ContentType is the media type of the page. The default is the type of the file's extension;
	// for text, HTML if it starts with <, JSON if it starts with { or [, otherwise plain text.
	ContentType string `json:"content_type,omitzero"`
	// Bypass selects the clients that are not affected. Absent means none.
	Bypass *Bypass `json:"bypass,omitzero"`
}

// Matchers restricts the requests of a route, in addition to its path: all matchers must match.
// If several routes have the same path, the matching one with the most matchers is used,
// counting methods as one and each header and parameter as one. If none matches, the next
// shorter path is tried. Two routes with the same path and the same number of matchers are
// rejected, unless no request can match both, or a route with more matchers takes precedence for
// those that do.
type Matchers struct {
	// Methods are the methods of the route, in capitals. GET does not include HEAD.
	Methods []string `json:"methods,omitzero"`
	// Headers are conditions on the request's headers, as the client sent them. The values of a
	// header that was sent more than once are joined by `, `.
	Headers []MatchersCondition `json:"headers,omitzero"`
	// Query are conditions on the decoded parameters of the query. The first value of a parameter
	// counts.
	Query []MatchersCondition `json:"query,omitzero"`
}

// MatchersCondition is a condition on a header or a query parameter. Without value and regex it
// must be present, with any value.
type MatchersCondition struct {
	// Name is the name of a header, which is not case-sensitive, or of a query parameter, which is.
	Name string `json:"name,omitzero"`
	// Value is the exact value.
	Value string `json:"value,omitzero"`
	// Regex is an RE2 expression that is matched anywhere in the value. Use ^ and $ to match the
	// ends.
	Regex string `json:"regex,omitzero"`
}

// Matrix is a room and the account that writes to it.
type Matrix struct {
	// URL is the homeserver.
	URL string `json:"url,omitzero"`
	// Room is the ID of the room. The account must have joined it.
	Room string `json:"room,omitzero"`
	// Token is an access token of the account.
	Token string `json:"token,omitzero"`
}

// Member is a machine of the group, for operators.
type Member struct {
	// Name identifies the machine.
	Name string `json:"name"`
	// Address is the URL at which the other machine reaches it.
	Address string `json:"address"`
	// Joined is when it joined.
	Joined time.Time `json:"joined"`
}

// Mirror sends copies of a route's requests to other servers, for tests. Copies are not waited
// for, their responses are discarded unless compare is set, and their failures only appear in
// the metrics. The copy is the request as the route's servers get it, including cookies and
// credentials. Upgrades are not copied.
type Mirror struct {
	// Enabled is whether requests are copied.
	Enabled *bool `json:"enabled,omitzero"`
	// Servers are the servers that receive the copies, which are shared like the requests of a
	// route.
	Servers []Server `json:"servers,omitzero"`
	// Percent is the percentage of requests that are copied, selected at random.
	Percent *int `json:"percent,omitzero"`
	// MaxBody is the longest request body that is copied. It is held in memory until the copy is
	// sent; requests with longer ones are not copied.
	MaxBody string `json:"max_body,omitzero"`
	// MaxRequests is the maximum number of copies in progress. Beyond it, requests are not copied.
	MaxRequests *int `json:"max_requests,omitzero"`
	// Timeout bounds a copy from its start to the end of the response.
	Timeout string `json:"timeout,omitzero"`
	// Compare is whether the responses to copies are compared with those of the route's servers:
	// status, body, header fields and time. "headgate mirror report" shows the result, which is in
	// memory and starts anew with the process. Bodies are compared up to 16 MiB, and as they pass.
	Compare *bool `json:"compare,omitzero"`
}

// MirrorReport is the comparison of mirrored responses of a route.
type MirrorReport struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Route is the route with its matchers.
	Route string `json:"route"`
	// Since is the time of the first comparison; absent before that.
	Since time.Time `json:"since,omitzero"`
	// Compared is the number of requests with a response from both.
	Compared int64 `json:"compared"`
	// Same is the number of compared requests without a difference.
	Same int64 `json:"same"`
	// Status is the number of requests whose first difference is the status.
	Status int64 `json:"status"`
	// Body is the number of requests whose first difference is the body.
	Body int64 `json:"body"`
	// Header is the number of requests whose first difference is a header.
	Header int64 `json:"header"`
	// Incomplete are those whose bodies could not be compared, because one of them was cut off.
	Incomplete int64 `json:"incomplete"`
	// Skipped are copies that were not compared because too many comparisons were in progress.
	Skipped int64 `json:"skipped"`
	// Servers counts the responses of the route's servers.
	Servers ResponseStats `json:"servers"`
	// Mirror counts the responses of the mirror's servers.
	Mirror ResponseStats `json:"mirror"`
	// Headers are the header fields that differ, the most frequent first, also of responses with
	// another difference.
	Headers []FieldCount `json:"headers"`
	// Samples are the latest differences, one for each path and kind, the newest first.
	Samples []ResponseDifference `json:"samples"`
}

// Mistake is one thing that is wrong with a body.
type Mistake struct {
	// Code is a keyword from the table of codes.
	Code string `json:"code"`
	// Pointer is the position in the body or the configuration, as a JSON pointer (RFC 6901).
	Pointer string `json:"pointer"`
	// Detail describes what is wrong.
	Detail string `json:"detail"`
	// Remedy is how to fix it.
	Remedy string `json:"remedy,omitempty"`
}

// MoreChanges counts objects of a kind that were left out.
type MoreChanges struct {
	// Kind is the name of the kind.
	Kind string `json:"kind"`
	// Change is added, changed or removed.
	Change string `json:"change,omitempty"`
	// Count is how many there are.
	Count int `json:"count"`
}

// MovedPort is a port of a cutover.
type MovedPort struct {
	// Port is its name.
	Port string `json:"port"`
	// From is the address that it had.
	From string `json:"from"`
	// To is the address that it got.
	To string `json:"to"`
}

// NameProblem is the authority's problem with one name.
type NameProblem struct {
	// Type is the kind.
	Type string `json:"type"`
	// Detail is the authority's description.
	Detail string `json:"detail"`
	// Name is the host.
	Name string `json:"name"`
}

// NewPasskeyAnswer is the answer of a browser that has created a passkey.
type NewPasskeyAnswer struct {
	// Sealed is that of the question.
	Sealed string `json:"sealed"`
	// Answer is the PublicKeyCredential as JSON text, with bytes in Base64url.
	Answer string `json:"answer"`
	// Name is what the passkey is called: 1 to 64 bytes, for people.
	Name string `json:"name"`
}

// NewPasskeyInput asks for a new passkey.
type NewPasskeyInput struct {
	// CurrentPassword is the password. It is not required within ten minutes of a sign-in with a
	// passkey.
	CurrentPassword string `json:"current_password,omitempty"`
}

// Node is a node.
type Node struct {
	// Name identifies the node.
	Name string `json:"name"`
	// Self is true for the node that answers.
	Self bool `json:"self"`
	// State is ready; not_ready, for the reason in reason; drained; stopped; or missing if the node
	// has not published anything for 90 seconds.
	State string `json:"state"`
	// Reason is why the node is not ready.
	Reason string `json:"reason,omitempty"`
	// Version is the version of headgate on the node.
	Version string `json:"version,omitempty"`
	// Revision is the configuration that the node serves.
	Revision int `json:"revision"`
	// LatestRevision is the newest configuration that a running node serves.
	LatestRevision int `json:"latest_revision"`
	// Addresses are those that the ports of the node listen on.
	Addresses []string `json:"addresses,omitempty"`
	// Seen is when the node published its state, at least every 30 seconds.
	Seen time.Time `json:"seen,omitzero"`
	// ClockOffset is how far the clock of the node is ahead of the store's, such as -1.5s.
	ClockOffset string `json:"clock_offset"`
	// Problems are what to look at on the node.
	Problems []string `json:"problems,omitempty"`
	// DrainedSince is when an operator drained the node.
	DrainedSince time.Time `json:"drained_since,omitzero"`
	// DrainedBy is the operator who drained it.
	DrainedBy string `json:"drained_by,omitempty"`
	// DrainedWhy is the reason that the operator gave.
	DrainedWhy string `json:"drained_why,omitempty"`
}

// NodeInput is the body of drain and undrain.
type NodeInput struct {
	// Why is recorded in the audit log.
	Why string `json:"why,omitempty"`
}

// NodeTraffic is the HTTP traffic of a machine.
type NodeTraffic struct {
	// Node is the name of the machine.
	Node string `json:"node"`
	// RequestsPerSecond is the number of requests per second.
	RequestsPerSecond float64 `json:"requests_per_second"`
	// Errors4xxPerSecond is the number of responses per second with a status 4xx.
	Errors4xxPerSecond float64 `json:"errors_4xx_per_second"`
	// Errors5xxPerSecond is the number of responses per second with a status 5xx.
	Errors5xxPerSecond float64 `json:"errors_5xx_per_second"`
	// P99MS is the highest 99th percentile of the duration of requests in any 10 seconds, in
	// milliseconds. It is absent without requests.
	P99MS *float64 `json:"p99_ms,omitempty"`
	// Problem is why the traffic of the machine is unknown.
	Problem string `json:"problem,omitempty"`
}

// Notice is a message to people about events.
type Notice struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Email sends messages by SMTP.
	Email *Email `json:"email,omitzero"`
	// Ntfy publishes messages to a topic of ntfy.
	Ntfy *Ntfy `json:"ntfy,omitzero"`
	// Gotify sends messages to a Gotify server.
	Gotify *Gotify `json:"gotify,omitzero"`
	// Discord posts messages to a channel of Discord.
	Discord *Discord `json:"discord,omitzero"`
	// Slack posts messages to a channel of Slack, or of a server that accepts its format, such as
	// Mattermost.
	Slack *Slack `json:"slack,omitzero"`
	// Telegram sends messages with a bot of Telegram.
	Telegram *Telegram `json:"telegram,omitzero"`
	// Matrix sends messages to a room of Matrix.
	Matrix *Matrix `json:"matrix,omitzero"`
	// Teams posts messages to a channel of Microsoft Teams.
	Teams *Teams `json:"teams,omitzero"`
	// JSON sends a JSON document of your own by POST.
	JSON *JSON `json:"json,omitzero"`
	// Events are the types of events, such as proxy.down, or certificate.* for all of an object.
	// Absent means all.
	Events []string `json:"events,omitzero"`
	// Level is the lowest level of events that are sent.
	Level string `json:"level,omitzero"`
	// Digest is for how long events are collected into one message. Absent means that each is sent
	// immediately; several within ten seconds are one message.
	Digest string `json:"digest,omitzero"`
	// Quiet are hours in which messages are held back. They are sent when these hours end.
	Quiet *Quiet `json:"quiet,omitzero"`
	// Urgent is the lowest level of events that are sent immediately, also in quiet hours and with a
	// digest: `error`, `warning`, or `none`.
	Urgent string `json:"urgent,omitzero"`
	// Active is whether messages are sent. Events that occur while it is false are never sent.
	Active *bool `json:"active,omitzero"`
}

// NoticeObject is a notice with its name, origin and state. The fields of the state are ignored
// in requests.
type NoticeObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Email sends messages by SMTP.
	Email *Email `json:"email,omitzero"`
	// Ntfy publishes messages to a topic of ntfy.
	Ntfy *Ntfy `json:"ntfy,omitzero"`
	// Gotify sends messages to a Gotify server.
	Gotify *Gotify `json:"gotify,omitzero"`
	// Discord posts messages to a channel of Discord.
	Discord *Discord `json:"discord,omitzero"`
	// Slack posts messages to a channel of Slack, or of a server that accepts its format, such as
	// Mattermost.
	Slack *Slack `json:"slack,omitzero"`
	// Telegram sends messages with a bot of Telegram.
	Telegram *Telegram `json:"telegram,omitzero"`
	// Matrix sends messages to a room of Matrix.
	Matrix *Matrix `json:"matrix,omitzero"`
	// Teams posts messages to a channel of Microsoft Teams.
	Teams *Teams `json:"teams,omitzero"`
	// JSON sends a JSON document of your own by POST.
	JSON *JSON `json:"json,omitzero"`
	// Events are the types of events, such as proxy.down, or certificate.* for all of an object.
	// Absent means all.
	Events []string `json:"events,omitzero"`
	// Level is the lowest level of events that are sent.
	Level string `json:"level,omitzero"`
	// Digest is for how long events are collected into one message. Absent means that each is sent
	// immediately; several within ten seconds are one message.
	Digest string `json:"digest,omitzero"`
	// Quiet are hours in which messages are held back. They are sent when these hours end.
	Quiet *Quiet `json:"quiet,omitzero"`
	// Urgent is the lowest level of events that are sent immediately, also in quiet hours and with a
	// digest: `error`, `warning`, or `none`.
	Urgent string `json:"urgent,omitzero"`
	// Active is whether messages are sent. Events that occur while it is false are never sent.
	Active *bool `json:"active,omitzero"`
}

// Ntfy is a topic of ntfy.
type Ntfy struct {
	// URL is the server.
	URL string `json:"url,omitzero"`
	// Topic is the topic. Anyone who knows the name of a topic that is not protected can read it.
	Topic string `json:"topic,omitzero"`
	// Token is an access token of the server.
	Token string `json:"token,omitzero"`
}

// OIDC is a sign-in provider that speaks OpenID Connect.
type OIDC struct {
	// Issuer is the provider's URL; its configuration is found below it.
	Issuer string `json:"issuer,omitzero"`
	// ClientID is the client ID that is registered at the provider.
	ClientID string `json:"client_id,omitzero"`
	// ClientSecret is the secret of that client.
	ClientSecret string `json:"client_secret,omitzero"`
	// RedirectURL is the page of this headgate that the provider sends people back to. It has to be
	// registered there.
	RedirectURL string `json:"redirect_url,omitzero"`
	// Scopes are requested in addition to openid. Absent means profile and email.
	Scopes []string `json:"scopes,omitzero"`
	// NameClaim is the claim with the name of the user. Absent means the first present of
	// preferred_username, email and sub.
	NameClaim string `json:"name_claim,omitzero"`
	// Roles assign roles to users. If several match, the highest applies; a user that matches none
	// is rejected.
	Roles []OIDCRole `json:"roles,omitzero"`
}

// OIDCRole assigns a role to all users with a claim.
type OIDCRole struct {
	// Claim is the name of the claim; a dot selects a member of an object (realm_access.roles).
	Claim string `json:"claim,omitzero"`
	// Value is the value of the claim, or an element of its list. Absent means any value except
	// false.
	Value string `json:"value,omitzero"`
	// Role is the role that these users get.
	Role string `json:"role,omitzero"`
}

// ObjectChange is what became of one object.
type ObjectChange struct {
	// Kind is the name of the object's kind: "proxies".
	Kind string `json:"kind"`
	// Name is the object's name, "" for a single object such as admin.
	Name string `json:"name,omitempty"`
	// Change is added, changed or removed.
	Change string `json:"change"`
	// Origin is where the object comes from, or came from if it was removed. It is absent for one
	// that no document mentions.
	Origin *Origin `json:"origin,omitempty"`
	// Fields are the fields of a changed object that are not the same.
	Fields []FieldChange `json:"fields,omitempty"`
}

// ObjectRef is one object with the sentences about it.
type ObjectRef struct {
	// Kind is the name of its kind: "proxies".
	Kind string `json:"kind"`
	// Name is its name, "" for a single object such as admin.
	Name string `json:"name,omitempty"`
	// Title is what people call it: "proxy shop", "access log".
	Title string `json:"title"`
	// Change is added, changed or removed; "" for an object that is the same itself and is warned
	// about.
	Change string `json:"change,omitempty"`
	// Severity is the worst of its sentences.
	Severity string `json:"severity"`
	// Origin is where the object comes from, or came from if it was removed.
	Origin *Origin `json:"origin,omitempty"`
	// Hosts are the first of the virtual hosts that are affected, HostCount is how many there are.
	Hosts []string `json:"hosts,omitempty"`
	// HostCount is how many virtual hosts are affected.
	HostCount int `json:"host_count,omitempty"`
	// Sentences describe the effects on it, the warnings last; More were omitted.
	Sentences []Statement `json:"sentences"`
	// More is how many sentences were omitted.
	More int `json:"more,omitempty"`
}

// OidcInput is what has come back from the provider.
type OidcInput struct {
	// Code is what the provider has sent.
	Code string `json:"code"`
	// State is what the provider has sent back.
	State string `json:"state"`
	// Browser is what the console's page has kept.
	Browser string `json:"browser"`
}

// OidcStart is the way to the provider.
type OidcStart struct {
	// URL is the provider's page.
	URL string `json:"url"`
	// State comes back in the address of the console's page.
	State string `json:"state"`
	// Browser is kept by the console's page and sent with the code.
	Browser string `json:"browser"`
}

// OnDemand are the settings for certificates that are ordered when a client first connects with
// a host name, for applications that serve the domains of their customers. They apply to the
// hosts that match a wildcard or an expression of the proxy, or that no other proxy has. A host
// is allowed if `list` has it, or else if the application at `ask` allows it.
type OnDemand struct {
	// Ask is the URL that is requested, with the query parameter `domain`, before a certificate is
	// ordered or renewed. Status 2xx allows the host. Every other response, a redirect, and no
	// response within 5 seconds refuse it: a refused host is not asked for again for a minute, after
	// a failure for 5 seconds. Link-local addresses and those of cloud metadata are rejected.
	Ask string `json:"ask,omitzero"`
	// List contains the hosts that are allowed without a request: names, and wildcards for one
	// label.
	List []string `json:"list,omitzero"`
	// MaxPerHour is how many orders that were caused by clients are placed within an hour, by all
	// machines that share a store. Renewals do not count.
	MaxPerHour int `json:"max_per_hour,omitzero"`
	// MaxCertificates is how many certificates of the proxy are kept. At the limit no new host gets
	// one; existing ones are renewed.
	MaxCertificates *int `json:"max_certificates,omitzero"`
}

// Opening is a gate that is open for everyone for a while, because an operator said so.
type Opening struct {
	// Host is the host of the application.
	Host string `json:"host"`
	// Until is when the gate closes by itself.
	Until time.Time `json:"until"`
	// Who opened the gate.
	Who string `json:"who"`
	// Why is the reason that was given.
	Why string `json:"why,omitempty"`
}

// OpeningInput says which gate to open.
type OpeningInput struct {
	// Host is the host of the application.
	Host string `json:"host"`
	// For is how long, such as 10m; at most 24h.
	For string `json:"for"`
	// Why is what it is for. The audit has it.
	Why string `json:"why,omitempty"`
}

// Order is the state of an ACME certificate.
type Order struct {
	// Name is the name of the certificate.
	Name string `json:"name"`
	// Names are the requested hosts, the wildcard first.
	Names []string `json:"names"`
	// Has are the hosts of the certificate in use.
	Has []string `json:"has"`
	// Entry is the acme entry that it is ordered under.
	Entry string `json:"entry"`
	// OnDemand is the proxy of a certificate that was ordered when a client connected.
	OnDemand string `json:"on_demand,omitempty"`
	// State is idle, preflight, blocked, pending, ready, processing, valid or failed.
	State string `json:"state"`
	// Since is when that began.
	Since time.Time `json:"since"`
	// Trouble is why there is none, for blocked and failed.
	Trouble *OrderProblem `json:"trouble,omitempty"`
	// Warnings are what the last look before an order found doubtful.
	Warnings []string `json:"warnings"`
	// NextTry is when the next order or renewal is attempted.
	NextTry time.Time `json:"next_try,omitzero"`
	// Failures counts those in a row.
	Failures int `json:"failures"`
	// NotBefore is when the validity of the certificate in use began.
	NotBefore time.Time `json:"not_before,omitzero"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after,omitzero"`
	// DaysLeft is how many whole days of the life are left; below zero it has ended.
	DaysLeft *int `json:"days_left,omitempty"`
	// Directory is who issued it.
	Directory string `json:"directory,omitempty"`
	// Profile is the requested certificate profile.
	Profile string `json:"profile,omitempty"`
	// Renewal is when the authority suggests to renew.
	Renewal *Renewal `json:"renewal,omitempty"`
	// Timeline are the last orders, the newest last, at most 20. A list leaves it out.
	Timeline []OrderAttempt `json:"timeline,omitempty"`
}

// OrderAttempt is one order from its beginning to its end.
type OrderAttempt struct {
	// Directory is the directory URL of the authority.
	Directory string `json:"directory"`
	// Staging means that it was a trial with a staging authority.
	Staging bool `json:"staging"`
	// Began is when the order was placed.
	Began time.Time `json:"began"`
	// Ended is when the order ended; it is absent while the order is in progress.
	Ended time.Time `json:"ended,omitzero"`
	// Issued is whether a certificate was issued.
	Issued bool `json:"issued"`
	// Trouble is why it failed.
	Trouble *OrderProblem `json:"trouble,omitempty"`
	// Steps are what happened, in order. They are not kept for older orders that succeeded.
	Steps []OrderStep `json:"steps,omitempty"`
}

// OrderProblem is why there is no certificate.
type OrderProblem struct {
	// Code is a keyword, such as port_not_open or rate_limited.
	Code string `json:"code"`
	// Message describes the problem.
	Message string `json:"message"`
	// Hint is how to fix it, or what headgate does next.
	Hint string `json:"hint,omitempty"`
	// Problem is the problem document that the authority returned.
	Problem *AuthorityProblem `json:"problem,omitempty"`
}

// OrderStep is one thing that happened to an order.
type OrderStep struct {
	// At is when.
	At time.Time `json:"at"`
	// State is what the order was then.
	State string `json:"state"`
	// Text describes the step in a sentence.
	Text string `json:"text"`
}

// Origin is where an object comes from.
type Origin struct {
	// Via is the way by which it came.
	Via string `json:"via"`
	// Document is the name of the document that defines it, or its URL without the query.
	Document string `json:"document,omitempty"`
	// Line is the line of its name, from 1.
	Line int `json:"line,omitempty"`
	// Column is the column of its name, from 1.
	Column int `json:"column,omitempty"`
	// Provider is the entry of discovery that found it: "local".
	Provider string `json:"provider,omitempty"`
	// Node is the node of that provider, where several share the configuration: no other node has
	// the object.
	Node string `json:"node,omitempty"`
	// Container is the name of the container whose labels define it.
	Container string `json:"container,omitempty"`
	// Label is the label that defines it.
	Label string `json:"label,omitempty"`
}

// OwnPasskeys are the passkeys of the operator who sends the request.
type OwnPasskeys struct {
	// Offered is whether they can.
	Offered bool `json:"offered"`
	// Host is the host name that they belong to.
	Host string `json:"host,omitempty"`
	// Reason is why they cannot: address (the console is open at an IP address), name (the host name
	// is not in admin.hosts), plain_http (there is no TLS), or certificate (no certificate has the
	// host name).
	Reason string `json:"reason,omitempty"`
	// Passkeys are all of the user, also those for another host name.
	Passkeys []Passkey `json:"passkeys"`
}

// Owner names an object.
type Owner struct {
	// Kind is the kind of the object, such as proxies.
	Kind string `json:"kind"`
	// Name is its name.
	Name string `json:"name"`
}

// PairState is the state of this machine and the members of its group.
type PairState struct {
	// Role is what the machine does with changes: leader, follower, or waiting for a leader that was
	// started and has not reached the other machine.
	Role string `json:"role"`
	// Name is that of this machine.
	Name string `json:"name"`
	// Leader is the machine that leads, as far as this machine knows.
	Leader string `json:"leader,omitempty"`
	// LeaderAddress is the URL of the leader.
	LeaderAddress string `json:"leader_address,omitempty"`
	// Epoch is the number of the period in which the leader leads, and its name.
	Epoch string `json:"epoch,omitempty"`
	// Peer is the other machine, absent if none has joined.
	Peer string `json:"peer,omitempty"`
	// PeerAddress is the URL of the other machine.
	PeerAddress string `json:"peer_address,omitempty"`
	// Connected is whether the follower has a stream from the leader now.
	Connected bool `json:"connected"`
	// Revision is that of the state of this machine.
	Revision uint64 `json:"revision"`
	// Lag is by how many revisions the follower is behind, as far as this machine knows.
	Lag uint64 `json:"lag"`
	// LastContact is when the other machine was heard from last.
	LastContact time.Time `json:"last_contact,omitzero"`
	// Sync is whether this machine acknowledges changes only when the follower has them.
	Sync bool `json:"sync"`
	// Problem is why the other machine cannot be reached or followed.
	Problem string `json:"problem,omitempty"`
	// Diverged is what this machine kept of its own when it yielded last.
	Diverged *Divergence `json:"diverged,omitempty"`
	// Members are the machines of the group, by name.
	Members []Member `json:"members"`
}

// Param is a parameter for scripts, which PHP has in $_SERVER.
type Param struct {
	// Name is the name of the parameter: letters, digits and underscores.
	Name string `json:"name,omitzero"`
	// Value is the value of the parameter. It is shown to operators; write ${VARIABLE} or
	// ${file:…} to keep a secret out of the configuration.
	Value string `json:"value,omitzero"`
}

// Pardon is a network that is never banned, because an operator said so.
type Pardon struct {
	// Network is the network, as address/length.
	Network netip.Prefix `json:"network"`
	// Who is the operator.
	Who string `json:"who,omitempty"`
	// Why is what the operator said.
	Why string `json:"why,omitempty"`
	// Since is when.
	Since time.Time `json:"since"`
}

// Passkey is a passkey as others see it.
type Passkey struct {
	// ID identifies the passkey among those of its owner. It opens nothing.
	ID string `json:"id"`
	// Name is what its owner calls it. People give theirs no name.
	Name string `json:"name,omitempty"`
	// Host is the host name that it was created at, where alone it works.
	Host string `json:"host"`
	// Synced is whether the device keeps it with its other devices.
	Synced bool `json:"synced"`
	// Created is when the passkey was created.
	Created time.Time `json:"created"`
	// Used is when it was last used to sign in.
	Used time.Time `json:"used,omitzero"`
}

// PasskeyAnswer is the answer of a browser.
type PasskeyAnswer struct {
	// Sealed is that of the question.
	Sealed string `json:"sealed"`
	// Answer is the PublicKeyCredential as JSON text, with bytes in Base64url.
	Answer string `json:"answer"`
}

// PasskeyQuestion is what a browser is asked for.
type PasskeyQuestion struct {
	// Options are for navigator.credentials, as the member publicKey; bytes are in Base64url.
	Options json.RawMessage `json:"options"`
	// Sealed is sent back with the answer. It is good for ten minutes and one answer.
	Sealed string `json:"sealed"`
}

// PasswordInput is a new password.
type PasswordInput struct {
	// CurrentPassword is the one of now.
	CurrentPassword string `json:"current_password"`
	// Password is the new one.
	Password string `json:"password"`
}

// Pending is a change that waits to be confirmed.
type Pending struct {
	// Revision is its name in the state directory.
	Revision string `json:"revision"`
	// Until is when the configuration before comes back, unless it is confirmed.
	Until time.Time `json:"until"`
}

// Person is a person who is kept by headgate.
type Person struct {
	// Name is what the person signs in with: 1 to 64 lower-case letters, digits and . _ -. It cannot
	// be changed. Servers get it as Remote-User.
	Name string `json:"name"`
	// FullName is for people to read.
	FullName string `json:"full_name,omitempty"`
	// Email is the person's address. The person can sign in with it.
	Email string `json:"email,omitempty"`
	// Groups are the person's groups, which allow names as group:NAME.
	Groups []string `json:"groups,omitempty"`
	// Disabled is whether the person cannot sign in.
	Disabled bool `json:"disabled"`
	// Password is whether the person has a password and an authenticator.
	Password bool `json:"password"`
	// RecoveryCodes is how many recovery codes are left.
	RecoveryCodes int `json:"recovery_codes"`
	// Passkeys are the person's passkeys.
	Passkeys []Passkey `json:"passkeys,omitempty"`
	// Sessions is how many sessions the person has.
	Sessions int `json:"sessions"`
	// Created is when the person was added.
	Created time.Time `json:"created"`
	// SignedIn is when the person signed in last.
	SignedIn time.Time `json:"signed_in,omitzero"`
	// Invited is when an invitation that was not used yet expires.
	Invited time.Time `json:"invited,omitzero"`
	// ETag is what If-Match names.
	ETag string `json:"etag,omitempty"`
}

// PersonSession is a session of a person at applications.
type PersonSession struct {
	// ID identifies the session. It opens nothing.
	ID string `json:"id"`
	// Person is the id of the person: PROVIDER/ID, local/NAME for people kept by headgate.
	Person string `json:"person"`
	// Title is the person's name or address.
	Title string `json:"title"`
	// Provider is the name of the sign-in provider, local for people kept by headgate.
	Provider string `json:"provider"`
	// Address is the address of the browser at sign-in.
	Address string `json:"address,omitempty"`
	// UserAgent is the User-Agent of the browser at sign-in.
	UserAgent string `json:"user_agent,omitempty"`
	// Created is when the session was created.
	Created time.Time `json:"created"`
	// Seen is when it was last used.
	Seen time.Time `json:"seen"`
	// Expires is when it ends at the latest.
	Expires time.Time `json:"expires"`
	// Confirmed is when the provider last confirmed the session.
	Confirmed time.Time `json:"confirmed"`
	// Rechecked is whether the session is checked again: the provider has issued a refresh token.
	Rechecked bool `json:"rechecked"`
	// Hosts are the hosts of applications that it has been used at.
	Hosts []string `json:"hosts"`
}

// Plan is what a change does, in words and as data.
type Plan struct {
	// Summary is the change in one line: "1 port and 2 proxies change; 3 hosts are affected; 4
	// connections will drain". Where nothing changes it says so.
	Summary string `json:"summary"`
	// Severity is the worst of all sentences, also of those left out.
	Severity string `json:"severity"`
	// Impact counts what is affected.
	Impact Impact `json:"impact"`
	// Objects are the objects with the effects on them, by kind and name: all of them, or MaxObjects
	// of those with the most severe sentences.
	Objects []ObjectRef `json:"objects"`
	// More counts the objects that were left out.
	More []MoreChanges `json:"more,omitempty"`
}

// PlanInput is what is planned: edits, or documents.
type PlanInput struct {
	// Edits are made one after the other, all or none.
	Edits []Edit `json:"edits,omitempty"`
	// Documents are the documents that get another text, as in PUT /config.
	Documents []Document `json:"documents,omitempty"`
}

// Policy is a named set of features. Each proxy or route that uses it behaves as if the features
// were set there: a rate limit counts separately for each of them. A policy cannot use other
// policies.
type Policy struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// ClientIP configures which peers are trusted to report the client's address. By default none
	// is: the client's address is that of the connection.
	ClientIP *ClientIP `json:"client_ip,omitzero"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *RateLimit `json:"rate_limit,omitzero"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same proxy: to 443,
	// or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods 308.
	RedirectHTTPToHTTPS *string `json:"redirect_http_to_https,omitzero"`
	// CORS lets pages of other origins read responses.
	CORS *CORS `json:"cors,omitzero"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *Maintenance `json:"maintenance,omitzero"`
	// Redirects send clients from one path to another, or to another host.
	Redirects []RedirectRule `json:"redirects,omitzero"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no limit, which
	// is also the default.
	RequestBodyLimit *string `json:"request_body_limit,omitzero"`
	// RequestTimeout is the time until a server's response head, for each attempt; then 504. 0
	// switches it off. Bodies and upgraded connections have idle time-outs and no total. Absent
	// means that the value is inherited; the default is 60s.
	RequestTimeout *string `json:"request_timeout,omitzero"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitzero"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *BasicAuth `json:"basic_auth,omitzero"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get its
	// response.
	ForwardAuth *ForwardAuth `json:"forward_auth,omitzero"`
	// Rewrite changes the path that a server gets.
	Rewrite *Rewrite `json:"rewrite,omitzero"`
	// Headers change header fields of requests and responses.
	Headers []HeaderRule `json:"headers,omitzero"`
	// Cache keeps responses in memory and answers with them.
	Cache *Cache `json:"cache,omitzero"`
	// Compression compresses responses for clients that support it.
	Compression *Compression `json:"compression,omitzero"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *SecurityHeaders `json:"security_headers,omitzero"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages []ErrorPage `json:"error_pages,omitzero"`
}

// PolicyObject is a policy with its name, origin and state. The fields of the state are ignored
// in requests.
type PolicyObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// ClientIP configures which peers are trusted to report the client's address. By default none
	// is: the client's address is that of the connection.
	ClientIP *ClientIP `json:"client_ip,omitzero"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *RateLimit `json:"rate_limit,omitzero"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same proxy: to 443,
	// or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods 308.
	RedirectHTTPToHTTPS *string `json:"redirect_http_to_https,omitzero"`
	// CORS lets pages of other origins read responses.
	CORS *CORS `json:"cors,omitzero"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *Maintenance `json:"maintenance,omitzero"`
	// Redirects send clients from one path to another, or to another host.
	Redirects []RedirectRule `json:"redirects,omitzero"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no limit, which
	// is also the default.
	RequestBodyLimit *string `json:"request_body_limit,omitzero"`
	// RequestTimeout is the time until a server's response head, for each attempt; then 504. 0
	// switches it off. Bodies and upgraded connections have idle time-outs and no total. Absent
	// means that the value is inherited; the default is 60s.
	RequestTimeout *string `json:"request_timeout,omitzero"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitzero"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *BasicAuth `json:"basic_auth,omitzero"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get its
	// response.
	ForwardAuth *ForwardAuth `json:"forward_auth,omitzero"`
	// Rewrite changes the path that a server gets.
	Rewrite *Rewrite `json:"rewrite,omitzero"`
	// Headers change header fields of requests and responses.
	Headers []HeaderRule `json:"headers,omitzero"`
	// Cache keeps responses in memory and answers with them.
	Cache *Cache `json:"cache,omitzero"`
	// Compression compresses responses for clients that support it.
	Compression *Compression `json:"compression,omitzero"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *SecurityHeaders `json:"security_headers,omitzero"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages []ErrorPage `json:"error_pages,omitzero"`
}

// Port is a socket headgate listens on. A change of its address or protocol needs no restart.
type Port struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Address is the IP address and port number to listen on. IPv6 addresses are in brackets;
	// "[::]:80" includes IPv4. Two active ports of the same transport cannot have the same address.
	Address netip.AddrPort `json:"address,omitzero"`
	// Protocol is the protocol of the port: `http`; `https` for TLS with HTTP/2 and HTTP/1.1, as the
	// client prefers; or `http3` for HTTP/3 over QUIC, which uses UDP. An http3 port can have the
	// address of an https port, which then announces it to clients (Alt-Svc).
	Protocol string `json:"protocol,omitzero"`
	// H2c is whether an http port also accepts HTTP/2 without negotiation (prior knowledge).
	H2c *bool `json:"h2c,omitzero"`
	// TLS are the TLS settings of an https or http3 port.
	TLS *TLS `json:"tls,omitzero"`
	// ProxyProtocol configures which peers send a PROXY protocol header at the beginning of a
	// connection. Absent means none.
	ProxyProtocol *ProxyProtocol `json:"proxy_protocol,omitzero"`
	// Active is whether the port is opened. An inactive port keeps its settings and its place in the
	// lists that name it.
	Active *bool `json:"active,omitzero"`
	// Nodes are the names of the nodes that open the port, as `headgate node list` shows them.
	// Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// DrainTimeout is how long requests in progress can continue after the port is closed or moved,
	// or headgate is stopped. Then their connections are closed.
	DrainTimeout string `json:"drain_timeout,omitzero"`
	// StrictTarget is whether a request target with octets that are not ASCII, such as /café in raw
	// UTF-8, gets 400. Without it they are percent-encoded (/caf%C3%A9) before the request is
	// matched and sent.
	StrictTarget *bool `json:"strict_target,omitzero"`
	// Limits bound what a client of this port may send and how long it may take.
	Limits *Limits `json:"limits,omitzero"`
}

// PortObject is a port with its name, origin and state. The fields of the state are ignored in
// requests.
type PortObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Address is the IP address and port number to listen on. IPv6 addresses are in brackets;
	// "[::]:80" includes IPv4. Two active ports of the same transport cannot have the same address.
	Address netip.AddrPort `json:"address,omitzero"`
	// Protocol is the protocol of the port: `http`; `https` for TLS with HTTP/2 and HTTP/1.1, as the
	// client prefers; or `http3` for HTTP/3 over QUIC, which uses UDP. An http3 port can have the
	// address of an https port, which then announces it to clients (Alt-Svc).
	Protocol string `json:"protocol,omitzero"`
	// H2c is whether an http port also accepts HTTP/2 without negotiation (prior knowledge).
	H2c *bool `json:"h2c,omitzero"`
	// TLS are the TLS settings of an https or http3 port.
	TLS *TLS `json:"tls,omitzero"`
	// ProxyProtocol configures which peers send a PROXY protocol header at the beginning of a
	// connection. Absent means none.
	ProxyProtocol *ProxyProtocol `json:"proxy_protocol,omitzero"`
	// Active is whether the port is opened. An inactive port keeps its settings and its place in the
	// lists that name it.
	Active *bool `json:"active,omitzero"`
	// Nodes are the names of the nodes that open the port, as `headgate node list` shows them.
	// Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// DrainTimeout is how long requests in progress can continue after the port is closed or moved,
	// or headgate is stopped. Then their connections are closed.
	DrainTimeout string `json:"drain_timeout,omitzero"`
	// StrictTarget is whether a request target with octets that are not ASCII, such as /café in raw
	// UTF-8, gets 400. Without it they are percent-encoded (/caf%C3%A9) before the request is
	// matched and sent.
	StrictTarget *bool `json:"strict_target,omitzero"`
	// Limits bound what a client of this port may send and how long it may take.
	Limits *Limits `json:"limits,omitzero"`
}

// Preflight is what a look before an order has found.
type Preflight struct {
	// Name is what the certificate is called.
	Name string `json:"name"`
	// Blocked means that an order would fail and is not placed.
	Blocked bool `json:"blocked"`
	// Trouble is why.
	Trouble *OrderProblem `json:"trouble,omitempty"`
	// Warnings are potential problems; the order may still succeed.
	Warnings []string `json:"warnings"`
	// Challenges are how the authority would be shown that the hosts are ours.
	Challenges []ChosenChallenge `json:"challenges"`
}

// PreviousProcess is a process that was replaced and still has connections.
type PreviousProcess struct {
	// Pid is the process.
	Pid int `json:"pid"`
	// Version is the version of its program.
	Version string `json:"version"`
	// Generation is the number of the process.
	Generation int `json:"generation"`
	// Since is when it was replaced.
	Since time.Time `json:"since"`
	// Connections is how many connections it still has.
	Connections int `json:"connections"`
}

// ProbeInput names a server to test before it is configured.
type ProbeInput struct {
	// URL is the address of the server: `http://10.0.0.7:3000`.
	URL string `json:"url"`
	// Host is the Host header of the request; without it that of the URL.
	Host string `json:"host,omitempty"`
}

// Problem is the answer to a request that was refused (RFC 9457).
type Problem struct {
	// Type is required by RFC 9457; it carries no more information than the code.
	Type string `json:"type"`
	// Title is the meaning of the code.
	Title string `json:"title"`
	// Status is the status of the response.
	Status int `json:"status"`
	// Code is a keyword from the table of codes.
	Code string `json:"code"`
	// Pointer is the position in the body, as a JSON pointer (RFC 6901). For a problem in
	// configuration files, it is the position in the configuration.
	Pointer string `json:"pointer,omitempty"`
	// Parameter is the affected query parameter or header.
	Parameter string `json:"parameter,omitempty"`
	// Detail describes what is wrong.
	Detail string `json:"detail"`
	// Remedy is how to fix it.
	Remedy string `json:"remedy,omitempty"`
	// Grant is what a change would grant behind a gate, if it was rejected because of that.
	Grant string `json:"grant,omitempty"`
	// Problems are all problems, if there are several.
	Problems []Mistake `json:"problems,omitempty"`
	// Current is the current object, if the change was based on an older one.
	Current json.RawMessage `json:"current,omitempty"`
}

// PromoteInput says how a machine becomes the leader.
type PromoteInput struct {
	// Alone promotes the machine although the other one cannot be reached. Changes that the other
	// one has made and this one has not are lost.
	Alone bool `json:"alone,omitempty"`
	// Why is recorded in the audit log.
	Why string `json:"why,omitempty"`
}

// Provider is the state of a provider of discovered objects.
type Provider struct {
	// Name is the name of the provider's entry in discovery.
	Name string `json:"name"`
	// Type is docker, http or agent.
	Type string `json:"type"`
	// Endpoint is the address of its API, the URL of its document, or the address of its machine.
	Endpoint string `json:"endpoint"`
	// State is connecting until the first response, then running or error; stale while an agent does
	// not report and its objects are still active.
	State string `json:"state"`
	// Since is when the state changed last.
	Since time.Time `json:"since,omitzero"`
	// Reason is why it is in error. The objects that it found before remain active.
	Reason string `json:"reason,omitempty"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
	// Objects is the number of active objects that it found.
	Objects int `json:"objects"`
	// Issues are what it found and headgate cannot use.
	Issues []DiscoveryIssue `json:"issues"`
}

// ProviderFields are the credentials of a provider.
type ProviderFields struct {
	// Name is the name of the provider.
	Name string `json:"name"`
	// Required are the names of its required credentials.
	Required []string `json:"required"`
	// Optional are the names of its optional credentials.
	Optional []string `json:"optional"`
}

// Proxy is a set of virtual hosts and the routes that answer for them.
type Proxy struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// VirtualHosts are the host names of the proxy: an exact name ("shop.example.com"), a wildcard
	// for one label ("*.example.com"), or an RE2 expression from ~^ to $
	// ("~^shop[0-9]+\.example\.com$"). Exact names take precedence over wildcards, wildcards over
	// expressions. Empty means every host that no other proxy has. Names are compared in lower case
	// and in their ASCII form, without a port.
	VirtualHosts []string `json:"virtual_hosts,omitzero"`
	// Ports names the ports of the proxy. Empty means all.
	Ports []string `json:"ports,omitzero"`
	// Active is whether the proxy takes requests. An inactive proxy is checked and otherwise
	// ignored.
	Active *bool `json:"active,omitzero"`
	// ShareHosts is whether container labels can add paths to the hosts of the proxy, and use hosts
	// that match its wildcards and expressions. Paths of the proxy itself always take precedence.
	ShareHosts *bool `json:"share_hosts,omitzero"`
	// HostHeader is the Host that servers get: `preserve` for what the client sent, `upstream` for
	// the host and port of the server's URL, or a fixed value, sent as it is.
	HostHeader string `json:"host_header,omitzero"`
	// ForwardedStyle is the form of the forwarded fields: `compat` sends forwarded with commas
	// (for=…, host=…, proto=…) and the x-forwarded fields; `rfc7239` sends forwarded with
	// semicolons as RFC 7239 writes it, and the x-forwarded fields; `off` sends none of them.
	ForwardedStyle string `json:"forwarded_style,omitzero"`
	// ViaStyle is the form of the Via field: `compat` sends the fixed token proxy; `rfc9110` sends
	// the protocol version and a name.
	ViaStyle string `json:"via_style,omitzero"`
	// ACME is the entry by which the virtual hosts get certificates, or `none`. Absent means the
	// entry that is the default, if one is. Hosts that another certificate covers already get none.
	ACME string `json:"acme,omitzero"`
	// OnDemand orders certificates when a client first connects with a host that matches a wildcard
	// or an expression, or that no other proxy has. It needs an ACME entry. The handshake waits for
	// at most 9 seconds; a host that is refused gets the TLS alert unrecognized_name. Absent means
	// that such hosts get no certificates of their own.
	OnDemand *OnDemand `json:"on_demand,omitzero"`
	// AccessLog changes the access log for this proxy. Absent means as configured for all.
	AccessLog *ProxyLog `json:"access_log,omitzero"`
	// Use names policies, whose features apply as if they were set here. If two set the same
	// feature, the later one applies; features that are set here take precedence over policies.
	Use []string `json:"use,omitzero"`
	// ClientIP configures which peers are trusted to report the client's address. By default none
	// is: the client's address is that of the connection.
	ClientIP *ClientIP `json:"client_ip,omitzero"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *RateLimit `json:"rate_limit,omitzero"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same proxy: to 443,
	// or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods 308.
	RedirectHTTPToHTTPS *string `json:"redirect_http_to_https,omitzero"`
	// CORS lets pages of other origins read responses.
	CORS *CORS `json:"cors,omitzero"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *Maintenance `json:"maintenance,omitzero"`
	// Redirects send clients from one path to another, or to another host.
	Redirects []RedirectRule `json:"redirects,omitzero"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no limit, which
	// is also the default.
	RequestBodyLimit *string `json:"request_body_limit,omitzero"`
	// RequestTimeout is the time until a server's response head, for each attempt; then 504. 0
	// switches it off. Bodies and upgraded connections have idle time-outs and no total. Absent
	// means that the value is inherited; the default is 60s.
	RequestTimeout *string `json:"request_timeout,omitzero"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitzero"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *BasicAuth `json:"basic_auth,omitzero"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get its
	// response.
	ForwardAuth *ForwardAuth `json:"forward_auth,omitzero"`
	// Rewrite changes the path that a server gets.
	Rewrite *Rewrite `json:"rewrite,omitzero"`
	// Headers change header fields of requests and responses.
	Headers []HeaderRule `json:"headers,omitzero"`
	// Cache keeps responses in memory and answers with them.
	Cache *Cache `json:"cache,omitzero"`
	// Compression compresses responses for clients that support it.
	Compression *Compression `json:"compression,omitzero"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *SecurityHeaders `json:"security_headers,omitzero"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages []ErrorPage `json:"error_pages,omitzero"`
	// Routes are the paths the proxy answers and what answers there. Their order does not matter:
	// the longest path wins.
	Routes []Route `json:"routes,omitzero"`
}

// ProxyLog changes the access log for one proxy.
type ProxyLog struct {
	// Enabled is whether requests of this proxy are logged; of a TCP or UDP proxy, connections or
	// sessions.
	Enabled *bool `json:"enabled,omitzero"`
	// Path is `stdout`, `stderr` or a file that they are logged to, in the form and with the fields
	// of the common access log. Several proxies may name one file. It is opened again as the common
	// one is. Absent is the path of the common log.
	Path string `json:"path,omitzero"`
}

// ProxyObject is a proxy with its name, origin and state. The fields of the state are ignored in
// requests.
type ProxyObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`
	// Servers counts the servers of the proxy. A server of two routes counts twice.
	Servers ServerCount `json:"servers"`
	// Issues are what is wrong with it now.
	Issues []string `json:"issues,omitempty"`
	// Recent counts the requests of the last five minutes.
	Recent Traffic `json:"recent"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// VirtualHosts are the host names of the proxy: an exact name ("shop.example.com"), a wildcard
	// for one label ("*.example.com"), or an RE2 expression from ~^ to $
	// ("~^shop[0-9]+\.example\.com$"). Exact names take precedence over wildcards, wildcards over
	// expressions. Empty means every host that no other proxy has. Names are compared in lower case
	// and in their ASCII form, without a port.
	VirtualHosts []string `json:"virtual_hosts,omitzero"`
	// Ports names the ports of the proxy. Empty means all.
	Ports []string `json:"ports,omitzero"`
	// Active is whether the proxy takes requests. An inactive proxy is checked and otherwise
	// ignored.
	Active *bool `json:"active,omitzero"`
	// ShareHosts is whether container labels can add paths to the hosts of the proxy, and use hosts
	// that match its wildcards and expressions. Paths of the proxy itself always take precedence.
	ShareHosts *bool `json:"share_hosts,omitzero"`
	// HostHeader is the Host that servers get: `preserve` for what the client sent, `upstream` for
	// the host and port of the server's URL, or a fixed value, sent as it is.
	HostHeader string `json:"host_header,omitzero"`
	// ForwardedStyle is the form of the forwarded fields: `compat` sends forwarded with commas
	// (for=…, host=…, proto=…) and the x-forwarded fields; `rfc7239` sends forwarded with
	// semicolons as RFC 7239 writes it, and the x-forwarded fields; `off` sends none of them.
	ForwardedStyle string `json:"forwarded_style,omitzero"`
	// ViaStyle is the form of the Via field: `compat` sends the fixed token proxy; `rfc9110` sends
	// the protocol version and a name.
	ViaStyle string `json:"via_style,omitzero"`
	// ACME is the entry by which the virtual hosts get certificates, or `none`. Absent means the
	// entry that is the default, if one is. Hosts that another certificate covers already get none.
	ACME string `json:"acme,omitzero"`
	// OnDemand orders certificates when a client first connects with a host that matches a wildcard
	// or an expression, or that no other proxy has. It needs an ACME entry. The handshake waits for
	// at most 9 seconds; a host that is refused gets the TLS alert unrecognized_name. Absent means
	// that such hosts get no certificates of their own.
	OnDemand *OnDemand `json:"on_demand,omitzero"`
	// AccessLog changes the access log for this proxy. Absent means as configured for all.
	AccessLog *ProxyLog `json:"access_log,omitzero"`
	// Use names policies, whose features apply as if they were set here. If two set the same
	// feature, the later one applies; features that are set here take precedence over policies.
	Use []string `json:"use,omitzero"`
	// ClientIP configures which peers are trusted to report the client's address. By default none
	// is: the client's address is that of the connection.
	ClientIP *ClientIP `json:"client_ip,omitzero"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *RateLimit `json:"rate_limit,omitzero"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same proxy: to 443,
	// or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods 308.
	RedirectHTTPToHTTPS *string `json:"redirect_http_to_https,omitzero"`
	// CORS lets pages of other origins read responses.
	CORS *CORS `json:"cors,omitzero"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *Maintenance `json:"maintenance,omitzero"`
	// Redirects send clients from one path to another, or to another host.
	Redirects []RedirectRule `json:"redirects,omitzero"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no limit, which
	// is also the default.
	RequestBodyLimit *string `json:"request_body_limit,omitzero"`
	// RequestTimeout is the time until a server's response head, for each attempt; then 504. 0
	// switches it off. Bodies and upgraded connections have idle time-outs and no total. Absent
	// means that the value is inherited; the default is 60s.
	RequestTimeout *string `json:"request_timeout,omitzero"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitzero"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *BasicAuth `json:"basic_auth,omitzero"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get its
	// response.
	ForwardAuth *ForwardAuth `json:"forward_auth,omitzero"`
	// Rewrite changes the path that a server gets.
	Rewrite *Rewrite `json:"rewrite,omitzero"`
	// Headers change header fields of requests and responses.
	Headers []HeaderRule `json:"headers,omitzero"`
	// Cache keeps responses in memory and answers with them.
	Cache *Cache `json:"cache,omitzero"`
	// Compression compresses responses for clients that support it.
	Compression *Compression `json:"compression,omitzero"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *SecurityHeaders `json:"security_headers,omitzero"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages []ErrorPage `json:"error_pages,omitzero"`
	// Routes are the paths the proxy answers and what answers there. Their order does not matter:
	// the longest path wins.
	Routes []Route `json:"routes,omitzero"`
}

// ProxyProtocol configures the load balancers in front that send the client's address in a PROXY
// protocol header, version 1 or 2. The address in the header becomes the client's address for
// all features.
type ProxyProtocol struct {
	// Trusted are the addresses and networks of the peers that send a header. The header is
	// required: a connection from them without one is closed. A header from other peers is not
	// parsed, and makes the request malformed.
	Trusted []string `json:"trusted,omitzero"`
	// Timeout is the time for the header to arrive. Then the connection is closed.
	Timeout string `json:"timeout,omitzero"`
}

// ProxyState is the state of a proxy.
type ProxyState struct {
	// Name is the proxy's name.
	Name string `json:"name"`
	// VirtualHosts are the virtual hosts of the configuration.
	VirtualHosts []string `json:"virtual_hosts,omitempty"`
	// Origin is where the proxy comes from: "shop.yaml:12:3".
	Origin string `json:"origin,omitempty"`
	// Issues are what needs an operator, such as issues of discovery.
	Issues []string `json:"issues,omitempty"`
	// State is active; degraded when a server takes no requests, or a route fails open or is down;
	// down when clients get an error on every route with servers, which is so unless a server of it
	// is healthy or has answered a request within the last check interval; maintenance when every
	// route is closed for it; or inactive.
	State string `json:"state"`
	// Since is when the state of the proxy began.
	Since time.Time `json:"since,omitzero"`
	// Reason is the route that causes the state, or the number of routes that are closed for
	// maintenance.
	Reason string `json:"reason,omitempty"`
	// FailingOpen is the number of routes whose servers are all unhealthy, and one of which responds
	// nevertheless.
	FailingOpen int `json:"failing_open,omitempty"`
	// Down is the number of routes whose clients get 502 or 503.
	Down int `json:"down,omitempty"`
	// Healthy is the number of healthy servers. A server of two routes counts twice.
	Healthy int `json:"healthy"`
	// Unknown is the number of servers whose health is not known yet.
	Unknown int `json:"unknown"`
	// Total is the number of all servers.
	Total int `json:"total"`
	// GateBypasses are the requests that pass the gate of the proxy without a sign-in.
	GateBypasses []string `json:"gate_bypasses,omitempty"`
	// Routes are the routes with servers.
	Routes []RouteState `json:"routes,omitempty"`
}

// Purge is what was taken out.
type Purge struct {
	// Purged is how many responses there were, or are in a dry run.
	Purged int `json:"purged"`
	// Caches is of how many caches.
	Caches int `json:"caches"`
}

// PurgeInput selects what to remove from caches: one of url, prefix, tag and all.
type PurgeInput struct {
	// Proxy restricts it to the caches of one proxy; the default is all.
	Proxy string `json:"proxy,omitempty"`
	// URL removes the stored responses of one URL, for both schemes.
	URL string `json:"url,omitempty"`
	// Prefix takes out what is stored of addresses that begin so.
	Prefix string `json:"prefix,omitempty"`
	// Tag removes responses with this tag in Cache-Tag, Surrogate-Key, xkey or Cache-Groups.
	Tag string `json:"tag,omitempty"`
	// All removes everything.
	All bool `json:"all,omitempty"`
	// Soft marks responses as stale instead of removing them.
	Soft bool `json:"soft,omitempty"`
}

// Queue is where requests wait when every server of the route has its max_requests. If the queue
// is full, or a request waits too long, the response is 503.
type Queue struct {
	// Length is how many requests may wait. 0 lets none wait.
	Length *int `json:"length,omitzero"`
	// Timeout is how long a request may wait.
	Timeout string `json:"timeout,omitzero"`
}

// QueueState is the state of a webhook or notice.
type QueueState struct {
	// Name is the name of the webhook or notice.
	Name string `json:"name"`
	// Node is the machine that sends the messages of all, where several share the store.
	Node string `json:"node,omitempty"`
	// Sent is how many messages were taken.
	Sent int64 `json:"sent"`
	// Missed counts gaps: events that were dropped before they were sent.
	Missed int64 `json:"missed"`
	// Waiting are messages that will be sent again.
	Waiting []DeadLetter `json:"waiting"`
	// Dead are messages that the receiver did not accept for a day.
	Dead []DeadLetter `json:"dead"`
	// Lost is how many dead letters were too many to keep.
	Lost int64 `json:"lost"`
	// Held is how many events are collected for the next message of a notice.
	Held int `json:"held"`
	// Release is when that message is sent.
	Release time.Time `json:"release,omitzero"`
	// Failures is how many attempts in a row did not reach the receiver.
	Failures int `json:"failures"`
	// PausedUntil is when it is tried again.
	PausedUntil time.Time `json:"paused_until,omitzero"`
	// LastTry is when a message was sent last.
	LastTry time.Time `json:"last_try,omitzero"`
	// LastStatus is the status that came back, 0 without an answer.
	LastStatus int `json:"last_status"`
	// LastError is why it was not taken.
	LastError string `json:"last_error,omitempty"`
}

// QueueTest is the result of a test message.
type QueueTest struct {
	// Taken is whether the receiver accepted it.
	Taken bool `json:"taken"`
	// Status is the status of the answer, or the code of an SMTP reply; 0 without an answer.
	Status int `json:"status"`
	// Answer is what the service answered, without secrets. Answers to webhooks are not shown.
	Answer string `json:"answer,omitempty"`
	// Error is why it was not accepted.
	Error string `json:"error,omitempty"`
	// DurationMS is how long it took, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
}

// Quiet are hours of every day in which messages wait.
type Quiet struct {
	// From is when they start, as hh:mm.
	From string `json:"from,omitzero"`
	// Until is when they end, as hh:mm. If it is before from, it is on the next day.
	Until string `json:"until,omitzero"`
	// Zone is the time zone. Absent means that of the machine.
	Zone string `json:"zone,omitzero"`
}

// RateLimit limits the requests of each client. Each client has a token bucket, which holds
// burst requests and is refilled with requests in each period. A proxy's limit is shared by its
// routes, except those with their own limit. Requests over the limit get 429.
type RateLimit struct {
	// Enabled is whether the limit is active. `enabled: false` on a route overrides the proxy's
	// setting; the route's requests are then not counted.
	Enabled *bool `json:"enabled,omitzero"`
	// Requests is the number of requests that a client can make in each period, on average. It is
	// required.
	Requests *int `json:"requests,omitzero"`
	// Period is the time over which requests are counted: {requests: 600, period: 1m} allows ten a
	// second.
	Period string `json:"period,omitzero"`
	// Burst is the number of requests that a client can make at once after a pause. Absent means the
	// value of requests.
	Burst *int `json:"burst,omitzero"`
	// Key identifies clients: `client_ip` is their address, or the /64 network of an IPv6 address;
	// `header:NAME` or `cookie:NAME` the value of a header or cookie; `user` the authenticated user;
	// `country` or `asn` the country or network of the address, from the databases in geo. Requests
	// without a value, or with an unknown country, are counted by address.
	Key string `json:"key,omitzero"`
	// Mode is `enforce`, or `observe` to count and log requests over the limit without rejecting
	// them.
	Mode string `json:"mode,omitzero"`
	// Exempt are the addresses of clients that are not counted: addresses, networks, list:NAME,
	// country:DE or asn:64500.
	Exempt []string `json:"exempt,omitzero"`
}

// Readiness is how ready a proxy is for the cutover.
type Readiness struct {
	// Proxy is the proxy's name; empty for requests that belong to none.
	Proxy string `json:"proxy"`
	// Requests is how many were compared.
	Requests int `json:"requests"`
	// Ready is how many of them are answered alike.
	Ready int `json:"ready"`
	// Percent is their share, rounded down, so that 100 means all.
	Percent int `json:"percent"`
	// Reasons are the differences, the most important and most frequent first.
	Reasons []ComparisonReason `json:"reasons"`
}

// Recent configures the last requests that are kept in memory, for logs/access of the API and
// its live stream. It does not depend on access_log.enabled; proxies with a disabled access_log
// are not included.
type Recent struct {
	// Enabled is whether the last requests are kept. Disabled, it has no cost.
	Enabled *bool `json:"enabled,omitzero"`
	// MemoryLimit is the maximum memory for recent requests. It is allocated as needed. When it is
	// full, the oldest requests are removed; requests that failed or were slow are kept longer.
	MemoryLimit string `json:"memory_limit,omitzero"`
}

// RecoveryCodes are for a lost authenticator.
type RecoveryCodes struct {
	// RecoveryCodes serve once each. They are shown once.
	RecoveryCodes []string `json:"recovery_codes"`
}

// Redirect is an address to register at a provider.
type Redirect struct {
	// Provider is the name of the provider.
	Provider string `json:"provider"`
	// URI is the redirect URI.
	URI string `json:"uri"`
	// AfterCutover is whether it is needed only when headgate has the usual port.
	AfterCutover bool `json:"after_cutover"`
}

// RedirectRule redirects paths that match a regular expression to another URL. The first rule of
// the list that matches is used; a route's list replaces its proxy's.
type RedirectRule struct {
	// Regex is the RE2 expression. It is matched anywhere in the normalized path, which begins with
	// a slash and has no query. Use ^ and $ to match the ends.
	Regex string `json:"regex,omitzero"`
	// Target is where clients are redirected: a path, or a URL that begins with http://, https:// or
	// {scheme}://. $1 and ${name} are replaced by groups of the match, $$ by a dollar sign, and
	// {host}, {path}, {query} and the other variables of header values by values of the request. The
	// query of the request is kept, unless the target contains a ?.
	Target string `json:"target,omitzero"`
	// Status is 301, 302, 303, 307 or 308. Browsers cache 301 and 308 for a long time; after 307 and
	// 308 they submit a form again, to the new URL.
	Status *int `json:"status,omitzero"`
}

// Refused is a configuration that was refused.
type Refused struct {
	// Since is when it was tried.
	Since time.Time `json:"since"`
	// Problems are the mistakes in it with their places, or what went wrong; the first hundred.
	Problems []string `json:"problems"`
}

// RenameInput is the new name of an object.
type RenameInput struct {
	// Name is the new name.
	Name string `json:"name"`
}

// Renewal is when an authority suggests to renew (RFC 9773).
type Renewal struct {
	// Start is the beginning of the suggested window.
	Start time.Time `json:"start"`
	// End ends it.
	End time.Time `json:"end"`
	// At is the moment in it that was chosen.
	At time.Time `json:"at"`
	// Explanation is a page of the authority's.
	Explanation string `json:"explanation,omitempty"`
}

// Report is what a comparison found.
type Report struct {
	// Old is the address of the old side.
	Old ComparisonSide `json:"old"`
	// New is the address of the new side.
	New ComparisonSide `json:"new"`
	// Began is the time of the first request.
	Began time.Time `json:"began"`
	// TookS is the total duration, in seconds.
	TookS float64 `json:"took_s"`
	// Requests is how many were compared.
	Requests int `json:"requests"`
	// Ready is how many of them are answered alike.
	Ready int `json:"ready"`
	// Percent is their share, rounded down, so that 100 means all.
	Percent int `json:"percent"`
	// Proxies are the proxies, the least ready first.
	Proxies []Readiness `json:"proxies"`
	// Results are the requests with differences, in the order in which they were sent.
	Results []ComparisonResult `json:"results"`
	// Notes say what was not compared, and what else to check.
	Notes []string `json:"notes"`
}

// Request is one recent request, connection or session, as people see it. Fields that do not
// apply are empty.
type Request struct {
	// Time is when the head of the request was complete, or the connection begun.
	Time time.Time `json:"time"`
	// RequestID is the request id; "" for connections and sessions.
	RequestID string `json:"request_id,omitempty"`
	// Proto is what the client speaks: "HTTP/1.1", "tcp", …
	Proto string `json:"proto"`
	// ClientIP is the client's address.
	ClientIP string `json:"client_ip,omitempty"`
	// Country is the country of the client, unknown if the database does not have it; absent without
	// a database, and for connections and sessions.
	Country string `json:"country,omitempty"`
	// ASN is the number of the network of the client; absent if it is not known.
	ASN int `json:"asn,omitempty"`
	// Method is that of the request.
	Method string `json:"method,omitempty"`
	// Scheme is http or https.
	Scheme string `json:"scheme,omitempty"`
	// Ech is whether the client's TLS handshake hid the host (Encrypted Client Hello).
	Ech bool `json:"ech,omitempty"`
	// Host is the requested host; for a connection, the server name in TLS.
	Host string `json:"host,omitempty"`
	// Path is the path, and Query what follows it without its question mark.
	Path string `json:"path,omitempty"`
	// Query is what follows the path, without its question mark.
	Query string `json:"query,omitempty"`
	// Status is the status of the response; 0 for connections and sessions.
	Status int `json:"status,omitempty"`
	// Reason is why a response is our own, or why it broke off.
	Reason string `json:"reason,omitempty"`
	// Cause says more, in one line.
	Cause string `json:"cause,omitempty"`
	// Port is the name of the port.
	Port string `json:"port,omitempty"`
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy,omitempty"`
	// Route is the path of the route.
	Route string `json:"route,omitempty"`
	// Server is the server that answered or was tried last.
	Server string `json:"server,omitempty"`
	// Attempts is how many servers were tried.
	Attempts int `json:"attempts,omitempty"`
	// Cache is what the cache made of the request.
	Cache string `json:"cache,omitempty"`
	// User is who signed in at the proxy.
	User string `json:"user,omitempty"`
	// UserAgent is the client's field of that name.
	UserAgent string `json:"user_agent,omitempty"`
	// Referer is the client's field of that name.
	Referer string `json:"referer,omitempty"`
	// BytesSent is how many bytes of body the client got.
	BytesSent int64 `json:"bytes_sent"`
	// BytesReceived is how many bytes of body came from the client.
	BytesReceived int64 `json:"bytes_received"`
	// DurationMS is the total duration, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
	// ConnectMS is the time to connect to the server, in milliseconds.
	ConnectMS float64 `json:"connect_ms,omitempty"`
	// UpstreamHeadMS is the time until the server's response head, in milliseconds.
	UpstreamHeadMS float64 `json:"upstream_head_ms,omitempty"`
}

// ResendInput is the dead letter to send again.
type ResendInput struct {
	// Event is the id of its event.
	Event int64 `json:"event"`
}

// Reset is the result of a reset.
type Reset struct {
	// Port is the name of the port, or of the TCP or UDP proxy.
	Port string `json:"port"`
	// Closed is how many connections or sessions were closed, or would be in a dry run.
	Closed int `json:"closed"`
	// State is the state after the reset: listening, draining, waiting, permission_denied or error.
	State string `json:"state"`
	// Address is the configured address.
	Address string `json:"address"`
	// Reason is a keyword for why it does not listen.
	Reason string `json:"reason,omitempty"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
}

// ResetInput is the body of a reset.
type ResetInput struct {
	// Why is the reason for the reset, for the event and the audit log.
	Why string `json:"why,omitempty"`
}

// ResponseDifference is a request with different responses.
type ResponseDifference struct {
	// Time is when the difference was last seen.
	Time time.Time `json:"time"`
	// Requests is how often it was seen.
	Requests int64 `json:"requests"`
	// Method is the method of the request.
	Method string `json:"method"`
	// Path is the path of the request, without its query, whose values can be secrets.
	Path string `json:"path"`
	// Kind is the first difference.
	Kind string `json:"kind"`
	// Servers is the response of the route's server.
	Servers ComparedResponse `json:"servers"`
	// Mirror is the response of the mirror's server.
	Mirror ComparedResponse `json:"mirror"`
	// Field is the name of the first header field that differs, in lower case, of the kind header.
	Field string `json:"field,omitempty"`
}

// ResponseStats is what was counted of one side.
type ResponseStats struct {
	// Failed are requests without a response.
	Failed int64 `json:"failed"`
	// P50MS is the median of the time to the response head, in milliseconds.
	P50MS float64 `json:"p50_ms"`
	// P95MS is the 95th percentile of the time to the response head, in milliseconds.
	P95MS float64 `json:"p95_ms"`
}

// Result is what an upgrade has done.
type Result struct {
	// Pid is the new process.
	Pid int `json:"pid"`
	// Version is the version of its program.
	Version string `json:"version"`
	// From is the version of the previous program.
	From string `json:"from"`
	// Generation is the number of the new process.
	Generation int `json:"generation"`
	// TookSeconds is how long it took until the new process served, in seconds.
	TookSeconds float64 `json:"took_seconds"`
	// Connections is how many connections the process before still has.
	Connections int `json:"connections"`
}

// Retry configures when a request is sent again, to another server. If no connection to a server
// can be established, the server has not received the request, and the next one is always tried,
// independent of these settings. Otherwise a request is sent again only if that is safe: the
// method is idempotent (GET, HEAD, OPTIONS, TRACE, PUT, DELETE), its body is not longer than
// 64KiB, and no part of a response was sent to the client.
type Retry struct {
	// Attempts is the maximum number of attempts, including the first: 2 is one retry, 1 is none.
	// Failed connections do not count.
	Attempts *int `json:"attempts,omitzero"`
	// On are the failures that are retried: `connect`, no connection, which is always included;
	// `reset`, the server closed the connection before its response; `timeout`, no response head
	// within request_timeout; the statuses `502`, `503`, `504`, or a range of them, `502-504`.
	// Absent means connect.
	On []string `json:"on,omitzero"`
	// Budget is the maximum number of retries for each hundred requests of the route in the last ten
	// seconds, besides two a second, so that retries cannot make an outage worse. Failed connections
	// do not count.
	Budget *int `json:"budget,omitzero"`
}

// Revision is a revision.
type Revision struct {
	// Number grows with every revision.
	Number int `json:"number"`
	// When is when it was applied.
	When time.Time `json:"when"`
	// Who is the operator, "" if unknown.
	Who string `json:"who,omitempty"`
	// Why is the reason that the operator gave.
	Why string `json:"why,omitempty"`
	// Via is the interface: api, console, file, cli, docker, http or agent.
	Via string `json:"via"`
	// Changes are the objects that were added, changed or removed, each as KIND/NAME; * for very
	// many. It is absent where that is not known.
	Changes []string `json:"changes,omitempty"`
	// Cutover is whether the revision moved ports to or from the addresses of another proxy.
	Cutover bool `json:"cutover,omitempty"`
	// State is applied, confirmed or rolled_back.
	State string `json:"state"`
	// ETag is that of the configuration as it was.
	ETag string `json:"etag"`
	// Documents are the texts; a list of revisions has the names only.
	Documents []RevisionDocument `json:"documents"`
}

// RevisionDocument is a document of a revision.
type RevisionDocument struct {
	// Name is the name of the file.
	Name string `json:"name"`
	// Size is how many bytes it has.
	Size int `json:"size"`
	// Text is its content.
	Text string `json:"text,omitempty"`
}

// Rewrite changes the path that servers get. It is applied after the route's path was stripped
// (to the whole path with strip_prefix: false) and before the server's base path is added.
type Rewrite struct {
	// Enabled is whether the rewrite is active. `enabled: false` on a route overrides the proxy's
	// setting.
	Enabled *bool `json:"enabled,omitzero"`
	// Regex is an RE2 expression that is matched anywhere in the path; every match is replaced. Use
	// ^ and $ to match the ends.
	Regex string `json:"regex,omitzero"`
	// Replacement is the text that replaces each match. $1 and ${name} are replaced by groups of the
	// match, $$ by a dollar sign.
	Replacement string `json:"replacement,omitzero"`
	// AddPrefix is added in front of the path, after regex and replacement.
	AddPrefix string `json:"add_prefix,omitzero"`
	// RewriteResponse also changes Location, Content-Location and the paths of cookies in the
	// response, so that they are valid for the client, whose paths differ from the server's. This is
	// also done for routes without a rewrite; false disables it.
	RewriteResponse *bool `json:"rewrite_response,omitzero"`
}

// Rollback compares the candidate with the stable servers, in the same time window, once a
// second. If the candidate is worse, it gets no requests until an operator promotes or restarts
// the split. It is worse only if that is no coincidence: by an exact test with an error
// probability of 0.0001 for errors, and by the 99% confidence bounds of both 95th percentiles
// for times.
type Rollback struct {
	// Enabled is whether the groups are compared.
	Enabled *bool `json:"enabled,omitzero"`
	// ErrorsAbove is how many times the stable servers' error ratio the candidate may have: `1x` to
	// `100x`, or `off`. Errors are responses with status 500 to 599, and requests that no server has
	// answered. Fewer than 5 errors never count.
	ErrorsAbove string `json:"errors_above,omitzero"`
	// SlowerThan is how many times the stable servers' 95th percentile of the time to the response
	// head the candidate may have: `1x` to `100x`, or `off`. Less than 5ms never counts.
	SlowerThan string `json:"slower_than,omitzero"`
	// Within is the time window that is compared.
	Within string `json:"within,omitzero"`
	// MinRequests is how many requests both groups must have had in the window; with fewer, nothing
	// is decided.
	MinRequests *int `json:"min_requests,omitzero"`
}

// Route is a path prefix and what answers there: exactly one of servers, fixed_response, files
// and sign_in. Every feature set on a route replaces the proxy's.
type Route struct {
	// Path is matched as a prefix of whole segments: /api takes /api and /api/users, not /apis. The
	// longest path of all proxies of a host wins. A slash at its end makes no difference.
	Path string `json:"path,omitzero"`
	// Matchers restrict the requests that match the route, by method, header and query. Absent means
	// that all requests with its path match.
	Matchers *Matchers `json:"matchers,omitzero"`
	// Servers are the upstream servers that share the route's requests.
	Servers []Server `json:"servers,omitzero"`
	// FixedResponse makes the route answer by itself.
	FixedResponse *FixedResponse `json:"fixed_response,omitzero"`
	// SignIn makes the route the sign-in page of the applications behind a gate. It needs a proxy
	// with one host and no other route.
	SignIn *RouteSignIn `json:"sign_in,omitzero"`
	// Files makes the route serve the files of a folder.
	Files *Files `json:"files,omitzero"`
	// Fastcgi is the folder of the scripts that servers with an `fcgi` URL run.
	Fastcgi *FastCGI `json:"fastcgi,omitzero"`
	// StripPrefix is whether the route's path is stripped before the path is joined to the server's
	// base path.
	StripPrefix *bool `json:"strip_prefix,omitzero"`
	// LoadBalancing is how requests are shared among servers, by their weights: `round_robin` in
	// turn, spread evenly; `least_connections` to the one with the fewest running requests;
	// `p2c_ewma` to the one of two drawn that will likely answer sooner; `random`; `first` to the
	// first of the list that can take it; `client_ip_hash`, `hash:header:NAME`, `hash:cookie:NAME`
	// and `hash:path` always to the same one for an address, field, cookie or path.
	LoadBalancing string `json:"load_balancing,omitzero"`
	// HealthCheck checks the health of the servers. Unhealthy servers get no requests. Absent means
	// no checks.
	HealthCheck *HealthCheck `json:"health_check,omitzero"`
	// FailOpen is whether requests are sent to all servers when every server is unhealthy or
	// ejected, so that a wrong health check does not take a site down. With `false` the response is
	// then 503.
	FailOpen *bool `json:"fail_open,omitzero"`
	// Ejection excludes servers that fail requests for a limited time.
	Ejection *Ejection `json:"ejection,omitzero"`
	// CircuitBreaker stops sending requests to a server for a while if too many of its responses are
	// errors. Absent means no circuit breaker.
	CircuitBreaker *CircuitBreaker `json:"circuit_breaker,omitzero"`
	// SlowStart is the time in which a server that is healthy again, or no longer ejected, reaches
	// its full share of requests. With 0 it gets its full share immediately.
	SlowStart string `json:"slow_start,omitzero"`
	// Queue is where requests wait when every server has max_requests requests.
	Queue *Queue `json:"queue,omitzero"`
	// StickyCookie keeps a client at the server that answered it first.
	StickyCookie *StickyCookie `json:"sticky_cookie,omitzero"`
	// Split sends a share of the clients to the servers with `group: candidate`, and stops if these
	// servers respond worse than the others.
	Split *Split `json:"split,omitzero"`
	// Mirror sends copies of requests to other servers, to test them.
	Mirror *Mirror `json:"mirror,omitzero"`
	// Retry configures when a request is sent again, to another server.
	Retry *Retry `json:"retry,omitzero"`
	// Timeouts limits the time of requests to the route's servers.
	Timeouts *Timeouts `json:"timeouts,omitzero"`
	// AllowTrace is whether TRACE requests go to the route's servers, which answer with the request
	// as they got it. Otherwise they get 405.
	AllowTrace *bool `json:"allow_trace,omitzero"`
	// AmbiguousPaths is how to handle a request whose path a server could interpret as that of a
	// more restricted route of the host, such as `/ADMIN`, `/admin;x` or `/x/..%2fadmin` if `/admin`
	// requires a password: `refuse` responds with 400, `allow` forwards it. Use `allow` only if the
	// route's servers interpret paths as headgate does.
	AmbiguousPaths string `json:"ambiguous_paths,omitzero"`
	// Use names policies, whose features apply as if they were set here. If two set the same
	// feature, the later one applies; features that are set here take precedence over policies.
	Use []string `json:"use,omitzero"`
	// ClientIP configures which peers are trusted to report the client's address. By default none
	// is: the client's address is that of the connection.
	ClientIP *ClientIP `json:"client_ip,omitzero"`
	// IPFilter allows clients by address; others get 403.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// RateLimit limits the requests of each client; more get 429.
	RateLimit *RateLimit `json:"rate_limit,omitzero"`
	// RedirectHTTPToHTTPS redirects plain HTTP requests to the HTTPS port of the same proxy: to 443,
	// or to the number of the port if it is a different one. Requests below
	// /.well-known/acme-challenge/ are not redirected. GET and HEAD get 301, other methods 308.
	RedirectHTTPToHTTPS *string `json:"redirect_http_to_https,omitzero"`
	// CORS lets pages of other origins read responses.
	CORS *CORS `json:"cors,omitzero"`
	// Maintenance closes the site with 503 while it is worked on.
	Maintenance *Maintenance `json:"maintenance,omitzero"`
	// Redirects send clients from one path to another, or to another host.
	Redirects []RedirectRule `json:"redirects,omitzero"`
	// RequestBodyLimit is the largest request body; a larger one gets 413. 0 means no limit, which
	// is also the default.
	RequestBodyLimit *string `json:"request_body_limit,omitzero"`
	// RequestTimeout is the time until a server's response head, for each attempt; then 504. 0
	// switches it off. Bodies and upgraded connections have idle time-outs and no total. Absent
	// means that the value is inherited; the default is 60s.
	RequestTimeout *string `json:"request_timeout,omitzero"`
	// Gate lets in only people who have signed in: see sign_in.
	Gate *Gate `json:"gate,omitzero"`
	// BasicAuth requires a user name and a password; other clients get 401.
	BasicAuth *BasicAuth `json:"basic_auth,omitzero"`
	// ForwardAuth queries an auth server about each request; clients that it rejects get its
	// response.
	ForwardAuth *ForwardAuth `json:"forward_auth,omitzero"`
	// Rewrite changes the path that a server gets.
	Rewrite *Rewrite `json:"rewrite,omitzero"`
	// Headers change header fields of requests and responses.
	Headers []HeaderRule `json:"headers,omitzero"`
	// Cache keeps responses in memory and answers with them.
	Cache *Cache `json:"cache,omitzero"`
	// Compression compresses responses for clients that support it.
	Compression *Compression `json:"compression,omitzero"`
	// SecurityHeaders adds response headers that make browsers protect a page.
	SecurityHeaders *SecurityHeaders `json:"security_headers,omitzero"`
	// ErrorPages are the bodies of error responses. They act on every response.
	ErrorPages []ErrorPage `json:"error_pages,omitzero"`
}

// RouteSignIn makes a route the sign-in page: the place where people sign in before they enter
// applications behind a `gate`. There is at most one, with a host of its own.
type RouteSignIn struct {
	// Title is the name at the top of the page. Absent is none.
	Title string `json:"title,omitzero"`
	// Logo is an image above the title: the path of a PNG, JPEG, WebP, GIF or SVG file of at most 64
	// KiB. A relative path starts at the folder of the configuration file. It is read again when it
	// changes. Absent is none.
	Logo string `json:"logo,omitzero"`
	// Color is the color of buttons and links, #rrggbb. Links are made darker or lighter where they
	// would not be readable, in the light or the dark theme. Absent is a blue.
	Color string `json:"color,omitzero"`
	// Launchpad is whether people who have signed in see their applications as tiles, also at
	// /sites: with the icon that the application itself has, the name (the description of the proxy,
	// if it has at most 40 bytes), and whether it is available. Otherwise they see a list of hosts.
	Launchpad *bool `json:"launchpad,omitzero"`
}

// RouteState is the state of the servers of a route.
type RouteState struct {
	// Path is the route's path, with its matchers.
	Path string `json:"path"`
	// State is active; degraded when a server takes no requests; failing_open when none is healthy,
	// requests are sent to all of them, and one was answered within the last check interval; down
	// when none was, or no requests are sent.
	State string `json:"state"`
	// Since is when the first server failed that makes the route degraded, or the last one that
	// makes it failing_open or down.
	Since time.Time `json:"since,omitzero"`
	// Reason is the server, and what is wrong with it.
	Reason string `json:"reason,omitempty"`
	// Waiting is how many requests wait for a server.
	Waiting int `json:"waiting"`
	// Servers are in the order of the configuration.
	Servers []ServerState `json:"servers"`
}

// RuleState is what a rule has done.
type RuleState struct {
	// Name is the name of the rule.
	Name string `json:"name"`
	// Mode is observe or enforce.
	Mode string `json:"mode"`
	// Since is when the rule was written as it is, or headgate was started.
	Since time.Time `json:"since"`
	// Requests is how many requests it has looked at since, of a rule that observes.
	Requests int `json:"requests,omitempty"`
	// Bans is how many bans it has made since, or would have made.
	Bans int `json:"bans"`
	// Addresses is how many clients a rule that observes would have banned.
	Addresses int `json:"addresses"`
	// SignedIn is how many of these have signed in within 24 hours.
	SignedIn int `json:"signed_in"`
	// Would are these clients, the latest first: at most 100.
	Would []TrialBan `json:"would,omitempty"`
	// Summary says it in words.
	Summary string `json:"summary"`
}

// SchemaProblem is one thing an operator has to mend in a configuration.
type SchemaProblem struct {
	// File is the configuration's name, "" when it came from elsewhere.
	File string `json:"file,omitempty"`
	// Line is the line, counted from 1; 0 if unknown.
	Line int `json:"line,omitempty"`
	// Column is the column, counted from 1; 0 if unknown.
	Column int `json:"column,omitempty"`
	// Object is the object's kind and name: "proxy shop, route /api".
	Object string `json:"object,omitempty"`
	// Field is the path of the field: "proxies.shop.routes[0].path".
	Field string `json:"field,omitempty"`
	// What is wrong, in lower case and without a full stop.
	What string `json:"what"`
	// Remedy is how to fix it, in the same form; "" if What is sufficient.
	Remedy string `json:"remedy,omitempty"`
}

// Secret is a name with its required value.
type Secret struct {
	// Name is the name of the header or cookie.
	Name string `json:"name,omitzero"`
	// Value is the secret. Read it from a file: ${file:/run/secrets/pass}.
	Value string `json:"value,omitzero"`
}

// SecurityHeaders adds response headers with which browsers protect a page. Headers of the
// servers are kept.
type SecurityHeaders struct {
	// Enabled is whether headers are added.
	Enabled *bool `json:"enabled,omitzero"`
	// Preset is the set of headers: `basic` for any site; `strict` for one that loads everything
	// from its own origin and is shown in no frame; `api` for one that serves no pages. The guide
	// lists the headers.
	Preset string `json:"preset,omitzero"`
	// Override is whether the preset's headers replace those of the servers.
	Override *bool `json:"override,omitzero"`
	// HSTS is the value of Strict-Transport-Security instead of the preset's. It is sent over HTTPS
	// only. `off` sends none.
	HSTS string `json:"hsts,omitzero"`
	// ContentSecurityPolicy is the value of Content-Security-Policy instead of the preset's; `off`
	// sends none.
	ContentSecurityPolicy string `json:"content_security_policy,omitzero"`
	// FrameOptions is the value of X-Frame-Options instead of the preset's; `off` sends none, so
	// that any site can show the page in a frame.
	FrameOptions string `json:"frame_options,omitzero"`
	// ReferrerPolicy is the value of Referrer-Policy instead of the preset's; `off` sends none.
	ReferrerPolicy string `json:"referrer_policy,omitzero"`
	// PermissionsPolicy is the value of Permissions-Policy instead of the preset's; `off` sends
	// none.
	PermissionsPolicy string `json:"permissions_policy,omitzero"`
}

// SelfSignedInput is a self-signed certificate to create.
type SelfSignedInput struct {
	// Name is the name of the certificate: lower-case letters, digits and hyphens.
	Name string `json:"name"`
	// Hosts are the names and addresses that it is for.
	Hosts []string `json:"hosts"`
	// Days is how long it is good, from 1 to 3650; 0 is 365.
	Days int `json:"days,omitempty"`
}

// Series is what was counted over time.
type Series struct {
	// Step is the number of seconds between points: 10 or 60.
	Step int `json:"step"`
	// Begin is the time of the first point; points have no gaps. It is later than requested if older
	// points are not kept.
	Begin time.Time `json:"begin"`
	// End is the end of the last point.
	End time.Time `json:"end"`
	// Points are the points, the oldest first.
	Points []SeriesPoint `json:"points"`
}

// SeriesPoint has the counts of one step.
type SeriesPoint struct {
	// Time is the beginning of the step.
	Time time.Time `json:"time"`
	// Requests are the requests that ended: those of a proxy, the attempts at a server, the
	// connections or sessions that began at a TCP or UDP proxy.
	Requests int64 `json:"requests"`
	// Errors4xx are those with a status 4xx.
	Errors4xx int64 `json:"errors_4xx"`
	// Errors5xx are those with a status 5xx; at a server, the attempts that gave no response; of a
	// TCP or UDP proxy, what failed.
	Errors5xx int64 `json:"errors_5xx"`
	// CacheHits are requests that were answered from a cache.
	CacheHits int64 `json:"cache_hits"`
	// BytesReceived is how many bytes came from clients.
	BytesReceived int64 `json:"bytes_received"`
	// BytesSent is how many bytes went to clients.
	BytesSent int64 `json:"bytes_sent"`
	// P50MS is the median of the durations in milliseconds, exact to a tenth of it. It is absent
	// when nothing ended, and for servers and streams.
	P50MS *float64 `json:"p50_ms,omitempty"`
	// P99MS is the duration that 99 of 100 requests do not exceed.
	P99MS *float64 `json:"p99_ms,omitempty"`
}

// Server is one upstream address of a route.
type Server struct {
	// URL is the address of the server: scheme, host, port (by default 80, or 443 for https) and
	// base path. The base path is added in front of the path that the route leaves. The scheme is
	// `http` for HTTP/1.1; `https` for TLS, with HTTP/2 or HTTP/1.1 as the server prefers; `h2c` for
	// HTTP/2 without TLS; `unix` for HTTP/1.1 over a Unix socket, written as `unix:/run/app.sock` or
	// `unix:/run/app.sock:/base/path`; `unix+h2c` for HTTP/2 over one. If the host is a name, each
	// of its addresses is a server. `srv+http://_http._tcp.example.com`, and the same with https or
	// h2c, uses hosts, ports and weights from the SRV records of a service. `fcgi`, by default with
	// port 9000, is FastCGI as php-fpm speaks it, and `fcgi+unix:/run/php/php-fpm.sock` the same
	// over a Unix socket; the route needs `fastcgi`, and the URL has no base path.
	URL string `json:"url,omitzero"`
	// Weight is the server's share of the route's requests, relative to the weights of the others.
	// With 0 it gets no new clients.
	Weight *int `json:"weight,omitzero"`
	// TLS are the TLS settings for an https server.
	TLS *ServerTLS `json:"tls,omitzero"`
	// MaxRequests is how many requests of this route the server handles at once; others go to
	// another server or wait in the route's queue. 0 means no limit.
	MaxRequests *int `json:"max_requests,omitzero"`
	// Backup is whether the server is used only when no other server of the route is available.
	Backup *bool `json:"backup,omitzero"`
	// Group is the group of the server on a route with `split`: `stable`, or `candidate` for a new
	// version.
	Group string `json:"group,omitzero"`
}

// ServerCount counts servers.
type ServerCount struct {
	// Healthy are those that are known to be well.
	Healthy int `json:"healthy"`
	// Unknown are those of which nothing is known yet.
	Unknown int `json:"unknown"`
	// Total is all of them.
	Total int `json:"total"`
}

// ServerState is the status of a server, for people.
type ServerState struct {
	// URL is the server's address.
	URL string `json:"url"`
	// Weight is its share of the requests.
	Weight int `json:"weight"`
	// Address is the address if the URL's name has several, or "".
	Address string `json:"address,omitempty"`
	// Backup is whether it is used only if no other server is available.
	Backup bool `json:"backup,omitempty"`
	// Group is stable or candidate on a route with a split, or "".
	Group string `json:"group,omitempty"`
	// State is the current state.
	State string `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since"`
	// Reason is a short explanation.
	Reason string `json:"reason,omitempty"`
	// Hold is what an operator has set: draining, disabled, or "" for nothing.
	Hold string `json:"hold,omitempty"`
	// Until is when an ejection, or what an operator has set, ends.
	Until time.Time `json:"until,omitzero"`
	// LastError is the last error of a check or a request.
	LastError string `json:"last_error,omitempty"`
	// LastErrorAt is when it occurred.
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	// Answering is whether a server that fails its checks has responded to a request within the last
	// check interval: its route fails open.
	Answering bool `json:"answering,omitempty"`
	// Circuit is closed, open or half_open; "" without a breaker.
	Circuit string `json:"circuit,omitempty"`
	// Active is the number of requests in progress on the server.
	Active int `json:"active"`
	// Ejections is how often the server was ejected since it was configured.
	Ejections uint64 `json:"ejections,omitempty"`
	// CircuitOpened is how often its circuit was opened since it was configured.
	CircuitOpened uint64 `json:"circuit_opened,omitempty"`
	// ChecksPassed is the number of checks that passed.
	ChecksPassed uint64 `json:"checks_passed,omitempty"`
	// ChecksFailed is the number of checks that failed.
	ChecksFailed uint64 `json:"checks_failed,omitempty"`
	// Recent are the last checks as characters, the latest last: + passed, - failed.
	Recent string `json:"recent,omitempty"`
	// Results are the last checks in detail.
	Results []HealthCheckResult `json:"results,omitempty"`
}

// ServerTLS are the TLS settings for an https server. Its certificate is verified unless
// insecure_skip_verify is set.
type ServerTLS struct {
	// ServerName is the name that is sent in the handshake and that the server's certificate must
	// have. Absent means the host of the URL.
	ServerName string `json:"server_name,omitzero"`
	// CaFile is a PEM file with the certificate authorities to trust in place of the system's. A
	// relative path is relative to the configuration file.
	CaFile string `json:"ca_file,omitzero"`
	// InsecureSkipVerify disables the verification of the server's certificate. An attacker between
	// headgate and the server can then read and change all traffic; `validate`, the log and the
	// status warn as long as it is set.
	InsecureSkipVerify *bool `json:"insecure_skip_verify,omitzero"`
	// ClientCertFile is a PEM file with a client certificate, for servers that require one. A
	// relative path is relative to the configuration file. A changed file is used for new
	// connections.
	ClientCertFile string `json:"client_cert_file,omitzero"`
	// ClientKeyFile is a PEM file with the private key of that certificate.
	ClientKeyFile string `json:"client_key_file,omitzero"`
}

// ServerTest is the response to a test request.
type ServerTest struct {
	// Reached is whether the server responded.
	Reached bool `json:"reached"`
	// Status is the status of the response, 0 without one.
	Status int `json:"status"`
	// DurationMS is how long it took, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
	// Title is the title of the page, if the response is one.
	Title string `json:"title,omitempty"`
	// Server is the Server header of the response.
	Server string `json:"server,omitempty"`
	// Location is the target of a redirect.
	Location string `json:"location,omitempty"`
	// Error is why there is no response.
	Error string `json:"error,omitempty"`
	// Hint is how to fix it.
	Hint string `json:"hint,omitempty"`
}

// Session is a session, without its secrets.
type Session struct {
	// ID identifies the session. It grants no access.
	ID string `json:"id"`
	// User is who signed in.
	User string `json:"user"`
	// Role is the user's role.
	Role string `json:"role"`
	// Method is how: password, totp, recovery_code, passkey, oidc or setup.
	Method string `json:"method"`
	// Address is where from.
	Address string `json:"address,omitempty"`
	// UserAgent is the user-agent header of the browser.
	UserAgent string `json:"user_agent,omitempty"`
	// Created is when the user signed in.
	Created time.Time `json:"created"`
	// Seen is when it was used last, accurate to a few minutes.
	Seen time.Time `json:"seen"`
	// Expires is when it ends at the latest.
	Expires time.Time `json:"expires"`
	// Current is whether it is the session of this request.
	Current bool `json:"current"`
}

// SessionStarted is the answer to a sign-in.
type SessionStarted struct {
	// Secret is the value of the Headgate-Session header that every request must have in addition to
	// the cookie.
	Secret string `json:"secret"`
	// User is who signed in.
	User string `json:"user"`
	// Role is the user's role.
	Role string `json:"role"`
	// Expires is when the session ends at the latest. Without use it ends after 12 hours.
	Expires time.Time `json:"expires"`
}

// SetupInput makes the first user.
type SetupInput struct {
	// Token is the part after # in the set-up link.
	Token string `json:"token"`
	// User is the name that the user signs in with. The field name is accepted, too.
	User string `json:"user"`
	// Password has at least 10 characters and is none of the commonest.
	Password string `json:"password"`
}

// SetupState is how people can come in.
type SetupState struct {
	// Needed is whether the first user has to be made.
	Needed bool `json:"needed"`
	// OIDC is whether a sign-in provider is configured.
	OIDC bool `json:"oidc"`
	// Passkeys is whether passkeys can be used where the console is open.
	Passkeys bool `json:"passkeys"`
}

// SignIn says how people sign in before they reach applications behind a `gate`. The sign-in
// page is a route with `sign_in: {}`.
type SignIn struct {
	// Local is whether people who are kept by headgate can sign in, with a passkey, or with a
	// password and a code of an authenticator. They are added in the console or with `headgate
	// person add`, and choose their credentials with an invitation link.
	Local *bool `json:"local,omitzero"`
	// Providers are the providers through which people sign in, by name. The name is part of the
	// callback address that is registered at the provider, https://HOST/callback/NAME, and of the
	// groups of the provider, group:NAME/GROUP.
	Providers map[string]SignInConfig `json:"providers,omitzero"`
	// Session is how long people stay signed in.
	Session *Lifetime `json:"session,omitzero"`
	// SelfTest is whether headgate requests the sign-in page as a browser does, every 10 minutes and
	// when its address changes: whether its host is in the DNS, whether its certificate is trusted,
	// and whether headgate responds. If it does not, the proxy of the page has an issue that says
	// why. A router may keep machines behind it from reaching its public address: then the test
	// cannot succeed, and false switches it off.
	SelfTest *bool `json:"self_test,omitzero"`
	// Headers are the fields that tell servers who signed in.
	Headers *Headers `json:"headers,omitzero"`
}

// SignInConfig is a provider that speaks OpenID Connect: Google, Microsoft Entra, Authentik,
// Keycloak, Pocket ID and others.
type SignInConfig struct {
	// Issuer is the provider's URL. Its configuration is found below it. Issuers for several
	// tenants, such as that of Microsoft for all organizations, are refused: everybody in the world
	// could sign in through them. Write the issuer of your tenant.
	Issuer string `json:"issuer,omitzero"`
	// ClientID is the name under which headgate is registered at the provider.
	ClientID string `json:"client_id,omitzero"`
	// ClientSecret is the secret of that registration.
	ClientSecret string `json:"client_secret,omitzero"`
	// Label is the name on the button of the sign-in page. Absent is the provider's name in the
	// configuration.
	Label string `json:"label,omitzero"`
	// Scopes are requested beside openid. Absent is profile and email.
	Scopes []string `json:"scopes,omitzero"`
	// Emails are the domains of e-mail addresses that the provider manages: addresses below them
	// count even if the provider does not say that they are verified. All others count only with
	// `email_verified: true`.
	Emails []string `json:"emails,omitzero"`
	// GroupsClaim is the claim with a person's groups; a dot leads into an object.
	GroupsClaim string `json:"groups_claim,omitzero"`
	// UserClaim is the claim that servers get as Remote-User. Absent is the e-mail address, if it
	// counts, or else the provider's name and the person's id there. Choose a claim only if people
	// cannot change it themselves at the provider.
	UserClaim string `json:"user_claim,omitzero"`
}

// SignInInput is what people sign in with.
type SignInInput struct {
	// User is the name. It may be called name, too.
	User string `json:"user"`
	// Password is the password.
	Password string `json:"password"`
	// Code is one of the authenticator, or a recovery code.
	Code string `json:"code"`
}

// SignInObject is a sign-in for applications with its name, origin and state. The fields of the
// state are ignored in requests.
type SignInObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Local is whether people who are kept by headgate can sign in, with a passkey, or with a
	// password and a code of an authenticator. They are added in the console or with `headgate
	// person add`, and choose their credentials with an invitation link.
	Local *bool `json:"local,omitzero"`
	// Providers are the providers through which people sign in, by name. The name is part of the
	// callback address that is registered at the provider, https://HOST/callback/NAME, and of the
	// groups of the provider, group:NAME/GROUP.
	Providers map[string]SignInConfig `json:"providers,omitzero"`
	// Session is how long people stay signed in.
	Session *Lifetime `json:"session,omitzero"`
	// SelfTest is whether headgate requests the sign-in page as a browser does, every 10 minutes and
	// when its address changes: whether its host is in the DNS, whether its certificate is trusted,
	// and whether headgate responds. If it does not, the proxy of the page has an issue that says
	// why. A router may keep machines behind it from reaching its public address: then the test
	// cannot succeed, and false switches it off.
	SelfTest *bool `json:"self_test,omitzero"`
	// Headers are the fields that tell servers who signed in.
	Headers *Headers `json:"headers,omitzero"`
}

// Slack is an incoming webhook.
type Slack struct {
	// URL is the webhook URL, which contains its token.
	URL string `json:"url,omitzero"`
}

// Source is where a database comes from: a file or a URL.
type Source struct {
	// File is a file in the MMDB format. A relative path begins at the configuration file. It is
	// read again when it changes.
	File string `json:"file,omitzero"`
	// URL is where the database is downloaded from, with https; it can be compressed with gzip. The
	// last valid one is kept in the state directory.
	URL string `json:"url,omitzero"`
	// Interval is how often the database at url is downloaded.
	Interval string `json:"interval,omitzero"`
}

// SourceState is the state of a source of objects.
type SourceState struct {
	// Name is the source: configuration for the documents, discovery.docker.NAME or
	// discovery.http.NAME for a provider.
	Name string `json:"name"`
	// State is running; error if the last version was rejected or is unavailable, and the previous
	// version is active; or, for a provider, connecting until its first response.
	State string `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since,omitzero"`
	// Issues are its problems.
	Issues []string `json:"issues,omitempty"`
}

// Split sends a share of a route's clients to its candidate servers, which are those with
// `group: candidate`. The share can be raised on schedule or by command, and goes back to 0 if
// the candidate's responses are worse than those of the stable servers. The current share is
// state: the configuration does not change.
type Split struct {
	// Candidate is the percentage of clients that the candidate servers get at the start. With
	// schedule, it is the first step.
	Candidate *int `json:"candidate,omitzero"`
	// Stable is the percentage that the other servers get. 0 or absent is what candidate leaves.
	Stable *int `json:"stable,omitzero"`
	// Schedule lists the steps in which the candidate's percentage grows, and how long each of them
	// lasts, from 10s to 30d. Without "every", each step waits for `headgate split promote NAME`. A
	// step is not made while the candidate has had fewer than min_requests requests, or is worse.
	Schedule string `json:"schedule,omitzero"`
	// Sticky is whether a client stays in its group while the shares do not change, and stays with
	// the candidate while its share grows. Without `key`, the cookie `headgate_split`, which cannot
	// be forged, stores a number that assigns a browser to a group. If false, each request is
	// assigned at random.
	Sticky *bool `json:"sticky,omitzero"`
	// Key identifies clients instead of the cookie: `client_ip`, `header:NAME` or `cookie:NAME`.
	// Requests without this header or cookie are assigned by the client address. All machines assign
	// a client to the same group.
	Key string `json:"key,omitzero"`
	// Rollback configures when the candidate gets no more requests.
	Rollback *Rollback `json:"rollback,omitzero"`
}

// SplitDecision is the group of a request, for people.
type SplitDecision struct {
	// Group is stable or candidate.
	Group string `json:"group"`
	// Share is the candidate's percentage.
	Share int `json:"share"`
	// Why is what decides.
	Why string `json:"why"`
	// Certain is false if another request like this one may go to the other group.
	Certain bool `json:"certain"`
}

// SplitInput is the split that is meant.
type SplitInput struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Route is the route with its matchers; it is needed only if several routes of the proxy have a
	// split.
	Route string `json:"route,omitempty"`
	// To is the share for promote, in percent; absent is the next step.
	To int `json:"to,omitempty"`
	// Why is the reason, for the events and the audit log.
	Why string `json:"why,omitempty"`
}

// SplitState is a split of a route, and where it is. No document is touched. It lasts over
// changes of the configuration that leave its shares alone, and over restarts.
type SplitState struct {
	// Proxy is the name of the proxy.
	Proxy string `json:"proxy"`
	// Route is the route with its matchers.
	Route string `json:"route"`
	// Phase is running, held, returned or complete.
	Phase string `json:"phase"`
	// Share is the candidate's percentage of clients.
	Share int `json:"share"`
	// Since is when the phase or the share changed.
	Since time.Time `json:"since"`
	// Who decided it: an operator, schedule or headgate.
	Who string `json:"who,omitempty"`
	// Why is the reason.
	Why string `json:"why,omitempty"`
	// Steps are the shares of the schedule.
	Steps []int `json:"steps,omitempty"`
	// Every is how long each step lasts, "" if an operator makes the steps.
	Every string `json:"every,omitempty"`
	// Next is the share after the current one; 0 if there is none.
	Next int `json:"next,omitempty"`
	// Waits is what the next step waits for: an operator, time or requests.
	Waits string `json:"waits,omitempty"`
	// Stable is what this machine has counted of the stable servers in the window.
	Stable SplitStats `json:"stable"`
	// Candidate is what this machine has counted of the candidate servers in the window.
	Candidate SplitStats `json:"candidate"`
	// Window is the time that is compared.
	Window string `json:"window"`
	// MinRequests is how many requests both groups need in the window.
	MinRequests int `json:"min_requests"`
	// Compared is whether both groups have enough requests.
	Compared bool `json:"compared"`
	// Rollback is whether a worse candidate is returned.
	Rollback bool `json:"rollback"`
}

// SplitStats is what was counted of a group in the window.
type SplitStats struct {
	// Requests is the number of requests.
	Requests int `json:"requests"`
	// Errors is the number of requests that failed.
	Errors int `json:"errors"`
	// P95MS is the 95th percentile of the time to the response head, in milliseconds.
	P95MS float64 `json:"p95_ms"`
}

// State is the state of a port.
type State struct {
	// Name is the port's name. The ports of a range in the same state are one.
	Name string `json:"name"`
	// Address is where the port listens, such as 0.0.0.0:5000-5100 for a range.
	Address string `json:"address"`
	// Protocol is http, https, http3, tcp or udp.
	Protocol string `json:"protocol"`
	// Origin is where the port comes from: "shop.yaml:12:3". It is absent for one that drains.
	Origin string `json:"origin,omitempty"`
	// State is listening, draining, waiting, permission_denied, error, inactive, or elsewhere for a
	// port that only other nodes open.
	State string `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since"`
	// Nodes are the nodes that open the port if this one does not.
	Nodes []string `json:"nodes,omitempty"`
	// Reason is why the port does not listen, in one word.
	Reason string `json:"reason,omitempty"`
	// Hint is what to do.
	Hint string `json:"hint,omitempty"`
	// Connections is the number of open connections, or of sessions for UDP.
	Connections int `json:"connections"`
	// Accepted is the number of connections or sessions since the socket was opened.
	Accepted uint64 `json:"accepted"`
	// AtLimit says that there are as many connections as there may be, and that more wait or are
	// refused.
	AtLimit bool `json:"at_limit,omitempty"`
	// HoldsAddress says of a port that drains that its address is not free yet for another process:
	// that of HTTP/3 and UDP has to wait for its last connection.
	HoldsAddress bool `json:"holds_address,omitempty"`
	// SelfSigned are the hosts whose clients get a self-signed certificate, which browsers reject;
	// "*" means all.
	SelfSigned []string `json:"self_signed,omitempty"`
}

// StateCount is how many proxies are in a state.
type StateCount struct {
	// State is the state, as in a list of proxies.
	State string `json:"state"`
	// Count is how many are in it.
	Count int `json:"count"`
}

// Statement is one effect on an object.
type Statement struct {
	// Severity is info, warning or danger.
	Severity string `json:"severity"`
	// Code names what a warning is about: "host_lost". It is "" for what changes.
	Code string `json:"code,omitempty"`
	// Path is the field in the object, "" for the object as a whole.
	Path string `json:"path,omitempty"`
	// Text is the sentence with the object it is about: "proxy shop: route /api gets server
	// http://10.0.0.7:3000, weight 1".
	Text string `json:"text"`
	// Remedy is what to do about it, "" if there is nothing to add.
	Remedy string `json:"remedy,omitempty"`
}

// Status is the state of headgate: the fields of control.Status, and of certificates by ACME
// what the API shows of orders.
type Status struct {
	// State is starting before the first configuration was applied; serving; degraded when an older
	// revision is served because the documents are refused; or stopping.
	State string `json:"state"`
	// Since is when the active configuration was applied.
	Since time.Time `json:"since,omitzero"`
	// Revision is its name in the state directory.
	Revision string `json:"revision"`
	// ETag is that of the configuration, for If-Match.
	ETag string `json:"etag,omitempty"`
	// Process is the process that answers: its version, its generation, whether it is being
	// upgraded, and the process that it replaced while that has connections.
	Process UpgradeState `json:"process"`
	// Refused is why the documents are refused; absent if they are active.
	Refused *Refused `json:"refused,omitempty"`
	// Pending is the change that waits to be confirmed; absent if there is none.
	Pending *Pending `json:"pending,omitempty"`
	// Admin is how to reach the admin listener; absent if it is disabled.
	Admin *AdminListener `json:"admin,omitempty"`
	// Ports are the ports, sorted by name.
	Ports []State `json:"ports"`
	// TCPProxies are the active TCP proxies, sorted by name.
	TCPProxies []StreamState `json:"tcp_proxies,omitempty"`
	// UDPProxies are the active UDP proxies, sorted by name.
	UDPProxies []StreamState `json:"udp_proxies,omitempty"`
	// Proxies are the proxies with their servers, sorted by name.
	Proxies []ProxyState `json:"proxies"`
	// Sources are where objects come from, with what is wrong there.
	Sources []SourceState `json:"sources"`
	// Certificates are the configured certificates, then those by ACME.
	Certificates []CertificateState `json:"certificates,omitempty"`
	// ACME are the orders of the certificates by ACME, without their timelines.
	ACME []Order `json:"acme,omitempty"`
	// HeldServers are the servers that operators drain or have disabled.
	HeldServers []HeldServer `json:"held_servers,omitempty"`
	// Splits are the routes with a split.
	Splits []SplitState `json:"splits,omitempty"`
	// Ech are the ports with Encrypted Client Hello, without their records.
	Ech []ECHState `json:"ech,omitempty"`
	// UnverifiedServers are the https servers whose certificates are not verified
	// (insecure_skip_verify).
	UnverifiedServers []Unverified `json:"unverified_servers,omitempty"`
}

// StatusSummary is what an overview shows of all proxies, of which there may be very many: of
// HTTP, TCP and UDP.
type StatusSummary struct {
	// Proxies counts the proxies by their state.
	Proxies []StateCount `json:"proxies"`
	// Total is how many proxies there are.
	Total int `json:"total"`
	// Servers counts the servers of all of them; one of two routes counts twice.
	Servers ServerCount `json:"servers"`
	// AttentionTotal is how many proxies are degraded, failing open or down, or have issues of
	// discovery.
	AttentionTotal int `json:"attention_total"`
	// Attention are the first 20 of these, those that are down first.
	Attention []Attention `json:"attention"`
	// Certificates counts the certificates by their state, configured or by ACME.
	Certificates []StateCount `json:"certificates"`
	// CertificatesTotal is how many certificates there are.
	CertificatesTotal int `json:"certificates_total"`
	// CertificatesAttentionTotal is how many of them are expired, missing, failed, blocked or
	// expiring.
	CertificatesAttentionTotal int `json:"certificates_attention_total"`
	// CertificatesAttention are the first 20 of these, the most urgent first.
	CertificatesAttention []CertificateState `json:"certificates_attention"`
}

// StickyCookie keeps a client on the server that handled its first request, with an encrypted
// cookie. Clients without a valid cookie are distributed as load_balancing configures. When the
// server of a client fails, the client gets another one and its cookie.
type StickyCookie struct {
	// Enabled is whether the cookie is used.
	Enabled *bool `json:"enabled,omitzero"`
	// Name is the name of the cookie. It is not forwarded to servers.
	Name string `json:"name,omitzero"`
	// MaxAge is how long the client keeps the cookie. 0 or absent is until the browser is closed.
	MaxAge string `json:"max_age,omitzero"`
	// SameSite is which requests from other sites include the cookie: `lax` those that open a page,
	// `strict` none, `none` all. With none, browsers require HTTPS.
	SameSite string `json:"same_site,omitzero"`
}

// Store is the state of the store.
type Store struct {
	// Shared reports whether several nodes use the store. The other fields are absent if not.
	Shared bool `json:"shared"`
	// Engine is the address of the store, without secrets.
	Engine string `json:"engine,omitempty"`
	// State is following; detached while the store cannot be reached: changes are refused; or
	// rewound if it was set back to an older state: adopt or push decides.
	State string `json:"state,omitempty"`
	// Since is when the state began.
	Since time.Time `json:"since,omitzero"`
	// Reason is why the store is not followed.
	Reason string `json:"reason,omitempty"`
	// Revision is how far the copy of this node has come.
	Revision int64 `json:"revision,omitempty"`
	// Head is the newest revision of the store that this node knows.
	Head int64 `json:"head,omitempty"`
	// Reconnects is how often this node has followed the store again.
	Reconnects uint64 `json:"reconnects,omitempty"`
}

// StoreCheck is what a check of the shared database has found.
type StoreCheck struct {
	// Engine identifies the database, without its password.
	Engine string `json:"engine"`
	// Server is the version of PostgreSQL.
	Server string `json:"server"`
	// Primary is false for a replica, which accepts no changes.
	Primary bool `json:"primary"`
	// Schema is the version of the tables in the database.
	Schema int `json:"schema"`
	// Revision is the newest revision in the database.
	Revision int64 `json:"revision"`
	// LatencyMS is how long a request took, in milliseconds.
	LatencyMS float64 `json:"latency_ms"`
	// ClockOffset is how far the clock of the database is ahead of that of this node, such as -1.5s.
	ClockOffset string `json:"clock_offset"`
	// Warnings are settings with which acknowledged changes can be lost or one node can block
	// changes on all nodes, and whether the tables can be migrated.
	Warnings []string `json:"warnings"`
}

// StoreMigration is the version of the tables of the shared database.
type StoreMigration struct {
	// From is the version before.
	From int `json:"from"`
	// Version is the version afterwards. It equals From if there was nothing to do.
	Version int `json:"version"`
	// ReadableFrom is the oldest version that a release has to know to use the database.
	ReadableFrom int `json:"readable_from"`
}

// StoredCertificate is a certificate in the state directory.
type StoredCertificate struct {
	// Name is what the certificate is called: lower-case letters, digits and hyphens.
	Name string `json:"name"`
	// Names are the hosts that it is for.
	Names []string `json:"names"`
	// Issuer is who has signed it.
	Issuer string `json:"issuer"`
	// State is valid, expiring or expired.
	State string `json:"state"`
	// NotBefore is when its life begins.
	NotBefore time.Time `json:"not_before"`
	// NotAfter is when it ends.
	NotAfter time.Time `json:"not_after"`
	// DaysLeft is how many whole days of the life are left; below zero it has ended.
	DaysLeft int `json:"days_left"`
	// Chain is how many certificates there are with the intermediates.
	Chain int `json:"chain"`
	// Key is the kind of its key, such as ECDSA.
	Key string `json:"key"`
	// UsedBy are the certificates of the configuration that name it.
	UsedBy []string `json:"used_by"`
	// Notes are what was fixed at the upload, and what clients may reject.
	Notes []string `json:"notes,omitempty"`
	// Uploaded is when it was uploaded.
	Uploaded time.Time `json:"uploaded"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
}

// StoredResponse describes a stored response.
type StoredResponse struct {
	// Proxy is the proxy whose cache has it.
	Proxy string `json:"proxy"`
	// Route is the route if the cache is its own.
	Route string `json:"route,omitempty"`
	// URL is its address. Only admins see the values of query parameters.
	URL string `json:"url"`
	// Vary are the request headers that distinguish it from other variants.
	Vary []string `json:"vary,omitempty"`
	// Status is the status of the response.
	Status int `json:"status"`
	// Part is whether it is a part of a response, fetched for a Range request.
	Part bool `json:"part,omitempty"`
	// Bytes is the memory that it uses, in bytes: body, headers and index.
	Bytes int64 `json:"bytes"`
	// Age is its age in seconds.
	Age int64 `json:"age"`
	// TTL is its remaining lifetime in seconds; a negative one means stale.
	TTL int64 `json:"ttl"`
	// Since is when it was stored or last revalidated.
	Since time.Time `json:"since"`
	// Purged is whether a soft purge marked it as stale.
	Purged bool `json:"purged,omitempty"`
	// Hits is how many requests were answered with it without a request to a server.
	Hits int64 `json:"hits"`
	// Tags are the first of its tags.
	Tags []string `json:"tags,omitempty"`
}

// StreamCandidate is a server that may take it.
type StreamCandidate struct {
	// Address is its address.
	Address string `json:"address"`
	// Weight is its share.
	Weight int `json:"weight"`
	// Next is whether it would be the server now.
	Next bool `json:"next"`
	// State is its state, "" if nothing is wrong.
	State string `json:"state,omitempty"`
}

// StreamCheck configures the health check of a TCP proxy's servers: a connection that is closed
// immediately.
type StreamCheck struct {
	// Interval is the time between two checks of a server, with a jitter of a tenth.
	Interval string `json:"interval,omitzero"`
	// UnhealthyInterval is the time between two checks while a server is not healthy, or its last
	// check failed.
	UnhealthyInterval string `json:"unhealthy_interval,omitzero"`
	// Timeout is the time for a connection.
	Timeout string `json:"timeout,omitzero"`
	// Rise is how many checks in a row an unhealthy server must pass to be healthy again.
	Rise *int `json:"rise,omitzero"`
	// Fall is how many checks in a row must fail for a server to be unhealthy.
	Fall *int `json:"fall,omitzero"`
}

// StreamExplanation is how a connection or a session would be handled.
type StreamExplanation struct {
	// Protocol is tcp or udp.
	Protocol string `json:"protocol"`
	// Listener is the port or proxy that has the address, "" if there is none.
	Listener string `json:"listener,omitempty"`
	// Address is the one on which it listens.
	Address string `json:"address,omitempty"`
	// Proxy is the TCP or UDP proxy that takes it, "" if none does.
	Proxy string `json:"proxy,omitempty"`
	// Name is the name by which the proxy was found.
	Name string `json:"name,omitempty"`
	// Alpn are the application protocols of the question.
	Alpn []string `json:"alpn,omitempty"`
	// TLS is what becomes of TLS: terminated or forwarded. It is empty where the proxy takes
	// connections without a look at them.
	TLS string `json:"tls,omitempty"`
	// TLSMinVersion is the minimum version of terminated TLS.
	TLSMinVersion string `json:"tls_min_version,omitempty"`
	// TLSAlpn are the protocols of terminated TLS.
	TLSAlpn []string `json:"tls_alpn,omitempty"`
	// TLSClientAuth is whether clients must present a certificate.
	TLSClientAuth string `json:"tls_client_auth,omitempty"`
	// Certificate is the one that the client gets.
	Certificate *Chosen `json:"certificate,omitempty"`
	// Filters are the proxy's filters in the order in which they act.
	Filters []string `json:"filters,omitempty"`
	// Denied is why the client may not come in.
	Denied string `json:"denied,omitempty"`
	// ProxyProtocol is the version of the PROXY header that servers get; of UDP, before each
	// datagram.
	ProxyProtocol string `json:"proxy_protocol,omitempty"`
	// LoadBalancing is how a server is chosen.
	LoadBalancing string `json:"load_balancing,omitempty"`
	// Servers are the candidates.
	Servers []StreamCandidate `json:"servers,omitempty"`
	// Notes are hints.
	Notes []string `json:"notes,omitempty"`
}

// StreamServer is one server of a TCP or UDP proxy.
type StreamServer struct {
	// Address is the server's host and port: a name or an IP address, IPv6 in brackets. If the proxy
	// has a range of ports, the server can have one of the same length, whose first port is for the
	// first port of the proxy and so on; health checks use the first. With one port, the server gets
	// the clients of all ports there.
	Address string `json:"address,omitzero"`
	// Weight is the server's share relative to the weights of the others. With 0 it gets no new
	// clients.
	Weight *int `json:"weight,omitzero"`
	// TLS are the TLS settings for the connection to the server. Absent forwards the client's bytes
	// unchanged.
	TLS *ServerTLS `json:"tls,omitzero"`
}

// StreamServerState is the state of a server of a TCP or UDP proxy.
type StreamServerState struct {
	// Address is the host and port of the server.
	Address string `json:"address"`
	// Weight is its share of the connections.
	Weight int `json:"weight"`
	// State is the current state.
	State string `json:"state"`
	// Since is when the state began.
	Since time.Time `json:"since"`
	// Reason is a short explanation.
	Reason string `json:"reason,omitempty"`
	// Hold is what an operator has set: draining, disabled, or "" for nothing.
	Hold string `json:"hold,omitempty"`
	// Until is when an ejection, or what an operator has set, ends.
	Until time.Time `json:"until,omitzero"`
	// LastError is the last error of a check or a request.
	LastError string `json:"last_error,omitempty"`
	// LastErrorAt is when it occurred.
	LastErrorAt time.Time `json:"last_error_at,omitzero"`
	// Answering is whether a server that fails its checks has responded to a request within the last
	// check interval: its route fails open.
	Answering bool `json:"answering,omitempty"`
	// Circuit is closed, open or half_open; "" without a breaker.
	Circuit string `json:"circuit,omitempty"`
	// Active is the number of requests in progress on the server.
	Active int `json:"active"`
	// Ejections is how often the server was ejected since it was configured.
	Ejections uint64 `json:"ejections,omitempty"`
	// CircuitOpened is how often its circuit was opened since it was configured.
	CircuitOpened uint64 `json:"circuit_opened,omitempty"`
	// ChecksPassed is the number of checks that passed.
	ChecksPassed uint64 `json:"checks_passed,omitempty"`
	// ChecksFailed is the number of checks that failed.
	ChecksFailed uint64 `json:"checks_failed,omitempty"`
	// Recent are the last checks as characters, the latest last: + passed, - failed.
	Recent string `json:"recent,omitempty"`
	// Results are the last checks in detail.
	Results []HealthCheckResult `json:"results,omitempty"`
}

// StreamState is the state of a TCP or UDP proxy. The state of its address is among the ports.
type StreamState struct {
	// Name is the proxy's name.
	Name string `json:"name"`
	// Protocol is tcp or udp.
	Protocol string `json:"protocol"`
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
	// Alpn are the protocols of the TLS clients that the proxy accepts; empty means all.
	Alpn []string `json:"alpn,omitempty"`
	// TerminatesTLS is whether TLS of clients is terminated.
	TerminatesTLS bool `json:"terminates_tls,omitempty"`
	// Connections is the number of open connections, or of UDP sessions.
	Connections int `json:"connections"`
	// Accepted is the number of all connections or sessions so far.
	Accepted uint64 `json:"accepted"`
	// MaxConnections is how many there may be at once; absent means no limit of the proxy's own. One
	// more session of UDP replaces another.
	MaxConnections int `json:"max_connections,omitempty"`
	// BytesReceived is the number of bytes from clients.
	BytesReceived uint64 `json:"bytes_received"`
	// BytesSent is the number of bytes to clients.
	BytesSent uint64 `json:"bytes_sent"`
	// Errors counts what failed, by the word of the access log.
	Errors map[string]uint64 `json:"errors,omitempty"`
	// State is active; degraded when a server takes no requests; failing_open when none is healthy,
	// requests are sent to all of them, and one was answered within the last check interval; down
	// when none was, or no requests are sent.
	State string `json:"state"`
	// Since is when the first server failed that makes the route degraded, or the last one that
	// makes it failing_open or down.
	Since time.Time `json:"since,omitzero"`
	// Reason is the server, and what is wrong with it.
	Reason string `json:"reason,omitempty"`
	// Healthy is the number of healthy servers.
	Healthy int `json:"healthy"`
	// Unknown is the number of servers whose health is not known yet.
	Unknown int `json:"unknown"`
	// Servers are in the order of the configuration.
	Servers []StreamServerState `json:"servers"`
}

// StreamTLS are the settings of a TCP proxy that terminates TLS. The certificate is selected by
// the server name that the client sends, as on https ports.
type StreamTLS struct {
	// MinVersion is the minimum version of TLS.
	MinVersion string `json:"min_version,omitzero"`
	// Alpn are the application protocols to negotiate, the preferred first. A client that offers
	// only others is rejected, and one that offers none is accepted. Absent means those of the
	// proxy's own alpn; without any, nothing is negotiated.
	Alpn []string `json:"alpn,omitzero"`
	// ClientAuth is whether clients must present a certificate: `off`; `optional`, which verifies a
	// certificate that is presented; `required`, which rejects clients without one.
	ClientAuth string `json:"client_auth,omitzero"`
	// ClientCa is a PEM file with the certificates of the authorities that sign client certificates.
	// It is required unless client_auth is off. A relative path begins at the configuration file.
	ClientCa string `json:"client_ca,omitzero"`
	// DefaultCertificate names the certificate for clients that send no server name, or one that no
	// certificate has. Without it they get a self-signed one.
	DefaultCertificate string `json:"default_certificate,omitzero"`
	// ACME is the name of the ACME entry that gets certificates for the names in sni; `none` for no
	// entry. Without it the default entry does.
	ACME string `json:"acme,omitzero"`
}

// TCPProxy forwards TCP connections to servers without interpreting them. It has its own
// address; or a port and names, for TLS connections on an https port. TLS of clients is
// terminated with tls, and otherwise forwarded unchanged to servers that have the certificate.
// Several proxies share an address if they differ in sni or alpn.
type TCPProxy struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Address is the IP address and port number to listen on, or a range of up to 1000 ports:
	// `0.0.0.0:5000-5100`.
	Address string `json:"address,omitzero"`
	// Port names the https port whose connections the proxy accepts, together with sni or alpn.
	Port string `json:"port,omitzero"`
	// SNI are the server names that TLS clients send: exact ones, or `*.` and a name for any one
	// label before it. Other names stay with the port, or with the other proxies of the address.
	// Empty means all names.
	SNI []string `json:"sni,omitzero"`
	// Alpn are application protocols, one of which a TLS client must offer. Clients that offer none
	// of them stay with the port, or with the other proxies of the address. Empty means any client.
	Alpn []string `json:"alpn,omitzero"`
	// TLS terminates TLS of clients, with the certificates of https ports. Absent forwards the
	// client's bytes unchanged.
	TLS *StreamTLS `json:"tls,omitzero"`
	// Servers are the servers that share the connections.
	Servers []StreamServer `json:"servers,omitzero"`
	// LoadBalancing is how connections are shared among servers: `round_robin` in turn, by weight;
	// `least_connections` to the least busy one; `random`; `first` to the first that takes
	// connections; `client_ip_hash` always to the same one for an address.
	LoadBalancing string `json:"load_balancing,omitzero"`
	// HealthCheck checks whether the servers accept connections. Absent means no checks: a server
	// that fails connections is still ejected for a while.
	HealthCheck *StreamCheck `json:"health_check,omitzero"`
	// ConnectTimeout is the time for a connection to a server, including name resolution; then
	// another server is tried.
	ConnectTimeout string `json:"connect_timeout,omitzero"`
	// IdleTimeout is how long a connection can be without data in both directions before it is
	// closed.
	IdleTimeout string `json:"idle_timeout,omitzero"`
	// ProxyProtocol is the version of the PROXY protocol header that servers get, with the client's
	// address: `off`, `v1` or `v2`.
	ProxyProtocol string `json:"proxy_protocol,omitzero"`
	// AcceptProxyProtocol configures which peers send a PROXY protocol header at the beginning of a
	// connection to the address. Absent means none. With port, the port's settings apply.
	AcceptProxyProtocol *ProxyProtocol `json:"accept_proxy_protocol,omitzero"`
	// IPFilter allows clients by address. Connections of others are closed, and their datagrams
	// dropped.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// MaxConnections is the largest number of open connections of the address, or of each port of a
	// range; more wait in the system's queue. 0 means as many as file descriptors allow.
	MaxConnections *int `json:"max_connections,omitzero"`
	// DrainTimeout is how long connections can continue after the proxy is removed, its address is
	// changed or headgate is stopped. Then they are closed. Other changes do not affect open
	// connections.
	DrainTimeout string `json:"drain_timeout,omitzero"`
	// AccessLog changes the access log for the connections of this proxy: off, or a file of its own.
	AccessLog *ProxyLog `json:"access_log,omitzero"`
	// Nodes are the names of the nodes that have the proxy, as `headgate node list` shows them.
	// Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// Active is whether the proxy takes connections.
	Active *bool `json:"active,omitzero"`
}

// TCPProxyObject is a TCP proxy with its name, origin and state. The fields of the state are
// ignored in requests.
type TCPProxyObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`
	// Health counts the servers of the proxy. It is absent for an inactive one.
	Health *ServerCount `json:"health,omitempty"`
	// Issues are what is wrong with it now.
	Issues []string `json:"issues,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Address is the IP address and port number to listen on, or a range of up to 1000 ports:
	// `0.0.0.0:5000-5100`.
	Address string `json:"address,omitzero"`
	// Port names the https port whose connections the proxy accepts, together with sni or alpn.
	Port string `json:"port,omitzero"`
	// SNI are the server names that TLS clients send: exact ones, or `*.` and a name for any one
	// label before it. Other names stay with the port, or with the other proxies of the address.
	// Empty means all names.
	SNI []string `json:"sni,omitzero"`
	// Alpn are application protocols, one of which a TLS client must offer. Clients that offer none
	// of them stay with the port, or with the other proxies of the address. Empty means any client.
	Alpn []string `json:"alpn,omitzero"`
	// TLS terminates TLS of clients, with the certificates of https ports. Absent forwards the
	// client's bytes unchanged.
	TLS *StreamTLS `json:"tls,omitzero"`
	// Servers are the servers that share the connections.
	Servers []StreamServer `json:"servers,omitzero"`
	// LoadBalancing is how connections are shared among servers: `round_robin` in turn, by weight;
	// `least_connections` to the least busy one; `random`; `first` to the first that takes
	// connections; `client_ip_hash` always to the same one for an address.
	LoadBalancing string `json:"load_balancing,omitzero"`
	// HealthCheck checks whether the servers accept connections. Absent means no checks: a server
	// that fails connections is still ejected for a while.
	HealthCheck *StreamCheck `json:"health_check,omitzero"`
	// ConnectTimeout is the time for a connection to a server, including name resolution; then
	// another server is tried.
	ConnectTimeout string `json:"connect_timeout,omitzero"`
	// IdleTimeout is how long a connection can be without data in both directions before it is
	// closed.
	IdleTimeout string `json:"idle_timeout,omitzero"`
	// ProxyProtocol is the version of the PROXY protocol header that servers get, with the client's
	// address: `off`, `v1` or `v2`.
	ProxyProtocol string `json:"proxy_protocol,omitzero"`
	// AcceptProxyProtocol configures which peers send a PROXY protocol header at the beginning of a
	// connection to the address. Absent means none. With port, the port's settings apply.
	AcceptProxyProtocol *ProxyProtocol `json:"accept_proxy_protocol,omitzero"`
	// IPFilter allows clients by address. Connections of others are closed, and their datagrams
	// dropped.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// MaxConnections is the largest number of open connections of the address, or of each port of a
	// range; more wait in the system's queue. 0 means as many as file descriptors allow.
	MaxConnections *int `json:"max_connections,omitzero"`
	// DrainTimeout is how long connections can continue after the proxy is removed, its address is
	// changed or headgate is stopped. Then they are closed. Other changes do not affect open
	// connections.
	DrainTimeout string `json:"drain_timeout,omitzero"`
	// AccessLog changes the access log for the connections of this proxy: off, or a file of its own.
	AccessLog *ProxyLog `json:"access_log,omitzero"`
	// Nodes are the names of the nodes that have the proxy, as `headgate node list` shows them.
	// Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// Active is whether the proxy takes connections.
	Active *bool `json:"active,omitzero"`
}

// TLS are the TLS settings of an https or http3 port.
type TLS struct {
	// MinVersion is the minimum version of TLS. HTTP/3 always uses TLS 1.3.
	MinVersion string `json:"min_version,omitzero"`
	// ClientAuth is whether clients must present a certificate: `off`; `optional`, which verifies a
	// certificate that is presented; `required`, which rejects clients without one. A certificate
	// that is not signed by client_ca is rejected.
	ClientAuth string `json:"client_auth,omitzero"`
	// ClientCa is a PEM file with the certificates of the authorities that sign clients'
	// certificates. It is needed unless client_auth is off. A relative path begins at the
	// configuration file.
	ClientCa string `json:"client_ca,omitzero"`
	// DefaultCertificate names the certificate for clients that send no server name, or one that no
	// certificate has. Without it they get a self-signed one.
	DefaultCertificate string `json:"default_certificate,omitzero"`
	// Ech hides the requested host in the TLS handshake of clients that support Encrypted Client
	// Hello (RFC 9849) and have its key from the DNS. Absent turns it off. headgate makes and
	// rotates the keys. `headgate ech` prints the DNS records; with dns, headgate writes them.
	Ech *ECH `json:"ech,omitzero"`
}

// Teams is a webhook of a Teams channel, from the Workflows app.
type Teams struct {
	// URL is the webhook URL, which contains its token.
	URL string `json:"url,omitzero"`
}

// Telegram is a chat and the bot that writes to it.
type Telegram struct {
	// URL is the server of the bot API.
	URL string `json:"url,omitzero"`
	// Token is the token of the bot.
	Token string `json:"token,omitzero"`
	// Chat is the ID of the chat, or the @name of a channel.
	Chat string `json:"chat,omitzero"`
}

// Timeouts bound the steps of a request towards a server.
type Timeouts struct {
	// Connect is the time for a connection to a server, name look-up included.
	Connect string `json:"connect,omitzero"`
}

// Token is a token.
type Token struct {
	// Name is what the token is called: 1 to 64 lower-case letters, digits and . _ @ -.
	Name string `json:"name"`
	// Role is what it may do.
	Role string `json:"role"`
	// Scopes narrow that to areas of this interface; "area:read" to reading. None is all.
	Scopes []string `json:"scopes,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Addresses are the networks that it may be used from; none is all.
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	// Expires is when it ends; without it never.
	Expires time.Time `json:"expires,omitzero"`
	// Token is the text of the token. It is in the answer that makes it, and nowhere else.
	Token string `json:"token,omitempty"`
	// Created is when it was made.
	Created time.Time `json:"created"`
	// CreatedBy is who made it.
	CreatedBy string `json:"created_by"`
	// Used is when it was used last, to the minute.
	Used time.Time `json:"used,omitzero"`
	// UsedFrom is where from.
	UsedFrom string `json:"used_from,omitempty"`
	// ETag is what If-Match names.
	ETag string `json:"etag,omitempty"`
}

// Tracing configures which requests are traced, and where spans are sent.
type Tracing struct {
	// Enabled is whether requests get a traceparent header (W3C Trace Context). The trace of a peer
	// in client_ip.trusted is continued; others are replaced by a new one. When disabled,
	// traceparent and tracestate are forwarded as clients send them.
	Enabled *bool `json:"enabled,omitzero"`
	// Endpoint is the URL that spans are sent to, with OTLP over HTTP as JSON. If absent, no spans
	// are sent: only the header is forwarded, and the log has trace_id.
	Endpoint string `json:"endpoint,omitzero"`
	// Headers are headers of the requests to the endpoint, such as a token that a collector
	// requires.
	Headers []Header `json:"headers,omitzero"`
	// Sample is the percentage of new traces that are sampled. A trace that is continued is sampled
	// if the peer sampled it.
	Sample *int `json:"sample,omitzero"`
	// ServiceName is the service.name of spans.
	ServiceName string `json:"service_name,omitzero"`
}

// TracingObject is a tracing with its name, origin and state. The fields of the state are
// ignored in requests.
type TracingObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Enabled is whether requests get a traceparent header (W3C Trace Context). The trace of a peer
	// in client_ip.trusted is continued; others are replaced by a new one. When disabled,
	// traceparent and tracestate are forwarded as clients send them.
	Enabled *bool `json:"enabled,omitzero"`
	// Endpoint is the URL that spans are sent to, with OTLP over HTTP as JSON. If absent, no spans
	// are sent: only the header is forwarded, and the log has trace_id.
	Endpoint string `json:"endpoint,omitzero"`
	// Headers are headers of the requests to the endpoint, such as a token that a collector
	// requires.
	Headers []Header `json:"headers,omitzero"`
	// Sample is the percentage of new traces that are sampled. A trace that is continued is sampled
	// if the peer sampled it.
	Sample *int `json:"sample,omitzero"`
	// ServiceName is the service.name of spans.
	ServiceName string `json:"service_name,omitzero"`
}

// Traffic counts requests of the last minutes.
type Traffic struct {
	// Requests are those that ended.
	Requests int64 `json:"requests"`
	// Errors4xx are those with a status 4xx.
	Errors4xx int64 `json:"errors_4xx"`
	// Errors5xx are those with a status 5xx.
	Errors5xx int64 `json:"errors_5xx"`
}

// TrialBan is a client that a rule which observes would have banned.
type TrialBan struct {
	// Network is the client's address, or its IPv6 /64.
	Network string `json:"network"`
	// Since is when the ban would have begun.
	Since time.Time `json:"since"`
	// Until is when it would have ended.
	Until time.Time `json:"until"`
	// Why is what it would have been for.
	Why string `json:"why"`
	// Times is how often it would have been banned.
	Times int `json:"times"`
	// SignedIn is whether a person signed in from the address within 24 hours.
	SignedIn bool `json:"signed_in"`
}

// UDPProxy carries datagrams to servers. The datagrams of one client address are a session and
// go to one server.
type UDPProxy struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Address is the IP address and port number to listen on, or a range of up to 1000 ports:
	// `0.0.0.0:10000-10100`.
	Address string `json:"address,omitzero"`
	// Servers are the servers that share the sessions.
	Servers []StreamServer `json:"servers,omitzero"`
	// LoadBalancing is how sessions are shared among servers: `round_robin` in turn, by weight;
	// `least_connections` to the one with the fewest; `random`; `first` to the first that takes
	// some; `client_ip_hash` always to the same one for an address.
	LoadBalancing string `json:"load_balancing,omitzero"`
	// IdleTimeout is how long both directions may be silent. Then the session ends, and its client's
	// next datagram begins another.
	IdleTimeout string `json:"idle_timeout,omitzero"`
	// MaxSessions is the maximum number of sessions at once, on each port of a range. At the limit,
	// a new session ends another one: of the clients that have sent nothing since the first
	// response, the one that has been idle for longest, because sessions with forged addresses look
	// like this.
	MaxSessions *int `json:"max_sessions,omitzero"`
	// ProxyProtocol puts a PROXY protocol header of version 2 before each datagram to a server, with
	// the client's address: `off` or `v2`. The server must expect it. Its own datagrams have none.
	// The header has 28 bytes for IPv4 and 52 for IPv6.
	ProxyProtocol string `json:"proxy_protocol,omitzero"`
	// IPFilter allows clients by address. Connections of others are closed, and their datagrams
	// dropped.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// AccessLog changes the access log for the sessions of this proxy: off, or a file of its own.
	AccessLog *ProxyLog `json:"access_log,omitzero"`
	// Nodes are the names of the nodes that have the proxy, as `headgate node list` shows them.
	// Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// Active is whether the proxy takes datagrams.
	Active *bool `json:"active,omitzero"`
}

// UDPProxyObject is a UDP proxy with its name, origin and state. The fields of the state are
// ignored in requests.
type UDPProxyObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`
	// Health counts the servers of the proxy. It is absent for an inactive one.
	Health *ServerCount `json:"health,omitempty"`
	// Issues are what is wrong with it now.
	Issues []string `json:"issues,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// Address is the IP address and port number to listen on, or a range of up to 1000 ports:
	// `0.0.0.0:10000-10100`.
	Address string `json:"address,omitzero"`
	// Servers are the servers that share the sessions.
	Servers []StreamServer `json:"servers,omitzero"`
	// LoadBalancing is how sessions are shared among servers: `round_robin` in turn, by weight;
	// `least_connections` to the one with the fewest; `random`; `first` to the first that takes
	// some; `client_ip_hash` always to the same one for an address.
	LoadBalancing string `json:"load_balancing,omitzero"`
	// IdleTimeout is how long both directions may be silent. Then the session ends, and its client's
	// next datagram begins another.
	IdleTimeout string `json:"idle_timeout,omitzero"`
	// MaxSessions is the maximum number of sessions at once, on each port of a range. At the limit,
	// a new session ends another one: of the clients that have sent nothing since the first
	// response, the one that has been idle for longest, because sessions with forged addresses look
	// like this.
	MaxSessions *int `json:"max_sessions,omitzero"`
	// ProxyProtocol puts a PROXY protocol header of version 2 before each datagram to a server, with
	// the client's address: `off` or `v2`. The server must expect it. Its own datagrams have none.
	// The header has 28 bytes for IPv4 and 52 for IPv6.
	ProxyProtocol string `json:"proxy_protocol,omitzero"`
	// IPFilter allows clients by address. Connections of others are closed, and their datagrams
	// dropped.
	IPFilter *IPFilter `json:"ip_filter,omitzero"`
	// AccessLog changes the access log for the sessions of this proxy: off, or a file of its own.
	AccessLog *ProxyLog `json:"access_log,omitzero"`
	// Nodes are the names of the nodes that have the proxy, as `headgate node list` shows them.
	// Absent means all nodes that share the configuration.
	Nodes []string `json:"nodes,omitzero"`
	// Active is whether the proxy takes datagrams.
	Active *bool `json:"active,omitzero"`
}

// Unverified is a server whose certificate is not checked.
type Unverified struct {
	// Proxy is the proxy where the server is configured.
	Proxy string `json:"proxy"`
	// Route is the route where the server is configured.
	Route string `json:"route"`
	// Server is the URL of the server.
	Server string `json:"server"`
}

// UpgradeCheck is whether the binary now on disk can take over.
type UpgradeCheck struct {
	// Pid is the running process.
	Pid int `json:"pid"`
	// From is the version of its program.
	From string `json:"from"`
	// Version is the version of the binary on disk.
	Version string `json:"version"`
	// Problems are why it cannot; absent if it can.
	Problems []string `json:"problems,omitempty"`
}

// UpgradeInput has the options of an upgrade.
type UpgradeInput struct {
	// Force closes the remaining connections of a process that an earlier upgrade replaced. Without
	// it such a process rejects the upgrade.
	Force bool `json:"force,omitempty"`
	// Why is recorded in the audit log.
	Why string `json:"why,omitempty"`
}

// UpgradeState is what a process shows of upgrades.
type UpgradeState struct {
	// Version is the version of the program.
	Version string `json:"version"`
	// Pid is the process.
	Pid int `json:"pid"`
	// Generation is the number of the process: 1 for one that has replaced none.
	Generation int `json:"generation"`
	// InProgress says that an upgrade is in progress: changes are rejected meanwhile.
	InProgress bool `json:"in_progress"`
	// Previous is the process that this one has replaced, while it has connections. Absent is none.
	Previous *PreviousProcess `json:"previous,omitempty"`
}

// UploadInput is a certificate with its key.
type UploadInput struct {
	// Name is what the certificate is called: lower-case letters, digits and hyphens.
	Name string `json:"name,omitempty"`
	// Certificate is its PEM text with the intermediates, in any order.
	Certificate string `json:"certificate"`
	// Key is the PEM text of its private key. It may be part of the certificate's text.
	Key string `json:"key,omitempty"`
}

// Upstreams holds what is common to the connections to all servers.
type Upstreams struct {
	// IdleTimeout is how long an unused connection to a server is kept. 0 keeps none.
	IdleTimeout string `json:"idle_timeout,omitzero"`
	// MaxIdleConnections is the largest number of unused connections kept for one server. 0 keeps
	// none.
	MaxIdleConnections *int `json:"max_idle_connections,omitzero"`
	// BodyIdleTimeout is the longest pause in a response body before headgate aborts the response.
	BodyIdleTimeout string `json:"body_idle_timeout,omitzero"`
	// HeaderSize is the largest response head, in bytes. A larger one is answered with 502.
	HeaderSize string `json:"header_size,omitzero"`
	// ResolveInterval is how often the names of servers are resolved again. A shorter TTL from a
	// name server is used instead, down to a second. While a name cannot be resolved, its last
	// addresses are used.
	ResolveInterval string `json:"resolve_interval,omitzero"`
	// Resolvers are the name servers that resolve the names of servers, in this order: an address,
	// with a port if it is not 53. Absent means those of the system. The hosts file of the system
	// always takes precedence.
	Resolvers []string `json:"resolvers,omitzero"`
}

// UpstreamsObject is a settings for upstreams with its name, origin and state. The fields of the
// state are ignored in requests.
type UpstreamsObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// IdleTimeout is how long an unused connection to a server is kept. 0 keeps none.
	IdleTimeout string `json:"idle_timeout,omitzero"`
	// MaxIdleConnections is the largest number of unused connections kept for one server. 0 keeps
	// none.
	MaxIdleConnections *int `json:"max_idle_connections,omitzero"`
	// BodyIdleTimeout is the longest pause in a response body before headgate aborts the response.
	BodyIdleTimeout string `json:"body_idle_timeout,omitzero"`
	// HeaderSize is the largest response head, in bytes. A larger one is answered with 502.
	HeaderSize string `json:"header_size,omitzero"`
	// ResolveInterval is how often the names of servers are resolved again. A shorter TTL from a
	// name server is used instead, down to a second. While a name cannot be resolved, its last
	// addresses are used.
	ResolveInterval string `json:"resolve_interval,omitzero"`
	// Resolvers are the name servers that resolve the names of servers, in this order: an address,
	// with a port if it is not 53. Absent means those of the system. The hosts file of the system
	// always takes precedence.
	Resolvers []string `json:"resolvers,omitzero"`
}

// User is a user.
type User struct {
	// Name is what the user signs in with: 1 to 64 lower-case letters, digits and . _ @ -. It cannot
	// be changed.
	Name string `json:"name"`
	// Role is what the user may do.
	Role string `json:"role"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Disabled users cannot sign in.
	Disabled bool `json:"disabled"`
	// Password has at least 10 characters and is none of the commonest. It is never shown; without
	// it the one that is set stays.
	Password string `json:"password,omitempty"`
	// PasswordSet is whether there is a password.
	PasswordSet bool `json:"password_set"`
	// TOTP is whether sign-in requires a code besides the password.
	TOTP bool `json:"totp"`
	// RecoveryCodes is how many are left.
	RecoveryCodes int `json:"recovery_codes"`
	// Passkeys are the passkeys of the user, with which the console can be opened.
	Passkeys []Passkey `json:"passkeys,omitempty"`
	// Created is when the user was made.
	Created time.Time `json:"created"`
	// SignedIn is when the user signed in last.
	SignedIn time.Time `json:"signed_in,omitzero"`
	// ETag is what If-Match names.
	ETag string `json:"etag,omitempty"`
}

// Validation is what a check of documents has found.
type Validation struct {
	// Valid is whether this machine, and the others that share the files, can serve them.
	Valid bool `json:"valid"`
	// Problems are the mistakes in the files.
	Problems []SchemaProblem `json:"problems,omitempty"`
	// Notes are settings that work but are not recommended, and other machines that did not check
	// the files.
	Notes []SchemaProblem `json:"notes,omitempty"`
}

// VerifyInput is the password of now.
type VerifyInput struct {
	// CurrentPassword is the one of now.
	CurrentPassword string `json:"current_password"`
}

// Version describes the program.
type Version struct {
	// Version is that of the program.
	Version string `json:"version"`
	// Go is that of the compiler.
	Go string `json:"go"`
	// API is that of this interface.
	API string `json:"api"`
	// Newer is the version of a newer release; absent if none is known. Without admin.update_check
	// headgate does not look.
	Newer string `json:"newer,omitempty"`
	// Instance is the name of this machine's headgate.
	Instance string `json:"instance,omitempty"`
}

// Watch is the state of a watch.
type Watch struct {
	// MaxErrorsPercent is the share of responses with a status 5xx, in percent from 0 to 100, above
	// which the cutover is reverted. Fewer than 20 responses are not judged.
	MaxErrorsPercent float64 `json:"max_errors_percent"`
	// MinHealthyPercent is the share of the servers that were healthy before, in percent from 0 to
	// 100; the cutover is reverted when fewer are.
	MinHealthyPercent float64 `json:"min_healthy_percent"`
	// Until is when the cutover is confirmed, if no limit is exceeded until then.
	Until time.Time `json:"until"`
	// Responses is how many responses there were since the cutover.
	Responses uint64 `json:"responses"`
	// Errors5xx is how many of them had a status 5xx.
	Errors5xx uint64 `json:"errors_5xx"`
	// HealthyBefore is how many servers were healthy before the cutover.
	HealthyBefore int `json:"healthy_before"`
	// Healthy is how many servers are healthy now.
	Healthy int `json:"healthy"`
	// Result is empty while the watch goes on, then confirmed, reverted, or ended: it was decided by
	// someone else, or could not be decided.
	Result string `json:"result,omitempty"`
	// Reason is the limit that was exceeded, or why the watch could not decide.
	Reason string `json:"reason,omitempty"`
}

// Webhook is a URL that events are sent to, with signatures as in Standard Webhooks. Undelivered
// messages are sent again for a day.
type Webhook struct {
	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// URL is where messages are sent by POST. Redirects are not followed; addresses of the link
	// (169.254.0.0/16, fe80::/10) and of cloud metadata are refused.
	URL string `json:"url,omitzero"`
	// Secret is what messages are signed with: a text of at least 16 characters, or whsec_ and
	// Base64.
	Secret string `json:"secret,omitzero"`
	// Events are the types that are sent, such as proxy.down, or certificate.* for all of an object.
	// Absent means all.
	Events []string `json:"events,omitzero"`
	// Active is whether events are sent. Events that occur while it is false are never sent.
	Active *bool `json:"active,omitzero"`
}

// WebhookObject is a webhook with its name, origin and state. The fields of the state are
// ignored in requests.
type WebhookObject struct {
	// Name is the object's name.
	Name string `json:"name"`
	// Origin is where the object is defined: file and line, or container. It is absent for an object
	// with its defaults that no file defines.
	Origin *Origin `json:"origin,omitempty"`
	// State is the current state: active, degraded, down, maintenance or inactive for a proxy;
	// active, degraded, failing_open, down, inactive or elsewhere (only on other nodes) for a TCP or
	// UDP proxy; the state in /status for a port or certificate; otherwise active or inactive.
	State string `json:"state"`
	// ETag is the entity tag for If-Match.
	ETag string `json:"etag"`
	// ReadOnly is why the object cannot be changed here: its document cannot be written, or a
	// provider has discovered it. It is absent if it can.
	ReadOnly string `json:"read_only,omitempty"`
	// LastChange is when the object was created or changed last, according to the kept revisions.
	LastChange *LastChange `json:"last_change,omitempty"`
	// Plan describes the change, with warnings and what it affects, in the response to a change or a
	// dry run.
	Plan *Plan `json:"plan,omitempty"`

	// Description is a text for people, such as the purpose of the object.
	Description string `json:"description,omitzero"`
	// Tags are keywords to find objects with. They have no effect.
	Tags []string `json:"tags,omitzero"`
	// URL is where messages are sent by POST. Redirects are not followed; addresses of the link
	// (169.254.0.0/16, fe80::/10) and of cloud metadata are refused.
	URL string `json:"url,omitzero"`
	// Secret is what messages are signed with: a text of at least 16 characters, or whsec_ and
	// Base64.
	Secret string `json:"secret,omitzero"`
	// Events are the types that are sent, such as proxy.down, or certificate.* for all of an object.
	// Absent means all.
	Events []string `json:"events,omitzero"`
	// Active is whether events are sent. Events that occur while it is false are never sent.
	Active *bool `json:"active,omitzero"`
}

// WhatIf is the effect on recent requests. A request that would be handled differently is
// counted once, for the first that applies of Refused, Password, Allowed, Proxy, Route, Servers
// and Answer.
type WhatIf struct {
	// Requests is how many requests were decided by both configurations.
	Requests int `json:"requests"`
	// Since is when the oldest of them came.
	Since time.Time `json:"since,omitzero"`
	// Changed is how many would be handled otherwise in any way.
	Changed int `json:"changed"`
	// Refused is how many would be refused that are not refused now.
	Refused int `json:"refused"`
	// Password is how many would be asked for a password or a token (401) that are not asked now.
	// They may have one: credentials are not kept, so they do not count as refused.
	Password int `json:"password"`
	// Allowed is how many would not be refused that are refused now.
	Allowed int `json:"allowed"`
	// Proxy is how many would be taken by another proxy.
	Proxy int `json:"proxy"`
	// Route is how many would be taken by another route.
	Route int `json:"route"`
	// Servers is how many would be sent to other servers.
	Servers int `json:"servers"`
	// Answer is how many would get another answer without a server, or one in place of a server's.
	Answer int `json:"answer"`
	// Left is how many were not decided because the time was over or a part of them is not kept.
	Left int `json:"left,omitempty"`
	// Examples are the changes that are most frequent, those that refuse first.
	Examples []Example `json:"examples,omitempty"`
	// Bans is what each ban rule would have done.
	Bans []BanTrial `json:"bans,omitempty"`
}
