package gate

import (
	"errors"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
	"headgate/internal/proto/header"
)

// linkSecret is where the secret of a share link is: it is part of the path, and the path is
// written to logs, so the guard moves it here before anything can write it.
var linkSecret = exchange.NewSlot[string](false)

// hideLink moves the secret of a share link out of the path of a request.
func hideLink(ex *exchange.Exchange) {
	secret, ok := strings.CutPrefix(ex.Request.Path, gate.LinkPath)
	if !ok {
		return
	}
	linkSecret.Put(ex, secret)
	ex.Request.Path, ex.Request.Query = gate.LinkPath, ""
}

// link answers at the address of a share link: GET shows a button, so that programs that look
// at links in messages use up nothing; POST opens it.
func (e *entry) link(ex *exchange.Exchange) *exchange.Answer {
	secret := ""
	if s := linkSecret.Get(ex); s != nil {
		secret = *s
	}
	texts := page.Choose(ex.Request.Header.Get(header.AcceptLanguage))
	switch ex.Request.Method {
	case "GET", "HEAD":
		if e.engine.FindLink(secret, gate.OriginOf(ex)) == nil {
			return e.noLink(texts, gate.ErrExpired)
		}
		// Without an action a form is posted to the address of the page.
		v := page.View{Texts: texts, Title: page.Fill(texts.ContinueTo, gate.HostOf(ex)), Lines: []string{texts.LinkText}, Forms: []page.Form{{Button: texts.Open}}}
		return unreferred(v.Answer(exchange.None, false))
	case "POST":
		cookie, to, err := e.engine.OpenLink(secret, gate.OriginOf(ex))
		if err != nil {
			return e.noLink(texts, err)
		}
		return page.Redirect(to, page.Plain("Set-Cookie", cookie))
	}
	return exchange.Fail(exchange.NoRoute, "gate: there is no such page")
}

// noLink answers for a share link that cannot be opened.
func (e *entry) noLink(texts *page.Texts, err error) *exchange.Answer {
	v := page.View{Texts: texts, Title: texts.Denied, Error: texts.LinkExpired}
	reason := exchange.GateDenied
	if errors.Is(err, gate.ErrUnavailable) {
		v.Error, reason = texts.Unavailable, exchange.SignInUnavailable
	}
	a := unreferred(v.Answer(reason, false))
	a.Cause = "gate: the share link cannot be opened: " + err.Error()
	return a
}

// unreferred keeps the address of a page out of what browsers send elsewhere.
func unreferred(a *exchange.Answer) *exchange.Answer {
	for i := range a.Fields {
		if a.Fields[i].Is("Referrer-Policy") {
			a.Fields[i].Value = "no-referrer"
		}
	}
	return a
}

// visiting lets in a browser that has opened a share link. The server learns nothing about
// who it is.
func (f *filter) visiting(ex *exchange.Exchange, cookies *gate.Cookies) bool {
	if f.engine == nil {
		return false
	}
	rq := &ex.Request
	reads := (rq.Method == "GET" || rq.Method == "HEAD") && rq.Upgrade == "" && !rq.Extended
	for _, c := range cookies.Links {
		if v := f.engine.Visit(c.Value, ex.Times.Start); v != nil && v.Covers(gate.HostOf(ex), rq.Path, reads) {
			ex.User, ex.Personal, ex.SignedIn = v.User(), true, v
			return true
		}
	}
	return false
}
