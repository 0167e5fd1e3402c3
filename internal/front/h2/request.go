package h2

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/header"
	"headgate/internal/http1"
)

// mostMethod is the longest method that is passed on, in bytes.
const mostMethod = 32

// settle makes the request of a stream out of its fields. It returns the rule
// that makes the request malformed, or "". A request that is well-formed and
// refused all the same has an answer.
func (f *fields) settle(s *stream, end bool) (fault string) {
	rq := &s.ex.Request
	rq.Method, rq.Host = f.method, f.authority
	rq.Path, rq.Query, _ = cutQuery(f.path)
	if f.fault != "" {
		return f.fault
	}
	if f.tooLarge {
		f.refuseSize(s)
		s.expect = f.length
		f.body(s, end)
		return ""
	}
	if fault = f.settleMethod(s); fault != "" || s.answer != nil {
		return fault
	}
	if fault = f.settleTarget(s); fault == "" {
		fault = f.settleHost(s)
	}
	if fault == "" {
		fault = f.settleBody(s, end)
	}
	return fault
}

// cutQuery splits a target before its "?".
func cutQuery(target string) (path, query string, ok bool) {
	if i := strings.IndexByte(target, '?'); i >= 0 {
		return target[:i], target[i:], true
	}
	return target, "", false
}

// refuseSize answers a head that is too large.
func (f *fields) refuseSize(s *stream) {
	s.answer = exchange.Fail(exchange.HeadTooLarge, http1.HeadTooLarge.Error())
	if f.pathTooLong || len(f.path) > f.pathMost {
		s.answer = exchange.Fail(exchange.URITooLong, http1.URITooLong.Error())
	}
}

// settleMethod judges the method and whether the pseudo-header fields are there
// (RFC 9113, sections 8.3.1 and 8.5).
func (f *fields) settleMethod(s *stream) (fault string) {
	const all = pseudoMethod | pseudoScheme | pseudoPath
	switch {
	case f.seen&pseudoMethod == 0 || !http1.ValidName(f.method):
		return "no :method, or one that is no token (RFC 9113, section 8.3.1)"
	case f.method == "CONNECT" && f.seen != pseudoMethod|pseudoAuthority:
		return "CONNECT with :scheme or :path, or without :authority (RFC 9113, section 8.5)"
	case f.method == "CONNECT":
		s.answer = exchange.Fail(exchange.MethodUnknown, http1.ConnectRefused.Error())
	case f.seen&all != all:
		return "no :scheme or no :path (RFC 9113, section 8.3.1)"
	case len(f.method) > mostMethod:
		s.answer = exchange.Fail(exchange.MethodUnknown, http1.MethodTooLong.Error())
	}
	return ""
}

// settleTarget judges :scheme and :path (RFC 9113, section 8.3.1).
func (f *fields) settleTarget(s *stream) (fault string) {
	if !header.EqualFold(f.scheme, "http") && !header.EqualFold(f.scheme, "https") {
		return http1.BadScheme.Error()
	}
	switch {
	case f.path == "":
		return ":path is empty (RFC 9113, section 8.3.1)"
	case f.path == "*" && f.method != "OPTIONS":
		return http1.AsteriskMethod.Error()
	case f.path[0] != '/' && f.path != "*":
		return ":path does not begin with a slash (RFC 9113, section 8.3.1)"
	}
	for i := 0; i < len(f.path); i++ {
		if c := f.path[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return http1.BadTargetByte.Error()
		}
	}
	if len(f.path) > f.pathMost {
		s.answer = exchange.Fail(exchange.URITooLong, http1.URITooLong.Error())
	}
	return ""
}

// settleHost finds the authority. A Host that says something else than :authority
// makes a request malformed (RFC 9113, section 8.3.1).
func (f *fields) settleHost(s *stream) (fault string) {
	authority := f.authority
	switch {
	case f.hosts > 1:
		return http1.HostRepeated.Error()
	case f.seen&pseudoAuthority == 0 && f.hosts == 0:
		return "neither :authority nor Host (RFC 9113, section 8.3.1)"
	case f.seen&pseudoAuthority == 0:
		authority = f.host
	}
	if _, _, ok := http1.SplitAuthority(authority); !ok {
		return http1.BadAuthority.Error()
	}
	if f.hosts == 1 && !sameAuthority(authority, f.host, f.scheme) {
		return "Host differs from :authority (RFC 9113, section 8.3.1)"
	}
	s.ex.Request.Host = authority
	return ""
}

// sameAuthority reports whether two authorities name one entity: names compare
// without case, and the port of the scheme may be left out.
func sameAuthority(a, b, scheme string) bool {
	if header.EqualFold(a, b) {
		return true
	}
	port := ":80"
	if header.EqualFold(scheme, "https") {
		port = ":443"
	}
	return header.EqualFold(strings.TrimSuffix(a, port), strings.TrimSuffix(b, port))
}

// settleBody judges the fields that tell of the body, and joins the cookie crumbs
// (RFC 9113, sections 8.1.1 and 8.2.3).
func (f *fields) settleBody(s *stream, end bool) (fault string) {
	rq := &s.ex.Request
	switch {
	case end && f.length > 0:
		return "Content-Length without a body (RFC 9113, section 8.1.1)"
	case !end && f.method == "TRACE":
		return http1.TraceBody.Error()
	}
	if f.expects > 0 && (f.expects > 1 || !header.EqualFold(f.expect, "100-continue")) {
		s.answer = exchange.Fail(exchange.BadRequest, http1.BadExpect.Error())
	}
	if f.cookies > 1 {
		joinCookies(&s.ex)
	}
	if rq.Header.Has(header.Priority) {
		s.urgency, s.rotates = parsePriority(rq.Header.Get(header.Priority))
		s.signalled = true
	}
	rq.AcceptsTrailers = f.trailers
	rq.Continue = f.expects > 0 && !end && f.length != 0
	s.expect = f.length
	f.body(s, end)
	return ""
}

// body gives the request its body. One that is said to be empty is none.
func (f *fields) body(s *stream, end bool) {
	rq := &s.ex.Request
	if end || f.length == 0 {
		return
	}
	rq.Length = f.length
	rq.Body = &s.body
}

// joinCookies makes one Cookie field of several.
func joinCookies(ex *exchange.Exchange) {
	b := ex.Text.Begin()
	for i := range ex.Request.Header.All() {
		if f := &ex.Request.Header.All()[i]; f.ID == header.Cookie {
			if len(b) > 0 {
				b = append(b, "; "...)
			}
			b = append(b, f.Value...)
		}
	}
	ex.Request.Header.Set(header.Cookie, ex.Text.End(b))
}
