package signin

import (
	"errors"
	"net/url"

	"headgate/internal/exchange"
	"headgate/internal/gate"
	"headgate/internal/gate/page"
)

// The paths for passkeys.
const (
	passkeyPath       = "/passkey"
	invitePasskeyPath = "/invite/passkey"
	addPasskeyPath    = "/passkey/add"
	removePasskeyPath = "/passkey/remove"
)

// askPasskey returns the form that signs in with a passkey.
func (v *visit) askPasskey(back gate.Return) []page.Form {
	q, err := v.engine.AskPasskey(v.title)
	if err != nil {
		return nil // the other ways go on
	}
	fields := append(returnFields(back), page.Field{Name: "question", Value: q.Sealed})
	return []page.Form{{Action: passkeyPath, Fields: fields, Ask: "get", Options: q.Options, Button: v.texts.PasskeySignIn}}
}

// passkey signs a person in with a passkey.
func (v *visit) passkey(form url.Values) *exchange.Answer {
	back := v.knownBack()
	in, err := v.engine.Passkey(gate.ClientOf(v.ex), form.Get("question"), form.Get("answer"), v.cookies.SignIn)
	if err != nil {
		return v.passkeyFailed(err, back)
	}
	v.ex.User = in.Session.Person().User
	return v.redirectPage("/"+again(back), cookiesOf(v.engine, in)...)
}

// passkeyFailed answers a passkey that was not accepted.
func (v *visit) passkeyFailed(err error, back gate.Return) *exchange.Answer {
	if !errors.Is(err, gate.ErrCredentials) {
		return v.failed(err, back)
	}
	a := v.view(page.View{Title: v.texts.Failed, Error: v.texts.PasskeyRefused, Links: []page.Link{{URL: "/" + again(back), Label: v.texts.TryAgain}}}, reason(exchange.GateDenied))
	a.Cause = "sign_in: " + err.Error()
	return a
}

// invitePasskey returns the form with which an invited person makes a passkey.
func (v *visit) invitePasskey(link string) []page.Form {
	q, err := v.engine.AskInvitedPasskey(link, v.title)
	if err != nil {
		return nil
	}
	return []page.Form{{
		Action: invitePasskeyPath, Fields: []page.Field{{Name: "link", Value: link}, {Name: "question", Value: q.Sealed}}, Ask: "create", Options: q.Options, Button: v.texts.NewPasskey,
	}}
}

// acceptPasskey uses an invitation link with a new passkey.
func (v *visit) acceptPasskey(form url.Values) *exchange.Answer {
	in, err := v.engine.AcceptPasskey(gate.ClientOf(v.ex), form.Get("link"), form.Get("question"), form.Get("answer"), v.cookies.SignIn)
	switch {
	case errors.Is(err, gate.ErrCredentials):
		return v.passkeyFailed(err, gate.Return{})
	case err != nil:
		return v.badLink(err)
	}
	v.ex.User = in.Session.Person().User
	return v.redirectPage("/", cookiesOf(v.engine, in)...)
}

// ownPasskeys adds the passkeys of the person who has signed in to the start page.
func (v *visit) ownPasskeys(p *page.View, s *gate.Session) {
	person, local := v.engine.LocalPerson(s)
	if !local || !v.engine.Local() {
		return
	}
	p.Passkeys = true
	for _, k := range person.Passkeys {
		day := k.Created.Format("2006-01-02")
		p.Forms = append(p.Forms, page.Form{
			Action: removePasskeyPath, Fields: []page.Field{{Name: "id", Value: k.ID}}, Button: page.Fill(v.texts.RemovePasskey, day), Plain: true,
		})
	}
	if q, err := v.engine.AskNewPasskey(s, v.title); err == nil {
		p.Forms = append(p.Forms, page.Form{Action: addPasskeyPath, Fields: []page.Field{{Name: "question", Value: q.Sealed}}, Ask: "create", Options: q.Options, Button: v.texts.AddPasskey, Plain: true})
	}
}

// changePasskeys adds or removes a passkey of the person who has signed in.
func (v *visit) changePasskeys(path string, form url.Values, s *gate.Session) *exchange.Answer {
	if s == nil {
		return page.Redirect("/")
	}
	v.ex.User = s.Person().User
	var err error
	if path == addPasskeyPath {
		err = v.engine.AddPasskey(gate.ClientOf(v.ex), s, form.Get("question"), form.Get("answer"))
	} else {
		err = v.engine.RemovePasskey(gate.ClientOf(v.ex), s, form.Get("id"))
	}
	if err != nil {
		return v.passkeyFailed(err, gate.Return{})
	}
	return page.Redirect("/")
}
