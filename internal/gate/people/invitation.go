package people

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// The times of invitations.
const (
	// InvitationAge is how long an invitation can be used unless an operator says otherwise.
	InvitationAge = 72 * time.Hour
	// MaxInvitationAge is how long at most.
	MaxInvitationAge = 30 * 24 * time.Hour
)

// invitation is what is kept of a link. The key has the digest of its secret.
type invitation struct {
	Person     string    `json:"person"`
	Generation int       `json:"generation"`
	Expires    time.Time `json:"expires"`
}

// Invite makes the secret of a link with which a person chooses credentials, once. An earlier
// link of the person does not work any more. What the person signs in with now stays.
func (p *People) Invite(ctx context.Context, by By, name string, age time.Duration, dry bool) (link string, expires time.Time, err error) {
	return p.invite(ctx, by, name, age, dry, false)
}

// Reset removes all credentials of a person, ends their sessions, and makes a link to choose
// new ones.
func (p *People) Reset(ctx context.Context, by By, name string, age time.Duration, dry bool) (link string, expires time.Time, err error) {
	return p.invite(ctx, by, name, age, dry, true)
}

func (p *People) invite(ctx context.Context, by By, name string, age time.Duration, dry, reset bool) (string, time.Time, error) {
	if age < time.Minute || age > MaxInvitationAge {
		return "", time.Time{}, &Error{Code: CodeInvalid, Field: "for", Detail: "an invitation is valid for 1m to 720h"}
	}
	a, r, err := p.account(ctx, name)
	if err != nil {
		return "", time.Time{}, err
	}
	before, action := a.shown(r), "person.invite"
	if reset {
		a.Hash, a.Secret, a.LastStep, a.Recovery, a.Keys = "", "", 0, nil, nil
		a.Generation++
		action = "person.reset"
	}
	link, old := credential.NewSecret(), a.Invitation
	a.Invitation, a.Invited = credential.Digest(link), p.now().Add(age)
	if dry {
		return "", a.Invited, nil
	}
	e := entry(keyInvitation+a.Invitation, invitation{name, a.Generation, a.Invited})
	e.TTL = age
	c := store.Change{
		If: []store.Condition{{Key: keyAccount + name, Revision: r}}, Put: []store.Entry{e},
		Append: by.record(action, name, before, a.shown(0)), Who: by.Name,
	}
	if old != "" {
		c.Delete = []string{keyInvitation + old}
	}
	if _, err := p.put(ctx, a, c); err != nil {
		return "", time.Time{}, err
	}
	return link, a.Invited, nil
}

// Withdraw makes the link of a person worthless. It is no error if there is none.
func (p *People) Withdraw(ctx context.Context, by By, name string, dry bool) error {
	a, r, err := p.account(ctx, name)
	if err != nil || a.Invitation == "" || dry {
		return err
	}
	before, old := a.shown(r), a.Invitation
	a.Invitation, a.Invited = "", time.Time{}
	_, err = p.put(ctx, a, store.Change{
		If: []store.Condition{{Key: keyAccount + name, Revision: r}}, Delete: []string{keyInvitation + old},
		Append: by.record("person.invite_withdraw", name, before, a.shown(0)), Who: by.Name,
	})
	return err
}

// Invited returns whom a link invites. The link is not used by it. The error is ErrLink, or
// wraps ErrUnavailable.
func (p *People) Invited(ctx context.Context, link string) (Person, error) {
	a, r, _, err := p.invited(ctx, link)
	if err != nil {
		return Person{}, err
	}
	return a.shown(r), nil
}

// invited returns the account of a link, with the revisions of both.
func (p *People) invited(ctx context.Context, link string) (*account, store.Revision, store.Revision, error) {
	var in invitation
	at, err := p.get(ctx, keyInvitation+credential.Digest(link), &in)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, 0, ErrLink
	}
	if err != nil {
		return nil, 0, 0, err
	}
	a, r, err := p.account(ctx, in.Person)
	if e := (*Error)(nil); errors.As(err, &e) {
		return nil, 0, 0, ErrLink
	}
	if err != nil {
		return nil, 0, 0, err
	}
	if a.Invitation != credential.Digest(link) || a.Generation != in.Generation || a.Disabled || !p.now().Before(in.Expires) {
		return nil, 0, 0, ErrLink
	}
	return a, r, at, nil
}

// NewAuthenticator returns the secret of an authenticator that is being set up.
func NewAuthenticator() string { return credential.NewTOTP() }

// Accept uses a link: the person gets a password and an authenticator whose secret was shown
// before, proven by a code. It returns the recovery codes, which are shown once. Sessions
// that the person has end. The error is an *Error of a field, ErrLink, ErrBusy, or wraps
// ErrUnavailable.
func (p *People) Accept(ctx context.Context, link, password, totp, code string, from netip.Addr) (*SignedIn, []string, error) {
	a, r, at, err := p.invited(ctx, link)
	if err != nil {
		return nil, nil, err
	}
	if err := credential.CheckPassword(a.Name, password); err != nil {
		return nil, nil, &Error{Code: CodeInvalid, Field: "password", Detail: err.Error()}
	}
	step := credential.CheckTOTP(totp, code, 0, store.Time(p.o.Store))
	if step == 0 {
		return nil, nil, &Error{Code: CodeInvalid, Field: "code", Detail: "the code is wrong"}
	}
	release, err := p.place(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	hash, err := credential.HashPassword(a.Name, password)
	release()
	if err != nil {
		return nil, nil, &Error{Code: CodeInvalid, Field: "password", Detail: err.Error()}
	}
	codes, kept := credential.NewRecovery()
	before := a.shown(r)
	a.Hash, a.Secret, a.LastStep, a.Recovery = hash, totp, step, kept
	s, err := p.accepted(ctx, a, r, at, link, "person.accept", before, from)
	return s, codes, err
}

// accepted writes an account that was set up with a link, which is used up in the same commit.
func (p *People) accepted(ctx context.Context, a *account, r, at store.Revision, link, action string, before Person, from netip.Addr) (*SignedIn, error) {
	a.Generation++
	a.SignedIn, a.Invitation, a.Invited = p.now(), "", time.Time{}
	key := keyInvitation + credential.Digest(link)
	_, err := p.put(ctx, a, store.Change{
		If: []store.Condition{{Key: keyAccount + a.Name, Revision: r}, {Key: key, Revision: at}}, Delete: []string{key},
		Append: p.own(a.Name, from).record(action, a.Name, before, a.shown(0)), Who: Provider + "/" + a.Name,
	})
	if isStale(err) {
		return nil, ErrLink // another request has used it at the same moment
	}
	if err != nil {
		return nil, err
	}
	return &SignedIn{Person: p.Listed(a.Name), Method: "invitation"}, nil
}
