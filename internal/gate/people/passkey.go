package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"github.com/go-webauthn/webauthn/webauthn"

	"headgate/internal/passkey"
	"headgate/internal/store"
)

// owner returns a person as who has passkeys.
func (a *account) owner() passkey.Owner {
	return passkey.Owner{Name: a.Name, Handle: a.Handle, Keys: a.Keys}
}

// AskPasskey begins a sign-in with any passkey of the site.
func (p *People) AskPasskey(s passkey.Site) (passkey.Question, error) { return s.AskAny() }

// Passkey signs a person in with the answer of a browser. The error is ErrCredentials, or
// wraps ErrUnavailable.
func (p *People) Passkey(ctx context.Context, s passkey.Site, session webauthn.SessionData, answer []byte) (*SignedIn, error) {
	for range 5 {
		var a *account
		var r store.Revision
		place, used, cloned, err := s.Check(session, answer, func(handle string) (o passkey.Owner, err error) {
			if a, r, err = p.byHandle(ctx, handle); err != nil {
				return o, err
			}
			return a.owner(), nil
		})
		if errors.Is(err, ErrUnavailable) {
			return nil, err
		}
		if err != nil || a.Disabled {
			return nil, fmt.Errorf("%w: %v", ErrCredentials, err)
		}
		a.Keys[place] = used
		in, err := p.usedPasskey(ctx, a, r, session)
		if cloned {
			in.Warning = passkey.ClonedWarning
		}
		if !isStale(err) {
			return in, err
		}
		// Either the challenge was answered before, or the person was changed at the same moment.
		answered, _ := passkey.Answered(keyUsed, session)
		if _, err := p.o.Store.Get(ctx, answered.Key); !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: the answer of a passkey was used before", ErrCredentials)
		}
	}
	return nil, ErrUnavailable
}

// usedPasskey writes that a passkey was used.
func (p *People) usedPasskey(ctx context.Context, a *account, r store.Revision, session webauthn.SessionData) (*SignedIn, error) {
	a.SignedIn = p.now()
	condition, answered := passkey.Answered(keyUsed, session)
	_, err := p.put(ctx, a, store.Change{
		If:  []store.Condition{{Key: keyAccount + a.Name, Revision: r}, condition},
		Put: []store.Entry{answered}, Who: "headgate", Why: "signed in",
	})
	return &SignedIn{Method: "passkey", Person: p.Listed(a.Name)}, err
}

// byHandle returns the account with a user handle of passkeys.
func (p *People) byHandle(ctx context.Context, handle string) (*account, store.Revision, error) {
	var name string
	if _, err := p.get(ctx, keyHandle+handle, &name); err != nil {
		if errors.Is(err, store.ErrNotFound) {
			err = ErrCredentials
		}
		return nil, 0, err
	}
	a, r, err := p.account(ctx, name)
	if e := (*Error)(nil); errors.As(err, &e) || err == nil && a.Handle != handle {
		return nil, 0, ErrCredentials
	}
	return a, r, err
}

// AskNewPasskey begins to make a passkey for a person.
func (p *People) AskNewPasskey(ctx context.Context, s passkey.Site, name string) (q passkey.Question, err error) {
	a, _, err := p.account(ctx, name)
	if err != nil {
		return q, err
	}
	return s.AskNew(a.owner())
}

// AskInvited begins to make a passkey for a person who has an invitation link.
func (p *People) AskInvited(ctx context.Context, s passkey.Site, link string) (q passkey.Question, err error) {
	a, _, _, err := p.invited(ctx, link)
	if err != nil {
		return q, err
	}
	return s.AskNew(a.owner())
}

// addKey checks the answer of a browser to a question for a new passkey, and adds the passkey
// to the account.
func (a *account) addKey(s passkey.Site, session webauthn.SessionData, answer []byte) error {
	key, err := s.Create(a.owner(), session, answer)
	switch {
	case errors.Is(err, passkey.ErrAnswer):
		return fmt.Errorf("%w: %v", ErrCredentials, err)
	case errors.Is(err, passkey.ErrTooMany):
		return &Error{Code: CodeInvalid, Detail: err.Error(), Remedy: "remove one of them"}
	case errors.Is(err, passkey.ErrKnown):
		return &Error{Code: CodeExists, Detail: err.Error()}
	case err != nil:
		return err
	}
	a.Keys = append(a.Keys, key)
	return nil
}

// AddPasskey adds a passkey to a person who has signed in.
func (p *People) AddPasskey(ctx context.Context, s passkey.Site, name string, session webauthn.SessionData, answer []byte, from netip.Addr) error {
	a, r, err := p.account(ctx, name)
	if err != nil {
		return err
	}
	before := a.shown(r)
	if err := a.addKey(s, session, answer); err != nil {
		return err
	}
	condition, answered := passkey.Answered(keyUsed, session)
	_, err = p.put(ctx, a, store.Change{
		If:     []store.Condition{{Key: keyAccount + a.Name, Revision: r}, condition},
		Put:    []store.Entry{answered},
		Append: p.own(a.Name, from).record("person.passkey_add", a.Name, before, a.shown(0)), Who: Provider + "/" + a.Name,
	})
	return err
}

// AcceptPasskey uses an invitation link: the person gets a passkey. Sessions that the person
// has end. The error is ErrLink, ErrCredentials, or wraps ErrUnavailable.
func (p *People) AcceptPasskey(ctx context.Context, s passkey.Site, link string, session webauthn.SessionData, answer []byte, from netip.Addr) (*SignedIn, error) {
	a, r, at, err := p.invited(ctx, link)
	if err != nil {
		return nil, err
	}
	before := a.shown(r)
	if err := a.addKey(s, session, answer); err != nil {
		return nil, err
	}
	return p.accepted(ctx, a, r, at, link, "person.accept", before, from)
}

// RemovePasskey removes a passkey of a person.
func (p *People) RemovePasskey(ctx context.Context, by By, name, id string, dry bool) error {
	a, r, err := p.account(ctx, name)
	if err != nil {
		return err
	}
	before := a.shown(r)
	at := slices.IndexFunc(a.Keys, func(k passkey.Key) bool { return k.ID == id })
	if at < 0 {
		return &Error{Code: CodeNotFound, Detail: "the person has no such passkey"}
	}
	if a.Keys = slices.Delete(a.Keys, at, at+1); dry {
		return nil
	}
	_, err = p.put(ctx, a, store.Change{
		If:     []store.Condition{{Key: keyAccount + name, Revision: r}},
		Append: by.record("person.passkey_remove", name, before, a.shown(0)), Who: by.Name,
	})
	return err
}

// Own returns a person as the one who changes what is theirs.
func (p *People) Own(name string, from netip.Addr) By { return p.own(name, from) }
