package operator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"headgate/internal/credential"
	"headgate/internal/store"
)

// The bounds of sessions that only this machine has.
const (
	detachedAge = time.Hour
	maxDetached = 100
)

// detached has the sessions of people who signed in while the store of several machines
// was away. They are in memory, valid on this machine only, and end after an hour; at
// the limit, the oldest is removed. Concurrent calls are allowed.
type detached struct {
	mu    sync.Mutex
	all   map[string]session // by key; guarded by mu
	steps map[string]uint64  // the last code of a user's authenticator; guarded by mu
	time  func() time.Time   // that all machines agree on
}

func newDetached(now func() time.Time) *detached {
	return &detached{all: map[string]session{}, steps: map[string]uint64{}, time: now}
}

// isAway reports whether an error of a commit means that the shared store is away: the
// operator may sign in nevertheless. A store that has moved is not away.
func isAway(err error) bool {
	return (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome)) && !errors.Is(err, store.ErrMoved)
}

// add keeps a session.
func (d *detached) add(key string, s session) {
	d.mu.Lock()
	defer d.mu.Unlock()
	oldest := ""
	for k, other := range d.all {
		if !d.time().Before(other.Expires) {
			delete(d.all, k)
		} else if oldest == "" || other.Created.Before(d.all[oldest].Created) {
			oldest = k
		}
	}
	if len(d.all) >= maxDetached {
		delete(d.all, oldest)
	}
	d.all[key] = s
}

// get returns a session that has not ended.
func (d *detached) get(key string) (session, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.all[key]
	return s, ok && d.time().Before(s.Expires)
}

// remove ends a session. It reports whether there was one.
func (d *detached) remove(key string) (session, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	s, ok := d.all[key]
	delete(d.all, key)
	return s, ok
}

// keys returns the keys of all sessions, in order.
func (d *detached) keys() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	keys := make([]string, 0, len(d.all))
	for key := range d.all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// used notes a code of a user's authenticator that the store does not know of.
func (d *detached) used(user string, step uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.steps[user] = max(d.steps[user], step)
}

// lastStep returns the last code of a user's authenticator that was used here.
func (d *detached) lastStep(user string) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.steps[user]
}

// startSession makes a session. While the store of several machines is away, it is one of
// this machine only, and what also has to be kept of the user is not. Its audit record is
// sent to the store later.
func (o *Operators) startSession(ctx context.Context, by Identity, s session, agent, oldCookie string, also store.Change) (Credentials, error) {
	also.ID = store.NewID()
	c, err := o.createSession(ctx, by, s, agent, oldCookie, also)
	if err == nil || !o.shared || !isAway(err) {
		return c, err
	}
	if s.Method == "recovery_code" {
		return Credentials{}, &Error{Code: CodeStore, Field: "code", Detail: "a recovery code is not accepted while the shared store is unavailable, because it could be used again",
			Remedy: "enter a code of your authenticator, or use the command line on the machine", RetryAfter: storeRetry}
	}
	c, key := o.newSession(&s, by, agent, detachedAge)
	if err := o.journal.add(also.ID, by.Audit("session.sign_in", "user "+s.User, "the shared store was unavailable: a session of one machine", nil, s.Session)); err != nil {
		return Credentials{}, fmt.Errorf("sign in while the shared store is unavailable: %w: %w", store.ErrUnavailable, err)
	}
	o.detached.add(key, s)
	if oldCookie != "" {
		o.detached.remove(store.PrefixSession + credential.Digest(oldCookie))
	}
	o.throttle.known.add(by.Address, s.User)
	o.log.Warn("an operator has signed in on this machine only, because the shared store is unavailable", "user", s.User, "until", s.Expires, "error", err)
	return c, nil
}

// endDetached ends a session of this machine. It reports whether there was one.
func (o *Operators) endDetached(ctx context.Context, by Identity, key, action string) (bool, error) {
	s, ok := o.detached.remove(key)
	if !ok {
		return false, nil
	}
	return true, o.keepAudit(ctx, by, by.Audit(action, "user "+s.User, "", s.Session, nil))
}

// keepAudit appends a record to the audit log. While the store of several machines is away,
// or others wait to be sent, it goes to the journal.
func (o *Operators) keepAudit(ctx context.Context, by Identity, r store.Record) error {
	id := store.NewID()
	if o.shared && o.journal.waiting() {
		return o.journal.add(id, r)
	}
	_, err := o.store.Commit(ctx, store.Change{ID: id, Append: []store.Record{r}, Who: by.Name})
	if err != nil && o.shared && isAway(err) {
		err = o.journal.add(id, r)
	}
	if err != nil {
		return fmt.Errorf("write the audit: %w", err)
	}
	return nil
}

// findDetached returns the key of the session with an id of a user, or of any user for "".
func (o *Operators) findDetached(id, name string) (string, bool) {
	for _, key := range o.detached.keys() {
		if s, ok := o.detached.get(key); ok && s.ID == id && (name == "" || s.User == name) {
			return key, true
		}
	}
	return "", false
}
