package maintenance

import (
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange/exchangetest"
	"headgate/internal/schema"
	"headgate/internal/setting/page"
	"headgate/internal/setting/unit"
)

func settings() *Config {
	return &Config{
		Enabled: true, RetryAfter: unit.Duration(90 * time.Second),
		Bypass: Bypass{
			Addresses: []string{"198.51.100.0/24"},
			Header:    &Secret{Name: "X-Pass", Value: "open-sesame"},
			Cookie:    &Secret{Name: "pass", Value: "open-sesame"},
		},
	}
}

func TestOnlyThoseWhoMayPass(t *testing.T) {
	f, err := Compile(settings(), exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, from, field string
		passes            bool
	}{
		{"nobody", "192.0.2.1", "", false},
		{"address", "198.51.100.7", "", true},
		{"header", "192.0.2.1", "x-pass: open-sesame", true},
		{"wrong header", "192.0.2.1", "X-Pass: open-sesam", false},
		{"cookie", "192.0.2.1", "Cookie: a=b; pass=open-sesame", true},
		{"wrong cookie", "192.0.2.1", "Cookie: pass=x; Pass=open-sesame; xpass=open-sesame", false},
	} {
		source := &exchangetest.Source{Status: 200, Body: "site"}
		ex := exchangetest.New(t, exchangetest.From(c.from), exchangetest.Head("GET", "/", c.field))
		front := exchangetest.Run(t, ex, source, f)
		if (front.Body == "site") != c.passes {
			t.Errorf("%s: %d %q", c.name, front.Status, front.Body)
		}
		if !c.passes && (front.Status != 503 || front.Field("Retry-After") != "90" || !strings.Contains(front.Body, "maintenance")) {
			t.Errorf("%s: %d %q", c.name, front.Status, front.Fields)
		}
		if _, there := ex.Request.Header.Lookup("X-Pass"); there {
			t.Errorf("%s: the secret goes on to the server", c.name)
		}
	}
}

func TestPageOfTheOperator(t *testing.T) {
	c := settings()
	c.Config = page.Config{Body: "<p>{status} {reason}"}
	f, err := Compile(c, exchangetest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	front := exchangetest.Run(t, exchangetest.New(t), nil, f)
	if front.Status != 503 || front.Body != "<p>503 maintenance" || front.Field("Retry-After") != "90" || front.Field("Cache-Control") != "no-store" {
		t.Errorf("%d %q %q", front.Status, front.Fields, front.Body)
	}
	front = exchangetest.Run(t, exchangetest.New(t, exchangetest.Head("GET", "/", "Accept: application/json")), nil, f)
	if front.Field("Content-Type") != "application/problem+json" {
		t.Errorf("a program: %q", front.Fields)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	secret := func(name, value string) *Secret { return &Secret{Name: name, Value: value} }
	for _, c := range []struct {
		set  Config
		want string
	}{
		{*settings(), ""},
		{Config{Bypass: Bypass{Addresses: []string{"x"}}}, "at.bypass.addresses[0]"},
		{Config{Bypass: Bypass{Header: secret("X Pass", "open-sesame")}}, "at.bypass.header.name: invalid name"},
		{Config{Bypass: Bypass{Header: secret("X-Pass", "short")}}, "at.bypass.header.value: the secret is easy to guess"},
		{Config{Bypass: Bypass{Header: secret("X-Pass", "open\nsesame")}}, "at.bypass.header.value: the header value contains"},
		{Config{Bypass: Bypass{Header: secret("X-Real-IP", "open-sesame")}}, "at.bypass.header.name: X-Real-IP is removed"},
		{Config{Bypass: Bypass{Header: secret("Connection", "open-sesame")}}, "at.bypass.header.name: Connection cannot"},
		{Config{Bypass: Bypass{Cookie: secret("pass", "open; sesame")}}, "at.bypass.cookie.value: the value contains"},
		{Config{Config: page.Config{Body: "a", File: "b"}}, "at.file: body and file cannot be combined"},
	} {
		r := schema.NewReport("", nil)
		c.set.Check(r.Root().Field("at"))
		got := ""
		if !r.Empty() {
			got = r.Problems()[0].Error()
		}
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.set, got, c.want)
		}
	}
}
