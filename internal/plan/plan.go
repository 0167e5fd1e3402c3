// Package plan compiles a configuration and serves requests with it: Compile makes a Plan,
// a Plan has Ports, and a Port handles every exchange that a front has read.
//
// serve.go is the life of a request: the normalized path, the route, the route's pipeline.
// hosts.go and paths.go are the tables for matching; route.go makes a route's pipeline,
// rooms.go its filters in order, servers.go its servers; compile.go compiles the
// configuration; keep.go reuses what a change leaves unchanged. Explain shows how the
// tables and filters handle one request.
//
// A Plan is immutable and safe for concurrent use. The package opens no sockets and no
// files; internal/control does, and swaps one plan for the next.
package plan

import (
	"context"
	"crypto/tls"
	"net/netip"
	"slices"
	"sync"
	"time"

	"headgate/internal/bans"
	"headgate/internal/certs"
	"headgate/internal/config"
	"headgate/internal/exchange"
	people "headgate/internal/gate"
	"headgate/internal/tracing"
)

// Plan is the compiled form of a configuration.
type Plan struct {
	config    *config.Config
	ports     []*Port // those that speak HTTP, by name
	streams   []*Port // those of TCP proxies, by name
	house     House
	parts     parts
	unstarted []starter
	notes     []exchange.Note
	// proxies are those of the configuration, by name, also the inactive ones; names
	// are theirs.
	proxies []*proxy
	names   []string
	// watching are the indexes of those that were compiled with files or certificates.
	watching []int
	// rest is all that is no proxy's.
	rest *unit
	// bans are the rules by which clients are refused; nil without any.
	bans *bans.Rules
	// tcpProxies are the active TCP proxies, by name.
	tcpProxies []TCPProxy
	// udpProxies are the active UDP proxies, by name.
	udpProxies []*UDPProxy
	// certificates are those of the configuration, by name.
	certificates []*certs.Certificate
	// unverified are the servers of TCP proxies whose certificates are not checked.
	unverified []Unverified
	// admin is how the admin listener speaks TLS; nil if it does not.
	admin *portTLS
	// found are the applications with a gate, when they were asked for; see Applications.
	applications sync.Once
	found        []people.Application
}

// retirer is a part that must be notified when a plan is no longer used.
type retirer interface{ Retire() }

// Port is a port of a plan: how its socket is found, and where its requests go.
type Port struct {
	settings *config.Port
	front    exchange.Port
	hosts    hosts
	// demands are the rules for certificates on demand; nil without any.
	demands *demands
	// minBodyRate is the least rate of request bodies, in bytes a second; 0 is none.
	minBodyRate int64
	// outside takes what no route takes.
	outside exchange.Pipeline
	// tls is how an HTTPS port speaks TLS; nil on others.
	tls *portTLS
	// streams are the TCP proxies of an address that speaks no HTTP, or of some names of an
	// https port; nil if there are none. direct is whether one of them accepts everything, so
	// that no ClientHello is read.
	streams *streamTable
	direct  bool
	// tracer traces what no route takes; nil traces nothing.
	tracer *tracing.Tracer
	// announcers are the peers that send a PROXY protocol header; nil if there are none.
	announcers *announcers
	// quic is the http3 port that an https port announces in alternative; both are nil on
	// others.
	quic        *Port
	alternative *exchange.Alternative
	// uncovered are the first hosts that no certificate has.
	uncovered []string
	// banned looks at what no route takes: it returns the answer that a request gets,
	// given the one that it would get. Nil where there are no bans.
	banned func(*exchange.Exchange, *exchange.Answer) *exchange.Answer
	// bans knows whose connections are closed at once; nil without ban rules.
	bans *bans.Engine
	// locator says where clients are; nil without geo databases.
	locator exchange.Locator
	// challenges answer authorities before everything else; nil answers none.
	challenges Challenges
	// challenged are the hosts whose challenges only headgate answers; nil means none.
	challenged *challenged
}

// Config returns the configuration that the plan was compiled from. It must not
// be changed.
func (p *Plan) Config() *config.Config { return p.config }

// Certificates returns the states of the certificates, by name.
func (p *Plan) Certificates() []certs.Status {
	all := make([]certs.Status, len(p.certificates))
	for i, pair := range p.certificates {
		all[i] = pair.Status()
	}
	return all
}

// Ports returns the active ports by name. The slice is the plan's own.
func (p *Plan) Ports() []*Port { return p.ports }

// Listeners returns all that has an address: the active ports, and those of TCP proxies. The slice is the caller's.
func (p *Plan) Listeners() []*Port { return slices.Concat(p.ports, p.streams) }

// Port returns the active port with this name, or nil.
func (p *Plan) Port(name string) *Port {
	for _, port := range p.ports {
		if port.settings.Name == name {
			return port
		}
	}
	return nil
}

// At returns the listener of this address over TCP: an active port, or that of a TCP proxy;
// nil if there is none.
func (p *Plan) At(address netip.AddrPort) *Port {
	for _, list := range [][]*Port{p.ports, p.streams} {
		for _, port := range list {
			if port.settings.Address == address && port.settings.Protocol != config.HTTP3 {
				return port
			}
		}
	}
	return nil
}

// AtQUIC returns the active port that listens on this address over UDP, or nil.
func (p *Plan) AtQUIC(address netip.AddrPort) *Port {
	for _, port := range p.ports {
		if port.settings.Address == address && port.settings.Protocol == config.HTTP3 {
			return port
		}
	}
	return nil
}

// Start starts the background work of p, such as health checks, and logs the notes. It is
// called once, when the plan is taken into use. A plan without Start sends nothing.
func (p *Plan) Start() {
	for _, n := range p.notes {
		p.house.Log.Log(context.Background(), n.Level, n.Text, n.Attrs...)
	}
	for _, part := range p.unstarted {
		part.Start()
	}
}

// Notes returns the notes for operators. The slice belongs to the plan.
func (p *Plan) Notes() []exchange.Note { return p.notes }

// Retire releases what p holds and current does not: counters, pooled connections,
// background work. It is called once: on the old plan when another one replaces it, or on a
// new plan that is not used. current is nil when the process ends. Exchanges in progress on
// p continue.
func (p *Plan) Retire(current *Plan) {
	if current == nil {
		current = &Plan{}
	}
	at := 0 // in current, by name, as those of p
	for i, proxy := range p.proxies {
		for at < len(current.names) && current.names[at] < p.names[i] {
			at++
		}
		if at == len(current.names) || current.proxies[at] != proxy {
			proxy.retire(p.parts)
		}
	}
	p.rest.retire(p.parts)
}

// Name returns the port's name.
func (p *Port) Name() string { return p.settings.Name }

// Address returns what the port listens on.
func (p *Port) Address() netip.AddrPort { return p.settings.Address }

// Protocol returns what the port speaks.
func (p *Port) Protocol() config.Protocol { return p.settings.Protocol }

// Drain returns how long exchanges may go on when the port is closed.
func (p *Port) Drain() time.Duration { return p.settings.DrainTimeout.D() }

// Connections returns the largest number of open connections; 0 means no bound
// of the port's own.
func (p *Port) Connections() int { return p.settings.Limits.MaxConnections }

// Secure reports whether the port speaks TLS: an https or http3 port.
func (p *Port) Secure() bool { return p.Protocol() == config.HTTPS || p.Protocol() == config.HTTP3 }

// TLS returns how an HTTPS or HTTP/3 port speaks TLS, nil for other ports.
func (p *Port) TLS() *tls.Config {
	if p.tls == nil {
		return nil
	}
	return p.tls.config
}

// SelfSigned returns the hosts of an HTTPS port whose clients get a self-signed
// certificate, the first of them if there are many; "*" means all.
func (p *Port) SelfSigned() []string { return p.uncovered }

// H2C reports whether the port takes HTTP/2 without TLS.
func (p *Port) H2C() bool { return p.settings.H2C }

// Front returns the port as a front sees it.
func (p *Port) Front() *exchange.Port { return &p.front }
