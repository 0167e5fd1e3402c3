package gate

import (
	"encoding/json"
	"strconv"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
	"headgate/internal/proto/header"
)

// kind is who asks: that decides about the form of an answer.
type kind uint8

const (
	program    kind = iota // scripts, apps, WebSockets
	navigation             // a person opens a page
	framed                 // a page is opened inside of another one
	submission             // a person sends a form
)

// kindOf returns the kind of a request. Browsers report it; of older ones and of others, a
// GET that accepts a page is a navigation.
func kindOf(rq *exchange.Request) kind {
	if rq.Upgrade != "" || rq.Extended {
		return program
	}
	mode, reported := rq.Header.Lookup("Sec-Fetch-Mode")
	dest, _ := rq.Header.Lookup("Sec-Fetch-Dest")
	get := rq.Method == "GET" || rq.Method == "HEAD"
	switch {
	case reported && !header.EqualFold(mode, "navigate"):
		return program
	case reported && (header.EqualFold(dest, "iframe") || header.EqualFold(dest, "frame") || header.EqualFold(dest, "embed") || header.EqualFold(dest, "object")):
		return framed
	case reported && get:
		return navigation
	case reported:
		return submission
	case !get:
		return program
	}
	if with, ok := rq.Header.Lookup("X-Requested-With"); ok && header.EqualFold(with, "XMLHttpRequest") {
		return program
	}
	for part := range strings.SplitSeq(rq.Header.Get(header.Accept), ",") {
		media, params, _ := strings.Cut(part, ";")
		if media = strings.TrimSpace(media); header.EqualFold(media, "text/html") || header.EqualFold(media, "application/xhtml+xml") {
			if q := strings.ReplaceAll(params, " ", ""); strings.HasPrefix(q, "q=0") && strings.Trim(q[3:], ".0") == "" {
				continue
			}
			return navigation
		}
	}
	return program
}

// signIn answers a client that has not signed in.
func (f *filter) signIn(ex *exchange.Exchange, cookies *gate.Cookies) *exchange.Answer {
	if f.engine != nil && f.engine.IsOpen(gate.HostOf(ex)) {
		return nil // an operator has opened the gate for a while
	}
	if f.engine == nil || f.engine.SignInOrigin(ex.Place.Port, ex.Request.Host) == "" {
		return &exchange.Answer{Reason: exchange.SignInUnavailable, RetryAfter: 60, Cause: "gate: there is no sign-in page"}
	}
	if tokenInQuery(ex.Request.Query) {
		ex.Request.Query = "" // it is for no log
		a := f.refuseToken(ex, "gate: there is a token in the query, where it is never accepted; revoke it")
		return a
	}
	const cause = "gate: not signed in"
	texts := page.Choose(ex.Request.Header.Get(header.AcceptLanguage))
	switch kindOf(&ex.Request) {
	case navigation:
		nonce, set := gate.NonceFor(cookies)
		var fields []header.Field
		if set != "" {
			fields = append(fields, page.Plain("Set-Cookie", set))
		}
		a := page.Redirect(f.engine.SignInURL(ex.Place.Port, ex.Request.Host, signInQuery(addressOf(ex), nonce)), fields...)
		a.Status, a.Cause = 302, cause
		return a
	case framed:
		v := page.View{Texts: texts, Title: texts.Framed, Lines: []string{texts.FramedText}, Links: []page.Link{{URL: addressOf(ex), Label: texts.Open}}, NewWindow: true}
		return f.unauthorized(ex, v.Answer(exchange.AuthRequired, true), cause)
	case submission:
		v := page.View{Texts: texts, Title: texts.Framed, Lines: []string{page.Fill(texts.SignInTo, gate.HostOf(ex))}, Links: []page.Link{{URL: addressOf(ex), Label: texts.SignIn}}}
		return f.unauthorized(ex, v.Answer(exchange.AuthRequired, false), cause)
	}
	to := f.engine.SignInURL(ex.Place.Port, ex.Request.Host, signInQuery(gate.OriginOf(ex)+"/", ""))
	return f.unauthorized(ex, problem(ex, exchange.AuthRequired, "Sign in to open this.", to), cause)
}

// unauthorized adds what a 401 has to have (RFC 9110, section 15.5.2).
func (f *filter) unauthorized(ex *exchange.Exchange, a *exchange.Answer, cause string) *exchange.Answer {
	a.Cause = cause
	challenge := `Bearer realm="headgate"`
	if f.asksBasic(&ex.Request) {
		challenge = basicChallenge
	}
	a.Fields = append(a.Fields, page.Plain("WWW-Authenticate", challenge))
	return a
}

// problem is an answer for programs (RFC 9457).
func problem(ex *exchange.Exchange, reason exchange.Reason, detail, signIn string) *exchange.Answer {
	body, err := json.Marshal(struct {
		Type      string `json:"type"`
		Title     string `json:"title"`
		Status    int    `json:"status"`
		Detail    string `json:"detail"`
		Code      string `json:"code"`
		SignInURL string `json:"sign_in_url,omitempty"`
		RequestID string `json:"request_id"`
	}{"about:blank", reason.Title(), reason.Status(), detail, reason.String(), signIn, strings.Clone(ex.ID())})
	if err != nil {
		return exchange.Fail(exchange.Internal, err.Error())
	}
	return &exchange.Answer{Reason: reason, Body: append(body, '\n'), ContentType: "application/problem+json", Fields: []header.Field{page.NoStore(), page.Plain("Vary", "Cookie")}}
}

// deny answers a person who may not enter.
func (f *filter) deny(ex *exchange.Exchange, p *gate.Person) *exchange.Answer {
	if f.engine.IsOpen(gate.HostOf(ex)) {
		return nil
	}
	cause := "gate: " + p.ID + " is not in allow"
	ex.User = p.User
	if kindOf(&ex.Request) == program {
		a := problem(ex, exchange.GateDenied, exchange.GateDenied.Hint(), "")
		a.Cause = cause
		return a
	}
	texts := page.Choose(ex.Request.Header.Get(header.AcceptLanguage))
	v := page.View{
		Texts: texts, Title: texts.Denied, Lines: []string{page.Fill(texts.SignedInAs, p.Title()), page.Fill(texts.DeniedText, gate.HostOf(ex))},
		Forms: []page.Form{{Action: gate.SignOutPath, Button: texts.OtherPerson, Plain: true}},
	}
	a := v.Answer(exchange.GateDenied, false)
	a.Cause = cause
	return a
}

// needsHTTPS answers a request over plain HTTP. Sessions never work there: their cookies are
// not sent, and what was sent could be read by others.
// Ports are the https ports by the names of http ports, where they are not the usual one.
func needsHTTPS(ex *exchange.Exchange, ports map[string]int) *exchange.Answer {
	rq := &ex.Request
	const cause = "gate: the request came over plain HTTP"
	if k := kindOf(rq); k == navigation && rq.Host != "" {
		port := ""
		if n, other := ports[ex.Place.Port]; other {
			port = ":" + strconv.Itoa(n)
		}
		a := page.Redirect("https://" + gate.HostOf(ex) + port + rq.Path + rq.Query)
		a.Status, a.Cause = 302, cause
		return a
	}
	a := problem(ex, exchange.GateNeedsHTTPS, exchange.GateNeedsHTTPS.Hint(), "")
	a.Cause = cause
	return a
}
