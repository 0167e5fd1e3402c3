package gate

import (
	"strings"
	"testing"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/gate"
	"headgate/internal/schema"
)

func headers() *gate.Headers {
	return &gate.Headers{User: "Remote-User", Email: "Remote-Email", Name: "Remote-Name", Groups: "Remote-Groups"}
}

// What names people, or is headgate's cookie, never gets past the guard.
func TestTheGuardRemovesWhatNamesPeople(t *testing.T) {
	for _, c := range []struct{ in, want []string }{
		{[]string{"Remote-User: a", "X: b"}, []string{"X: b"}},
		{[]string{"REMOTE-USER: a", "remote_user: b", "Remote.User: c", "Remote_Groups: d", "Remote-Users: e"}, []string{"Remote-Users: e"}},
		{[]string{"Cookie: a=1; __Host-headgate-gate=x; b=2"}, []string{"Cookie: a=1; b=2"}},
		{[]string{"Cookie: __host-HEADGATE-gate=x"}, nil},
		{[]string{"Cookie: __Host-headgate-gate =x", "Cookie: b=2"}, []string{"Cookie: b=2"}},
		{[]string{"Cookie: __Host-headgate-gate=x; a=1;  b=2"}, []string{"Cookie: a=1;  b=2"}},
		{[]string{"Cookie: a=1; b=2; __Host-headgate-gate=x"}, []string{"Cookie: a=1; b=2"}},
		{[]string{"Cookie: a=1;__Host-headgate-gate=x;b=2;__Host-headgate-nonce=y;c"}, []string{"Cookie: a=1; b=2; c"}},
		{[]string{"Cookie: __Host-headgate-gate=x;"}, nil},
		{[]string{"Cookie: ; __Host-headgate-gate"}, nil},
		{[]string{"Cookie: __Host-headgate-"}, nil},
		{[]string{"Cookie: a=1; __Host-headgate-gate=x; "}, []string{"Cookie: a=1"}},
		{[]string{"Cookie: a=__Host-headgate-gate"}, []string{"Cookie: a=__Host-headgate-gate"}},
	} {
		ex := exchangetest.New(t, exchangetest.Head("GET", "/", c.in...))
		guard := Guard(headers())
		guard.Request(ex)
		var got []string
		for _, f := range ex.Request.Header.All() {
			if !strings.EqualFold(f.Name, "Host") {
				got = append(got, f.Name+": "+f.Value)
			}
		}
		if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%q: got %q, want %q", c.in, got, c.want)
		}
	}
}

func TestCacheControlForOnePerson(t *testing.T) {
	for in, want := range map[string]string{
		"public":                        "private",
		"Public, max-age=5":             "private, max-age=5",
		"max-age=5, s-maxage=9":         "private, max-age=5",
		"private, s-maxage=9, no-cache": "private, no-cache",
		"no-store":                      "no-store",
		"max-age=5":                     "max-age=5",
	} {
		ex := exchangetest.New(t)
		if got := confine(ex, in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		set  Config
		want string
	}{
		{Config{Enabled: true, Allow: []string{"group:company/staff", "person:Ann@example.com", "person:company/123", "group:family", "person:bob", "domain:example.com"}}, ""},
		{Config{}, ""},
		{Config{Enabled: true}, "gate.allow: the gate rejects everyone, because allow is empty"},
		{Config{Enabled: true, From: []string{"10.0.0.0/8"}}, "gate.allow: the gate rejects everyone, because allow is empty"},
		{Config{Enabled: true, Allow: []string{"staff"}}, `gate.allow[0]: "staff" is not a group, person, domain or token`},
		{Config{Enabled: true, Allow: []string{"group:Our Staff"}}, `gate.allow[0]: group "Our Staff" names no provider`},
		{Config{Enabled: true, Allow: []string{"domain:*.example.com"}}, `gate.allow[0]: "*.example.com" is not a domain`},
		{Config{Enabled: true, Allow: []string{"domain:a", "domain:a"}}, "gate.allow[1]: duplicate entry domain:a"},
		{Config{Enabled: true, Allow: []string{"domain:a"}, From: []string{"x"}}, "gate.from[0]: "},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("gate"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%v: %q, want %q", c.set, got, c.want)
		}
	}
}
