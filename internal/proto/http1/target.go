package http1

import (
	"strings"

	"headgate/internal/proto/header"
)

// parseTarget reads the request target and the space behind it. full says that
// the head cannot grow.
func parseTarget(b []byte, pos int, lim *Limits, full bool, req *RequestHead) (int, Error) {
	start := pos
	pos = targetEnd(b, pos)
	for !lim.StrictTarget && pos < len(b) && b[pos] >= 0x80 {
		req.NonASCII = true
		pos = targetEnd(b, pos+1)
	}
	switch {
	case pos-start > lim.uriSize() || pos == len(b) && full:
		return pos, URITooLong
	case pos == len(b):
		return pos, more
	case b[pos] == '\r' && pos+1 == len(b):
		return pos, more
	case b[pos] == '\r' && b[pos+1] == '\n':
		return pos, BadRequestLine // HTTP/0.9
	case b[pos] != ' ':
		return pos, badLineEnd(b, pos, BadTargetByte)
	case pos == start || pos+1 < len(b) && b[pos+1] == ' ':
		return pos, BadRequestLine
	}
	req.Target = view(b, start, pos)
	return pos + 1, none
}

// splitTarget splits the target (RFC 9112, section 3.2).
func (r *RequestHead) splitTarget() Error {
	if r.MethodID == Connect {
		return ConnectRefused
	}
	switch t := r.Target; {
	case t[0] == '/':
		r.splitPath(t)
		return none
	case t == "*":
		if r.MethodID != Options {
			return AsteriskMethod
		}
		r.Form, r.Path = Asterisk, t
		return none
	}
	return r.splitAbsolute()
}

// splitAbsolute splits a target in absolute form (RFC 9112, section 3.2.2).
func (r *RequestHead) splitAbsolute() Error {
	scheme, rest, ok := strings.Cut(r.Target, "://")
	switch {
	case !ok || !isToken(scheme):
		return BadTargetForm
	case header.EqualFold(scheme, "http"):
		r.Scheme = "http"
	case header.EqualFold(scheme, "https"):
		r.Scheme = "https"
	default:
		return BadScheme
	}
	r.Form = Absolute
	end := strings.IndexAny(rest, "/?")
	if end < 0 {
		end = len(rest)
	}
	r.Authority, rest = rest[:end], rest[end:]
	switch {
	case rest == "" && r.MethodID == Options:
		r.Path = "*"
	case rest == "" || rest[0] == '?':
		r.Path, r.Query = "/", rest
	default:
		r.splitPath(rest)
	}
	return none
}

func (r *RequestHead) splitPath(s string) {
	r.Path = s
	if i := strings.IndexByte(s, '?'); i >= 0 {
		r.Path, r.Query = s[:i], s[i:]
	}
}
