package h2

import (
	"strconv"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/http2"
)

// date makes the Date of responses that have none.
var date http1.Date

// statuses holds the static entries of the status codes that have one.
var statuses = map[int]byte{200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}

// appendResponse appends the field block of a response head.
func appendResponse(b []byte, ex *exchange.Exchange) []byte {
	rs := &ex.Response
	b = appendStatus(b, rs.Status)
	b = appendFields(b, &rs.Header)
	if !rs.Header.Has(header.Date) {
		b = http2.AppendField(b, header.Date, "", date.At(time.Now()))
	}
	if rs.Length >= 0 && rs.Status != 204 {
		var digits [20]byte
		b = http2.AppendNamed(b, http2.NameContentLength, strconv.AppendInt(digits[:0], rs.Length, 10))
	}
	return b
}

func appendStatus(b []byte, status int) []byte {
	switch status {
	case 200:
		return append(b, 0x80|8)
	default:
		if i := statuses[status]; i != 0 {
			return append(b, 0x80|i)
		}
	}
	return append(b, 8, 3, byte('0'+status/100%10), byte('0'+status/10%10), byte('0'+status%10))
}

// appendFields appends the fields of a list but for those that HTTP/2 has no
// place for (RFC 9113, section 8.2.2), and Content-Length, which the front knows
// better.
func appendFields(b []byte, list *header.List) []byte {
	all := list.All()
	for i := range all {
		f := &all[i]
		if f.ID == header.ContentLength || f.ID.HopByHop() && !challenge(f.ID) {
			continue
		}
		b = http2.AppendField(b, f.ID, f.Name, f.Value)
	}
	return b
}

// challenge reports the hop-by-hop headers that are allowed in HTTP/2.
func challenge(id header.ID) bool { return id == header.ProxyAuthenticate || id == header.Trailer }
