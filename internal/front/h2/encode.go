package h2

import (
	"strconv"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/header"
	"headgate/internal/http1"
)

// Field blocks are written with the static table of HPACK (RFC 7541, appendix A)
// and plain literals. So a block depends on no other one, can be made without a
// lock, and costs a copy. The client's memory for our dynamic table stays empty.

const tableSizeZero = 0x20 // a dynamic table size update to zero

// date makes the Date of responses that have none.
var date http1.Date

// static holds the index of a name in the static table, 0 if it has none.
var static = [256]uint8{
	header.Accept: 19, header.AcceptEncoding: 16, header.AcceptLanguage: 17, header.AcceptRanges: 18,
	header.Age: 21, header.Allow: 22, header.Authorization: 23, header.CacheControl: 24,
	header.ContentEncoding: 26, header.ContentLanguage: 27, header.ContentLength: 28,
	header.ContentLocation: 29, header.ContentRange: 30, header.ContentType: 31, header.Cookie: 32,
	header.Date: 33, header.ETag: 34, header.Expect: 35, header.Expires: 36, header.IfMatch: 39,
	header.IfModifiedSince: 40, header.IfNoneMatch: 41, header.IfRange: 42, header.IfUnmodifiedSince: 43,
	header.LastModified: 44, header.Link: 45, header.Location: 46, header.MaxForwards: 47, header.Range: 50,
	header.Referer: 51, header.RetryAfter: 53, header.Server: 54, header.SetCookie: 55,
	header.StrictTransportSecurity: 56, header.UserAgent: 58, header.Vary: 59, header.Via: 60,
	header.WWWAuthenticate: 61,
}

// statuses holds the static entries of the status codes that have one.
var statuses = map[int]byte{200: 8, 204: 9, 206: 10, 304: 11, 400: 12, 404: 13, 500: 14}

// appendResponse appends the field block of a response head.
func appendResponse(b []byte, ex *exchange.Exchange) []byte {
	rs := &ex.Response
	b = appendStatus(b, rs.Status)
	b = appendFields(b, &rs.Header)
	if !rs.Header.Has(header.Date) {
		b = appendLiteral(b, header.Date, "", date.At(time.Now()))
	}
	if rs.Length >= 0 && rs.Status != 204 {
		b = appendIndex(b, 0, 4, uint64(static[header.ContentLength]))
		var digits [20]byte
		n := strconv.AppendInt(digits[:0], rs.Length, 10)
		b = append(b, byte(len(n)))
		b = append(b, n...)
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
		b = appendLiteral(b, f.ID, f.Name, f.Value)
	}
	return b
}

// challenge reports the hop-by-hop fields that stand in no way of HTTP/2.
func challenge(id header.ID) bool { return id == header.ProxyAuthenticate || id == header.Trailer }

// appendLiteral appends a field without indexing (RFC 7541, section 6.2.2), or
// never to be indexed if it is a secret.
func appendLiteral(b []byte, id header.ID, name, value string) []byte {
	kind := byte(0)
	if id == header.SetCookie {
		kind = 0x10
	}
	if i := static[id]; i != 0 {
		b = appendIndex(b, kind, 4, uint64(i))
	} else {
		b = append(b, kind)
		b = appendIndex(b, 0, 7, uint64(len(name)))
		for j := 0; j < len(name); j++ {
			c := name[j]
			if 'A' <= c && c <= 'Z' {
				c |= 0x20
			}
			b = append(b, c)
		}
	}
	b = appendIndex(b, 0, 7, uint64(len(value)))
	return append(b, value...)
}

// appendIndex appends an integer with a prefix of n bits (RFC 7541, section 5.1);
// high are the bits before it.
func appendIndex(b []byte, high byte, n uint, v uint64) []byte {
	most := uint64(1)<<n - 1
	if v < most {
		return append(b, high|byte(v))
	}
	b = append(b, high|byte(most))
	for v -= most; v >= 0x80; v >>= 7 {
		b = append(b, byte(v)|0x80)
	}
	return append(b, byte(v))
}
