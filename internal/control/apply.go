package control

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/plan/inputs"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/store/history"
)

// Document is a text that says objects.
type Document struct {
	// Name is what problems call it: the path of a file. Relative paths in it begin
	// in its folder.
	Name string
	// Data is its text.
	Data []byte
}

// Apply makes a document the configuration that is served by, or leaves everything
// as it was. The error is a *Refused.
func (c *Control) Apply(cause Cause, d Document) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applyLocked(cause, func() (Document, error) { return d, nil })
}

// DryRun takes a document through all that can fail, without saving it, and takes
// that back. The event tells what Apply would do; the error is a *Refused.
func (c *Control) DryRun(cause Cause, d Document) (Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.newChangeLocked(cause, func() (Document, error) { return d, nil })
	err := ch.do(
		step{"read", ch.read},
		step{"check", ch.check},
		step{"load", ch.load},
		step{"compile", ch.compile},
		step{"prepare", ch.prepare},
	)
	ch.cancel()
	return ch.event(err), err
}

// applyLocked is the life of a change. What can fail comes first, and when it does,
// all before it is taken back; from the swap on nothing can.
func (c *Control) applyLocked(cause Cause, from func() (Document, error)) error {
	ch := c.newChangeLocked(cause, from)
	err := ch.do(
		step{"read", ch.read},       // the document as it is now
		step{"check", ch.check},     // its objects: types, bounds, references
		step{"load", ch.load},       // what it needs from outside: files, certificates, keys
		step{"compile", ch.compile}, // the plan that requests are served by
		step{"prepare", ch.prepare}, // participants open what can fail
		step{"save", ch.save},       // the revision, with who, when and why
	)
	if err == nil {
		ch.swap()   // from here on, every request that begins is served by the plan
		ch.commit() // participants take what they opened into use
		ch.retire() // what only the old plan had ends
	} else {
		ch.cancel()
	}
	ch.tell(err) // one event, that everybody who wants to know of changes hears
	return err
}

// change is a configuration on its way.
type change struct {
	control  *Control
	began    time.Time
	cause    Cause
	from     func() (Document, error)
	document Document
	notes    []schema.Problem
	revision string
	next     Next
	inputs   *inputs.Set
	prepared []Change // the inputs, then in the order of the participants
}

// newChangeLocked returns a change that nothing was done for yet.
func (c *Control) newChangeLocked(cause Cause, from func() (Document, error)) *change {
	ch := &change{control: c, began: time.Now(), cause: cause, from: from}
	if ch.cause.When.IsZero() {
		ch.cause.When = ch.began
	}
	if ch.next.Previous = c.current.Load(); ch.next.Previous != nil {
		ch.next.Before = ch.next.Previous.Config()
	}
	return ch
}

// step is one step of a change that can fail.
type step struct {
	name string
	do   func() error
}

// do takes steps until one fails. The error is a *Refused. A mistake of ours in one
// must not cost the requests that are served now.
func (ch *change) do(steps ...step) (err error) {
	at := ""
	defer func() {
		if v := recover(); v != nil {
			ch.control.log.Error("broken invariant in a change", "step", at, "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = asRefused(fmt.Errorf("%s: broken invariant: %v; please report this", at, v))
		}
	}()
	if ch.control.mu.closed {
		return asRefused(errStopping)
	}
	for _, s := range steps {
		at = s.name
		if err := s.do(); err != nil {
			return asRefused(err)
		}
	}
	return nil
}

// read takes the document as it is now: no other change runs, so the last to be
// applied is the last to be read.
func (ch *change) read() (err error) {
	ch.document, err = ch.from()
	return err
}

// check makes objects of the document.
func (ch *change) check() error {
	cfg, doc, problems := config.LoadDocuments(config.Documents{
		Dir:  filepath.Dir(ch.document.Name),
		List: []config.Document{{Name: ch.document.Name, Data: ch.document.Data}},
	}, ch.next.Before)
	if len(problems) > 0 {
		return &Refused{Problems: problems}
	}
	ch.next.Config, ch.next.Report, ch.notes = cfg, doc.Report(), doc.Notes()
	return nil
}

// load loads what the configuration needs from outside of it. What cannot be loaded
// is told by the compile, at the setting that names it.
func (ch *change) load() error {
	ch.inputs = ch.control.inputs.Prepare(ch.next.Config, ch.next.Config.Dir)
	ch.prepared = append(ch.prepared, ch.inputs)
	return nil
}

// compile makes the plan. Parts of the previous one that did not change are carried
// over.
func (ch *change) compile() error {
	c := ch.control
	ch.next.record = c.records.next(ch.next.Config)
	house := plan.House{
		Log: c.log, Metrics: c.metrics, Record: ch.next.record.fn(), RecordPassage: c.records.passage,
		Tunnels: c.tunnels, Values: store.ValuesOf(c.state), RecordOf: ch.next.record, Inputs: ch.inputs, Start: ch.next.Starting(),
	}
	var problems []schema.Problem
	if ch.next.Plan, problems = plan.Compile(ch.next.Config, ch.next.Previous, house, ch.next.Report); len(problems) > 0 {
		return &Refused{Problems: problems}
	}
	return nil
}

// prepare has every participant open what can fail.
func (ch *change) prepare() error {
	for _, p := range ch.control.participants {
		prepared, err := p.Prepare(&ch.next)
		if err != nil {
			return err
		}
		ch.prepared = append(ch.prepared, prepared)
	}
	return nil
}

// save keeps the configuration as a revision. A change that cannot be kept is
// refused, as nobody could go back to it; a start goes on without.
func (ch *change) save() (err error) {
	name := ch.document.Name
	if full, err := filepath.Abs(name); err == nil {
		name = full
	}
	r, err := ch.control.history.Save(context.Background(), history.Request{
		Documents: []history.Document{{Name: name, Was: history.DigestOf(ch.document.Data), Data: ch.document.Data}},
		When:      ch.cause.When, Who: ch.cause.Who, Why: ch.cause.Why, Via: string(ch.cause.Via),
	})
	if err == nil {
		ch.revision = r.Name()
	} else if ch.next.Starting() {
		ch.control.log.Error("configuration is active but could not be saved as a revision", "error", err)
		return nil
	}
	return err
}

// swap makes the plan the one that requests are served by, those on old connections
// too.
func (ch *change) swap() { ch.control.current.Store(ch.next.Plan) }

func (ch *change) commit() {
	for _, p := range ch.prepared {
		p.Commit()
	}
}

// retire ends what the previous plan had and the new one has not.
func (ch *change) retire() {
	if ch.next.Previous != nil {
		ch.next.Previous.Retire(ch.next.Plan)
	}
	ch.control.tunnels.Follow(ch.next.Plan.Left)
}

// cancel takes back what was done so far, the last first.
func (ch *change) cancel() {
	for _, p := range slices.Backward(ch.prepared) {
		p.Cancel()
	}
	if ch.next.Plan != nil {
		ch.next.Plan.Retire(ch.next.Previous)
	}
}

// tell tells everybody what became of the change.
func (ch *change) tell(err error) {
	c := ch.control
	c.mu.refused = nil
	if err != nil {
		c.mu.refused = refusedState(asRefused(err))
	} else {
		c.mu.since, c.mu.revision = time.Now(), ch.revision
	}
	c.publishLocked()
	e := ch.event(err)
	for _, observe := range c.observers {
		observe(&e)
	}
}

// event is what became of the change.
func (ch *change) event(err error) Event {
	e := Event{
		Cause: ch.cause, Revision: ch.revision, Took: time.Since(ch.began),
		Starting: ch.next.Starting(), Before: ch.next.Before, Notes: ch.notes,
	}
	if err != nil {
		e.Refused = asRefused(err)
		return e
	}
	e.After, e.Difference = ch.next.Config, config.Compare(ch.next.Before, ch.next.Config)
	return e
}
