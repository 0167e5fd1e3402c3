package acme

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"headgate/internal/store"
)

// follow takes part in what other machines do with the same store, until the manager is
// closed: it answers the challenges of their orders, as an authority may come to any of the
// machines, and takes their certificates into use.
func (m *Manager) follow(ctx context.Context) {
	for ctx.Err() == nil {
		_, at, err := m.store.Snapshot(ctx, store.KeyHead) // for the position only
		if err == nil {
			m.takeAnswers(ctx)
			for batch, werr := range m.store.Watch(ctx, "", at) {
				if werr != nil {
					break
				}
				m.accept(ctx, batch)
			}
		}
		timer := time.NewTimer(m.pace.look)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// takeAnswers answers the challenges that are open in the store.
func (m *Manager) takeAnswers(ctx context.Context) {
	entries, _, err := m.store.Snapshot(ctx, store.PrefixChallenge)
	if err != nil {
		return // the watch fails as well, and it is tried again
	}
	for _, e := range entries {
		m.acceptAnswer(ctx, strings.TrimPrefix(e.Key, store.PrefixChallenge), e.Value)
	}
}

// accept takes one commit.
func (m *Manager) accept(ctx context.Context, b store.Batch) {
	for _, e := range b.Put {
		if place, ok := strings.CutPrefix(e.Key, store.PrefixChallenge); ok {
			m.acceptAnswer(ctx, place, e.Value)
		}
		if name, ok := strings.CutPrefix(e.Key, store.PrefixCertificate); ok && b.Who == who {
			m.acceptCertificate(ctx, name, e.Value)
		}
		if name, ok := strings.CutPrefix(e.Key, store.PrefixOrder); ok && b.Who == who {
			m.acceptFailure(name, e.Value)
		}
	}
	for _, key := range b.Delete {
		if place, ok := strings.CutPrefix(key, store.PrefixChallenge); ok {
			m.withdraw(place)
		}
	}
}

// acceptCertificate takes a certificate into use that was issued just now, with the record
// of its order. One that is ordered here is installed by its order.
func (m *Manager) acceptCertificate(ctx context.Context, name string, text []byte) {
	issued, err := ParseIssued(name, text)
	if err != nil {
		m.log.Error("certificate that another machine has got cannot be used", "certificate", name, "error", err)
		return
	}
	r := &Record{}
	e, err := m.store.Get(ctx, store.PrefixOrder+name)
	if err == nil {
		err = json.Unmarshal(e.Value, r)
	}
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			m.log.Warn("the order of another machine cannot be read", "certificate", name, "error", err)
		}
		return
	}
	m.mu.Lock()
	j := m.mu.jobs[name]
	here := j != nil && j.running
	m.mu.Unlock()
	if here {
		return
	}
	m.install(issued)
	m.mu.Lock()
	defer m.mu.Unlock()
	if j = m.jobLocked(name); j.running {
		return // it is ordered here since, and the order adopts what is kept
	}
	j.record, j.expected = r, time.Time{}
	j.shown.Store(r.public())
	if j.wanted {
		j.at = m.firstLook(j)
	}
	m.keepDemandedLocked(j)
	j.announceLocked()
	m.wakeUp()
}
