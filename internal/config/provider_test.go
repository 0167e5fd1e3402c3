package config

import (
	"slices"
	"strings"
	"testing"
)

func TestHTTPDocumentsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{url: "https://a.example/x"}`: "",
		`{url: "http://127.0.0.1:1/x", auth: {username: a, password: b}, servers: ["*"]}`: "",
		`{url: "http://a.example/x"}`:                                                       "does not download files over",
		`{url: "file:///etc/passwd"}`:                                                       "invalid URL",
		`{url: "https://u:p@a.example/x"}`:                                                  "contains credentials",
		`{url: "https://a.example/x", auth: {}}`:                                            "no credentials",
		`{url: "https://a.example/x", auth: {bearer: a, username: b}}`:                      "two kinds of credentials",
		`{url: "https://a.example/x", auth: {bearer: "Bearer a"}}`:                          "contains white space",
		`{url: "https://a.example/x", auth: {password: a}}`:                                 "username is empty",
		`{url: "https://a.example/x", sha256: abc}`:                                         "not a SHA-256 digest",
		`{url: "https://a.example/x", servers: ["a b"]}`:                                    "neither a network nor a name",
		`{url: "https://a.example/x", servers: ["10.0.0.0/33"]}`:                            "neither a network nor a name",
		`{url: "https://a.example/x", servers: [10.0.0.0/8, "2001:db8::1", "*.a.example"]}`: "",
		`{url: "https://a.example/x", hosts: ["~^.*$"]}`:                                    "regular expression",
		`{url: "https://a.example/x", acme: [none, other]}`:                                 "there is no acme entry",
		`{url: "https://a.example/x", ports: [other]}`:                                      "there is no port",
		`{url: "https://a.example/x", interval: 10ms}`:                                      "1s",
		`{interval: 1s}`: "missing",
	} {
		_, _, problems := Load("x.yaml", []byte("version: 1\ndiscovery: {http: {cmdb: "+text+"}}\n"))
		got := ""
		for _, p := range problems {
			got += p.Error() + "\n"
		}
		if (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
	_, _, problems := Load("x.yaml", []byte("version: 1\ndiscovery: {docker: {a: {}}, http: {a: {url: 'https://a.example'}}}\n"))
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "provider a under docker too") {
		t.Errorf("two providers of one name: %v", problems)
	}
}

func TestASourceIsTheSameWhateverItsBounds(t *testing.T) {
	a := &HTTPDocument{URL: "https://a.example", Interval: 1, Hosts: []string{"a"}, Servers: []string{"*"}, Nodes: []string{"x"}}
	if b := (&HTTPDocument{URL: "https://a.example", Interval: 1}); !a.SameSource(b) || a.SameSource(&Docker{}) || (&Docker{}).SameSource(a) {
		t.Error("bounds change the source, or a document is an engine")
	}
	for _, b := range []*HTTPDocument{{URL: "https://b.example", Interval: 1}, {URL: "https://a.example", Interval: 2}, {URL: "https://a.example", Interval: 1, SHA256: "a"}, {URL: "https://a.example", Interval: 1, Auth: &HTTPAuth{Bearer: "a"}}} {
		if a.SameSource(b) {
			t.Errorf("%+v is the same", b)
		}
	}
	if !slices.Equal(a.Bounds().Servers, a.Servers) {
		t.Error("the bounds have no servers")
	}
}
