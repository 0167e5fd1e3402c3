package pair

import (
	"context"
	"errors"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/store"
)

// noteBeat notes a sign of life of the leader.
func (s *Store) noteBeat(b *beat) {
	s.o.Files.SetTime(b.Now)
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
	return &hello{Name: s.id.Name, Address: s.o.Settings.Address, Role: s.Role(), Epoch: epoch, Position: at, Now: s.Time()}, err
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
		if h.Role == Leader {
			s.o.Files.SetTime(h.Now) // which counts for a copy only
		}
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
	s.mu.Lock()
	hold := s.mu.holding
	s.mu.Unlock()
	e := newEngine(s)
	f, err := cluster.Open(ctx, cluster.Options{
		Copy: s.o.Files, Engine: e, Name: s.group(), Subject: "the leader", Log: s.log, Changed: s.followed,
		Rewound: s.forget, Hold: hold,
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.follow, s.mu.engine = f, e
	s.mu.Unlock()
	return nil
}

// followed is called when the stream of the leader is opened or has ended.
func (s *Store) followed(state cluster.State, _ error) {
	if state == cluster.Following {
		s.mu.Lock()
		s.mu.streams++
		s.mu.Unlock()
	}
	s.report()
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
func (s *Store) run(ctx context.Context, done chan<- struct{}) {
	defer close(done)
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
