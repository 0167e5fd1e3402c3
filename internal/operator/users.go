package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sort"
	"strings"
	"time"

	"headgate/internal/credential"
	"headgate/internal/passkey"
	"headgate/internal/store"
)

// maxUsers and maxTokens bound how many there are.
const (
	maxUsers  = 1000
	maxTokens = 1000
)

// User is an operator as others see it: without secrets.
type User struct {
	// Name is what the user signs in with: 1 to 64 lower-case letters, digits and . _ @ -.
	Name string `json:"name"`
	// Role is admin, editor or viewer.
	Role Role `json:"role"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Disabled users cannot sign in, and their sessions have ended.
	Disabled bool `json:"disabled"`
	// TOTP is whether a code is required in addition to the password.
	TOTP bool `json:"totp"`
	// RecoveryCodes is how many codes are left.
	RecoveryCodes int `json:"recovery_codes"`
	// Passkeys are the user's passkeys.
	Passkeys []passkey.Passkey `json:"passkeys,omitempty"`
	// Created is when the user was made.
	Created time.Time `json:"created"`
	// SignedIn is when the user signed in last.
	SignedIn time.Time `json:"signed_in,omitzero"`

	// Revision is what a change has to name.
	Revision store.Revision `json:"-"`
}

// user is what is kept.
type user struct {
	User
	Hash       string        `json:"hash"`
	Generation int           `json:"generation"` // sessions of another one have ended
	Secret     string        `json:"totp_secret,omitempty"`
	Pending    string        `json:"totp_pending,omitempty"` // a secret that was not proven yet
	LastStep   uint64        `json:"totp_step,omitempty"`
	Recovery   []string      `json:"recovery,omitempty"`
	Handle     string        `json:"passkey_handle,omitempty"` // for browsers; set with the first question for a passkey
	Keys       []passkey.Key `json:"passkey_keys,omitempty"`
}

// seen returns the user as others see it.
func (u *user) seen(r store.Revision) User {
	s := u.User
	s.TOTP, s.RecoveryCodes, s.Passkeys, s.Revision = u.Secret != "", len(u.Recovery), passkey.Shown(u.Keys), r
	return s
}

func (o *Operators) user(ctx context.Context, name string) (*user, store.Revision, error) {
	if !names.MatchString(name) {
		return nil, 0, &Error{Code: CodeNotFound, Detail: fmt.Sprintf("there is no user %q", name)}
	}
	u := &user{}
	r, err := o.get(ctx, store.PrefixUser+name, "user "+name, u)
	if err != nil {
		return nil, 0, err
	}
	return u, r, nil
}

// User returns one user. The error is an *Error when there is none.
func (o *Operators) User(ctx context.Context, name string) (User, error) {
	u, r, err := o.user(ctx, name)
	if err != nil {
		return User{}, err
	}
	return u.seen(r), nil
}

// Users returns all users, by name.
func (o *Operators) Users(ctx context.Context) ([]User, error) {
	entries, _, err := o.store.Snapshot(ctx, store.PrefixUser)
	if err != nil {
		return nil, fmt.Errorf("list users: %w", err)
	}
	all := make([]User, 0, len(entries))
	for _, e := range entries {
		u := &user{}
		if err := json.Unmarshal(e.Value, u); err != nil {
			o.log.Error("a user cannot be read", "user", strings.TrimPrefix(e.Key, store.PrefixUser), "error", err)
			continue
		}
		all = append(all, u.seen(e.Revision))
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// PasskeysAt returns how many passkeys users have at a host name. It does not wait for a shared
// store, and is 0 if the users cannot be read.
func (o *Operators) PasskeysAt(host string) (n int) {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	users, err := o.Users(ctx)
	if err != nil {
		return 0
	}
	for i := range users {
		for _, k := range users[i].Passkeys {
			if k.Host == host {
				n++
			}
		}
	}
	return n
}

// NewUser is what a user is made from.
type NewUser struct {
	Name        string
	Role        Role
	Description string
	Disabled    bool
	// Password is checked and hashed.
	Password string
}

// CreateUser makes a user. With dry it only says whether it could.
func (o *Operators) CreateUser(ctx context.Context, by Identity, n NewUser, dry bool) (User, error) {
	u, err := o.newUser(ctx, n)
	if err != nil {
		return User{}, err
	}
	all, err := o.store.List(ctx, store.PrefixUser, "", store.MaxPage)
	if err != nil {
		return User{}, fmt.Errorf("list users: %w", err)
	}
	for _, m := range all {
		if m.Key == store.PrefixUser+n.Name {
			return User{}, exists("user", n.Name)
		}
	}
	if len(all) >= maxUsers {
		return User{}, &Error{Code: CodeInvalid, Detail: fmt.Sprintf("there are %d users already, which is the most", len(all))}
	}
	if dry {
		return u.seen(0), nil
	}
	key := store.PrefixUser + u.Name
	r, err := o.commit(ctx, store.Change{
		If:     []store.Condition{{Key: key}},
		Put:    []store.Entry{entry(key, u)},
		Append: []store.Record{by.Audit("user.create", "user "+u.Name, "", nil, u.seen(0))},
		Who:    by.Name,
	}, "user "+u.Name)
	if e, ok := err.(*Error); ok && e.Code == CodeStale {
		return User{}, exists("user", n.Name)
	}
	if err == nil {
		o.removeSetupFile() // its link opens nothing any more
	}
	return u.seen(r), err
}

func exists(kind, name string) error {
	return &Error{Code: CodeExists, Field: "name", Detail: fmt.Sprintf("there is a %s %s already", kind, name), Remedy: "choose another name"}
}

// newUser checks what a user is made from.
func (o *Operators) newUser(ctx context.Context, n NewUser) (*user, error) {
	if err := checkName(n.Name); err != nil {
		return nil, err
	}
	if err := checkRole(n.Role); err != nil {
		return nil, err
	}
	if err := checkDescription(n.Description); err != nil {
		return nil, err
	}
	var hash string
	var failed error
	if err := o.throttle.check(ctx, true, func() { hash, failed = hashPassword(n.Name, n.Password) }); err != nil {
		return nil, err
	}
	if failed != nil {
		return nil, failed
	}
	// Sessions of an earlier user of this name are of another generation.
	return &user{User: User{Name: n.Name, Role: n.Role, Description: n.Description, Disabled: n.Disabled, Created: o.now()}, Hash: hash, Generation: 1 + rand.IntN(1<<30)}, nil
}

// hashPassword returns what is kept of a new password.
func hashPassword(user, text string) (string, error) {
	hash, err := credential.HashPassword(user, text)
	if err != nil {
		return "", &Error{Code: CodeInvalid, Field: "password", Detail: err.Error(), Remedy: "choose at least 10 characters that are hard to guess, such as several words"}
	}
	return hash, nil
}

func checkRole(r Role) error {
	if !r.Valid() {
		return &Error{Code: CodeInvalid, Field: "role", Detail: fmt.Sprintf("unknown role %q", string(r)), Remedy: "write admin, editor or viewer"}
	}
	return nil
}

func checkDescription(text string) error {
	if len(text) > 1024 {
		return &Error{Code: CodeInvalid, Field: "description", Detail: "the description is longer than 1024 bytes"}
	}
	return nil
}

// UserChange is what changes of a user; nil leaves it.
type UserChange struct {
	Role        *Role
	Description *string
	Disabled    *bool
	Password    *string
}

// ChangeUser changes a user that has a revision, or Any. A new password, and being
// disabled, end all sessions of the user.
func (o *Operators) ChangeUser(ctx context.Context, by Identity, name string, want store.Revision, c UserChange, dry bool) (User, error) {
	u, r, err := o.user(ctx, name)
	if err != nil {
		return User{}, err
	}
	if err := match(r, want, "user "+name); err != nil {
		return User{}, err
	}
	before := u.seen(r)
	if err := o.apply(ctx, u, c); err != nil {
		return User{}, err
	}
	change := store.Change{If: []store.Condition{{Key: store.PrefixUser + name, Revision: r}}}
	if before.Role == Admin && !before.Disabled && (u.Role != Admin || u.Disabled) {
		if change.If, err = o.otherAdmin(ctx, name, change.If); err != nil {
			return User{}, err
		}
	}
	if dry {
		return u.seen(r), nil
	}
	action := "user.change"
	if c.Password != nil {
		action = "user.password"
	}
	return o.putUser(ctx, by, u, change, action, before)
}

func (o *Operators) apply(ctx context.Context, u *user, c UserChange) error {
	if c.Role != nil {
		if err := checkRole(*c.Role); err != nil {
			return err
		}
		u.Role = *c.Role
	}
	if c.Description != nil {
		if err := checkDescription(*c.Description); err != nil {
			return err
		}
		u.Description = *c.Description
	}
	if c.Disabled != nil && u.Disabled != *c.Disabled {
		u.Disabled = *c.Disabled
		u.Generation++
	}
	if c.Password == nil {
		return nil
	}
	var failed error
	if err := o.throttle.check(ctx, true, func() { u.Hash, failed = hashPassword(u.Name, *c.Password) }); err != nil {
		return err
	}
	u.Generation++
	return failed
}

// putUser writes a user with the audit of it.
func (o *Operators) putUser(ctx context.Context, by Identity, u *user, c store.Change, action string, before User) (User, error) {
	c.Put = append(c.Put, entry(store.PrefixUser+u.Name, u))
	c.Append = append(c.Append, by.Audit(action, "user "+u.Name, "", before, u.seen(0)))
	c.Who = by.Name
	r, err := o.commit(ctx, c, "user "+u.Name)
	return u.seen(r), err
}

// otherAdmin adds the condition that another admin is there, and stays.
func (o *Operators) otherAdmin(ctx context.Context, name string, conditions []store.Condition) ([]store.Condition, error) {
	all, err := o.Users(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range all {
		if u.Name != name && u.Role == Admin && !u.Disabled {
			return append(conditions, store.Condition{Key: store.PrefixUser + u.Name, Revision: u.Revision}), nil
		}
	}
	return nil, &Error{Code: CodeLastAdmin, Detail: "user " + name + " is the last admin", Remedy: "make another user an admin first"}
}

// DeleteUser removes a user that has a revision, or Any. All its sessions end.
func (o *Operators) DeleteUser(ctx context.Context, by Identity, name string, want store.Revision, dry bool) error {
	u, r, err := o.user(ctx, name)
	if err != nil {
		return err
	}
	if err := match(r, want, "user "+name); err != nil {
		return err
	}
	c := store.Change{If: []store.Condition{{Key: store.PrefixUser + name, Revision: r}}, Delete: []string{store.PrefixUser + name}, Who: by.Name}
	if u.Role == Admin && !u.Disabled {
		if c.If, err = o.otherAdmin(ctx, name, c.If); err != nil {
			return err
		}
	}
	if dry {
		return nil
	}
	c.Append = []store.Record{by.Audit("user.delete", "user "+name, "", u.seen(r), nil)}
	_, err = o.commit(ctx, c, "user "+name)
	return err
}

// Enrolment is what an authenticator needs.
type Enrolment struct {
	Secret string
	URI    string
}

// BeginTOTP makes a secret for a user's authenticator. Codes are required at sign-in
// once FinishTOTP has accepted one.
func (o *Operators) BeginTOTP(ctx context.Context, by Identity, name string) (Enrolment, error) {
	u, r, err := o.user(ctx, name)
	if err != nil {
		return Enrolment{}, err
	}
	before := u.seen(r)
	u.Pending = credential.NewTOTP()
	_, err = o.putUser(ctx, by, u, store.Change{If: []store.Condition{{Key: store.PrefixUser + name, Revision: r}}}, "user.totp_begin", before)
	return Enrolment{u.Pending, credential.TOTPURI("headgate", name, u.Pending)}, err
}

// FinishTOTP accepts a code of the new secret and returns recovery codes, which are
// shown once.
func (o *Operators) FinishTOTP(ctx context.Context, by Identity, name, code string) ([]string, error) {
	if err := o.throttle.try(by.Address, name); err != nil {
		return nil, err
	}
	u, r, err := o.user(ctx, name)
	if err != nil {
		return nil, err
	}
	if u.Pending == "" {
		return nil, &Error{Code: CodeInvalid, Detail: "no authenticator is being set up", Remedy: "start the setup first"}
	}
	step := credential.CheckTOTP(u.Pending, code, 0, o.time())
	if step == 0 {
		return nil, &Error{Code: CodeInvalid, Field: "code", Detail: "the code is wrong", Remedy: "check that the clocks of both devices are right, and use the newest code"}
	}
	before := u.seen(r)
	codes, kept := credential.NewRecovery()
	u.Secret, u.Pending, u.LastStep, u.Recovery = u.Pending, "", step, kept
	_, err = o.putUser(ctx, by, u, store.Change{If: []store.Condition{{Key: store.PrefixUser + name, Revision: r}}}, "user.totp", before)
	if err != nil {
		return nil, err
	}
	return codes, nil
}

// RemoveTOTP lets a user sign in with the password only, and ends the user's sessions.
// With dry it only says what the user would be.
func (o *Operators) RemoveTOTP(ctx context.Context, by Identity, name string, dry bool) (User, error) {
	u, r, err := o.user(ctx, name)
	if err != nil {
		return User{}, err
	}
	before := u.seen(r)
	u.Secret, u.Pending, u.LastStep, u.Recovery = "", "", 0, nil
	u.Generation++
	if dry {
		return u.seen(r), nil
	}
	return o.putUser(ctx, by, u, store.Change{If: []store.Condition{{Key: store.PrefixUser + name, Revision: r}}}, "user.totp_remove", before)
}
