package api

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// forwardedFields are those of requests that came through a proxy.
var forwardedFields = []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via"}

// Forwarded reports whether a request came through a proxy. Then the address of its
// connection must not be used to grant rights.
func Forwarded(rq *http.Request) bool {
	return slices.ContainsFunc(forwardedFields, func(name string) bool { return len(rq.Header[name]) > 0 })
}

// maxForwarded limits the addresses in x-forwarded-for that are evaluated.
const maxForwarded = 16

// addressOf returns the client's address: that of the connection, or, behind trusted
// proxies, the last address in x-forwarded-for that is not one of theirs. The addresses
// before it could be forged by the client.
func (a *API) addressOf(rq *http.Request) netip.Addr {
	at, err := netip.ParseAddrPort(rq.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	from := at.Addr().Unmap()
	if a.Trusted == nil || !a.Trusted(from) {
		return from
	}
	list := strings.Split(strings.Join(rq.Header["X-Forwarded-For"], ","), ",")
	for _, text := range slices.Backward(list[max(0, len(list)-maxForwarded):]) {
		next, ok := forwardedAddress(strings.TrimSpace(text))
		if !ok {
			break
		}
		if from = next; !a.Trusted(from) {
			break
		}
	}
	return from
}

// forwardedAddress reads one address of x-forwarded-for, which some write with a port.
func forwardedAddress(text string) (netip.Addr, bool) {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone(""), true
	}
	a, err := netip.ParseAddr(strings.Trim(text, "[]"))
	return a.Unmap().WithZone(""), err == nil
}
