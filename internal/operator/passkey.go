package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/webauthn"

	"headgate/internal/credential"
	"headgate/internal/event"
	"headgate/internal/passkey"
	"headgate/internal/store"
)

// methodPasskey is how users with a session through a passkey have signed in.
const methodPasskey = "passkey"

// recentSignIn is how long after a sign-in with a passkey a user can add another one without
// the password.
const recentSignIn = 10 * time.Minute

// maxPasskeyName is how long the name of a passkey is, in bytes.
const maxPasskeyName = 64

// PasskeyQuestion is what the console asks a browser for. Nothing is stored for it.
type PasskeyQuestion struct {
	// Options are for the browser.
	Options json.RawMessage
	// Sealed is what the answer is checked with. It is good for ten minutes and one answer.
	Sealed string
}

// PasskeyAnswer is the answer of a browser.
type PasskeyAnswer struct {
	// Sealed is that of the question, and Answer the credential as JSON.
	Sealed string
	Answer []byte
	// Agent and OldCookie are those of SignIn.
	Agent, OldCookie string
}

// ceremony is a question in progress, as it is sealed.
type ceremony struct {
	Session webauthn.SessionData `json:"s"`
	Until   time.Time            `json:"u"`
}

// The purposes of questions. They are no purposes of the gate, whose key is the same.
const (
	purposeSignIn     = "console passkey"
	purposeNewPasskey = "console new passkey of " // and the name of the user
)

func (o *Operators) question(purpose string, q passkey.Question, err error) (PasskeyQuestion, error) {
	if err != nil {
		return PasskeyQuestion{}, err
	}
	sealed, err := o.sealer.Seal(purpose, ceremony{q.Session, o.time().Add(passkey.CeremonyAge)})
	return PasskeyQuestion{q.Options, sealed}, err
}

// answered reads the question of an answer.
func (o *Operators) answered(purpose, sealed string) (webauthn.SessionData, error) {
	if err := o.sealer.Ready(); err != nil {
		return webauthn.SessionData{}, err
	}
	var c ceremony
	if !o.sealer.Open(purpose, sealed, &c) || o.time().After(c.Until) {
		return c.Session, &Error{Code: CodeInvalid, Field: "sealed", Detail: "this was not started here, or took longer than ten minutes", Remedy: "start again"}
	}
	return c.Session, nil
}

// AskPasskey returns the question of a sign-in with any passkey of the site.
func (o *Operators) AskPasskey(s passkey.Site) (PasskeyQuestion, error) {
	q, err := s.AskAny()
	return o.question(purposeSignIn, q, err)
}

// SignInPasskey starts a session with the answer of a browser to AskPasskey. A passkey stands
// for both factors: no code is required. The error is an *Error, the same one for an unknown
// passkey, a removed one, a disabled user and a wrong answer.
func (o *Operators) SignInPasskey(ctx context.Context, from Identity, s passkey.Site, in PasskeyAnswer) (Credentials, error) {
	if err := o.throttle.try(from.Address, ""); err != nil {
		o.throttled(event.Auth{Address: addressText(from.Address), Method: methodPasskey})
		return Credentials{}, err
	}
	session, err := o.answered(purposeSignIn, in.Sealed)
	if err != nil {
		return Credentials{}, err
	}
	// The user may be changed at the same time, for example by another sign-in.
	for range 5 {
		var c Credentials
		if c, err = o.finishPasskey(ctx, from, s, session, in); !isStale(err) {
			return c, err
		}
		_, answered := passkey.Answered(store.PrefixPasskey, session)
		if _, err := o.store.Get(ctx, answered.Key); !errors.Is(err, store.ErrNotFound) {
			return Credentials{}, o.refusePasskey(from, "", "replay")
		}
	}
	return Credentials{}, err
}

func (o *Operators) finishPasskey(ctx context.Context, from Identity, s passkey.Site, asked webauthn.SessionData, in PasskeyAnswer) (Credentials, error) {
	var u *user
	var r store.Revision
	place, used, cloned, err := s.Check(asked, in.Answer, func(handle string) (owner passkey.Owner, err error) {
		if u, r, err = o.byHandle(ctx, handle); err != nil {
			return owner, err
		}
		return u.owner(), nil
	})
	name := ""
	if u != nil {
		name = u.Name
	}
	if errors.Is(err, passkey.ErrAnswer) {
		o.log.Debug("a passkey was not accepted", "user", name, "error", err)
	}
	if errors.Is(err, passkey.ErrAnswer) || err == nil && u.Disabled {
		return Credentials{}, o.refusePasskey(from, name, "credentials")
	}
	if err != nil {
		return Credentials{}, err
	}
	u.Keys[place], u.SignedIn = used, o.now()
	from.Name = u.Name
	key := store.PrefixUser + u.Name
	condition, answered := passkey.Answered(store.PrefixPasskey, asked)
	c, err := o.createSession(ctx, from,
		session{Session: Session{User: u.Name, Role: u.Role, Method: methodPasskey}, Local: true, Generation: u.Generation, Passkey: used.ID},
		in.Agent, in.OldCookie, store.Change{If: []store.Condition{{Key: key, Revision: r}, condition}, Put: []store.Entry{entry(key, u), answered}})
	if err != nil && o.shared && isAway(err) {
		return c, &Error{Code: CodeStore, Detail: "a passkey is not accepted while the shared store is unavailable, because its answer could be used again",
			Remedy: "sign in with your password", RetryAfter: storeRetry}
	}
	if err != nil {
		return c, err
	}
	warning := ""
	if cloned {
		warning = passkey.ClonedWarning
	}
	o.entered(from, u.Role, methodPasskey, warning)
	return c, nil
}

// refusePasskey counts and reports an answer that was not accepted. Answers in the name of a
// user count for that user, as passwords do.
func (o *Operators) refusePasskey(from Identity, name, reason string) error {
	_ = o.throttle.try(netip.Addr{}, name)
	o.refused(event.Auth{User: name, Address: addressText(from.Address), Method: methodPasskey, Reason: reason})
	return &Error{Code: CodeSignedOut, Detail: "the passkey was not accepted", Remedy: "sign in with your password"}
}

// byHandle returns the user with a user handle of passkeys. The error wraps
// passkey.ErrAnswer if there is none.
func (o *Operators) byHandle(ctx context.Context, handle string) (*user, store.Revision, error) {
	entries, _, err := o.store.Snapshot(ctx, store.PrefixUser)
	if err != nil {
		return nil, 0, fmt.Errorf("list users: %w", err)
	}
	for _, e := range entries {
		u := &user{}
		if json.Unmarshal(e.Value, u) == nil && u.Handle != "" && credential.SameSecret(u.Handle, handle) {
			return u, e.Revision, nil
		}
	}
	return nil, 0, fmt.Errorf("%w: no user has it", passkey.ErrAnswer)
}

// owner returns a user as who has passkeys.
func (u *user) owner() passkey.Owner {
	return passkey.Owner{Name: u.Name, Handle: u.Handle, Keys: u.Keys}
}

// hasPasskey reports whether a user has a passkey with an id.
func (u *user) hasPasskey(id string) bool {
	return slices.ContainsFunc(u.Keys, func(k passkey.Key) bool { return k.ID == id })
}

// SignedInWithPasskey reports whether the session with a cookie was started with a passkey
// within the last ten minutes.
func (o *Operators) SignedInWithPasskey(ctx context.Context, cookie string) bool {
	s, _, err := o.session(ctx, store.PrefixSession+credential.Digest(cookie))
	return err == nil && s.Method == methodPasskey && o.time().Sub(s.Created) < recentSignIn
}

// AskNewPasskey returns the question for a new passkey of a user.
func (o *Operators) AskNewPasskey(ctx context.Context, s passkey.Site, name string) (PasskeyQuestion, error) {
	u, _, err := o.user(ctx, name)
	if err != nil {
		return PasskeyQuestion{}, err
	}
	if u.Handle == "" {
		u.Handle = passkey.NewHandle() // the question has it, and AddPasskey keeps it
	}
	q, err := s.AskNew(u.owner())
	return o.question(purposeNewPasskey+name, q, err)
}

// AddPasskey adds the passkey of the answer of a browser to AskNewPasskey, with a name of 1 to
// 64 bytes for people.
func (o *Operators) AddPasskey(ctx context.Context, by Identity, s passkey.Site, user, name string, in PasskeyAnswer) (passkey.Passkey, error) {
	if name = strings.TrimSpace(name); name == "" || len(name) > maxPasskeyName || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' }) {
		return passkey.Passkey{}, &Error{Code: CodeInvalid, Field: "name", Detail: "the name of the passkey is empty, too long or has control characters", Remedy: "write 1 to 64 bytes, such as Phone"}
	}
	asked, err := o.answered(purposeNewPasskey+user, in.Sealed)
	if err != nil {
		return passkey.Passkey{}, err
	}
	u, r, err := o.user(ctx, user)
	if err != nil {
		return passkey.Passkey{}, err
	}
	if u.Handle == "" {
		u.Handle = string(asked.UserID)
	}
	before := u.seen(r)
	key, err := s.Create(u.owner(), asked, in.Answer)
	switch {
	case errors.Is(err, passkey.ErrAnswer):
		o.log.Debug("a new passkey was not accepted", "user", user, "error", err)
		return key.Passkey, &Error{Code: CodeInvalid, Field: "answer", Detail: passkey.ErrAnswer.Error(), Remedy: "start again"}
	case errors.Is(err, passkey.ErrKnown):
		return key.Passkey, &Error{Code: CodeExists, Detail: err.Error(), Remedy: "use another device"}
	case errors.Is(err, passkey.ErrTooMany):
		return key.Passkey, &Error{Code: CodeInvalid, Detail: err.Error(), Remedy: "remove one of them"}
	case err != nil:
		return key.Passkey, err
	}
	key.Name = name
	u.Keys = append(u.Keys, key)
	condition, answered := passkey.Answered(store.PrefixPasskey, asked)
	_, err = o.putUser(ctx, by, u, store.Change{
		If: []store.Condition{{Key: store.PrefixUser + user, Revision: r}, condition}, Put: []store.Entry{answered},
	}, "user.passkey_add", before)
	return key.Passkey, err
}

// RemovePasskey removes a passkey of a user, or all for "". It is no longer accepted,
// and sessions that were started with it end. With dry it only returns what the user
// would be.
func (o *Operators) RemovePasskey(ctx context.Context, by Identity, name, id string, dry bool) (User, error) {
	u, r, err := o.user(ctx, name)
	if err != nil {
		return User{}, err
	}
	before, had := u.seen(r), len(u.Keys)
	u.Keys = slices.DeleteFunc(u.Keys, func(k passkey.Key) bool { return id == "" || k.ID == id })
	switch {
	case id != "" && len(u.Keys) == had:
		return User{}, &Error{Code: CodeNotFound, Detail: "the user has no such passkey"}
	case dry || len(u.Keys) == had:
		return u.seen(r), nil
	}
	return o.putUser(ctx, by, u, store.Change{If: []store.Condition{{Key: store.PrefixUser + name, Revision: r}}}, "user.passkey_remove", before)
}
