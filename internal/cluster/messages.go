package cluster

import (
	"context"
	"errors"
	"iter"

	"headgate/internal/store"
)

var _ store.Messenger = (*Store)(nil)

// Send sends a message through the engine, if the engine supports messages: see store.Messenger. It
// waits while another process takes over.
func (s *Store) Send(ctx context.Context, m store.Message) error {
	by, ok := s.o.Engine.(store.Messenger)
	if !ok {
		return store.ErrNoMessages
	}
	leave, err := s.gate.pass(ctx)
	if err != nil {
		return err
	}
	leave() // a takeover does not wait for a message
	return by.Send(ctx, m)
}

// Receive yields the messages of the engine: see store.Messenger. If a machine has two processes, only
// the one that can make changes receives.
func (s *Store) Receive(ctx context.Context, to string) iter.Seq2[store.Message, error] {
	return func(yield func(store.Message, error) bool) {
		by, ok := s.o.Engine.(store.Messenger)
		if !ok {
			yield(store.Message{}, store.ErrNoMessages)
			return
		}
		for {
			err := s.receiveOpen(ctx, by, to, yield)
			if errors.Is(err, errShut) {
				continue
			}
			if err != errLeft {
				yield(store.Message{}, err)
			}
			return
		}
	}
}

// The reasons for which receiveOpen ends without an error of the engine.
var (
	errShut = errors.New("another process takes over")
	errLeft = errors.New("the loop was left")
)

// receiveOpen receives until another process takes over.
func (s *Store) receiveOpen(ctx context.Context, by store.Messenger, to string, yield func(store.Message, error) bool) error {
	shut, err := s.gate.await(ctx)
	if err != nil {
		return err
	}
	open, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		select {
		case <-shut:
			stop(errShut)
		case <-open.Done():
		}
	}()
	for m, err := range by.Receive(open, to) {
		if err != nil {
			if open.Err() != nil {
				err = context.Cause(open)
			}
			return err
		}
		if !yield(m, nil) {
			return errLeft
		}
	}
	return errLeft
}
