package pair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/store"
)

// State is how a machine of a pair is.
type State struct {
	// Role is what the machine does with changes: leader, follower, or waiting for a leader
	// that was started and has not reached the other machine.
	Role Role `json:"role" required:"true"`
	// Name is that of this machine.
	Name string `json:"name" required:"true"`
	// Leader is the machine that leads, as far as this machine knows.
	Leader string `json:"leader,omitempty"`
	// LeaderAddress is the URL of the leader.
	LeaderAddress string `json:"leader_address,omitempty"`
	// Epoch is the number of the period in which the leader leads, and its name.
	Epoch string `json:"epoch,omitempty"`
	// Peer is the other machine, absent if none has joined.
	Peer string `json:"peer,omitempty"`
	// PeerAddress is the URL of the other machine.
	PeerAddress string `json:"peer_address,omitempty"`
	// Connected is whether the follower has a stream from the leader now.
	Connected bool `json:"connected"`
	// Revision is that of the state of this machine.
	Revision store.Revision `json:"revision"`
	// Lag is by how many revisions the follower is behind, as far as this machine knows.
	Lag uint64 `json:"lag"`
	// LastContact is when the other machine was heard from last.
	LastContact time.Time `json:"last_contact,omitzero"`
	// Reconnects is how often the follower has opened a stream since this machine was started.
	Reconnects uint64 `json:"-"`
	// Sync is whether this machine acknowledges changes only when the follower has them.
	Sync bool `json:"sync"`
	// Problem is why the other machine cannot be reached or followed.
	Problem string `json:"problem,omitempty"`
	// Diverged is what this machine kept of its own when it yielded last.
	Diverged *Divergence `json:"diverged,omitempty"`
}

// State returns how the machine is. While another process takes over it is how it was then: the
// state directory cannot be read.
func (s *Store) State() State {
	s.mu.Lock()
	was := s.mu.suspended
	s.mu.Unlock()
	if was != nil {
		return *was
	}
	ctx, stop := context.WithTimeout(context.Background(), callTimeout)
	defer stop()
	epoch, _ := s.epoch(ctx)         // a damaged one is reported where it is used
	at, _ := s.o.Files.Position(ctx) // 0 is shown
	name, address := s.otherIn(ctx)  // none is shown
	leaderAddress := s.addressOf(epoch.Node, name, address)
	_, connected, acked, heard := s.followers.state()
	streams := s.followers.streams()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Role: s.mu.role, Name: s.id.Name, Leader: epoch.Node, LeaderAddress: leaderAddress, Epoch: epoch.String(), Peer: name, PeerAddress: address,
		Revision: at.Revision, LastContact: s.mu.contact, Sync: s.o.Settings.Sync, Diverged: s.mu.divergent, Reconnects: s.mu.streams + streams}
	if epoch.Node == "" {
		st.Epoch, st.Leader = "", s.mu.known.Name
	}
	switch {
	case s.mu.role == Follower && s.mu.follow != nil:
		state, why := s.mu.follow.State()
		st.Connected = state == cluster.Following
		if s.mu.leaderAt > at.Revision {
			st.Lag = uint64(s.mu.leaderAt - at.Revision)
		}
		if why != nil {
			st.Problem = why.Error()
		}
	case s.mu.role == Leader:
		st.Connected = connected
		if heard.After(st.LastContact) {
			st.LastContact = heard
		}
		if name != "" && at.Revision > acked {
			st.Lag = uint64(at.Revision - acked)
		}
	}
	if st.Problem == "" && s.mu.problem != nil && name != "" {
		st.Problem = s.mu.problem.Error()
	}
	return st
}

// addressOf returns the address of the machine with a name, of the two.
func (s *Store) addressOf(name, other, otherAddress string) string {
	switch name {
	case s.id.Name:
		return s.o.Settings.Address
	case other, "":
		return otherAddress
	}
	return ""
}

// epoch returns the epoch of the state; the zero epoch of a copy that has nothing yet.
func (s *Store) epoch(ctx context.Context) (e Epoch, err error) {
	kept, err := s.o.Files.Get(ctx, store.KeyEpoch)
	if errors.Is(err, store.ErrNotFound) {
		return e, nil
	}
	if err == nil {
		err = json.Unmarshal(kept.Value, &e)
	}
	if err != nil {
		return e, fmt.Errorf("read which machine leads: %w", err)
	}
	return e, nil
}

// otherIn returns the name and the address of the other machine.
func (s *Store) otherIn(ctx context.Context) (name, address string) {
	members, _ := s.Members(ctx) // none are known then
	for _, m := range members {
		if m.Name != s.id.Name {
			name, address = m.Name, m.Address
		}
	}
	if f := s.o.Settings.Follow; f != "" {
		address = f
	}
	return name, address
}

func (s *Store) peerAddress() string {
	ctx, stop := context.WithTimeout(context.Background(), callTimeout)
	defer stop()
	_, address := s.otherIn(ctx)
	return address
}

func (s *Store) copyPosition() store.Position {
	if f := s.following(); f != nil {
		return f.Position()
	}
	return store.Position{}
}

// refusal returns the error of a change that is not made here.
func (s *Store) refusal(why error) error {
	st := s.State()
	if st.Role == Waiting {
		return &NotLeader{Why: why}
	}
	return &NotLeader{Leader: st.Leader, Address: st.LeaderAddress, Why: why}
}
