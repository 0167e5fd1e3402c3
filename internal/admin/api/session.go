package api

import (
	"errors"
	"net/http"
	"time"

	"headgate/internal/operator"
	"headgate/internal/store"
)

func (a *API) version(*call) (any, error) {
	v := a.Version
	if a.Newer != nil {
		v.Newer = a.Newer()
	}
	return v, nil
}

// empty is a body without fields.
type empty struct{}

// setupState is how people can come in.
type setupState struct {
	// Needed is whether the first user has to be made.
	Needed bool `json:"needed"`
	// OIDC is whether a sign-in provider is configured.
	OIDC bool `json:"oidc"`
	// Passkeys is whether passkeys can be used where the console is open.
	Passkeys bool `json:"passkeys"`
}

func (a *API) setupState(c *call) (any, error) {
	needed, err := a.Operators.NeedsSetup(c.rq.Context())
	return setupState{Needed: needed, OIDC: a.Operators.HasOIDC(), Passkeys: a.passkeyState(c.rq).Offered}, err
}

// setupInput makes the first user.
type setupInput struct {
	// Token is the part after # in the set-up link.
	Token string `json:"token" required:"true" writeonly:"true"`
	// User is the name that the user signs in with. The field name is accepted, too.
	User string `json:"user" required:"true" was:"name"`
	// Password has at least 10 characters and is none of the commonest.
	Password string `json:"password" required:"true" writeonly:"true"`
}

// sessionStarted is the answer to a sign-in.
type sessionStarted struct {
	// Secret is the value of the Headgate-Session header that every request must have in
	// addition to the cookie.
	Secret string `json:"secret"`
	// User is who signed in.
	User string `json:"user"`
	// Role is the user's role.
	Role string `json:"role"`
	// Expires is when the session ends at the latest. Without use it ends after 12
	// hours.
	Expires time.Time `json:"expires"`
}

// start sets the cookie of a new session and returns its other secret.
func (c *call) start(s operator.Credentials, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	http.SetCookie(c.w, &http.Cookie{
		Name: Cookie, Value: s.Cookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		MaxAge: int(time.Until(s.Expires) / time.Second),
	})
	return sessionStarted{Secret: s.Header, User: s.Session.User, Role: string(s.Session.Role), Expires: s.Expires}, nil
}

// anonymous returns the identity of a client that has not signed in yet.
func (c *call) anonymous() operator.Identity {
	return operator.Anonymous(c.api.addressOf(c.rq), "console")
}

func (a *API) setUp(c *call, in *setupInput) (any, error) {
	return c.start(a.Operators.SetUp(c.rq.Context(), c.anonymous(), in.Token, operator.SignIn{
		User: in.User, Password: in.Password, Agent: c.rq.UserAgent(), OldCookie: cookieOf(c.rq),
	}))
}

// signInInput is what people sign in with.
type signInInput struct {
	// User is the name. It may be called name, too.
	User string `json:"user" required:"true" was:"name"`
	// Password is the password.
	Password string `json:"password" required:"true" writeonly:"true"`
	// Code is one of the authenticator, or a recovery code.
	Code string `json:"code" writeonly:"true"`
}

func (a *API) signIn(c *call, in *signInInput) (any, error) {
	return c.start(a.Operators.SignIn(c.rq.Context(), c.anonymous(), operator.SignIn{
		User: in.User, Password: in.Password, Code: in.Code, Agent: c.rq.UserAgent(), OldCookie: cookieOf(c.rq),
	}))
}

func (a *API) signOut(c *call) (any, error) {
	http.SetCookie(c.w, &http.Cookie{Name: Cookie, Path: "/", Secure: true, HttpOnly: true, SameSite: http.SameSiteStrictMode, MaxAge: -1})
	switch {
	case errors.Is(c.unknown, store.ErrUnavailable), errors.Is(c.unknown, store.ErrClosed):
		return nil, c.unknown // it would go on
	case c.who.Session == "":
		return nil, nil // the cookie alone cannot end the session
	}
	return nil, a.Operators.SignOut(c.rq.Context(), c.who, cookieOf(c.rq))
}

// whoAmI is who is asking.
type whoAmI struct {
	// Name is the user's name, token:NAME, oidc:NAME or local:UID.
	Name string `json:"name"`
	// Role is what it may do.
	Role string `json:"role"`
	// Scopes narrow that; none is all.
	Scopes []string `json:"scopes,omitempty"`
	// Session is the id of the session, if there is one.
	Session string `json:"session,omitempty"`
	// TOTP is whether the user has an authenticator.
	TOTP bool `json:"totp"`
	// RecoveryCodes is how many are left.
	RecoveryCodes int `json:"recovery_codes"`
}

func (a *API) session(c *call) (any, error) {
	me := whoAmI{Name: c.who.Name, Role: string(c.who.Role), Scopes: c.who.Scopes, Session: c.who.Session}
	if u, err := a.Operators.User(c.rq.Context(), c.who.Name); err == nil && c.who.Session != "" {
		me.TOTP, me.RecoveryCodes = u.TOTP, u.RecoveryCodes
	}
	return me, nil
}

// onlySession refuses those who are no user with a session.
func (c *call) onlySession() error {
	if c.who.Session == "" {
		return refuse(operator.CodeForbidden, "", "only a user who has signed in can do this", "")
	}
	return nil
}

// verify checks the password of a signed-in user again.
func (c *call) verify(password string) error {
	if err := c.onlySession(); err != nil {
		return err
	}
	return c.api.Operators.Verify(c.rq.Context(), c.who, password)
}

// passwordInput is a new password.
type passwordInput struct {
	// CurrentPassword is the one of now.
	CurrentPassword string `json:"current_password" required:"true" writeonly:"true"`
	// Password is the new one.
	Password string `json:"password" required:"true" writeonly:"true"`
}

func (a *API) changePassword(c *call, in *passwordInput) (any, error) {
	if err := c.verify(in.CurrentPassword); err != nil {
		return nil, err
	}
	_, err := a.Operators.ChangeUser(c.rq.Context(), c.who, c.who.Name, operator.Any, operator.UserChange{Password: &in.Password}, c.dryRun)
	return nil, err
}

// verifyInput is the password of now.
type verifyInput struct {
	// CurrentPassword is the one of now.
	CurrentPassword string `json:"current_password" required:"true" writeonly:"true"`
}

// enrolment is what an authenticator needs.
type enrolment struct {
	// Secret is for typing in.
	Secret string `json:"secret"`
	// URI is for the picture that an authenticator reads.
	URI string `json:"uri"`
}

func (a *API) beginTOTP(c *call, in *verifyInput) (any, error) {
	if err := c.verify(in.CurrentPassword); err != nil {
		return nil, err
	}
	e, err := a.Operators.BeginTOTP(c.rq.Context(), c.who, c.who.Name)
	return enrolment{e.Secret, e.URI}, err
}

// codeInput is a code of an authenticator.
type codeInput struct {
	// Code has six digits.
	Code string `json:"code" required:"true" writeonly:"true"`
}

// recoveryCodes are for a lost authenticator.
type recoveryCodes struct {
	// RecoveryCodes serve once each. They are shown once.
	RecoveryCodes []string `json:"recovery_codes"`
}

func (a *API) finishTOTP(c *call, in *codeInput) (any, error) {
	if err := c.onlySession(); err != nil {
		return nil, err
	}
	codes, err := a.Operators.FinishTOTP(c.rq.Context(), c.who, c.who.Name, in.Code)
	return recoveryCodes{codes}, err
}

// oidcStart is the way to the provider.
type oidcStart struct {
	// URL is the provider's page.
	URL string `json:"url"`
	// State comes back in the address of the console's page.
	State string `json:"state"`
	// Browser is kept by the console's page and sent with the code.
	Browser string `json:"browser"`
}

func (a *API) beginOIDC(c *call, _ *empty) (any, error) {
	s, err := a.Operators.BeginOIDC(c.rq.Context(), c.anonymous())
	return oidcStart{s.URL, s.State, s.Browser}, err
}

// oidcInput is what has come back from the provider.
type oidcInput struct {
	// Code is what the provider has sent.
	Code string `json:"code" required:"true" writeonly:"true"`
	// State is what the provider has sent back.
	State string `json:"state" required:"true" writeonly:"true"`
	// Browser is what the console's page has kept.
	Browser string `json:"browser" required:"true" writeonly:"true"`
}

func (a *API) finishOIDC(c *call, in *oidcInput) (any, error) {
	return c.start(a.Operators.FinishOIDC(c.rq.Context(), c.anonymous(), operator.OIDCFinish{
		Code: in.Code, State: in.State, Browser: in.Browser, Agent: c.rq.UserAgent(), OldCookie: cookieOf(c.rq),
	}))
}

// sessionBody is a session, without its secrets.
type sessionBody struct {
	// ID identifies the session. It grants no access.
	ID string `json:"id"`
	// User is who signed in.
	User string `json:"user"`
	// Role is the user's role.
	Role string `json:"role"`
	// Method is how: password, totp, recovery_code, passkey, oidc or setup.
	Method string `json:"method"`
	// Address is where from.
	Address string `json:"address,omitempty"`
	// UserAgent is the user-agent header of the browser.
	UserAgent string `json:"user_agent,omitempty"`
	// Created is when the user signed in.
	Created time.Time `json:"created"`
	// Seen is when it was used last, accurate to a few minutes.
	Seen time.Time `json:"seen"`
	// Expires is when it ends at the latest.
	Expires time.Time `json:"expires"`
	// Current is whether it is the session of this request.
	Current bool `json:"current"`
}

// others returns the user whose sessions the operator may see; "" means all users.
func (c *call) others() string {
	if c.who.Role == operator.Admin && c.who.May(areaOperators, false) {
		return ""
	}
	return c.who.Name
}

func (a *API) sessions(c *call) (any, error) {
	all, err := a.Operators.Sessions(c.rq.Context(), c.others())
	if err != nil {
		return nil, err
	}
	entries := make([]listed, 0, len(all))
	for _, s := range all {
		entries = append(entries, listed{name: s.ID, text: s.User, keys: map[string]string{"created": s.Created.Format(time.RFC3339), "user": s.User},
			value: sessionBody{s.ID, s.User, string(s.Role), s.Method, s.Address, s.Agent, s.Created, s.Seen, s.Expires, s.ID == c.who.Session}})
	}
	return c.list(entries)
}

func (a *API) revokeSession(c *call) (any, error) {
	return nil, a.Operators.RevokeSession(c.rq.Context(), c.who, c.name(), c.others(), c.dryRun)
}
