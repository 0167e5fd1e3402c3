package gate

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate/people"
)

// Rehearsed is a person or a token for which an explanation asks what a gate decides. The
// gate writes the decision into it.
type Rehearsed struct {
	// Person is who has signed in; nil for a token.
	Person *Person
	// Token is what an application sends; nil for a person.
	Token *Token

	// Decided is whether a gate has decided, In whether it lets the request pass.
	Decided, In bool
	// Rule is the entry, bypass or opening that lets the request pass, or why none does.
	Rule string
	// Session describes the session of a person: its cookie, and when it is checked again. It is
	// "" for a token, and where no session is needed.
	Session string
}

// Decide writes the decision of a gate.
func (r *Rehearsed) Decide(in bool, rule string) { r.Decided, r.In, r.Rule = true, in, rule }

// Name returns the person or token as lists of people name it.
func (r *Rehearsed) Name() string {
	if r.Token != nil {
		return kindToken + r.Token.Name
	}
	return kindPerson + r.Person.ID
}

// rehearsed is where the filters of an explanation find it.
var rehearsed = exchange.NewSlot[*Rehearsed](false)

// Rehearse has the gate decide for a person or token. The exchange is one of an explanation.
func Rehearse(ex *exchange.Exchange, r *Rehearsed) { rehearsed.Put(ex, r) }

// RehearsedOf returns what Rehearse was called with, nil without one.
func RehearsedOf(ex *exchange.Exchange) *Rehearsed {
	if r := rehearsed.Get(ex); r != nil {
		return *r
	}
	return nil
}

// Rehearsal returns the person or token of a text: token:NAME, NAME or PROVIDER/ID of a person, or
// an e-mail address; nil if it is not known. People of providers are known while they have a
// session or a token.
func (e *Engine) Rehearsal(text string) *Rehearsed {
	if name, ok := strings.CutPrefix(text, kindToken); ok {
		if t := e.TokenNamed(name); t != nil {
			return &Rehearsed{Token: t}
		}
		return nil
	}
	text = strings.TrimPrefix(text, kindPerson)
	if p, _ := e.person(text); p != nil {
		return &Rehearsed{Person: p}
	}
	if l := e.people.Listed(strings.TrimPrefix(text, people.Provider+"/")); l != nil {
		return &Rehearsed{Person: localPerson(l)}
	}
	for _, t := range e.Tokens() {
		if p := t.Person; p != nil && (p.ID == text || p.User == text || p.Email != "" && strings.EqualFold(p.Email, text)) {
			return &Rehearsed{Person: p}
		}
	}
	return nil
}

// Disabled reports whether a person kept by headgate cannot sign in at the moment.
func (e *Engine) Disabled(p *Person) bool {
	if p.Provider != people.Provider {
		return false
	}
	l := e.people.Listed(strings.TrimPrefix(p.ID, people.Provider+"/"))
	return l == nil || l.Disabled || !e.Local()
}

// Rule returns the entry that lets a person enter, "" if none does.
func (a *Allow) Rule(p *Person) string {
	switch i := a.groups.first(p.Groups); {
	case a.people.has(p.ID):
		return kindPerson + p.ID
	case p.Email != "" && a.people.has(p.Email):
		return kindPerson + p.Email
	case p.Email != "" && a.domains.has(p.domain()):
		return kindDomain + p.domain()
	case i >= 0:
		return kindGroup + p.Groups[i]
	}
	return ""
}

// TokenRule returns the entry that lets a token enter, "" if none does.
func (a *Allow) TokenRule(t *Token) string {
	switch {
	case a.tokens.has(t.Name):
		return kindToken + t.Name
	case t.Person != nil:
		return a.Rule(t.Person)
	}
	return ""
}
