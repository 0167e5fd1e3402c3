package headers

import (
	"strings"
	"testing"

	"headgate/internal/schema"
)

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		rule Rule
		want string
	}{
		{Rule{Operation: Set, Name: "X-A", Value: "{host} {{"}, ""},
		{Rule{Operation: Remove, Name: "Server"}, ""},
		{Rule{Operation: Remove, Name: "*_*"}, ""},
		{Rule{Operation: Set, Name: "X-*", Value: "1"}, "headers[0].name: * in a name is not valid with operation set"},
		{Rule{Operation: Replace, Name: "X-A", Regex: "a(b)", Value: "$1{host}"}, ""},
		{Rule{Operation: Replace, Name: "X-A", Regex: "a"}, ""},
		{Rule{Operation: Set, Name: "X-A"}, "headers[0].value: missing"},
		{Rule{Operation: Set, Name: "X A", Value: "1"}, `headers[0].name: "X A" is not a header name`},
		{Rule{Operation: Set, Name: "Host", Value: "1"}, "headers[0].name: rules cannot change the header Host; set host_header"},
		{Rule{Operation: Set, Name: ":path", Value: "1"}, "headers[0].name: :path is not a header"},
		{Rule{Operation: Remove, Name: "content-length"}, "headers[0].name: content-length controls how"},
		{Rule{Operation: Remove, Name: "Content_Length"}, "headers[0].name: Content_Length controls how"},
		{Rule{Operation: Append, Name: "Transfer-Encoding", Value: "x"}, "headers[0].name: Transfer-Encoding controls how"},
		{Rule{Operation: Set, Name: "Connection", Value: "x"}, "headers[0].name: Connection is a hop-by-hop"},
		{Rule{Operation: Set, Name: "upgrade", Value: "x"}, "headers[0].name: upgrade is a hop-by-hop"},
		{Rule{Operation: Set, Name: "X-A", Value: "a\r\nb"}, "headers[0].value: the header value contains"},
		{Rule{Operation: Set, Name: "X-A", Value: "{hots}"}, "headers[0].value: unknown variable {hots}"},
		{Rule{Operation: Set, Name: "X-A", Value: "1", Regex: "a"}, "headers[0].regex: regex is not valid"},
		{Rule{Operation: Remove, Name: "X-A", Value: "1"}, "headers[0].value: a field that is removed"},
		{Rule{Operation: Replace, Name: "X-A", Value: "1"}, "headers[0].regex: missing"},
		{Rule{Operation: Replace, Name: "X-A", Regex: "(", Value: "1"}, "headers[0].regex: invalid regular expression"},
		{Rule{Operation: Replace, Name: "X-A", Regex: "a", Value: "$1"}, "headers[0].value: the expression has no group"},
	} {
		r := schema.NewReport("", nil)
		Config{c.rule}.Check(r.Root().Field("headers"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(strings.ReplaceAll(got, `header rule "`+c.rule.Name+`": `, ""), c.want) {
			t.Errorf("%+v: %q, want %q", c.rule, got, c.want)
		}
	}
}
