package timeout

import (
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/setting/unit"
)

func TestSetsTheTimeOfATry(t *testing.T) {
	ex := &exchange.Exchange{Limits: exchange.Limits{RequestTimeout: time.Minute}}
	limit := unit.Duration(3 * time.Second)
	f, _ := Compile(&limit, exchange.Env{})
	if answer := f.Request(ex); answer != nil {
		t.Fatalf("answered %v", answer)
	}
	if got, want := ex.Limits.RequestTimeout, 3*time.Second; got != want {
		t.Errorf("request timeout: got %v, want %v", got, want)
	}
}
