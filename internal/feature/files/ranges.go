package files

import (
	"crypto/rand"
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// byteRange is a range of a file, within its size.
type byteRange struct{ start, length int64 }

// maxRanges is how many ranges one request can have; with more, the whole file is sent.
const maxRanges = 16

// parseRanges parses the value of Range for a file of a size. It returns no ranges if the
// whole file is to be sent: for an invalid field or another unit (RFC 9110, section 14.2),
// and for ranges that a client has no use for, which overlap or together are larger than the
// file, so that a short request cannot cause a response larger than the file. It reports
// false if none of the ranges is in the file.
func parseRanges(value string, size int64) (ranges []byteRange, satisfiable bool) {
	set, ok := header.CutRanges(value)
	if !ok {
		return nil, true
	}
	count, total := 0, int64(0)
	for item := range strings.SplitSeq(set, ",") {
		if header.TrimOWS(item) == "" {
			continue
		}
		if count++; count > maxRanges {
			return nil, true
		}
		first, last, satisfiable, valid := header.ParseRange(item, size)
		if !valid {
			return nil, true
		}
		if !satisfiable {
			continue
		}
		r := byteRange{first, last - first + 1}
		for _, other := range ranges {
			if r.start < other.start+other.length && other.start < r.start+r.length {
				return nil, true
			}
		}
		total += r.length
		ranges = append(ranges, r)
	}
	switch {
	case count == 0, len(ranges) > 1 && total >= size:
		return nil, true
	}
	return ranges, len(ranges) > 0
}

// contentRange returns the value of Content-Range.
func (r byteRange) contentRange(text *exchange.Text, size int64) string {
	return text.End(r.appendContentRange(text.Buffer(), size))
}

func (r byteRange) appendContentRange(b []byte, size int64) []byte {
	b = strconv.AppendInt(append(b, "bytes "...), r.start, 10)
	b = strconv.AppendInt(append(b, '-'), r.start+r.length-1, 10)
	return strconv.AppendInt(append(b, '/'), size, 10)
}

// notSatisfiable returns the answer to ranges that are not in the file.
func notSatisfiable(ex *exchange.Exchange, size int64) *exchange.Answer {
	b := strconv.AppendInt(append(ex.Text.Buffer(), "bytes */"...), size, 10)
	return &exchange.Answer{
		Reason: exchange.RangeNotSatisfiable, Cause: "files: no range of the request is in the file",
		Fields: []header.Field{{ID: header.ContentRange, Name: header.ContentRange.String(), Value: ex.Text.End(b)}},
	}
}

// multipart makes the parts of a response with several ranges (RFC 9110, section 14.6), and
// returns its media type.
func multipart(b *body, ranges []byteRange, kind string, size int64) string {
	boundary := rand.Text()
	for i, r := range ranges {
		head := make([]byte, 0, 160)
		if i > 0 {
			head = append(head, "\r\n"...)
		}
		head = append(append(append(head, "--"...), boundary...), "\r\nContent-Type: "...)
		head = append(append(head, kind...), "\r\nContent-Range: "...)
		head = append(r.appendContentRange(head, size), "\r\n\r\n"...)
		b.parts = append(b.parts, part{head: string(head), off: r.start, left: r.length})
	}
	b.parts = append(b.parts, part{head: "\r\n--" + boundary + "--\r\n"})
	return "multipart/byteranges; boundary=" + boundary
}
