package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/history"
)

// before are the users and tokens as they were before a restore that waits to be
// confirmed. They are kept until it is known what became of it: the state of the revision
// says so, also after a crash at any moment.
type before struct {
	Revision int          `json:"revision"`
	Entries  []keptBefore `json:"entries"`
}

type keptBefore struct {
	Key     string    `json:"key"`
	Value   []byte    `json:"value"`
	Expires time.Time `json:"expires,omitzero"`
}

// restoredWhole are what a restore replaces whole: operators, people who sign in at
// applications, and the tokens of both. Their sessions end.
var restoredWhole = []string{store.PrefixUser, store.PrefixToken, store.PrefixPerson, store.PrefixGateToken}

// sessionsOf are the prefixes of the sessions that end when what is under a prefix is
// replaced.
var sessionsOf = map[string][]string{
	store.PrefixUser:   {store.PrefixSession},
	store.PrefixPerson: {store.PrefixGateSession, store.PrefixGateRefresh, store.PrefixGateCode},
}

// errTooManyUsers is the error of a restore that would have to keep more than fits.
var errTooManyUsers = errors.New("there are too many users and tokens here to wait for a confirmation; restore without it")

// keepBefore keeps users and tokens until the restore of a revision is confirmed.
func (c *Control) keepBefore(ctx context.Context, revision int) error {
	b := before{Revision: revision}
	for _, prefix := range restoredWhole {
		entries, _, err := c.state.Snapshot(ctx, prefix)
		if err != nil {
			return err
		}
		for _, e := range entries {
			b.Entries = append(b.Entries, keptBefore{e.Key, e.Value, e.Expires})
		}
	}
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	if len(data) > store.MaxChange-(1<<10) {
		return errTooManyUsers
	}
	_, err = c.state.Commit(ctx, store.Change{Put: []store.Entry{{Key: store.KeyBefore, Value: data}}, Why: "restore"})
	return err
}

// RestorePending reports whether the change that waits to be confirmed is a restore, which
// has replaced users and tokens, too.
func (c *Control) RestorePending(ctx context.Context) (bool, error) {
	if c.Pending() == nil {
		return false, nil
	}
	_, err := c.state.Get(ctx, store.KeyBefore)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// finishRestore ends a restore whose outcome is known: one that was reverted restores users and tokens
// back, and when one was confirmed, those before are forgotten.
func (c *Control) finishRestore() {
	c.restoring.Lock()
	defer c.restoring.Unlock()
	ctx := context.Background()
	e, err := c.state.Get(ctx, store.KeyBefore)
	if errors.Is(err, store.ErrNotFound) {
		return
	}
	var b before
	if err == nil {
		err = json.Unmarshal(e.Value, &b)
	}
	if err == nil {
		err = c.settleRevision(ctx, &b)
	}
	if err != nil {
		c.log.Error("users and tokens before a restore could not be brought back; the next start tries again", "error", err)
	}
}

func (c *Control) settleRevision(ctx context.Context, b *before) error {
	if p, waits, err := c.history.Pending(ctx); err != nil || waits && p.Revision == b.Revision {
		return err
	}
	r, err := c.history.Get(b.Revision)
	if err != nil && !errors.Is(err, history.ErrUnknown) {
		return err
	}
	if err == nil && r.State == history.RolledBack {
		put := make([]store.Entry, 0, len(b.Entries))
		for _, e := range b.Entries {
			put = append(put, store.Entry{Key: e.Key, Value: e.Value, Expires: e.Expires})
		}
		if err := (&Archive{control: c}).replaceWhole(ctx, restoredWhole, put); err != nil {
			return err
		}
		c.log.Warn("users and tokens are those of before the restore, which was not confirmed; all sessions have ended", "revision", fmt.Sprintf("%08d", b.Revision))
	}
	_, err = c.state.Commit(ctx, store.Change{Delete: []string{store.KeyBefore}, Why: "restore"})
	return err
}
