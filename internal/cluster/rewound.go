package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"headgate/internal/store"
)

// ErrNotRewound is the error of Adopt and Push when there is nothing to decide.
var ErrNotRewound = errors.New("the store was not set back to an older state")

// decideWait is how long Adopt and Push wait until the engine is followed again.
const decideWait = 30 * time.Second

// Adopt replaces the copy by the state of an engine that was set back: what was committed
// since is lost on this machine, too. The error wraps ErrNotRewound in any other state.
func (s *Store) Adopt(ctx context.Context) error {
	if state, _ := s.State(); state != Rewound {
		return ErrNotRewound
	}
	s.mu.Lock()
	s.mu.adopt = true
	s.mu.Unlock()
	select {
	case s.decided <- struct{}{}:
	default:
	}
	ctx, stop := context.WithTimeout(ctx, decideWait)
	defer stop()
	for {
		changed := *s.arrived.Load()
		state, why := s.State()
		if state == Following {
			return nil
		}
		timer := time.NewTimer(again)
		select {
		case <-changed:
		case <-timer.C: // the state may have changed without a commit
		case <-ctx.Done():
			timer.Stop()
			return fmt.Errorf("%w: the store is not followed yet: %w", store.ErrUnavailable, why)
		}
		timer.Stop()
	}
}

// adoptEngine replaces the copy as an operator has decided.
func (s *Store) adoptEngine(ctx context.Context, head store.Position) error {
	if err := s.compare(ctx, head); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.adopt = false
	return nil
}

// Push writes the state of the copy to an engine that was set back: what was committed there
// since is lost. The audit log and the events, of which a machine has no copy, stay as they
// are in the engine. The error wraps ErrNotRewound in any other state.
func (s *Store) Push(ctx context.Context) error {
	if state, _ := s.State(); state != Rewound {
		return ErrNotRewound
	}
	there, err := meta(ctx, s.o.Engine)
	if err != nil {
		return err
	}
	here, err := meta(ctx, s.o.Copy)
	if err != nil {
		return err
	}
	p := &pushing{s: s}
	for key, m := range here {
		if shown(key) {
			continue
		}
		e, err := s.o.Copy.Get(ctx, key)
		if errors.Is(err, store.ErrNotFound) {
			continue // it has expired
		}
		if err != nil {
			return err
		}
		if !m.Expires.IsZero() {
			if e.TTL = m.Expires.Sub(s.Time()); e.TTL <= 0 {
				continue
			}
		}
		if err := p.put(ctx, e); err != nil {
			return err
		}
	}
	for key := range there {
		if _, ok := here[key]; !ok && !shown(key) {
			if err := p.remove(ctx, key); err != nil {
				return err
			}
		}
	}
	if err := p.flush(ctx); err != nil {
		return err
	}
	return s.Adopt(ctx)
}

// shown reports whether a key is what a machine publishes about itself, which it does again.
func shown(key string) bool { return strings.HasPrefix(key, store.PrefixNode) }

// pushing collects what is written to the engine in changes of a limited size.
type pushing struct {
	s    *Store
	next store.Change
	size int
}

func (p *pushing) put(ctx context.Context, e store.Entry) error {
	if p.size+len(e.Value) > store.MaxChange/2 {
		if err := p.flush(ctx); err != nil {
			return err
		}
	}
	p.next.Put = append(p.next.Put, store.Entry{Key: e.Key, Value: e.Value, TTL: e.TTL})
	p.size += len(e.Value)
	return p.full(ctx)
}

func (p *pushing) remove(ctx context.Context, key string) error {
	p.next.Delete = append(p.next.Delete, key)
	return p.full(ctx)
}

func (p *pushing) full(ctx context.Context) error {
	if len(p.next.Put)+len(p.next.Delete) < store.MaxOperations {
		return nil
	}
	return p.flush(ctx)
}

func (p *pushing) flush(ctx context.Context) error {
	c := p.next
	p.next, p.size = store.Change{}, 0
	if len(c.Put)+len(c.Delete) == 0 {
		return nil
	}
	c.Why = "the state of a machine was written to a store that was set back"
	_, err := p.s.o.Engine.Commit(ctx, c)
	return err
}
