package split

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"headgate/internal/setting/unit"
)

// Phase is what a split does.
type Phase string

// The phases.
const (
	// Running: the share follows the schedule, or waits for the next command.
	Running Phase = "running"
	// Held: an operator has stopped the schedule at the current share.
	Held Phase = "held"
	// Returned: the candidate gets nothing until an operator decides.
	Returned Phase = "returned"
	// Complete: the candidate gets everything.
	Complete Phase = "complete"
)

// State is where a split is. It is kept over changes, restarts and upgrades.
type State struct {
	// Phase is what it does.
	Phase Phase `json:"phase"`
	// Share is the candidate's percentage.
	Share int `json:"share"`
	// Since is when it came to this.
	Since time.Time `json:"since"`
	// Who decided it: an operator, "schedule" or "headgate".
	Who string `json:"who,omitempty"`
	// Why is the reason.
	Why string `json:"why,omitempty"`
}

// Program is the compiled Config.
type Program struct {
	// Start is the first share; Steps are all, ascending, also with one.
	Start int
	Steps []int
	// Every is the time of each step; 0 is by command.
	Every time.Duration
	// Rules are those of the comparison.
	Rules Rules
}

// Program returns the compiled settings, which were checked.
func (c *Config) Program() Program {
	p := Program{Start: c.Candidate}
	p.Steps, p.Every, _ = parseSchedule(c.Schedule)
	if len(p.Steps) > 0 {
		p.Start = p.Steps[0]
	}
	r := &c.Rollback
	p.Rules = Rules{Enabled: r.Enabled, Within: r.Within.D(), MinRequests: r.MinRequests}
	p.Rules.ErrorsAbove, _ = parseRatio(r.ErrorsAbove)
	p.Rules.SlowerThan, _ = parseRatio(r.SlowerThan)
	return p
}

// Print identifies the shares of the settings: if an operator changes them in the
// configuration, that is a decision, and the state starts again.
func (p *Program) Print() string {
	b := strconv.AppendInt(nil, int64(p.Start), 10)
	for _, s := range p.Steps {
		b = strconv.AppendInt(append(b, ' '), int64(s), 10)
	}
	return string(b)
}

// The errors of commands.
var (
	ErrComplete = errors.New("the candidate gets all requests already")
	ErrReturned = errors.New("the candidate gets no requests: it was returned")
	ErrHeld     = errors.New("the split is held already")
	ErrShare    = errors.New("the share is not between 1 and 100 percent")
)

// Initial returns the state at the start.
func (p *Program) Initial(now time.Time) State { return at(State{Since: now}, p.Start) }

// at returns s with another share, running or complete.
func at(s State, share int) State {
	s.Phase, s.Share = Running, share
	if share == 100 {
		s.Phase = Complete
	}
	return s
}

// Next returns the share after the current one, 100 after the last step.
func (p *Program) Next(share int) int {
	for _, step := range p.Steps {
		if step > share {
			return step
		}
	}
	return 100
}

// Promote returns the state with the next share, or with share to unless that is 0. A split
// that was returned starts again.
func (p *Program) Promote(s State, to int, now time.Time, who, why string) (State, error) {
	switch {
	case to < 0 || to > 100:
		return s, ErrShare
	case to == 0 && s.Phase == Complete:
		return s, ErrComplete
	case to == 0 && s.Phase == Returned && p.Start > 0:
		to = p.Start
	case to == 0:
		to = p.Next(s.Share)
	}
	return at(State{Since: now, Who: who, Why: why}, to), nil
}

// Hold returns the state with its schedule stopped.
func (p *Program) Hold(s State, now time.Time, who, why string) (State, error) {
	switch s.Phase {
	case Complete:
		return s, ErrComplete
	case Returned:
		return s, ErrReturned
	case Held:
		return s, ErrHeld
	}
	return State{Phase: Held, Share: s.Share, Since: now, Who: who, Why: why}, nil
}

// Return returns the state in which the candidate gets nothing.
func (p *Program) Return(s State, now time.Time, who, why string) (State, error) {
	if s.Phase == Returned {
		return s, ErrReturned
	}
	return State{Phase: Returned, Since: now, Who: who, Why: why}, nil
}

// Tick returns the state after a verdict, and whether it has changed.
func (p *Program) Tick(s State, v Verdict, now time.Time) (State, bool) {
	if s.Phase == Returned {
		return s, false
	}
	if v.Worse != "" {
		return State{Phase: Returned, Since: now, Who: "headgate", Why: v.Worse}, true
	}
	if p.Waits(s, v, now) != "" {
		return s, false
	}
	to := p.Next(s.Share)
	why := fmt.Sprintf("%d%% for %s", s.Share, unit.Duration(p.Every))
	return at(State{Since: now, Who: "schedule", Why: why}, to), true
}

// Waits returns what the next step waits for; "" if it is due.
func (p *Program) Waits(s State, v Verdict, now time.Time) string {
	switch {
	case s.Phase != Running:
		return string(s.Phase)
	case p.Every == 0 || len(p.Steps) == 0 || s.Share >= p.Steps[len(p.Steps)-1]:
		return "an operator"
	case now.Sub(s.Since) < p.Every:
		return "time"
	case p.Rules.Enabled && v.Candidate.Requests < p.Rules.MinRequests:
		return "requests"
	}
	return ""
}
