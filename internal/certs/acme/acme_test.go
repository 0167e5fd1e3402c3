package acme

import (
	"crypto/x509"
	"strings"
	"testing"
	"time"

	"headgate/internal/certs/acme/acmetest"
	"headgate/internal/store"
)

func TestACertificateByEachChallenge(t *testing.T) {
	a := start(t, acmetest.Settings{BadNonces: 20}) // the client sends a request up to ten times: at 50 % one order in 25 fails
	for _, test := range []struct {
		name      string
		challenge Challenge
		names     []string
	}{
		{"http-01", HTTP01, []string{"one.example.com"}},
		{"tls-alpn-01", TLSALPN01, []string{"two.example.com"}},
		{"dns-01", DNS01, []string{"*.example.com", "example.com"}},
		{"an address", HTTP01, []string{"127.0.0.1"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a.t = t
			s := newStore()
			u := a.manager(s)
			e := a.withDNS()
			e.Challenge = test.challenge
			u.setWanted(e, test.names)
			if test.names[0] == "127.0.0.1" {
				r := u.state("127.0.0.1", Valid)
				if len(r.Has) != 1 {
					t.Errorf("got %v", r.Has)
				}
				return
			}
			name := nameOf(test.names)
			r := u.state(name, Valid)
			leaf := u.certificate(name).Certificate.Leaf
			for _, n := range test.names {
				if !strings.HasPrefix(n, "*.") && leaf.VerifyHostname(n) != nil {
					t.Errorf("the certificate for %v is not for %s", leaf.DNSNames, n)
				}
			}
			if !s.has(store.PrefixCertificate + name) {
				t.Error("the certificate was not kept")
			}
			if len(r.Timeline) != 1 || !r.Timeline[0].Issued || len(r.Timeline[0].Steps) < 4 {
				t.Errorf("got the timeline %+v", r.Timeline)
			}
			if a.Records() != 0 {
				t.Errorf("%d records were left in the DNS", a.Records())
			}
			if _, left := u.Answers().HTTP("x"); left || u.Answers().http.Load() != nil || u.Answers().alpn.Load() != nil {
				t.Error("answers were left")
			}
			if left, err := s.List(t.Context(), store.PrefixChallenge, "", 10); err != nil || len(left) > 0 {
				t.Errorf("left in the store: %v, %v", left, err)
			}
		})
	}
}

func TestAnOrderBeforeThePortSwapIsBlockedAndGoesOnByItself(t *testing.T) {
	a := start(t, acmetest.Settings{})
	a.ports.httpOpen.Store(false)
	a.ports.httpsOpen.Store(false)
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"shop.example.com"})
	r := u.state("shop.example.com", Blocked)
	if r.Trouble.Code != "port_not_open" || !strings.Contains(r.Trouble.Hint, "continues when the port opens") {
		t.Errorf("got %+v", r.Trouble)
	}
	if n := a.Orders(); n != 0 {
		t.Errorf("%d orders were placed while no port was open", n)
	}
	a.ports.httpOpen.Store(true)
	u.state("shop.example.com", Valid)
	if n := a.Orders(); n != 1 {
		t.Errorf("got %d orders, want 1", n)
	}
}

func TestAnotherServerThatAnswersIsTold(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	other := &Answers{}
	a.answers.Store(other) // somebody else serves the port
	u.setWanted(a.entry(), []string{"shop.example.com"})
	r := u.until("shop.example.com", "failed", func(r *Record) bool { return r.State == Failed })
	if r.Trouble.Code != "unauthorized" && r.Trouble.Code != "connection" || r.Trouble.Problem == nil || r.Trouble.Problem.Detail == "" {
		t.Errorf("got %+v, want the authority's own words", r.Trouble)
	}
	if r.NextTry.IsZero() || r.Failures == 0 {
		t.Errorf("got next try %v after %d failures", r.NextTry, r.Failures)
	}
	a.answers.Store(u.Answers())
	u.state("shop.example.com", Valid)
}

func TestADeadNameBurnsNoOrder(t *testing.T) {
	a := start(t, acmetest.Settings{})
	a.DNS.SetDefaultDNSIPv4("")
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"gone.example.com"})
	r := u.state("gone.example.com", Blocked)
	if r.Trouble.Code != "address_missing" && r.Trouble.Code != "name_missing" {
		t.Errorf("got %+v", r.Trouble)
	}
	if n := a.Orders(); n != 0 {
		t.Errorf("got %d orders", n)
	}
	a.DNS.AddDNSARecord("gone.example.com", []string{"127.0.0.1"})
	u.state("gone.example.com", Valid)
}

func TestWhatIsShortIsRenewedInTimeAndNamesWhatItReplaces(t *testing.T) {
	a := start(t, acmetest.Settings{Life: 30 * time.Second})
	s := newStore()
	u := a.manager(s)
	e := a.entry()
	e.Renew = ByLifetime
	u.setWanted(e, []string{"shop.example.com"})
	first := u.state("shop.example.com", Valid)
	serial := u.certificate("shop.example.com").Certificate.Leaf.SerialNumber
	// The certificate is made to have come near its end.
	if err := u.Order("shop.example.com"); err != nil {
		t.Fatal(err)
	}
	_ = first
	u.until("shop.example.com", "renewed", func(r *Record) bool { return len(r.Timeline) > 1 && r.State == Valid })
	if u.certificate("shop.example.com").Certificate.Leaf.SerialNumber.Cmp(serial) == 0 {
		t.Error("the certificate is the one before")
	}
}

func TestServerErrorsLeadToTheNextDirectory(t *testing.T) {
	broken, good := start(t, acmetest.Settings{}), start(t, acmetest.Settings{})
	u := good.manager(newStore())
	e := good.entry()
	both := good.CAFile + ".both"
	concat(t, both, broken.CAFile, good.CAFile)
	e.CAFile = both
	e.Fallbacks = []string{e.Directory}
	e.Directory = broken.entry().Directory
	broken.Fail(1 << 20)
	u.setWanted(e, []string{"shop.example.com"})
	r := u.state("shop.example.com", Valid)
	if r.Directory != e.Fallbacks[0] {
		t.Errorf("issued by %s", r.Directory)
	}
}

func TestARefusalNeverLeadsToAnotherDirectory(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	e := a.entry()
	e.Fallbacks = []string{"https://127.0.0.1:1/none"}
	a.answers.Store(&Answers{})
	u.setWanted(e, []string{"shop.example.com"})
	r := u.until("shop.example.com", "failed four times", func(r *Record) bool { return r.Failures >= 4 })
	if r.Server != 0 {
		t.Errorf("directory %d is asked", r.Server)
	}
}

func TestAnAccountIsBoundAndMadeOnce(t *testing.T) {
	a := start(t, acmetest.Settings{EAB: true})
	const key = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
	if err := a.DB.AddExternalAccountKeyByID("kid-1", key); err != nil {
		t.Fatal(err)
	}
	s := newStore()
	u := a.manager(s)
	e := a.entry()
	u.setWanted(e, []string{"a.example.com"})
	if r := u.state("a.example.com", Blocked); r.Trouble.Code != "eab_required" {
		t.Errorf("got %+v", r.Trouble)
	}
	e2 := *e
	e2.EAB = &EAB{KeyID: "kid-1", HMACKey: key}
	u.setWanted(&e2, []string{"a.example.com"}, []string{"b.example.com"}, []string{"c.example.com"})
	for _, n := range []string{"a.example.com", "b.example.com", "c.example.com"} {
		u.state(n, Valid)
	}
	if err := u.Rollover(t.Context(), "main"); err != nil {
		t.Fatal(err)
	}
	if err := u.Order("a.example.com"); err != nil {
		t.Fatal(err)
	}
	u.until("a.example.com", "issued again with the new key", func(r *Record) bool { return len(r.Timeline) >= 2 && r.State == Valid && r.last().Issued })
}

func TestAProfileIsAskedForAndAnUnknownOneIsBlocked(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	e := a.entry()
	e.Profile = "tlsserver"
	u.setWanted(e, []string{"a.example.com"})
	if r := u.state("a.example.com", Blocked); r.Trouble.Code != "bad_profile" || !strings.Contains(r.Trouble.Hint, "shortlived") {
		t.Errorf("got %+v", r.Trouble)
	}
	e2 := *e
	e2.Profile = "shortlived"
	u.setWanted(&e2, []string{"a.example.com"})
	r := u.state("a.example.com", Valid)
	if life := r.NotAfter.Sub(r.NotBefore); life > 161*time.Hour {
		t.Errorf("it lives for %v", life)
	}
	if left := r.NotAfter.Sub(byLifetime(r)); left < 79*time.Hour {
		t.Errorf("renewed %v before its end, want about half of its life", left)
	}
}

func TestCAAThatForbidsBurnsNoOrder(t *testing.T) {
	a := start(t, acmetest.Settings{CAA: []string{"pebble.example"}})
	a.DNS.AddDNSCAARecord("example.com.", nil)
	a.forbid("example.com.")
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"a.example.com"})
	r := u.state("a.example.com", Blocked)
	if r.Trouble.Code != "caa_forbids" || !strings.Contains(r.Trouble.Hint, "pebble.example") {
		t.Errorf("got %+v", r.Trouble)
	}
	if a.Orders() != 0 {
		t.Error("an order was placed")
	}
}

func TestAChainIsChosenByItsRoot(t *testing.T) {
	a := start(t, acmetest.Settings{})
	u := a.manager(newStore())
	u.setWanted(a.entry(), []string{"a.example.com"})
	u.state("a.example.com", Valid)
	first := lastIssuer(t, u.certificate("a.example.com"))
	e := a.entry()
	e.PreferredChain = "no such root"
	u.setWanted(e, []string{"b.example.com"})
	u.state("b.example.com", Valid)
	if got := lastIssuer(t, u.certificate("b.example.com")); got != first {
		t.Errorf("got %q, want the usual chain %q", got, first)
	}
}

func lastIssuer(t *testing.T, i *Issued) string {
	t.Helper()
	chain := i.Certificate.Certificate
	c, err := x509.ParseCertificate(chain[len(chain)-1])
	if err != nil {
		t.Fatal(err)
	}
	return c.Issuer.CommonName
}
