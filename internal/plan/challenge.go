package plan

import (
	"crypto/tls"
	"strings"

	"headgate/internal/certs/acme"
	"headgate/internal/config"
	"headgate/internal/exchange"
)

// Challenges are the answers to the requests of ACME authorities. The methods are called by
// many goroutines at once, and cost next to nothing while there are no challenges.
type Challenges interface {
	// HTTP returns the answer to a token of http-01.
	HTTP(token string) (answer string, ok bool)
	// Elsewhere returns the answer to a token that HTTP does not know, if another machine has
	// it. It can take seconds, and limits how many requests wait for it.
	Elsewhere(token string) (answer string, ok bool)
	// TLS returns the certificate that answers tls-alpn-01 for a name, or nil.
	TLS(name string) *tls.Certificate
	// Pending reports whether there is any answer to http-01 now.
	Pending() bool
}

// challengePath is where authorities ask for the answers of http-01 (RFC 8555, section
// 8.3).
const challengePath = "/.well-known/acme-challenge/"

// answerChallenge responds to an authority, before the host is matched and before every
// redirect and filter: a request for a token of headgate comes from an authority that was
// notified, or from a client that learns nothing from the response. Other tokens are
// handled according to the host: see strange.
func (p *Port) answerChallenge(ex *exchange.Exchange) *exchange.Answer {
	rq := &ex.Request
	token, ok := strings.CutPrefix(rq.Path, challengePath)
	if !ok || rq.Method != "GET" && rq.Method != "HEAD" {
		return nil
	}
	answer, ok := p.challenges.HTTP(token)
	if !ok {
		return nil
	}
	return challengeAnswer(answer)
}

func challengeAnswer(text string) *exchange.Answer {
	return &exchange.Answer{Reason: exchange.ACMEChallenge, Status: 200, Body: []byte(text), ContentType: "application/octet-stream"}
}

// answerStrange returns the response to a token that is not known here: another machine of
// the group may know it.
func (p *Port) answerStrange(path string) *exchange.Answer {
	if p.challenges != nil {
		if answer, ok := p.challenges.Elsewhere(strings.TrimPrefix(path, challengePath)); ok {
			return challengeAnswer(answer)
		}
	}
	return strangeToken
}

// strangeToken is the response to an unknown token. It is the same for all of them, so that
// it does not reveal which tokens existed.
var strangeToken = &exchange.Answer{
	Reason: exchange.ACMEChallenge, Status: 404, Body: []byte("no such challenge\n"), ContentType: "text/plain; charset=utf-8",
	Cause: "no order of ours has this token; acme: none on the proxy leaves the path to its servers",
}

// challenged is the set of hosts for which an ACME entry gets certificates with http-01:
// names, and the part after "*." of wildcards. Below challengePath such a host is served by
// headgate alone, so that no server behind it can respond to an authority. For other hosts
// the path is the servers', which may have their own ACME client.
type challenged struct{ exact, wildcard map[string]bool }

// newChallenged returns the challenged hosts of a configuration, nil if there are none.
func newChallenged(cfg *config.Config) *challenged {
	if len(cfg.ACME) == 0 {
		return nil
	}
	c := &challenged{map[string]bool{}, map[string]bool{}}
	for _, e := range cfg.ACME {
		if answersHTTP(e) {
			c.add(e.Domains, true)
		}
	}
	for e, hosts := range cfg.ACMEHolders() {
		if answersHTTP(e) {
			c.add(hosts, true)
		}
	}
	for _, p := range cfg.Proxies { // who says none has the last word
		if p.Active && p.ACME == acme.None {
			c.add(config.ACMEHosts(p), false)
		}
	}
	return c
}

// answersHTTP reports whether an entry may ever be asked by http-01.
func answersHTTP(e *config.ACME) bool {
	return e.Challenge == acme.Auto || e.Challenge == acme.HTTP01
}

// add adds hosts, and whether they are headgate's. A wildcard itself needs dns-01, but the
// hosts below it can use http-01, too.
func (c *challenged) add(hosts []string, ours bool) {
	for _, host := range hosts {
		if rest, ok := strings.CutPrefix(host, "*."); ok {
			c.wildcard[rest] = ours
		} else {
			c.exact[host] = ours
		}
	}
}

// has reports whether a host is challenged: an exact name takes precedence over a wildcard.
func (c *challenged) has(host string) bool {
	if ours, known := c.exact[strings.Trim(host, "[]")]; known {
		return ours
	}
	_, rest, _ := strings.Cut(host, ".")
	return c.wildcard[rest]
}

// strange reports whether a request asks for a challenge of ours by a token that is
// none: answerChallenge has answered the others. The path is in its one form.
func (p *Port) strange(host, path string) bool {
	return (p.challenged != nil || p.demands != nil) && strings.HasPrefix(path, challengePath) &&
		(p.challenged != nil && p.challenged.has(host) || p.demand(host) != nil)
}
