// Package passkey checks passkeys (WebAuthn): those of people at the sign-in page, and those
// of operators at the console. A Site asks a browser for a new passkey with AskNew and checks
// the answer with Create; it asks for any passkey with AskAny and checks the answer with Check.
//
// It stores nothing. The caller keeps the keys of an owner, and gives a question to the
// browser sealed (package seal); Answered is what it writes so that each is answered once.
package passkey

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// Passkey is a passkey as others see it.
type Passkey struct {
	// ID identifies the passkey among those of its owner. It opens nothing.
	ID string `json:"id"`
	// Name is what its owner calls it. People give theirs no name.
	Name string `json:"name,omitempty"`
	// Host is the host name that it was created at, where alone it works.
	Host string `json:"host"`
	// Synced is whether the device keeps it with its other devices.
	Synced bool `json:"synced"`
	// Created is when the passkey was created.
	Created time.Time `json:"created"`
	// Used is when it was last used to sign in.
	Used time.Time `json:"used,omitzero"`
}

// Key is what is kept of a passkey.
type Key struct {
	Passkey
	Credential webauthn.Credential `json:"credential"`
}

// Shown returns keys as others see them.
func Shown(keys []Key) (all []Passkey) {
	for i := range keys {
		all = append(all, keys[i].Passkey)
	}
	return all
}

// Max is how many passkeys one owner has.
const Max = 20

// CeremonyAge is how long a person has to answer the browser's question for a passkey.
const CeremonyAge = 10 * time.Minute

// ClonedWarning is what is reported of a passkey whose counter did not grow.
const ClonedWarning = "the counter of the passkey did not grow: the passkey may have been copied"

// Errors of answers.
var (
	// ErrAnswer is wrapped when an answer is not accepted. What is added is for the log.
	ErrAnswer = errors.New("the passkey was not accepted")
	// ErrKnown is returned when the owner has the passkey already.
	ErrKnown = errors.New("the passkey exists already")
	// ErrTooMany is returned when the owner has Max passkeys.
	ErrTooMany = fmt.Errorf("there are %d passkeys already, which is the limit", Max)
)

// Site is where passkeys are used.
type Site struct {
	// Host is the relying party: exactly the host name of the page, so that no sibling can
	// use the passkeys. Origins are its origins, with the port where it is not that of https.
	Host    string
	Origins []string
	// Title is shown by the browser.
	Title string
}

func (s Site) party() (*webauthn.WebAuthn, error) {
	return webauthn.New(&webauthn.Config{
		RPID: s.Host, RPDisplayName: s.Title, RPOrigins: s.Origins, AttestationPreference: protocol.PreferNoAttestation,
		Timeouts: webauthn.TimeoutsConfig{
			Login:        webauthn.TimeoutConfig{Timeout: CeremonyAge, TimeoutUVD: CeremonyAge},
			Registration: webauthn.TimeoutConfig{Timeout: CeremonyAge, TimeoutUVD: CeremonyAge},
		},
	})
}

// Question is what a browser is asked for, and what is needed to check its answer. Session is
// for the caller to seal: it is bound to one challenge.
type Question struct {
	Options json.RawMessage
	Session webauthn.SessionData
}

// handleLength is the length of a user handle: 256 bits in Base64.
const handleLength = 43

// NewHandle returns a user handle for a new owner.
func NewHandle() string { return credential.NewSecret() }

// Owner is who has passkeys.
type Owner struct {
	// Name is shown by the browser. Handle identifies the owner to it, and shows nothing.
	Name, Handle string
	Keys         []Key
}

// user is an owner as the library reads them. Only passkeys of the host count.
type user struct {
	Owner
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

// AskAny returns the question of a sign-in with any passkey of the site.
func (s Site) AskAny() (q Question, err error) {
	party, err := s.party()
	if err != nil {
		return q, err
	}
	options, session, err := party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return q, err
	}
	q.Session = *session
	q.Options, err = json.Marshal(options.Response)
	return q, err
}

// AskNew returns the question for a new passkey of an owner.
func (s Site) AskNew(o Owner) (q Question, err error) {
	party, err := s.party()
	if err != nil {
		return q, err
	}
	u := user{o, s.Host}
	options, session, err := party.BeginRegistration(u,
		webauthn.WithExclusions(webauthn.Credentials(u.WebAuthnCredentials()).CredentialDescriptors()),
		webauthn.WithAuthenticatorSelection(protocol.AuthenticatorSelection{
			ResidentKey: protocol.ResidentKeyRequirementRequired, RequireResidentKey: protocol.ResidentKeyRequired(), UserVerification: protocol.VerificationRequired,
		}))
	if err != nil {
		return q, err
	}
	q.Session = *session
	q.Options, err = json.Marshal(options.Response)
	return q, err
}

// Create checks the answer of a browser to AskNew and returns the passkey, for the caller to
// keep. The error is ErrKnown, ErrTooMany, or wraps ErrAnswer.
func (s Site) Create(o Owner, session webauthn.SessionData, answer []byte) (Key, error) {
	party, err := s.party()
	if err != nil {
		return Key{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(answer)
	if err != nil {
		return Key{}, fmt.Errorf("%w: read a new passkey: %v", ErrAnswer, details(err))
	}
	c, err := party.CreateCredential(user{o, s.Host}, session, parsed)
	if err != nil {
		return Key{}, fmt.Errorf("%w: check a new passkey: %v", ErrAnswer, details(err))
	}
	if len(o.Keys) >= Max {
		return Key{}, ErrTooMany
	}
	if slices.ContainsFunc(o.Keys, func(k Key) bool { return slices.Equal(k.Credential.ID, c.ID) }) {
		return Key{}, ErrKnown
	}
	c.Attestation = webauthn.CredentialAttestation{} // it was not asked for
	id := base64.RawURLEncoding.EncodeToString(c.ID)
	return Key{Passkey{ID: credential.Digest(id)[:16], Host: s.Host, Synced: c.Flags.BackupEligible, Created: now()}, *c}, nil
}

// Check checks the answer of a browser to AskAny. Find returns the owner with a user handle, of
// the length that NewHandle has. Check returns the place of the passkey among the keys of the
// owner that find returned last, as it is to be kept now.
//
// Cloned is whether its counter did not grow: it may be of a copy of the passkey. Synced
// passkeys have no counter, and devices lose theirs, so it is for the caller to report and no
// reason to refuse. The error wraps ErrAnswer, or is that of find.
func (s Site) Check(session webauthn.SessionData, answer []byte, find func(handle string) (Owner, error)) (place int, used Key, cloned bool, err error) {
	party, err := s.party()
	if err != nil {
		return 0, used, false, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(answer)
	if err != nil {
		return 0, used, false, fmt.Errorf("%w: read the answer of a passkey: %v", ErrAnswer, details(err))
	}
	var o Owner
	var failed error
	_, found, err := party.ValidatePasskeyLogin(func(_, handle []byte) (webauthn.User, error) {
		if len(handle) != handleLength {
			return nil, ErrAnswer
		}
		if o, failed = find(string(handle)); failed != nil {
			return nil, failed
		}
		return user{o, s.Host}, nil
	}, session, parsed)
	if failed != nil {
		return 0, used, false, failed
	}
	if err != nil {
		return 0, used, false, fmt.Errorf("%w: check the answer of a passkey: %v", ErrAnswer, details(err))
	}
	place = slices.IndexFunc(o.Keys, func(k Key) bool { return slices.Equal(k.Credential.ID, found.ID) })
	if place < 0 {
		return 0, used, false, fmt.Errorf("%w: the owner does not have the passkey", ErrAnswer)
	}
	used, cloned = o.Keys[place], found.Authenticator.CloneWarning
	found.Authenticator.CloneWarning = false // of this sign-in
	used.Credential, used.Used = *found, now()
	return place, used, cloned, nil
}

// Answered returns what is written, with the condition that it is not there, when a question
// was answered: each is answered once. Prefix is that of its key.
func Answered(prefix string, session webauthn.SessionData) (store.Condition, store.Entry) {
	key := prefix + credential.Digest(session.Challenge)
	return store.Condition{Key: key}, store.Entry{Key: key, Value: []byte("true"), TTL: CeremonyAge + time.Minute}
}

// now returns the time as it is kept.
func now() time.Time { return time.Now().UTC().Truncate(time.Second) }

// details returns what the library says of an error to developers; its Error says little.
func details(err error) error {
	if e := (*protocol.Error)(nil); errors.As(err, &e) && e.DevInfo != "" {
		return fmt.Errorf("%s: %s", e.Details, e.DevInfo)
	} else if e != nil {
		return errors.New(e.Details)
	}
	return err
}
