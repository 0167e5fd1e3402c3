package schema

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestPathsAreCanonical(t *testing.T) {
	for path, remedy := range map[string]string{
		"/": "", "/api": "", "/api/": "", "/a%2Fb": "", "/a%5Cb": "", "/~u/x-1_.z": "", "/...": "",
		"":          `write "/"`,
		"api":       `write "/api"`,
		"/a//b":     `write "/a/b"`,
		"/a/./b":    `write "/a/b"`,
		"/a/../b":   `write "/b"`,
		"/..":       `write "/"`,
		"/a/.":      `write "/a/"`,
		"/%2e%2e/a": `write "/a"`,
		"/%61":      `write "/a"`,
		"/a%2fb":    `write "/a%2Fb"`,
		"/100%":     "write %25",
		"/%4":       "write %25",
		"/a?b":      "remove the ?",
		"/a#b":      "remove the #",
		`/a\b`:      "write / between",
		"/a b":      `write "/a%20b"`,
		"/größe":    `write "/gr%C3%B6%C3%9Fe"`,
		"/a\x00":    "remove it",
		"/a\r\n":    "remove it",
		"/%00":      "remove it",
		"/%0C":      "remove it",
		"/..;/a":    "remove it",
		"/a|{b}":    `write "/a%7C%7Bb%7D"`,
	} {
		what, got := CheckPath(path)
		if (what == "") != (remedy == "") || !strings.Contains(got, remedy) {
			t.Errorf("CheckPath(%q) = %q, %q; want the remedy %q", path, what, got, remedy)
		}
	}
}

func TestReplacementsNameGroupsThatExist(t *testing.T) {
	expr := regexp.MustCompile(`^/(\w+)/(?P<rest>.*)$`)
	for replacement, want := range map[string]string{
		"": "", "/x": "", "/$1/$2": "", "/${1}x": "", "/${rest}": "", "/$rest": "", "/$$1": "", "/$0": "", "$$": "",
		"/$3":      `"3"`,
		"/$1x":     `"1x"`,
		"/${name}": `"name"`,
		"/$":       "not followed by a group",
		"/$/":      "not followed by a group",
		"/${1":     "not followed by a group",
		"/${}":     "not followed by a group",
	} {
		what, _ := CheckReplacement(replacement, expr)
		if (what == "") != (want == "") || !strings.Contains(what, want) {
			t.Errorf("CheckReplacement(%q) = %q, want %q", replacement, what, want)
		}
	}
}

func TestFieldValues(t *testing.T) {
	for value, good := range map[string]bool{
		"": true, "text/html": true, "a\tb": true, "größe": true,
		"a\r\nb": false, "a\nb": false, "a\x00": false, " a": false, "a ": false, "\x7f": false,
	} {
		if what, _ := CheckFieldValue(value); (what == "") != good {
			t.Errorf("CheckFieldValue(%q) = %q", value, what)
		}
	}
}

func TestNearestWord(t *testing.T) {
	known := []string{"address", "protocol", "active", "drain", "limits", "http", "https", "request_timeout"}
	for word, want := range map[string]string{
		"adress": "address", "addres": "address", "Address": "address", "protcol": "protocol",
		"htpp": "http", "requestTimeout": "request_timeout", "request-timeout": "request_timeout",
		"drian": "drain", "zebra": "", "x": "", "": "", "weight": "", strings.Repeat("a", 100): "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestOldNamesLeadToTheNewOnes(t *testing.T) {
	type limits struct {
		Size int `json:"header_size" was:"head_size,size"`
	}
	o := Describe(reflect.TypeFor[limits]())
	for _, old := range []string{"head_size", "size"} {
		if o.Was[old] != "header_size" || o.Field(old) != nil {
			t.Errorf("%s leads to %q, want header_size", old, o.Was[old])
		}
	}
}
