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
