package acme

import (
	"strings"
	"testing"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/schema"
)

// badNames are names that nobody gets a certificate for, with what is said of them.
var badNames = map[string]string{
	"a_b.example.com":         "underscore",
	"*.a_b.example.com":       "underscore",
	"com":                     "one label",
	"localhost":               "one label",
	"*.com":                   "one label",
	"co.uk":                   "co.uk is a public suffix",
	"*.co.uk":                 "co.uk is a public suffix",
	"*.github.io":             "github.io is a public suffix",
	"a.*.example.com":         "only be the first label",
	"*.*.example.com":         "only be the first label",
	"10.0.0.1":                "no authority gives certificates for 10.0.0.1",
	"0.0.0.0":                 "no authority gives certificates for 0.0.0.0",
	"fe80::1":                 "no authority gives certificates for fe80::1",
	"2001:db8::1%eth0":        "an address with a zone",
	"shop example.com":        "not a host name",
	"-shop.example.com":       "not a host name",
	"shop..example.com":       "not a host name",
	"http://shop.example.com": "not a host name",
	"shop.example.com/path":   "not a host name",
	"xn--a.example.com":       "not a host name",
	"\u200b.example.com":      "not a host name",
	strings.Repeat("a.", 130) + "example.com": "not a host name",
	strings.Repeat("a", 64) + ".example.com":  "not a host name",
}

// TestBadNamesAreToldInTheConfiguration names them under domains.
func TestBadNamesAreToldInTheConfiguration(t *testing.T) {
	t.Parallel()
	for name, want := range badNames {
		report := schema.NewReport("", nil)
		c := &Config{Directory: "letsencrypt", Domains: []string{"good.example.com", name}, DNS: &DNS{Provider: "httpreq", Credentials: map[string]string{"endpoint": "https://hooks.example.com"}}}
		c.Check(report.Root())
		problems := report.Problems()
		if len(problems) != 1 {
			t.Errorf("%q: got %d problems, want one: %v", name, len(problems), problems)
			continue
		}
		if p := problems[0]; !strings.Contains(p.Error(), want) || !strings.Contains(p.Error(), "domains[1]") {
			t.Errorf("%q: got %q, want %q at domains[1]", name, p.Error(), want)
		}
	}
	for _, name := range []string{"bücher.example", "xn--bcher-kva.example", "*.bücher.example", "SHOP.Example.COM", "shop.example.com.", "192.0.2.1", "2001:db8::1", "blog.github.io", "*.me.github.io", "a.co.uk"} {
		report := schema.NewReport("", nil)
		(&Config{Directory: "letsencrypt", Domains: []string{name}, DNS: &DNS{Provider: "httpreq", Credentials: map[string]string{"endpoint": "https://hooks.example.com"}}}).Check(report.Root())
		if problems := report.Problems(); len(problems) > 0 {
			t.Errorf("%q: %v", name, problems)
		}
	}
}

// TestBadNamesBurnNoOrder wants them of the manager itself, as a label of a container may.
func TestBadNamesBurnNoOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	var groups [][]string
	for name := range badNames {
		groups = append(groups, []string{name})
	}
	u.setWanted(a.withDNS(), groups...)
	for name, want := range badNames {
		r := u.state(nameOf([]string{name}), Blocked)
		if r.Trouble.Code != "bad_name" || !strings.Contains(r.Trouble.Message, want) || r.Trouble.Hint == "" || r.NextTry.IsZero() {
			t.Errorf("%q: got %+v, the next try at %v", name, r.Trouble, r.NextTry)
		}
	}
	u.setWanted(a.entry(), []string{"*.example.com"}) // without dns
	if r := u.state("_wildcard.example.com", Blocked); r.Trouble.Code != "wildcard_needs_dns" {
		t.Errorf("a wildcard without dns: got %+v", r.Trouble)
	}
	if n := a.Orders(); n != 0 {
		t.Errorf("%d orders were placed", n)
	}
	u.setWanted(a.entry(), Group([]string{"bücher.example.com"})...)
	if r := u.state("xn--bcher-kva.example.com", Valid); r.Has[0] != "xn--bcher-kva.example.com" {
		t.Errorf("got a certificate for %q", r.Has)
	}
}

// TestAnEntryWithoutEmailGetsItsCertificate makes an account without a contact.
func TestAnEntryWithoutEmailGetsItsCertificate(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	e := a.entry()
	e.Email = ""
	u.setWanted(e, []string{"shop.example.com"})
	u.state("shop.example.com", Valid)
}
