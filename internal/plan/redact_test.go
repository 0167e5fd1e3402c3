package plan

import (
	"testing"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/header"
)

func TestTheLogSeesNoSecretsOfURLs(t *testing.T) {
	take := redactor([]string{"token"})
	ex := exchangetest.New(t, exchangetest.Head("GET", "/p?a=1&token=secret", "Referer: https://a.example/?token=secret"))
	take(ex)
	if got := ex.Request.Query; got != "?a=1&token=REDACTED" {
		t.Errorf("the query is %q", got)
	}
	if got := ex.Request.Header.Get(header.Referer); got != "https://a.example/?token=REDACTED" {
		t.Errorf("the Referer is %q", got)
	}
	if redactor(nil) != nil {
		t.Error("without names there is something to call")
	}
}
