package gate

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// cookies is where headgate's cookies of a request are.
var cookies = exchange.NewSlot[Cookies](false)

// Strip removes headgate's cookies from a request. CookiesOf returns them from then on.
func Strip(ex *exchange.Exchange) { cookies.Reuse(ex).Strip(ex) }

// CookiesOf returns headgate's cookies of a request. They are valid as long as the exchange.
func CookiesOf(ex *exchange.Exchange) *Cookies {
	if c := cookies.Get(ex); c != nil {
		return c
	}
	return &none
}

// none are the cookies of a request that Strip has not read. It is not changed.
var none Cookies

// HostOf returns the host of a request as sessions have it: in lower case, without port and
// without a dot at its end.
func HostOf(ex *exchange.Exchange) string {
	name := strings.TrimSuffix(ex.Request.HostName(), ".")
	for i := range len(name) {
		if c := name[i]; c >= 'A' && c <= 'Z' {
			return strings.ToLower(name)
		}
	}
	return name
}

// OriginOf returns the origin of a request, with the port that the client wrote unless it is
// that of https.
func OriginOf(ex *exchange.Exchange) string {
	port := strings.TrimPrefix(ex.Request.Host[len(ex.Request.HostName()):], ":")
	if port == "" || port == "443" {
		return "https://" + HostOf(ex)
	}
	return "https://" + HostOf(ex) + ":" + port
}

// SameOrigin reports whether a request that changes something comes from a page of the same
// origin.
func SameOrigin(ex *exchange.Exchange) bool {
	switch ex.Request.Header.Count(header.Origin) {
	case 0:
		site, reported := ex.Request.Header.Lookup("Sec-Fetch-Site")
		return reported && site == "same-origin"
	case 1:
		from := ex.Request.Header.Get(header.Origin)
		return from == OriginOf(ex) || from == "https://"+ex.Request.Host
	}
	return false
}

// ClientOf returns who a request comes from.
func ClientOf(ex *exchange.Exchange) *Client {
	return &Client{Address: ex.ClientIP, Agent: ex.Request.Header.Get(header.UserAgent), Cookies: CookiesOf(ex)}
}
