package acme

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mholt/acmez/v3"
	protocol "github.com/mholt/acmez/v3/acme"
)

// answerLife is for how long an answer to a challenge is kept in the store at most, from
// which other machines answer too.
const answerLife = 2 * time.Hour

// alpnPlace is the prefix for tls-alpn-01 below store.PrefixChallenge, followed by the
// server name of the handshake. Tokens of http-01 have no slash.
const alpnPlace = "alpn/"

// alpnAnswer is what the certificate of tls-alpn-01 is made of. Each machine makes its own.
type alpnAnswer struct {
	Type             string `json:"type"` // of the identifier: dns or ip
	Value            string `json:"value"`
	KeyAuthorization string `json:"key_authorization"`
}

func alpnValue(c protocol.Challenge) []byte {
	data, err := json.Marshal(alpnAnswer{c.Identifier.Type, c.Identifier.Value, c.KeyAuthorization})
	if err != nil {
		panic(err) // three strings
	}
	return data
}

// answer answers a challenge on our ports: place and value are those in the store.
func (m *Manager) answer(place string, value []byte) error {
	name, ok := strings.CutPrefix(place, alpnPlace)
	if !ok {
		m.answers.setHTTP(place, string(value))
		return nil
	}
	var a alpnAnswer
	if err := json.Unmarshal(value, &a); err != nil {
		return fmt.Errorf("read the answer to tls-alpn-01 for %s: %w", name, err)
	}
	cert, err := acmez.TLSALPN01ChallengeCert(protocol.Challenge{
		Identifier: protocol.Identifier{Type: a.Type, Value: a.Value}, KeyAuthorization: a.KeyAuthorization,
	})
	if err != nil {
		return fmt.Errorf("make the answer to tls-alpn-01 for %s: %w", name, err)
	}
	m.answers.setTLS(name, cert)
	return nil
}

// withdraw ends the answer at a place.
func (m *Manager) withdraw(place string) {
	if name, ok := strings.CutPrefix(place, alpnPlace); ok {
		m.answers.dropTLS(name)
		return
	}
	m.answers.dropHTTP(place)
}
