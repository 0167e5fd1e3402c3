package redact

import (
	"strings"
	"testing"
)

func TestValuesAreTakenOut(t *testing.T) {
	p := New([]string{"token", "API_Key", "x_*"})
	for text, want := range map[string]string{
		"?token=abc":                        "?token=REDACTED",
		"?a=1&TOKEN=abc&b=2":                "?a=1&TOKEN=REDACTED&b=2",
		"token=a&token=b":                   "token=REDACTED&token=REDACTED",
		"?to%6ben=abc;api%5Fkey=x":          "?to%6ben=REDACTED;api%5Fkey=REDACTED",
		"?x_one=1&x=2":                      "?x_one=REDACTED&x=2",
		"https://a.example/p?token=abc#top": "https://a.example/p?token=REDACTED#top",
		"?token=a=b":                        "?token=REDACTED",
		"?token=":                           "", "?token": "", "?tokens=1": "", "": "", "/path/token": "", "?a=token": "",
		"?%zz=1&%=2&token=x": "?%zz=1&%=2&token=REDACTED",
	} {
		got, found := p.Append(nil, text)
		if string(got) != want || found != (want != "") {
			t.Errorf("%q:\ngot  %q\nwant %q", text, got, want)
		}
	}
	if _, found := New(nil).Append(nil, "?token=x"); found {
		t.Error("without names something is taken out")
	}
}

func FuzzAppend(f *testing.F) {
	for _, text := range []string{"?token=secret&a=1", "?to%6ben=secret", "token=secret;token=secret#x", "?%=&&=token=secret"} {
		f.Add(text)
	}
	p := New([]string{"token"})
	f.Fuzz(func(t *testing.T, text string) {
		once, found := p.Append(nil, text)
		if !found {
			return
		}
		if again, _ := p.Append(nil, string(once)); string(again) != string(once) {
			t.Errorf("%q: once %q, again %q", text, once, again)
		}
		for pair := range strings.SplitSeq(string(once)[strings.IndexByte(string(once), '?')+1:], "&") {
			if value, ok := strings.CutPrefix(pair, "token="); ok && value != "" && !strings.HasPrefix(value, mask) && !strings.ContainsAny(value[:1], ";#") {
				t.Errorf("%q: %q still has a value", text, once)
			}
		}
	})
}
