package api

import (
	"fmt"
	"strings"
	"testing"
)

// What a change of an object does not name stays as it is written: a default that somebody
// wrote down, a duration in other words, the order, the quotes, the comments.
func TestAChangeTouchesWhatItNames(t *testing.T) {
	const text = `version: 1
proxies:
  shop:
    virtual_hosts: ["shop.example.com"] # the old name
    request_timeout: 60s
    routes:
      - path: /
        strip_prefix: true
        servers:
          - {url: "http://127.0.0.1:3000", weight: 1} # the first
          - url: "http://127.0.0.1:3001"
            weight: 2
`
	for _, c := range []struct{ name, method, body, old, new string }{
		{"one field", "PATCH", `{"request_timeout":"90s"}`, "request_timeout: 60s", `request_timeout: "90s"`},
		{"a field within lists", "PATCH", `{"routes":[{"path":"/","servers":[{"url":"http://127.0.0.1:3000"},{"url":"http://127.0.0.1:3001","weight":3}]}]}`, "weight: 2", "weight: 3"},
		{"the whole, which is the same", "PUT", `{"name":"shop","virtual_hosts":["shop.example.com"],"request_timeout":"1m","routes":[{"path":"/","servers":[{"url":"http://127.0.0.1:3000"},{"url":"http://127.0.0.1:3001","weight":2}]}]}`, "", ""},
		{"a field that goes", "PATCH", `{"routes":[{"path":"/","servers":[{"url":"http://127.0.0.1:3000"},{"url":"http://127.0.0.1:3001"}]}]}`, "\n            weight: 2", ""},
		{"another length of a list", "PATCH", `{"virtual_hosts":["shop.example.com","www.example.com"]}`, `["shop.example.com"]`, `["shop.example.com", www.example.com]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := startWith(t, text)
			h.does(c.method, "/proxies/shop", c.body, 200, "", "as: editor", always)
			if got, want := h.text(), strings.Replace(text, c.old, c.new, 1); got != want {
				t.Errorf("the document is\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// A change of many places at once is one, whatever the form in which they stand.
func TestAChangeOfManyPlaces(t *testing.T) {
	var text, want strings.Builder
	text.WriteString("version: 1\nproxies:\n  shop:\n    routes:\n")
	for i := range 80 {
		fmt.Fprintf(&text, "      - {path: /%d, fixed_response: {status: 410}}\n", i)
		fmt.Fprintf(&want, `,{"path":"/%d","fixed_response":{"status":404}}`, i)
	}
	h := startWith(t, text.String())
	h.does("PATCH", "/proxies/shop", `{"routes":[`+want.String()[1:]+`]}`, 200, "", "as: editor", always)
	if n := strings.Count(h.text(), "404"); n != 80 {
		t.Errorf("%d routes have the new status, want 80:\n%s", n, h.text())
	}
}
