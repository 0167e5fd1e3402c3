// Package clientip determines the client's address. It is the first filter of every route:
// later filters, the log and the forwarded headers use the client's address of the exchange
// and never a header.
//
// The client is the peer, unless the peer is trusted: then it is the address that the peer
// reports, and if that is trusted, too, the one that it reports. trust.go follows this
// chain; cdn.go knows the CDNs; claims.go removes headers that clients must not set;
// watch.go detects a CDN that the settings lack; refresh.go downloads the networks of CDNs,
// periodically and never for a request.
package clientip

import (
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// Compile returns the filter. c may be nil, which trusts no peer. Validated settings return
// no error.
func Compile(c *Config, lists Lists, env exchange.Env) (exchange.Filter, error) {
	b, err := newTrust(c, lists, env)
	if err != nil {
		return exchange.Filter{}, err
	}
	w := newWatch(b, env)
	return exchange.Filter{
		Name:  "client_ip",
		Owned: &exchange.Owned{Request: b.owns},
		Request: func(ex *exchange.Exchange) *exchange.Answer {
			ex.ClientIP = ipset.Plain(ex.Conn.Remote.Addr())
			kept := header.Other
			if b != nil {
				kept = b.resolveClient(ex)
			}
			drop(&ex.Request.Header, kept)
			if w != nil && sampled(ex.Times.Start) && !ex.Rehearsal {
				w.countClient(ex)
			}
			return nil
		},
	}, nil
}
