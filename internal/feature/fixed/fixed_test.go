package fixed

import (
	"net/netip"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

func exchangeFor(path, query string) *exchange.Exchange {
	ex := &exchange.Exchange{}
	ex.Reset(&exchange.Conn{Remote: netip.MustParseAddrPort("192.0.2.7:1234")}, nil)
	ex.Request.Method, ex.Request.Host, ex.Request.Path, ex.Request.Query = "GET", "shop.example", path, query
	ex.ClientIP = netip.MustParseAddr("192.0.2.7")
	return ex
}

func TestAnswerIsAsConfigured(t *testing.T) {
	const query = `?<b>"'&`
	for _, c := range []struct {
		name       string
		set        Config
		text, kind string
		length     int64
	}{
		{"no body", Config{Status: 410, ContentType: "text/plain"}, "", "", 0},
		{"body", Config{Status: 200, Body: "hi {{x}", ContentType: "text/plain"}, "hi {x}", "text/plain", 6},
		{"variables", Config{Status: 200, Body: "{method} {host}{path} {client_ip}", ContentType: "text/plain"}, "GET shop.example/a%3Cb 192.0.2.7", "text/plain", 32},
		{"text is not escaped", Config{Status: 200, Body: "{query}", ContentType: "text/plain"}, `<b>"'&`, "text/plain", 6},
		{"HTML is escaped", Config{Status: 200, Body: "<p>{query}", ContentType: "text/html"}, "<p>&lt;b&gt;&#34;&#39;&amp;", "text/html", 27},
		{"JSON is escaped", Config{Status: 200, Body: `"{query}"`, ContentType: "application/json"}, `"\u003cb\u003e\u0022\u0027\u0026"`, "application/json", 33},
		{"not modified has no length", Config{Status: 304}, "", "", -1},
		{"no content", Config{Status: 204}, "", "", 0},
	} {
		s, err := Compile(&c.set)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		ex := exchangeFor("/a%3Cb", query)
		if answer := s.Respond(ex); answer != nil {
			t.Fatalf("%s: answer %+v", c.name, answer)
		}
		rs := &ex.Response
		if rs.Status != c.set.Status || string(rs.Text) != c.text || rs.Length != c.length || rs.Header.Get(header.ContentType) != c.kind || !rs.Ours {
			t.Errorf("%s: %d %q (%d) %q, want %d %q (%d) %q", c.name, rs.Status, rs.Text, rs.Length, rs.Header.Get(header.ContentType),
				c.set.Status, c.text, c.length, c.kind)
		}
		if ex.Reason != exchange.None {
			t.Errorf("%s: reason %v, want none", c.name, ex.Reason)
		}
	}
}

func TestUnknownVariableIsAnError(t *testing.T) {
	if _, err := Compile(&Config{Status: 200, Body: "{nobody}"}); err == nil {
		t.Error("no error")
	}
}

func TestFixedTextAllocatesNothing(t *testing.T) {
	s, err := Compile(&Config{Status: 200, Body: "hi", ContentType: "text/plain"})
	if err != nil {
		t.Fatal(err)
	}
	ex := exchangeFor("/", "")
	if n := testing.AllocsPerRun(100, func() { s.Respond(ex) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
