package exchange

import "testing"

type inner struct{ A, b int }

type settings struct {
	Name  string
	Inner *inner
	List  []inner
	Map   map[string]bool
	Any   any
}

type nothing struct{}

func (*nothing) Retire() {}

// TestKeepForgetsNoField holds that settings which differ anywhere, also behind a
// pointer and in fields nobody exports, are kept apart, and equal ones are not.
func TestKeepForgetsNoField(t *testing.T) {
	kept := map[string]Kept{}
	env := Env{Keep: func(key string, open func() Kept) Kept {
		if kept[key] == nil {
			kept[key] = open()
		}
		return kept[key]
	}}
	keep := func(s settings) { Keep(env, "thing", &s, func() *nothing { return &nothing{} }) }
	for i, s := range []settings{
		{}, {Name: "a"}, {Name: "a b"}, {Inner: &inner{}}, {Inner: &inner{A: 1}}, {Inner: &inner{b: 1}},
		{List: []inner{{1, 2}}}, {List: []inner{{1, 2}, {}}}, {List: []inner{{2, 1}}},
		{Map: map[string]bool{"a": true, "b": false}}, {Map: map[string]bool{"a": true}}, {Any: 1}, {Any: "1"},
	} {
		keep(s)
		if len(kept) != i+1 {
			t.Errorf("%+v is taken for other settings", s)
		}
		again := s
		if s.Inner != nil {
			same := *s.Inner
			again.Inner = &same
		}
		keep(again)
		if len(kept) != i+1 {
			t.Errorf("%+v is not taken for itself", s)
		}
	}
	if Keep(env, "other", settings{}, func() *nothing { return &nothing{} }); len(kept) != 14 {
		t.Error("another kind with equal settings is taken for the first")
	}
}
