package securityheaders

import (
	"strings"
	"testing"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
)

func TestSingleFieldsOfAPresetAreOthers(t *testing.T) {
	c := &Config{Enabled: true, Preset: Basic, HSTS: off, FrameOptions: "DENY", PermissionsPolicy: "camera=()", ContentSecurityPolicy: off}
	f, err := Compile(c, exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	front := exchangetest.Run(t, exchangetest.New(t, exchangetest.Secure()), &exchangetest.Source{Status: 200, Body: "x"}, f)
	for name, want := range map[string]string{hsts: "", frames: "DENY", permissions: "camera=()", csp: "", noSniff: "nosniff", referrer: "strict-origin-when-cross-origin"} {
		if got := front.Field(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestValuesAreChecked(t *testing.T) {
	r := schema.NewReport("", nil)
	(&Config{Enabled: true, ContentSecurityPolicy: "a\nb"}).Check(r.Root().Field("security_headers"))
	if r.Empty() || !strings.HasPrefix(r.Problems()[0].Error(), "security_headers.content_security_policy: the header value contains") {
		t.Errorf("got %v", r.Problems())
	}
}

func TestAResponseCostsNoMemory(t *testing.T) {
	f, _ := Compile(&Config{Enabled: true, Preset: Strict, Override: true}, exchangetest.Env(t))
	ex := exchangetest.New(t, exchangetest.Secure())
	f.Response(ex)
	if n := testing.AllocsPerRun(100, func() {
		ex.Response.Header.Reset()
		f.Response(ex)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
