package http1

import "headgate/internal/proto/header"

// Form is the form of a request target (RFC 9112, section 3.2). The authority
// form belongs to CONNECT, which is refused.
type Form uint8

// The forms.
const (
	Origin   Form = iota // /path?query
	Absolute             // http://host/path?query
	Asterisk             // *
)

// RequestHead is a parsed request head. Its strings are views into the buffer
// that was parsed, but for the names of well-known methods. One value is used
// for many requests, one after the other.
type RequestHead struct {
	// Method is the method as received, and MethodID its number.
	Method   string
	MethodID Method
	// Minor is the minor version: 1 for HTTP/1.1, 0 for HTTP/1.0.
	Minor uint8
	// Versioned: the version was read. It is false only after an error.
	Versioned bool
	// Form is the form of the target.
	Form Form
	// Target is the target as received.
	Target string
	// NonASCII: the target holds octets from 0x80 on, which no URI has. A path or query
	// with them must be percent-encoded before it is matched or sent.
	NonASCII bool
	// Scheme is "http" or "https" if the target is in absolute form, or "".
	Scheme string
	// Path is the path of the target, not decoded, which starts with "/"; or
	// "*", also for OPTIONS with an http URI that has neither path nor query
	// (RFC 9112, section 3.2.4).
	Path string
	// Query is the query with its "?", or "" if there is none.
	Query string
	// Authority is host and port that the request is for, as received: those of
	// the target in absolute form, else those of Host (RFC 9112, section
	// 3.2.2). It is empty only for HTTP/1.0 without Host.
	Authority string
	// Host and Port are its parts; see SplitAuthority.
	Host, Port string

	// Framing is how the body ends: NoBody, Length or Chunked. It is NoBody
	// for Content-Length: 0 too; the field then stays in Fields.
	Framing Framing
	// ContentLength is the length of the body; -1 with the chunked coding.
	ContentLength int64

	// KeepAlive: the client lets the connection carry another request.
	KeepAlive bool
	// ExpectContinue: the client waits for 100 (Continue) before it sends the
	// body. False if no body follows, and for HTTP/1.0.
	ExpectContinue bool
	// Underscore: a field name holds "_". See header.Twin.
	Underscore bool
	// Upgrade is the list of protocols that the client offers to change to, or
	// "". Offers of HTTP/2 (h2c, which RFC 9113 removed) and of TLS are
	// ignored: after one, a client could send requests to a server unchecked.
	// So are offers with a body, in HTTP/1.0, or without Connection: upgrade.
	Upgrade string

	// Fields is the field lines in order. Host, if there is one, has the value
	// of Authority, and Content-Length has no leading zeros.
	Fields header.List
}

// Reset empties the head, so that it holds no view any more, and keeps the
// memory of its list.
func (r *RequestHead) Reset() {
	fields := r.Fields
	fields.Reset()
	*r = RequestHead{Fields: fields}
}

// ParseRequest parses the request head at the beginning of buf into req. It
// returns its size, or 0 and no error if buf does not hold it whole. The error
// is always an Error; req then holds what was parsed before, for logs. One
// empty line before the head is skipped and counted.
func ParseRequest(buf []byte, lim *Limits, req *RequestHead) (n int, err error) {
	req.Reset()
	var f facts
	n, e := parseRequest(buf, lim, req, &f)
	switch e {
	case none:
	case more:
		return 0, nil
	default:
		if req.Target != "" {
			_ = req.splitTarget() // as far as it goes: the error is e
		}
		return 0, e
	}
	if e = req.conclude(&f); e != none {
		return 0, e
	}
	return n, nil
}

// parseRequest reads the lines of a head.
func parseRequest(buf []byte, lim *Limits, req *RequestHead, f *facts) (int, Error) {
	b, full := lim.window(buf)
	pos, e := skipEmptyLine(b)
	if e == none {
		pos, e = parseMethod(b, pos, req)
	}
	if e == none {
		pos, e = parseTarget(b, pos, lim, full, req)
	}
	if e == none {
		pos, e = parseVersion(b, pos, &req.Minor)
		req.Versioned = e == none
	}
	if e == none {
		pos, e = parseFields(b, pos, lim.fields(), &req.Fields, f)
	}
	if e == more && full {
		e = HeadTooLarge
	}
	return pos, e
}

// conclude draws what follows from target and fields together.
func (r *RequestHead) conclude(f *facts) (e Error) {
	if e = r.splitTarget(); e != none {
		return e
	}
	if e = r.settleHost(f); e != none {
		return e
	}
	if r.Framing, r.ContentLength, e = f.frame(r.Minor, &r.Fields); e != none {
		return e
	}
	if r.Framing != NoBody && r.MethodID == Trace {
		return TraceBody
	}
	if f.count[slotConnection] > 0 || r.Minor == 0 {
		o := f.connection(&r.Fields)
		switch {
		case o.vital:
			return NominatedField
		case o.count > maxOptions:
			return TooManyOptions
		}
		r.KeepAlive = o.persists(r.Minor)
		if o.upgrade && f.count[slotUpgrade] == 1 && r.Minor > 0 && r.ContentLength == 0 {
			r.Upgrade = offered(f.value[slotUpgrade])
		}
	} else {
		r.KeepAlive = true
	}
	r.Underscore = f.traits&under != 0
	return r.settleExpect(f)
}

// settleExpect reads Expect. Anything but one 100-continue is refused, though
// RFC 9110, section 10.1.1 would have it answered with 417: variants of it are
// used to make two servers disagree on where a request ends.
func (r *RequestHead) settleExpect(f *facts) Error {
	if f.count[slotExpect] == 0 {
		return none
	}
	if f.count[slotExpect] > 1 || !header.EqualFold(f.value[slotExpect], "100-continue") {
		return BadExpect
	}
	r.ExpectContinue = r.Minor > 0 && r.ContentLength != 0
	return none
}

// offered returns the value of Upgrade, or "" if it offers what is not passed
// on or is no list of protocols (RFC 9110, section 7.8).
func offered(value string) string {
	for rest, last := value, false; !last; {
		var protocol string
		protocol, rest, last = element(rest)
		name := protocol
		for i := 0; i < len(protocol); i++ {
			if protocol[i] == '/' {
				name = protocol[:i]
				if !isToken(protocol[i+1:]) {
					return ""
				}
				break
			}
		}
		switch {
		case !isToken(name), header.EqualFold(name, "h2c"), header.EqualFold(name, "h2"),
			header.EqualFold(name, "http"), header.EqualFold(name, "tls"):
			return ""
		}
	}
	return value
}

// settleHost finds the authority and validates it (RFC 9112, sections 3.2 and
// 3.2.2).
func (r *RequestHead) settleHost(f *facts) Error {
	var ok bool
	switch f.count[slotHost] {
	case 0:
		if r.Minor > 0 {
			return HostMissing
		}
		if r.Form != Absolute {
			return none
		}
	case 1:
		host := f.value[slotHost]
		if r.Host, r.Port, ok = SplitAuthority(host); !ok {
			return badAuthority(host, BadHost)
		}
		if r.Form != Absolute {
			r.Authority = host
			return none
		}
	default:
		return HostRepeated
	}
	if r.Host, r.Port, ok = SplitAuthority(r.Authority); !ok {
		return badAuthority(r.Authority, BadAuthority)
	}
	all := r.Fields.All()
	for i := range all {
		if all[i].ID == header.Host {
			all[i].Value = r.Authority
		}
	}
	return none
}

// badAuthority distinguishes user information from other errors.
func badAuthority(s string, otherwise Error) Error {
	for i := 0; i < len(s); i++ {
		if s[i] == '@' {
			return Userinfo
		}
	}
	return otherwise
}
