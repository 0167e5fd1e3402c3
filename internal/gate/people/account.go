package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"time"

	"headgate/internal/passkey"
	"headgate/internal/store"
)

// The limits of people.
const (
	// maxPeople is how many there are.
	maxPeople = 10_000
	// maxGroups is how many groups one person is in.
	maxGroups = 100
	// maxText is how long a name for people to read and an address are, in bytes.
	maxText = 256
)

// Person is a person as others see it: without secrets.
type Person struct {
	// Name is what the person is called and signs in with: 1 to 64 lower-case letters, digits
	// and . _ -. Servers get it as Remote-User.
	Name string `json:"name"`
	// FullName is for people to read.
	FullName string `json:"full_name,omitempty"`
	// Email is the person's address. It can be used to sign in, and in lists of people.
	Email string `json:"email,omitempty"`
	// Groups are the person's groups: names without a slash.
	Groups []string `json:"groups,omitempty"`
	// Disabled is whether the person cannot sign in. Sessions end with it.
	Disabled bool `json:"disabled"`
	// Password is whether the person has a password and an authenticator.
	Password bool `json:"password"`
	// RecoveryCodes is how many recovery codes are left.
	RecoveryCodes int `json:"recovery_codes"`
	// Passkeys are the person's passkeys.
	Passkeys []passkey.Passkey `json:"passkeys,omitempty"`
	// Created is when the person was added.
	Created time.Time `json:"created"`
	// SignedIn is when the person last signed in.
	SignedIn time.Time `json:"signed_in,omitzero"`
	// Invited is when the invitation that was not used yet expires.
	Invited time.Time `json:"invited,omitzero"`

	// Revision is what a change has to name.
	Revision store.Revision `json:"-"`
}

// account is what is kept.
type account struct {
	Name       string    `json:"name"`
	FullName   string    `json:"full_name,omitempty"`
	Email      string    `json:"email,omitempty"`
	Groups     []string  `json:"groups,omitempty"`
	Disabled   bool      `json:"disabled,omitempty"`
	Created    time.Time `json:"created"`
	SignedIn   time.Time `json:"signed_in,omitzero"`
	Generation int       `json:"generation"` // sessions and known browsers of another one do not count

	Hash     string   `json:"hash,omitempty"`
	Secret   string   `json:"totp_secret,omitempty"`
	LastStep uint64   `json:"totp_step,omitempty"`
	Recovery []string `json:"recovery,omitempty"`

	Handle string        `json:"handle"` // the user handle of passkeys
	Keys   []passkey.Key `json:"keys,omitempty"`

	Invitation string    `json:"invitation,omitempty"` // the digest of the link
	Invited    time.Time `json:"invited,omitzero"`     // when it expires
}

// shown returns the person as others see it.
func (a *account) shown(r store.Revision) Person {
	p := Person{
		Name: a.Name, FullName: a.FullName, Email: a.Email, Groups: a.Groups, Disabled: a.Disabled, Password: a.Hash != "",
		RecoveryCodes: len(a.Recovery), Passkeys: passkey.Shown(a.Keys), Created: a.Created, SignedIn: a.SignedIn, Revision: r,
	}
	if a.Invitation != "" && time.Now().Before(a.Invited) {
		p.Invited = a.Invited
	}
	return p
}

// names are what people and groups may be called.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// ValidName reports whether a person or a group may have a name.
func ValidName(name string) bool { return names.MatchString(name) }

func checkName(name string) error {
	if !ValidName(name) {
		return &Error{Code: CodeInvalid, Field: "name", Detail: "invalid name", Remedy: "use 1 to 64 lower-case letters, digits and . _ -, beginning with a letter or digit"}
	}
	return nil
}

// account reads an account.
func (p *People) account(ctx context.Context, name string) (*account, store.Revision, error) {
	a := &account{}
	if !ValidName(name) {
		return nil, 0, notFound(name)
	}
	r, err := p.get(ctx, keyAccount+name, a)
	if errors.Is(err, store.ErrNotFound) {
		return nil, 0, notFound(name)
	}
	return a, r, err
}

func notFound(name string) error {
	return &Error{Code: CodeNotFound, Detail: fmt.Sprintf("there is no person %q", name)}
}

// Person returns one person. The error is an *Error when there is none.
func (p *People) Person(ctx context.Context, name string) (Person, error) {
	a, r, err := p.account(ctx, name)
	if err != nil {
		return Person{}, err
	}
	return a.shown(r), nil
}

// List returns all people, by name.
func (p *People) List(ctx context.Context) ([]Person, error) {
	entries, _, err := p.o.Store.Snapshot(ctx, keyAccount)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	all := make([]Person, 0, len(entries))
	for i := range entries {
		a := &account{}
		if err := json.Unmarshal(entries[i].Value, a); err != nil {
			p.o.Log.Error("a person cannot be read", "person", strings.TrimPrefix(entries[i].Key, keyAccount), "error", err)
			continue
		}
		all = append(all, a.shown(entries[i].Revision))
	}
	return all, nil // the store has the keys in order
}

// Details are what an operator writes of a person.
type Details struct {
	FullName, Email string
	Groups          []string
	Disabled        bool
}

// check returns the details in their one form.
func (d Details) check() (Details, error) {
	bad := func(field, detail, remedy string) (Details, error) {
		return d, &Error{Code: CodeInvalid, Field: field, Detail: detail, Remedy: remedy}
	}
	if d.FullName = strings.TrimSpace(d.FullName); len(d.FullName) > maxText || strings.ContainsFunc(d.FullName, func(r rune) bool { return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\uFFFD' }) {
		return bad("full_name", "the name is too long or has control characters", "use at most 256 bytes of text")
	}
	if d.Email != "" {
		var ok bool
		if d.Email, ok = cleanEmail(d.Email); !ok {
			return bad("email", "this is not an e-mail address", "write one such as ann@example.com")
		}
	}
	if len(d.Groups) > maxGroups {
		return bad("groups", fmt.Sprintf("a person is in at most %d groups", maxGroups), "")
	}
	for _, g := range d.Groups {
		if !ValidName(g) {
			return bad("groups", fmt.Sprintf("invalid group %q", g), "use 1 to 64 lower-case letters, digits and . _ -, beginning with a letter or digit")
		}
	}
	d.Groups = slices.Clone(d.Groups)
	slices.Sort(d.Groups)
	d.Groups = slices.Compact(d.Groups)
	return d, nil
}

func (a *account) set(d Details) {
	a.FullName, a.Email, a.Groups, a.Disabled = d.FullName, d.Email, d.Groups, d.Disabled
}

// Create adds a person, who has no credentials: Invite makes a link to choose some. With dry
// it only reports whether it could.
func (p *People) Create(ctx context.Context, by By, name string, d Details, dry bool) (Person, error) {
	if err := checkName(name); err != nil {
		return Person{}, err
	}
	d, err := d.check()
	if err != nil {
		return Person{}, err
	}
	if p.directory.count() >= maxPeople {
		return Person{}, &Error{Code: CodeInvalid, Detail: fmt.Sprintf("there are %d people already, which is the limit", maxPeople)}
	}
	if _, _, err := p.account(ctx, name); err == nil {
		return Person{}, &Error{Code: CodeExists, Field: "name", Detail: "there is a person " + name + " already", Remedy: "choose another name"}
	} else if e := (*Error)(nil); !errors.As(err, &e) {
		return Person{}, err
	}
	// Sessions of an earlier person of this name are of another generation.
	a := &account{Name: name, Created: p.now(), Generation: 1 + rand.IntN(1<<30), Handle: passkey.NewHandle()}
	a.set(d)
	c := store.Change{
		If: []store.Condition{{Key: keyAccount + name}}, Put: []store.Entry{entry(keyHandle+a.Handle, name)},
		Append: by.record("person.create", name, nil, a.shown(0)), Who: by.Name,
	}
	if err := p.claimEmail(ctx, a, "", &c); err != nil || dry {
		return a.shown(0), err
	}
	return p.put(ctx, a, c)
}

// put writes an account with a change.
func (p *People) put(ctx context.Context, a *account, c store.Change) (Person, error) {
	c.Put = append(c.Put, entry(keyAccount+a.Name, a))
	r, err := p.commit(ctx, c)
	if err != nil {
		return Person{}, err
	}
	p.learn(a, r)
	return a.shown(r), nil
}

// claimEmail adds to a change what makes the address of an account unique.
func (p *People) claimEmail(ctx context.Context, a *account, before string, c *store.Change) error {
	if a.Email == before {
		return nil
	}
	if before != "" {
		c.Delete = append(c.Delete, keyEmail+before)
	}
	if a.Email == "" {
		return nil
	}
	var owner string
	_, err := p.get(ctx, keyEmail+a.Email, &owner)
	switch {
	case err == nil:
		return &Error{Code: CodeExists, Field: "email", Detail: "the address belongs to person " + owner, Remedy: "choose another address"}
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	c.If = append(c.If, store.Condition{Key: keyEmail + a.Email})
	c.Put = append(c.Put, entry(keyEmail+a.Email, a.Name))
	return nil
}

// match returns an error if a person has not the revision that the caller has seen.
func match(have, want store.Revision) error {
	if want != Any && want != have {
		return &Error{Code: CodeStale, Detail: "the person was changed meanwhile", Remedy: "read it again and repeat the change"}
	}
	return nil
}

// Change replaces the details of a person that has a revision, or Any. Sessions of a person
// who is disabled end; other changes count in running sessions at once.
func (p *People) Change(ctx context.Context, by By, name string, want store.Revision, d Details, dry bool) (Person, error) {
	a, r, err := p.account(ctx, name)
	if err != nil {
		return Person{}, err
	}
	if err := match(r, want); err != nil {
		return Person{}, err
	}
	if d, err = d.check(); err != nil {
		return Person{}, err
	}
	before, address := a.shown(r), a.Email
	if d.Disabled && !a.Disabled {
		a.Generation++
	}
	a.set(d)
	c := store.Change{If: []store.Condition{{Key: keyAccount + name, Revision: r}}, Append: by.record("person.change", name, before, a.shown(0)), Who: by.Name}
	if err := p.claimEmail(ctx, a, address, &c); err != nil || dry {
		return a.shown(r), err
	}
	return p.put(ctx, a, c)
}

// Remove removes a person that has a revision, or Any. Their sessions end.
func (p *People) Remove(ctx context.Context, by By, name string, want store.Revision, dry bool) error {
	a, r, err := p.account(ctx, name)
	if err != nil {
		return err
	}
	if err := match(r, want); err != nil || dry {
		return err
	}
	c := store.Change{
		If: []store.Condition{{Key: keyAccount + name, Revision: r}}, Delete: []string{keyAccount + name, keyHandle + a.Handle},
		Append: by.record("person.remove", name, a.shown(r), nil), Who: by.Name,
	}
	if a.Email != "" {
		c.Delete = append(c.Delete, keyEmail+a.Email)
	}
	if a.Invitation != "" {
		c.Delete = append(c.Delete, keyInvitation+a.Invitation)
	}
	if _, err := p.commit(ctx, c); err != nil {
		return err
	}
	p.unlearn(name)
	return nil
}
