package signin

import (
	"testing"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
)

// A configuration that is only looked at has no engine: nobody can sign in with it.
func TestWithoutAnEngineNobodySignsIn(t *testing.T) {
	ex := exchangetest.New(t, exchangetest.Head("GET", "/"))
	if got := exchangetest.Run(t, ex, Compile(&Config{}, nil)); got.Status != 503 {
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
