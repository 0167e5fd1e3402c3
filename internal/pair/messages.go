package pair

import (
	"context"
	"fmt"
	"iter"

	"headgate/internal/store"
)

var _ store.Messenger = (*Store)(nil)

// Send sends a message to the other machine: see store.Messenger. The leader sends it on the stream
// that the follower has opened, and the follower sends a request to the leader. From is the name in
// the credential, whatever the message contains.
func (s *Store) Send(ctx context.Context, m store.Message) error {
	m.From = s.id.Name
	if err := m.Check(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if s.closing.Err() != nil {
		return store.ErrClosed
	}
	switch s.Role() {
	case Leader:
		if name, connected, _, _ := s.followers.state(); !connected || name != m.To {
			return fmt.Errorf("%w: %s is not connected to this machine", store.ErrUnavailable, m.To)
		}
		return s.outbox.Put(m)
	case Follower:
		if name, _ := s.otherIn(ctx); name != m.To {
			return fmt.Errorf("%w: %s is not a machine of this group", store.ErrUnavailable, m.To)
		}
		return s.unreachable(s.peer.call(ctx, s.peerAddress(), pathMessage, &m, nil))
	}
	return s.refusal(nil)
}

// unreachable turns the error of a call into that of a message that cannot be sent now.
func (s *Store) unreachable(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: the leader at %s: %w", store.ErrUnavailable, s.peerAddress(), err)
}

// Receive yields the messages for this machine: see store.Messenger.
func (s *Store) Receive(ctx context.Context, to string) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		if to != s.id.Name {
			yield(store.Message{}, fmt.Errorf("%w for %s on the machine %s", store.ErrNoMessages, to, s.id.Name))
			return
		}
		ctx, stop := context.WithCancelCause(ctx)
		defer stop(nil)
		defer context.AfterFunc(s.closing, func() { stop(store.ErrClosed) })()
		for m, err := range s.inbox.Receive(ctx) {
			if err != nil {
				err = context.Cause(ctx)
			}
			if !yield(m, err) {
				return
			}
		}
	}
}

// acceptMessage puts a message into the mailbox of this machine. From is the machine whose credential
// the connection uses.
func (s *Store) acceptMessage(from string, m *store.Message) error {
	m.From, m.Age = from, max(m.Age, 0)
	if err := m.Check(); err != nil {
		return err
	}
	if m.To != s.id.Name {
		return fmt.Errorf("%w: a message for %s came to %s", store.ErrUnavailable, m.To, s.id.Name)
	}
	return s.inbox.Put(*m)
}

// outgoingMessages returns the messages for the follower, until ctx ends.
func (s *Store) outgoingMessages(ctx context.Context) <-chan store.Message {
	messages := make(chan store.Message)
	go func() {
		for m, err := range s.outbox.Receive(ctx) {
			if err != nil {
				return
			}
			select {
			case messages <- m:
			case <-ctx.Done():
			}
		}
	}()
	return messages
}
