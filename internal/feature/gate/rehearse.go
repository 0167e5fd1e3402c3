package gate

import (
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/people"
	"headgate/internal/setting/unit"
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
	as.Session = f.session(p)
	if f.framed && fromOtherSite(ex) {
		as.Decide(false, "same_site is none, and the request has no Origin field of the application")
		return f.otherSite(ex)
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

// session describes how the session of a person ends and which cookie it has.
func (f *filter) session(p *gate.Person) string {
	text := "the cookie has SameSite=Lax"
	if f.framed {
		text = "the cookie has SameSite=None, because a gate of the proxy has same_site: none"
	}
	if f.engine == nil {
		return text
	}
	switch every, grace := f.engine.RecheckOf(p); {
	case p.Provider == people.Provider:
		return text + "; disabling or removing the person ends the session"
	case every == 0:
		return text + "; the session is not checked again with provider " + p.Provider
	default:
		return text + "; if there is a refresh token, the session is checked with provider " + p.Provider + " every " + unit.Duration(every).String() +
			", and continues for " + unit.Duration(grace).String() + " while the provider cannot be reached"
	}
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
