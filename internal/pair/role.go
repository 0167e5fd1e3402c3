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
	// Leader is the machine that leads as far as this one knows, and LeaderAddress its URL.
	Leader        string `json:"leader,omitempty"`
	LeaderAddress string `json:"leader_address,omitempty"`
	// Epoch is the number of the period in which the leader leads, and its name.
	Epoch string `json:"epoch,omitempty"`
	// Peer is the other machine, absent if none has joined, and PeerAddress its URL.
	Peer        string `json:"peer,omitempty"`
	PeerAddress string `json:"peer_address,omitempty"`
	// Connected is whether the follower has a stream from the leader now.
	Connected bool `json:"connected"`
	// Revision is that of the state of this machine.
	Revision store.Revision `json:"revision"`
	// Lag is by how many revisions the follower is behind, as far as this machine knows.
	Lag uint64 `json:"lag"`
	// LastContact is when the other machine was heard from last.
	LastContact time.Time `json:"last_contact,omitzero"`
	// Sync is whether this machine acknowledges changes only when the follower has them.
	Sync bool `json:"sync"`
	// Problem is why the other machine cannot be reached or followed.
	Problem string `json:"problem,omitempty"`
	// Diverged is what this machine kept of its own when it yielded last.
	Diverged *Divergence `json:"diverged,omitempty"`
}

// State returns how the machine is.
func (s *Store) State() State {
	ctx, stop := context.WithTimeout(context.Background(), callTimeout)
	defer stop()
	epoch, _ := s.epoch(ctx)         // a damaged one is reported where it is used
	at, _ := s.o.Files.Position(ctx) // 0 is shown
	name, address := s.otherIn(ctx)  // none is shown
	leaderAddress := s.addressOf(epoch.Node, name, address)
	_, connected, acked, heard := s.followers.state()
	s.mu.Lock()
	defer s.mu.Unlock()
	st := State{Role: s.mu.role, Name: s.id.Name, Leader: epoch.Node, LeaderAddress: leaderAddress, Epoch: epoch.String(), Peer: name, PeerAddress: address,
		Revision: at.Revision, LastContact: s.mu.contact, Sync: s.o.Settings.Sync, Diverged: s.mu.divergent}
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

// noteBeat notes a sign of life of the leader.
func (s *Store) noteBeat(b *beat) {
	s.offset.set(b.Now)
	s.mu.Lock()
	s.mu.contact, s.mu.leaderAt = time.Now(), b.Position.Revision
	s.mu.Unlock()
}

// reached notes a commit of the leader.
func (s *Store) reached(at store.Position) {
	s.mu.Lock()
	s.mu.contact, s.mu.leaderAt = time.Now(), at.Revision
	s.mu.Unlock()
}

// own returns what this machine says of itself.
func (s *Store) own(ctx context.Context) (*hello, error) {
	epoch, err := s.epoch(ctx)
	if err != nil {
		return nil, err
	}
	at, err := s.o.Files.Position(ctx)
	return &hello{Name: s.id.Name, Address: s.o.Settings.Address, Role: s.Role(), Epoch: epoch, Position: at, Now: time.Now()}, err
}

// greet answers a call of the other machine. A leader of a later epoch ends the one here.
func (s *Store) greet(ctx context.Context, name string, in *hello) (*hello, error) {
	own, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.mu.contact, s.mu.problem = time.Now(), nil
	s.mu.Unlock()
	if in.Epoch.After(own.Epoch) && in.Epoch.Node == name && own.Role != Follower {
		if err := s.id.check(&in.Epoch); err != nil {
			return nil, err
		}
		select {
		case s.kick <- in.Epoch:
		default:
		}
	}
	return own, nil
}

// greetPeer calls the other machine.
func (s *Store) greetPeer(ctx context.Context) (*hello, error) {
	own, err := s.own(ctx)
	if err != nil {
		return nil, err
	}
	h, err := s.peer.hello(ctx, s.peerAddress(), own)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.problem = err
	if err == nil {
		s.mu.known, s.mu.contact = *h, time.Now()
	}
	return h, err
}

// startLeading begins with the role of a machine whose state says that it leads.
func (s *Store) startLeading(ctx context.Context) error {
	if name, _ := s.otherIn(ctx); name == "" {
		s.setRole(Leader)
		return nil
	}
	s.setRole(Waiting)
	if err := s.resolve(ctx); err != nil {
		s.log.Error("the other machine has not answered, which may have been promoted: changes are refused until it is reached",
			"address", s.peerAddress(), "error", err, "remedy", "start the other machine, or run \"headgate promote --alone\" if it is lost")
	}
	return nil
}

// resolve asks the other machine who leads. The error says that it has not answered.
func (s *Store) resolve(ctx context.Context) error {
	h, err := s.greetPeer(ctx)
	if err != nil {
		return err
	}
	own, err := s.epoch(ctx)
	if err != nil {
		return err
	}
	if h.Epoch.After(own) {
		return s.yield(ctx, h.Epoch)
	}
	s.mu.Lock()
	held := time.Now().Before(s.mu.held)
	s.mu.Unlock()
	if s.Role() == Waiting && !held {
		s.setRole(Leader)
		s.log.Info("this machine leads: the other one has answered", "epoch", own.String(), "other", h.Name)
	}
	return nil
}

func (s *Store) setRole(r Role) {
	s.gate.Lock()
	s.mu.Lock()
	s.mu.role = r
	s.mu.Unlock()
	s.gate.Unlock()
	s.turnAll()
}

// startFollowing makes the state directory a copy of the leader's.
func (s *Store) startFollowing(ctx context.Context) error {
	s.setRole(Follower)
	f, err := cluster.Open(ctx, cluster.Options{
		Copy: s.o.Files, Engine: newEngine(s), Name: s.group(), Log: s.log, Changed: func(cluster.State, error) { s.report() },
		Rewound: s.forget,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.follow = f
	s.mu.Unlock()
	return nil
}

// group identifies the group as what a state directory is a copy of.
func (s *Store) group() string { return "headgate://" + s.id.Group }

// forget has the copy start again after the leader was set back to another history. What
// only the copy has is kept in a file.
func (s *Store) forget(ctx context.Context) error {
	epoch, err := s.epoch(ctx)
	if err != nil {
		return err
	}
	if _, err := s.keep(ctx, epoch); err != nil {
		return err
	}
	s.log.Error("the leader has another history than the copy of this machine, as after a restore: everything is fetched again", "kept", s.divergedDir(epoch))
	return s.adopt(ctx)
}

// adopt makes the state directory a copy that is compared as a whole.
func (s *Store) adopt(ctx context.Context) error {
	return errors.Join(s.o.Files.AdoptAnew(ctx, s.group()), s.o.Files.RestartStreams(ctx))
}

// run calls the other machine until ctx ends.
func (s *Store) run(ctx context.Context) {
	defer close(s.done)
	ticker := time.NewTicker(callEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case epoch := <-s.kick:
			if err := s.yieldIfAfter(ctx, epoch); err != nil {
				s.log.Error("this machine cannot yield to the leader of a later epoch", "epoch", epoch.String(), "error", err)
			}
		case <-ticker.C:
			s.call(ctx)
		}
		s.report()
	}
}

// call is one call of the other machine.
func (s *Store) call(ctx context.Context) {
	if s.peerAddress() == "" {
		return
	}
	if s.Role() == Follower {
		_, _ = s.greetPeer(ctx) // State has the error
		return
	}
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.Role() != Follower {
		_ = s.resolve(ctx) // likewise
	}
}

func (s *Store) yieldIfAfter(ctx context.Context, epoch Epoch) error {
	s.moving.Lock()
	defer s.moving.Unlock()
	own, err := s.epoch(ctx)
	if err != nil || s.Role() == Follower || !epoch.After(own) {
		return err
	}
	return s.yield(ctx, epoch)
}

// yield makes this machine the follower of one that was promoted. What it has committed
// since is kept beside.
func (s *Store) yield(ctx context.Context, to Epoch) error {
	s.setRole(Waiting) // nothing is committed from now on
	at, err := s.o.Files.Position(ctx)
	if err != nil {
		return err
	}
	own, err := s.epoch(ctx)
	if err != nil {
		return err
	}
	var d *Divergence
	if at == to.From {
		err = s.o.Files.Adopt(ctx, s.group())
	} else if d, err = s.diverge(ctx, own, to); err == nil {
		err = s.adopt(ctx)
	}
	if err != nil {
		return err
	}
	s.log.Warn("another machine was promoted: this one follows it", "leader", to.Node, "epoch", to.String())
	if err := s.startFollowing(ctx); err != nil {
		return err
	}
	if d != nil {
		s.announce(ctx, d)
	}
	return nil
}

// handOver stops committing for a promotion of the other machine, and returns where the
// state is then. If the other machine does not go on, this one leads again after a while.
func (s *Store) handOver(ctx context.Context) (*store.Position, error) {
	s.moving.Lock()
	defer s.moving.Unlock()
	if s.Role() != Leader {
		return nil, errNotLeader
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
		err = s.lead(ctx, number+1, at, by, record)
	}
	if err != nil && f != nil {
		return errors.Join(err, s.startFollowing(ctx))
	}
	if err == nil {
		s.report()
	}
	return err
}

// lead commits an epoch of this machine.
func (s *Store) lead(ctx context.Context, number uint64, at store.Position, by string, record *store.Record) error {
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

// report calls Changed if the role, the leader or the connection is another one.
func (s *Store) report() {
	if s.o.Changed == nil {
		return
	}
	st := s.State()
	s.mu.Lock()
	was := s.mu.last
	s.mu.last = st
	s.mu.Unlock()
	if was.Role != st.Role || was.Leader != st.Leader || was.Connected != st.Connected {
		s.o.Changed(st)
	}
}
