package gate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"headgate/internal/credential"
	"headgate/internal/gate/icon"
	"headgate/internal/gate/people"
	"headgate/internal/gate/provider"
)

// People are those kept by headgate.
func (e *Engine) People() *people.People { return e.people }

// Local reports whether people kept by headgate can sign in.
func (e *Engine) Local() bool { return e.use.Load().config.Local }

// Applications returns the applications with a gate, by host.
func (e *Engine) Applications() []Application {
	if u := e.use.Load(); u.sites != nil {
		return u.sites.Applications()
	}
	return nil
}

// Icon returns the icon of an application. It may wait for its servers for 5 s; nil is none.
func (e *Engine) Icon(a *Application) *icon.Icon { return e.icons.Of(a.Host, a.Source) }

// localPerson returns a person kept by headgate.
func localPerson(l *people.Listed) *Person {
	p := &Person{ID: people.Provider + "/" + l.Name, Provider: people.Provider, User: l.Name, Name: l.FullName, Email: l.Email, Groups: l.Groups}
	return p.ready()
}

// localIssuer replaces a provider's URL in sessions of people kept by headgate. Sessions of
// another generation do not count.
func localIssuer(l *people.Listed) string { return people.Provider + ":" + strconv.Itoa(l.Generation) }

// knows reports whether a session of a person kept by headgate counts.
func (u *inUse) knows(s *Session) bool {
	if !u.config.Local || u.people == nil {
		return false
	}
	l := u.people.Listed(s.Person().ID[len(people.Provider)+1:])
	return l != nil && !l.Disabled && localIssuer(l) == s.Issuer()
}

// personChanged ends the sessions of a person kept by headgate who may not go on with them,
// and lets the others go on with what is known of the person now.
func (e *Engine) personChanged(name string) {
	l, id := e.people.Listed(name), people.Provider+"/"+name
	for _, s := range e.sessions.all() {
		switch {
		case s.Person().ID != id:
		case l == nil || l.Disabled || localIssuer(l) != s.Issuer():
			e.endLogged(s)
			e.forget(s.key) // also if the store is away
		default:
			s.setPerson(localPerson(l))
		}
	}
	if l == nil || l.Disabled {
		e.localTokens(id, l == nil)
	} else {
		e.updateTokens(localPerson(l), localIssuer(l))
	}
}

// ErrCredentials is of a wrong name, password or code.
var ErrCredentials = people.ErrCredentials

// Entered is a sign-in that has succeeded.
type Entered struct {
	// Secret is that of the session, for the cookie of the sign-in host.
	Secret string
	// Session is the new session.
	Session *Session
	// Known is the value of Set-Cookie that makes the browser a known one.
	Known string
	// Recovery are the recovery codes of a new authenticator, which are shown once.
	Recovery []string
}

// Password signs a person kept by headgate in with a name or an e-mail address, a password
// and a code. Old is the secret of the session that the browser had, which ends. The error
// is ErrCredentials, ErrThrottled, or wraps ErrUnavailable.
func (e *Engine) Password(c *Client, login, password, code, old string) (*Entered, error) {
	if !e.Local() {
		return nil, ErrExpired
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	known := e.knownOf(c.Cookies.Known)
	in, err := e.people.SignIn(ctx, people.Attempt{Login: login, Password: password, Code: code, Address: c.Address, Browser: known.of})
	if err != nil {
		return nil, e.localFailed(c, login, err)
	}
	return e.entered(c, in, known, old)
}

// localFailed reports a failed sign-in, and returns the error that the page has a text for.
func (e *Engine) localFailed(c *Client, login string, err error) error {
	throttled := (*people.Throttled)(nil)
	switch {
	case errors.As(err, &throttled):
		err = fmt.Errorf("%w: %v", ErrThrottled, err)
	case errors.Is(err, people.ErrCredentials), errors.Is(err, people.ErrLink):
	default:
		e.o.Log.Warn("a person cannot sign in", "client_ip", c.Address.String(), "error", err)
		return fmt.Errorf("%w: %v", ErrUnavailable, err)
	}
	e.refusals.Add(1)
	ev := Event{Kind: SignInFailed, Provider: people.Provider, Address: c.Address, Cause: err.Error()}
	if e.people.Listed(login) != nil { // other texts may be passwords in the wrong field
		ev.Person = people.Provider + "/" + login
	}
	e.publish(ev)
	return err
}

// entered makes the session of a person kept by headgate.
func (e *Engine) entered(c *Client, in *people.SignedIn, known known, old string) (*Entered, error) {
	if in.Person == nil {
		return nil, ErrExpired // removed at the same moment
	}
	secret, s, err := e.createSession(localPerson(in.Person), localIssuer(in.Person), provider.Grant{}, c, old)
	if err != nil {
		return nil, err
	}
	e.signIns.Add(1)
	e.publish(Event{Kind: SignedIn, Person: s.Person().ID, Provider: people.Provider, Address: c.Address, Method: in.Method, Cause: in.Warning})
	return &Entered{Secret: secret, Session: s, Known: e.knownCookie(known, in.Person)}, nil
}

// Invited returns whom an invitation link invites, and the secret of a new authenticator for
// the page, with its sealed form for the form of the page.
func (e *Engine) Invited(link string) (p people.Person, secret, sealed string, err error) {
	if !e.Local() || !IsSecret(link) {
		return p, "", "", people.ErrLink
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	if p, err = e.people.Invited(ctx, link); err != nil {
		return p, "", "", linkError(err)
	}
	secret = people.NewAuthenticator()
	sealed, err = e.sealText("totp "+link, secret)
	return p, secret, sealed, err
}

// Authenticator returns the secret of a sealed form.
func (e *Engine) Authenticator(link, sealed string) (string, error) {
	var secret string
	if !e.openText("totp "+link, sealed, &secret) {
		return "", people.ErrLink
	}
	return secret, nil
}

// AuthenticatorURI returns what an authenticator reads from a QR code.
func (*Engine) AuthenticatorURI(issuer, name, secret string) string {
	return credential.TOTPURI(issuer, name, secret)
}

// Accept uses an invitation link: the person gets a password and the authenticator of a
// sealed form, proven by a code, and is signed in. The error is a *people.Error of a field,
// people.ErrLink, or wraps ErrUnavailable.
func (e *Engine) Accept(c *Client, link, password, sealed, code, old string) (*Entered, error) {
	secret, err := e.Authenticator(link, sealed)
	if err != nil || !e.Local() {
		return nil, people.ErrLink
	}
	ctx, stop := context.WithTimeout(context.Background(), storeTimeout)
	defer stop()
	in, codes, err := e.people.Accept(ctx, link, password, secret, code, c.Address)
	if err != nil {
		return nil, linkError(err)
	}
	out, err := e.entered(c, in, e.knownOf(c.Cookies.Known), old)
	if err == nil {
		out.Recovery = codes
	}
	return out, err
}

func linkError(err error) error {
	if field := (*people.Error)(nil); errors.As(err, &field) || errors.Is(err, people.ErrLink) {
		return err
	}
	return fmt.Errorf("%w: %v", ErrUnavailable, err)
}

// known are the people who have signed in in a browser before, as its cookie has them.
type known []knownPerson

type knownPerson struct {
	Name       string `json:"n"`
	Generation int    `json:"g"`
	ID         string `json:"i"`
}

const (
	// maxKnown is how many people a browser knows.
	maxKnown = 5
	// knownAge is how long a browser is known without a sign-in.
	knownAge = 365 * 24 * time.Hour
)

// of returns what identifies the browser for a person, "" if it does not know the person.
func (k known) of(name string, generation int) string {
	for _, p := range k {
		if p.Name == name && p.Generation == generation {
			return p.ID
		}
	}
	return ""
}

// knownOf reads the cookie of a browser.
func (e *Engine) knownOf(cookie string) (k known) {
	if cookie == "" || !e.openText(CookieKnown, cookie, &k) {
		return nil
	}
	return k
}

// knownCookie returns the value of Set-Cookie for a browser in which a person has signed in.
func (e *Engine) knownCookie(k known, l *people.Listed) string {
	k = slices.DeleteFunc(slices.Clone(k), func(p knownPerson) bool { return p.Name == l.Name })
	k = append(known{{l.Name, l.Generation, credential.NewSecret()}}, k...)
	sealed, err := e.sealText(CookieKnown, k[:min(len(k), maxKnown)])
	if err != nil {
		return ""
	}
	return SetCookie(CookieKnown, sealed, knownAge)
}
