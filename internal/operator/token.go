package operator

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"sort"
	"strings"
	"time"

	"headgate/internal/credential"
	"headgate/internal/event"
	"headgate/internal/store"
)

// TokenPrefix is the start of every token, so that scanners of leaked secrets
// find them.
const TokenPrefix = "hg_"

// tokenText is what the text of a token looks like.
var tokenText = regexp.MustCompile(`^hg_.+_[0-9a-f]{48}$`)

// IsToken reports whether a text looks like that of a token, good or not.
func IsToken(text string) bool {
	return strings.HasPrefix(text, TokenPrefix) && tokenText.MatchString(text)
}

// usedEvery is how often the last use of a token is written down.
const usedEvery = time.Minute

// maxAddresses is how many networks a token may be bound to.
const maxAddresses = 64

// scopes are what scopes look like; which there are is for the API.
var scopes = regexp.MustCompile(`^[a-z_]{1,32}(:read)?$`)

// Token is what a program signs in with, as others see it.
type Token struct {
	// Name is the name of the token, and part of its text.
	Name string `json:"name"`
	// Role is what it may do.
	Role Role `json:"role"`
	// Scopes narrow what it may do to areas of the API; "area:read" to reading. None
	// narrow nothing.
	Scopes []string `json:"scopes,omitempty"`
	// Description is for people.
	Description string `json:"description,omitempty"`
	// Addresses are the networks that it may be used from; none is all.
	Addresses []netip.Prefix `json:"addresses,omitempty"`
	// Expires is when it ends; the zero time is never.
	Expires time.Time `json:"expires,omitzero"`
	// Created is when the token was created.
	Created time.Time `json:"created"`
	// CreatedBy is who created it.
	CreatedBy string `json:"created_by"`
	// Used is when the token was last used, to the minute.
	Used time.Time `json:"used,omitzero"`
	// UsedFrom is the address that it was last used from.
	UsedFrom string `json:"used_from,omitempty"`

	// Revision is what a change has to name.
	Revision store.Revision `json:"-"`
}

// token is what is kept.
type token struct {
	Token
	Digest string `json:"digest"`
}

func (t *token) seen(r store.Revision) Token {
	s := t.Token
	s.Revision = r
	return s
}

func (o *Operators) token(ctx context.Context, name string) (*token, store.Revision, error) {
	if !names.MatchString(name) {
		return nil, 0, &Error{Code: CodeNotFound, Detail: fmt.Sprintf("there is no token %q", name)}
	}
	t := &token{}
	r, err := o.get(ctx, store.PrefixToken+name, "token "+name, t)
	if err != nil {
		return nil, 0, err
	}
	return t, r, nil
}

// Token returns one token. The error is an *Error when there is none.
func (o *Operators) Token(ctx context.Context, name string) (Token, error) {
	t, r, err := o.token(ctx, name)
	if err != nil {
		return Token{}, err
	}
	return t.seen(r), nil
}

// Tokens returns all tokens, by name.
func (o *Operators) Tokens(ctx context.Context) ([]Token, error) {
	entries, _, err := o.store.Snapshot(ctx, store.PrefixToken)
	if err != nil {
		return nil, fmt.Errorf("list tokens: %w", err)
	}
	all := make([]Token, 0, len(entries))
	for _, e := range entries {
		t := &token{}
		if err := json.Unmarshal(e.Value, t); err != nil {
			o.log.Error("a token cannot be read", "token", strings.TrimPrefix(e.Key, store.PrefixToken), "error", err)
			continue
		}
		all = append(all, t.seen(e.Revision))
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all, nil
}

// CreateToken makes a token of the name, role, scopes, description, addresses and
// expiry in t, and returns its text, which is shown once. It cannot have more
// permissions than its creator.
func (o *Operators) CreateToken(ctx context.Context, by Identity, t Token, dry bool) (Token, string, error) {
	if err := o.checkToken(by, &t); err != nil {
		return Token{}, "", err
	}
	all, err := o.store.List(ctx, store.PrefixToken, "", store.MaxPage)
	if err != nil {
		return Token{}, "", fmt.Errorf("list tokens: %w", err)
	}
	key := store.PrefixToken + t.Name
	if slices.ContainsFunc(all, func(m store.Meta) bool { return m.Key == key }) {
		return Token{}, "", exists("token", t.Name)
	}
	if len(all) >= maxTokens {
		return Token{}, "", &Error{Code: CodeInvalid, Detail: fmt.Sprintf("there are %d tokens already, which is the most", len(all))}
	}
	t.Created, t.CreatedBy, t.Used, t.UsedFrom = o.now(), by.Name, time.Time{}, ""
	if dry {
		return t, "", nil
	}
	var random [24]byte
	rand.Read(random[:])
	text := TokenPrefix + t.Name + "_" + hex.EncodeToString(random[:])
	kept := token{Token: t, Digest: credential.Digest(text)}
	e := entry(key, kept)
	e.TTL = store.TTL(o.now(), t.Expires)
	r, err := o.commit(ctx, store.Change{
		If: []store.Condition{{Key: key}}, Put: []store.Entry{e}, Who: by.Name,
		Append: []store.Record{by.Audit("token.create", "token "+t.Name, "", nil, t)},
	}, "token "+t.Name)
	if err != nil {
		return Token{}, "", err
	}
	return kept.seen(r), text, nil
}

func (o *Operators) checkToken(by Identity, t *Token) error {
	if err := checkName(t.Name); err != nil {
		return err
	}
	if err := checkRole(t.Role); err != nil {
		return err
	}
	if err := checkDescription(t.Description); err != nil {
		return err
	}
	switch {
	case !by.Role.AtLeast(t.Role):
		return &Error{Code: CodeForbidden, Field: "role", Detail: "a token cannot do more than who makes it", Remedy: "choose a lower role"}
	case !t.Expires.IsZero() && !t.Expires.After(o.time()):
		return &Error{Code: CodeInvalid, Field: "expires", Detail: "the token would have expired already"}
	case len(t.Addresses) > maxAddresses || len(t.Scopes) > maxAddresses:
		return &Error{Code: CodeInvalid, Field: "addresses", Detail: fmt.Sprintf("at most %d addresses and scopes can be given", maxAddresses)}
	}
	for _, s := range t.Scopes {
		if !scopes.MatchString(s) {
			return &Error{Code: CodeInvalid, Field: "scopes", Detail: fmt.Sprintf("invalid scope %q", s)}
		}
		area, reads := strings.CutSuffix(s, ":read")
		if !by.May(area, !reads) {
			return &Error{Code: CodeForbidden, Field: "scopes", Detail: fmt.Sprintf("you do not have the scope %q yourself", s)}
		}
	}
	if len(by.Scopes) > 0 && len(t.Scopes) == 0 {
		return &Error{Code: CodeForbidden, Field: "scopes", Detail: "a token cannot do more than who makes it", Remedy: "name scopes that you have"}
	}
	for i, p := range t.Addresses {
		if !p.IsValid() {
			return &Error{Code: CodeInvalid, Field: "addresses", Detail: "invalid network"}
		}
		t.Addresses[i] = p.Masked()
	}
	return nil
}

// RevokeToken ends a token that has a revision, or Any.
func (o *Operators) RevokeToken(ctx context.Context, by Identity, name string, want store.Revision, dry bool) error {
	t, r, err := o.token(ctx, name)
	if err != nil {
		return err
	}
	if err := match(r, want, "token "+name); err != nil || dry {
		return err
	}
	_, err = o.commit(ctx, store.Change{
		If: []store.Condition{{Key: store.PrefixToken + name, Revision: r}}, Delete: []string{store.PrefixToken + name}, Who: by.Name,
		Append: []store.Record{by.Audit("token.revoke", "token "+name, "", t.seen(r), nil)},
	}, "token "+name)
	return err
}

// errCredentials is the answer to every credential that is not valid.
func errCredentials() error {
	return &Error{Code: CodeSignedOut, Detail: "the credentials are not valid, or have expired", Remedy: "sign in again, or use another token"}
}

// ByToken returns whose token this is.
func (o *Operators) ByToken(ctx context.Context, text string, from netip.Addr) (Identity, error) {
	name, _, ok := cutLast(strings.TrimPrefix(text, TokenPrefix), "_")
	if !ok || !strings.HasPrefix(text, TokenPrefix) || len(text) > 256 {
		return Identity{}, errCredentials()
	}
	t, r, err := o.token(ctx, name)
	if e, ok := err.(*Error); ok && e.Code == CodeNotFound {
		t, err = &token{}, nil
	}
	if err != nil {
		return Identity{}, err
	}
	right := subtle.ConstantTimeCompare([]byte(credential.Digest(text)), []byte(t.Digest)) == 1
	if !right || !t.Expires.IsZero() && !o.time().Before(t.Expires) {
		o.refused(event.Auth{Token: tokenName(t, name), Address: addressText(from), Method: "token", Reason: "credentials"})
		return Identity{}, errCredentials()
	}
	from = from.Unmap()
	if len(t.Addresses) > 0 && !slices.ContainsFunc(t.Addresses, func(p netip.Prefix) bool { return p.Contains(from) }) {
		o.refused(event.Auth{Token: name, Address: addressText(from), Method: "token", Reason: "address"})
		return Identity{}, &Error{Code: CodeForbidden, Detail: "this token is not to be used from this address"}
	}
	o.noteUse(ctx, t, r, from)
	return Identity{Name: "token:" + t.Name, Role: t.Role, Scopes: t.Scopes, Address: from, Via: "api"}, nil
}

// tokenName returns the name of an existing token, so that events repeat no made-up
// text.
func tokenName(t *token, name string) string {
	if t.Name == "" {
		return "unknown"
	}
	return name
}

// noteUse records at times that a token was used. It may fail: another process has
// written it, or the store cannot be written.
func (o *Operators) noteUse(ctx context.Context, t *token, r store.Revision, from netip.Addr) {
	at := o.now()
	if at.Sub(t.Used) < usedEvery {
		return
	}
	t.Used, t.UsedFrom = at, addressText(from)
	key := store.PrefixToken + t.Name
	e := entry(key, t)
	e.TTL = store.TTL(at, t.Expires)
	if _, err := o.store.Commit(ctx, store.Change{If: []store.Condition{{Key: key, Revision: r}}, Put: []store.Entry{e}}); err != nil {
		o.log.Debug("the use of a token is not written down", "token", t.Name, "error", err)
	}
}

func addressText(a netip.Addr) string {
	if !a.IsValid() {
		return ""
	}
	return a.Unmap().String()
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
