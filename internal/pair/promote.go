package pair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/internal/store"
)

// handOver stops committing for a promotion of the other machine, and returns where the
// state is then. If the other machine does not go on, this one leads again after a while.
func (s *Store) handOver(ctx context.Context) (*store.Position, error) {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.Role() != Leader {
		return nil, errNotLeader
	}
	if ctx.Err() != nil {
		return nil, ctx.Err() // the other machine has given up, while this one was being upgraded
	}
	s.mu.Lock()
	s.mu.held = time.Now().Add(handWait + callTimeout)
	s.mu.role = Waiting // streams go on: the other machine has to get the last change
	s.mu.Unlock()
	s.gate.Lock() // commits on their way are finished
	defer s.gate.Unlock()
	at, err := s.o.Files.Position(ctx)
	return &at, err
}

// ErrPromote says why a machine is not promoted; the text says what to do.
var ErrPromote = errors.New("this machine is not promoted")

// Promote makes this machine the leader. The other one hands over, so that nothing is lost;
// alone is for one that cannot be reached: what it has committed and this machine has not is
// kept there, and does not count. The record, which may be nil, is appended to the audit.
func (s *Store) Promote(ctx context.Context, alone bool, by string, record *store.Record) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.Role() == Leader {
		return nil
	}
	h, err := s.promotable(ctx, alone)
	if err != nil {
		return err
	}
	if h != nil && s.Role() == Waiting {
		return s.resolve(ctx)
	}
	if s.Role() == Follower && h != nil && h.Role == Leader {
		if err := s.awaitHandOver(ctx); err != nil {
			return err
		}
	}
	return s.beginEpoch(ctx, h, by, record)
}

// CheckPromote returns why Promote would fail.
func (s *Store) CheckPromote(ctx context.Context, alone bool) error {
	if s.Role() == Leader {
		return nil
	}
	_, err := s.promotable(ctx, alone)
	return err
}

// promotable calls the other machine, and returns its answer, nil if there is none and none
// is needed. The error says why this machine cannot be promoted.
func (s *Store) promotable(ctx context.Context, alone bool) (*hello, error) {
	h, err := s.greetPeer(ctx)
	switch {
	case err != nil && !alone:
		return nil, fmt.Errorf("%w: the other machine at %s does not answer (%v); if it is lost, run \"headgate promote --alone\": changes that it made and this machine has not are lost", ErrPromote, s.peerAddress(), err)
	case err != nil:
		return nil, nil
	case alone && s.Role() == Follower && h.Role == Leader:
		return nil, fmt.Errorf("%w: the leader %s answers: run \"headgate promote\" without --alone, so that nothing is lost", ErrPromote, h.Name)
	}
	return h, nil
}

// awaitHandOver has the leader stop and waits until the copy has its last change.
func (s *Store) awaitHandOver(ctx context.Context) error {
	var last store.Position
	if err := s.peer.call(ctx, s.peerAddress(), pathYield, struct{}{}, &last); err != nil {
		return fmt.Errorf("%w: the leader does not hand over: %v", ErrPromote, err)
	}
	ctx, stop := context.WithTimeout(ctx, handWait)
	defer stop()
	f := s.following()
	if at := f.Position(); at == last {
		return nil
	}
	for b, err := range s.o.Files.Watch(ctx, "", f.Position()) {
		if err != nil {
			break
		}
		if b.Position == last {
			return nil
		}
	}
	if f.Position() == last {
		return nil
	}
	return fmt.Errorf("%w: the copy of this machine did not get the last change of the leader in %v; the leader goes on", ErrPromote, handWait)
}

// beginEpoch ends following, if this machine does, and makes it the leader.
func (s *Store) beginEpoch(ctx context.Context, other *hello, by string, record *store.Record) error {
	ctx = context.WithoutCancel(ctx) // it is not left half done
	was, err := s.epoch(ctx)
	if err != nil {
		return err
	}
	at, err := s.o.Files.Position(ctx)
	if err != nil {
		return err
	}
	if was.Node == "" || at.Revision == 0 {
		return fmt.Errorf("%w: it has no complete copy of the leader's state yet", ErrPromote)
	}
	number := was.Number
	if other != nil {
		number = max(number, other.Epoch.Number)
	}
	f := s.following()
	if f != nil {
		if err := f.Leave(); err != nil {
			return err
		}
		s.mu.Lock()
		s.mu.follow = nil
		s.mu.Unlock()
		at, err = s.o.Files.Position(ctx) // the last change may have come
	}
	if err == nil {
		err = s.commitEpoch(ctx, number+1, at, by, record)
	}
	if err != nil && f != nil {
		return errors.Join(err, s.startFollowing(ctx))
	}
	if err == nil {
		s.report()
	}
	return err
}

// commitEpoch commits the epoch in which this machine leads.
func (s *Store) commitEpoch(ctx context.Context, number uint64, at store.Position, by string, record *store.Record) error {
	if err := s.o.Files.Own(ctx); err != nil {
		return err
	}
	audit, err := s.o.Files.Last(ctx, store.StreamAudit)
	if err != nil {
		return err
	}
	epoch := s.id.newEpoch(number, at, audit)
	value, err := json.Marshal(epoch)
	if err != nil {
		return err
	}
	c := store.Change{Put: []store.Entry{{Key: store.KeyEpoch, Value: value}}, Who: by, Why: "machine " + s.id.Name + " is promoted"}
	if record != nil {
		c.Append = []store.Record{*record}
	}
	if _, err := s.o.Files.Commit(ctx, c); err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.held = time.Time{}
	s.mu.Unlock()
	s.setRole(Leader)
	s.log.Warn("this machine was promoted and leads", "epoch", epoch.String(), "who", by)
	return nil
}
