package exchange_test

import (
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

func TestAdoptedIDIsBoundedAndNeedsNoEscapes(t *testing.T) {
	for id, want := range map[string]bool{
		"": false, "a": true, "0193b2f0-6f5c-7c9e-9f2a-1d3c5b7a9e01": true, "Root=1-67891233-abcdef@x:y/z+w~_.": true,
		strings.Repeat("a", exchange.MaxID): true, strings.Repeat("a", exchange.MaxID+1): false,
		"a b": false, "<b>": false, `"`: false, `\`: false, "a,b": false, "\x1b[2J": false, "ä": false, "a\x00": false, "'": false, "&": false,
	} {
		ex := exchangetest.New(t)
		own := ex.ID()
		ex.AdoptID(id)
		if got := ex.ID() == id; got != want || !want && ex.ID() != own || (ex.AdoptedID() != "") != want {
			t.Errorf("%q: id %q, adopted %q; want it adopted: %v", id, ex.ID(), ex.AdoptedID(), want)
		}
	}
}
