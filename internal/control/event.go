package control

import (
	"net/netip"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/control/review"
	"headgate/internal/plan/whatif"
	"headgate/internal/schema"
)

// Via is the way by which a change came.
type Via string

// The ways.
const (
	ViaFile    Via = "file"    // a document was edited, or is read at the start
	ViaCLI     Via = "cli"     // a command or a signal
	ViaAPI     Via = "api"     // the API
	ViaConsole Via = "console" // the console
	ViaDocker  Via = "docker"  // discovery of containers
	ViaHTTP    Via = "http"    // documents of discovery
	ViaAgent   Via = "agent"   // discovery of containers on other machines
)

// Discovers reports whether changes come from discovery, and not from an operator.
func (v Via) Discovers() bool { return v == ViaDocker || v == ViaHTTP || v == ViaAgent }

// Cause is where a change comes from.
type Cause struct {
	// Who is the operator, as the audit names them; "" when it is not known, as of a
	// file that was edited.
	Who string `json:"who,omitempty"`
	// Why is the reason that the operator gave.
	Why string `json:"why,omitempty"`
	// From is the operator's address; invalid if it is unknown or that of this machine.
	From netip.Addr `json:"-"`
	// Via is the way by which it came.
	Via Via `json:"via"`
	// When is when it was requested; zero means now.
	When time.Time `json:"when"`
}

// Verb is what became of a change.
type Verb string

// The verbs.
const (
	Applied     Verb = "applied"
	RefusedVerb Verb = "refused"
	Confirmed   Verb = "confirmed" // a change that waited to be confirmed stays
	Reverted    Verb = "reverted"  // the configuration before came back, as the change was not confirmed
	// RevertedLocally is Reverted on this machine alone: the shared store is away.
	RevertedLocally Verb = "reverted_locally"
	FellBack        Verb = "fell_back" // at the start, a kept revision is served in place of refused documents
)

// Event is the result of one change. The log, the metrics and all observers use the same
// value. It must not be changed.
type Event struct {
	// Verb is the result.
	Verb Verb
	Cause
	// Revision is the name of the configuration in the state directory.
	Revision string
	// Took is the time from the first step to the last.
	Took time.Duration
	// ConfirmBy is when it is reverted unless it is confirmed; zero if it stays.
	ConfirmBy time.Time
	// Edit means that the change writes the files itself, as an operator's edit or a revert
	// does: if it was rejected, it is in no file.
	Edit bool
	// Starting means that nothing was served before.
	Starting bool
	// Adopted means that the change was saved by another machine, and this one follows it.
	Adopted bool
	// Refused is why the configuration was not applied; nil if it was.
	Refused *Refused
	// Late is why the change must not be acknowledged although it was applied: another
	// machine that must have it has not confirmed that. It wraps store.ErrSingleCopy.
	Late error
	// Before is the configuration until then, nil at the start; After the one since,
	// nil if it was refused.
	Before, After *config.Config
	// Difference is what After has otherwise than Before; nil if it was refused.
	Difference *diff.Difference
	// Review describes the difference, with warnings and what it affects; nil if the change
	// was rejected, or nothing was served before.
	Review *review.Review
	// WhatIf is the effect on recent requests; nil unless it was a dry run and recent
	// requests are kept.
	WhatIf *whatif.Result
	// Notes are settings that work but are not recommended, and the machines of unchecked.
	Notes []schema.Problem
	// Unchecked are notes about other machines that may not be able to serve the change: they did
	// not respond in time, or also reject the active configuration.
	Unchecked []schema.Problem
}

// Observe has a func called with the event of every change, in the order of changes
// and while the next one waits: it must be quick, and must not change anything. It
// is called before Run.
func (c *Control) Observe(observe func(*Event)) { c.observers = append(c.observers, observe) }

// CountPasskeys has a function say how many passkeys users of the console have at a host name. It
// is called before Run.
func (c *Control) CountPasskeys(count func(host string) int) { c.passkeys = count }

// count counts changes.
func (c *Control) count(e *Event) {
	switch e.Verb {
	case Applied, Reverted:
		c.metrics.Applied(true)
		if !e.Via.Discovers() {
			c.metrics.InForce(true)
		}
	case RefusedVerb:
		c.metrics.Applied(false)
		if !e.Via.Discovers() && !e.Edit {
			c.metrics.InForce(false)
		}
	}
}

// event is what became of the change.
func (ch *change) event(err error) Event {
	e := Event{
		Verb: ch.verb, Cause: ch.cause, Revision: ch.revision, Took: time.Since(ch.began),
		Edit: ch.edit, Starting: ch.next.Starting(), Adopted: ch.adopted != nil, Before: ch.next.Before, Notes: slices.Concat(ch.notes, ch.unchecked), Unchecked: ch.unchecked, Late: ch.late,
	}
	if err != nil {
		e.Verb, e.Refused = RefusedVerb, asRefused(err)
		return e
	}
	if p := ch.control.mu.pending; p != nil && ch.within > 0 {
		e.ConfirmBy = p.Until
	}
	e.After, e.Difference = ch.next.Config, ch.difference()
	if !e.Starting {
		e.Review = ch.review(e.Difference)
	}
	return e
}

// difference is what the change makes otherwise.
func (ch *change) difference() *diff.Difference {
	if ch.differs == nil {
		ch.differs = diff.Compare(ch.next.Before, ch.next.Config)
	}
	return ch.differs
}
