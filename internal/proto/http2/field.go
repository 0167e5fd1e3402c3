package http2

import (
	"headgate/internal/proto/header"
	"headgate/internal/proto/prefixed"
)

// Field blocks are written with the static table of HPACK (RFC 7541, appendix A)
// and plain literals. So a block depends on no other one, can be made without a
// lock, and costs a copy. The peer's memory for our dynamic table stays empty.

// TableSizeZero is the dynamic table size update that says so (RFC 7541, section
// 6.3). It goes before the first block of a connection.
const TableSizeZero = 0x20

// Entries of the static table that are sent as they are, with Indexed.
const (
	MethodGet   = 2
	MethodPost  = 3
	PathRoot    = 4
	SchemeHTTP  = 6
	SchemeHTTPS = 7
)

// Names in the static table, for AppendNamed.
const (
	NameAuthority     = 1
	NameMethod        = 2
	NamePath          = 4
	NameContentLength = 28
)

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

// AppendIndexed appends an entry of the static table.
func AppendIndexed(b []byte, entry byte) []byte { return append(b, 0x80|entry) }

// AppendNamed appends a field whose name is an entry of the static table, without
// indexing.
func AppendNamed[T string | []byte](b []byte, entry byte, value T) []byte {
	b = prefixed.AppendInteger(b, 0, 4, uint64(entry))
	return prefixed.AppendString(b, value)
}

// AppendField appends a field without indexing (RFC 7541, section 6.2.2), or
// never to be indexed if it is a secret. The name is written in lower case.
func AppendField(b []byte, id header.ID, name, value string) []byte {
	kind := byte(0)
	switch id {
	case header.SetCookie, header.Cookie, header.Authorization:
		kind = 0x10
	}
	if i := static[id]; i != 0 {
		b = prefixed.AppendInteger(b, kind, 4, uint64(i))
	} else {
		b = append(b, kind)
		b = prefixed.AppendInteger(b, 0, 7, uint64(len(name)))
		b = prefixed.AppendLower(b, name)
	}
	return prefixed.AppendString(b, value)
}
