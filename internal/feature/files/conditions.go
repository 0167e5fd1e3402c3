package files

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// validators are what a client can name a version of a file by; empty for a file whose
// modification time says nothing.
type validators struct {
	tag      string // an ETag, with W/ if it is weak
	date     string // Last-Modified
	modified int64  // the same, in seconds since 1970
}

// settled is how long ago a file was modified at least for its tag to be strong: within one
// tick of the clock of a file system, a file can change twice with the same time.
const settled = 2 * time.Second

// lastEpoch is the last second of modification times that stand for none: tools that build
// reproducible packages set them to the first second of 1970 or the one before.
const lastEpoch = 1

// validatorsOf returns the validators of a file: the time of its modification and its size.
func validatorsOf(text *exchange.Text, f *found, now time.Time) (v validators) {
	v.modified = f.modified.Unix()
	if v.modified <= lastEpoch {
		return validators{}
	}
	age := now.Sub(f.modified)
	b := text.Buffer()
	if age < settled {
		b = append(b, "W/"...)
	}
	b = append(b, '"')
	b = strconv.AppendInt(b, f.modified.UnixNano(), 36)
	b = append(b, '-')
	b = strconv.AppendInt(b, f.size, 36)
	if f.coding != identity {
		b = append(append(b, '-'), f.coding.name()...)
	}
	v.tag = text.End(append(b, '"'))
	at := f.modified
	if age < 0 { // RFC 9110, section 8.8.2.1: not later than the response
		at, v.modified = now, now.Unix()
	}
	v.date = text.End(at.UTC().AppendFormat(text.Buffer(), http.TimeFormat))
	return v
}

func (v *validators) strong() bool { return strings.HasPrefix(v.tag, `"`) }

// verdict is the result of the conditions of a request.
type verdict uint8

const (
	passed verdict = iota
	notModified
	failed
)

// check evaluates the conditions of a request in the order of RFC 9110, section 13.2.2.
func check(rq *exchange.Request, v validators) verdict {
	h := &rq.Header
	switch {
	case h.Has(header.IfMatch):
		if !h.ListsTag(header.IfMatch, v.tag, true) {
			return failed
		}
	case h.Has(header.IfUnmodifiedSince):
		if at, ok := dateOf(h.Get(header.IfUnmodifiedSince)); ok && v.date != "" && v.modified > at {
			return failed
		}
	}
	switch {
	case h.Has(header.IfNoneMatch):
		if h.ListsTag(header.IfNoneMatch, v.tag, false) {
			return notModified
		}
	case h.Has(header.IfModifiedSince):
		if at, ok := dateOf(h.Get(header.IfModifiedSince)); ok && v.date != "" && v.modified <= at {
			return notModified
		}
	}
	return passed
}

// mayUseRange reports whether the Range of a request applies, according to If-Range (RFC
// 9110, section 13.1.5): only if the client has this very version of the file.
func mayUseRange(rq *exchange.Request, v validators, now time.Time) bool {
	h := &rq.Header
	if !h.Has(header.Range) || h.Count(header.Range) > 1 {
		return false
	}
	if !h.Has(header.IfRange) {
		return true
	}
	value := h.Get(header.IfRange)
	if strings.HasSuffix(value, `"`) {
		return v.strong() && value == v.tag
	}
	// A date is strong if the file has not changed in the second that it names.
	at, ok := dateOf(value)
	return ok && v.date != "" && at == v.modified && now.Unix() > v.modified
}

// dateOf parses a date of HTTP into seconds since 1970.
func dateOf(s string) (int64, bool) {
	at, err := http.ParseTime(s)
	return at.Unix(), err == nil
}
