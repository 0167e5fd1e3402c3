package control

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"headgate/internal/accesslog/recent"
	"headgate/internal/bans"
	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/ports/listen"
	"headgate/internal/store"
	"headgate/internal/store/history"
	"headgate/internal/upgrade"
)

// ErrUpgrading refuses changes while another process takes over from this one, and after
// that.
var ErrUpgrading = errors.New("headgate is being upgraded")

// sharedHandover is a shared store that another process can use in the place of this one. Its
// methods are in the order of an upgrade; those of the state directory are called besides.
type sharedHandover interface {
	// StopFollowing keeps the copy of this machine as it is, and Suspend has changes wait. Resume
	// reverts both, also after an error.
	StopFollowing()
	Suspend() error
	Resume()
	// End closes a suspended store.
	End() error
	// RefuseWrites ends the wait of changes in the new process, in which Resume allows them.
	RefuseWrites()
}

// nothingShared is the sharedHandover of a machine that shares nothing.
type nothingShared struct{}

func (nothingShared) StopFollowing() {}
func (nothingShared) Suspend() error { return nil }
func (nothingShared) Resume()        {}
func (nothingShared) End() error     { return nil }
func (nothingShared) RefuseWrites()  {}

// handoverOf returns how a store is handed over.
func handoverOf(state store.Store) sharedHandover {
	if to, ok := state.(sharedHandover); ok {
		return to
	}
	return nothingShared{}
}

// The parts of the state that go to a new process.
const (
	partRevision = "revision"
	partQUIC     = "quic"
	partTickets  = "tickets"
	partPlan     = "plan"
	partRecent   = "recent"
	partBans     = "bans"
	partSignedIn = "signed_in"
	partMetrics  = "metrics"
)

// handedRevision is the active revision.
type handedRevision struct {
	// Number is that of the revision, 0 for none.
	Number int `json:"number"`
	// Degraded says that the configuration files are rejected, and an older revision is
	// served.
	Degraded bool `json:"degraded,omitempty"`
}

// lockFile is the name of the lock of the state directory among the descriptors.
const lockFile = "lock"

// Freeze keeps everything from changing, closes the database of the state, and returns
// what another process needs to serve in place of this one. Requests are served as
// before. Exactly one of Thaw and EndReplaced follows, unless it returns an error; then
// everything is as it was.
func (c *Control) Freeze() (*upgrade.Handover, error) {
	if err := c.freezeChanges(); err != nil {
		return nil, err
	}
	files, err := c.ports.Freeze()
	if err != nil {
		c.handover.Resume()
		c.thawChanges()
		return nil, err
	}
	h := &upgrade.Handover{State: c.handedState()}
	for name, f := range files {
		h.Files = append(h.Files, upgrade.File{Name: name, File: f})
	}
	lock, err := c.suspendState()
	if err != nil {
		for _, f := range files {
			f.Close()
		}
		c.handover.Resume()
		c.ports.Thaw()
		c.thawChanges()
		return nil, err
	}
	h.Files = append(h.Files, upgrade.File{Name: lockFile, File: lock})
	return h, nil
}

// suspendState has everything wait that reads or changes the state, and returns the lock of its
// directory.
func (c *Control) suspendState() (lock *os.File, err error) {
	if err = c.handover.Suspend(); err != nil {
		return nil, err
	}
	return c.files.Suspend()
}

// settleSharedLocked brings the files, and what is active, to what the copy of the shared store
// has: the new process finds the files of the revision that is active.
func (c *Control) settleSharedLocked() {
	c.handover.StopFollowing()
	if c.shared {
		c.reconcileLocked() // what is refused stays so, and was reported
	}
}

func (c *Control) freezeChanges() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.closed:
		return ErrStopping
	case c.mu.frozen:
		return ErrUpgrading
	}
	c.settleSharedLocked()
	c.mu.frozen = true
	c.frozen.Store(true)
	if c.mu.confirm != nil {
		c.mu.confirm.Stop()
	}
	return nil
}

// thawChanges allows changes again. The wait for a confirmation goes on, and a change of
// the configuration files that came meanwhile is applied.
func (c *Control) thawChanges() {
	c.mu.Lock()
	c.mu.frozen = false
	c.frozen.Store(false)
	if c.mu.pending != nil {
		c.awaitPendingLocked(*c.mu.pending)
	}
	c.mu.Unlock()
	c.changed()
}

// handedState returns the state that a new process cannot read from the state directory.
func (c *Control) handedState() (parts []upgrade.Part) {
	add := func(name string, v any) {
		if data, err := json.Marshal(v); err != nil {
			c.log.Error("a part of the state is not handed over", "part", name, "error", err)
		} else {
			parts = append(parts, upgrade.Part{Name: name, Data: data})
		}
	}
	c.mu.Lock()
	r := handedRevision{Degraded: c.mu.degraded}
	c.mu.Unlock()
	if head, ok := c.history.Head(); ok {
		r.Number = head.Number
	}
	add(partRevision, r)
	add(partQUIC, c.quic)
	if p := c.current.Load(); p != nil {
		add(partTickets, p.TicketKeys())
		carried, left := p.Export()
		if left > 0 {
			c.log.Warn("parts of the state are not handed over, there is too much", "parts", left)
		}
		add(partPlan, carried)
	}
	c.late = late{}
	if r := c.Recent(); r != nil {
		var data []byte
		data, c.late.fresh = r.Export(maxRecent)
		parts = append(parts, upgrade.Part{Name: partRecent, Data: data})
	}
	unsaved := c.bans.Unsaved()
	c.late.bansSince(unsaved)
	add(partBans, unsaved)
	parts = append(parts, upgrade.Part{Name: partSignedIn, Data: c.bans.SignedInLately()})
	return append(parts, c.counters()...)
}

// late is what has come since the state was handed over. It is owned by the goroutine that
// makes the upgrade, and then by the one that calls Late.
type late struct {
	fresh *recent.Fresh     // nil for none
	bans  map[string]string // those that were handed over, by key
	calls int               // of Late
}

// bansSince returns those of bans that were not handed over yet.
func (l *late) bansSince(all []bans.Unsaved) (since []bans.Unsaved) {
	if l.bans == nil {
		l.bans = map[string]string{}
	}
	for _, u := range all {
		if was, ok := l.bans[u.Key]; !ok || was != string(u.Value) {
			l.bans[u.Key] = string(u.Value)
			since = append(since, u)
		}
	}
	return since
}

// Late returns what has come since the state was handed over, or since the call before: the
// new process adds it to what it has. last says that no other call follows. It is for one
// goroutine, after Leave.
func (c *Control) Late(last bool) (parts []upgrade.Part) {
	if c.late.fresh != nil {
		if data := c.late.fresh.Export(maxRecent); data != nil {
			parts = append(parts, upgrade.Part{Name: partRecent, Data: data})
		}
	}
	if since := c.late.bansSince(c.bans.Unsaved()); len(since) > 0 {
		if data, err := json.Marshal(since); err == nil {
			parts = append(parts, upgrade.Part{Name: partBans, Data: data})
		}
	}
	if c.late.calls++; last || c.late.calls%countersEvery == 0 {
		parts = append(parts, c.counters()...)
	}
	return parts
}

// countersEvery is how many calls of Late there are to one that returns the counters: they
// are much to read where there are many routes.
const countersEvery = 5

// counters returns what was counted since the first of the processes that have replaced
// each other has started. It is a part by itself, as it can be large.
func (c *Control) counters() []upgrade.Part {
	data, err := c.metrics.Export()
	if err != nil {
		c.log.Error("counters are not handed over", "error", err)
		return nil
	}
	return []upgrade.Part{{Name: partMetrics, Data: data}}
}

// importCounters adds the counters of the process before to those of this one.
func (c *Control) importCounters(data []byte) {
	if err := c.metrics.Import(data); err != nil {
		c.log.Warn("counters of the previous process cannot be read", "error", err)
	}
}

// followOld adds what the process before sends while it drains to what this one has.
func (c *Control) followOld() {
	in := c.options.Inherited
	in.Late(partRecent, func(data []byte) {
		if r := c.Recent(); r != nil {
			r.Import(data)
		}
	})
	in.Late(partMetrics, c.importCounters)
	in.Late(partBans, func(data []byte) {
		var since []bans.Unsaved
		if json.Unmarshal(data, &since) == nil {
			c.bans.Restore(since, false)
		}
	})
}

// Leave gives the ports to the new process, and then the lock of the state directory:
// nothing is accepted here any more, and open connections end in their own time.
func (c *Control) Leave() {
	c.ports.Leave()
	c.replaced.Store(true)
	c.files.ReleaseLock()
	if p := c.current.Load(); p != nil {
		p.DropCaches() // the new process answers from now on
	}
}

// Thaw reverts Freeze, and Leave if that was called. An error says that another process
// has the state directory by now; the state stays suspended then, and Leave remains in
// effect.
func (c *Control) Thaw() error {
	c.alone.start()
	if err := c.files.Resume(); err != nil {
		return err
	}
	c.handover.Resume()
	c.replaced.Store(false)
	c.ports.Thaw()
	c.thawChanges()
	return nil
}

// Frozen reports whether another process is taking over from this one, or has.
func (c *Control) Frozen() bool { return c.frozen.Load() }

// Replaced reports whether another process has taken over from this one.
func (c *Control) Replaced() bool { return c.replaced.Load() }

// Process returns the process that this is, whether it is being replaced, and the one that
// it has replaced.
func (c *Control) Process() upgrade.State {
	in := c.options.Inherited
	s := upgrade.State{Version: c.options.Build.Version, Generation: in.Generation(), PID: os.Getpid(), Running: c.Frozen()}
	if p, ok := in.Draining(); ok {
		s.Previous = &upgrade.Previous{PID: p.PID, Version: p.Version, Generation: p.Generation, Since: p.Since, Connections: p.Connections}
	}
	return s
}

// Connections returns how many connections of clients are open.
func (c *Control) Connections() int { return c.ports.Connections() }

// UpgradeDrain is how long connections may go on in a process that was replaced.
func (c *Control) UpgradeDrain() time.Duration {
	if p := c.current.Load(); p != nil {
		return time.Duration(p.Config().Admin.UpgradeDrain)
	}
	return 0
}

// EndReplaced ends what is left of a process that was replaced: it closes the connections
// that are still open and writes what the access log and the tracing have. It returns how
// many connections were closed. last is called when they are, before anything else is
// closed. The process has to end then.
func (c *Control) EndReplaced(last func()) (cut int) {
	c.stopping.Store(true)
	cut = c.ports.End()
	last()
	c.handover.End() // it is given up anyway
	c.files.End()
	if p := c.current.Load(); p != nil {
		p.Retire(nil)
	}
	c.spans.Wait()
	c.records.close()
	return cut
}

// startInPlace applies the active configuration of the previous process. It writes nothing:
// later changes of the files are applied when the watch finds them.
func (c *Control) startInPlace() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.startHostFieldsLocked()
	var was handedRevision
	c.options.Inherited.Part(partRevision, &was)
	if p, ok, err := c.history.Pending(context.Background()); err == nil && ok {
		c.mu.pending = &p
	}
	docs, unread := c.source.Read(nil)
	head, ok := c.history.Head()
	var err error
	switch {
	case unread == nil && !was.Degraded && ok && c.isRevisionLocked(&head, docs):
		if err = c.applyLocked(Cause{Via: ViaFile}, docs, nil); err == nil {
			c.mu.seen = etagOf(c.digestsLocked(docs))
			c.publishLocked()
		}
	case ok && !was.Degraded:
		err = c.serveKeptLocked(head, "the configuration files were changed during the upgrade")
	default:
		if err = c.fallBackLocked(); err == nil && unread == nil {
			c.mu.tried = ETag(docs)
		}
	}
	if err != nil {
		return err
	}
	if c.mu.pending != nil {
		c.awaitPendingLocked(*c.mu.pending)
	}
	c.inheritMemory()
	return nil
}

// isRevisionLocked reports whether documents are those of a revision.
func (c *Control) isRevisionLocked(r *history.Revision, docs config.Documents) bool {
	have := c.digestsLocked(docs)
	for _, d := range r.Documents {
		if have[d.Name] != d.Digest {
			return false
		}
	}
	return len(have) == len(r.Documents)
}

// takeOverSockets takes over from the process before: it returns when that has released
// everything.
func (c *Control) takeOverSockets() error {
	if c.options.TakeOver == nil {
		return nil
	}
	c.followOld()
	if err := c.options.TakeOver(); err != nil {
		return err
	}
	c.files.EnableWrites()
	c.handover.Resume()
	c.ports.Start()
	return nil
}

// awaitPendingLocked waits for the confirmation of a change as long as it may take still.
func (c *Control) awaitPendingLocked(p history.Pending) {
	wait := time.Until(p.Until)
	if c.shared {
		wait = c.remainingLocked(p)
		c.mu.pending.Until = time.Now().Add(wait)
	}
	c.mu.confirm = time.AfterFunc(wait, func() { c.revert(p.Revision) })
}

// quicKeys returns the keys of HTTP/3: those of the process before, if there was one.
func quicKeys(in *upgrade.Inheritance) *listen.QUICKeys {
	k := listen.NewQUICKeys(in.Generation())
	var was listen.QUICKeys
	if in.Part(partQUIC, &was) {
		k.Reset, k.Token = was.Reset, was.Token
	}
	return k
}

// carried returns the state of the parts of the plan of the process before.
func carried(in *upgrade.Inheritance) (all plan.Carried) {
	in.Part(partPlan, &all)
	return all
}

// maxRecent bounds the recent requests that are handed over, in bytes.
const maxRecent = 8 << 20

// inheritMemory restores what the process before had in memory beside its plan: the
// recent requests, the bans that it had not saved, and the clients that signed in lately.
func (c *Control) inheritMemory() {
	in := c.options.Inherited
	if r := c.Recent(); r != nil {
		r.Import(in.Bytes(partRecent))
	}
	if data := in.Bytes(partMetrics); data != nil {
		c.importCounters(data)
	}
	var unsaved []bans.Unsaved
	if in.Part(partBans, &unsaved) {
		c.bans.Restore(unsaved, true)
	}
	c.bans.RestoreSignedIn(in.Bytes(partSignedIn))
}

// ticketKeys returns the keys of session tickets of the process before, by name.
func ticketKeys(in *upgrade.Inheritance) (keys plan.TicketKeys) {
	in.Part(partTickets, &keys)
	return keys
}
