package cluster

import (
	"time"

	"headgate/internal/store"
)

// Health is the state of a shared store for status and metrics.
type Health struct {
	// Engine is the name of the engine, without secrets.
	Engine string
	// State is that of the copy, Since when; Why is the reason of Detached and Rewound.
	State State
	Since time.Time
	Why   error
	// Revision is how far the copy has come, Head the newest revision of the engine that
	// this machine knows.
	Revision, Head store.Revision
	// Rewinds is how often the engine was found to be set back to an older state, and Rewind
	// what was found the last time. Unlike State, they remain after the decision.
	Rewinds uint64
	Rewind  error
	// Reconnects is how often the engine was followed again after it was away.
	Reconnects uint64
	// Commits is how many changes were committed, and CommitTime how long they took in all.
	Commits    uint64
	CommitTime time.Duration
	// Waits is how many of them were awaited in the copy, and WatchTime how long that took
	// in all.
	Waits     uint64
	WatchTime time.Duration
}

// Health returns the state of the store.
func (s *Store) Health() Health {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.mu.counts
	h.Engine, h.State, h.Since, h.Why, h.Revision = s.o.Name, s.mu.state, s.mu.since, s.mu.why, s.mu.at.Revision
	h.Head = max(h.Head, h.Revision)
	return h
}

// noteHead notes a revision that the engine has.
func (s *Store) noteHead(head store.Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.counts.Head = head
}

// noteCommit counts a change that was committed, and how long it took until the engine had
// it and until the copy had it.
func (s *Store) noteCommit(at store.Revision, commit, watch time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &s.mu.counts
	c.Head = max(c.Head, at)
	c.Commits++
	c.CommitTime += commit
	c.Waits++
	c.WatchTime += watch
}
