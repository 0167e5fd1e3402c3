package cors

import (
	"strings"
	"testing"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
)

func TestOriginsAreComparedExactly(t *testing.T) {
	named := newPolicy(&Config{AllowOrigins: []string{"https://app.example.com", "http://localhost:3000", "https://*.example.org"}})
	all := newPolicy(&Config{AllowOrigins: []string{"*"}})
	for origin, want := range map[string]bool{
		"https://app.example.com": true, "http://localhost:3000": true, "https://a.example.org": true,
		"http://app.example.com": false, "https://app.example.com:8443": false, "https://app.example.com.evil.example": false,
		"https://evilapp.example.com": false, "https://example.org": false, "https://.example.org": false, "https://a.b.example.org": false,
		"https://evil.example/.example.org": false, "https://a:1.example.org": false, "null": false, "": false,
	} {
		if got := named.allows(origin); got != want {
			t.Errorf("origin %q: allowed %v, want %v", origin, got, want)
		}
		if origin != "" && !all.allows(origin) {
			t.Errorf("origin %q is not one of all", origin)
		}
	}
}

// With credentials "*" is no wildcard to a browser, so what is asked for is named.
func TestWildcardsWithCredentials(t *testing.T) {
	for credentials, want := range map[bool][2]string{true: {"PURGE", "x-a, x-b"}, false: {"*", "*"}} {
		c := &Config{AllowOrigins: []string{"https://a.example"}, AllowMethods: []string{"*"}, AllowHeaders: []string{"*"}, AllowCredentials: credentials}
		f, _ := CompileRequest(c, exchangetest.Env(t))
		front := exchangetest.Run(t, exchangetest.New(t, exchangetest.Head("OPTIONS", "/", "Origin: https://a.example",
			"Access-Control-Request-Method: PURGE", "Access-Control-Request-Headers: x-a, x-b")), nil, f)
		if got := [2]string{front.Field(allowMethods), front.Field(allowHeaders)}; got != want || front.Status != 204 {
			t.Errorf("credentials %v: got %d %q, want %q", credentials, front.Status, got, want)
		}
	}
}

// OPTIONS that is no preflight request is the server's.
func TestOtherOptionsPass(t *testing.T) {
	f, _ := CompileRequest(&Config{AllowOrigins: []string{"*"}}, exchangetest.Env(t))
	for _, fields := range [][]string{nil, {"Origin: https://a.example"}, {"Access-Control-Request-Method: GET"}} {
		front := exchangetest.Run(t, exchangetest.New(t, exchangetest.Head("OPTIONS", "/", fields...)), &exchangetest.Source{Status: 200, Body: "server"}, f)
		if front.Body != "server" {
			t.Errorf("%q: got %d", fields, front.Status)
		}
	}
}

func TestAResponseCostsNoMemory(t *testing.T) {
	f, _ := CompileResponse(&Config{AllowOrigins: []string{"https://a.example"}, AllowCredentials: true}, exchangetest.Env(t))
	ex := exchangetest.New(t, exchangetest.Head("GET", "/", "Origin: https://a.example"))
	if n := testing.AllocsPerRun(100, func() {
		ex.Response.Header.Reset()
		f.Response(ex)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	on := func(c Config) Config { c.Enabled = true; return c }
	origins := func(list ...string) Config { return on(Config{AllowOrigins: list}) }
	for _, test := range []struct {
		config Config
		want   string
	}{
		{origins("https://a.example", "http://localhost:3000", "https://*.a.example:8443"), ""},
		{origins("*"), ""},
		{Config{}, ""},
		{origins(), "cors.allow_origins: missing"},
		{origins("*", "https://a.example"), `cors.allow_origins: "*" cannot be combined`},
		{origins("null"), "cors.allow_origins[0]: null is the origin"},
		{origins("a.example"), "cors.allow_origins[0]: not an origin"},
		{origins("https://a.*.example"), "cors.allow_origins[0]: not an origin"},
		{origins("https://a.example/"), "cors.allow_origins[0]: an origin has neither"},
		{origins("https://A.example"), "cors.allow_origins[0]: browsers write origins in lower"},
		{origins("https://a.example:443"), "cors.allow_origins[0]: browsers leave the usual port"},
		{on(Config{AllowOrigins: []string{"*"}, AllowCredentials: true}), "cors.allow_origins[0]: with allow_credentials, pages of any origin"},
		{on(Config{AllowOrigins: []string{"https://a.example"}, AllowCredentials: true, ExposeHeaders: []string{"*"}}), `cors.expose_headers: "*"`},
		{on(Config{AllowOrigins: []string{"*"}, AllowMethods: []string{"GET", "*"}}), `cors.allow_methods[1]: "*" cannot be combined`},
		{on(Config{AllowOrigins: []string{"*"}, AllowHeaders: []string{"a b"}}), "cors.allow_headers[0]: invalid name"},
		{on(Config{AllowOrigins: []string{"*"}, AllowHeaders: []string{"X-A", "x-a"}}), "cors.allow_headers[1]: duplicate"},
	} {
		r := schema.NewReport("", nil)
		test.config.Check(r.Root().Field("cors"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if !strings.HasPrefix(got, test.want) || test.want == "" && got != "" {
			t.Errorf("%+v:\ngot  %s\nwant %s", test.config, got, test.want)
		}
	}
}
