package markup

import (
	"strings"
	"testing"
)

// hostile is what a client would write to become markup.
const hostile = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&amp;`

func TestTextsAndAttributesAreEscaped(t *testing.T) {
	var b strings.Builder
	err := Render(&b, hostile, List{El("title", Text(hostile)), Style("p > a { color: red }")},
		List{El("p", At("title", hostile), Text(hostile), El("br"), Text("x")), Script("1 < 2")})
	if err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Contains(page, "<script>alert") || strings.Contains(page, "<img") || strings.Contains(page, `title=""`) {
		t.Error(page)
	}
	for _, want := range []string{"<!DOCTYPE html><html lang=", "<style>p > a { color: red }</style>", "<script>1 < 2</script>", "&lt;img src=x", "&amp;amp;", "<br/>x"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}
}

func TestHrefHasNoScript(t *testing.T) {
	for to, want := range map[string]string{
		"https://a.example/?b=c": "https://a.example/?b=c", "/x": "/x", "otpauth://totp/a": "otpauth://totp/a",
		"javascript:alert(1)": "#", "JAVASCRIPT:alert(1)": "#", " javascript:alert(1)": "#", "java\nscript:alert(1)": "#",
		"data:text/html,x": "#", "vbscript:x": "#",
	} {
		if got := Href(to).value; got != want {
			t.Errorf("Href(%q) is %q, not %q", to, got, want)
		}
	}
}

func TestATextInAScriptIsRefused(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("it was taken")
		}
	}()
	El("script", Text(hostile))
}

func TestIfAndEach(t *testing.T) {
	var b strings.Builder
	_ = Render(&b, "en", nil, List{If(false, El("hr")), If(true, El("i")), Each([]string{"a", "b"}, func(s string) Part { return El("b", Text(s)) })})
	if !strings.HasSuffix(b.String(), "<body><i></i><b>a</b><b>b</b></body></html>") {
		t.Error(b.String())
	}
}
