package section

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
)

// maxMethod is the longest method that is passed on, in bytes.
const maxMethod = 32

// Verdict is what came of a request's fields.
type Verdict struct {
	// Fault is the rule that makes the request malformed (RFC 9113, section
	// 8.1.1; RFC 9114, section 4.1.2), or "".
	Fault string
	// Answer rejects a request that is well-formed, or is nil.
	Answer *exchange.Answer
	// Length is what Content-Length says, or -1.
	Length int64
	// Body says that the request has a body, of Length bytes if that is known.
	// It is false for one that is said to be empty.
	Body bool
	// Protocol is what a client wants to speak in an extended CONNECT (RFC 8441),
	// or "". Extend makes the exchange of it.
	Protocol string
}

// Length returns the value of Content-Length, or -1. It may be called before
// Settle.
func (s *Section) Length() int64 { return s.length }

// Waits reports whether the client waits for 100 Continue before it sends a body, or for
// the response: the body must not be waited for.
func (s *Section) Waits() bool {
	return s.expects > 0 || s.seen&pseudoProtocol != 0 || s.GRPC()
}

// GRPC reports whether the request is a call of gRPC, which always has a body, even
// an empty one. It may be called before Settle.
func (s *Section) GRPC() bool {
	return strings.HasPrefix(s.list.Get(header.ContentType), "application/grpc")
}

// Method returns the method. It may be called before Settle.
func (s *Section) Method() string { return s.method }

// MakeRequest makes the request of ex out of the fields, all but its body. end says
// that nothing comes behind them.
func (s *Section) MakeRequest(ex *exchange.Exchange, end bool) Verdict {
	rq := &ex.Request
	rq.Method, rq.Host = s.method, s.authority
	rq.Path, rq.Query, _ = cutQuery(s.path)
	v := Verdict{Fault: s.fault, Length: s.length}
	if v.Fault != "" {
		return v
	}
	if s.tooLarge {
		v.Answer = s.sizeAnswer()
		v.Body = !end && s.length != 0
		return v
	}
	s.settleMethod(&v)
	if v.Fault != "" || v.Answer != nil {
		return v
	}
	s.settleTarget(ex, &v)
	if v.Fault == "" {
		s.settleHost(ex, &v)
	}
	if v.Fault == "" {
		s.settleBody(ex, &v, end)
	}
	return v
}

// cutQuery splits a target before its "?".
func cutQuery(target string) (path, query string, ok bool) {
	if i := strings.IndexByte(target, '?'); i >= 0 {
		return target[:i], target[i:], true
	}
	return target, "", false
}

// sizeAnswer answers a head that is too large.
func (s *Section) sizeAnswer() *exchange.Answer {
	if s.pathTooLong || len(s.path) > s.maxPath {
		return exchange.Fail(exchange.URITooLong, http1.URITooLong.Error())
	}
	return exchange.Fail(exchange.HeadTooLarge, http1.HeadTooLarge.Error())
}

// settleMethod judges the method and whether the pseudo-header fields are there
// (RFC 9113, sections 8.3.1 and 8.5; RFC 8441, section 4).
func (s *Section) settleMethod(v *Verdict) {
	const all = pseudoMethod | pseudoScheme | pseudoPath
	switch {
	case s.seen&pseudoMethod == 0 || !http1.ValidName(s.method):
		v.Fault = "no :method, or one that is no token (RFC 9113, section 8.3.1)"
	case s.seen&pseudoProtocol != 0:
		s.settleProtocol(v)
	case s.method == "CONNECT" && s.seen != pseudoMethod|pseudoAuthority:
		v.Fault = "CONNECT with :scheme or :path, or without :authority (RFC 9113, section 8.5)"
	case s.method == "CONNECT":
		v.Answer = exchange.Fail(exchange.MethodUnknown, http1.ConnectRefused.Error())
	case s.seen&all != all:
		v.Fault = "no :scheme or no :path (RFC 9113, section 8.3.1)"
	case len(s.method) > maxMethod:
		v.Answer = exchange.Fail(exchange.MethodUnknown, http1.MethodTooLong.Error())
	}
}

// settleProtocol judges an extended CONNECT (RFC 8441, section 4).
func (s *Section) settleProtocol(v *Verdict) {
	const all = pseudoMethod | pseudoScheme | pseudoPath | pseudoAuthority | pseudoProtocol
	switch {
	case s.method != "CONNECT":
		v.Fault = ":protocol with another method than CONNECT (RFC 8441, section 4)"
	case s.seen != all:
		v.Fault = "an extended CONNECT without :scheme, :path or :authority (RFC 8441, section 4)"
	case s.length >= 0:
		v.Fault = "CONNECT with Content-Length (RFC 9110, section 9.3.6)"
	case !header.EqualFold(s.protocol, "websocket"):
		v.Answer = exchange.Fail(exchange.MethodUnknown, "an extended CONNECT to another protocol than websocket (RFC 8441, section 4)")
	default:
		v.Protocol = "websocket"
	}
}

// settleTarget judges :scheme and :path (RFC 9113, section 8.3.1).
func (s *Section) settleTarget(ex *exchange.Exchange, v *Verdict) {
	if !header.EqualFold(s.scheme, "http") && !header.EqualFold(s.scheme, "https") {
		v.Fault = http1.BadScheme.Error()
		return
	}
	switch {
	case s.path == "":
		v.Fault = ":path is empty (RFC 9113, section 8.3.1)"
	case s.path == "*" && s.method != "OPTIONS":
		v.Fault = http1.AsteriskMethod.Error()
	case s.path[0] != '/' && s.path != "*":
		v.Fault = ":path does not start with a slash (RFC 9113, section 8.3.1)"
	}
	ascii := true
	for i := 0; i < len(s.path) && v.Fault == ""; i++ {
		switch c := s.path[i]; {
		case c >= 0x80 && !s.strictTarget:
			ascii = false
		case c <= ' ' || c >= 0x7f || c == '#':
			v.Fault = http1.BadTargetByte.Error()
		}
	}
	if !ascii {
		ex.EncodeTarget()
	}
	if v.Fault == "" && len(s.path) > s.maxPath {
		v.Answer = exchange.Fail(exchange.URITooLong, http1.URITooLong.Error())
	}
}

// settleHost finds the authority. A Host that says something else than :authority
// makes a request malformed (RFC 9113, section 8.3.1; RFC 9114, section 4.3.1).
func (s *Section) settleHost(ex *exchange.Exchange, v *Verdict) {
	authority := s.authority
	switch {
	case s.hosts > 1:
		v.Fault = http1.HostRepeated.Error()
		return
	case s.seen&pseudoAuthority == 0 && s.hosts == 0:
		v.Fault = "neither :authority nor Host (RFC 9113, section 8.3.1)"
		return
	case s.seen&pseudoAuthority == 0:
		authority = s.host
	}
	switch _, _, ok := http1.SplitAuthority(authority); {
	case !ok:
		v.Fault = http1.BadAuthority.Error()
	case s.hosts == 1 && !sameAuthority(authority, s.host, s.scheme):
		v.Fault = "Host differs from :authority (RFC 9113, section 8.3.1)"
	default:
		ex.Request.Host = authority
	}
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
	bare := func(s string) string { return strings.TrimSuffix(strings.TrimSuffix(s, port), ":") }
	return header.EqualFold(bare(a), bare(b))
}

// settleBody validates the headers that describe the body, and joins the cookie crumbs (RFC
// 9113, sections 8.1.1 and 8.2.3).
func (s *Section) settleBody(ex *exchange.Exchange, v *Verdict, end bool) {
	rq := &ex.Request
	switch {
	case end && s.length > 0:
		v.Fault = "Content-Length without a body (RFC 9113, section 8.1.1)"
		return
	case !end && s.method == "TRACE":
		v.Fault = http1.TraceBody.Error()
		return
	}
	if s.expects > 0 && (s.expects > 1 || !header.EqualFold(s.expect, "100-continue")) {
		v.Answer = exchange.Fail(exchange.BadRequest, http1.BadExpect.Error())
	}
	if s.cookies > 1 {
		joinCookies(ex)
	}
	rq.AcceptsTrailers = s.trailers
	if v.Protocol != "" {
		return
	}
	rq.Continue = s.expects > 0 && !end && s.length != 0
	v.Body = !end && s.length != 0
}

// joinCookies makes one Cookie field of several.
func joinCookies(ex *exchange.Exchange) {
	b := ex.Text.Buffer()
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
