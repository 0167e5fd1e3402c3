package main

import (
	"strings"
	"testing"
)

func TestQuestionsAreTakenAsTheyAreWritten(t *testing.T) {
	for _, test := range []struct {
		address, scheme, authority, target string
	}{
		{"http://shop.example.com", "http", "shop.example.com", "/"},
		{"HTTPS://Shop.example.com:8443/a/../b%2fc?x=1?2#part", "https", "Shop.example.com:8443", "/a/../b%2fc?x=1?2"},
		{"https://Größe.example:8443/", "https", "xn--gre-6ka8i.example:8443", "/"},
		{"http://[::1]:8080?q", "http", "[::1]:8080", "/?q"},
	} {
		q, err := parseQuestion("GET", test.address, []string{"Accept: text/html"}, "192.0.2.1")
		if err != nil || q.Scheme != test.scheme || q.Authority != test.authority || q.Target != test.target {
			t.Errorf("%s: got %+v, %v, want %+v", test.address, q, err, test)
		}
		if q.Fields[0] != [2]string{"Accept", "text/html"} {
			t.Errorf("%s: got fields %v", test.address, q.Fields)
		}
	}
}

func TestBadQuestionsAreRefused(t *testing.T) {
	for _, test := range []struct{ address, field, from, want string }{
		{"/api", "a:b", "192.0.2.1", `invalid URL "/api"`},
		{"ftp://x/", "a:b", "192.0.2.1", "the scheme must be http or https"},
		{"http:///x", "a:b", "192.0.2.1", "no host"},
		{"http://x", "a", "192.0.2.1", `invalid header "a"`},
		{"http://x", "a :b", "192.0.2.1", `invalid header "a :b"`},
		{"http://x", "a:b", "here", `invalid client address "here"`},
	} {
		_, err := parseQuestion("GET", test.address, []string{test.field}, test.from)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v", test, err)
		}
	}
}
