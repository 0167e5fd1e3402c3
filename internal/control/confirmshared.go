package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"headgate/internal/config"
	"headgate/internal/file"
	"headgate/internal/store"
	"headgate/internal/store/history"
)

// Where several machines share a store, each counts the wait of a change by its own
// monotonic clock, from when it served the change first. At the end of it the machines try to
// save the configuration before, and one of them succeeds. A machine that cannot reach the
// store then serves the configuration before anyway: if the change turns out to be
// confirmed, it serves the change again, else it saves the revert.

// waitName is the file in the state directory that holds until when this machine waits, so
// that a start continues the wait.
const waitName = "wait.json"

// waitState is how long this machine waits for the confirmation of a change.
type waitState struct {
	Revision int `json:"revision"`
	// Intent is that of the revision: after a restore, another one can have the number.
	Intent string `json:"intent,omitempty"`
	// Until is by the clock of this machine.
	Until time.Time `json:"until"`
}

// remainingLocked returns how much longer this machine waits for the confirmation of a
// change.
func (c *Control) remainingLocked(p history.Pending) time.Duration {
	name := filepath.Join(c.options.StateDir, waitName)
	var w waitState
	r, _ := c.history.Get(p.Revision) // without it, the number has to do
	data, err := file.Read(name, 4096, "a wait has less")
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	if err == nil && w.Revision == p.Revision && w.Intent == r.Intent {
		return max(min(time.Until(w.Until), p.Within), 0)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("how long this machine waited for a confirmation is not known: it starts to wait anew", "error", err)
	}
	if data, err = json.Marshal(waitState{p.Revision, r.Intent, time.Now().Add(p.Within)}); err == nil {
		err = file.Replace(name, append(data, '\n'))
	}
	if err != nil {
		c.log.Error("a restart will wait anew for the confirmation, as its end cannot be noted", "revision", p.Revision, "error", err)
	}
	return p.Within
}

// followPendingLocked takes up a change that waits to be confirmed, or that another machine
// has confirmed.
func (c *Control) followPendingLocked() {
	p, waits, err := c.history.Pending(context.Background())
	switch {
	case err != nil:
		c.log.Error("whether a change waits to be confirmed cannot be read", "error", err)
	case waits && c.mu.pending == nil && fmt.Sprintf("%08d", p.Revision) == c.mu.revision:
		c.awaitConfirmLocked()
		c.publishLocked()
	case !waits && c.mu.pending != nil:
		c.endConfirmLocked()
		c.publishLocked()
	}
}

// serveWithoutLocked serves the configuration before a change that was not confirmed and
// that cannot be reverted, as the shared store is away.
func (c *Control) serveWithoutLocked(p history.Pending) {
	r, err := c.history.Get(p.Before)
	if err == nil {
		ch := c.newChangeLocked(Cause{Who: "headgate", Why: fmt.Sprintf("revision %d was not confirmed", p.Revision), Via: ViaFile}, nil)
		ch.verb, ch.revision = RevertedLocally, r.Name()
		ch.from = func() (config.Documents, error) { return c.kept(r.Number) }
		err = c.makeLocked(ch)
	}
	if err != nil {
		c.log.Error("the configuration before a change that was not confirmed cannot be served", "revision", p.Before, "error", err)
		return
	}
	c.mu.without = p.Revision
	c.publishLocked()
}

// withoutLocked decides about a change that this machine has left by itself: whether it was
// confirmed elsewhere, or is to be reverted. It reports whether the change is still left.
func (c *Control) withoutLocked() bool {
	if c.mu.without == 0 {
		return false
	}
	p, waits, err := c.history.Pending(context.Background())
	if err != nil {
		return true
	}
	if !waits || p.Revision != c.mu.without {
		c.mu.without = 0
		return false
	}
	_, err = c.revertLocked(p, nil)
	if err == nil {
		c.mu.without = 0
	}
	return true
}

// leaveLocked serves the configuration before a change if the wait for its confirmation has
// ended and the shared store does not accept the revert.
func (c *Control) leaveLocked(err error) {
	if p := c.mu.pending; p != nil && c.shared && c.mu.without == 0 && (errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrUnknownOutcome)) {
		c.serveWithoutLocked(*p)
	}
}
