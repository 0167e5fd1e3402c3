package control

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"runtime/debug"
	"time"

	"headgate/internal/admin"
	"headgate/internal/config"
	"headgate/internal/plan"
	"headgate/internal/ports"
	"headgate/internal/schema"
)

// Apply makes a configuration the one that is served by, or leaves everything as
// it was. name is what problems call it. The error is a *Refused.
func (c *Control) Apply(name string, data []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.applyLocked(name, data)
}

func (c *Control) applyLocked(name string, data []byte) error {
	if c.mu.closed {
		return c.refuseLocked(errStopping)
	}
	began := time.Now()
	ch, err := c.prepareLocked(name, data)
	if err != nil {
		return c.refuseLocked(err)
	}
	c.commitLocked(ch)
	c.mu.refused = nil
	c.publishLocked()
	c.metrics.Applied(true)
	c.tell(ch, time.Since(began))
	return nil
}

// refuseLocked notes and tells why a configuration was not applied. It returns a
// *Refused.
func (c *Control) refuseLocked(err error) error {
	r := asRefused(err)
	c.mu.refused = refusedState(r)
	c.publishLocked()
	c.metrics.Applied(false)
	c.tellRefused(r)
	return r
}

// change is a configuration on its way: everything that can fail has been done
// and nothing of it can be seen yet.
type change struct {
	config   *config.Config
	before   *config.Config
	plan     *plan.Plan
	previous *plan.Plan
	record   *record // the access log after the change
	admin    *admin.Change
	ports    *ports.Change
	revision string
	notes    []schema.Problem
}

// prepareLocked does all that can fail, in the order check, compile, open, save.
// When a step fails those before it are undone.
func (c *Control) prepareLocked(name string, data []byte) (ch *change, err error) {
	ch = &change{previous: c.current.Load()}
	if ch.previous != nil {
		ch.before = ch.previous.Config()
	}
	defer func() {
		if v := recover(); v != nil {
			// A mistake of ours must not cost the requests that are served now.
			c.log.Error("broken invariant while a change was prepared", "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			err = fmt.Errorf("prepare the change: broken invariant: %v; please report this", v)
		}
		if err != nil {
			c.undo(ch)
		}
	}()
	var doc *config.Document
	if ch.config, doc, err = load(name, data); err != nil {
		return ch, err
	}
	ch.notes = doc.Notes()
	report := doc.Report()
	if err = c.openRecord(ch, report); err != nil {
		return ch, err
	}
	var problems []schema.Problem
	house := plan.House{Log: c.log, Metrics: c.metrics, Record: ch.record.fn(), RecordPassage: c.recordPassage, Dir: filepath.Dir(name), Tunnels: c.tunnels, StateDir: c.state.Dir()}
	if ch.plan, problems = plan.Compile(ch.config, ch.previous, house, report); len(problems) > 0 {
		return ch, &Refused{Problems: problems}
	}
	if err = c.openAdmin(ch); err != nil {
		return ch, err
	}
	if ch.ports, err = c.ports.Prepare(ch.plan, ch.previous); err != nil {
		return ch, err
	}
	return ch, c.save(ch, data)
}

// openAdmin opens the admin listener of a change. At the start a busy address
// keeps nobody from being served: the listener waits, as ports do.
func (c *Control) openAdmin(ch *change) (err error) {
	address := ch.config.Admin.Address
	if ch.admin, err = c.admin.Prepare(address); err == nil {
		return nil
	}
	waits := ch.previous == nil || ch.before.Admin.Address == address && c.adminWaits(ch.before)
	if !waits || !ports.Temporary(err) {
		return fmt.Errorf("%w; %s", err, ports.Help(err, address))
	}
	if ch.previous == nil {
		c.log.Warn("admin listener waits, ports are served", "address", address.String(), "error", err, "hint", ports.Help(err, address))
	}
	ch.admin, err = c.admin.Prepare(netip.AddrPort{})
	return err
}

// adminWaits reports whether the admin listener of a configuration is not open.
func (c *Control) adminWaits(cfg *config.Config) bool {
	return cfg.Admin.Address.IsValid() && !c.admin.Address().IsValid()
}

// save keeps the configuration as a revision. A change that cannot be kept is
// refused, as nobody could go back to it; a start goes on without.
func (c *Control) save(ch *change, data []byte) (err error) {
	ch.revision, err = c.state.Save(data)
	if err != nil && ch.previous == nil {
		c.log.Error("configuration is served but not kept as a revision", "error", err)
		return nil
	}
	return err
}

// undo takes back what a failed change has done so far.
func (c *Control) undo(ch *change) {
	if ch.ports != nil {
		ch.ports.Cancel()
	}
	if ch.admin != nil {
		ch.admin.Cancel()
	}
	if ch.plan != nil {
		ch.plan.Retire(ch.previous)
	}
	if ch.record != c.record.Load() {
		ch.record.close()
	}
}

// commitLocked makes the change: from the swap on, every request that begins is
// served by the new plan, on old connections too.
func (c *Control) commitLocked(ch *change) {
	c.current.Store(ch.plan)
	ch.plan.Begin()
	ch.ports.Commit()
	ch.admin.Commit()
	if old := c.record.Swap(ch.record); old != ch.record {
		c.retireRecord(old)
	}
	if ch.previous != nil {
		ch.previous.Retire(ch.plan)
	}
	c.tunnels.Follow(ch.plan.Left)
	c.mu.since, c.mu.revision = time.Now(), ch.revision
	c.scheduleAdminLocked(firstRetry)
}

// How long the admin listener waits for the next try when its address is busy.
const (
	firstRetry = 2 * time.Second
	lastRetry  = 30 * time.Second
)

// scheduleAdminLocked tries again to open the admin listener, if it waits.
func (c *Control) scheduleAdminLocked(after time.Duration) {
	if c.mu.retry != nil {
		c.mu.retry.Stop()
		c.mu.retry = nil
	}
	if !c.mu.closed && c.adminWaits(c.current.Load().Config()) {
		c.mu.retry = time.AfterFunc(min(after, c.pace), func() { c.retryAdmin(after) })
	}
}

// retryAdmin opens the admin listener if it waits.
func (c *Control) retryAdmin(waited time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.closed {
		return
	}
	if cfg := c.current.Load().Config(); c.adminWaits(cfg) && c.admin.Move(cfg.Admin.Address) == nil {
		c.log.Info("admin listener opened", "address", cfg.Admin.Address.String())
	}
	c.scheduleAdminLocked(min(2*waited, lastRetry))
}
