package control

import (
	"context"
	"errors"
	"time"

	"headgate/internal/server/split"
	"headgate/internal/store"
)

// SplitCommand is what an operator wants of a split.
type SplitCommand struct {
	// Proxy is the name of the proxy; Route may be empty if it has one split.
	Proxy, Route string
	// Do is what to do.
	Do SplitVerb
	// To is the share for Promote, 0 for the next step.
	To int
	// Who does it, and Why.
	Who, Why string
}

// SplitVerb is a command for a split.
type SplitVerb string

// The commands.
const (
	SplitPromote SplitVerb = "promote"
	SplitHold    SplitVerb = "hold"
	SplitReturn  SplitVerb = "return"
	SplitRestart SplitVerb = "restart"
)

// The errors of DecideSplit, beside those of package split.
var (
	ErrNoSplit      = errors.New("the proxy has no such split")
	ErrManySplits   = errors.New("the proxy has several splits")
	ErrSplitChanged = errors.New("the split has changed at the same moment")
)

// Splits returns the splits of the running configuration, by proxy.
func (c *Control) Splits() []SplitState { return c.splits.list() }

// DecideSplit carries out an operator's command. The records are kept in the same commit.
// The error is one of this package or of package split, or that of the store.
func (c *Control) DecideSplit(ctx context.Context, cmd SplitCommand, records ...store.Record) (SplitState, error) {
	s := c.splits
	s.acting.Lock()
	defer s.acting.Unlock()
	one, before, kept, revision, err := s.decided(cmd)
	if err != nil {
		return SplitState{}, err
	}
	err = s.commitActing(ctx, kept, revision, store.Change{Append: records, Who: cmd.Who, Why: cmd.Why}, before)
	if err != nil {
		return SplitState{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.mu.states[one.place]
	if now == nil {
		return SplitState{}, ErrNoSplit
	}
	if cmd.Do == SplitRestart {
		one.Live.Forget()
		now.verdict = split.Verdict{}
	}
	return now.state(one, time.Now()), nil
}

// TrySplit returns what DecideSplit would, and changes nothing.
func (c *Control) TrySplit(cmd SplitCommand) (SplitState, error) {
	one, _, kept, _, err := c.splits.decided(cmd)
	if err != nil {
		return SplitState{}, err
	}
	would := splitting{keptSplit: kept}
	return would.state(one, time.Now()), nil
}

// decided returns what a command makes of a split.
func (s *splits) decided(cmd SplitCommand) (one activeSplit, before split.State, kept keptSplit, revision store.Revision, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if one, err = s.findLocked(cmd.Proxy, cmd.Route); err != nil {
		return one, before, kept, 0, err
	}
	now := s.mu.states[one.place]
	if now == nil {
		return one, before, kept, 0, ErrNoSplit
	}
	before, kept, revision = now.State, now.keptSplit, now.revision
	program, at := &one.program, time.Now().UTC()
	switch cmd.Do {
	case SplitPromote:
		kept.State, err = program.Promote(before, cmd.To, at, cmd.Who, cmd.Why)
	case SplitHold:
		kept.State, err = program.Hold(before, at, cmd.Who, cmd.Why)
	case SplitReturn:
		kept.State, err = program.Return(before, at, cmd.Who, cmd.Why)
	default:
		kept.State = program.Initial(at)
		kept.Who, kept.Why = cmd.Who, cmd.Why
	}
	return one, before, kept, revision, err
}

// findLocked returns the split that is meant.
func (s *splits) findLocked(proxy, route string) (found activeSplit, err error) {
	n := 0
	for _, one := range s.mu.active {
		if one.Proxy == proxy && (route == "" || one.Route == route) {
			found, n = one, n+1
		}
	}
	switch n {
	case 0:
		return found, ErrNoSplit
	case 1:
		return found, nil
	}
	return found, ErrManySplits
}
