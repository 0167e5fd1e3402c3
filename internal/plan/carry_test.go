package plan

import (
	"testing"

	"headgate/internal/exchange"
)

// carriedPart is a part with a text for its state.
type carriedPart struct{ state string }

func (*carriedPart) Retire()              {}
func (p *carriedPart) Export() []byte     { return []byte(p.state) }
func (p *carriedPart) Import(data []byte) { p.state = string(data) }

// TestPartsGoToAnotherProcessByTheirKeys holds that a part has the state of the part with
// the same key in the process before, and one with another key starts anew.
func TestPartsGoToAnotherProcessByTheirKeys(t *testing.T) {
	compile := func(carried Carried, parts map[string]string) (*Plan, map[string]*carriedPart) {
		k, all := newKeeper(nil, carried), map[string]*carriedPart{}
		k.unit = &unit{}
		for name, state := range parts {
			all[name] = k.keep(name, func() exchange.Kept { return &carriedPart{state} }).(*carriedPart)
		}
		k.keep("memory only", func() exchange.Kept { return part{new(int)} })
		return &Plan{parts: k.parts, rest: k.unit}, all
	}
	old, _ := compile(nil, map[string]string{"limit of /": "full", "limit of /a": "half"})
	exported, left := old.Export()
	if len(exported) != 2 || left != 0 {
		t.Fatalf("%d parts, %d left out", len(exported), left)
	}
	_, now := compile(exported, map[string]string{"limit of /": "new", "limit of /b": "new"})
	if now["limit of /"].state != "full" || now["limit of /b"].state != "new" {
		t.Errorf("got %q and %q", now["limit of /"].state, now["limit of /b"].state)
	}
}

func TestTooMuchStateIsLeftOut(t *testing.T) {
	k := newKeeper(nil, nil)
	k.unit = &unit{}
	large := string(make([]byte, maxCarried))
	for _, name := range []string{"a", "b"} {
		k.keep(name, func() exchange.Kept { return &carriedPart{large} })
	}
	if all, left := (&Plan{parts: k.parts}).Export(); len(all) != 1 || left != 1 {
		t.Errorf("%d parts, %d left out", len(all), left)
	}
}
