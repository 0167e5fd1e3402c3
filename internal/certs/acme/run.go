package acme

import (
	"fmt"
	"net/http"
	"reflect"
	"runtime/debug"
	"slices"
	"time"
)

// startLocked starts a goroutine for one job.
func (m *Manager) startLocked(j *job) {
	j.running, j.again, j.untilValid = true, false, false
	if j.listed {
		j.record.Demand = nil
	}
	slot := j.slot()
	m.mu.running[slot]++
	name, entry, names, forced := j.entryName, j.entry, j.names, j.forced
	j.forced = false
	m.stopped.Go(func() {
		at := m.runSafely(j.record, name, entry, names, forced)
		m.mu.Lock()
		defer m.mu.Unlock()
		j.running = false
		j.at = at
		j.endDemandedLocked(m.now())
		j.announceLocked()
		switch {
		case j.again && j.untilValid && j.record.State == Valid:
			j.forced = false // what was to be ordered has come
		case j.again:
			j.at = m.now()
		}
		if m.mu.running[slot]--; m.mu.running[slot] == 0 {
			delete(m.mu.running, slot)
		}
		m.wakeUp()
	})
}

// slot returns under what the orders in progress are counted: those on demand do not hold up
// the others of an entry, of which there may be many at once.
func (j *job) slot() string {
	if j.record.Demand != nil {
		return j.entryName + "\x00on demand"
	}
	return j.entryName
}

// runSafely is run with a recover, because responses of authorities and providers are
// parsed by third-party code.
func (m *Manager) runSafely(r *Record, name string, entry *Config, names []string, forced bool) (at time.Time) {
	defer func() {
		if v := recover(); v != nil {
			m.log.Error("an order broke", "certificate", r.Title(), "panic", fmt.Sprint(v), "stack", string(debug.Stack()))
			at = m.failed(entry, r, names, &Trouble{Code: "broken", Message: cut(fmt.Sprintf("the order broke: %v", v)), Hint: "please report this with the log"})
		}
	}()
	return m.run(r, name, entry, names, forced)
}

// run manages one certificate and returns the time of the next run. forced orders one even
// if none is due.
func (m *Manager) run(r *Record, name string, entry *Config, names []string, forced bool) time.Time {
	before := r.public()
	if r.Entry != name {
		r.Entry, r.Server, r.ServerFailures, r.Rehearse = name, 0, 0, false
	}
	r.Names = names
	m.askRenewal(m.ctx, entry, r)
	if m.ctx.Err() != nil {
		return m.now()
	}
	if due := m.dueAt(entry, r, names); !forced && due.After(m.now()) {
		return m.rest(entry, r, due, before)
	}
	if ok, t := m.renewable(r); t != nil {
		return m.failed(entry, r, names, t)
	} else if !ok {
		return r.NotAfter
	}
	o := &order{m: m, entry: entry, names: names, record: r, forced: forced}
	err := o.obtain(m.ctx)
	switch {
	case m.ctx.Err() != nil:
		return m.now() // the next start goes on
	case o.adopted:
		m.askRenewal(m.ctx, entry, r)
		return m.rest(entry, r, m.dueAt(entry, r, names), nil)
	case err == nil && r.State != Valid:
		return m.run(r, name, entry, names, forced) // it was tried out, now in earnest
	case err == nil:
		m.log.Info("certificate issued", "certificate", r.Title(), "names", r.Has, "directory", r.Directory, "not_after", r.NotAfter)
		m.askRenewal(m.ctx, entry, r) // the authority may want it back long before its end
		return m.rest(entry, r, m.dueAt(entry, r, names), nil)
	}
	return m.failed(entry, r, names, troubleOf(err))
}

// dueAt returns when an order is due: at once for names that the certificate in use
// does not have, and after failures when the pause is over.
func (m *Manager) dueAt(e *Config, r *Record, names []string) time.Time {
	switch {
	case r.Open != nil || r.NotAfter.IsZero() || !slices.Equal(r.Has, names):
		return time.Time{}
	}
	return latest(renewAt(e, r), renewAgain(r))
}

// rest notes that nothing is to be done until a moment, or until the authority is to
// be asked again. It is written only if that is news: before is what was known.
func (m *Manager) rest(e *Config, r *Record, due time.Time, before *Record) time.Time {
	if e.Renew == ByARI && r.Renewal != nil && r.Renewal.AskAgain.Before(due) {
		due = r.Renewal.AskAgain
	}
	if r.State != Valid {
		r.State, r.Since = Valid, m.now()
	}
	r.NextTry, r.Trouble, r.Tried = due, nil, ""
	if before == nil || !reflect.DeepEqual(before, r.public()) {
		m.keepLoud(r)
	}
	return due
}

// failed notes why there is no certificate, and returns when the next try is.
func (m *Manager) failed(e *Config, r *Record, names []string, t *Trouble) time.Time {
	now := m.now()
	server := serverOf(e, r)
	if t.elsewhere { // what is kept is the other's
		r.State, r.Since, r.Trouble, r.NextTry = Failed, now, t, now.Add(m.pause(r, now))
		m.publish(r)
		return r.NextTry
	}
	state := Failed
	if t.blocked && (r.Open == nil || r.Open.URL == "") {
		state = Blocked
	}
	if !t.theirs && t.Code != "store" {
		r.giveUp(now, t) // else it is taken up again
	}
	if p := t.Problem; p != nil && (p.Status == http.StatusNotFound || p.Status == http.StatusGone || p.Status == http.StatusMethodNotAllowed) {
		m.distrust(directoryOf(server).url) // the resource may have moved
	}
	r.Failures++
	if r.State != state || r.Since.IsZero() {
		r.Since = now
	}
	r.State, r.Trouble, r.Tried = state, t, sumOf(e, names)
	next := now.Add(m.pause(r, now))
	switch {
	case t.Code == "account_unknown":
		m.forgetAccount(m.ctx, e, directoryOf(server).url)
	case t.Code == "already_replaced":
		r.NoReplaces = true
		next = now.Add(m.pace.first / 10)
	case t.theirs && r.Rehearse: // trying it out is not worth more
		r.Rehearse = false
		r.giveUp(now, t)
	case t.theirs:
		next = m.serverFailed(e, r, t, next)
	case t.checked:
		r.Rehearse = directoryOf(server).staging != ""
	}
	if after := now.Add(t.after); t.after > 0 {
		next = after
	}
	r.NextTry = next
	m.keepLoud(r)
	about := []any{"certificate", r.Title(), "state", string(state), "reason", t.Code, "error", t.Message}
	if detail := t.detail(); detail != "" {
		about = append(about, "detail", detail)
	}
	m.log.Warn("no certificate", append(about, "hint", t.Hint, "next_try", next)...)
	return next
}

// serverFailed notes that the authority failed, and selects the next one of the entry after
// two failures or a limit. It returns when the next try is, which was to be at next.
func (m *Manager) serverFailed(e *Config, r *Record, t *Trouble, next time.Time) time.Time {
	now, url := m.now(), directoryOf(serverOf(e, r)).url
	if until := m.limitedUntil(url); t.Code == "rate_limited" && !until.IsZero() {
		t.after = until.Sub(now)
	}
	if t.Code == "authority_error" && r.Open != nil && r.Open.URL == "" {
		r.NoReplaces = true // naming the one before may be what it cannot do
	}
	m.distrust(url)
	if r.ServerFailures++; r.ServerFailures%maxResumed == 0 {
		r.giveUp(now, t) // the order itself may be what it cannot do
	}
	limited := t.Code == "rate_limited" && now.Add(t.after).After(next) // the authority has set the time
	if r.ServerFailures < 2 && !limited || len(e.Fallbacks) == 0 {
		return next
	}
	r.giveUp(now, t)
	t.after = 0
	var until time.Time
	if r.Server, until = m.nextServer(e, r); !until.IsZero() {
		t.after = until.Sub(now)
	}
	r.ServerFailures, r.Rehearse = 0, false
	return now.Add(m.pace.first / 10)
}

// nextServer returns the entry's directory to use next: the one after the one that failed,
// without those that have limited new orders. If all have, it is the one whose limit ends
// first, with that time.
func (m *Manager) nextServer(e *Config, r *Record) (server int, until time.Time) {
	all := append([]string{e.Directory}, e.Fallbacks...)
	for i := range all {
		n := (r.Server + 1 + i) % len(all)
		limit := m.limitedUntil(directoryOf(all[n]).url)
		if limit.IsZero() {
			return n, limit
		}
		if until.IsZero() || limit.Before(until) {
			server, until = n, limit
		}
	}
	return server, until
}

// maxResumed is how often an order is taken up again after errors of the authority's.
const maxResumed = 8
