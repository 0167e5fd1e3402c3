package people

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// Passkey is a passkey as others see it.
type Passkey struct {
	// ID identifies the passkey among those of the person. It opens nothing.
	ID string `json:"id"`
	// Host is the sign-in host that it was made at, where alone it works.
	Host string `json:"host"`
	// Synced is whether the device keeps it with its other devices.
	Synced bool `json:"synced"`
	// Created is when it was made, and Used when it was used to sign in last.
	Created time.Time `json:"created"`
	Used    time.Time `json:"used,omitzero"`
}

// key is what is kept of a passkey.
type key struct {
	Passkey
	Credential webauthn.Credential `json:"credential"`
}

// handleLength is the length of a user handle: 256 bits in Base64.
const handleLength = 43

// maxPasskeys is how many passkeys one person has.
const maxPasskeys = 20

// CeremonyAge is how long a person has to answer the browser's question for a passkey.
const CeremonyAge = 10 * time.Minute

// Site is where passkeys are used: the sign-in page.
type Site struct {
	// Host is the relying party: exactly the sign-in host, so that no sibling can use the
	// passkeys. Origins are its origins, with the port where it is not that of https.
	Host    string
	Origins []string
	// Title is shown by the browser.
	Title string
}

func (s Site) party() (*webauthn.WebAuthn, error) {
	return webauthn.New(&webauthn.Config{
		RPID: s.Host, RPDisplayName: s.Title, RPOrigins: s.Origins, AttestationPreference: protocol.PreferNoAttestation,
		Timeouts: webauthn.TimeoutsConfig{
			Login:        webauthn.TimeoutConfig{Enforce: true, Timeout: CeremonyAge, TimeoutUVD: CeremonyAge},
			Registration: webauthn.TimeoutConfig{Enforce: true, Timeout: CeremonyAge, TimeoutUVD: CeremonyAge},
		},
	})
}

// Ceremony is what a browser is asked for, and what is needed to check its answer. Session is
// for the caller to seal: it is bound to one challenge.
type Ceremony struct {
	Options json.RawMessage
	Session webauthn.SessionData
}

// user is a person as the library reads them. Only passkeys of the host count.
type user struct {
	*account
	host string
}

func (u user) WebAuthnID() []byte          { return []byte(u.Handle) }
func (u user) WebAuthnName() string        { return u.Name }
func (u user) WebAuthnDisplayName() string { return u.Name }

func (u user) WebAuthnCredentials() (all []webauthn.Credential) {
	for i := range u.Keys {
		if u.Keys[i].Host == u.host {
			all = append(all, u.Keys[i].Credential)
		}
	}
	return all
}

// AskPasskey begins a sign-in with any passkey of the site.
func (p *People) AskPasskey(s Site) (c Ceremony, err error) {
	party, err := s.party()
	if err != nil {
		return c, err
	}
	options, session, err := party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return c, err
	}
	c.Session = *session
	c.Options, err = json.Marshal(options.Response)
	return c, err
}

// Passkey signs a person in with the answer of a browser. The error is ErrCredentials, or
// wraps ErrUnavailable.
func (p *People) Passkey(ctx context.Context, s Site, session webauthn.SessionData, answer []byte) (*SignedIn, error) {
	party, err := s.party()
	if err != nil {
		return nil, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return nil, fmt.Errorf("%w: read the answer of a passkey: %v", ErrCredentials, details(err))
	}
	for range 5 {
		var a *account
		var r store.Revision
		var failed error
		_, found, err := party.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
			if a, r, failed = p.byHandle(ctx, string(handle)); failed != nil {
				return nil, failed
			}
			return user{a, s.Host}, nil
		}, session, parsed)
		if errors.Is(failed, ErrUnavailable) {
			return nil, failed
		}
		if err != nil || a == nil || a.Disabled {
			return nil, fmt.Errorf("%w: check the answer of a passkey: %v", ErrCredentials, details(err))
		}
		in, err := p.usedPasskey(ctx, a, r, found, session)
		if !isStale(err) {
			return in, err
		}
		// Either the challenge was answered before, or the person was changed at the same moment.
		if _, err := p.o.Store.Get(ctx, usedKey(session)); !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("%w: the answer of a passkey was used before", ErrCredentials)
		}
	}
	return nil, ErrUnavailable
}

// usedKey is where it is kept that a challenge was answered: each is accepted once.
func usedKey(s webauthn.SessionData) string { return keyUsed + credential.Digest(s.Challenge) }

func used(s webauthn.SessionData) store.Entry {
	e := entry(usedKey(s), true)
	e.TTL = CeremonyAge + time.Minute
	return e
}

// usedPasskey writes that a passkey was used. A counter that did not grow may be of a copy of
// the passkey: synced passkeys have none, and devices lose theirs, so it is reported and not
// refused.
func (p *People) usedPasskey(ctx context.Context, a *account, r store.Revision, found *webauthn.Credential, session webauthn.SessionData) (*SignedIn, error) {
	in := &SignedIn{Method: "passkey"}
	for i := range a.Keys {
		if k := &a.Keys[i]; slices.Equal(k.Credential.ID, found.ID) {
			if found.Authenticator.CloneWarning {
				in.Warning = "the counter of the passkey did not grow: the passkey may have been copied"
				found.Authenticator.CloneWarning = false // of this sign-in
			}
			k.Credential, k.Used = *found, now()
		}
	}
	a.SignedIn = now()
	_, err := p.put(ctx, a, store.Change{
		If:  []store.Condition{{Key: keyAccount + a.Name, Revision: r}, {Key: usedKey(session)}},
		Put: []store.Entry{used(session)}, Who: "headgate", Why: "signed in",
	})
	in.Person = p.Listed(a.Name)
	return in, err
}

// byHandle returns the account with a user handle of passkeys.
func (p *People) byHandle(ctx context.Context, handle string) (*account, store.Revision, error) {
	if len(handle) != handleLength {
		return nil, 0, ErrCredentials
	}
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
func (p *People) AskNewPasskey(ctx context.Context, s Site, name string) (c Ceremony, err error) {
	a, _, err := p.account(ctx, name)
	if err != nil {
		return c, err
	}
	return p.askNew(s, a)
}

// AskInvited begins to make a passkey for a person who has an invitation link.
func (p *People) AskInvited(ctx context.Context, s Site, link string) (c Ceremony, err error) {
	a, _, _, err := p.invited(ctx, link)
	if err != nil {
		return c, err
	}
	return p.askNew(s, a)
}

func (p *People) askNew(s Site, a *account) (c Ceremony, err error) {
	party, err := s.party()
	if err != nil {
		return c, err
	}
	u := user{a, s.Host}
	options, session, err := party.BeginRegistration(u,
		webauthn.WithExclusions(webauthn.Credentials(u.WebAuthnCredentials()).CredentialDescriptors()),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(), UserVerification: protocol.VerificationRequired,
		}))
	if err != nil {
		return c, err
	}
	c.Session = *session
	c.Options, err = json.Marshal(options.Response)
	return c, err
}

// addKey checks the answer of a browser to askNew, and adds the passkey to the account.
func (a *account) addKey(s Site, session webauthn.SessionData, answer []byte) error {
	party, err := s.party()
	if err != nil {
		return err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return fmt.Errorf("%w: read a new passkey: %v", ErrCredentials, details(err))
	}
	c, err := party.CreateCredential(user{a, s.Host}, session, parsed)
	if err != nil {
		return fmt.Errorf("%w: check a new passkey: %v", ErrCredentials, details(err))
	}
	if len(a.Keys) >= maxPasskeys {
		return &Error{Code: CodeInvalid, Detail: fmt.Sprintf("a person has at most %d passkeys", maxPasskeys)}
	}
	id := base64.RawURLEncoding.EncodeToString(c.ID)
	if slices.ContainsFunc(a.Keys, func(k key) bool { return slices.Equal(k.Credential.ID, c.ID) }) {
		return &Error{Code: CodeExists, Detail: "the person has the passkey already"}
	}
	c.Attestation = webauthn.CredentialAttestation{} // it was not asked for
	a.Keys = append(a.Keys, key{Passkey{ID: credential.Digest(id)[:16], Host: s.Host, Synced: c.Flags.BackupEligible, Created: now()}, *c})
	return nil
}

// AddPasskey adds a passkey to a person who has signed in.
func (p *People) AddPasskey(ctx context.Context, s Site, name string, session webauthn.SessionData, answer []byte, from netip.Addr) error {
	a, r, err := p.account(ctx, name)
	if err != nil {
		return err
	}
	before := a.shown(r)
	if err := a.addKey(s, session, answer); err != nil {
		return err
	}
	return p.putKeys(ctx, a, r, s, session, before, "person.passkey_add", from)
}

func (p *People) putKeys(ctx context.Context, a *account, r store.Revision, s Site, session webauthn.SessionData, before Person, action string, from netip.Addr) error {
	c := store.Change{
		If:     []store.Condition{{Key: keyAccount + a.Name, Revision: r}, {Key: usedKey(session)}},
		Put:    []store.Entry{used(session)},
		Append: p.own(a.Name, from).record(action, a.Name, before, a.shown(0)), Who: Provider + "/" + a.Name,
	}
	_, err := p.put(ctx, a, c)
	return err
}

// AcceptPasskey uses an invitation link: the person gets a passkey. Sessions that the person
// has end. The error is ErrLink, ErrCredentials, or wraps ErrUnavailable.
func (p *People) AcceptPasskey(ctx context.Context, s Site, link string, session webauthn.SessionData, answer []byte, from netip.Addr) (*SignedIn, error) {
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
	at := slices.IndexFunc(a.Keys, func(k key) bool { return k.ID == id })
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

// details returns what the library says of an error to developers; its Error says little.
func details(err error) error {
	if e := (*protocol.Error)(nil); errors.As(err, &e) && e.DevInfo != "" {
		return fmt.Errorf("%s: %s", e.Details, e.DevInfo)
	} else if e != nil {
		return errors.New(e.Details)
	}
	return err
}
