package control

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/certs/acme"
	"headgate/internal/certs/ech"
)

const (
	// recordTime is the maximum duration of one attempt to publish a record.
	recordTime = time.Minute
	// recordCheck is the interval between checks of a record that is in the DNS, plus up to a tenth.
	recordCheck = time.Hour
	// The pause after a failed attempt doubles from recordFirst to recordCheck.
	recordFirst = time.Minute
	// recordLook is the first pause before headgate looks for a record that it has written; the
	// pause doubles up to echLook.
	recordLook = 15 * time.Second
	// recordParallel is the maximum number of records that are published at the same time.
	recordParallel = 4
	// maxNamedRecords is the maximum number of records that one line of the log names.
	maxNamedRecords = 20
	// recordReport is the maximum time for which failures are collected before they are reported.
	recordReport = 5 * time.Minute
	// usualPropagation is the maximum time until a record is visible if the entry sets 0.
	usualPropagation = 10 * time.Minute
)

// ECHFailure reports HTTPS records that could not be written to the DNS.
type ECHFailure struct {
	// Entry is the ACME entry with the provider.
	Entry string
	// Names are the names of the records, at most 1000 of a port.
	Names []string
	// Cause is why the first could not be written, Hint what to do, or "".
	Cause, Hint string
	// RetryAt is when it is tried again.
	RetryAt time.Time

	since time.Time // of the first failure
}

// echRecords keeps the HTTPS records of ports with tls.ech.dns in the DNS. Without such a port
// it does nothing. It removes no record: those that exist may belong to other programs.
type echRecords struct {
	// constant
	wanted  func() []wantedRecord
	publish func(context.Context, *acme.Config, *acme.HTTPSRecord) acme.Publication
	report  func(ECHFailure)
	log     *slog.Logger
	wake    chan struct{} // the required records may have changed

	mu struct {
		sync.Mutex
		all    map[string]*publishedRecord // by the name of the record
		failed map[string]*ECHFailure      // the failures of this round, by entry
	}
}

// wantedRecord is a record that a port requires in the DNS. It is immutable.
type wantedRecord struct {
	port, entry string
	settings    *acme.Config
	record      acme.HTTPSRecord
}

// publishedRecord is the state of a record. It is guarded by the lock of echRecords.
type publishedRecord struct {
	wantedRecord
	acme.Publication

	tries   int       // since the state changed
	waiting time.Time // since when it is not visible; zero if it is visible
	next    time.Time // the next attempt
}

func newECHRecords(c *Control) *echRecords {
	r := &echRecords{
		wanted: c.wantedRecords, publish: c.issuer.manager.PublishHTTPS, report: c.watcher.ECHRecords,
		log: c.log, wake: make(chan struct{}, 1),
	}
	r.mu.all, r.mu.failed = map[string]*publishedRecord{}, map[string]*ECHFailure{}
	return r
}

// wantedRecords returns the records for the hosts of the ports with tls.ech.dns.
func (c *Control) wantedRecords() (out []wantedRecord) {
	p := c.current.Load()
	if p == nil {
		return nil
	}
	for _, h := range p.Hidden() {
		e := p.Config().ACME[h.DNS]
		list := c.ech.ring(h.PublicName).Published()
		if e == nil || e.DNS == nil || list == nil {
			continue
		}
		newer, older := keysBeside(c.ech.ring(h.PublicName), list)
		n := 0
		for _, host := range h.Hosts() {
			name := ech.Owner(host.Name, h.Number)
			if name == "" {
				continue
			}
			if n++; n > maxECHRecords {
				break
			}
			out = append(out, wantedRecord{h.Port, h.DNS, &e.Config, acme.HTTPSRecord{Host: host.Name, Name: name, PublicName: h.PublicName, Protocols: host.Protocols, ECH: list, Newer: newer, Older: older, TTL: ech.RecordTTL}})
		}
	}
	return out
}

// keysBeside returns the keys that are published after a list, and before it, as lists.
func keysBeside(r *ech.Ring, list []byte) (newer, older [][]byte) {
	before := false
	for _, k := range r.Keys() { // the newest first
		switch one := ech.List(k.Config); {
		case bytes.Equal(one, list):
			before = true
		case before:
			older = append(older, one)
		default:
			newer = append(newer, one)
		}
	}
	return newer, older
}

// notify makes run check the required records.
func (r *echRecords) notify() {
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// run publishes records until ctx ends.
func (r *echRecords) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
		timer.Stop()
		if pause, more := r.update(ctx); more {
			timer.Reset(pause)
		}
	}
}

// update publishes all records that are due. It returns the pause until the next, if there is
// one.
func (r *echRecords) update(ctx context.Context) (pause time.Duration, more bool) {
	for {
		r.refresh()
		due := r.due(time.Now())
		if len(due) == 0 || ctx.Err() != nil {
			break
		}
		var group sync.WaitGroup
		for _, w := range due {
			group.Go(func() { r.publishOne(ctx, &w) })
		}
		group.Wait()
		r.reportFailed(recordReport)
	}
	r.reportFailed(0)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.mu.all {
		if until := time.Until(p.next); !more || until < pause {
			pause, more = max(until, 0), true
		}
	}
	return pause, more
}

// refresh updates the list of required records. If two ports require the same record, only the first
// one writes it. A record that is no longer required stays in the DNS, and this is logged.
func (r *echRecords) refresh() {
	next := map[string]*publishedRecord{}
	all := r.wanted()
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range all {
		if next[w.record.Name] != nil {
			continue
		}
		p := r.mu.all[w.record.Name]
		if p == nil || !reflect.DeepEqual(p.wantedRecord, w) {
			p = &publishedRecord{wantedRecord: w, Publication: acme.Publication{State: acme.Waiting}, next: now}
		}
		next[w.record.Name] = p
	}
	r.logLeftLocked(next)
	r.mu.all = next
}

// logLeftLocked logs the records that stay in the DNS and are not among the next.
func (r *echRecords) logLeftLocked(next map[string]*publishedRecord) {
	var left []string
	for name, p := range r.mu.all {
		if next[name] == nil && p.State != acme.Skipped {
			left = append(left, name)
		}
	}
	if len(left) == 0 {
		return
	}
	slices.Sort(left)
	r.log.Warn("HTTPS records are no longer updated and may contain a key of Encrypted Client Hello; remove the parameter ech from those whose host is no longer served here",
		"records", strings.Join(left[:min(len(left), maxNamedRecords)], ", "), "count", len(left))
}

// due returns the records that are due, at most recordParallel. Those that wait longest are first, so
// that with a slow provider, each record gets its turn.
func (r *echRecords) due(now time.Time) (due []wantedRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.SortedFunc(maps.Values(r.mu.all), func(a, b *publishedRecord) int {
		return cmp.Or(a.next.Compare(b.next), cmp.Compare(a.record.Name, b.record.Name))
	})
	for _, p := range all[:min(len(all), recordParallel)] {
		if !p.next.After(now) {
			due = append(due, p.wantedRecord)
		}
	}
	return due
}

// publishOne publishes a record, and records the result.
func (r *echRecords) publishOne(ctx context.Context, w *wantedRecord) {
	limited, stop := context.WithTimeout(ctx, recordTime)
	defer stop()
	result := r.publish(limited, w.settings, &w.record)
	if ctx.Err() != nil {
		return
	}
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.mu.all[w.record.Name] // only refresh removes it, and does not run now
	before := p.State
	p.note(result, now)
	switch {
	case p.State == before:
	case p.State == acme.PublishFailed:
		r.addFailedLocked(p)
	case p.State == acme.Published:
		r.log.Info("HTTPS record is published", "record", w.record.Name, "port", w.port)
	case p.State == acme.Skipped:
		r.log.Info("HTTPS record is not written", "record", w.record.Name, "port", w.port, "reason", p.Why)
	}
}

// note records the result of an attempt, and schedules the next one.
func (p *publishedRecord) note(result acme.Publication, now time.Time) {
	limit := cmp.Or(time.Duration(p.settings.DNS.Propagation), usualPropagation)
	switch {
	case result.State != acme.Waiting:
		p.waiting = time.Time{}
	case p.waiting.IsZero():
		p.waiting = now
	case now.Sub(p.waiting) > limit:
		result = acme.Publication{State: acme.PublishFailed, Why: fmt.Sprintf("not visible within %s: %s", limit, result.Why), Hint: "give it more time with dns: {propagation: …}, or name the servers to query under resolvers"}
	}
	if p.State != result.State {
		p.tries = 0
	}
	p.Publication = result
	pause := recordCheck + rand.N(recordCheck/10)
	switch result.State {
	case acme.Waiting:
		pause = min(recordLook<<min(p.tries, 10), echLook)
	case acme.PublishFailed:
		pause = min(recordFirst<<min(p.tries, 10), recordCheck)
	}
	p.tries++
	p.next = now.Add(pause)
}

// addFailedLocked adds a record that failed now and did not fail before.
func (r *echRecords) addFailedLocked(p *publishedRecord) {
	r.log.Warn("HTTPS record is not written", "record", p.record.Name, "port", p.port, "error", p.Why, "remedy", p.Hint, "retry_at", p.next)
	f := r.mu.failed[p.entry]
	if f == nil {
		f = &ECHFailure{Entry: p.entry, Cause: p.Why, Hint: p.Hint, RetryAt: p.next, since: time.Now()}
		r.mu.failed[p.entry] = f
	}
	f.Names = append(f.Names, p.record.Name)
}

// reportFailed reports the failed records together, if they were collected long enough.
func (r *echRecords) reportFailed(after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, entry := range slices.Sorted(maps.Keys(r.mu.failed)) {
		f := r.mu.failed[entry]
		if time.Since(f.since) < after {
			continue
		}
		slices.Sort(f.Names)
		r.report(*f)
		delete(r.mu.failed, entry)
	}
}

// describe adds the state in the DNS to a record of a port.
func (r *echRecords) describe(port string, to *ECHRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := r.mu.all[to.Name]
	switch {
	case p == nil:
		to.State = acme.Waiting
	case p.port != port:
		to.State, to.Note = acme.Skipped, "the record is written for port "+p.port
	default:
		to.State, to.Note, to.NextTry = p.State, p.Why, p.next
		if p.Hint != "" {
			to.Note += "; " + p.Hint
		}
	}
}

// issue returns what is wrong with the records of a port, "" if nothing is.
func (r *echRecords) issue(port string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *publishedRecord
	n := 0
	for _, p := range r.mu.all {
		if p.port != port || p.State != acme.PublishFailed {
			continue
		}
		if n++; first == nil || p.record.Name < first.record.Name {
			first = p
		}
	}
	if first == nil {
		return ""
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" and %d more", n-1)
	}
	text := fmt.Sprintf("the HTTPS record of %s%s is not written: %s", first.record.Name, more, first.Why)
	if first.Hint != "" {
		text += "; " + first.Hint
	}
	return text
}
