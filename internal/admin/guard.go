package admin

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"headgate/internal/admin/api"
	"headgate/internal/operator"
)

// guard refuses requests for a host that is not ours: a web page whose name was made to
// point here has sent them (DNS rebinding). Addresses cannot be made to point
// elsewhere. A client that names no host, which no browser does, may pass.
func guard(next http.Handler, hosts func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if rq.Host != "" && !isAddress(rq.Host) && !isLoopback(rq.Host) && !named(rq.Host, hosts) && !api.IsLocal(rq.Context()) {
			if strings.HasPrefix(rq.URL.Path, api.Prefix+"/") {
				next.ServeHTTP(w, rq) // the API refuses it in its own form
				return
			}
			text(w, http.StatusMisdirectedRequest, "this listener answers to addresses, localhost and the names in admin.hosts only\n")
			return
		}
		next.ServeHTTP(w, rq)
	})
}

// unless passes requests for which holds is true to open, and all others to guarded.
func unless(holds func(*http.Request) bool, open, guarded http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if holds(rq) {
			open.ServeHTTP(w, rq)
			return
		}
		guarded.ServeHTTP(w, rq)
	})
}

// viewers requires a signed-in operator that may see the status. If there is no sign-in,
// clients of the admin socket have access.
func viewers(a *api.API, next http.Handler) http.Handler {
	if a != nil {
		return a.Protect(operator.Viewer, api.AreaStatus, next)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if !api.IsLocal(rq.Context()) || api.Forwarded(rq) {
			text(w, http.StatusForbidden, "sign-in is not available at the moment; use the admin socket\n")
			return
		}
		next.ServeHTTP(w, rq)
	})
}

// byAddress reports whether a request was sent directly, to an address or localhost. Such a
// client may see a health page.
func byAddress(rq *http.Request) bool {
	return !api.Forwarded(rq) && (rq.Host == "" || isAddress(rq.Host) || isLoopback(rq.Host))
}

// onThisMachine reports whether a request came directly from a program on this machine:
// both ends of the connection are loopback addresses, and so is the host that it names.
func onThisMachine(rq *http.Request) bool {
	local, ok := rq.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	peer, err := netip.ParseAddrPort(rq.RemoteAddr)
	return ok && err == nil && local.AddrPort().Addr().Unmap().IsLoopback() && peer.Addr().Unmap().IsLoopback() &&
		!api.Forwarded(rq) && (rq.Host == "" || isLoopback(rq.Host))
}

// machineOnly refuses what did not come directly from this machine, or by its socket.
func machineOnly(next http.Handler) http.Handler {
	return unless(func(rq *http.Request) bool {
		return onThisMachine(rq) || api.IsLocal(rq.Context()) && !api.Forwarded(rq)
	}, next, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusForbidden, "this page is for programs on this machine, and not given through a proxy\n")
	}))
}

// under has a handler answer as if the path began with a prefix.
func under(prefix string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		to := new(http.Request)
		*to = *rq
		to.URL = &url.URL{Path: prefix + rq.URL.Path, RawQuery: rq.URL.RawQuery}
		next.ServeHTTP(w, to)
	})
}

// named reports whether a Host field is one of the names that operators have set.
func named(host string, hosts func() []string) bool {
	return hosts != nil && slices.Contains(hosts(), hostOf(host))
}

// isLoopback reports whether a Host field names this machine.
func isLoopback(host string) bool {
	host = hostOf(host)
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// isAddress reports whether a Host field is an IP address.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(hostOf(host))
	return err == nil
}

// hostOf returns the host of a Host field, without the port, in lower case.
func hostOf(field string) string {
	if h, _, err := net.SplitHostPort(field); err == nil {
		field = h
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(field, "[]"), "."))
}
