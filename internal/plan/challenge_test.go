package plan

import (
	"crypto/tls"
	"testing"

	"headgate/internal/exchange"
)

// elsewhere are challenges of which another machine knows one.
type elsewhere struct{ requested *[]string }

func (elsewhere) HTTP(string) (string, bool)  { return "", false }
func (elsewhere) TLS(string) *tls.Certificate { return nil }
func (elsewhere) Pending() bool               { return false }
func (e elsewhere) Elsewhere(token string) (string, bool) {
	*e.requested = append(*e.requested, token)
	return "answer of " + token, token == "known"
}

// A token that is unknown here may be known by another machine. It is requested for hosts
// with an ACME entry only, and explain requests nothing.
func TestAnotherMachineKnowsAToken(t *testing.T) {
	var requested []string
	p := compileIn(t, `
acme:
  main: {directory: "https://127.0.0.1:1/none", default: true}
proxies:
  ours: {virtual_hosts: [ours.example], routes: [{fixed_response: {status: 200}}]}
  theirs: {virtual_hosts: [theirs.example], acme: none, routes: [{fixed_response: {status: 204}}]}
`, House{Challenges: elsewhere{&requested}})
	p.Explain(Question{Method: "GET", Scheme: "http", Authority: "ours.example:8080", Target: "/.well-known/acme-challenge/known"})
	if len(requested) > 0 {
		t.Errorf("explain requested %q", requested)
	}
	web := p.Port("web")
	for _, c := range []struct {
		host, token string
		status      int
		reason      exchange.Reason
	}{
		{"ours.example", "known", 200, exchange.ACMEChallenge},
		{"ours.example", "unknown", 404, exchange.ACMEChallenge},
		{"theirs.example", "known", 204, exchange.None},
	} {
		if got := request(web, "GET", c.host, "/.well-known/acme-challenge/"+c.token); got.status != c.status || got.reason != c.reason {
			t.Errorf("%s at %s: got %d, %v; want %d, %v", c.token, c.host, got.status, got.reason, c.status, c.reason)
		}
	}
	if len(requested) != 2 {
		t.Errorf("requested %q, want the two of ours.example", requested)
	}
}
