package acme

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"headgate/internal/store"
)

// loop starts what is due, until the manager is closed.
func (m *Manager) loop() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-m.ctx.Done():
			return
		case <-m.wake:
		case <-timer.C:
		}
		timer.Reset(m.startDue())
	}
}

// startDue starts the jobs that are due, up to the limit, and returns the time until the
// next one.
func (m *Manager) startDue() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	next := m.pace.most
	m.sweepLocked(now)
	all := 0
	for _, n := range m.mu.running {
		all += n
	}
	if all >= maxParallel || m.mu.closed {
		return next // one that ends wakes us
	}
	for _, j := range m.dueLocked(now, maxParallel-all) {
		if m.mu.running[j.slot()] < maxPerEntry {
			m.startLocked(j)
		}
	}
	for _, j := range m.mu.jobs {
		switch {
		case !j.wanted || j.running || m.mu.running[j.slot()] >= maxPerEntry:
		case waitsForPort(j):
			next = min(next, m.pace.look)
		default:
			next = min(next, max(j.at.Sub(now), time.Millisecond))
		}
	}
	return next
}

// keepGone is how long a certificate that is no longer configured is kept after it expired.
const keepGone = 7 * 24 * time.Hour

// keepNever is how long the record of a certificate on demand that was never issued is kept.
const keepNever = 24 * time.Hour

func keptGone(r *Record) time.Duration {
	if r.Demand != nil && r.NotAfter.IsZero() {
		return keepNever
	}
	return keepGone
}

// sweepLocked removes certificates that are no longer configured and expired long ago, once
// an hour, so that their number does not grow without limit.
func (m *Manager) sweepLocked(now time.Time) {
	if now.Sub(m.mu.swept).Abs() < time.Hour {
		return
	}
	m.mu.swept = now
	m.mu.found = slices.DeleteFunc(m.mu.found, func(f found) bool {
		ended := now.After(f.until)
		if ended {
			m.withdraw(f.place)
		}
		return ended
	})
	var gone []string
	for name, j := range m.mu.jobs {
		r := j.shown.Load()
		if r.Demand != nil && !j.listed && !j.running && !r.NotAfter.IsZero() && now.After(r.NotAfter) {
			j.wanted = false // the next client orders it again
		}
		if end := latest(r.Since, r.NotAfter); !j.wanted && !j.running && now.Sub(end) > keptGone(r) {
			gone = append(gone, name)
			delete(m.mu.jobs, name)
		}
	}
	if len(gone) > 0 {
		m.stopped.Go(func() { m.remove(gone) })
	}
}

// remove removes certificates from the store that are no longer managed.
func (m *Manager) remove(names []string) {
	for _, name := range names {
		m.mu.Lock()
		again := m.mu.jobs[name] != nil
		m.mu.Unlock()
		if again {
			continue // it is wanted again
		}
		ctx, cancel := context.WithTimeout(m.ctx, 10*time.Second)
		removed, err := m.removeEnded(ctx, name)
		cancel()
		if err != nil {
			m.log.Warn("remove a certificate that ended", "certificate", name, "error", err) // the next start finds it again
			continue
		}
		if removed && m.forget != nil {
			m.forget(name)
		}
	}
}

// removeEnded removes one certificate, unless another machine has configured it, is
// ordering it, or has renewed it since its record was read here: other machines may serve
// it.
func (m *Manager) removeEnded(ctx context.Context, name string) (removed bool, err error) {
	lease, err := m.store.Acquire(ctx, "acme/"+name, leaseTime)
	if held := (*store.Held)(nil); errors.As(err, &held) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() {
		if rerr := lease.Release(context.WithoutCancel(ctx)); err == nil {
			err = rerr
		}
	}()
	nodes, err := store.Nodes(ctx, m.store)
	if err != nil || store.Wanted(nodes, name) {
		return false, err
	}
	c := store.Change{Under: lease, Who: who, Why: name + " ended and is not wanted any more"}
	for _, key := range []string{store.PrefixOrder + name, store.PrefixCertificate + name} {
		e, err := m.store.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		if key == store.PrefixOrder+name && !m.endedLongAgo(name, e.Value) {
			return false, nil
		}
		c.If, c.Delete = append(c.If, store.Condition{Key: key, Revision: e.Revision}), append(c.Delete, key)
	}
	if len(c.Delete) == 0 {
		return true, nil // another machine has removed it
	}
	_, err = m.store.Commit(ctx, c)
	return err == nil, err
}

// endedLongAgo reports whether the stored record of an order expired long ago. If not, it
// is managed again: another machine has renewed it.
func (m *Manager) endedLongAgo(name string, kept []byte) bool {
	r := &Record{}
	if err := json.Unmarshal(kept, r); err != nil || r.Name != name {
		return true // unreadable; it is replaced if the certificate is configured again
	}
	if m.now().Sub(latest(r.Since, r.NotAfter)) > keptGone(r) {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.mu.jobs[name] == nil {
		j := m.jobLocked(name)
		j.record = r
		j.shown.Store(r.public())
	}
	return false
}

func sooner(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// dueLocked returns the jobs to run now, the longest overdue first, at most limit of them,
// within the limit of each entry.
func (m *Manager) dueLocked(now time.Time, limit int) []*job {
	var due []*job
	ports := &portsNow{Ports: m.ports}
	for _, j := range m.mu.jobs {
		if !j.wanted || j.running || m.mu.running[j.slot()] >= maxPerEntry {
			continue
		}
		if j.at.After(now) && !(waitsForPort(j) && portOpen(ports, j)) {
			continue
		}
		at, _ := slices.BinarySearchFunc(due, j, jobOrder)
		if at < limit {
			due = slices.Insert(due[:min(len(due), limit-1)], at, j)
		}
	}
	return due
}

// jobOrder puts jobs in the order in which they are due.
func jobOrder(a, b *job) int {
	if c := a.at.Compare(b.at); c != 0 {
		return c
	}
	return strings.Compare(a.record.Name, b.record.Name)
}

// waitsForPort reports whether a job goes on when one of our ports opens.
func waitsForPort(j *job) bool {
	r := j.shown.Load()
	return r.State == Blocked && r.Trouble != nil && r.Trouble.Code == "port_not_open"
}

func portOpen(ports Ports, j *job) bool {
	for _, name := range j.names {
		if _, t := choose(ports, j.entry, name); t != nil {
			return false
		}
	}
	return true
}

// portsNow caches the state of each port for one pass over thousands of names.
type portsNow struct {
	Ports
	http, https map[int]bool
}

// OpenHTTP reports whether an http port is open at a number.
func (p *portsNow) OpenHTTP(number int) bool { return once(&p.http, number, p.Ports.OpenHTTP) }

// OpenHTTPS reports whether an https port is open at a number.
func (p *portsNow) OpenHTTPS(number int) bool { return once(&p.https, number, p.Ports.OpenHTTPS) }

func once(known *map[int]bool, number int, ask func(int) bool) bool {
	if _, ok := (*known)[number]; !ok {
		if *known == nil {
			*known = map[int]bool{}
		}
		(*known)[number] = ask(number)
	}
	return (*known)[number]
}

// firstLook returns when a certificate is checked first after a start. A valid one waits
// until its next check; so does an order that has failed with the same settings, so that a
// process that is restarted repeatedly does not use up orders. Others are checked now.
func (m *Manager) firstLook(j *job) time.Time {
	now := m.now()
	r := j.record
	switch {
	case !r.NextTry.After(now):
	case r.State == Failed && r.Tried == sumOf(j.entry, j.names) && r.NextTry.Sub(now) <= m.longestWait(r):
		return r.NextTry
	case r.Open != nil: // a crash has interrupted it
	case r.State == Valid && r.Entry == j.entryName && slices.Equal(r.Names, j.names):
		due := m.dueAt(j.entry, r, j.names)
		if j.entry.Renew != ByARI {
			return due
		}
		if w := r.Renewal; w != nil && w.AskAgain.Sub(now) <= latestAsk {
			return sooner(due, w.AskAgain)
		}
	}
	return now
}

// longestWait is for how long a record may wait after a failure. One that waits for longer
// was written by a clock that was ahead.
func (m *Manager) longestWait(r *Record) time.Duration {
	if r.Trouble != nil && r.Trouble.Code == "rate_limited" {
		return longestLimit
	}
	return 2 * m.pace.most
}

// sumOf returns a hash of the settings.
func sumOf(e *Config, names []string) string {
	data, err := json.Marshal([]any{e, names})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
