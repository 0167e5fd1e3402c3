package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
)

func render(t *testing.T, c *Config, dir string) (text, kind string) {
	t.Helper()
	p, err := Compile(c, exchangetest.EnvIn(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	ex := exchangetest.New(t, exchangetest.Head("GET", "/a?<b>"))
	ex.Response.Status, ex.Reason = 404, exchange.NoRoute
	return string(p.Text(ex)), p.ContentType()
}

func TestPagesAreFilledIn(t *testing.T) {
	for _, c := range []struct{ name, body, kind, want, wantKind string }{
		{"HTML", "<p>{status} {reason} {query}", "", "<p>404 no_route &lt;b&gt;", html},
		{"JSON", `{{"q":"{query}"}`, "", `{"q":"\u003cb\u003e"}`, json},
		{"text", "{path} {query}", "", "/a <b>", plain},
		{"told", "{query}", "text/markdown", "<b>", "text/markdown"},
	} {
		got, kind := render(t, &Config{Body: c.body, ContentType: c.kind}, "")
		if got != c.want || kind != c.wantKind {
			t.Errorf("%s: %q, %q, want %q, %q", c.name, got, kind, c.want, c.wantKind)
		}
	}
}

func TestFilesAreFilledInAndWatched(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "404.html")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("<style>p{color:red}</style><p>{status}{query}{nobody}{")
	const want = "<style>p{color:red}</style><p>404&lt;b&gt;{nobody}{"
	for _, c := range []Config{{File: "404.html"}, {File: name}} {
		if got, kind := render(t, &c, dir); got != want || kind != html {
			t.Errorf("%q, %q, want %q", got, kind, want)
		}
	}
	p, err := Compile(&Config{File: "404.html"}, exchangetest.EnvIn(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	ex := exchangetest.New(t)
	write("changed")
	if got := string(p.Text(ex)); got == "changed" {
		t.Error("the file is looked at for every response")
	}
	later := func() { p.looked.Last.Store(exchange.Now() - int64(lookInterval)) }
	later()
	if got := string(p.Text(ex)); got != "changed" {
		t.Errorf("%q, want the changed page", got)
	}
	os.Remove(name)
	later()
	if got := string(p.Text(ex)); got != "changed" {
		t.Errorf("%q, want the page as it was before its file went away", got)
	}
	write(strings.Repeat("x", MaxFile+1))
	for _, file := range []string{"404.html", "absent.html", "."} {
		if _, err := Compile(&Config{File: file}, exchangetest.EnvIn(t, dir)); err == nil {
			t.Errorf("%s: no error", file)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		set  Config
		want string
	}{
		{Config{Body: "x"}, ""},
		{Config{File: "x"}, ""},
		{Config{Body: "x", File: "y"}, "at.file: body and file cannot be combined"},
		{Config{File: "a\x00"}, "at.file: the path contains a NUL"},
		{Config{Body: "{x}"}, "at.body: unknown variable {x}"},
		{Config{Body: strings.Repeat("{host}", 65)}, "at.body: the text has more than 64 variables; write fewer"},
		{Config{Body: "x", ContentType: "html page"}, "at.content_type: "},
	} {
		r := schema.NewReport("", nil)
		c.set.CheckPage(r.Root().Field("at"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
}
