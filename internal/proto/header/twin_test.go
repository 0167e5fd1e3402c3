package header

import (
	"strings"
	"testing"
)

func TestTwinIsTheWellKnownName(t *testing.T) {
	for name, want := range map[string]ID{
		"X_Forwarded_For": XForwardedFor, "x.real.ip": XRealIP, "X_Y": Other,
		"Content_Length": ContentLength, strings.Repeat("_", 33): Other, "": Other,
	} {
		if got := Twin(name); got != want {
			t.Errorf("%q: got %v, want %v", name, got, want)
		}
	}
}

func TestTwinsDifferInCaseAndPunctuationOnly(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"Remote-User", "remote_user", true},
		{"Remote-User", "REMOTE.USER", true},
		{"Remote-User", "Remote-User", true},
		{"Remote-User", "RemoteUser", false},
		{"Remote-User", "RemoteXUser", false},
		{"X-1", "X_1", true},
		{"X-1", "X_Q", false},
		{"a@b", "a`b", true},
		{"a-b", "\x01-b", false},
	} {
		if got := Twins(c.a, c.b); got != c.want || Twins(c.b, c.a) != c.want {
			t.Errorf("%q and %q: got %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

func TestOnlyPunctuationHasTwins(t *testing.T) {
	for name, want := range map[string]struct{ has, odd bool }{
		"ETag": {}, "X-User": {has: true}, "x_user": {has: true, odd: true}, "9": {}, "": {},
	} {
		if HasTwins(name) != want.has || Odd(name) != want.odd {
			t.Errorf("%q: HasTwins %v, Odd %v, want %+v", name, HasTwins(name), Odd(name), want)
		}
	}
}

func TestDeleteTwinsLeavesTheNameItself(t *testing.T) {
	var l List
	for _, name := range []string{"Remote_User", "remote-user", "Remote-User", "RemoteUser", "remote.user"} {
		l.AddField(name, "v")
	}
	l.DeleteTwins("Remote-User")
	var got []string
	for _, f := range l.All() {
		got = append(got, f.Name)
	}
	if text := strings.Join(got, " "); text != "remote-user Remote-User RemoteUser" {
		t.Errorf("got %s", text)
	}
}

func TestTwinAllocatesNothing(t *testing.T) {
	name := strings.Clone("X_Forwarded_For")
	if n := testing.AllocsPerRun(100, func() { Twin(name) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
