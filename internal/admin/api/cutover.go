package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"headgate/internal/config"
	"headgate/internal/control"
	"headgate/internal/migrate/cutover"
	"headgate/internal/operator"
	"headgate/internal/store/history"
)

// cutoverRows are the rows of a cutover: the ports of headgate get the addresses of the
// proxy that it replaces.
func (a *API) cutoverRows() []row {
	const path = "/cutover"
	return []row{
		{method: http.MethodGet, path: path, access: viewer, area: areaCutover, out: of[cutoverBody](), may: []int{404}, handle: a.lastCutover,
			about: "Returns the last cutover: which ports moved, whether it is pending, confirmed, reverted or returned, and what its watch has counted."},
		{method: http.MethodPost, path: path, access: editor, area: areaCutover, in: of[cutoverInput](), out: of[cutoverBody](), match: true, write: true, dry: true, query: changeQuery, may: []int{409}, handle: withBody(a.startCutover),
			about: "Moves ports to the addresses of the proxy that headgate replaces, in one change. If-Match is the ETag of the configuration. With watch, headgate confirms the change after three quarters of confirm_within, or reverts it as soon as a limit is exceeded."},
		{method: http.MethodDelete, path: path, access: editor, area: areaCutover, out: of[cutoverBody](), dry: true, may: []int{404, 409}, handle: a.endCutover,
			about: "Moves the ports of the last cutover back: a pending one is reverted, a confirmed one is undone by a new change that keeps all others made since."},
	}
}

// cutoverInput is a requested cutover.
type cutoverInput struct {
	// Moves are the ports to move. Those that have the address already are left out.
	Moves []cutover.Request `json:"moves" required:"true" min:"1" max:"100"`
	// Watch lets headgate decide by limits whether the cutover is confirmed or reverted. It
	// needs confirm_within. Without it, someone has to confirm.
	Watch *cutover.WatchLimits `json:"watch,omitempty"`
}

// cutoverBody is a cutover.
type cutoverBody struct {
	// Revision is the number of its revision; 0 in a dry run.
	Revision int `json:"revision"`
	// When is when the ports moved.
	When time.Time `json:"when,omitzero"`
	// Who moved them.
	Who string `json:"who,omitempty"`
	// State is pending, confirmed, reverted or returned; planned in a dry run.
	State string `json:"state"`
	// Moves are the ports that moved.
	Moves []movedPort `json:"moves"`
	// Until is when a pending one is reverted unless it is confirmed.
	Until time.Time `json:"until,omitzero"`
	// Held are ports that still have a socket at an address that a port moved to, each with
	// the address. When it is empty, another proxy can listen there.
	Held []string `json:"held"`
	// Watch is the state of its watch. It is absent if there is none, or if it was another
	// process that watched.
	Watch *cutover.Watching `json:"watch,omitempty"`
	// Change is the change that was made, in responses to POST and DELETE.
	Change *changeBody `json:"change,omitempty"`
}

func (b cutoverBody) entityTag() string {
	if b.Change == nil {
		return ""
	}
	return b.Change.ETag
}

// movedPort is a port of a cutover.
type movedPort struct {
	// Port is its name.
	Port string `json:"port"`
	// From is the address that it had.
	From string `json:"from"`
	// To is the address that it got.
	To string `json:"to"`
}

// cutovers holds the watch of the last cutover.
type cutovers struct {
	mu    sync.Mutex
	watch *cutover.Watch // nil for none
}

// replace ends the watch and puts another in its place, nil for none.
func (c *cutovers) replace(w *cutover.Watch) {
	c.mu.Lock()
	last := c.watch
	c.watch = w
	c.mu.Unlock()
	if last != nil {
		last.Close()
	}
}

// of returns the state of the watch of a revision, nil if there is none.
func (c *cutovers) of(revision string) *cutover.Watching {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch == nil || c.watch.Revision != revision {
		return nil
	}
	now := c.watch.Now()
	return &now
}

// lastCutover returns the last cutover.
func (a *API) lastCutover(*call) (any, error) {
	r, state, err := a.findCutover()
	if err != nil {
		return nil, err
	}
	return a.showCutover(r, state), nil
}

// findCutover returns the last cutover, or refuses.
func (a *API) findCutover() (*history.Revision, cutover.State, error) {
	if a.Control != nil {
		if r, state := cutover.Last(a.Control.Revisions(0, history.MaxRevisions)); r != nil {
			return r, state, nil
		}
	}
	return nil, "", refuse(operator.CodeNotFound, "", "there is no cutover", "\"headgate cutover\" moves ports")
}

func (a *API) showCutover(r *history.Revision, state cutover.State) cutoverBody {
	b := cutoverBody{Revision: r.Number, When: r.When, Who: r.Who, State: string(state), Moves: movedPorts(r.Cutover.Moves), Held: cutover.Held(a.Control.Status().Ports, r.Cutover.Moves), Watch: a.cutovers.of(r.Name())}
	if p := a.Control.Pending(); p != nil && p.Revision == r.Name() {
		b.Until = p.Until
	}
	return b
}

func movedPorts(moves []history.Move) []movedPort {
	out := make([]movedPort, len(moves))
	for i, m := range moves {
		out[i] = movedPort{m.Port, m.From.String(), m.To.String()}
	}
	return out
}

// startCutover moves ports.
func (a *API) startCutover(c *call, in *cutoverInput) (any, error) {
	var limits cutover.WatchLimits
	if in.Watch != nil {
		limits = *in.Watch
		switch {
		case !limits.Valid():
			return nil, refuse("invalid", "/watch", "the limits must be percentages from 0 to 100", "")
		case c.text("confirm_within") == "":
			return nil, refuse("invalid", "/watch", "a watch needs confirm_within", "add confirm_within=10m to the query")
		}
	}
	if a.Control == nil {
		return nil, refuse("unavailable", "", "no configuration is active yet", "")
	}
	watched := in.Watch != nil && !c.dryRun
	var before cutover.Before
	if watched {
		before = cutover.Measure(a.Control)
	}
	moved := &history.Cutover{}
	e := &edit{call: c, action: "cutover.start", why: "cutover", cutover: moved}
	e.make = func(docs config.Documents, now *config.Config) (config.Documents, error) {
		var err error
		if moved.Moves, err = cutover.Moves(now, in.Moves); err != nil {
			return docs, requestProblem(err)
		}
		if len(moved.Moves) == 0 {
			return docs, refuse("not_applied", "", "the ports already have these addresses", "")
		}
		return apply(docs, "", cutover.Edits(moved.Moves)...)
	}
	ev, err := e.do()
	if err != nil {
		return nil, err
	}
	change := a.changed(c, ev)
	if c.dryRun {
		return cutoverBody{State: "planned", Moves: movedPorts(moved.Moves), Held: []string{}, Change: &change}, nil
	}
	if watched && !change.Until.IsZero() {
		a.cutovers.replace(cutover.Start(a.Control, &watchDecisions{a, c.who, c.cause()}, ev.Revision, change.Until, limits, before))
	} else {
		a.cutovers.replace(nil)
	}
	return a.afterCutover(&change)
}

// requestProblem returns the problem of a requested move, at its place in the body.
func requestProblem(err error) error {
	var wrong *cutover.RequestError
	if errors.As(err, &wrong) {
		return refuse("invalid", fmt.Sprintf("/moves/%d", wrong.Index), wrong.Error(), "\"headgate status\" lists the ports")
	}
	return err
}

// afterCutover returns the last cutover with the change that was made.
func (a *API) afterCutover(change *changeBody) (any, error) {
	r, state, err := a.findCutover()
	if err != nil {
		return nil, err
	}
	b := a.showCutover(r, state)
	b.Change = change
	return b, nil
}

// endCutover moves the ports of the last cutover back.
func (a *API) endCutover(c *call) (any, error) {
	r, state, err := a.findCutover()
	if err != nil {
		return nil, err
	}
	switch state {
	case cutover.Pending:
		if _, err := a.revert(c, &confirmInput{Revision: r.Name()}); err != nil {
			return nil, err
		}
		return a.afterCutover(nil)
	case cutover.Reverted, cutover.Returned:
		return nil, refuse("not_applied", "", fmt.Sprintf("the ports of the cutover in revision %d have moved back already", r.Number), "")
	}
	c.ifMatch = "*" // the moves are checked against the addresses as they are
	back := &history.Cutover{Returns: r.Number}
	e := &edit{call: c, action: "cutover.return", why: "cutover reverted", cutover: back}
	e.make = func(docs config.Documents, now *config.Config) (config.Documents, error) {
		if back.Moves = cutover.Reversed(now, r.Cutover.Moves); len(back.Moves) == 0 {
			return docs, refuse("not_applied", "", fmt.Sprintf("the ports of the cutover in revision %d have been changed since", r.Number), "change their addresses, or roll back to a revision")
		}
		return apply(docs, "", cutover.Edits(back.Moves)...)
	}
	ev, err := e.do()
	if err != nil {
		return nil, err
	}
	change := a.changed(c, ev)
	if c.dryRun {
		return cutoverBody{State: "planned", Moves: movedPorts(back.Moves), Held: []string{}, Change: &change}, nil
	}
	return a.afterCutover(&change)
}

// watchDecisions confirms or reverts a cutover for the operator who started it.
type watchDecisions struct {
	api   *API
	who   operator.Identity
	cause control.Cause
}

func (d *watchDecisions) Confirm(revision string) error {
	cause := d.cause
	cause.Why, cause.When = "cutover: no limit was exceeded", time.Now()
	return d.api.Control.ConfirmRevision(cause, revision, d.who.Audit("config.confirm", "revision "+revision, cause.Why, nil, nil))
}

func (d *watchDecisions) Revert(revision, reason string) error {
	if err := d.api.Control.RevertRevision(revision, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), noteTimeout)
	defer cancel()
	if err := d.api.Operators.Note(ctx, d.who, "config.revert", "revision "+revision, strings.TrimSpace("cutover: "+reason)); err != nil {
		d.api.Log.Error("audit record was not kept", "error", err)
	}
	return nil
}

// noteTimeout bounds the wait for the store to keep a record of the audit.
const noteTimeout = 10 * time.Second
