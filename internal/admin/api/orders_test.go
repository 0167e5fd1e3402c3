package api

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// ordersConfig wants a certificate of an authority that is away.
const ordersConfig = `version: 1
admin: {address: ""}
ports:
  web: {address: "127.0.0.1:1", protocol: http, active: false}
acme:
  main: {directory: "https://127.0.0.1:1/directory", domains: ["*.wide.example.com", wide.example.com], dns: {provider: exec, command: "true"}}
proxies:
  main:
    acme: main
    virtual_hosts: [shop.example.com]
    routes: [{fixed_response: {status: 200}}]
`

// TestOrdersAreToldAndBegun asks for certificates by ACME by their names and hosts.
func TestOrdersAreToldAndBegun(t *testing.T) {
	h := startWith(t, ordersConfig)
	var o struct {
		Name, State string
		Names       []string
		Trouble     *troubleBody
		NextTry     time.Time `json:"next_try"`
	}
	get := func(path string) {
		t.Helper()
		rs, out := h.call("GET", path, "", "as: viewer")
		h.expect(path, rs, out, 200, "")
		if err := json.Unmarshal([]byte(text(t, out)), &o); err != nil {
			t.Fatal(err)
		}
	}
	for end := time.Now().Add(time.Minute); o.Trouble == nil && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		get("/orders/shop.example.com")
	}
	if o.State != "failed" || o.Trouble == nil || o.Trouble.Code != "authority_away" || o.Trouble.Hint == "" || o.NextTry.IsZero() {
		t.Errorf("got %+v", o)
	}
	for _, host := range []string{"*.wide.example.com", "a.wide.example.com", "WIDE.example.com.", "_wildcard.wide.example.com"} {
		if get("/orders/" + host); o.Name != "_wildcard.wide.example.com" || len(o.Names) != 2 {
			t.Errorf("%s is %+v", host, o)
		}
	}
	rs, out := h.call("GET", "/orders?sort=-entry&state=valid", "", "as: viewer")
	h.expect("valid ones", rs, out, 200, "")
	if !strings.HasPrefix(text(t, out), `{"items":[]`) {
		t.Errorf("got %s", out)
	}
	rs, out = h.call("GET", "/orders", "", "as: viewer")
	h.expect("all", rs, out, 200, "")
	if !strings.Contains(text(t, out), `"shop.example.com"`) || strings.Contains(text(t, out), `"timeline"`) {
		t.Errorf("got %s", out)
	}
	rs, out = h.call("GET", "/orders/other.example.com", "", "as: viewer")
	h.expect("another host", rs, out, 404, "not_found")
	rs, out = h.call("POST", "/orders/shop.example.com/preflight", "{}", "as: admin")
	h.expect("preflight", rs, out, 200, "")
	if !strings.Contains(text(t, out), `"blocked":true`) || !strings.Contains(text(t, out), "authority_away") {
		t.Errorf("got %s", out)
	}
	rs, out = h.call("POST", "/orders/shop.example.com/renew", "{}", "as: admin")
	if rs.StatusCode != 202 && rs.StatusCode != 409 { // it is under way already
		t.Errorf("renew: %d %s", rs.StatusCode, out)
	}
	rs, out = h.call("POST", "/acme/none/rollover", "{}", "as: admin")
	h.expect("an entry that is not there", rs, out, 404, "not_found")
	rs, out = h.call("GET", "/status", "", "as: viewer")
	h.expect("the status", rs, out, 200, "")
	if !strings.Contains(text(t, out), "authority_away") || strings.Contains(text(t, out), `"timeline"`) {
		t.Errorf("the status tells %s", out)
	}
}

// text writes an answer as JSON.
func text(t *testing.T, answer map[string]any) string {
	t.Helper()
	data, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
