package api

import "testing"

// TestHideValues: only names of query parameters are left.
func TestHideValues(t *testing.T) {
	for in, want := range map[string]string{
		"http://a/b":                    "http://a/b",
		"http://a/b?":                   "http://a/b?",
		"http://a/b?sig=s3cret&page=2&": "http://a/b?sig=…&page=…&",
		"http://a/b?s3cret":             "http://a/b?…",
		"http://a/b?x=1?y=2&=z":         "http://a/b?x=…&=…",
	} {
		if got := hideValues(in); got != want {
			t.Errorf("%s: got %s, want %s", in, got, want)
		}
	}
}
