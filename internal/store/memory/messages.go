package memory

import (
	"bytes"
	"context"
	"iter"

	"headgate/internal/store"
)

var _ store.Messenger = (*Store)(nil)

// Send puts a message into the mailbox of its receiver: see store.Messenger. All machines that
// share the store can send to each other.
func (s *Store) Send(ctx context.Context, m store.Message) error {
	if err := m.Check(); err != nil {
		return err
	}
	b, err := s.mailbox(ctx, m.To)
	if err != nil {
		return err
	}
	m.Data = bytes.Clone(m.Data)
	return b.Put(m)
}

// Receive yields the messages for a machine: see store.Messenger.
func (s *Store) Receive(ctx context.Context, to string) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		b, err := s.mailbox(ctx, to)
		if err != nil {
			yield(store.Message{}, err)
			return
		}
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(s.closing, func() { stop(store.ErrClosed) })()
		for m, err := range b.Receive(ctx) {
			if err != nil {
				err = context.Cause(ctx)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// mailbox returns the messages for a machine.
func (s *Store) mailbox(ctx context.Context, of string) (*store.Mailbox, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	b := s.mu.mail[of]
	if b == nil {
		b = &store.Mailbox{Clock: s.clock}
		s.mu.mail[of] = b
	}
	return b, nil
}
