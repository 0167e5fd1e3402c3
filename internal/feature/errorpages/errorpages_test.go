package errorpages

import (
	"slices"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
	"headgate/internal/setting/page"
)

func with(body string, status ...Status) Page {
	return Page{Status: status, Config: page.Config{Body: body}}
}

// refuse answers with a reason.
func refuse(reason exchange.Reason) exchange.Filter {
	return exchange.Filter{Request: func(*exchange.Exchange) *exchange.Answer { return exchange.Fail(reason, "") }}
}

func compile(t *testing.T, c Config) exchange.Filter {
	t.Helper()
	f, err := Compile(c, exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestOurOwnAnswersGetPages(t *testing.T) {
	f := compile(t, Config{with("<p>class {status}", "5xx"), with("<p>{reason}", "404", "502"), with(`{{"s":{status}}`, "429")})
	for _, c := range []struct {
		reason exchange.Reason
		accept string
		want   string
	}{
		{exchange.NoRoute, "text/html", "<p>no_route"},
		{exchange.NoRoute, "*/*", "<p>no_route"},
		{exchange.UpstreamRefused, "", "<p>upstream_refused"},
		{exchange.Overloaded, "", "<p>class 503"},
		{exchange.RateLimited, "application/json", `{"s":429}`},
	} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept: "+c.accept))
		front := exchangetest.Run(t, ex, nil, f, refuse(c.reason))
		if front.Body != c.want || front.Status != c.reason.Status() || front.Field("Cache-Control") != "no-store" || front.Field("Proxy-Status") == "" ||
			ex.Response.Length != int64(len(c.want)) {
			t.Errorf("%v: %d %q %q, want %q", c.reason, front.Status, front.Fields, front.Body, c.want)
		}
	}
	for reason, accept := range map[exchange.Reason]string{exchange.AddressDenied: "text/html", exchange.NoRoute: "application/json"} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept: "+accept))
		if front := exchangetest.Run(t, ex, nil, f, refuse(reason)); !strings.Contains(front.Body, reason.String()) {
			t.Errorf("%v for %s: %q, want the usual body", reason, accept, front.Body)
		}
	}
}

func TestAnswersWithABodyOfTheirOwnKeepIt(t *testing.T) {
	f := compile(t, Config{with("page", "4xx", "5xx")})
	own := exchange.Filter{Request: func(*exchange.Exchange) *exchange.Answer {
		return &exchange.Answer{Reason: exchange.Maintenance, Body: []byte("own"), ContentType: "text/plain"}
	}}
	if front := exchangetest.Run(t, exchangetest.New(t), nil, f, own); front.Body != "own" {
		t.Errorf("%q, want own", front.Body)
	}
}

func TestServersResponsesGetPagesIfAsked(t *testing.T) {
	source := func() *exchangetest.Source {
		return &exchangetest.Source{Status: 404, Body: "server's", Fields: []string{
			"Content-Type: text/x", "Content-Encoding: br", `ETag: "x"`, "Content-Disposition: attachment", "Set-Cookie: a=b", "Vary: Cookie",
		}}
	}
	if front := exchangetest.Run(t, exchangetest.New(t), source(), compile(t, Config{with("page", "404")})); front.Body != "server's" {
		t.Errorf("without upstream: %q", front.Body)
	}
	p := with("page", "404")
	p.Upstream = true
	ex := exchangetest.New(t)
	front := exchangetest.Run(t, ex, source(), compile(t, Config{p}))
	want := []string{"Set-Cookie: a=b", "Vary: Cookie", "Vary: Accept", "Content-Type: text/plain; charset=utf-8"}
	if front.Status != 404 || front.Body != "page" || !slices.Equal(front.Fields, want) || ex.Response.Length != 4 {
		t.Errorf("%d %q %q, want %q", front.Status, front.Body, front.Fields, want)
	}
	json := exchangetest.New(t, exchangetest.Head("GET", "/", "Accept: application/json"))
	if front := exchangetest.Run(t, json, source(), compile(t, Config{p})); front.Body != "server's" || !slices.Contains(front.Fields, "Vary: Accept") {
		t.Errorf("a program: %q %q", front.Body, front.Fields)
	}
	grpc := exchangetest.New(t, exchangetest.Head("POST", "/", "Content-Type: application/grpc+proto"))
	if front := exchangetest.Run(t, grpc, source(), compile(t, Config{p})); front.Body != "server's" {
		t.Errorf("gRPC: %q", front.Body)
	}
	ok := source()
	ok.Status = 200
	if front := exchangetest.Run(t, exchangetest.New(t), ok, compile(t, Config{p})); front.Body != "server's" {
		t.Errorf("200: %q", front.Body)
	}
	p.SendStatus = 200
	if front := exchangetest.Run(t, exchangetest.New(t), source(), compile(t, Config{p})); front.Status != 200 || front.Body != "page" {
		t.Errorf("with send_status: %d %q", front.Status, front.Body)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, text := range []string{"404", "4xx", "5xx", "599"} {
		var s Status
		if err := s.UnmarshalText([]byte(text)); err != nil || string(s) != text {
			t.Errorf("%q: %q, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "200", "3xx", "600", "4x4", "0404", "-40", "4XX"} {
		var s Status
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: no error", text)
		}
	}
	sent := with("x", "404")
	sent.SendStatus = 204
	for _, c := range []struct {
		set  Config
		want string
	}{
		{Config{with("x", "404", "5xx"), with("y", "503")}, ""},
		{Config{with("x")}, "status: the page has no status"},
		{Config{with("", "404")}, "the page has neither body nor file"},
		{Config{with("x", "404"), with("y", "404")}, "status[0]: error_pages[0] is for 404 too"},
		{Config{with("{x}", "404")}, "body: unknown variable"},
		{Config{sent}, "send_status: a response with status 204 has no page"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("error_pages"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
}
