package schema

import (
	"strings"
	"testing"
)

func TestNotesRefuseNothing(t *testing.T) {
	r := NewReport("f.yaml", nil)
	at := r.Root().Field("proxies").Field("p").Called("proxy", "p")
	for range MaxNotes + 10 {
		at.Field("x").Note("this is a bad idea", "do that")
	}
	if !r.Empty() || len(r.Problems()) > 0 || at.Field("x").Reported() {
		t.Error("a note is a problem")
	}
	if got := r.Notes(); len(got) != MaxNotes || !strings.HasSuffix(got[0].Error(), "proxies.p.x: this is a bad idea; do that") || got[0].Object != "proxy p" {
		t.Errorf("%d notes, the first %q", len(got), got[0].Error())
	}
}
