package http1

import (
	"strings"

	"headgate/internal/proto/header"
)

// Asked contains what a response depends on of its request.
type Asked struct {
	// Head: the method was HEAD.
	Head bool
	// Upgrade is what the request offered to go on with, or "".
	Upgrade string
}

// ResponseHead is a parsed response head. Its strings are views into the buffer
// that was parsed. One value is used for many responses, one after the other.
type ResponseHead struct {
	// Status is between 100 and 999.
	Status int
	// Reason is the reason phrase, perhaps empty.
	Reason string
	// Minor is the minor version: 1 for HTTP/1.1, 0 for HTTP/1.0.
	Minor uint8

	// Framing is how the body ends. It is NoBody for an empty body too.
	Framing Framing
	// ContentLength is the length of the body; -1 if it is not known. For the
	// answer to HEAD it is 0, whatever the field says.
	ContentLength int64

	// KeepAlive: the server lets the connection carry another request. Never
	// with UntilClose, nor with 101.
	KeepAlive bool
	// Upgrade is the protocol that the connection changes to with 101, or "".
	Upgrade string
	// Underscore: a field name holds "_". See header.Twin.
	Underscore bool

	// Fields is the field lines in order. Content-Length is without leading
	// zeros, and is not there with 1xx and 204.
	Fields header.List
}

// Interim reports whether another response to the same request follows: 1xx but
// for 101 (RFC 9110, section 15.2).
func (r *ResponseHead) Interim() bool { return r.Status < 200 && r.Status != 101 }

// Reset empties the head, so that it holds no view any more, and keeps the
// memory of its list.
func (r *ResponseHead) Reset() {
	fields := r.Fields
	fields.Reset()
	*r = ResponseHead{Fields: fields}
}

// ParseResponse parses the response head at the beginning of buf into resp. It
// returns its size, or 0 and no error if buf does not hold it whole. The error
// is always an Error; resp then holds what was parsed before, for logs.
func ParseResponse(buf []byte, lim *Limits, asked Asked, resp *ResponseHead) (n int, err error) {
	resp.Reset()
	var f facts
	b, full := lim.window(buf)
	pos, e := parseStatusLine(b, resp)
	if e == none {
		pos, e = parseFields(b, pos, lim.fields(), &resp.Fields, &f)
	}
	if e == more && full {
		e = HeadTooLarge
	}
	switch e {
	case none:
	case more:
		return 0, nil
	default:
		return 0, e
	}
	if e = resp.conclude(asked, &f); e != none {
		return 0, e
	}
	return pos, nil
}

// conclude draws what follows from status, fields and request together (RFC
// 9112, section 6.3).
func (r *ResponseHead) conclude(asked Asked, f *facts) (e Error) {
	if r.Framing, r.ContentLength, e = f.frame(r.Minor, &r.Fields); e != none {
		return e
	}
	o := f.connection(&r.Fields)
	if o.count > maxOptions {
		return TooManyOptions
	}
	r.KeepAlive = o.persists(r.Minor)
	r.Underscore = f.traits&under != 0
	switch {
	case r.Status < 200 || r.Status == 204:
		return r.concludeEmpty(asked, &o, f)
	case asked.Head || r.Status == 304:
		r.Framing, r.ContentLength = NoBody, 0
	case f.count[slotLength] == 0 && f.count[slotCoding] == 0:
		r.Framing, r.ContentLength, r.KeepAlive = UntilClose, -1, false
	}
	return none
}

// concludeEmpty validates a response that cannot have content. It must not announce any;
// "Content-Length: 0", which some servers send against the rule and which is not ambiguous,
// is removed.
func (r *ResponseHead) concludeEmpty(asked Asked, o *options, f *facts) Error {
	if r.Framing != NoBody {
		return FramedNoContent
	}
	if f.count[slotLength] > 0 {
		r.Fields.Del(header.ContentLength)
	}
	if r.Status != 101 {
		return none
	}
	switch {
	case asked.Upgrade == "":
		return SwitchNotAsked
	case !o.upgrade || f.count[slotUpgrade] != 1 || f.value[slotUpgrade] == "":
		return SwitchIncomplete
	case !amongOffered(f.value[slotUpgrade], asked.Upgrade):
		return SwitchNotOffered
	}
	r.KeepAlive, r.Upgrade = false, f.value[slotUpgrade]
	return none
}

// amongOffered reports whether every protocol that a server changes to was offered
// (RFC 9110, section 7.8). Names compare without case; a version that only one of the
// two has is ignored.
func amongOffered(chosen, offers string) bool {
	for rest, last := chosen, false; !last; {
		var protocol string
		protocol, rest, last = element(rest)
		if !offeredOne(protocol, offers) {
			return false
		}
	}
	return true
}

func offeredOne(protocol, offers string) bool {
	name, version, _ := strings.Cut(protocol, "/")
	for rest, last := offers, false; !last; {
		var offer string
		offer, rest, last = element(rest)
		n, v, _ := strings.Cut(offer, "/")
		if header.EqualFold(n, name) && (header.EqualFold(v, version) || v == "" || version == "") {
			return true
		}
	}
	return false
}

// parseStatusLine parses a status line. The space before an absent reason may be missing,
// too: some servers omit it, and the line is not ambiguous.
func parseStatusLine(b []byte, resp *ResponseHead) (int, Error) {
	const start = len("HTTP/1.1 200")
	if len(b) <= start {
		return partialStatus(b)
	}
	if e := version8(b, &resp.Minor); e != none {
		if string(b[:5]) != "HTTP/" {
			e = BadStatusLine
		}
		return 0, e
	}
	if b[8] != ' ' {
		return 8, BadStatusLine
	}
	if class[b[9]]&class[b[10]]&class[b[11]]&digit == 0 || b[9] == '0' {
		return 9, BadStatus
	}
	resp.Status = int(b[9]-'0')*100 + int(b[10]-'0')*10 + int(b[11]-'0')
	pos, from := start, start
	if b[pos] == ' ' {
		from++
		pos = valueEnd(b, from)
	}
	switch {
	case pos+1 >= len(b):
		return pos, partialLine(b, pos, BadReason)
	case b[pos] == '\r' && b[pos+1] == '\n':
	case pos == start:
		return pos, badLineEnd(b, pos, BadStatus)
	default:
		return pos, badLineEnd(b, pos, BadReason)
	}
	resp.Reason = view(b, from, max(from, pos))
	return pos + 2, none
}

// partialStatus judges the first bytes of a status line, up to the status.
func partialStatus(b []byte) (int, Error) {
	const like = "HTTP/1.1 200"
	for i, c := range b {
		switch {
		case i == 5 || i == 7 || i > 8:
			if class[c]&digit == 0 {
				return i, badLineEnd(b, i, BadStatusLine)
			}
		case c != like[i]:
			return i, badLineEnd(b, i, BadStatusLine)
		}
	}
	return len(b), more
}
