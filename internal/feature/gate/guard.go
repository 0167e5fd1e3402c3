package gate

import (
	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/proto/header"
)

// Guard returns the filter that keeps cookies and tokens of headgate, and fields that name people, away
// from servers, logs and whatever else reads a request. It is in front of all that looks at
// cookies, on every route of a proxy that has a gate, also where the gate is off.
func Guard(headers *gate.Headers) exchange.Filter {
	g := &guard{names: headers.Names()}
	return exchange.Filter{Name: Name, Request: g.request, Response: g.response, Owned: &exchange.Owned{Request: g.owns}}
}

// guard is a compiled guard. It is immutable.
type guard struct{ names []string }

// owns reports whether a field of a trailer is headgate's.
func (g *guard) owns(f *header.Field) bool {
	return g.claims(f) || tokenField(f) || f.ID == header.Authorization && holdsToken(f.Value).found
}

// claims reports whether a field is, or may be read by a server as, one that names people.
func (g *guard) claims(f *header.Field) bool {
	if f.ID != header.Other && f.ID != header.XForwardedUser {
		return false
	}
	for _, name := range g.names {
		if header.Twins(f.Name, name) {
			return true
		}
	}
	return false
}

func (g *guard) request(ex *exchange.Exchange) *exchange.Answer {
	list := &ex.Request.Header
	fields, named, token := list.All(), false, false
	for i := range fields {
		named = named || g.claims(&fields[i])
		token = token || mayHoldToken(&fields[i])
	}
	if named {
		list.DeleteFunc(g.claims)
	}
	if token {
		stripTokens(ex)
	}
	hideLink(ex)
	gate.Strip(ex)
	return nil
}

// response drops cookies by which a server could pretend to be headgate.
func (g *guard) response(ex *exchange.Exchange) {
	if !ex.Response.Ours && ex.Response.Header.Has(header.SetCookie) {
		gate.DropSetCookies(&ex.Response.Header)
	}
}
