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

func TestTemplateHasPortsAndFields(t *testing.T) {
	ex := &Exchange{Conn: &Conn{Local: netip.MustParseAddrPort("192.0.2.9:8443")}, Place: &Place{}}
	ex.Request = Request{Method: "GET", Scheme: "https", Host: "a.example", Path: "/x y", Query: "?q=1"}
	ex.Request.Header.AddField("X-User", "anna")
	ex.Request.Header.AddField("x-user", "ben")
	ex.Request.Header.AddField("Cookie", "a=1")
	ex.Request.Header.AddField("Cookie", "b=2")
	for _, c := range []struct{ text, host, want string }{
		{"{request_uri}", "a.example", "/x y?q=1"},
		{"{server_port} {port}", "a.example", "8443 443"},
		{"{port}", "a.example:81", "81"},
		{"{port}", "[2001:db8::1]:82", "82"},
		{"{port}", "[2001:db8::1]", "443"},
		{"{header.X-USER}", "a.example", "anna, ben"},
		{"<{header.X-None}>", "a.example", "<>"},
		{"{header.Cookie}", "a.example", "a=1; b=2"},
		{"{header.Host}", "a.example:81", "a.example:81"},
	} {
		tpl, err := ParseTemplate(c.text)
		if err != nil {
			t.Fatalf("ParseTemplate(%q): %v", c.text, err)
		}
		ex.Request.Host = c.host
		if got := string(tpl.Append(nil, ex)); got != c.want {
			t.Errorf("template %q: got %q, want %q", c.text, got, c.want)
		}
		b := make([]byte, 0, 64)
		if n := testing.AllocsPerRun(10, func() { b = tpl.Append(b[:0], ex) }); n != 0 {
			t.Errorf("template %q: %v allocations", c.text, n)
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
		{"{header.}", "unknown variable {header.}"},
		{"{header.a b}", "unknown variable {header.a b}"},
		{"{header.ü}", "unknown variable {header.ü}"},
	} {
		if _, err := ParseTemplate(c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParseTemplate(%q): got %v, want an error with %q", c.text, err, c.want)
		}
	}
}
