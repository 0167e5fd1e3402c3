package api

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkTenThousandProxies asks and changes a configuration of that many.
func BenchmarkTenThousandProxies(b *testing.B) {
	var text strings.Builder
	text.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nproxies:\n")
	for i := range 10_000 {
		fmt.Fprintf(&text, "  p%05d:\n    virtual_hosts: [p%05d.example.com]\n    routes:\n      - servers: [{url: \"http://127.0.0.1:1\"}]\n", i, i)
	}
	h := startWith(b, text.String())
	for _, c := range []struct{ name, method, path, body string }{
		{"one", "GET", "/proxies/p05000", ""},
		{"page", "GET", "/proxies?limit=100", ""},
		{"edit", "PATCH", "/proxies/p05000", `{"description":"%d"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := 0
			for b.Loop() {
				n++
				body := c.body
				if body != "" {
					body = fmt.Sprintf(body, n)
				}
				rq := httptest.NewRequest(c.method, "http://localhost"+Prefix+c.path, strings.NewReader(body))
				rq.Header.Set("Authorization", "Bearer "+h.tokens["admin"])
				rq.Header.Set("Content-Type", "application/json")
				rq.Header.Set("If-Match", "*")
				w := httptest.NewRecorder()
				h.api.ServeHTTP(w, rq)
				if w.Code != 200 {
					data, _ := io.ReadAll(w.Body)
					b.Fatalf("%d: %s", w.Code, data)
				}
			}
		})
	}
}
