package plan

import (
	"crypto/tls"
	"strings"

	"headgate/internal/exchange"
)

// Challenges are the answers to what ACME authorities ask our ports for. Both are
// called by many goroutines at once, and cost next to nothing while nothing is
// asked.
type Challenges interface {
	// HTTP returns the answer to a token of http-01.
	HTTP(token string) (answer string, ok bool)
	// TLS returns the certificate that answers tls-alpn-01 for a name, or nil.
	TLS(name string) *tls.Certificate
	// Asked reports whether there is any answer to http-01 now.
	Asked() bool
}

// challengePath is where authorities ask for the answers of http-01 (RFC 8555, section
// 8.3).
const challengePath = "/.well-known/acme-challenge/"

// answerChallenge answers an authority, before the host is looked at and before every
// redirect and filter: whoever is asked for a token of ours is asked by an authority
// that we have told it to, or by somebody who learns nothing from the answer. Other
// tokens are the servers', which may have certificates of their own.
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
	return &exchange.Answer{Reason: exchange.ACMEChallenge, Status: 200, Body: []byte(answer), ContentType: "application/octet-stream"}
}
