package control

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"headgate/internal/config"
	"headgate/internal/store"
	"headgate/internal/store/history"
)

// ConfirmPending is the error of a change while another waits to be confirmed.
type ConfirmPending struct {
	// Revision is the one that waits, until Until.
	Revision int
	Until    time.Time
}

// Error describes the pending change and what to do.
func (p *ConfirmPending) Error() string {
	return fmt.Sprintf("revision %d waits to be confirmed until %s; confirm it, revert it, or wait", p.Revision, p.Until.Format(time.RFC3339))
}

// ErrNothingPending is the error of Confirm when no change waits.
var ErrNothingPending = errors.New("no change waits to be confirmed")

// ErrEdited is the error of a revert that would undo manual changes of the files.
var ErrEdited = errors.New("the documents were edited by hand since, which confirms the change")

// PendingState is a change that waits to be confirmed.
type PendingState struct {
	// Revision is its name in the state directory.
	Revision string `json:"revision" required:"true"`
	// Until is when the configuration before comes back, unless it is confirmed.
	Until time.Time `json:"until" required:"true"`
}

// revertRetry is how long a configuration that could not be brought back waits for the
// next try.
const revertRetry = 5 * time.Second

func (c *Control) confirmPendingLocked() error {
	return &ConfirmPending{Revision: c.mu.pending.Revision, Until: c.mu.pending.Until}
}

// awaitConfirmLocked begins the wait for a change to be confirmed that was saved.
func (c *Control) awaitConfirmLocked() {
	p, ok, err := c.history.Pending(context.Background())
	if err != nil || !ok {
		c.log.Error("change does not wait to be confirmed", "error", err)
		return
	}
	c.mu.pending = &p
	c.awaitPendingLocked(p)
	c.log.Warn("configuration waits to be confirmed", "revision", p.Revision, "until", p.Until.Format(time.RFC3339))
}

// endConfirmLocked ends the wait.
func (c *Control) endConfirmLocked() {
	c.mu.pending = nil
	if c.mu.confirm != nil {
		c.mu.confirm.Stop()
		c.mu.confirm = nil
	}
}

// Pending returns the change that waits to be confirmed, nil for none.
func (c *Control) Pending() *PendingState {
	if s := c.standing.Load(); s != nil {
		return s.pending
	}
	return nil
}

// ConfirmRevision is Confirm for the change of that revision only, by its name.
func (c *Control) ConfirmRevision(cause Cause, revision string, records ...store.Record) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.pending == nil || fmt.Sprintf("%08d", c.mu.pending.Revision) != revision {
		return ErrNothingPending
	}
	return c.confirmLocked(cause, records...)
}

// Confirm makes the change that waits to be confirmed stay. The error is
// ErrNothingPending when none does.
func (c *Control) Confirm(cause Cause) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.pending == nil {
		return ErrNothingPending
	}
	return c.confirmLocked(cause)
}

// RevertRevision reverts the pending change of that revision to the previous configuration.
// The error is ErrNothingPending if it is not pending, and ErrEdited if the files were
// edited since, which confirms the change. Check may reject it, like that of an Edit.
func (c *Control) RevertRevision(revision string, check func(now, after *config.Config) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.pending == nil || fmt.Sprintf("%08d", c.mu.pending.Revision) != revision {
		return ErrNothingPending
	}
	confirmed, err := c.revertLocked(*c.mu.pending, check)
	if err == nil && confirmed {
		return ErrEdited
	}
	return err
}

func (c *Control) confirmLocked(cause Cause, records ...store.Record) error {
	number := c.mu.pending.Revision
	if err := c.history.Confirm(context.Background(), number, records...); err != nil {
		return err
	}
	c.endConfirmLocked()
	c.finishRestore()
	if cause.When.IsZero() {
		cause.When = time.Now()
	}
	c.publishLocked()
	c.publishAll(&Event{Verb: Confirmed, Cause: cause, Revision: fmt.Sprintf("%08d", number), Before: c.configLocked(), After: c.configLocked()})
	if c.mu.degraded && c.mu.tried != "" {
		_ = c.reloadLocked(cause.Via) // the previous configuration is still served; a failure is logged
	}
	return nil
}

func (c *Control) configLocked() *config.Config {
	if p := c.current.Load(); p != nil {
		return p.Config()
	}
	return nil
}

// revert reverts a change that was not confirmed in time.
func (c *Control) revert(number int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed || c.mu.frozen || c.mu.pending == nil || c.mu.pending.Revision != number {
		return
	}
	if _, err := c.revertLocked(*c.mu.pending, nil); err != nil && c.mu.pending != nil {
		c.leaveLocked(err)
		c.retryRevertLocked(err)
	}
}

// retryRevertLocked schedules another attempt to revert the pending change.
func (c *Control) retryRevertLocked(err error) {
	p := c.mu.pending
	if errors.Is(err, history.ErrElsewhere) {
		c.log.Info("another machine has confirmed or reverted the change", "revision", p.Revision)
	} else {
		c.log.Error("configuration before a change that was not confirmed cannot be brought back yet", "revision", p.Before, "retry", revertRetry.String(), "error", err)
	}
	c.mu.confirm = time.AfterFunc(revertRetry, func() { c.revert(p.Revision) })
}

// revertLocked restores the files of the previous revision, and applies them. If the files
// are not those of the revision, they were edited, which confirms it. Check may be nil.
func (c *Control) revertLocked(p history.Pending, check func(now, after *config.Config) error) (confirmed bool, err error) {
	now, err := c.source.Read(nil)
	if err != nil {
		return false, err
	}
	if c.editedLocked(p, now) {
		return true, c.confirmEditedLocked()
	}
	if err := c.makeLocked(c.revertingLocked(p, now, check)); err != nil {
		return false, err
	}
	c.finishRestore()
	return false, nil
}

// TryRevert returns what RevertRevision would, and changes nothing.
func (c *Control) TryRevert(revision string, check func(now, after *config.Config) error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.pending == nil || fmt.Sprintf("%08d", c.mu.pending.Revision) != revision {
		return ErrNothingPending
	}
	now, err := c.source.Read(nil)
	if err != nil {
		return err
	}
	if c.editedLocked(*c.mu.pending, now) {
		return ErrEdited
	}
	_, err = c.dryRunLocked(c.revertingLocked(*c.mu.pending, now, check), true)
	return err
}

// revertingLocked returns the change that puts the documents before a revision back.
func (c *Control) revertingLocked(p history.Pending, now config.Documents, check func(now, after *config.Config) error) *change {
	ch := c.newChangeLocked(Cause{Who: "headgate", Why: fmt.Sprintf("revision %d was not confirmed", p.Revision), Via: ViaFile}, nil)
	if r, err := c.history.Get(p.Revision); err == nil {
		ch.cause.Via = Via(r.Via)
	}
	ch.edit = true // if it is rejected, the files are still those of the active configuration
	ch.checked, ch.now = check, ch.next.Before
	ch.verb, ch.rollsBack, ch.made = Reverted, p.Revision, c.digestsLocked(now)
	ch.from = func() (config.Documents, error) { return c.kept(p.Before) }
	return ch
}

// kept returns the documents of a revision.
func (c *Control) kept(number int) (config.Documents, error) {
	list, err := c.history.Documents(context.Background(), number)
	if err != nil {
		return config.Documents{}, err
	}
	docs := config.Documents{Dir: filepath.Dir(c.options.ConfigFile)}
	for _, d := range list {
		docs.Dir = filepath.Dir(d.Name)
		docs.List = append(docs.List, config.Document{Name: d.Name, Data: d.Data})
	}
	return docs, nil
}

// editedLocked reports whether documents are not those of the revision that waits.
func (c *Control) editedLocked(p history.Pending, now config.Documents) bool {
	r, err := c.history.Get(p.Revision)
	if err != nil {
		return true
	}
	have := c.digestsLocked(now)
	for _, d := range r.Documents {
		if have[d.Name] != d.Digest {
			return true
		}
	}
	return len(have) != len(r.Documents)
}

// confirmEditedLocked confirms a change because its documents were edited by hand since.
func (c *Control) confirmEditedLocked() error {
	c.log.Warn("documents were edited by hand while a change waited to be confirmed: it counts as confirmed", "revision", c.mu.pending.Revision)
	return c.confirmLocked(Cause{Why: "the documents were edited by hand", Via: ViaFile})
}
