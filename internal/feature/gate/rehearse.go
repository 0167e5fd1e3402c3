package gate

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
)

// rehearse decides for the person or token of an explanation, as for one whose session or
// token is valid.
func (f *filter) rehearse(ex *exchange.Exchange, as *gate.Rehearsed) *exchange.Answer {
	if f.engine != nil && f.engine.IsOpen(gate.HostOf(ex)) {
		as.Decide(true, "the gate is open for everyone for a while")
		return nil
	}
	if as.Token != nil {
		return f.rehearseToken(ex, as)
	}
	p := as.Person
	ex.Personal = true
	if f.engine != nil && f.engine.Disabled(p) {
		as.Decide(false, "the person is disabled, or sign_in.local is off")
		return f.deny(ex, p)
	}
	rule := f.allow.Rule(p)
	if rule == "" {
		as.Decide(false, "no entry of allow is for the person"+groupsOf(p))
		return f.deny(ex, p)
	}
	as.Decide(true, "allow has "+rule)
	ex.User = p.User
	f.identify(ex, p)
	return nil
}

// rehearseToken decides for a token that is sent as Authorization: Bearer.
func (f *filter) rehearseToken(ex *exchange.Exchange, as *gate.Rehearsed) *exchange.Answer {
	t := as.Token
	ex.User, ex.Personal = t.User(), true
	rule, why := f.allow.TokenRule(t), ""
	switch {
	case rule == "" && t.Person != nil:
		why = "no entry of allow is for the token or its person " + t.Person.ID + groupsOf(t.Person)
	case rule == "":
		why = "allow does not have token:" + t.Name
	case !t.Covers(ex.Place.Proxy, ex.Request.Path):
		why = "the token is restricted to other proxies or paths"
	}
	if why != "" {
		as.Decide(false, why)
		return refused(ex, t)
	}
	as.Decide(true, "allow has "+rule)
	if t.Person != nil {
		f.identify(ex, t.Person)
	}
	return nil
}

// groupsOf adds the groups of a person to a sentence.
func groupsOf(p *gate.Person) string {
	if len(p.Groups) == 0 {
		return ", who is in no group"
	}
	return ", who is in " + strings.Join(p.Groups, ", ")
}
