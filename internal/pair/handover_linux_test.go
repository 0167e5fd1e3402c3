package pair

import (
	"context"
	"errors"
	"testing"
	"time"

	"headgate/internal/store"
)

// suspend stops a machine as an upgrade does, and returns what continues it.
func (m *machine) suspend(t *testing.T) (resume func()) {
	t.Helper()
	m.StopFollowing()
	if err := m.Suspend(); err != nil {
		t.Fatal(err)
	}
	lock, err := m.o.Files.Suspend()
	if err != nil {
		t.Fatal(err)
	}
	lock.Close()
	return func() {
		t.Helper()
		if err := m.o.Files.Resume(); err != nil {
			t.Fatal(err)
		}
		m.Resume()
	}
}

// TestSuspendedLeader holds that a leader whose state directory another process opens still shows
// what it is, that its follower does not count as cut off meanwhile, and that a promotion of the
// follower waits.
func TestSuspendedLeader(t *testing.T) {
	a, b := newPair(t)
	a.commit(t, "user/ann", "1")
	b.has(t, "user/ann", "1")
	resume := a.suspend(t)
	known := make(chan State, 1)
	go func() { known <- a.State() }()
	select {
	case st := <-known:
		if st.Role != Leader || st.Peer != "b" {
			t.Errorf("the state of a suspended leader: %+v", st)
		}
	case <-time.After(patience):
		t.Fatal("the state of a suspended leader is not known")
	}
	promoted := make(chan error, 1)
	go func() { promoted <- b.Promote(context.Background(), false, "ann", nil) }()
	time.Sleep(10 * closedPause)
	if st := b.State(); st.Role != Follower || !st.Connected {
		t.Errorf("the follower of a suspended leader: %+v", st)
	}
	resume()
	if err := <-promoted; err != nil {
		t.Errorf("promotion during an upgrade: %v", err)
	}
	a.await(t, "it follows", func(st State) bool { return st.Role == Follower && st.Connected })
	b.commit(t, "user/ann", "2")
	a.has(t, "user/ann", "2")
}

// TestSuspendedFollower holds that a follower hands over what it knows of the leader's clock, and
// continues to follow.
func TestSuspendedFollower(t *testing.T) {
	a, b := newPair(t)
	a.passed.Store(int64(time.Hour))
	b.await(t, "it knows the clock of the leader", func(State) bool { return time.Until(b.Time()) > 30*time.Minute })
	resume := b.suspend(t)
	if h := b.HandOver(); h.Role != Follower || h.Ahead < 59*time.Minute || h.Ahead > 61*time.Minute || time.Since(h.Contact) > time.Minute {
		t.Errorf("a follower hands over %+v", h)
	}
	a.commit(t, "user/ann", "1")
	resume()
	b.has(t, "user/ann", "1")
	a.await(t, "the follower acknowledges", func(st State) bool { return st.Connected && st.Lag == 0 })

	b.StopFollowing() // of an upgrade that fails before the store is suspended
	b.Resume()
	a.commit(t, "user/ann", "2")
	b.has(t, "user/ann", "2")
	a.await(t, "the follower acknowledges again", func(st State) bool { return st.Connected && st.Lag == 0 })
}

// TestReplacedFollowerEnds holds that a follower which was replaced ends while the state directory
// is suspended.
func TestReplacedFollowerEnds(t *testing.T) {
	a, b := newPair(t)
	b.suspend(t)
	b.mu.Lock()
	b.mu.engine.ack(store.Position{Revision: 1})
	b.mu.Unlock()
	ended := make(chan error, 1)
	go func() { ended <- b.End() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(patience):
		t.Fatal("a replaced follower does not end")
	}
	b.o.Files.End()
	b.at.Store(nil)
	b.Store = nil
	a.commit(t, "user/ann", "1")
}

// TestChangesInStepAndAnUpgrade holds that a leader is suspended when the follower has what it
// has to confirm, and that a change which comes later is not made.
func TestChangesInStepAndAnUpgrade(t *testing.T) {
	a, b := newPair(t)
	a.o.Settings.Sync = true
	a.gate.RLock()
	a.followers.expectAck() // of a change that is made
	a.gate.RUnlock()
	at, err := a.o.Files.Commit(t.Context(), put("user/ann", "1"))
	if err != nil {
		t.Fatal(err)
	}
	acked := make(chan bool, 1)
	go func() { acked <- a.followers.awaitAck(t.Context(), at) }()
	resume := a.suspend(t)
	select {
	case ok := <-acked:
		if !ok {
			t.Error("the change is not confirmed")
		}
	default:
		t.Error("the leader is suspended before the follower has confirmed a change")
	}
	if _, err := a.Commit(t.Context(), put("user/ann", "2")); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a change on a suspended leader: got %v, want %v", err, store.ErrClosed)
	}
	resume()
	a.commit(t, "user/ann", "3") // waits until the follower is connected again
	b.has(t, "user/ann", "3")
}

// TestMessagesWaitForAnUpgrade tests that a process which is being replaced takes no message, and that the one after
// it gets those of both directions.
func TestMessagesWaitForAnUpgrade(t *testing.T) {
	a, b := newPair(t)
	a.await(t, "it is followed", func(st State) bool { return st.Connected })
	toA, toB := inboxOf(t, a), inboxOf(t, b)
	resume := a.suspend(t)
	done := make(chan error, 1)
	go func() { done <- b.Send(t.Context(), sent("a", "to the new process")) }()
	time.Sleep(3 * closedPause)
	if len(toA) > 0 {
		t.Errorf("a process that is being replaced received %+v", <-toA)
	}
	resume()
	if err := <-done; err != nil {
		t.Errorf("a message during an upgrade: %v", err)
	}
	expectFrom(t, toA, "b", "to the new process")
	a.await(t, "the follower is back", func(st State) bool { return st.Connected })
	if err := a.Send(t.Context(), sent("b", "from the new process")); err != nil {
		t.Fatal(err)
	}
	expectFrom(t, toB, "a", "from the new process")
}
