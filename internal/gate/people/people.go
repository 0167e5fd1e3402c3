// Package people keeps those who sign in at the sign-in page with credentials that headgate
// checks itself: a passkey, or a password and a code of an authenticator. New makes a People
// over a store; the sign-in page signs people in through it, and the API changes them.
//
// A person is made by an operator and chooses credentials with an invitation link. There is
// no way to register oneself. account.go has the accounts, invitation.go the links, signin.go
// passwords and codes, limits.go the bounds on guessing, passkey.go passkeys, directory.go
// what every node has in memory.
//
// Operators are other people, in package operator: nothing here gives a right to change
// headgate.
package people

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"sync"
	"time"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// Provider replaces a provider's name for people kept by headgate: their ids are local/NAME.
const Provider = "local"

// Error is why something was refused. The API and the command line show it.
type Error struct {
	// Code is one word.
	Code string
	// Field is the field of the input that is wrong, "" if none is.
	Field string
	// Detail says what is wrong, Remedy what to do.
	Detail, Remedy string
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
	CodeInvalid  = "invalid"   // a field has a wrong value
	CodeNotFound = "not_found" // there is no such person
	CodeExists   = "exists"    // the name or the address belongs to another person
	CodeStale    = "stale"     // it was changed meanwhile
)

// Errors of signing in. They do not show whether there is such a person.
var (
	// ErrCredentials is of a wrong name, password or code.
	ErrCredentials = errors.New("the name, the password or the code is wrong")
	// ErrLink is of an invitation that does not exist, was used, or has expired.
	ErrLink = errors.New("the link is not valid, was used, or has expired")
	// ErrUnavailable is wrapped when the store cannot be used now.
	ErrUnavailable = errors.New("people cannot be read or written at the moment")
	// ErrBusy is returned when too many passwords are being checked.
	ErrBusy = errors.New("too many passwords are being checked")
)

// By is who makes a change.
type By struct {
	// Name is what the audit calls it.
	Name string
	// Audit makes the record of a change. It may be nil.
	Audit func(action, object, why string, before, after any) store.Record
}

func (b By) record(action, name string, before, after any) []store.Record {
	if b.Audit == nil {
		return nil
	}
	return []store.Record{b.Audit(action, "person "+name, "", before, after)}
}

// Options are what People need.
type Options struct {
	// Store keeps them.
	Store store.Store
	// Log is the application's log. Nil discards.
	Log *slog.Logger
	// Own returns a person as the one who makes a change. It may be nil.
	Own func(person string, from netip.Addr) By
}

// People are those that a store has. Its methods may be called by several goroutines at once.
type People struct {
	o         Options
	limits    *limits
	directory directory
	decoy     string // the authenticator of people who do not exist
	changed   func(name string)
	after     store.Position

	matches func(hash, password string) bool // credential.Matches

	checks *credential.Checks

	stop    context.CancelFunc
	running sync.WaitGroup
}

// New returns the people of a store. Start follows what other nodes write.
func New(o Options) *People {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	p := &People{
		o: o, limits: newLimits(), matches: credential.Matches,
		checks: credential.NewChecks(),
	}
	p.directory.all = map[string]*Listed{}
	p.decoy = credential.NewTOTP()
	p.after = p.restore(context.Background())
	return p
}

// Start follows the store until Close. Changed is called with the name of a person when what
// the directory has of them has changed, on any node, or when they were removed. It may be
// nil. Start is called at most once, before anything changes people.
func (p *People) Start(changed func(name string)) {
	p.changed = changed
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	p.running.Go(func() { p.follow(ctx, p.after) })
}

// Close ends what Start has started.
func (p *People) Close() {
	if p.stop != nil {
		p.stop()
	}
	p.running.Wait()
}

// The keys, below store.PrefixPerson.
const (
	keyAccount    = store.PrefixPerson + "account/"    // NAME
	keyEmail      = store.PrefixPerson + "email/"      // ADDRESS: the name of the account
	keyHandle     = store.PrefixPerson + "handle/"     // user handle of passkeys: the name
	keyInvitation = store.PrefixPerson + "invitation/" // digest of the link
	keyUsed       = store.PrefixPerson + "used/"       // digest of a challenge that was answered
)

// Any as the revision that a person must have is any but none.
const Any = ^store.Revision(0)

// get reads an entry as JSON. The error is ErrNotFound's, or wraps ErrUnavailable.
func (p *People) get(ctx context.Context, key string, into any) (store.Revision, error) {
	e, err := p.o.Store.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return 0, err
	}
	if err != nil {
		return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := json.Unmarshal(e.Value, into); err != nil {
		return 0, fmt.Errorf("%w: read %s: %v", ErrUnavailable, key, err)
	}
	return e.Revision, nil
}

// commit makes a change. The error is an *Error with CodeStale when a condition does not
// hold, and wraps ErrUnavailable otherwise.
func (p *People) commit(ctx context.Context, c store.Change) (store.Revision, error) {
	r, err := p.o.Store.Commit(ctx, c)
	if err == nil {
		return r, nil
	}
	if conflict := (*store.Conflict)(nil); errors.As(err, &conflict) {
		return 0, &Error{Code: CodeStale, Detail: "the person was changed meanwhile", Remedy: "read it again and repeat the change"}
	}
	return 0, fmt.Errorf("%w: %w", ErrUnavailable, err)
}

func isStale(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Code == CodeStale
}

// entry returns what is kept of a value, which can be written as JSON.
func entry(key string, value any) store.Entry {
	data, err := json.Marshal(value)
	if err != nil {
		panic("people: " + err.Error()) // plain structs of texts and times
	}
	return store.Entry{Key: key, Value: data}
}

// now returns the time that all nodes agree on, as it is kept.
func (p *People) now() time.Time { return store.Time(p.o.Store).UTC().Truncate(time.Second) }

// cleanEmail returns an address in the one form that is compared, and whether it is one.
func cleanEmail(text string) (string, bool) {
	text = strings.ToLower(strings.TrimSpace(text))
	at := strings.LastIndexByte(text, '@')
	if at <= 0 || at == len(text)-1 || len(text) > maxText || strings.ContainsAny(text, " ,;<>/\"|") ||
		strings.IndexFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) >= 0 || strings.Contains(text[:at], "@") {
		return "", false
	}
	return text, true
}
