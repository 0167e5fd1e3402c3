package header

import (
	"strings"
	"testing"
)

func TestDeleteFuncKeepsTheOrderOfTheOthers(t *testing.T) {
	for _, c := range []struct{ fields, want string }{
		{"", ""},
		{"Accept,Host", "Accept,Host"},
		{"x,Accept,Host", "Accept,Host"},
		{"Accept,x,Host,x,Via,x", "Accept,Host,Via"},
		{"x,x", ""},
	} {
		var l List
		for name := range strings.SplitSeq(c.fields, ",") {
			if name != "" {
				l.AddField(name, "v")
			}
		}
		l.Add(Cookie, "dropped too")
		l.DeleteFunc(func(f *Field) bool { return f.Name == "x" || f.ID == Cookie })
		var got []string
		for _, f := range l.All() {
			got = append(got, f.Name)
			if !l.Has(f.ID) {
				t.Errorf("%s: %s is not known to be there", c.fields, f.Name)
			}
		}
		if strings.Join(got, ",") != c.want || l.Has(Cookie) {
			t.Errorf("%s: got %v, want %s", c.fields, got, c.want)
		}
	}
}

func TestAListIsReadMemberByMember(t *testing.T) {
	for _, c := range []struct {
		fields string
		want   bool
	}{
		{"", false},
		{"no-store", true},
		{"max-age=1,\tNo-Store", true},
		{"public | no-store ", true},
		{"no-storex,xno-store", false},
		{"no-store=1", false},
		{",,no-store,", true},
	} {
		var l List
		for value := range strings.SplitSeq(c.fields, "|") {
			l.Add(Vary, "no-store")
			l.Add(CacheControl, value)
		}
		if got := l.HasToken(CacheControl, "no-store"); got != c.want {
			t.Errorf("%q: got %v, want %v", c.fields, got, c.want)
		}
	}
}

func TestVaryIsSaidOnce(t *testing.T) {
	for _, c := range []struct{ before, want string }{
		{"", "Accept"},
		{"Accept-Encoding", "Accept-Encoding|Accept"},
		{"origin, accept", "origin, accept"},
		{"*", "*"},
	} {
		var l List
		if c.before != "" {
			l.Add(Vary, c.before)
		}
		l.VaryBy("Accept")
		var got []string
		for _, f := range l.All() {
			got = append(got, f.Value)
		}
		if strings.Join(got, "|") != c.want {
			t.Errorf("%q: got %q, want %s", c.before, got, c.want)
		}
	}
}
