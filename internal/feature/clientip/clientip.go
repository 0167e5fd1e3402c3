// Package clientip settles who the client is. It is the first filter of every
// route: those behind it, the log and the forwarded fields take the client's
// address from the exchange and never from a field.
//
// Nobody is trusted yet: the client is the peer. Whom to trust is asked in one
// place, believe, so that trusted proxies and CDNs join there.
package clientip

import (
	"headgate/internal/exchange"
	"headgate/internal/header"
	"headgate/internal/http1"
)

// Compile returns the filter. c may be nil, which trusts nobody.
func Compile(c *Config) exchange.Filter {
	return exchange.Filter{Name: "client_ip", Request: settle}
}

func settle(ex *exchange.Exchange) *exchange.Answer {
	if !believe(ex) {
		ex.ClientIP = ex.Conn.Remote.Addr()
	}
	drop(&ex.Request.Header)
	return nil
}

// believe takes the client's address from what a trusted peer says, and returns
// false when the peer is not trusted.
func believe(*exchange.Exchange) bool { return false }

// drop removes every field that claims who the client is or how it came.
func drop(list *header.List) {
	all := list.All()
	for i := range all {
		if claims(&all[i]) {
			list.DeleteFunc(claims)
			return
		}
	}
}

// claims reports whether a field is such a claim: a well-known one, any other
// X-Forwarded field, or a name that a server which makes variables of names
// reads as one of them ("X_Forwarded_For").
func claims(f *header.Field) bool {
	if f.ID != header.Other {
		return claiming[f.ID]
	}
	if len(f.Name) < shortest {
		return false
	}
	switch f.Name[0] | 0x20 {
	case 'x':
		return forwarded(f.Name) || http1.Twin(f.Name).ClaimsClient()
	case 'c', 'f', 't':
		return http1.Twin(f.Name).ClaimsClient()
	}
	return false
}

// claiming is header.ID.ClaimsClient as a table.
var claiming = func() (t [256]bool) {
	for id := range t {
		t[id] = header.ID(id).ClaimsClient()
	}
	return t
}()

// The shortest claim that is not well known is a twin of X-Real-IP.
const shortest = len("x_real_ip")

// forwarded reports whether a name begins as X-Forwarded does, in any case and
// with any character in the place of the hyphen.
func forwarded(name string) bool {
	const begin, rest = "x?", "forwarded"
	if len(name) < len(begin)+len(rest) || !header.EqualFold(name[len(begin):len(begin)+len(rest)], rest) {
		return false
	}
	return !alphanumeric(name[1]) && (len(name) == len(begin)+len(rest) || !alphanumeric(name[len(begin)+len(rest)]))
}

func alphanumeric(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}
