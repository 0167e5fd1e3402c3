package admin

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"

	"headgate/internal/admin/api"
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
		{"/metrics", "numbers for Prometheus", unless(onThisMachine, o.Metrics, viewers(o.API, o.Metrics))},
	}
	for _, h := range []struct {
		path, about string
		handler     http.Handler
	}{
		{"/healthz", "200 while the process is alive", alive("ok")},
		{"/livez", "the same", alive("ok")},
		{"/readyz", "200 while all ports listen, 503 otherwise, while stopping and while drained", ready(o.NotReady)},
	} {
		table = append(table, page{h.path, h.about, unless(byAddress, h.handler, viewers(o.API, h.handler))})
	}
	if o.Status != nil {
		table = append(table, page{"/status", "the status as JSON; ?proxy=NAME shows one proxy in full", viewers(o.API, status(o.Status))})
	}
	if o.Instance != nil {
		table = append(table, page{InstancePath, "which headgate this is, for programs on this machine", machineOnly(http.HandlerFunc(o.Instance.show))})
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
	if o.API != nil {
		mux.Handle("/api/", o.API)
		mux.Handle("/api", o.API)
		mux.Handle("/cache/purge", under(api.Prefix, o.API))
		index += fmt.Sprintf("%-12s %s\n", "/cache/purge", "POST: take responses out of caches")
		index += fmt.Sprintf("%-12s %s\n", "/api/v1/", "the management API; requires sign-in; see docs/reference/api.md")
	}
	list := readOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		text(w, http.StatusOK, index)
	}))
	mux.Handle("/pages", list)
	if o.Console == nil {
		mux.Handle("/{$}", list)
	} else {
		mux.Handle("/", readOnly(o.Console))
	}
	return cleanOnly(mux, o.API)
}

// cleanOnly answers 404 to paths with empty or dot segments, which a ServeMux would redirect
// to the cleaned path: nothing is at such a path, and a client that makes them is to notice.
func cleanOnly(next http.Handler, a *api.API) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) {
		clean := path.Clean("/" + rq.URL.Path)
		switch {
		case strings.TrimSuffix(rq.URL.Path, "/") == strings.TrimSuffix(clean, "/"):
			next.ServeHTTP(w, rq)
		case a != nil && strings.HasPrefix(clean, "/api/"):
			a.ServeHTTP(w, rq) // which refuses it in its own form
		default:
			text(w, http.StatusNotFound, "there is nothing at this path\n")
		}
	})
}

// alive returns a page that answers 200 with a word.
func alive(word string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, word+"\n") })
}

// ready returns a page that answers 503 with the reason while there is one.
func ready(not func() string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if why := not(); why != "" {
			text(w, http.StatusServiceUnavailable, "not ready: "+why+"\n")
			return
		}
		text(w, http.StatusOK, "ready\n")
	})
}

// status serves the status.
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

func text(w http.ResponseWriter, status int, s string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(s)) // the client went away
}
