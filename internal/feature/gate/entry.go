package gate

import (
	"errors"
	"net/url"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
	"headgate/internal/proto/header"
)

// Entry returns what answers below /.headgate/ on the hosts of applications. Framed is whether
// browsers send the session from frames of other sites, too.
func Entry(engine *gate.Engine, framed bool, env exchange.Env) exchange.Source {
	return &entry{engine, framed, env.SecurePorts}
}

type entry struct {
	engine *gate.Engine
	framed bool
	ports  map[string]int
}

// Describe returns "gate".
func (*entry) Describe() string { return Name }

// Respond answers.
func (e *entry) Respond(ex *exchange.Exchange) *exchange.Answer {
	if ex.Request.Scheme != "https" {
		return needsHTTPS(ex, e.ports)
	}
	if e.engine == nil {
		return &exchange.Answer{Reason: exchange.SignInUnavailable, RetryAfter: 60}
	}
	method := ex.Request.Method
	switch path := ex.Request.Path; {
	case path == gate.LinkPath:
		return e.link(ex)
	case path == gate.EnterPath && method == "GET":
		return e.enter(ex)
	case path == gate.SignOutPath && (method == "GET" || method == "HEAD"):
		return e.question(ex)
	case path == gate.SignOutPath && method == "POST":
		return e.signOut(ex)
	}
	return exchange.Fail(exchange.NoRoute, "gate: there is no such page")
}

// enter redeems a code, gives the browser its cookie, and sends it where it wanted to go.
func (e *entry) enter(ex *exchange.Exchange) *exchange.Answer {
	query, err := url.ParseQuery(strings.TrimPrefix(ex.Request.Query, "?"))
	ex.Request.Query = "" // the code is for no log
	cookies := gate.CookiesOf(ex)
	if err != nil || len(query["code"]) != 1 || cookies.Repeated {
		return e.failed(ex, gate.ErrExpired)
	}
	secret, to, err := e.engine.Redeem(query.Get("code"), gate.OriginOf(ex), gate.HostOf(ex), cookies.Nonce)
	if err != nil {
		return e.failed(ex, err)
	}
	return page.Redirect(to, page.Plain("Set-Cookie", e.engine.HostCookie(secret, e.framed)), page.Plain("Set-Cookie", gate.SetCookie(gate.CookieNonce, "", 0)))
}

func (e *entry) failed(ex *exchange.Exchange, err error) *exchange.Answer {
	texts := page.Choose(ex.Request.Header.Get(header.AcceptLanguage))
	v := page.View{Texts: texts, Title: texts.Failed, Error: texts.Expired, Links: []page.Link{{URL: "/", Label: texts.TryAgain}}}
	reason := exchange.GateDenied
	if errors.Is(err, gate.ErrUnavailable) {
		v.Error, reason = texts.Unavailable, exchange.SignInUnavailable
	}
	a := v.Answer(reason, false)
	a.Cause = "gate: " + err.Error()
	return a
}

// question shows a button: a link alone must not sign anybody out.
func (e *entry) question(ex *exchange.Exchange) *exchange.Answer {
	texts := page.Choose(ex.Request.Header.Get(header.AcceptLanguage))
	v := page.View{Texts: texts, Title: texts.SignOutQuestion, Lines: []string{texts.SignOutText}, Forms: []page.Form{{Action: gate.SignOutPath, Button: texts.SignOut}}}
	return v.Answer(exchange.None, false)
}

// signOut ends the session, with those of all other applications.
func (e *entry) signOut(ex *exchange.Exchange) *exchange.Answer {
	texts := page.Choose(ex.Request.Header.Get(header.AcceptLanguage))
	if !gate.SameOrigin(ex) {
		v := page.View{Texts: texts, Title: texts.Denied, Error: texts.WrongOrigin}
		return v.Answer(exchange.GateDenied, false)
	}
	if s := e.engine.Host(gate.CookiesOf(ex).Gate, gate.HostOf(ex), ex.Times.Start); s != nil {
		if err := e.engine.SignOut(s, ""); err != nil {
			return e.failed(ex, err)
		}
	}
	v := page.View{Texts: texts, Title: texts.SignedOut, Lines: []string{texts.SignedOutText}, Links: []page.Link{{URL: "/", Label: texts.SignIn}}}
	return v.Answer(exchange.None, false, page.Plain("Set-Cookie", gate.SetCookie(gate.CookieGate, "", 0)))
}
