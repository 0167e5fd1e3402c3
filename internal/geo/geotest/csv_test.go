package geotest

import (
	"fmt"
	"strings"
	"testing"
)

func TestReadCSV(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"1.0.0.0,1.0.0.255,AU\n1.0.1.0,1.0.3.255,CN\n", "[1.0.0.0/24 AU] [1.0.1.0/24 CN] [1.0.2.0/23 CN]"},
		{"203.0.113.1,203.0.113.6,DE\n", "[203.0.113.1/32 DE] [203.0.113.2/31 DE] [203.0.113.4/31 DE] [203.0.113.6/32 DE]"},
		{"0.0.0.0,255.255.255.255,DE\n", "[0.0.0.0/0 DE]"},
		{"2001:200::,2001:200:ffff:ffff:ffff:ffff:ffff:ffff,JP", "[2001:200::/32 JP]"},
		{"1.0.0.0,1.0.0.255,AU\n1.0.1.0,CN", `line 2: "1.0.1.0,CN" is not START,END,COUNTRY`},
		{"1.0.0.9,1.0.0.1,AU", `line 1: "1.0.0.9,1.0.0.1,AU" is not START,END,COUNTRY`},
		{"1.0.0.0,2001:200::,AU", `line 1: "1.0.0.0,2001:200::,AU" is not START,END,COUNTRY`},
	} {
		all, err := ReadCSV(strings.NewReader(c.text))
		var got []string
		for _, n := range all {
			got = append(got, fmt.Sprint([]any{n.Prefix, n.Data["country_code"]}))
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%q: got %s, want %s", c.text, strings.Join(got, " "), c.want)
		}
	}
}
