package exchange

import (
	"net/netip"
	"strings"
	"testing"
)

func TestTemplate(t *testing.T) {
	ex := &Exchange{Conn: &Conn{}, Place: &Place{Proxy: "shop", Route: "/api"}, ClientIP: netip.MustParseAddr("192.0.2.1")}
	ex.Request = Request{Method: "GET", Scheme: "https", Host: "a.example:8443", Path: "/x", Query: "?q=1"}
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"plain", "plain"},
		{"{{host}", "{host}"},
		{"{{{host}", "{a.example"},
		{"{scheme}://{host}{path}?{query}", "https://a.example/x?q=1"},
		{"{host}|{authority}", "a.example|a.example:8443"},
		{"{client_ip} {method} {proxy}{route}", "192.0.2.1 GET shop/api"},
	} {
		tpl, err := ParseTemplate(c.text)
		if err != nil {
			t.Fatalf("ParseTemplate(%q): %v", c.text, err)
		}
		if got := string(tpl.Append(nil, ex)); got != c.want {
			t.Errorf("template %q: got %q, want %q", c.text, got, c.want)
		}
	}
}

func TestHostName(t *testing.T) {
	for host, want := range map[string]string{
		"": "", "a.example": "a.example", "a.example:80": "a.example", "a.example:": "a.example", "192.0.2.1:80": "192.0.2.1",
		"[2001:db8::1]": "[2001:db8::1]", "[2001:db8::1]:443": "[2001:db8::1]",
	} {
		if got := (&Request{Host: host}).HostName(); got != want {
			t.Errorf("%s: got %s, want %s", host, got, want)
		}
	}
}

func TestTemplateRefuses(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"{hots}", "unknown variable {hots}"},
		{"{host", "no closing brace"},
		{"a {} b", "unknown variable {}"},
	} {
		if _, err := ParseTemplate(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseTemplate(%q): got %v, want an error with %q", c.text, err, c.want)
		}
	}
}
