package signin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/file"
	"headgate/internal/schema"
)

// A configuration that is only looked at has no engine: nobody can sign in with it.
func TestWithoutAnEngineNobodySignsIn(t *testing.T) {
	ex := exchangetest.New(t, exchangetest.Head("GET", "/"))
	page, err := Compile(&Config{}, nil, exchange.Env{})
	if err != nil {
		t.Fatal(err)
	}
	if got := exchangetest.Run(t, ex, page); got.Status != 503 {
		t.Errorf("status %d, want 503", got.Status)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for title, good := range map[string]bool{"": true, "Example Ltd.": true, "a\nb": false} {
		r := schema.NewReport("", nil)
		(&Config{Title: title}).Check(r.Root().Field("sign_in"))
		if r.Empty() != good {
			t.Errorf("%q: %v", title, r.Problems())
		}
	}
}

func TestTheLogoFollowsItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "logo")
	write := func(text string) {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	env := exchange.Env{File: func(name string) (*file.Followed, error) { return file.Follow(name, maxLogo, "too large") }}
	if _, err := Compile(&Config{Logo: name}, nil, env); err == nil {
		t.Error("a logo that is missing")
	}
	write("no image")
	if _, err := Compile(&Config{Logo: name}, nil, env); err == nil || !strings.Contains(err.Error(), "sign_in.logo: "+name+": the file is not a PNG") {
		t.Errorf("a logo that is no image: %v", err)
	}
	write("<svg/>")
	l, err := newLook(&Config{Logo: name}, env)
	if err != nil {
		t.Fatal(err)
	}
	first := l.brand()
	for _, c := range []struct {
		text    string
		changed bool
	}{{"<svg />", true}, {"no image any more", false}} {
		write(c.text)
		l.checked.Last.Store(exchange.Now() - 2*int64(lookInterval))
		now := l.brand()
		if (now != first) != c.changed {
			t.Errorf("%q: changed: %v", c.text, !c.changed)
		}
		first = now
	}
}
