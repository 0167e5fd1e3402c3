package rewrite

import (
	"strings"
	"testing"

	"headgate/internal/schema"
)

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		name string
		set  Config
		want string
	}{
		{"regex and replacement", Config{Enabled: true, Regex: "^/a(.*)$", Replacement: "/b$1"}, ""},
		{"prefix alone", Config{Enabled: true, AddPrefix: "/app"}, ""},
		{"removal", Config{Enabled: true, Regex: "x"}, ""},
		{"switched off", Config{}, ""},
		{"responses left alone", Config{Enabled: true}, ""},
		{"nothing to do", Config{Enabled: true, RewriteResponse: true}, "rewrite: the rewrite has neither"},
		{"bad regex", Config{Enabled: true, Regex: "("}, "rewrite.regex: invalid regular expression"},
		{"no backtracking", Config{Enabled: true, Regex: `(?=a)`}, "rewrite.regex"},
		{"unknown group", Config{Enabled: true, Regex: "a", Replacement: "$1"}, "rewrite.replacement: the replacement names"},
		{"replacement alone", Config{Enabled: true, AddPrefix: "/a", Replacement: "x"}, "rewrite.replacement: replacement has no effect"},
		{"query in replacement", Config{Enabled: true, Regex: "a", Replacement: "b?c"}, "rewrite.replacement: the replacement contains"},
		{"line end in replacement", Config{Enabled: true, Regex: "a", Replacement: "b\n"}, "rewrite.replacement: the replacement contains a control"},
		{"relative prefix", Config{Enabled: true, AddPrefix: "app"}, `rewrite.add_prefix: path "app" does not begin`},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("rewrite"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
