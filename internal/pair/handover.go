package pair

import (
	"context"
	"fmt"
	"time"

	"headgate/internal/store"
)

// An upgrade hands the store over to another process of the same machine: StopFollowing, Suspend,
// and then either Resume or End here, and Resume in the new process, whose store was opened with
// Options.Hold. The other machine sees its stream end, and opens it again at the new process. The
// role is handed over, too: a leader that had to ask the other machine first would not lead while
// that is away.

// The times of an upgrade.
const (
	// closedPause is between two tries of a call that a process which is being replaced has answered.
	closedPause = 100 * time.Millisecond
	// replaceWait is how long a follower tries to open its stream again at the process that
	// replaces the leader, before it reports that it cannot follow.
	replaceWait = 10 * time.Second
	// returnWait is how long a change that a follower has to confirm waits for a follower that was
	// connected until then: one whose process is replaced connects again within that time.
	returnWait = 3 * time.Second
	// suspendWait bounds the wait for changes that the follower has not confirmed yet, and for the
	// end of streams.
	suspendWait = syncWait + time.Second
)

// errReplaced is what the other machine gets from a process that is being replaced.
var errReplaced = fmt.Errorf("another process takes over on that machine: %w", store.ErrClosed)

// Handed is what a process in a pair has in memory and the one that replaces it needs.
type Handed struct {
	// Role is that of the machine.
	Role Role `json:"role"`
	// Ahead is how far the clock of the leader is ahead of this machine's; 0 on the leader.
	Ahead time.Duration `json:"ahead_ns,omitempty"`
	// Contact is when the other machine was heard from last; zero is never.
	Contact time.Time `json:"contact,omitzero"`
	// Followed is whether the follower was connected to this machine.
	Followed bool `json:"followed,omitempty"`
	// Diverged is that of State.
	Diverged *Divergence `json:"diverged,omitempty"`
}

// StopFollowing keeps the role and the copy of this machine as they are, and waits for that. The
// other machine cannot be promoted meanwhile. Changes can be made still.
func (s *Store) StopFollowing() {
	s.stop()
	<-s.done
	s.moving.Lock()
	s.mu.Lock()
	s.mu.kept = true
	f, e := s.mu.follow, s.mu.engine
	s.mu.Unlock()
	if f != nil {
		f.StopFollowing()
		e.Close() // it reads the state directory, which End does not wait for
	}
}

// Suspend ends the streams to the other machine, whose requests get store.ErrClosed from now on:
// it repeats them. Changes that the follower has to confirm get it, too. On a follower, changes
// wait. State returns what it is now until Resume. The error says that this machine is handing
// over to the other one, or that a change has not ended.
func (s *Store) Suspend() error {
	s.mu.Lock()
	held, f := time.Now().Before(s.mu.held), s.mu.follow
	s.mu.Unlock()
	if held {
		return fmt.Errorf("%w: the other machine is being promoted", store.ErrUnavailable)
	}
	ctx, stop := context.WithTimeout(context.Background(), suspendWait)
	defer stop()
	st := s.State()
	if !s.suspendCommits(ctx, &st) {
		return fmt.Errorf("%w: the follower has not confirmed a change within %v", store.ErrUnavailable, suspendWait)
	}
	s.turnAll()
	s.followers.awaitEnd(ctx) // a stream that has not ended is lost when the process ends
	if f != nil {
		return f.Suspend()
	}
	return nil
}

// suspendCommits refuses what the follower has to confirm, when all of that is confirmed. It
// reports false when ctx has ended before.
func (s *Store) suspendCommits(ctx context.Context, now *State) bool {
	for {
		s.gate.Lock()
		waits, moved := s.followers.waits()
		if !waits {
			s.mu.Lock()
			s.mu.suspended = now
			s.mu.Unlock()
			s.gate.Unlock()
			return true
		}
		s.gate.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// Resume reverts StopFollowing and Suspend, and begins the work of a store that was opened with
// Options.Hold.
func (s *Store) Resume() {
	s.mu.Lock()
	was := s.mu.suspended
	followed := was != nil && was.Role == Leader && was.Connected || s.mu.holding && s.o.Handed.Followed
	s.mu.suspended, s.mu.holding = nil, false
	s.mu.Unlock()
	if followed {
		s.followers.expect()
	}
	stopped := s.release()
	s.mu.Lock()
	f, e := s.mu.follow, s.mu.engine
	s.mu.Unlock()
	if f != nil {
		if stopped {
			e.startAcknowledging()
		}
		f.Resume()
	}
	s.startRunning()
}

// release ends that the role is kept. It reports whether it was.
func (s *Store) release() (kept bool) {
	s.mu.Lock()
	kept, s.mu.kept = s.mu.kept, false
	s.mu.Unlock()
	if kept {
		s.moving.Unlock()
	}
	return kept
}

// End closes a suspended store, except the state directory.
func (s *Store) End() error {
	s.end()
	s.release()
	s.peer.close()
	if f := s.following(); f != nil {
		return f.End()
	}
	return nil
}

// RefuseWrites ends the wait of changes in a store that was opened with Options.Hold, and for which
// Resume was not called.
func (s *Store) RefuseWrites() {
	if f := s.following(); f != nil {
		f.RefuseWrites()
	}
}

// HandOver returns what the process that replaces this one needs, after Suspend.
func (s *Store) HandOver() Handed {
	st := s.State()
	h := Handed{Role: st.Role, Contact: st.LastContact, Followed: st.Role == Leader && st.Connected, Diverged: st.Diverged}
	if st.Role == Follower {
		h.Ahead = time.Until(s.Time())
	}
	return h
}

// isSuspended reports whether another process takes over.
func (s *Store) isSuspended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.suspended != nil
}

// startRunning calls the other machine from now on.
func (s *Store) startRunning() {
	running, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	s.stop, s.done = stop, done
	go s.run(running, done)
}

// hold begins with what the process before has handed over.
func (s *Store) hold(ctx context.Context, follows bool) error {
	was := s.o.Handed
	s.mu.Lock()
	s.mu.holding, s.mu.contact, s.mu.divergent = true, was.Contact, was.Diverged
	s.mu.Unlock()
	if follows {
		s.o.Files.SetTime(time.Now().Add(was.Ahead))
		return s.startFollowing(ctx)
	}
	s.setRole(Waiting)
	if was.Role == Leader {
		s.setRole(Leader)
	}
	return nil
}
