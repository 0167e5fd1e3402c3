// Package signin is the page where people sign in before they enter applications behind a
// gate. It is a source, like a fixed response: Compile makes it of the settings of a route.
// What it shows is made by internal/gate/page, who is signed in is known by internal/gate.
package signin

import (
	"errors"
	"net/url"
	"slices"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
	"headgate/internal/proto/header"
)

// Compile returns the page. With a nil engine signing in is not possible. The error is that of
// a logo that cannot be used.
func Compile(c *Config, engine *gate.Engine, env exchange.Env) (exchange.Source, error) {
	s := &source{title: c.Title, launchpad: c.Launchpad, engine: engine}
	var err error
	if s.look, err = newLook(c, env); err != nil {
		return nil, err
	}
	return s, nil
}

// source is the sign-in page. It may be used by several goroutines at once.
type source struct {
	title     string
	launchpad bool
	look      *look
	engine    *gate.Engine
}

// Describe returns "sign_in".
func (*source) Describe() string { return "sign_in" }

// The paths of the page.
const (
	startPath    = "/start/"
	callbackPath = "/callback/"
	continuePath = "/continue"
	signOutPath  = "/sign-out"
)

// posts are the paths that forms are sent to.
var posts = []string{signOutPath, continuePath, passwordPath, invitePath, passkeyPath, invitePasskeyPath, addPasskeyPath, removePasskeyPath}

// maxForm is the longest body of a form, in bytes.
const maxForm = 16 << 10

// Respond answers.
func (s *source) Respond(ex *exchange.Exchange) *exchange.Answer {
	if s.engine == nil {
		return &exchange.Answer{Reason: exchange.SignInUnavailable, RetryAfter: 60}
	}
	v := &visit{source: s, ex: ex, texts: page.Choose(ex.Request.Header.Get(header.AcceptLanguage)), cookies: gate.CookiesOf(ex)}
	var err error
	v.query, err = url.ParseQuery(strings.TrimPrefix(ex.Request.Query, "?"))
	ex.Request.Query = "" // codes of providers are for no log
	if err != nil {
		return exchange.Fail(exchange.BadRequest, "sign_in: the query is not valid")
	}
	if ex.Request.Scheme != "https" {
		return v.overHTTP()
	}
	if v.cookies.Repeated {
		return v.problem(exchange.BadRequest, "sign_in: a cookie is in the request twice", v.texts.Expired)
	}
	switch method, path := ex.Request.Method, ex.Request.Path; {
	case method == "GET" || method == "HEAD":
		return v.get(path)
	case method == "POST" && slices.Contains(posts, path):
		return v.post(path)
	}
	return exchange.Fail(exchange.NoRoute, "sign_in: there is no such page")
}

// visit is one request for the page.
type visit struct {
	*source
	ex      *exchange.Exchange
	texts   *page.Texts
	cookies *gate.Cookies
	query   url.Values
}

func (v *visit) get(path string) *exchange.Answer {
	name, starts := strings.CutPrefix(path, startPath)
	if starts {
		return v.start(name)
	}
	if secret, tests := strings.CutPrefix(path, gate.SelfTestPath); tests {
		return v.selfTest(secret)
	}
	name, returns := strings.CutPrefix(path, callbackPath)
	switch {
	case returns:
		return v.callback(name)
	case path == signOutPath:
		return v.view(page.View{Title: v.texts.SignOutQuestion, Lines: []string{v.texts.SignOutText}, Forms: []page.Form{{Action: signOutPath, Button: v.texts.SignOut}}})
	case path == invitePath:
		return v.invitation()
	case path == "/", path == sitesPath && v.launchpad:
		return v.home()
	}
	if host, shown := strings.CutPrefix(path, iconPath); shown && v.launchpad {
		return v.icon(host)
	}
	return exchange.Fail(exchange.NoRoute, "sign_in: there is no such page")
}

// selfTest proves that this is headgate's page.
func (v *visit) selfTest(secret string) *exchange.Answer {
	proof, err := v.engine.ProveSelfTest(secret)
	if err != nil {
		return v.failed(err, gate.Return{})
	}
	return &exchange.Answer{Status: 200, Body: []byte(proof), ContentType: "text/plain; charset=utf-8", Fields: []header.Field{page.NoStore(), page.Plain("X-Content-Type-Options", "nosniff")}}
}

// overHTTP leads to https, where cookies are sent.
func (v *visit) overHTTP() *exchange.Answer {
	rq := &v.ex.Request
	if to := v.engine.SignInURL(v.ex.Place.Port, rq.Host, ""); to != "" && (rq.Method == "GET" || rq.Method == "HEAD") && rq.Path == "/" {
		if len(v.query) > 0 {
			to += "?" + v.query.Encode()
		}
		return page.Redirect(to)
	}
	return v.problem(exchange.GateNeedsHTTPS, "sign_in: the request came over plain HTTP", v.texts.NeedsHTTPSText)
}

// back is where the browser wants to go.
func (v *visit) back() gate.Return {
	r := gate.Return{URL: v.query.Get("to"), Nonce: v.query.Get("n")}
	if !gate.IsSecret(r.Nonce) {
		r.Nonce = ""
	}
	return r
}

// again returns the query by which this page leads to the same place.
func again(r gate.Return) string {
	if r.URL == "" {
		return ""
	}
	q := url.Values{"to": {r.URL}}
	if r.Nonce != "" {
		q.Set("n", r.Nonce)
	}
	return "?" + q.Encode()
}

// home shows the ways to sign in, or leads on who has signed in.
func (v *visit) home() *exchange.Answer {
	back := v.back()
	site, known := v.engine.Find(back)
	if back.URL != "" && !known {
		return v.view(page.View{Title: v.texts.NoSite, Error: v.texts.NoSiteText, Links: []page.Link{{URL: "/", Label: v.texts.Home}}}, reason(exchange.BadRequest))
	}
	s := v.engine.SignedIn(v.cookies.SignIn, v.ex.Times.Start)
	switch {
	case s == nil:
		return v.ways(site, back)
	case !known:
		return v.startPage(s)
	case !site.Allow.Has(s.Person()):
		v.ex.User = s.Person().User
		return v.view(page.View{
			Title: v.texts.Denied, Lines: []string{page.Fill(v.texts.SignedInAs, s.Person().Title()), page.Fill(v.texts.DeniedText, site.Host)},
			Forms: []page.Form{{Action: signOutPath, Button: v.texts.OtherPerson, Plain: true}},
		}, reason(exchange.GateDenied))
	case site.Wildcard && !s.HasHost(site.Host):
		// Anybody who can have a host below the wildcard could send people here.
		return v.view(page.View{
			Title: page.Fill(v.texts.ContinueTo, site.Host), Lines: []string{page.Fill(v.texts.SignedInAs, s.Person().Title()), v.texts.ContinueText},
			Forms: []page.Form{{Action: continuePath, Fields: []page.Field{{Name: "to", Value: back.URL}, {Name: "n", Value: back.Nonce}}, Button: v.texts.Continue}},
		})
	}
	return v.sendToSite(s, site, back, false)
}

// startPage shows what a person who has signed in may open.
func (v *visit) startPage(s *gate.Session) *exchange.Answer {
	p := page.View{Title: v.texts.StartTitle, Lines: []string{page.Fill(v.texts.SignedInAs, s.Person().Title())}}
	v.listApplications(&p, s)
	v.ownPasskeys(&p, s)
	p.Forms = append(p.Forms, page.Form{Action: signOutPath, Button: v.texts.SignOut, Plain: true})
	return v.view(p)
}

// sendToSite sends the browser of a session to an application. After a form it is a page that
// leads there: browsers hold redirects against the policy of the page with the form.
func (v *visit) sendToSite(s *gate.Session, site gate.Site, back gate.Return, afterForm bool) *exchange.Answer {
	v.ex.User = s.Person().User
	to, err := v.engine.Code(s, site, back.Nonce)
	if err != nil {
		return v.failed(err, back)
	}
	if !afterForm {
		return page.Redirect(to)
	}
	return v.redirectPage(to)
}

// redirectPage is a page that redirects to an address.
func (v *visit) redirectPage(to string, fields ...header.Field) *exchange.Answer {
	return v.view(page.View{Title: v.texts.Redirecting, Lines: []string{v.texts.RedirectingText}, Links: []page.Link{{URL: to, Label: v.texts.Continue}}, Refresh: to}, with(fields))
}

// ways shows the ways to sign in.
func (v *visit) ways(site gate.Site, back gate.Return) *exchange.Answer {
	return v.view(v.waysIn(site, back, ""))
}

// waysIn is the page with the ways to sign in, with a login that was typed before.
func (v *visit) waysIn(site gate.Site, back gate.Return, login string) page.View {
	p := page.View{Title: v.texts.SignIn}
	if site.Host != "" {
		p.Lines = []string{page.Fill(v.texts.SignInTo, site.Host)}
	}
	for _, one := range v.engine.Providers() {
		p.Links = append(p.Links, page.Link{URL: startPath + url.PathEscape(one.Name) + again(back), Label: page.Fill(v.texts.With, one.Label)})
	}
	if v.engine.Local() {
		p.Passkeys = true
		p.Forms = append(v.askPasskey(back), v.passwordForm(login, back))
		p.Links, p.Below = nil, p.Links
	} else if len(p.Links) == 0 {
		p.Error = v.texts.NoWay
	}
	return p
}

// start sends the browser to a provider.
func (v *visit) start(name string) *exchange.Answer {
	back := v.back()
	if _, known := v.engine.Find(back); back.URL != "" && !known {
		back = gate.Return{}
	}
	to, cookie, err := v.engine.Start(name, gate.OriginOf(v.ex), v.ex.ClientIP, back)
	if err != nil {
		return v.failed(err, back)
	}
	fields := []header.Field{page.Plain("Set-Cookie", gate.SetCookie(cookie.Name, cookie.Value, gate.PendingAge))}
	if old := v.cookies.Pending; len(old) >= maxBeside {
		for _, c := range old {
			fields = append(fields, page.Plain("Set-Cookie", gate.SetCookie(c.Name, "", 0)))
		}
	}
	return page.Redirect(to, fields...)
}

// maxBeside is how many sign-ins a browser may have in progress: one for each tab.
const maxBeside = 4

// callback is where a provider sends the browser back to.
func (v *visit) callback(name string) *exchange.Answer {
	secret, s, back, used, err := v.engine.Finish(name, gate.OriginOf(v.ex), gate.ClientOf(v.ex), v.query, v.cookies.SignIn)
	var fields []header.Field
	if used != "" {
		fields = append(fields, page.Plain("Set-Cookie", gate.SetCookie(used, "", 0)))
	}
	if err != nil {
		return v.failed(err, back, fields...)
	}
	v.ex.User = s.Person().User
	fields = append(fields, page.Plain("Set-Cookie", v.engine.SignInCookie(secret)))
	return v.redirectPage("/"+again(back), fields...)
}

// failed shows why a sign-in failed, and leads back to the start.
func (v *visit) failed(err error, back gate.Return, fields ...header.Field) *exchange.Answer {
	p := page.View{Title: v.texts.Failed, Error: v.texts.Expired, Links: []page.Link{{URL: "/" + again(back), Label: v.texts.TryAgain}}}
	why := exchange.GateDenied
	switch {
	case errors.Is(err, gate.ErrThrottled):
		p.Error, why = v.texts.Throttled, exchange.RateLimited
	case errors.Is(err, gate.ErrUnavailable):
		p.Error, why = v.texts.Unavailable, exchange.SignInUnavailable
	case errors.Is(err, gate.ErrRefused):
		p.Error = v.texts.Refused
	}
	a := v.view(p, reason(why), with(fields))
	a.Cause = "sign_in: " + err.Error()
	return a
}

func (v *visit) problem(why exchange.Reason, cause, text string) *exchange.Answer {
	a := v.view(page.View{Title: v.texts.Failed, Error: text}, reason(why))
	a.Cause = cause
	return a
}

// post does what a form asks for.
func (v *visit) post(path string) *exchange.Answer {
	if !gate.SameOrigin(v.ex) {
		return v.problem(exchange.GateDenied, "sign_in: the form is of another origin", v.texts.WrongOrigin)
	}
	form, answer := v.form()
	if answer != nil {
		return answer
	}
	s := v.engine.SignedIn(v.cookies.SignIn, v.ex.Times.Start)
	v.query = form
	switch path {
	case signOutPath:
		return v.signOut(s)
	case passwordPath:
		return v.password(form)
	case invitePath:
		return v.accept(form)
	case passkeyPath:
		return v.passkey(form)
	case invitePasskeyPath:
		return v.acceptPasskey(form)
	case addPasskeyPath, removePasskeyPath:
		return v.changePasskeys(path, form, s)
	}
	back := v.back()
	site, known := v.engine.Find(back)
	if s == nil || !known || !site.Allow.Has(s.Person()) {
		return page.Redirect("/" + again(back))
	}
	return v.sendToSite(s, site, back, true)
}

func (v *visit) signOut(s *gate.Session) *exchange.Answer {
	if s != nil {
		if err := v.engine.SignOut(s, ""); err != nil {
			return v.failed(err, gate.Return{})
		}
	}
	return v.view(page.View{Title: v.texts.SignedOut, Lines: []string{v.texts.SignedOutText}, Links: []page.Link{{URL: "/", Label: v.texts.SignIn}}},
		with([]header.Field{page.Plain("Set-Cookie", gate.SetCookie(gate.CookieSignIn, "", 0))}))
}

// form reads the form of a request.
func (v *visit) form() (url.Values, *exchange.Answer) {
	rq := &v.ex.Request
	if rq.Length > maxForm {
		return nil, exchange.Fail(exchange.BodyTooLarge, "sign_in: the form is too large")
	}
	var text []byte
	for buf := make([]byte, 1024); rq.Body != nil; {
		n, err := rq.Body.Read(buf)
		if text = append(text, buf[:n]...); len(text) > maxForm {
			return nil, exchange.Fail(exchange.BodyTooLarge, "sign_in: the form is too large")
		}
		if err != nil {
			break // an incomplete form lacks fields
		}
	}
	form, err := url.ParseQuery(string(text))
	if err != nil {
		return nil, exchange.Fail(exchange.BadRequest, "sign_in: the form is not valid")
	}
	return form, nil
}

// option changes an answer.
type option func(*exchange.Answer)

func reason(r exchange.Reason) option {
	return func(a *exchange.Answer) { a.Reason, a.Status = r, r.Status() }
}

func with(fields []header.Field) option {
	return func(a *exchange.Answer) { a.Fields = append(a.Fields, fields...) }
}

// view returns a page as an answer.
func (v *visit) view(p page.View, options ...option) *exchange.Answer {
	p.Texts, p.Site, p.Brand = v.texts, v.title, v.look.brand()
	a := p.Answer(exchange.None, false)
	for _, o := range options {
		o(a)
	}
	return a
}
