// Package maintenance responds with 503 and Retry-After during maintenance, except to
// clients that may bypass it.
package maintenance

import (
	"crypto/sha256"
	"crypto/subtle"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
	"headgate/internal/setting/page"
)

// Compile returns the filter. The error is about a page's file that cannot be read.
func Compile(c *Config, env exchange.Env) (exchange.Filter, error) {
	g := &gate{header: newSecret(c.Bypass.Header), cookie: newSecret(c.Bypass.Cookie)}
	g.usual = &exchange.Answer{Reason: exchange.Maintenance, RetryAfter: int(c.RetryAfter.D().Seconds())}
	var err error
	if g.page, err = page.Compile(&c.Config, env); err != nil {
		return exchange.Filter{}, err
	}
	if len(c.Bypass.Addresses) > 0 {
		if g.addresses, err = ipset.Compile(c.Bypass.Addresses, env.Addresses); err != nil {
			return exchange.Filter{}, err
		}
	}
	return exchange.Filter{Name: "maintenance", Request: g.request}, nil
}

// gate is compiled settings. It is immutable but for the file of its page.
type gate struct {
	addresses      *ipset.Matcher
	header, cookie *secret
	page           *page.Page
	usual          *exchange.Answer
}

// secret is a name and a hash of the value: what is compared has one length, and
// takes one time.
type secret struct {
	name string
	sum  [sha256.Size]byte
}

func newSecret(s *Secret) *secret {
	if s == nil {
		return nil
	}
	return &secret{s.Name, sha256.Sum256([]byte(s.Value))}
}

// is reports whether a value is the secret, in a time that does not depend on it.
func (s *secret) is(value string) bool {
	sum := sha256.Sum256([]byte(value))
	return subtle.ConstantTimeCompare(sum[:], s.sum[:]) == 1
}

// request responds to clients that may not bypass maintenance.
func (g *gate) request(ex *exchange.Exchange) *exchange.Answer {
	if g.passes(ex) {
		return nil
	}
	if g.page == nil || ex.Request.PrefersJSON() && !g.page.JSON() {
		return g.usual
	}
	return &exchange.Answer{
		Reason: exchange.Maintenance, RetryAfter: g.usual.RetryAfter,
		Fields: []header.Field{{ID: header.CacheControl, Name: header.CacheControl.String(), Value: "no-store"}},
		Body:   g.text(ex), ContentType: g.page.ContentType(),
	}
}

// text returns the page, which may name the status and the reason.
func (g *gate) text(ex *exchange.Exchange) []byte {
	ex.Reason, ex.Response.Status = exchange.Maintenance, exchange.Maintenance.Status()
	return g.page.Text(ex)
}

// passes reports whether any bypass fits. The field of the secret goes no further.
func (g *gate) passes(ex *exchange.Exchange) bool {
	passes := g.addresses != nil && g.addresses.Has(ex)
	list := &ex.Request.Header
	if g.header != nil {
		if value, there := list.Lookup(g.header.name); there {
			passes = g.header.is(value) || passes
			list.DelField(g.header.name)
		}
	}
	return passes || g.cookie != nil && g.hasCookie(list)
}

// hasCookie reports whether a cookie of the name has the secret.
func (g *gate) hasCookie(list *header.List) bool {
	if !list.Has(header.Cookie) {
		return false
	}
	for _, f := range list.All() {
		if f.ID != header.Cookie {
			continue
		}
		for pair := range strings.SplitSeq(f.Value, ";") {
			name, value, _ := header.CutPair(pair)
			if name == g.cookie.name && g.cookie.is(value) {
				return true
			}
		}
	}
	return false
}
