// Package clientip settles who the client is. It is the first filter of every
// route: those behind it, the log and the forwarded fields take the client's
// address from the exchange and never from a field.
//
// The client is the peer, unless the peer is trusted: then it is who the peer
// says, and if that one is trusted too, who that one says. trust.go walks this
// way; cdn.go knows the CDNs; claims.go drops what nobody may claim; watch.go
// notices a CDN that the settings do not name; refresh.go fetches what CDNs publish
// of their networks, now and then and never for a request.
package clientip

import (
	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// Compile returns the filter. c may be nil, which trusts nobody. Settings that
// were checked give no error.
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
