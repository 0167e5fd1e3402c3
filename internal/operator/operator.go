// Package operator manages the people and programs that may change a headgate: users,
// their sessions, tokens, the initial setup, and the audit log of their actions. Open
// makes an Operators over a store; the API uses it to identify callers and to change
// users and tokens. The command line uses it too, when no process runs.
//
// Every change is one commit together with its audit record. Secrets are kept as
// hashes only, except those of TOTP, which lie in values that the store seals.
//
// It knows no HTTP: which cookie and which header carry a secret is for the API.
package operator

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"regexp"
	"slices"
	"time"

	"headgate/internal/event"
	"headgate/internal/seal"
	"headgate/internal/store"
)

// Role is what an operator may do.
type Role string

// The roles, each of which may do what those after it may.
const (
	Admin  Role = "admin"
	Editor Role = "editor"
	Viewer Role = "viewer"
)

// roles are all roles, from the lowest.
var roles = []Role{Viewer, Editor, Admin}

// Valid reports whether r is one of the roles.
func (r Role) Valid() bool { return slices.Contains(roles, r) }

// AtLeast reports whether r may do what min may.
func (r Role) AtLeast(min Role) bool {
	return r.Valid() && slices.Index(roles, r) >= slices.Index(roles, min)
}

// Identity is who a request comes from.
type Identity struct {
	// Name is what the audit says: a user's name, "token:NAME", "oidc:NAME" or
	// "local:UID".
	Name string
	// Role is what it may do, and Scopes what of that; no scopes are all.
	Role   Role
	Scopes []string
	// Session is the session's id for people, "" without one.
	Session string
	// Address is where it comes from.
	Address netip.Addr
	// Via is how: api, console or cli.
	Via string
}

// Local returns the identity of a process on this machine whose user is trusted, who
// came by the admin socket.
func Local(uid int) Identity {
	return Identity{Name: fmt.Sprintf("local:%d", uid), Role: Admin, Via: "cli"}
}

// Anonymous returns who a request comes from before it has signed in.
func Anonymous(from netip.Addr, via string) Identity {
	return Identity{Address: from.Unmap(), Via: via}
}

// May reports whether the scopes of an identity allow to read, or to change, an area.
func (i *Identity) May(area string, write bool) bool {
	if len(i.Scopes) == 0 || slices.Contains(i.Scopes, area) {
		return true
	}
	return !write && slices.Contains(i.Scopes, area+":read")
}

// Error is why something was refused. The API and the command line show it.
type Error struct {
	// Code is one word, such as throttled.
	Code string
	// Field is the field of the input that is wrong, "" if none is.
	Field string
	// Detail says what is wrong, Remedy what to do.
	Detail, Remedy string
	// RetryAfter is how long to wait, 0 if waiting does not help.
	RetryAfter time.Duration
}

// Error returns the detail and the remedy.
func (e *Error) Error() string {
	if e.Remedy == "" {
		return e.Detail
	}
	return e.Detail + "; " + e.Remedy
}

// The codes of errors.
const (
	CodeInvalid    = "invalid"       // a field has a wrong value
	CodeNotFound   = "not_found"     // there is no such object
	CodeExists     = "exists"        // the name exists already
	CodeStale      = "stale"         // it was changed meanwhile
	CodeSignedOut  = "signed_out"    // no valid credentials
	CodeTOTP       = "totp_required" // the password is right, a code is missing
	CodeThrottled  = "throttled"     // too many attempts
	CodeOverloaded = "overloaded"    // too much at once
	CodeForbidden  = "forbidden"     // not with this role, from this address, …
	CodeLastAdmin  = "last_admin"    // no admin would be left
	CodeProvider   = "provider"      // the sign-in provider did not answer as it should
	CodeStore      = "store_unavailable"
)

// storeRetry is when to try again while the store is unavailable.
const storeRetry = 5 * time.Second

// Options are what operators need.
type Options struct {
	// Store keeps them.
	Store store.Store
	// Events gets the sign-ins. It may be nil.
	Events event.Sender
	// SignedIn is called with the address of each sign-in of a person who may change
	// things. It may be nil.
	SignedIn func(netip.Addr)
	// Log gets errors that cannot be returned to a caller.
	Log *slog.Logger
	// SetupFile is where the token of the set-up link is written, too; "" writes none.
	SetupFile string
	// Node is the name of this machine if the store is that of several machines, which can be
	// away: then a sign-in is valid on this machine for an hour, and audit records wait in
	// Journal. "" is a store of its own.
	Node string
	// Journal is the file for audit records that wait for the store; "" keeps none. SendAudit
	// sends them.
	Journal string
}

// Operators are the users, tokens and sessions of a store. Its methods may be called
// by several goroutines at once.
type Operators struct {
	store    store.Store
	events   event.Sender
	log      *slog.Logger
	setup    string
	node     string
	signedIn func(netip.Addr)
	throttle *throttle
	sealer   *seal.Sealer
	oidc     provider
	shared   bool
	journal  *journal
	detached *detached
}

// New returns the operators that are kept in a store.
func New(o Options) *Operators {
	of := &Operators{store: o.Store, events: o.Events, log: o.Log, setup: o.SetupFile, node: o.Node, signedIn: o.SignedIn, throttle: newThrottle(), sealer: seal.New(o.Store),
		shared: o.Node != "", journal: newJournal(o.Journal, o.Log)}
	of.detached = newDetached(of.time)
	return of
}

// Any as the revision that an object must have is any but none.
const Any = ^store.Revision(0)

// names are what users and tokens may be called.
var names = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]{0,63}$`)

func checkName(name string) error {
	if !names.MatchString(name) {
		return &Error{Code: CodeInvalid, Field: "name", Detail: "invalid name",
			Remedy: "use 1 to 64 lower-case letters, digits and . _ @ -, beginning with a letter or digit"}
	}
	return nil
}

// get reads an entry as JSON and returns its revision.
func (o *Operators) get(ctx context.Context, key, what string, into any) (store.Revision, error) {
	e, err := o.store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return 0, &Error{Code: CodeNotFound, Detail: "there is no " + what}
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", what, err)
	}
	if err := json.Unmarshal(e.Value, into); err != nil {
		return 0, fmt.Errorf("read %s: %w", what, err)
	}
	return e.Revision, nil
}

// commit makes a change, and says of a conflict what it means.
func (o *Operators) commit(ctx context.Context, c store.Change, what string) (store.Revision, error) {
	r, err := o.store.Commit(ctx, c)
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		return 0, &Error{Code: CodeStale, Detail: what + " was changed meanwhile", Remedy: "read it again and repeat the change"}
	}
	if err != nil {
		return 0, fmt.Errorf("change %s: %w", what, err)
	}
	return r, nil
}

// match returns an error if the revision of an object is not the one that the
// caller has seen.
func match(have, want store.Revision, what string) error {
	if want != Any && want != have {
		return &Error{Code: CodeStale, Detail: what + " was changed meanwhile", Remedy: "read it again and repeat the change"}
	}
	return nil
}

// entry returns what is kept of a value, which can be written as JSON.
func entry(key string, value any) store.Entry {
	data, err := json.Marshal(value)
	if err != nil {
		panic("operator: " + err.Error()) // plain structs of texts and times
	}
	return store.Entry{Key: key, Value: data}
}

// time returns the time that all machines agree on, and now the same as it is kept.
func (o *Operators) time() time.Time { return store.Time(o.store) }

func (o *Operators) now() time.Time { return o.time().UTC().Truncate(time.Second) }

// entered sends the event of a sign-in; warning is what an operator should know, or "".
func (o *Operators) entered(from Identity, role Role, method, warning string) {
	o.publish(event.AuthSignedIn{Auth: event.Auth{User: from.Name, Address: addressText(from.Address), Method: method}, Warning: warning})
	if o.signedIn != nil && role != Viewer {
		o.signedIn(from.Address)
	}
}

func (o *Operators) publish(p event.Payload) {
	if o.events != nil {
		o.events.Send(p)
	}
}
