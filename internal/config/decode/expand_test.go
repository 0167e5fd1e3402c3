package decode

import (
	"errors"
	"strings"
	"testing"
)

func TestVariables(t *testing.T) {
	e := &Expander{
		Lookup: func(name string) (string, bool) {
			v, ok := map[string]string{"A": "one", "EMPTY": "", "NESTED": "${A}", "BAD": "\xff"}[name]
			return v, ok
		},
		Read: func(path string) ([]byte, error) {
			switch path {
			case "/run/secret":
				return []byte("hidden\n"), nil
			case "/run/binary":
				return []byte{0}, nil
			}
			return nil, errors.New("no such file")
		},
	}
	for _, c := range []struct{ in, want, problem string }{
		{"${A}", "one", ""},
		{"x${A}y${A}", "xoneyone", ""},
		{"${EMPTY}", "", ""},
		{"${EMPTY:-two}", "two", ""},
		{"${NONE:-two}", "two", ""},
		{"${NONE:-}", "", ""},
		{"${A:-two}", "one", ""},
		{"${NESTED}", "${A}", ""},
		{"${file:/run/secret}", "hidden", ""},
		{"$${A}", "${A}", ""},
		{"$A $1 $$ $", "$A $1 $$ $", ""},
		{"${NONE}", "", "NONE is not set"},
		{"${A", "", "no closing"},
		{"${}", "", "not a variable"},
		{"${A B}", "", "not a variable"},
		{"${BAD}", "", "not UTF-8"},
		{"${file:secret}", "", "not absolute"},
		{"${file:/none}", "", "no such file"},
		{"${file:/run/binary}", "", "not valid UTF-8"},
	} {
		got, f := e.Text(c.in)
		if f == nil {
			f = &fault{}
		}
		if got != c.want || (f.What == "") != (c.problem == "") || !strings.Contains(f.What, c.problem) {
			t.Errorf("%q: %q, %q; want %q, %q", c.in, got, f.What, c.want, c.problem)
		}
	}
	if _, err := readSecret("/dev/null"); err == nil {
		t.Error("a device was read as a secret")
	}
}
