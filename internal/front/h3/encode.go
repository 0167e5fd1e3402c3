package h3

import (
	"strconv"
	"strings"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/proto/qpack"
)

// date makes the Date of responses that have none.
var date http1.Date

// static holds the place of a name in the static table of QPACK, and one more; 0
// if it has none.
var static = func() (places [256]uint8) {
	for _, id := range []header.ID{
		header.Accept, header.AcceptEncoding, header.AcceptLanguage, header.AcceptRanges, header.Age,
		header.AltSvc, header.Authorization, header.CacheControl, header.ContentEncoding, header.ContentLength,
		header.ContentType, header.Cookie, header.Date, header.ETag, header.EarlyData, header.Forwarded,
		header.IfModifiedSince, header.IfNoneMatch, header.IfRange, header.LastModified, header.Link,
		header.Location, header.Origin, header.Range, header.Referer, header.Server, header.SetCookie,
		header.StrictTransportSecurity, header.UserAgent, header.Vary, header.XForwardedFor,
	} {
		if i, ok := qpack.Index(strings.ToLower(id.String())); ok {
			places[id] = uint8(i + 1)
		}
	}
	return places
}()

// statuses holds the places of the status codes that the static table has.
var statuses = func() map[int]int {
	all := map[int]int{}
	for status := 100; status < 600; status++ {
		if i, ok := qpack.IndexField(":status", strconv.Itoa(status)); ok {
			all[status] = i
		}
	}
	return all
}()

var (
	statusOK, _   = qpack.IndexField(":status", "200")
	statusName, _ = qpack.Index(":status")
)

// headRoom is what is left free before a field section, for the type and the
// length of its frame.
const headRoom = 9

// frameOf writes the head of a HEADERS frame in front of the section in b, which
// starts at headRoom, and returns the frame.
func frameOf(b []byte) []byte {
	var head [headRoom]byte
	h := appendFrame(head[:0], frameHeaders, uint64(len(b)-headRoom))
	begin := headRoom - len(h)
	copy(b[begin:], h)
	return b[begin:]
}

// appendResponse appends the section of a response head.
func appendResponse(b []byte, ex *exchange.Exchange) []byte {
	rs := &ex.Response
	b = appendStatus(qpack.AppendPrefix(b), rs.Status)
	b = appendFields(b, &rs.Header)
	if !rs.Header.Has(header.Date) {
		b = qpack.AppendNamed(b, int(static[header.Date])-1, date.At(time.Now()), false)
	}
	if rs.Length >= 0 && rs.Status != 204 {
		var digits [20]byte
		n := strconv.AppendInt(digits[:0], rs.Length, 10)
		b = qpack.AppendNamed(b, int(static[header.ContentLength])-1, string(n), false)
	}
	return b
}

func appendStatus(b []byte, status int) []byte {
	if status == 200 {
		return qpack.AppendIndexed(b, statusOK)
	}
	if i, ok := statuses[status]; ok {
		return qpack.AppendIndexed(b, i)
	}
	return qpack.AppendNamed(b, statusName, strconv.Itoa(status), false)
}

// appendFields appends the fields of a list but for those that HTTP/3 has no place
// for (RFC 9114, section 4.2), and Content-Length, which the front knows better.
func appendFields(b []byte, list *header.List) []byte {
	all := list.All()
	for i := range all {
		f := &all[i]
		if f.ID == header.ContentLength || f.ID.HopByHop() && f.ID != header.ProxyAuthenticate && f.ID != header.Trailer {
			continue
		}
		if place := static[f.ID]; place != 0 {
			b = qpack.AppendNamed(b, int(place)-1, f.Value, f.ID == header.SetCookie)
		} else {
			b = qpack.AppendLiteral(b, f.Name, f.Value)
		}
	}
	return b
}
