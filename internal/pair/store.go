package pair

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/cluster"
	"headgate/internal/store"
	"headgate/internal/store/local"
)

// Options is what a Store is made of.
type Options struct {
	// Files is the state directory. Close closes it.
	Files *local.Store
	// Identity is the credential of this machine.
	Identity *Identity
	// Settings are those of this machine.
	Settings Settings
	// Hold opens the store of a process that is to replace another one, which has returned Handed:
	// Files was opened with local.Options.Hold. Nothing is called or followed until Resume.
	Hold   bool
	Handed Handed
	// Log reports what happens to the pair. Nil discards it.
	Log *slog.Logger
	// Audit makes the audit record of what another machine does: from is its address. Nil
	// records nothing.
	Audit func(action, object, who, from string) store.Record
	// Changed is called when the role, the leader or the contact has changed. It may be nil,
	// and must not wait.
	Changed func(State)
	// Diverged is called when this machine has yielded and had changes of its own. It may be
	// nil.
	Diverged func(Divergence)
}

// Store is the store of a machine in a pair. Its methods may be called by several
// goroutines at once.
type Store struct {
	// constant
	o       Options
	id      *Identity
	log     *slog.Logger
	server  *tls.Config
	peer    *peer
	stop    context.CancelFunc
	done    chan struct{}
	closing context.Context // ends with Close and End
	end     context.CancelFunc
	kick    chan Epoch // of a leader that this machine has to yield to

	followers followers
	inbox     store.Mailbox // messages of the other machine
	outbox    store.Mailbox // messages for the follower
	asked     chan struct{} // a place for each request that asks the leader

	// gate is held for reading by commits of this machine, and to change its role.
	gate sync.RWMutex
	// moving is held while the role is changed.
	moving sync.Mutex

	mu struct {
		sync.Mutex
		role      Role
		follow    *cluster.Store // nil unless it follows
		engine    *engine        // of follow
		known     hello          // of the other machine, as it answered last
		contact   time.Time      // when that was
		problem   error          // of the last call, nil if it was answered
		leaderAt  store.Revision
		held      time.Time     // until when a leader that hands over waits
		turned    chan struct{} // closed when roles or members change
		last      State         // that was reported
		divergent *Divergence
		streams   uint64 // that this machine has opened
		kept      bool   // the role: moving is held; see StopFollowing
		holding   bool   // it was opened with Options.Hold, and not resumed yet
		suspended *State // what this machine was when another process took over; nil unless it does
	}
}

var _ store.Store = (*Store)(nil)

// Open opens the store of a member. A machine that follows waits a little until its copy is
// up to date; one that has led asks the other machine whether it was promoted meanwhile.
// Close the store; if it fails, Files stays open.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{o: o, id: o.Identity, log: o.Log, stop: func() {}, done: make(chan struct{}), kick: make(chan Epoch, 1), asked: make(chan struct{}, maxAsked)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.closing, s.end = context.WithCancel(context.Background())
	s.followers.init()
	s.mu.turned = make(chan struct{})
	var err error
	if s.server, err = s.id.serverConfig(); err != nil {
		return nil, err
	}
	if s.peer, err = newPeer(s.id, s.verifyPeer); err != nil {
		return nil, err
	}
	epoch, err := s.epoch(ctx)
	if err != nil {
		return nil, err
	}
	follows := o.Files.Mirrors() || epoch.Node != s.id.Name
	switch {
	case o.Hold:
		close(s.done)
		if err := s.hold(ctx, follows); err != nil {
			return nil, err
		}
		return s, nil
	case follows:
		err = s.startFollowing(ctx)
	default:
		err = s.startLeading(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.startRunning()
	return s, nil
}

// Close ends everything and closes the state directory.
func (s *Store) Close() error {
	s.end()
	s.stop()
	<-s.done
	s.moving.Lock()
	defer s.moving.Unlock()
	var err error
	if f := s.following(); f != nil {
		err = f.Leave()
	}
	s.peer.close()
	s.turnAll()
	return errors.Join(err, s.o.Files.Close())
}

func (s *Store) following() *cluster.Store {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.follow
}

// Role returns what this machine does with changes now.
func (s *Store) Role() Role {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.role
}

// turn returns what is closed when roles or members change.
func (s *Store) turn() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mu.turned
}

func (s *Store) turnAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.mu.turned)
	s.mu.turned = make(chan struct{})
}

// revoked has all streams and connections check credentials again.
func (s *Store) revoked() {
	s.peer.close()
	s.turnAll()
}

// Get returns one entry: see store.Store.
func (s *Store) Get(ctx context.Context, key string) (store.Entry, error) {
	return s.o.Files.Get(ctx, key)
}

// List returns keys: see store.Store.
func (s *Store) List(ctx context.Context, prefix, after string, n int) ([]store.Meta, error) {
	return s.o.Files.List(ctx, prefix, after, n)
}

// Snapshot returns entries: see store.Store.
func (s *Store) Snapshot(ctx context.Context, prefix string) ([]store.Entry, store.Position, error) {
	return s.o.Files.Snapshot(ctx, prefix)
}

// Watch yields what is committed here or copied: see store.Store. It ends with
// store.ErrTooOld after a change of roles that replaced the state.
func (s *Store) Watch(ctx context.Context, prefix string, after store.Position) iter.Seq2[store.Batch, error] {
	return s.o.Files.Watch(ctx, prefix, after)
}

// Now returns the leader's time, by the clock of this machine and how far the leader's was
// ahead of it: see store.Store.
func (s *Store) Now(ctx context.Context) (time.Time, error) { return s.o.Files.Now(ctx) }

// Time is Now without an error: see store.Time.
func (s *Store) Time() time.Time { return s.o.Files.Time() }

// Page returns records: see store.Store.
func (s *Store) Page(ctx context.Context, stream string, before store.Sequence, n int) ([]store.Record, error) {
	return s.o.Files.Page(ctx, stream, before, n)
}

// Export yields everything: see store.Store.
func (s *Store) Export(ctx context.Context) iter.Seq2[store.Item, error] {
	return s.o.Files.Export(ctx)
}

// Import is rejected: a group is created with the state that its first machine has.
func (s *Store) Import(context.Context, iter.Seq2[store.Item, error]) error {
	return fmt.Errorf("import: %w", store.ErrNotEmpty)
}

// Freeze refuses changes on the leader: see store.Store.
func (s *Store) Freeze(ctx context.Context, place string) error {
	if s.Role() != Leader {
		return s.refusal(nil)
	}
	return s.o.Files.Freeze(ctx, place)
}

// Commit makes a change on the leader: see store.Store. The error is a *NotLeader on the
// other machine, except for what traffic causes, which is sent to the leader. With
// follow.sync it is a *NotFollowed if the follower is away, and wraps
// store.ErrSingleCopy if the follower did not confirm the change in time.
func (s *Store) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if s.Role() == Follower {
		return s.relay(ctx, c)
	}
	return s.commitOwn(ctx, c, false)
}

// commitOwn makes a change if this machine leads. relayed says that it comes from the follower,
// which repeats it if the error is store.ErrClosed: another process takes over.
func (s *Store) commitOwn(ctx context.Context, c store.Change, relayed bool) (store.Revision, error) {
	wait := s.o.Settings.Sync && important(&c)
	if wait && !s.isSuspended() {
		if name, connected := s.followers.awaitReturn(ctx); !connected && s.Role() == Leader {
			return 0, &NotFollowed{Follower: name}
		}
	}
	at, err := s.commitHere(ctx, c, wait, relayed)
	if err != nil || !wait {
		return at, err
	}
	ctx, stop := context.WithTimeout(ctx, syncWait)
	defer stop()
	if !s.followers.awaitAck(ctx, at) {
		name, _, _, _ := s.followers.state()
		return at, fmt.Errorf("%w: this machine has committed it, and the follower %s has not confirmed it within %v", store.ErrSingleCopy, name, syncWait)
	}
	return at, nil
}

// commitHere commits a change. If it is to be followed, the caller awaits its acknowledgement.
func (s *Store) commitHere(ctx context.Context, c store.Change, followed, relayed bool) (store.Revision, error) {
	s.gate.RLock()
	defer s.gate.RUnlock()
	switch {
	case s.Role() != Leader:
		return 0, s.refusal(nil)
	case (followed || relayed) && s.isSuspended():
		return 0, store.ErrClosed
	}
	at, err := s.o.Files.Commit(ctx, c)
	if err == nil && followed {
		s.followers.expectAck()
	}
	return at, err
}

// relay sends a change that traffic has caused to the leader.
func (s *Store) relay(ctx context.Context, c store.Change) (store.Revision, error) {
	if !relayed(s.id.Name, &c) {
		return 0, s.refusal(nil)
	}
	f := s.following()
	if f == nil {
		return 0, s.refusal(nil)
	}
	at, err := f.Commit(ctx, c)
	if errors.Is(err, store.ErrUnavailable) {
		return 0, s.refusal(err)
	}
	return at, err
}

// Acquire acquires a lease of this machine, which the leader only can: see store.Store. To a
// follower, the leader holds all of them.
func (s *Store) Acquire(ctx context.Context, name string, ttl time.Duration) (*store.Lease, error) {
	switch st := s.State(); st.Role {
	case Leader:
		return s.o.Files.Acquire(ctx, name, ttl)
	case Follower:
		return nil, &store.Held{By: st.Leader, Until: time.Now().Add(ttl)}
	}
	return nil, s.refusal(nil)
}

// Append adds records, on the leader: see store.Store.
func (s *Store) Append(ctx context.Context, stream string, records [][]byte) (store.Sequence, error) {
	if s.Role() == Follower {
		c := store.Change{}
		for _, data := range records {
			c.Append = append(c.Append, store.Record{Stream: stream, Data: data})
		}
		if _, err := s.relay(ctx, c); err != nil {
			return 0, err
		}
		return s.o.Files.Last(ctx, stream)
	}
	s.gate.RLock()
	defer s.gate.RUnlock()
	if s.Role() != Leader {
		return 0, s.refusal(nil)
	}
	return s.o.Files.Append(ctx, stream, records)
}

// housekeeping is what headgate and the visitors of applications write without an operator.
// The loss of it is noticed by no one: it is made again.
var housekeeping = []string{
	store.PrefixNode, store.PrefixFields, store.PrefixSession, store.PrefixWebhook, store.PrefixNotice, store.PrefixBan,
	store.PrefixAccount, store.PrefixOrder, store.PrefixChallenge, store.PrefixAcknowledged, store.PrefixDemand, store.PrefixCDN,
	store.PrefixGateSession, store.PrefixGateRefresh, store.PrefixGateCode, store.PrefixGateVisit, store.KeyTickets, store.PrefixECH, store.KeyQUIC, store.KeyGate, store.KeyPurge,
	"group/", store.PrefixDiverged, store.PrefixSetup,
}

// acmeUser is who commits certificates that were issued: another one can be ordered.
const acmeUser = "acme"

// important reports whether a change must not be lost once it is acknowledged. What a
// sign-in changes of its user is not: operators sign in while the follower is away.
func important(c *store.Change) bool {
	signIn := slices.ContainsFunc(c.Put, func(e store.Entry) bool { return strings.HasPrefix(e.Key, store.PrefixSession) })
	for _, key := range keysOf(c) {
		if signIn && strings.HasPrefix(key, store.PrefixUser) && exists(c, key) {
			continue
		}
		if c.Who == signInUser && strings.HasPrefix(key, store.PrefixPerson) && ofVisitor(c) {
			continue
		}
		if !hasPrefix(key, housekeeping) && (c.Who != acmeUser || !strings.HasPrefix(key, store.PrefixCertificate)) {
			return true
		}
	}
	return false
}

// exists reports whether a change is of an object that exists.
func exists(c *store.Change, key string) bool {
	return slices.ContainsFunc(c.If, func(o store.Condition) bool { return o.Key == key && o.Revision > 0 })
}

// creates reports whether a change makes an object that must not exist.
func creates(c *store.Change, key string) bool {
	return slices.Contains(c.If, store.Condition{Key: key})
}

// keysOf returns the keys that a change writes or removes.
func keysOf(c *store.Change) []string {
	keys := make([]string, 0, len(c.Put)+len(c.Delete))
	for _, e := range c.Put {
		keys = append(keys, e.Key)
	}
	return append(keys, c.Delete...)
}

func hasPrefix(key string, list []string) bool {
	for _, prefix := range list {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

// caused is what traffic and sign-ins on a follower write.
var caused = []string{
	store.PrefixSession, store.PrefixPasskey, store.PrefixBan, store.PrefixAcknowledged, store.PrefixFields,
	store.PrefixGateSession, store.PrefixGateRefresh, store.PrefixGateCode, store.PrefixGateVisit, store.PrefixGateLink,
}

// signInUser is who commits what a sign-in changes of a person, and visitorUser is before the name
// of one who changes a password, a passkey or an invitation of their own.
const (
	signInUser  = "headgate"
	visitorUser = "local/"
)

// ofVisitor reports whether a change of people is made by a person at the sign-in page, and not by
// an operator: it changes accounts that exist.
func ofVisitor(c *store.Change) bool {
	if c.Who != signInUser && !strings.HasPrefix(c.Who, visitorUser) {
		return false
	}
	for _, o := range c.If {
		if o.Revision > 0 && strings.HasPrefix(o.Key, store.PrefixPerson) {
			return true
		}
	}
	return false
}

// relayed reports whether the leader accepts a change from the follower with a name: what
// traffic causes, and what the machine publishes of itself.
func relayed(name string, c *store.Change) bool {
	signIn := false
	for _, key := range keysOf(c) {
		signIn = signIn || strings.HasPrefix(key, store.PrefixSession)
	}
	for _, key := range keysOf(c) {
		switch {
		case hasPrefix(key, caused), key == store.PrefixNode+name,
			key == store.KeyGate && creates(c, key), // which the first sign-in of the group makes
			strings.HasPrefix(key, store.PrefixDiverged) && strings.HasSuffix(key, "-"+name),
			hasPrefix(key, []string{store.PrefixWebhook, store.PrefixNotice}) && strings.HasSuffix(key, "/"+name),
			strings.HasPrefix(key, store.PrefixUser) && signIn, // a used recovery code, or the counter of a passkey
			strings.HasPrefix(key, store.PrefixPerson) && ofVisitor(c):
		default:
			return false
		}
	}
	for _, r := range c.Append {
		if r.Stream != store.StreamAudit && r.Stream != store.StreamEvents {
			return false
		}
	}
	return len(c.Put)+len(c.Delete)+len(c.Append) > 0
}
