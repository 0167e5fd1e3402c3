package pair

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// engine is the leader as the engine of package cluster, which keeps the copy.
type engine struct {
	s    *Store
	stop context.CancelFunc
	acks chan store.Position // the last one that the copy has
	done chan struct{}
}

var _ store.Store = (*engine)(nil)

func newEngine(s *Store) *engine {
	e := &engine{s: s, acks: make(chan store.Position, 1)}
	e.startAcknowledging()
	return e
}

// startAcknowledging begins to send the leader what the copy has, again after Close, too.
func (e *engine) startAcknowledging() {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	e.stop, e.done = stop, done
	go e.acknowledge(ctx, done)
}

// acknowledge sends the leader what the copy has. Only the newest position counts.
func (e *engine) acknowledge(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for {
		select {
		case at := <-e.acks:
			if err := e.s.peer.call(ctx, e.s.peerAddress(), pathAck, at, nil); err != nil && ctx.Err() == nil {
				e.s.log.Debug("an acknowledgement was not sent", "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (e *engine) ack(at store.Position) {
	select {
	case <-e.acks:
	default:
	}
	select {
	case e.acks <- at:
	default:
	}
}

// unavailable makes an error of a call one of a store that is away.
func (e *engine) unavailable(err error) error {
	if err == nil || errors.As(err, new(*remoteError)) || errors.As(err, new(*store.Conflict)) {
		return err
	}
	return fmt.Errorf("%w: the leader at %s: %w", store.ErrUnavailable, e.s.peerAddress(), err)
}

// Snapshot returns the position of the leader: the copy is filled by List and Fetch.
func (e *engine) Snapshot(ctx context.Context, _ string) ([]store.Entry, store.Position, error) {
	h, err := e.s.greetPeer(ctx)
	if err != nil {
		return nil, store.Position{}, e.unavailable(err)
	}
	if h.Role != Leader {
		return nil, store.Position{}, e.unavailable(fmt.Errorf("%s is %s: %w", h.Name, h.Role, errNotLeader))
	}
	return nil, h.Position, nil
}

// List returns keys of the leader.
func (e *engine) List(ctx context.Context, prefix, after string, n int) ([]store.Meta, error) {
	if prefix != "" {
		return nil, errors.ErrUnsupported
	}
	var all []store.Meta
	err := e.s.peer.call(ctx, e.s.peerAddress(), pathList, listRequest{after, n}, &all)
	return all, e.unavailable(err)
}

// Fetch returns entries of the leader.
func (e *engine) Fetch(ctx context.Context, keys []string) ([]store.Entry, error) {
	var all []store.Entry
	err := e.s.peer.call(ctx, e.s.peerAddress(), pathFetch, keys, &all)
	return all, e.unavailable(err)
}

// errLeft is the end of a stream that its reader has left.
var errLeft = errors.New("left")

// Watch yields commits of the leader, and writes records of its streams to the copy. It goes on
// when the process of the leader is replaced.
func (e *engine) Watch(ctx context.Context, _ string, after store.Position) iter.Seq2[store.Batch, error] {
	return func(yield func(store.Batch, error) bool) {
		var replaced time.Time // since when
		for {
			err := e.watch(ctx, after, func(b store.Batch) bool {
				after = b.Position
				return yield(b, nil)
			}, func() { replaced = time.Time{} })
			if errors.Is(err, store.ErrClosed) {
				if replaced.IsZero() {
					replaced = time.Now()
				}
				e.s.peer.close()
				if time.Since(replaced) < replaceWait && clock.Sleep(ctx, closedPause) {
					continue
				}
			}
			if err != errLeft {
				yield(store.Batch{}, e.unavailable(err))
			}
			return
		}
	}
}

// watch reads one stream of the leader. Alive is called for each of its frames.
func (e *engine) watch(ctx context.Context, after store.Position, yield func(store.Batch) bool, alive func()) error {
	last := map[string]store.Sequence{}
	for _, name := range streams {
		n, err := e.s.o.Files.Last(ctx, name)
		if err != nil {
			return err
		}
		last[name] = n
	}
	leader, _ := e.s.otherIn(ctx)
	return e.s.peer.watch(ctx, e.s.peerAddress(), after, last, func(f *frame) error {
		alive()
		switch {
		case f.Beat != nil:
			e.s.noteBeat(f.Beat)
			e.ack(e.s.copyPosition())
		case f.Message != nil:
			if err := e.s.acceptMessage(leader, f.Message); err != nil {
				e.s.log.Debug("a message of the leader was dropped", "error", err)
			}
		case len(f.Records) > 0:
			return e.s.o.Files.FollowRecords(ctx, f.Records)
		case f.Batch != nil:
			e.s.reached(f.Batch.Position)
			if !yield(*f.Batch) {
				return errLeft
			}
			e.ack(f.Batch.Position) // the copy has it on disk now
		}
		return nil
	})
}

// Commit sends a change to the leader. Without an answer it is not known whether the leader
// has made it.
func (e *engine) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if c.ID == "" {
		c.ID = store.NewID()
	}
	if c.Under != nil {
		return 0, store.ErrFenced // this machine has no lease
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	var at store.Revision
	err := e.s.peer.call(ctx, e.s.peerAddress(), pathCommit, &c, &at)
	return at, e.unavailable(err)
}

// Close ends acknowledging.
func (e *engine) Close() error {
	e.stop()
	<-e.done
	return nil
}

// The rest of store.Store is not used on the leader of a pair.

// Get is not supported.
func (e *engine) Get(context.Context, string) (store.Entry, error) {
	return store.Entry{}, errors.ErrUnsupported
}

// Now is not supported.
func (e *engine) Now(context.Context) (time.Time, error) { return time.Time{}, errors.ErrUnsupported }

// Acquire is not supported.
func (e *engine) Acquire(context.Context, string, time.Duration) (*store.Lease, error) {
	return nil, errors.ErrUnsupported
}

// Append is not supported.
func (e *engine) Append(context.Context, string, [][]byte) (store.Sequence, error) {
	return 0, errors.ErrUnsupported
}

// Page is not supported.
func (e *engine) Page(context.Context, string, store.Sequence, int) ([]store.Record, error) {
	return nil, errors.ErrUnsupported
}

// Export is not supported.
func (e *engine) Export(context.Context) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) { yield(store.Item{}, errors.ErrUnsupported) }
}

// Import is not supported.
func (e *engine) Import(context.Context, iter.Seq2[store.Item, error]) error {
	return errors.ErrUnsupported
}

// Freeze is not supported.
func (e *engine) Freeze(context.Context, string) error { return errors.ErrUnsupported }
