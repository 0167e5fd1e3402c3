package fixed

import (
	"strings"
	"testing"

	"headgate/internal/schema"
)

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		set  Config
		want string
	}{
		{Config{Status: 410}, ""},
		{Config{Status: 200, Body: "x", ContentType: "text/html; charset=utf-8"}, ""},
		{Config{Status: 204, Body: "x"}, "at.body: a response with status 204"},
		{Config{Status: 200, ContentType: "text/html\r\nX: y"}, "at.content_type: the header value contains"},
		{Config{Status: 200, ContentType: "html page"}, "at.content_type: "},
		{Config{Status: 200, Body: `{{"host": "{host}"}`}, ""},
		{Config{Status: 200, Body: "{hots}"}, "at.body: unknown variable {hots}; known are client_ip, "},
		{Config{Status: 200, Body: "{"}, `at.body: "{" has no closing brace; write {{ for a brace`},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("at"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
}
