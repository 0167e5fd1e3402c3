package control

import (
	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/schema"
)

// Participant holds something open, as a configuration says, and takes part in every
// change.
type Participant interface {
	// Prepare opens resources of next that are not open. Current ones are used until the
	// change is committed. An error rejects the configuration; a *Refused has problems with
	// their positions. Exactly one of Commit and Cancel is called on the change, before the
	// next Prepare.
	Prepare(next *Next) (Change, error)
}

// Change is what a participant has opened for a configuration that is not served by
// yet.
type Change interface {
	// Commit takes it into use, and closes what is not wanted any more. It cannot
	// fail. The new plan is the one that requests are served by already.
	Commit()
	// Cancel closes it again: everything is as it was.
	Cancel()
}

// Next is what a change is about to put into force.
type Next struct {
	// Config and Plan are the configuration and what was compiled of it.
	Config *config.Config
	Plan   *plan.Plan
	// Before and Previous are active until the change is committed; nil at the start.
	Before   *config.Config
	Previous *plan.Plan
	// Report takes problems of a participant, and knows their places.
	Report *schema.Report

	records *recordSet // the access logs after the change
	ring    *ring      // the memory of recent requests after it
}

// Starting reports whether nothing was served before. Then a resource that can be opened
// later, such as a busy address, should not reject the configuration.
func (n *Next) Starting() bool { return n.Previous == nil }

// Join adds a participant. It is called before Run. Participants prepare and commit
// in the order in which they joined, behind those of the control itself, and cancel
// in reverse.
func (c *Control) Join(p Participant) { c.participants = append(c.participants, p) }

// sockets are the ports as a participant.
type sockets struct{ *ports.Set }

// Prepare opens the sockets that the plan wants.
func (s sockets) Prepare(next *Next) (Change, error) {
	return s.Set.Prepare(next.Plan, next.Previous)
}

// background is what a plan does by itself, such as health checks, as a participant.
type background struct{}

// Prepare starts nothing.
func (background) Prepare(next *Next) (Change, error) { return beginning{next.Plan}, nil }

type beginning struct{ *plan.Plan }

// Commit starts it.
func (b beginning) Commit() { b.Start() }

// Cancel does nothing: what has not begun need not end.
func (beginning) Cancel() {}
