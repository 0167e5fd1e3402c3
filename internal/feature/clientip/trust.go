package clientip

import (
	"fmt"
	"net/netip"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// maxHops is how many trusted proxies a request may have come through. What is
// further away is not looked at.
const maxHops = 64

// trust knows whom to believe. It is immutable.
type trust struct {
	trusted *ipset.Set
	cdns    []*cdn
	// only is the one field that is read, no field for the usual ones.
	only field
}

// newTrust returns nil when no peer is trusted.
func newTrust(c *Config, lists Lists, env exchange.Env) (*trust, error) {
	if c == nil || c.Off() || len(c.Trusted) == 0 && len(c.CDN) == 0 {
		return nil, nil
	}
	b := &trust{}
	var err error
	if b.trusted, err = ipset.New(c.Trusted); err != nil {
		return nil, err
	}
	for _, name := range c.CDN {
		known := named(name)
		if known == nil {
			return nil, fmt.Errorf("unknown CDN %q", name)
		}
		b.cdns = append(b.cdns, current(known, lists, env))
	}
	if c.Header != "" {
		b.only = field{header.Lookup(c.Header), c.Header}
	}
	return b, nil
}

// trusts reports whether an address is trusted, and the CDN it belongs to if it
// is one's.
func (b *trust) trusts(a netip.Addr) (*cdn, bool) {
	if c := owner(b.cdns, a); c != nil {
		return c, true
	}
	return nil, b.trusted.Contains(a)
}

// resolveClient takes the client's address and scheme from what a trusted peer says.
// It returns the field that may stay: that of the CDN which is the peer, if no
// visitor can have made it.
func (b *trust) resolveClient(ex *exchange.Exchange) header.ID {
	peer, trusted := b.trusts(ex.ClientIP)
	if trusted {
		b.readForwarded(ex, peer)
		if peer == nil {
			listen(ex)
		}
	}
	if b.only.name != "" && b.only.id == header.Other {
		dropTwins(&ex.Request.Header, b.only.name, trusted)
	}
	if peer == nil || !peer.first {
		return header.Other
	}
	return peer.own
}

// listen notes what a trusted proxy says of the request beside its client, and takes
// over the request id that it gave. CDNs pass on what visitors say, so they are not
// listened to.
func listen(ex *exchange.Exchange) {
	list := &ex.Request.Header
	ex.AdoptID(list.Get(header.XRequestID))
	ex.Told.Trusted = true
	ex.Told.Method, ex.Told.Host, ex.Told.URI = list.Get(header.XForwardedMethod), list.Get(header.XForwardedHost), list.Get(header.XForwardedUri)
}

// readForwarded reads the fields of a trusted peer, which is a server of a CDN or, when
// that is nil, another proxy.
func (b *trust) readForwarded(ex *exchange.Exchange, peer *cdn) {
	list := &ex.Request.Header
	switch {
	case b.only.id == header.Forwarded:
		b.walk(ex, peer, newChain(list, b.only))
		return
	case b.only.name != "":
		b.walk(ex, peer, newChain(list, b.only))
	case peer != nil && peer.first && takeOwn(ex, peer):
	case list.Has(header.XForwardedFor):
		b.walk(ex, peer, newChain(list, field{id: header.XForwardedFor}))
	case list.Has(header.Forwarded):
		takeProto(ex)
		b.walk(ex, peer, newChain(list, field{id: header.Forwarded}))
		return
	}
	takeProto(ex)
	if peer != nil && !peer.first && b.only.name == "" && owner(b.cdns, ex.ClientIP) == peer {
		takeOwn(ex, peer)
	}
}

// walk goes from the peer, a server of a CDN or nil, towards the client for as
// long as each hop is trusted. Where something cannot be read, the last hop that
// could is taken.
func (b *trust) walk(ex *exchange.Exchange, hop *cdn, c chain) {
	skip := behind(hop)
	for range maxHops {
		a, known := c.previousAddress()
		var text, proto string
		ok := known
		if !known {
			if text, ok = c.previous(); !ok {
				return
			}
		}
		if skip > 0 {
			skip--
			continue
		}
		if !known {
			if a, proto, ok = c.read(text); !ok {
				return
			}
		}
		ex.ClientIP = a
		setScheme(ex, proto)
		if hop, ok = b.trusts(a); !ok {
			return
		}
		skip = behind(hop)
	}
}

// behind returns how many addresses a hop writes behind that of its client.
func behind(hop *cdn) int {
	if hop == nil {
		return 0
	}
	return hop.skip
}

// takeOwn takes the address from the CDN's own field, if it is there and can be
// read.
func takeOwn(ex *exchange.Exchange, peer *cdn) bool {
	if peer.own == header.Other {
		return false
	}
	c := newChain(&ex.Request.Header, field{id: peer.own})
	text, ok := c.previous()
	if !ok {
		return false
	}
	a, ok := address(text)
	if ok {
		ex.ClientIP = a
	}
	return ok
}

// takeProto takes the scheme from X-Forwarded-Proto: the last value, which is
// the one that the peer vouches for.
func takeProto(ex *exchange.Exchange) {
	if !ex.Request.Header.Has(header.XForwardedProto) {
		return
	}
	c := newChain(&ex.Request.Header, field{id: header.XForwardedProto})
	c.line()
	switch c.rest { // nearly always it is the only element
	case "https":
		ex.Request.Scheme = "https"
	case "http":
		ex.Request.Scheme = "http"
	default:
		if text, ok := c.previous(); ok {
			setScheme(ex, text)
		}
	}
}

// setScheme sets the scheme if text is one.
func setScheme(ex *exchange.Exchange, text string) {
	switch {
	case text == "":
	case header.EqualFold(text, "https"), header.EqualFold(text, "wss"):
		ex.Request.Scheme = "https"
	case header.EqualFold(text, "http"), header.EqualFold(text, "ws"):
		ex.Request.Scheme = "http"
	}
}
