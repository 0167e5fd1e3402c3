package gate

import (
	"encoding/base64"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
	"headgate/internal/proto/header"
)

// presented is the token that came with a request. The text is not kept.
type presented struct {
	key gate.TokenDigest
	// found is whether there is one, valid whether it can be one.
	found, valid bool
	// basic is whether it is the password of Basic authentication.
	basic bool
	// repeated is whether there are several.
	repeated bool
}

// tokens is where the token of a request is.
var tokens = exchange.NewSlot[presented](false)

// tokenOf returns the token of a request, nil without one.
func tokenOf(ex *exchange.Exchange) *presented {
	if p := tokens.Get(ex); p != nil && p.found {
		return p
	}
	return nil
}

// maxBasic is the longest credentials of Basic that are read, in Base64.
const maxBasic = 1024

// holdsToken reads the value of an Authorization field.
func holdsToken(value string) (p presented) {
	if text, ok := scheme(value, "Bearer "); ok {
		p.key, p.found, p.valid = gate.ReadToken(text)
		return p
	}
	coded, ok := scheme(value, "Basic ")
	if !ok || len(coded) > maxBasic {
		return p
	}
	var buf [maxBasic]byte
	text, err := base64.StdEncoding.AppendDecode(buf[:0], []byte(coded))
	if err != nil {
		text, err = base64.RawStdEncoding.AppendDecode(buf[:0], []byte(coded))
	}
	if err != nil {
		return p
	}
	_, password, _ := strings.Cut(string(text), ":")
	p.key, p.found, p.valid = gate.ReadToken(password)
	p.basic = p.found
	return p
}

// scheme returns the credentials of an Authorization field with a scheme.
func scheme(value, name string) (string, bool) {
	if len(value) <= len(name) || !header.EqualFold(value[:len(name)], name) {
		return "", false
	}
	return header.TrimOWS(value[len(name):]), true
}

// tokenField reports whether a field is for tokens, or may be read as it.
func tokenField(f *header.Field) bool {
	return f.ID == header.Other && header.Twins(f.Name, gate.TokenHeader)
}

// stripTokens removes tokens from a request, so that no server, log or cache gets one.
// Authorization without a token is the application's.
func stripTokens(ex *exchange.Exchange) {
	list := &ex.Request.Header
	var all presented
	list.DeleteFunc(func(f *header.Field) bool {
		var one presented
		switch {
		case f.ID == header.Authorization:
			if one = holdsToken(f.Value); !one.found {
				return false
			}
		case tokenField(f):
			one.key, _, one.valid = gate.ReadToken(header.TrimOWS(f.Value))
			one.found = true
			one.valid = one.valid && header.EqualFold(f.Name, gate.TokenHeader)
		default:
			return false
		}
		one.repeated = all.found
		all = one
		return true
	})
	if all.found {
		tokens.Put(ex, all)
	}
}

// mayHoldToken reports whether a field can have a token.
func mayHoldToken(f *header.Field) bool { return f.ID == header.Authorization || tokenField(f) }

// admitToken lets in a client with a token.
func (f *filter) admitToken(ex *exchange.Exchange, p *presented) *exchange.Answer {
	switch {
	case p.repeated:
		return f.refuseToken(ex, "gate: there are several tokens in the request")
	case p.basic && !f.basic:
		return f.refuseToken(ex, "gate: a token as the password of Basic, which basic_tokens does not allow here")
	case !p.valid || f.engine == nil:
		return f.refuseToken(ex, "gate: the token is not known, was revoked or has expired")
	}
	t := f.engine.Token(p.key, ex.Times.Start, ex.ClientIP)
	if t == nil {
		return f.refuseToken(ex, "gate: the token is not known, was revoked or has expired")
	}
	ex.User = t.User()
	if !f.allow.HasToken(t) || !t.Covers(ex.Place.Proxy, ex.Request.Path) {
		return refused(ex, t)
	}
	ex.Personal, ex.SignedIn = true, t
	if t.Person != nil {
		f.identify(ex, t.Person)
	}
	return nil
}

// refused answers a client whose token is valid, but not here.
func refused(ex *exchange.Exchange, t *gate.Token) *exchange.Answer {
	a := problem(ex, exchange.GateDenied, exchange.GateDenied.Hint(), "")
	a.Cause = "gate: token " + t.Name + " is not in allow, or does not cover the path"
	return a
}

// refuseToken answers a client whose token does not count.
func (f *filter) refuseToken(ex *exchange.Exchange, cause string) *exchange.Answer {
	a := problem(ex, exchange.AuthRequired, "The token is not accepted here.", "")
	a.Cause = cause
	challenge := `Bearer realm="headgate", error="invalid_token"` // RFC 6750, section 3.1
	if f.asksBasic(&ex.Request) {
		challenge = basicChallenge
	}
	a.Fields = append(a.Fields, page.Plain("WWW-Authenticate", challenge))
	return a
}

const basicChallenge = `Basic realm="headgate", charset="UTF-8"`

// asksBasic reports whether a client is asked for a user name and a password. Browsers are
// not: they would show a dialog in the place of the sign-in page.
func (f *filter) asksBasic(rq *exchange.Request) bool {
	if !f.basic {
		return false
	}
	for _, name := range []string{"Sec-Fetch-Site", "Sec-Fetch-Mode", "Sec-Fetch-Dest"} {
		if _, sent := rq.Header.Lookup(name); sent {
			return false
		}
	}
	return !strings.Contains(strings.ToLower(rq.Header.Get(header.Accept)), "text/html")
}

// tokenInQuery reports whether a query has the text of a token: it was sent where addresses
// are logged and remembered, and is never accepted there.
func tokenInQuery(query string) bool {
	for {
		i := strings.Index(query, gate.TokenPrefix)
		if i < 0 {
			return false
		}
		if query = query[i+len(gate.TokenPrefix):]; len(query) >= gate.SecretLength && gate.IsSecret(query[:gate.SecretLength]) {
			return true
		}
	}
}
