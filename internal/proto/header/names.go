package header

// ID is the small number of a well-known field name. Code on the path of a
// request compares ids, never names. The zero value is Other.
type ID uint8

// The well-known names: those that the proxy reads, writes or removes.
const (
	Other ID = iota
	Accept
	AcceptEncoding
	AcceptLanguage
	AcceptRanges
	Age
	Allow
	AltSvc
	Authorization
	CDNCacheControl
	CDNLoop
	CFConnectingIP
	CacheControl
	CacheGroups
	CacheStatus
	CacheTag
	ClientIP
	Connection
	ContentEncoding
	ContentLanguage
	ContentLength
	ContentLocation
	ContentRange
	ContentType
	Cookie
	Date
	ETag
	EarlyData
	Expect
	Expires
	FastlyClientIP
	FlyClientIP
	Forwarded
	HTTP2Settings
	Host
	IfMatch
	IfModifiedSince
	IfNoneMatch
	IfRange
	IfUnmodifiedSince
	KeepAlive
	LastModified
	Link
	Location
	MaxForwards
	Origin
	Pragma
	Priority
	Proxy
	ProxyAuthenticate
	ProxyAuthorization
	ProxyConnection
	ProxyStatus
	Range
	RateLimit
	RateLimitPolicy
	Referer
	RetryAfter
	SecWebSocketKey
	SecWebSocketAccept
	Server
	SetCookie
	StrictTransportSecurity
	SurrogateKey
	TE
	Trailer
	TransferEncoding
	TrueClientIP
	Upgrade
	UserAgent
	Vary
	Via
	WWWAuthenticate
	Warning
	XAzureClientIP
	XClientIP
	XClusterClientIP
	XForwarded
	XForwardedFor
	XForwardedHost
	XForwardedMethod
	XForwardedPort
	XForwardedPrefix
	XForwardedProto
	XForwardedProtocol
	XForwardedScheme
	XForwardedServer
	XForwardedSsl
	XForwardedUri
	XForwardedUser
	XHost
	XKey
	XOriginalMethod
	XOriginalURL
	XRealIP
	XRequestID
	XRewriteURL
	idCount
)

// names holds the canonical spelling of each id.
var names = [idCount]string{
	Accept: "Accept", AcceptEncoding: "Accept-Encoding", AcceptLanguage: "Accept-Language",
	AcceptRanges: "Accept-Ranges", Age: "Age", Allow: "Allow", AltSvc: "Alt-Svc",
	Authorization: "Authorization", CDNCacheControl: "CDN-Cache-Control", CDNLoop: "CDN-Loop",
	CFConnectingIP: "CF-Connecting-IP", CacheControl: "Cache-Control", CacheStatus: "Cache-Status",
	CacheGroups: "Cache-Groups", CacheTag: "Cache-Tag", Connection: "Connection", ContentEncoding: "Content-Encoding",
	ContentLanguage: "Content-Language", ContentLength: "Content-Length",
	ContentLocation: "Content-Location", ContentRange: "Content-Range", ContentType: "Content-Type",
	Cookie: "Cookie", Date: "Date", ETag: "ETag", EarlyData: "Early-Data", Expect: "Expect",
	Expires: "Expires", FastlyClientIP: "Fastly-Client-IP", Forwarded: "forwarded",
	HTTP2Settings: "HTTP2-Settings", Host: "Host", IfMatch: "If-Match",
	IfModifiedSince: "If-Modified-Since", IfNoneMatch: "If-None-Match", IfRange: "If-Range",
	IfUnmodifiedSince: "If-Unmodified-Since", KeepAlive: "Keep-Alive", LastModified: "Last-Modified",
	Link: "Link", Location: "Location", MaxForwards: "Max-Forwards", Origin: "Origin",
	Pragma: "Pragma", Priority: "Priority", ProxyAuthenticate: "Proxy-Authenticate",
	ProxyAuthorization: "Proxy-Authorization", ProxyConnection: "Proxy-Connection",
	ProxyStatus: "Proxy-Status", Range: "Range", RateLimit: "RateLimit",
	RateLimitPolicy: "RateLimit-Policy", Referer: "Referer", RetryAfter: "Retry-After",
	SecWebSocketKey: "Sec-WebSocket-Key", SecWebSocketAccept: "Sec-WebSocket-Accept",
	Server: "Server", SetCookie: "Set-Cookie", StrictTransportSecurity: "Strict-Transport-Security",
	SurrogateKey: "Surrogate-Key", TE: "TE", Trailer: "Trailer", TransferEncoding: "Transfer-Encoding",
	TrueClientIP: "True-Client-IP", Upgrade: "Upgrade", UserAgent: "User-Agent", Vary: "Vary",
	Via: "via", WWWAuthenticate: "WWW-Authenticate", Warning: "Warning", XForwarded: "X-Forwarded",
	XForwardedFor: "x-forwarded-for", XForwardedHost: "x-forwarded-host",
	XForwardedMethod: "X-Forwarded-Method", XForwardedPort: "X-Forwarded-Port",
	XForwardedPrefix: "X-Forwarded-Prefix", XForwardedProto: "x-forwarded-proto",
	XForwardedProtocol: "X-Forwarded-Protocol", XForwardedScheme: "X-Forwarded-Scheme",
	XForwardedServer: "X-Forwarded-Server", XForwardedSsl: "X-Forwarded-Ssl",
	XForwardedUri: "X-Forwarded-Uri", XForwardedUser: "X-Forwarded-User",
	XOriginalMethod: "X-Original-Method", XOriginalURL: "X-Original-URL", XRealIP: "X-Real-IP",
	XRequestID: "X-Request-ID", ClientIP: "Client-IP", FlyClientIP: "Fly-Client-IP", Proxy: "Proxy",
	XAzureClientIP: "X-Azure-ClientIP", XClientIP: "X-Client-IP", XClusterClientIP: "X-Cluster-Client-IP",
	XHost: "X-Host", XKey: "xkey", XRewriteURL: "X-Rewrite-URL",
}

// String returns the canonical spelling, or "" for Other. The five forwarded
// fields and Via are lower case, as the seed writes them.
func (id ID) String() string { return names[id] }

// Lookup returns the id of a field name in any case, or Other.
func Lookup(name string) ID {
	if len(name) == 0 || len(name) > maxName {
		return Other
	}
	for id := buckets[hash(name)]; id != Other; id = chain[id] {
		if names[id] == name || EqualFold(names[id], name) {
			return id
		}
	}
	return Other
}

// hash mixes the length and three letters of a name into a bucket number.
func hash(name string) uint8 {
	n := len(name)
	return uint8(n*7) ^ (name[0]|0x20)*3 ^ (name[n-1]|0x20)<<2 ^ (name[n/2]|0x20)*5
}

var buckets, chain, maxName = index()

// index builds the hash table over the names; chain links ids that share a
// bucket.
func index() (buckets [256]ID, chain [idCount]ID, longest int) {
	for id := Other + 1; id < idCount; id++ {
		h := hash(names[id])
		chain[id], buckets[h] = buckets[h], id
		longest = max(longest, len(names[id]))
	}
	return buckets, chain, longest
}

// HopByHop reports whether a field is meant for one connection only and is
// never forwarded (RFC 9110, section 7.6.1). Fields that a Connection field
// names are hop-by-hop as well; the caller looks at those itself.
func (id ID) HopByHop() bool {
	switch id {
	case Connection, KeepAlive, ProxyConnection, ProxyAuthenticate, ProxyAuthorization,
		TE, Trailer, TransferEncoding, Upgrade, HTTP2Settings:
		return true
	}
	return false
}

// ConnectionSpecific reports whether HTTP/2 and HTTP/3 have no place for a field,
// because frames say what it would: a message with one is malformed (RFC 9113,
// section 8.2.2; RFC 9114, section 4.2).
func (id ID) ConnectionSpecific() bool {
	switch id {
	case Connection, KeepAlive, ProxyConnection, TransferEncoding, Upgrade:
		return true
	}
	return false
}

// ClaimsClient reports whether a field describes the client or its request on an
// earlier hop. headgate drops such a field from a peer that is not trusted, so that
// an upstream never trusts what a client says about itself. Proxy is one of them: a
// server that turns field names into variables makes HTTP_PROXY of it, which
// configures the proxy of outgoing requests (httpoxy, CVE-2016-5385).
func (id ID) ClaimsClient() bool {
	switch id {
	case Forwarded, XForwarded, XForwardedFor, XForwardedHost, XForwardedMethod, XForwardedPort,
		XForwardedPrefix, XForwardedProto, XForwardedProtocol, XForwardedScheme, XForwardedServer,
		XForwardedSsl, XForwardedUri, XForwardedUser, XOriginalMethod, XOriginalURL, XRealIP,
		TrueClientIP, CFConnectingIP, FastlyClientIP, FlyClientIP, XAzureClientIP, XClientIP, XClusterClientIP,
		ClientIP, XHost, XRewriteURL, Proxy:
		return true
	}
	return false
}
