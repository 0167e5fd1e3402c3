package pair

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
)

// inboxOf returns the messages that a machine receives.
func inboxOf(t *testing.T, m *machine) <-chan store.Message {
	got, s := make(chan store.Message, 8), m.Store
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range s.Receive(ctx, s.id.Name) {
			if err == nil {
				got <- m
			}
		}
	}()
	t.Cleanup(func() { stop(); <-done })
	return got
}

func sent(to, text string) store.Message {
	return store.Message{ID: store.NewID(), From: "forged", To: to, Data: []byte(text)}
}

func expectFrom(t *testing.T, got <-chan store.Message, from, text string) {
	t.Helper()
	select {
	case m := <-got:
		if m.From != from || string(m.Data) != text {
			t.Errorf("got %d bytes from %q, want %d from %q", len(m.Data), m.From, len(text), from)
		}
	case <-time.After(patience):
		t.Fatalf("no message from %s", from)
	}
}

// TestMachinesOfAPairSendMessages tests both directions, before and after a promotion, and that the sender is
// the machine whose credential the connection has.
func TestMachinesOfAPairSendMessages(t *testing.T) {
	a, b := newPair(t)
	a.await(t, "it is followed", func(st State) bool { return st.Connected })
	toA, toB := inboxOf(t, a), inboxOf(t, b)
	large := strings.Repeat("x", store.MaxMessage)
	both := func() {
		t.Helper()
		for _, text := range []string{"hello", "", large} {
			if err := a.Send(t.Context(), sent("b", text)); err != nil {
				t.Fatal(err)
			}
			expectFrom(t, toB, "a", text)
			if err := b.Send(t.Context(), sent("a", text)); err != nil {
				t.Fatal(err)
			}
			expectFrom(t, toA, "b", text)
		}
	}
	both()
	if err := b.Promote(t.Context(), false, "ann", nil); err != nil {
		t.Fatal(err)
	}
	a.await(t, "it follows", func(st State) bool { return st.Role == Follower && st.Connected })
	b.await(t, "it is followed", func(st State) bool { return st.Role == Leader && st.Connected })
	both()
	for _, m := range []*machine{a, b} {
		if err := m.Send(t.Context(), sent("c", "x")); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s sends to a machine that is not there: %v, want ErrUnavailable", m.id.Name, err)
		}
	}
	a.close(t)
	b.await(t, "it is alone", func(st State) bool { return !st.Connected })
	if err := b.Send(t.Context(), sent("a", "x")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the follower is away: %v, want ErrUnavailable", err)
	}
}

// TestOnlyMembersSendMessages tests that a machine whose credential was revoked neither sends nor gets messages.
func TestOnlyMembersSendMessages(t *testing.T) {
	a, b := newPair(t)
	a.await(t, "it is followed", func(st State) bool { return st.Connected })
	toA := inboxOf(t, a)
	if err := a.Remove(t.Context(), "b", "root", nil); err != nil {
		t.Fatal(err)
	}
	m := sent("a", "x")
	if err := b.peer.call(t.Context(), a.address, pathMessage, &m, nil); !errors.Is(err, ErrRemoved) {
		t.Errorf("a machine that was revoked sends: %v, want ErrRemoved", err)
	}
	b.await(t, "its stream ends", func(st State) bool { return !st.Connected })
	if err := a.Send(t.Context(), sent("b", "x")); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a message for a machine that was revoked: %v, want ErrUnavailable", err)
	}
	if len(toA) > 0 {
		t.Errorf("the leader received %+v", <-toA)
	}
}
