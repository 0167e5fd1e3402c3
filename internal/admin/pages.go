package admin

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// page is one address of the listener that is read, with GET or HEAD.
type page struct {
	path    string
	about   string
	handler http.Handler
}

// pages returns the handler of all pages, and of an index of them.
func pages(o Options) http.Handler {
	table := []page{
		{"/metrics", "numbers for Prometheus", o.Metrics},
		{"/healthz", "200 while the process is alive", answer(func() bool { return true }, "ok", "")},
		{"/livez", "the same", answer(func() bool { return true }, "ok", "")},
		{"/readyz", "200 while requests are taken, 503 before the first configuration and while stopping",
			answer(o.Ready, "ready", "not ready")},
	}
	if o.Status != nil {
		table = append(table, page{"/status", "how everything stands, as JSON; ?proxy=NAME tells all of one proxy", direct(status(o.Status))})
	}
	if o.Instance != nil {
		table = append(table, page{InstancePath, "which headgate this is, for programs on this machine", onLoopback(direct(http.HandlerFunc(o.Instance.show)))})
	}
	mux := http.NewServeMux()
	index := "headgate admin listener\n\n"
	if o.Console != nil {
		index += fmt.Sprintf("%-12s %s\n", "/", "the console")
	}
	for _, p := range table {
		mux.Handle(p.path, readOnly(p.handler))
		index += fmt.Sprintf("%-12s %s\n", p.path, p.about)
	}
	if o.Purge != nil {
		mux.Handle(purgePath, direct(purge(o.Purge)))
		index += fmt.Sprintf("%-12s %s\n", purgePath, "POST: take responses out of caches")
	}
	if o.API != nil {
		mux.Handle("/api/", onLoopback(o.API))
		index += fmt.Sprintf("%-12s %s\n", "/api/v1/", "the management API, for who has signed in; see docs/reference/api.md")
	}
	list := readOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, index)
	}))
	mux.Handle("/pages", list)
	if o.Console == nil {
		mux.Handle("/{$}", list)
		return mux
	}
	mux.Handle("/", readOnly(orElse(o.Console, list)))
	return mux
}

// answer tells whether something holds, by the status and in a word.
func answer(holds func() bool, yes, no string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !holds() {
			text(w, http.StatusServiceUnavailable, no+"\n")
			return
		}
		text(w, http.StatusOK, yes+"\n")
	})
}

// status shows how everything stands.
func status(what func(proxy string) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		proxy := rq.URL.Query().Get("proxy")
		all := what(proxy)
		if all == nil {
			text(w, http.StatusNotFound, fmt.Sprintf("there is no proxy %q\n", proxy))
			return
		}
		body, err := json.MarshalIndent(all, "", "  ")
		if err != nil {
			text(w, http.StatusInternalServerError, "the status cannot be written as JSON\n")
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write(append(body, '\n'))
	})
}

// readOnly refuses every method but GET and HEAD.
func readOnly(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if rq.Method != http.MethodGet && rq.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			text(w, http.StatusMethodNotAllowed, "this page is only read\n")
			return
		}
		next.ServeHTTP(w, rq)
	})
}

// guard refuses requests that name a host which is not this machine, when the
// address is a loopback one: such a request was sent by a web page whose name
// was made to point here (DNS rebinding). A client that names no host, which
// no browser does, may pass.
func guard(next http.Handler, loopback bool, hosts func() []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		if loopback && rq.Host != "" && !isLoopback(rq.Host) && !named(rq.Host, hosts) {
			text(w, http.StatusMisdirectedRequest, "this listener answers to localhost and loopback addresses only\n")
			return
		}
		next.ServeHTTP(w, rq)
	})
}

// orElse serves the console where the API is served too. At other addresses the first
// page is the list of what is there.
func orElse(console, list http.Handler) http.Handler {
	console = onLoopback(console)
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		if local, ok := rq.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok && rq.URL.Path == "/" && !local.AddrPort().Addr().Unmap().IsLoopback() {
			list.ServeHTTP(w, rq)
			return
		}
		console.ServeHTTP(w, rq)
	})
}

// onLoopback refuses what comes to an address that others can reach. It looks at our
// own end of the connection, which nobody can make up. The admin socket is one that
// others cannot reach.
func onLoopback(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		switch local := rq.Context().Value(http.LocalAddrContextKey).(type) {
		case *net.TCPAddr:
			if !local.AddrPort().Addr().Unmap().IsLoopback() {
				text(w, http.StatusForbidden, "this is served on loopback addresses only: the listener speaks no TLS\n")
				return
			}
		case *net.UnixAddr:
		default:
			text(w, http.StatusForbidden, "this is served on loopback addresses only\n")
			return
		}
		next.ServeHTTP(w, rq)
	})
}

// named reports whether a Host field is one of the names that operators have set.
func named(host string, hosts func() []string) bool {
	if hosts == nil {
		return false
	}
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	return slices.Contains(hosts(), strings.ToLower(strings.TrimSuffix(host, ".")))
}

// isLoopback reports whether a Host field names this machine.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if a, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return a.Unmap().IsLoopback()
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host == "localhost" || strings.HasSuffix(host, ".localhost")
}

func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s)) // the client went away
}
