package operator

import (
	"context"
	"net/netip"
	"strings"

	"headgate/internal/credential"
	"headgate/internal/event"
	"headgate/internal/store"
)

// SignIn is the input of a sign-in.
type SignIn struct {
	User, Password string
	// Code is one of the authenticator or a recovery code; "" if none is needed.
	Code string
	// Agent is what the browser says of itself, and OldCookie the cookie of the session
	// that it has had.
	Agent, OldCookie string
}

// SignIn starts a session. From has the address and how the request arrived. The error
// is an *Error: the same one, after the same time, for an unknown user, a disabled one
// and a wrong password; CodeTOTP when the password is right and a code is missing.
func (o *Operators) SignIn(ctx context.Context, from Identity, in SignIn) (Credentials, error) {
	name := strings.ToLower(in.User)
	if !names.MatchString(name) {
		name = ""
	}
	if err := o.throttle.try(from.Address, name); err != nil {
		o.throttled(event.Auth{User: name, Address: addressText(from.Address), Method: "password"})
		return Credentials{}, err
	}
	u, r, err := o.checkPassword(ctx, from.Address, name, in.Password)
	if err != nil {
		if e, ok := err.(*Error); ok && e.Code == CodeSignedOut {
			o.refused(event.Auth{User: name, Address: addressText(from.Address), Method: "password", Reason: "credentials"})
		}
		return Credentials{}, err
	}
	// The user may be changed at the same time, for example by another sign-in.
	for range 5 {
		var c Credentials
		if c, err = o.finish(ctx, from, u, r, in); !isStale(err) {
			return c, err
		}
		hash := u.Hash
		if u, r, err = o.user(ctx, name); err != nil || u.Hash != hash || u.Disabled {
			return Credentials{}, errCredentials()
		}
	}
	return Credentials{}, err
}

func isStale(err error) bool {
	e, ok := err.(*Error)
	return ok && e.Code == CodeStale
}

// finish checks the second factor and starts the session.
func (o *Operators) finish(ctx context.Context, from Identity, u *user, r store.Revision, in SignIn) (Credentials, error) {
	from.Name = u.Name
	s := session{Session: Session{User: u.Name, Role: u.Role, Method: "password"}, Local: true, Generation: u.Generation}
	if u.Secret != "" {
		var err error
		u.LastStep = max(u.LastStep, o.detached.lastStep(u.Name))
		if s.Method, err = o.secondFactor(u, in.Code); err != nil {
			if in.Code != "" {
				o.refused(event.Auth{User: u.Name, Address: addressText(from.Address), Method: "totp", Reason: "code"})
			}
			return Credentials{}, err
		}
	}
	u.SignedIn = o.now()
	key := store.PrefixUser + u.Name
	c, err := o.startSession(ctx, from, s, in.Agent, in.OldCookie, store.Change{
		If: []store.Condition{{Key: key, Revision: r}}, Put: []store.Entry{entry(key, u)},
	})
	if err == nil {
		o.detached.used(u.Name, u.LastStep)
		o.entered(from, u.Role, s.Method, "")
	}
	return c, err
}

// checkPassword returns the user if the password is right. It takes the same time for
// unknown users.
func (o *Operators) checkPassword(ctx context.Context, from netip.Addr, name, text string) (*user, store.Revision, error) {
	u, r, err := o.user(ctx, name)
	if e, ok := err.(*Error); ok && e.Code == CodeNotFound {
		u, err = &user{User: User{Disabled: true}}, nil
	}
	if err != nil {
		return nil, 0, err
	}
	right := false
	if err := o.throttle.check(ctx, o.throttle.known.has(from, name), func() { right = credential.Matches(u.Hash, text) }); err != nil {
		return nil, 0, err
	}
	if !right || u.Disabled {
		return nil, 0, &Error{Code: CodeSignedOut, Detail: "the user name or the password is wrong"}
	}
	return u, r, nil
}

// secondFactor accepts a code of the authenticator or a recovery code, each once: the
// remaining ones are written with the session.
func (o *Operators) secondFactor(u *user, code string) (method string, err error) {
	code = strings.TrimSpace(code)
	if code == "" {
		return "", &Error{Code: CodeTOTP, Field: "code", Detail: "a code of your authenticator is needed", Remedy: "enter the code that it shows, or a recovery code"}
	}
	if step := credential.CheckTOTP(u.Secret, code, u.LastStep, o.time()); step > 0 {
		u.LastStep = step
		return "totp", nil
	}
	if left, ok := credential.UseRecovery(u.Recovery, code); ok {
		u.Recovery = left
		return "recovery_code", nil
	}
	return "", &Error{Code: CodeSignedOut, Field: "code", Detail: "the code is wrong or was used already", Remedy: "use the newest code"}
}

// Verify checks the password of a signed-in user again, before something that matters,
// such as a new password.
func (o *Operators) Verify(ctx context.Context, by Identity, text string) error {
	if err := o.throttle.try(by.Address, by.Name); err != nil {
		return err
	}
	_, _, err := o.checkPassword(ctx, by.Address, by.Name, text)
	if e, ok := err.(*Error); ok && e.Code == CodeSignedOut {
		return &Error{Code: CodeInvalid, Field: "current_password", Detail: "the current password is wrong"}
	}
	return err
}

// refused sends the event of a rejected sign-in.
func (o *Operators) refused(a event.Auth) {
	if o.throttle.tellable() {
		o.publish(event.AuthFailed{Auth: a})
	}
}

// throttled sends the event of a throttled sign-in.
func (o *Operators) throttled(a event.Auth) {
	if o.throttle.tellable() {
		o.publish(event.AuthThrottled{Auth: a})
	}
}
