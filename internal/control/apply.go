package control

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"headgate/internal/config"
	"headgate/internal/config/diff"
	"headgate/internal/control/review"
	"headgate/internal/discovery"
	"headgate/internal/exchange"
	"headgate/internal/plan"
	"headgate/internal/plan/inputs"
	"headgate/internal/schema"
	"headgate/internal/store"
	"headgate/internal/store/history"
)

// Apply makes documents the configuration that is served by, or leaves everything as
// it was. It does not write them anywhere: Change does. The error is a *Refused.
func (c *Control) Apply(cause Cause, docs config.Documents) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applyLocked(cause, docs, nil)
}

// DryRun runs all steps of a change that can fail, without saving it, and cancels it. The
// event describes what Apply would do; the error is a *Refused.
func (c *Control) DryRun(cause Cause, docs config.Documents) (Event, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	ch := c.newChangeLocked(cause, func() (config.Documents, error) { return docs, nil })
	return c.dryRunLocked(ch, false)
}

// dryRunLocked takes a change through what can fail. Saved says that the documents are to
// be written, too.
func (c *Control) dryRunLocked(ch *change, saved bool) (Event, error) {
	ch.dry = true
	defer ch.endVote()
	steps := []step{{"read", ch.read}, {"check", ch.check}, {"query", ch.startVote}, {"build", ch.build}, {"vote", ch.awaitVote}}
	if saved {
		steps = append(steps, step{"save", func() error { return c.history.Try(ch.request()) }})
	}
	err := ch.do(steps...)
	ch.cancel()
	return ch.event(err), err
}

// applyLocked applies documents, or refuses them because they could not be read.
func (c *Control) applyLocked(cause Cause, docs config.Documents, err error) error {
	return c.makeLocked(c.newChangeLocked(cause, func() (config.Documents, error) { return docs, err }))
}

// makeLocked runs a change. Steps that can fail come first, and if one does, the previous
// ones are cancelled; from the swap on, nothing can fail.
func (c *Control) makeLocked(ch *change) error {
	defer ch.endVote()
	err := ch.do(
		step{"read", ch.read},       // the documents as they are now
		step{"check", ch.check},     // their objects: types, bounds, references
		step{"query", ch.startVote}, // other machines, which check them meanwhile
		step{"build", ch.build},     // merge, load, compile and prepare: see there
		step{"vote", ch.awaitVote},  // what the other machines have found
		step{"save", ch.save},       // the documents and a revision, with who, when and why
	)
	if err == nil {
		ch.swap()       // from here on, every request that begins is served by the plan
		ch.finishSave() // what only the save needed is removed
		ch.commit()     // participants take what they opened into use
		ch.retire()     // what only the old plan had ends
	} else {
		ch.cancel()
	}
	ch.publish(err) // one event, for all observers
	return err
}

// finishSave removes what only the save needed.
func (ch *change) finishSave() {
	if ch.late = ch.endSave(); ch.late != nil {
		ch.control.log.Error("the configuration is active on this machine and may be lost with it", "error", ch.late)
	}
}

// change is a configuration on its way.
type change struct {
	// The requested change; constant from the first step on.
	control   *Control
	began     time.Time
	cause     Cause
	verb      Verb
	from      func() (config.Documents, error)
	checked   func(now, after *config.Config) error          // what else has to hold
	records   func(now, after *config.Config) []store.Record // saved with it
	cutover   *history.Cutover                               // kept in the revision; nil for none
	within    time.Duration                                  // to be confirmed; 0 does not wait
	rollsBack int                                            // the revision that is left, 0 for none
	edit      bool                                           // the change is not in any file yet
	dry       bool                                           // nothing will be saved
	open      map[review.Address]int                         // connections, before anything is closed

	// By read.
	docs    config.Documents
	digests map[string]history.Digest  // of docs, by name; see digestsOf
	packed  map[string]*history.Packed // of docs that are not known, by name
	now     *config.Config             // what the documents said that it was made from
	old     config.Documents           // those documents, if they are at hand
	made    map[string]history.Digest  // their digests; nil if it writes none

	// By check. A change that comes from a source has what the documents declare from the
	// beginning, reads none and saves none.
	declared *config.Config
	notes    []schema.Problem
	// hostAllowed is whether this machine allows all host fields; otherwise withheld are the
	// objects without effect, and withheldValues their values.
	hostAllowed    bool
	withheld       *config.Withhold
	withheldValues []withheldValue
	vote           *vote // nil for none

	// By awaitVote: notes about machines that have not checked the change.
	unchecked []schema.Problem

	// By build.
	merged   *discovery.Merged
	blamed   map[*config.Discovered]discovery.Blame // what is left out; check has that of the change before
	inputs   *inputs.Set
	prepared []Change // the inputs, then in the order of the participants
	next     Next

	// By save.
	changed  []string // objects, as revisions name them
	revision string
	endSave  func() error
	late     error    // why the change must not be acknowledged although it is made; nil if it may
	adopted  *adopted // documents of the shared store that replace those here, nil for none

	differs *diff.Difference // made when it is first wanted
}

// newChangeLocked returns a change that nothing was done for yet.
func (c *Control) newChangeLocked(cause Cause, from func() (config.Documents, error)) *change {
	ch := &change{control: c, began: time.Now(), cause: cause, verb: Applied, endSave: func() error { return nil }, from: from, open: c.openConnections()}
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
		return asRefused(ErrStopping)
	}
	if ch.control.mu.frozen {
		return asRefused(ErrUpgrading)
	}
	for _, s := range steps {
		at = s.name
		if err := s.do(); err != nil {
			return asRefused(err)
		}
	}
	return nil
}

// read takes the documents as they are now: no other change runs, so the last to be
// applied are the last to be read.
func (ch *change) read() (err error) {
	if ch.discovered() {
		return nil
	}
	ch.docs, err = ch.from()
	ch.digests, ch.packed = ch.control.knownDigestsLocked(ch.docs), map[string]*history.Packed{}
	if err != nil || ch.dry || ch.control.mu.digested == nil {
		return err // at a start most are kept already
	}
	for _, d := range ch.docs.List { // while they are checked
		if _, known := ch.digests[d.Name]; !known {
			ch.packed[d.Name] = history.Pack(d.Data)
		}
	}
	return nil
}

// digestsOf returns the digests of the documents, by name.
func (ch *change) digestsOf() map[string]history.Digest {
	ch.digests = digestsBy(ch.docs, func(d config.Document) history.Digest {
		if digest, known := ch.digests[d.Name]; known {
			return digest
		}
		if p := ch.packed[d.Name]; p != nil {
			return p.Digest()
		}
		return history.DigestOf(d.Data)
	})
	return ch.digests
}

// discovered reports whether the change comes from a source.
func (ch *change) discovered() bool { return ch.cause.Via.Discovers() }

// check makes objects of the documents.
func (ch *change) check() error {
	if ch.discovered() {
		ch.blamed, ch.withheld = ch.control.mu.blamed, ch.next.Before.WithheldObjects()
		return nil
	}
	cfg, doc, problems := config.LoadDocuments(ch.docs, ch.next.Before)
	if len(problems) > 0 {
		return &Refused{Problems: problems}
	}
	cfg.SetNode(ch.control.options.Node, ch.control.shared)
	ch.declared, ch.notes = cfg, slices.Concat(doc.Notes(), ch.control.unknownNodes(cfg))
	if err := ch.nodesKnow(cfg); err != nil {
		return err
	}
	if ch.checked != nil {
		if err := ch.checked(ch.now, cfg); err != nil {
			return err
		}
	}
	return ch.withhold(cfg)
}

// build makes everything that the change needs of its objects, and can fail. A discovered
// object that it fails by is left out, and the rest is built again: what an operator or
// another container does is never refused because of one.
func (ch *change) build() error {
	for round := 0; ; round++ {
		err := ch.do(
			step{"merge", ch.merge},     // what documents and sources say together
			step{"load", ch.load},       // what that needs from outside: files, certificates, keys
			step{"compile", ch.compile}, // the plan that requests are served by
			step{"prepare", ch.prepare}, // participants open what can fail
		)
		if err == nil || !ch.leaveOut(err, round) {
			return err
		}
		ch.cancel()
		ch.prepared, ch.next.Plan = nil, nil
	}
}

// merge puts what sources found beside what the documents say.
func (ch *change) merge() error {
	c := ch.control
	ch.merged = discovery.Merge(ch.declared, c.providers.found(ch.declared.Withholding(ch.withheld)), c.mu.merged, ch.blamed)
	ch.next.Config, ch.next.Report = ch.merged.Config.Withholding(ch.withheld), ch.declared.Report()
	return nil
}

// load loads external inputs of the configuration. An input that cannot be loaded is
// reported by the compile, at its setting.
func (ch *change) load() error {
	ch.inputs = ch.control.inputs.Prepare(ch.next.Config, ch.next.Config.Dir)
	ch.prepared = append(ch.prepared, ch.inputs)
	return nil
}

// compile makes the plan. Parts of the previous one that did not change are carried
// over.
func (ch *change) compile() error {
	c := ch.control
	ch.next.records, ch.next.ring = c.records.next(ch.next.Config), c.rings.next(ch.next.Config)
	var problems []schema.Problem
	if ch.next.Plan, problems = plan.Compile(ch.next.Config, ch.next.Previous, ch.planEnvironment(), ch.next.Report); len(problems) > 0 {
		return &Refused{Problems: problems}
	}
	return nil
}

// planEnvironment is what the plan asks of the process around it.
func (ch *change) planEnvironment() plan.House {
	c := ch.control
	return plan.House{
		Log: c.log, Metrics: c.metrics, Record: ch.next.records.to, RecordSession: c.records.passages(ch.next.records), Recent: ch.next.ring.held(), Spans: &c.spans,
		Tunnels: c.tunnels, Values: store.ValuesOf(c.state), RecordOf: ch.next.records.form, Inputs: ch.inputs, Start: ch.next.Starting(),
		Managed: c.issuer.managed, Challenges: c.issuer.manager.Answers(), Demands: c.issuer.gate, Standing: c.watcher.Servers, Bans: c.bans, Gate: c.gate, Tickets: ticketKeys(c.options.Inherited), SharedTickets: c.keys.tickets, ECH: c.ech.ring, Carried: carried(c.options.Inherited), Holds: exchange.Holds{Join: c.holds.Join, Leave: c.holds.Leave},
	}
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

// save writes the files, if the change has edited them, and stores them as a revision: both
// or neither. A change that cannot be stored is rejected, since it could not be rolled back
// to; a start with unchanged files continues without it.
func (ch *change) save() error {
	switch {
	case ch.servesKept():
		return nil // it is one of those that are kept
	case ch.adopted != nil:
		ch.revision = ch.adopted.revision.Name()
		if !ch.adopted.same {
			if err := ch.control.noteNextLocked(ch.adopted); err != nil {
				return fmt.Errorf("record which revision is written next: %w", err)
			}
		}
		return ch.adopted.place()
	case ch.discovered():
		ch.revision = ch.control.mu.revision
		return nil // the files are those of the active revision
	}
	if err := ch.flippingLocked(); err != nil {
		return err
	}
	ch.nameChanges()
	r, end, err := ch.control.history.Start(context.Background(), ch.request())
	ch.endSave = end
	if err != nil && ch.next.Starting() && ch.made == nil {
		ch.control.log.Error("configuration is active but could not be saved as a revision", "error", err)
		return nil
	}
	ch.revision = r.Name()
	return err
}

// servesKept reports whether the change serves a revision that is kept, and not what the
// documents say.
func (ch *change) servesKept() bool { return ch.verb == FellBack || ch.verb == RevertedLocally }

// request is what is to be saved.
func (ch *change) request() history.Request {
	q := history.Request{
		When: ch.cause.When, Who: ch.cause.Who, Why: ch.cause.Why, Via: string(ch.cause.Via),
		Within: ch.within, RollsBack: ch.rollsBack, Changes: ch.changed, Cutover: ch.cutover,
	}
	if ch.records != nil {
		q.Records = ch.records(ch.now, ch.declared)
	}
	removed, digests := maps.Clone(ch.made), ch.digestsOf()
	for _, d := range ch.docs.List {
		name := d.Name
		if full, err := filepath.Abs(name); err == nil {
			name = full
		}
		now := digests[d.Name]
		was := now // is not written
		if ch.made != nil {
			was = ch.made[name]
		}
		delete(removed, name)
		q.Documents = append(q.Documents, history.Document{Name: name, Was: was, Old: ch.oldOf(d.Name), Data: d.Data, Now: now, Packed: ch.packed[d.Name]})
	}
	for _, name := range slices.Sorted(maps.Keys(removed)) {
		q.Documents = append(q.Documents, history.Document{Name: name, Was: ch.made[name]})
	}
	return q
}

// oldOf returns the content of the document with a name that the change was made from; nil
// if that is not at hand.
func (ch *change) oldOf(name string) []byte {
	for _, d := range ch.old.List {
		if d.Name == name {
			return d.Data
		}
	}
	return nil
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

// cancel cancels the prepared steps in reverse order.
func (ch *change) cancel() {
	for _, p := range slices.Backward(ch.prepared) {
		p.Cancel()
	}
	if ch.next.Plan != nil {
		ch.next.Plan.Retire(ch.next.Previous)
	}
}
