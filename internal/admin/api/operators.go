package api

import (
	"encoding/json"
	"math"
	"net/netip"
	"strconv"
	"time"

	"headgate/internal/operator"
	"headgate/internal/passkey"
	"headgate/internal/store"
)

// userBody is a user.
type userBody struct {
	// Name is what the user signs in with: 1 to 64 lower-case letters, digits and . _ @ -.
	// It cannot be changed.
	Name string `json:"name" required:"true" max:"64"`
	// Role is what the user may do.
	Role string `json:"role" required:"true" enum:"admin,editor,viewer"`
	// Description is for people.
	Description string `json:"description,omitempty" max:"1024"`
	// Disabled users cannot sign in.
	Disabled bool `json:"disabled"`
	// Password has at least 10 characters and is none of the commonest. It is never
	// shown; without it the one that is set stays.
	Password string `json:"password,omitempty" writeonly:"true" max:"1024"`
	// PasswordSet is whether there is a password.
	PasswordSet bool `json:"password_set" readonly:"true"`
	// TOTP is whether sign-in requires a code besides the password.
	TOTP bool `json:"totp" readonly:"true"`
	// RecoveryCodes is how many are left.
	RecoveryCodes int `json:"recovery_codes" readonly:"true"`
	// Passkeys are the passkeys of the user, with which the console can be opened.
	Passkeys []passkey.Passkey `json:"passkeys,omitempty" readonly:"true"`
	// Created is when the user was made.
	Created time.Time `json:"created" readonly:"true"`
	// SignedIn is when the user signed in last.
	SignedIn time.Time `json:"signed_in,omitzero" readonly:"true"`
	// ETag is what If-Match names.
	ETag string `json:"etag,omitempty" readonly:"true"`

	at store.Revision
}

func (u userBody) revision() store.Revision { return u.at }

func showUser(u operator.User) userBody {
	b := userBody{Name: u.Name, Role: string(u.Role), Description: u.Description, Disabled: u.Disabled, PasswordSet: true,
		TOTP: u.TOTP, RecoveryCodes: u.RecoveryCodes, Passkeys: u.Passkeys, Created: u.Created, SignedIn: u.SignedIn, at: u.Revision}
	if u.Revision > 0 {
		b.ETag = tag(u.Revision)
	}
	return b
}

func (a *API) users(c *call) (any, error) {
	all, err := a.Operators.Users(c.rq.Context())
	if err != nil {
		return nil, err
	}
	entries := make([]listed, 0, len(all))
	for _, u := range all {
		entries = append(entries, listed{name: u.Name, text: u.Description, value: showUser(u),
			keys: map[string]string{"name": u.Name, "role": string(u.Role), "created": u.Created.Format(time.RFC3339)}})
	}
	return c.list(entries)
}

func (a *API) user(c *call) (any, error) {
	u, err := a.Operators.User(c.rq.Context(), c.name())
	if err != nil {
		return nil, err
	}
	return showUser(u), nil
}

func (a *API) createUser(c *call, in *userBody) (any, error) {
	u, err := a.Operators.CreateUser(c.rq.Context(), c.who, operator.NewUser{
		Name: in.Name, Role: operator.Role(in.Role), Description: in.Description, Disabled: in.Disabled, Password: in.Password,
	}, c.dryRun)
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", Prefix+"/users/"+u.Name)
	return showUser(u), nil
}

func (a *API) putUser(c *call, in *userBody) (any, error) {
	if in.Name != c.name() {
		return nil, refuse("invalid", "/name", "the name of a user cannot be changed", "make another user")
	}
	role := operator.Role(in.Role)
	change := operator.UserChange{Role: &role, Description: &in.Description, Disabled: &in.Disabled}
	if in.Password != "" {
		change.Password = &in.Password
	}
	u, err := a.Operators.ChangeUser(c.rq.Context(), c.who, in.Name, c.have, change, c.dryRun)
	if err != nil {
		return nil, c.late(err, a.user)
	}
	return showUser(u), nil
}

// late adds the object as it is now to the refusal of a change that came too late.
func (c *call) late(err error, current func(*call) (any, error)) error {
	p, _ := problemOf(err)
	if p.Code != operator.CodeStale {
		return err
	}
	if now, failed := current(c); failed == nil {
		if data, failed := json.Marshal(now); failed == nil {
			p.Current = data
		}
	}
	return p
}

func (a *API) deleteUser(c *call) (any, error) {
	return nil, c.late(a.Operators.DeleteUser(c.rq.Context(), c.who, c.name(), c.have, c.dryRun), a.user)
}

func (a *API) removeTOTP(c *call) (any, error) {
	u, err := a.Operators.RemoveTOTP(c.rq.Context(), c.who, c.name(), c.dryRun)
	if err != nil {
		return nil, err
	}
	return showUser(u), nil
}

// tokenBody is a token.
type tokenBody struct {
	// Name is what the token is called: 1 to 64 lower-case letters, digits and . _ @ -.
	Name string `json:"name" required:"true" max:"64"`
	// Role is what it may do.
	Role string `json:"role" required:"true" enum:"admin,editor,viewer"`
	// Scopes narrow that to areas of this interface; "area:read" to reading. None is
	// all.
	Scopes []string `json:"scopes,omitempty" max:"64"`
	// Description is for people.
	Description string `json:"description,omitempty" max:"1024"`
	// Addresses are the networks that it may be used from; none is all.
	Addresses []netip.Prefix `json:"addresses,omitempty" max:"64"`
	// Expires is when it ends; without it never.
	Expires time.Time `json:"expires,omitzero"`
	// Token is the text of the token. It is in the answer that makes it, and nowhere
	// else.
	Token string `json:"token,omitempty" readonly:"true"`
	// Created is when it was made.
	Created time.Time `json:"created" readonly:"true"`
	// CreatedBy is who made it.
	CreatedBy string `json:"created_by" readonly:"true"`
	// Used is when it was used last, to the minute.
	Used time.Time `json:"used,omitzero" readonly:"true"`
	// UsedFrom is where from.
	UsedFrom string `json:"used_from,omitempty" readonly:"true"`
	// ETag is what If-Match names.
	ETag string `json:"etag,omitempty" readonly:"true"`

	at store.Revision
}

func (t tokenBody) revision() store.Revision { return t.at }

func showToken(t operator.Token) tokenBody {
	b := tokenBody{Name: t.Name, Role: string(t.Role), Scopes: t.Scopes, Description: t.Description, Addresses: t.Addresses,
		Expires: t.Expires, Created: t.Created, CreatedBy: t.CreatedBy, Used: t.Used, UsedFrom: t.UsedFrom, at: t.Revision}
	if t.Revision > 0 {
		b.ETag = tag(t.Revision)
	}
	return b
}

func (a *API) tokens(c *call) (any, error) {
	all, err := a.Operators.Tokens(c.rq.Context())
	if err != nil {
		return nil, err
	}
	entries := make([]listed, 0, len(all))
	for _, t := range all {
		entries = append(entries, listed{name: t.Name, text: t.Description, value: showToken(t), keys: map[string]string{
			"name": t.Name, "role": string(t.Role), "created": t.Created.Format(time.RFC3339), "used": t.Used.Format(time.RFC3339)}})
	}
	return c.list(entries)
}

func (a *API) token(c *call) (any, error) {
	t, err := a.Operators.Token(c.rq.Context(), c.name())
	if err != nil {
		return nil, err
	}
	return showToken(t), nil
}

func (a *API) createToken(c *call, in *tokenBody) (any, error) {
	t, text, err := a.Operators.CreateToken(c.rq.Context(), c.who, operator.Token{
		Name: in.Name, Role: operator.Role(in.Role), Scopes: in.Scopes, Description: in.Description, Addresses: in.Addresses, Expires: in.Expires,
	}, c.dryRun)
	if err != nil {
		return nil, err
	}
	c.w.Header().Set("Location", Prefix+"/tokens/"+t.Name)
	b := showToken(t)
	b.Token = text
	return b, nil
}

func (a *API) revokeToken(c *call) (any, error) {
	return nil, c.late(a.Operators.RevokeToken(c.rq.Context(), c.who, c.name(), c.have, c.dryRun), a.token)
}

// auditBody is one record of the audit.
type auditBody struct {
	// Sequence is the record's place.
	Sequence int64 `json:"sequence"`
	// Time is when.
	Time time.Time `json:"time"`
	// The operator.
	Who string `json:"who"`
	// Via is how: api, console, file, cli, docker, http or agent.
	Via string `json:"via,omitempty"`
	// Address is where from.
	Address string `json:"address,omitempty"`
	// Action is what was done.
	Action string `json:"action"`
	// Object is what it was done to.
	Object string `json:"object,omitempty"`
	// Why is what the person wrote.
	Why string `json:"why,omitempty"`
	// Before is the object as it was, without secrets.
	Before json.RawMessage `json:"before,omitempty"`
	// After is the object as it is then, without secrets.
	After json.RawMessage `json:"after,omitempty"`
}

// auditQuery are the parameters of the audit.
var auditQuery = []parameter{
	{name: "limit", about: "The maximum number of entries, up to 1000.", kind: "integer"},
	{name: "cursor", about: "The position to continue at: `next` of the previous page.", kind: "integer"},
	{name: "who", about: "The operator."},
	{name: "action", about: "The prefix of the action."},
	{name: "object", about: "Only entries whose object contains this text."},
}

func (a *API) audit(c *call) (any, error) {
	q := operator.AuditQuery{Who: c.text("who"), Action: c.text("action"), Object: c.text("object")}
	before := store.Sequence(c.number("cursor", 0, math.MaxInt))
	all, next, err := a.Operators.AuditPage(c.rq.Context(), q, before, max(c.number("limit", defaultPage, maxPage), 1))
	if err != nil {
		return nil, err
	}
	items := make([]auditBody, 0, len(all))
	for _, r := range all {
		items = append(items, auditBody{int64(r.Sequence), r.Time, r.Who, r.Via, r.Address, r.Action, r.Object, r.Why, r.Before, r.After})
	}
	p := page{Items: items}
	if next > 0 {
		p.Next = strconv.FormatUint(uint64(next), 10)
	}
	return p, nil
}
