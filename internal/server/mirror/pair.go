package mirror

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"headgate/internal/proto/header"
)

// Pair is the comparison of the responses to one request. Each side belongs to one goroutine;
// they may end in any order.
type Pair struct {
	// Servers and Mirror are the two responses.
	Servers, Mirror Answer

	report       *Report
	method, path string
	open         atomic.Int32 // sides that have not ended
	dropped      atomic.Bool
}

// Answer is one response. Its methods are called by one goroutine: Head at most once, Write
// for each part of the body, and End.
type Answer struct {
	pair   *Pair
	status int
	took   time.Duration
	bytes  int64
	hash   maphash.Hash
	fields []field
	whole  bool
	ended  bool
}

// field is a header field with its name in lower case.
type field struct{ name, value string }

// The limits of what is kept of a head until the other response has ended.
const (
	maxFields = 100
	maxHead   = 16 << 10
	maxShown  = 120 // bytes of a value in a sample
)

// Head sets the status, the header and the time that it took.
func (a *Answer) Head(status int, list *header.List, took time.Duration) {
	a.status, a.took = status, took
	kept := 0
	for _, f := range list.All() {
		name := strings.ToLower(f.Name)
		if ignored(name) {
			continue
		}
		value := f.Value
		if f.ID == header.SetCookie {
			value, _, _ = strings.Cut(value, "=")
		}
		if kept += len(name) + len(value); kept > maxHead || len(a.fields) == maxFields {
			return
		}
		a.fields = append(a.fields, field{strings.Clone(name), strings.Clone(value)})
	}
}

// Write adds a part of the body.
func (a *Answer) Write(p []byte) {
	if left := MaxBody - a.bytes; left > 0 {
		_, _ = a.hash.Write(p[:min(int64(len(p)), left)]) // never an error
	}
	a.bytes += int64(len(p))
}

// full reports whether MaxBody was reached.
func (a *Answer) full() bool { return a.bytes >= MaxBody }

// End ends the response. whole is whether the body has come to its end. Calls after the first
// have no effect.
func (a *Answer) End(whole bool) {
	if a.ended {
		return
	}
	a.ended, a.whole = true, whole || a.status == 0
	if a.pair.open.Add(-1) == 0 {
		a.pair.report.finish(a.pair)
	}
}

// difference is a header field with its values in both responses.
type difference struct{ name, servers, mirror string }

// differences returns the header fields that differ, in the order of the names. A response
// that is missing has none.
func (p *Pair) differences() (all []difference) {
	if p.Servers.status == 0 || p.Mirror.status == 0 {
		return nil
	}
	var names []string
	for _, f := range slices.Concat(p.Servers.fields, p.Mirror.fields) {
		if !slices.Contains(names, f.name) {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		a, b := p.Servers.value(name), p.Mirror.value(name)
		if a == b || name == "etag" && (strings.HasPrefix(a, "W/") || strings.HasPrefix(b, "W/")) {
			continue
		}
		all = append(all, difference{name, a, b})
	}
	return all
}

// value returns all values of a field, joined.
func (a *Answer) value(name string) string {
	var values []string
	for _, f := range a.fields {
		if f.name == name {
			values = append(values, f.value)
		}
	}
	return strings.Join(values, ", ")
}

// compare returns the first difference, "" if there is none, and whether the bodies could be
// compared.
func (p *Pair) compare(differ []difference) (kind Kind, complete bool) {
	a, b := &p.Servers, &p.Mirror
	complete = a.comparable() && b.comparable()
	switch {
	case a.status != b.status:
		return Status, complete
	case complete && !sameBody(a, b):
		return Body, complete
	case len(differ) > 0:
		return Header, complete
	}
	return "", complete
}

// comparable reports whether all of the body has come that is compared.
func (a *Answer) comparable() bool { return a.whole || a.full() }

// sameBody reports whether the bodies are the same up to MaxBody.
func sameBody(a, b *Answer) bool {
	return (a.bytes == b.bytes || a.full() && b.full()) && a.hash.Sum64() == b.hash.Sum64()
}

// sample describes a difference.
func (p *Pair) sample(kind Kind, differ []difference) ResponseDifference {
	s := ResponseDifference{Time: time.Now().UTC(), Requests: 1, Method: p.method, Path: p.path, Kind: kind}
	s.Servers = ComparedResponse{Status: p.Servers.status, Bytes: p.Servers.bytes, Millis: millis(p.Servers.took)}
	s.Mirror = ComparedResponse{Status: p.Mirror.status, Bytes: p.Mirror.bytes, Millis: millis(p.Mirror.took)}
	if kind == Header {
		d := differ[0]
		s.Field, s.Servers.Value, s.Mirror.Value = d.name, showValue(d.name, d.servers), showValue(d.name, d.mirror)
	}
	return s
}

// ignored reports whether a field differs between any two responses, or is about the
// connection or the length, which is compared with the body.
func ignored(name string) bool {
	switch name {
	case "date", "age", "expires", "connection", "keep-alive", "transfer-encoding", "content-length",
		"server-timing", "x-request-id", "x-correlation-id", "x-runtime", "x-response-time", "traceparent", "tracestate":
		return true
	}
	return false
}

// shownFields are the fields whose values are no secrets.
var shownFields = []string{
	"accept-ranges", "allow", "cache-control", "cdn-cache-control", "content-disposition", "content-encoding", "content-language",
	"content-security-policy", "content-type", "etag", "last-modified", "referrer-policy", "retry-after", "server", "set-cookie",
	"strict-transport-security", "vary", "via", "x-content-type-options", "x-frame-options", "x-powered-by",
}

// showValue returns a value for a sample. A redirect is shown without its query, which can
// contain tokens.
func showValue(name, value string) string {
	rest := ""
	switch {
	case value == "":
		return ""
	case name == "location":
		var more bool
		if value, _, more = strings.Cut(value, "?"); more {
			rest = "?…"
		}
	case !slices.Contains(shownFields, name) && !strings.HasPrefix(name, "access-control-"):
		return "…"
	}
	if len(value) > maxShown {
		value, rest = strings.ToValidUTF8(value[:maxShown], ""), "…"
	}
	return value + rest
}
