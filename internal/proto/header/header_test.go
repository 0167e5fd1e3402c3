package header

import (
	"slices"
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

func TestDeleteKnownKeepsTheOrderOfTheOthers(t *testing.T) {
	var known [256]bool
	known[Cookie], known[Host] = true, true
	for _, c := range []struct {
		kept  ID
		names []string
		want  string
	}{
		{Other, []string{"a", "Cookie", "x", "Accept", "cookie", "b", "Host"}, "a Accept b"},
		{Cookie, []string{"Cookie", "x", "Host", "cookie"}, "Cookie cookie"},
		{Other, []string{"a", "Accept"}, "a Accept"},
		{Other, []string{"Host"}, ""},
		{Other, nil, ""},
	} {
		var l List
		for _, name := range c.names {
			l.AddField(name, "v")
		}
		l.DeleteKnown(c.kept, &known, func(f *Field) bool { return f.Name == "x" })
		var got []string
		for _, f := range l.All() {
			got = append(got, f.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("of %q %q are left, want %q", c.names, got, c.want)
		}
		for _, id := range []ID{Cookie, Host, Accept} {
			if want := slices.ContainsFunc(l.All(), func(f Field) bool { return f.ID == id }); l.Has(id) != want {
				t.Errorf("of %q: Has(%v) is %v, want %v", c.names, id, l.Has(id), want)
			}
		}
	}
}
