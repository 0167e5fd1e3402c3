package signin

import (
	"errors"
	"net/url"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
	"headgate/internal/gate/people"
	"headgate/internal/proto/header"
)

// The paths for people kept by headgate.
const (
	passwordPath = "/password"
	invitePath   = "/invite"
)

// passwordForm is the form for a name, a password and a code. They are sent together: an
// answer to one of them alone would show whether it is right.
func (v *visit) passwordForm(login string, back gate.Return) page.Form {
	t := v.texts
	return page.Form{
		Action: passwordPath, Fields: returnFields(back), Button: t.SignIn,
		Inputs: []page.Input{
			{Name: "login", Label: t.Login, Value: login, Autocomplete: "username", Focus: login == ""},
			{Name: "password", Type: "password", Label: t.Password, Autocomplete: "current-password", Focus: login != ""},
			{Name: "code", Label: t.OneTimeCode, Hint: t.CodeHint, Autocomplete: "one-time-code"},
		},
	}
}

func returnFields(back gate.Return) (fields []page.Field) {
	if back.URL != "" {
		fields = append(fields, page.Field{Name: "to", Value: back.URL})
	}
	if back.Nonce != "" {
		fields = append(fields, page.Field{Name: "n", Value: back.Nonce})
	}
	return fields
}

// maxLogin is how much of a login is shown again, in bytes.
const maxLogin = 256

// password signs a person in with a password and a code.
func (v *visit) password(form url.Values) *exchange.Answer {
	back := v.knownBack()
	login := form.Get("login")
	in, err := v.engine.Password(gate.ClientOf(v.ex), login, form.Get("password"), form.Get("code"), v.cookies.SignIn)
	switch {
	case errors.Is(err, gate.ErrCredentials):
		site, _ := v.engine.Find(back)
		p := v.waysIn(site, back, login[:min(len(login), maxLogin)])
		p.Error = v.texts.Credentials
		a := v.view(p, reason(exchange.GateDenied))
		a.Cause = "sign_in: " + err.Error()
		return a
	case err != nil:
		return v.failed(err, back)
	}
	v.ex.User = in.Session.Person().User
	return v.redirectPage("/"+again(back), cookiesOf(v.engine, in)...)
}

// knownBack returns where the browser wants to go, nowhere if no application is there.
func (v *visit) knownBack() gate.Return {
	back := v.back()
	if _, known := v.engine.Find(back); back.URL != "" && !known {
		return gate.Return{}
	}
	return back
}

// cookiesOf returns the cookies of a sign-in.
func cookiesOf(engine *gate.Engine, in *gate.Entered) []header.Field {
	fields := []header.Field{page.Plain("Set-Cookie", engine.SignInCookie(in.Secret))}
	if in.Known != "" {
		fields = append(fields, page.Plain("Set-Cookie", in.Known))
	}
	return fields
}

// invitation shows the page of an invitation link. The link is not used by it: programs that
// preview links in messages open it, too.
func (v *visit) invitation() *exchange.Answer {
	p, secret, sealed, err := v.engine.Invited(v.query.Get("link"))
	if err != nil {
		return v.badLink(err)
	}
	return v.view(v.invitationPage(p, v.query.Get("link"), secret, sealed))
}

func (v *visit) invitationPage(p people.Person, link, secret, sealed string) page.View {
	t, name := v.texts, p.FullName
	if name == "" {
		name = p.Name
	}
	issuer := v.title
	if issuer == "" {
		issuer = gate.HostOf(v.ex)
	}
	return page.View{
		Title: page.Fill(t.Welcome, name), Lines: []string{t.WelcomeText},
		Passkeys: true,
		Forms: append(v.invitePasskey(link), page.Form{
			Action: invitePath, Fields: []page.Field{{Name: "link", Value: link}, {Name: "totp", Value: sealed}}, Button: t.Save,
			Inputs: []page.Input{
				{Name: "login", Label: t.Login, Value: p.Name, Autocomplete: "username", Fixed: true},
				{Name: "password", Type: "password", Label: t.NewPassword, Hint: t.PasswordHint, Autocomplete: "new-password"},
			},
			Secret: secret, URI: v.engine.AuthenticatorURI(issuer, p.Name, secret),
		}),
	}
}

// accept uses an invitation link.
func (v *visit) accept(form url.Values) *exchange.Answer {
	link, sealed := form.Get("link"), form.Get("totp")
	in, err := v.engine.Accept(gate.ClientOf(v.ex), link, form.Get("password"), sealed, form.Get("code"), v.cookies.SignIn)
	if wrong := (*people.Error)(nil); errors.As(err, &wrong) {
		p, _, _, failed := v.engine.Invited(link)
		secret, damaged := v.engine.Authenticator(link, sealed)
		if failed != nil || damaged != nil {
			return v.badLink(errors.Join(failed, damaged))
		}
		view := v.invitationPage(p, link, secret, sealed) // with the authenticator that was scanned
		if view.Error = v.texts.BadPassword; wrong.Field == "code" {
			view.Error = v.texts.BadCode
		}
		a := v.view(view, reason(exchange.BadRequest))
		a.Cause = "sign_in: " + wrong.Detail
		return a
	}
	if err != nil {
		return v.badLink(err)
	}
	v.ex.User = in.Session.Person().User
	return v.view(page.View{
		Title: v.texts.Recovery, Lines: []string{v.texts.RecoveryText}, Codes: in.Recovery, Below: []page.Link{{URL: "/", Label: v.texts.Continue}},
	}, with(cookiesOf(v.engine, in)))
}

// badLink answers a link that cannot be used.
func (v *visit) badLink(err error) *exchange.Answer {
	if !errors.Is(err, people.ErrLink) {
		return v.failed(err, gate.Return{})
	}
	a := v.view(page.View{Title: v.texts.Failed, Error: v.texts.BadLink, Links: []page.Link{{URL: "/", Label: v.texts.Home}}}, reason(exchange.GateDenied))
	a.Cause = "sign_in: " + err.Error()
	return a
}
