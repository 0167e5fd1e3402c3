// Package gate lets in only people who have signed in. Guard is the filter of every route
// of a proxy that has a gate somewhere: it keeps headgate's cookies and the fields that name
// people away from servers. Compile returns the gate itself. Entry is what answers below
// /.headgate/ on the hosts of applications. Who is signed in is known by internal/gate.
package gate

import (
	"net/url"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/proto/header"
	"headgate/internal/setting/ipset"
)

// Name is the name of the filters.
const Name = "gate"

// Compile returns the gate. Framed is whether browsers send the session from frames of other
// sites, too: a gate of the proxy has same_site: none. Settings that were checked give no error.
func Compile(c *Config, headers *gate.Headers, engine *gate.Engine, framed bool, env exchange.Env) (exchange.Filter, error) {
	allow, err := gate.ParseAllow(c.Allow)
	if err != nil {
		return exchange.Filter{}, err
	}
	f := &filter{engine: engine, allow: allow, headers: *headers, shared: c.SharedCache, basic: c.BasicTokens, framed: framed, ports: env.SecurePorts}
	if f.bypasses, err = compileBypasses(c.Bypass); err != nil {
		return exchange.Filter{}, err
	}
	if len(c.From) > 0 {
		if f.from, err = ipset.Compile(c.From, env.Addresses); err != nil {
			return exchange.Filter{}, err
		}
	}
	return exchange.Filter{Name: Name, Request: f.request, Response: f.response}, nil
}

// filter is a compiled gate. It is immutable.
type filter struct {
	engine   *gate.Engine
	allow    *gate.Allow
	from     *ipset.Matcher // nil without
	headers  gate.Headers
	shared   bool
	bypasses []bypass
	basic    bool           // tokens are accepted as passwords
	framed   bool           // browsers send the session from frames of other sites
	ports    map[string]int // https ports by the names of http ports
}

// request lets a client in, or sends it to sign in.
func (f *filter) request(ex *exchange.Exchange) *exchange.Answer {
	ex.Gated = !f.shared
	var as *gate.Rehearsed
	if ex.Rehearsal {
		as = gate.RehearsedOf(ex)
	}
	if f.from != nil && f.from.Has(ex) {
		if as != nil {
			as.Decide(true, "the client address is in from")
		}
		ex.Note("gate: the address is in from, so no sign-in is needed")
		return nil
	}
	if b := f.bypassed(ex); b != nil {
		ex.Gated = false
		ex.Note("gate: no sign-in is needed for " + b.text)
		if as != nil {
			as.Decide(true, "bypass "+b.text)
		}
		return nil
	}
	if as != nil && ex.Request.Scheme == "https" {
		return f.rehearse(ex, as)
	}
	if ex.Request.Scheme != "https" {
		return needsHTTPS(ex, f.ports)
	}
	if token := tokenOf(ex); token != nil {
		return f.admitToken(ex, token)
	}
	cookies := gate.CookiesOf(ex)
	if cookies.Repeated || cookies.Gate == "" || f.engine == nil {
		return f.visitOrSignIn(ex, cookies)
	}
	s := f.engine.Host(cookies.Gate, gate.HostOf(ex), ex.Times.Start)
	if s == nil {
		return f.visitOrSignIn(ex, cookies)
	}
	if f.framed && fromOtherSite(ex) {
		return f.otherSite(ex)
	}
	if !f.allow.Has(s.Person()) {
		if len(cookies.Links) > 0 && f.visiting(ex, cookies) {
			return nil
		}
		return f.deny(ex, s.Person())
	}
	f.admit(ex, s)
	return nil
}

// fromOtherSite reports whether a request that a browser sent with the session may be the doing
// of another site: one that changes something or opens a WebSocket, and that no page of the
// application's own origin has sent.
func fromOtherSite(ex *exchange.Exchange) bool {
	rq := &ex.Request
	reads := (rq.Method == "GET" || rq.Method == "HEAD") && rq.Upgrade == "" && !rq.Extended
	return !reads && !gate.SameOrigin(ex)
}

// otherSite answers such a request.
func (f *filter) otherSite(ex *exchange.Exchange) *exchange.Answer {
	a := problem(ex, exchange.GateDenied, "The request does not come from a page of this application.", "")
	a.Cause = "gate: with same_site: none, WebSockets and requests that change something need the application's own Origin"
	return a
}

// visitOrSignIn lets in a browser that has opened a share link, and sends others to sign in.
func (f *filter) visitOrSignIn(ex *exchange.Exchange, cookies *gate.Cookies) *exchange.Answer {
	if len(cookies.Links) > 0 && !cookies.Repeated && f.visiting(ex, cookies) {
		return nil
	}
	return f.signIn(ex, cookies)
}

// admit lets in a person with a session.
func (f *filter) admit(ex *exchange.Exchange, s *gate.Session) {
	p := s.Person()
	ex.User, ex.Personal, ex.SignedIn = p.User, true, s
	f.identify(ex, p)
}

// identify adds the fields from which the server learns who a person is.
func (f *filter) identify(ex *exchange.Exchange, p *gate.Person) {
	list := &ex.Request.Header
	addText(list, f.headers.User, p.User)
	addText(list, f.headers.Email, p.Email)
	addText(list, f.headers.Name, p.Name)
	addText(list, f.headers.Groups, p.GroupsField())
}

// addText adds a field unless it has no name or no value.
func addText(list *header.List, name, value string) {
	if name != "" && value != "" {
		list.AddKnown(header.Other, name, value)
	}
}

// response keeps caches outside from sharing what is for one person.
func (f *filter) response(ex *exchange.Exchange) {
	if ex.Gated && ex.Response.Tunnel == nil && (!ex.Response.Ours || ex.Reason == exchange.None) {
		private(ex)
	}
}

// private rewrites the fields by which shared caches decide (RFC 9111, section 5.2.2; RFC
// 9213).
func private(ex *exchange.Exchange) {
	list := &ex.Response.Header
	list.DeleteFunc(func(f *header.Field) bool {
		return f.ID == header.CDNCacheControl || f.ID == header.Other && (f.Is("Surrogate-Control") || ofCDN(f.Name))
	})
	confined, said := false, false
	fields := list.All()
	for i := range fields {
		if field := &fields[i]; field.ID == header.CacheControl {
			said = true
			field.Value = confine(ex, field.Value)
			confined = confined || confines(field.Value)
		}
	}
	if !said || !confined {
		list.Add(header.CacheControl, "private")
	}
}

// ofCDN reports whether a field is for the caches of one CDN, such as
// Cloudflare-CDN-Cache-Control.
func ofCDN(name string) bool {
	const suffix = "-CDN-Cache-Control"
	return len(name) > len(suffix) && header.EqualFold(name[len(name)-len(suffix):], suffix)
}

// confines reports whether a Cache-Control field keeps shared caches from storing.
func confines(value string) bool {
	for part := range strings.SplitSeq(value, ",") {
		if part = header.TrimOWS(part); header.EqualFold(part, "private") || header.EqualFold(part, "no-store") {
			return true
		}
	}
	return false
}

// confine returns a Cache-Control field without what only shared caches read, and with
// private in the place of public.
func confine(ex *exchange.Exchange, value string) string {
	changes := false
	for part := range strings.SplitSeq(value, ",") {
		changes = changes || shares(part)
	}
	if !changes {
		return value
	}
	b := append(ex.Text.Buffer(), "private"...)
	for part := range strings.SplitSeq(value, ",") {
		if part = header.TrimOWS(part); part != "" && !shares(part) && !header.EqualFold(part, "private") {
			b = append(append(b, ", "...), part...)
		}
	}
	return ex.Text.End(b)
}

// shares reports whether a directive lets shared caches store what they otherwise would not.
func shares(part string) bool {
	name, _, _ := header.CutPair(part)
	return header.EqualFold(name, "public") || header.EqualFold(name, "s-maxage") || header.EqualFold(name, "proxy-revalidate")
}

// maxTarget is the longest address that is returned to.
const maxTarget = 1800

// addressOf returns the address of a request.
func addressOf(ex *exchange.Exchange) string {
	path := ex.Request.Path
	if path == "*" || path == "" {
		path = "/"
	}
	if address := gate.OriginOf(ex) + path + ex.Request.Query; len(address) <= maxTarget {
		return address
	}
	return gate.OriginOf(ex) + "/"
}

// signInQuery returns the query of the sign-in page for a request.
func signInQuery(address, nonce string) string {
	q := "?to=" + url.QueryEscape(address)
	if nonce != "" {
		q += "&n=" + nonce
	}
	return q
}
