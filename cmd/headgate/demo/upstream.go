package demo

import (
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"slices"
	"strings"
)

// maxBody is how much of a request body the upstream reads, in bytes.
const maxBody = 64 << 20

// echo is what reached the upstream.
type echo struct {
	Name       string      `json:"name"`
	Method     string      `json:"method"`
	Target     string      `json:"target"`
	Host       string      `json:"host"`
	Proto      string      `json:"proto"`
	Header     http.Header `json:"header"`
	BodyLength int64       `json:"body_length"`
	Trailer    http.Header `json:"trailer,omitempty"`
}

// Upstream returns a handler that echoes every request: as a page for browsers, as JSON for
// programs that accept it, as text otherwise. name identifies the server in the echo.
func Upstream(name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, rq *http.Request) { answer(w, rq, name) })
}

func answer(w http.ResponseWriter, rq *http.Request, name string) {
	n, err := io.Copy(io.Discard, http.MaxBytesReader(w, rq.Body, maxBody))
	if err != nil {
		http.Error(w, name+" could not read the body: "+err.Error(), http.StatusBadRequest)
		return
	}
	e := echo{name, rq.Method, rq.RequestURI, rq.Host, rq.Proto, rq.Header, n, rq.Trailer}
	accept := rq.Header.Get("Accept")
	switch {
	case strings.Contains(accept, "text/html"):
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'")
		_, _ = io.WriteString(w, e.page()) // the proxy went away
	case strings.Contains(accept, "json"):
		w.Header().Set("Content-Type", "application/json")
		j := json.NewEncoder(w)
		j.SetIndent("", "  ")
		_ = j.Encode(e) // the proxy went away
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, _ = io.WriteString(w, e.text()) // the proxy went away
	}
}

// field is one line of a header.
type field struct{ name, value string }

// fields returns the header in the order of names, Host first.
func (e *echo) fields() []field {
	out := []field{{"Host", e.Host}}
	names := make([]string, 0, len(e.Header))
	for name := range e.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range e.Header[name] {
			out = append(out, field{name, value})
		}
	}
	return out
}

func (e *echo) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "This is %s. What reached it:\n\n%s %s %s\n", e.Name, e.Method, e.Target, e.Proto)
	for _, f := range e.fields() {
		fmt.Fprintf(&b, "%s: %s\n", f.name, f.value)
	}
	fmt.Fprintf(&b, "\n%d bytes of body\n", e.BodyLength)
	return b.String()
}

func (e *echo) page() string {
	var b strings.Builder
	b.WriteString(`<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>headgate demo</title><style>
:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:52rem;margin:8vh auto;padding:0 1.5rem;color:#1d2733;background:#fff}
h1{font-size:1.5rem;margin:0 0 .25rem}
code,td,th{font:14px/1.6 ui-monospace,monospace}
table{border-collapse:collapse;width:100%}
th{text-align:left;vertical-align:top;padding:.15rem 1.5rem .15rem 0;font-weight:600;white-space:nowrap}
td{overflow-wrap:anywhere}
p{color:#5b6875}
@media(prefers-color-scheme:dark){body{color:#e6ebf0;background:#12171d}p{color:#98a5b3}}
</style></head><body><main><h1>It works</h1><p>This is `)
	b.WriteString(html.EscapeString(e.Name))
	b.WriteString(` behind headgate. What reached it:</p><p><code>`)
	b.WriteString(html.EscapeString(e.Method + " " + e.Target + " " + e.Proto))
	b.WriteString("</code></p><table><tbody>")
	for _, f := range e.fields() {
		b.WriteString(`<tr><th scope="row">` + html.EscapeString(f.name) + "</th><td>" + html.EscapeString(f.value) + "</td></tr>")
	}
	fmt.Fprintf(&b, "</tbody></table><p>%d bytes of body</p></main></body></html>\n", e.BodyLength)
	return b.String()
}
