package exchange_test

import (
	"regexp"
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

func TestReplacementHasGroupsAndVariables(t *testing.T) {
	expr := regexp.MustCompile(`^/(?P<lang>[a-z]{2})/(\d+)?`)
	for _, c := range []struct{ text, want, err string }{
		{"", "", ""},
		{"/x", "/x", ""},
		{"$lang", "de", ""},
		{"${lang}x$2", "dex42", ""},
		{"$0|{host}|{{host}", "/de/42|example.com|{host}", ""},
		{"$$1 $${host}", "$1 $example.com", ""},
		{"{path}${1}", "/de/42/xde", ""},
		{"$3", "", "the expression has no group"},
		{"$langx", "", "the expression has no group"},
		{"$", "", "a $ is not followed"},
		{"${", "", "a $ is not followed"},
		{"${}", "", "a $ is not followed"},
		{"${1", "", "a $ is not followed"},
		{"{$1}", "", "\"{\" has no closing"},
		{"{nobody}", "", "unknown variable"},
	} {
		r, err := exchange.ParseReplacement(c.text, expr)
		if (err != nil) != (c.err != "") || err != nil && !strings.HasPrefix(err.Error(), c.err) {
			t.Errorf("%q: %v, want %q", c.text, err, c.err)
		}
		if err != nil {
			continue
		}
		ex := exchangetest.New(t, exchangetest.Head("GET", "/de/42/x"))
		got, ok := r.Append(nil, ex, ex.Request.Path, expr.FindStringSubmatchIndex(ex.Request.Path), 100)
		if string(got) != c.want || !ok {
			t.Errorf("%q -> %q, %v, want %q", c.text, got, ok, c.want)
		}
	}
}

func TestGroupThatDidNotMatchIsEmpty(t *testing.T) {
	expr := regexp.MustCompile(`^/(a)?`)
	r, err := exchange.ParseReplacement("<$1>", expr)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := r.Append(nil, nil, "/", expr.FindStringSubmatchIndex("/"), 10)
	if string(got) != "<>" {
		t.Errorf("%q, want <>", got)
	}
}

func TestReplacementIsBounded(t *testing.T) {
	expr := regexp.MustCompile(`^(.*)$`)
	r, err := exchange.ParseReplacement(strings.Repeat("$1", 500), expr)
	if err != nil {
		t.Fatal(err)
	}
	subject := "/" + strings.Repeat("a", 999)
	got, ok := r.Append(nil, nil, subject, expr.FindStringSubmatchIndex(subject), 4000)
	if ok || len(got) > 6000 {
		t.Errorf("%d bytes, %v; want an end soon after 4000", len(got), ok)
	}
}
