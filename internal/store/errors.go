package store

import (
	"errors"
	"fmt"
	"time"
)

// The errors that callers branch on, with errors.Is.
var (
	// ErrNotFound says that there is no entry with a key.
	ErrNotFound = errors.New("not found")
	// ErrFenced means that the lease for a change has ended: another node may have it by
	// now.
	ErrFenced = errors.New("the lease has ended")
	// ErrTooOld says that a watch asks for commits that the engine has forgotten.
	ErrTooOld = errors.New("the revision is too old to watch from")
	// ErrTooLarge says that a bound of this package was passed.
	ErrTooLarge = errors.New("too large")
	// ErrUnavailable says that the engine cannot do it now: it is away, or its disk
	// is full or cannot be written to. The text around it says what to do.
	ErrUnavailable = errors.New("the store is unavailable")
	// ErrRewound says that the log does not have the commit at the position that a watch
	// goes on from: an older copy was put in the place of the store. It is for an operator
	// to decide whose state is right.
	ErrRewound = errors.New("the store was set back to an older state")
	// ErrUnknownOutcome says that the engine was asked to commit and its answer was lost:
	// the change was made or not. To commit it again with the same ID tells.
	ErrUnknownOutcome = errors.New("it is not known whether the change was committed")
	// ErrSingleCopy says that a change was committed, and that another machine which must
	// have it, too, has not confirmed that in time. It wraps ErrUnknownOutcome.
	ErrSingleCopy = fmt.Errorf("%w on both machines", ErrUnknownOutcome)
	// ErrMoved says that the state has moved to another store and that this one is kept
	// for reading. It wraps ErrUnavailable.
	ErrMoved = fmt.Errorf("%w: the state has moved", ErrUnavailable)
	// ErrNotEmpty says that an import would overwrite what a store has.
	ErrNotEmpty = errors.New("the store is not empty")
	// ErrClosed says that the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Conflict is the error of a change whose condition is not met: the key was changed.
type Conflict struct {
	// Key is the first one whose condition does not hold.
	Key string
	// Have is the revision that it has; 0 means that it is absent.
	Have Revision
}

// Error tells the key and what it has.
func (c *Conflict) Error() string {
	if c.Have == 0 {
		return fmt.Sprintf("%s is absent", c.Key)
	}
	return fmt.Sprintf("%s was changed meanwhile, by revision %d", c.Key, c.Have)
}

// Held is the error of Acquire if another node has the lease.
type Held struct {
	// By is the node that has it.
	By string
	// Until is when it ends unless it is renewed, by the engine's clock.
	Until time.Time
}

// Error tells who has the lease and until when.
func (h *Held) Error() string {
	return fmt.Sprintf("held by %s until %s", h.By, h.Until.UTC().Format(time.RFC3339))
}
