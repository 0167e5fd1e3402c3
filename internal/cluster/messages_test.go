package cluster_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/memory"
)

// received returns a channel of what a machine receives, which is closed at the end of it.
func received(ctx context.Context, s store.Messenger) (<-chan string, <-chan error) {
	got, ended := make(chan string, 8), make(chan error, 1)
	go func() {
		var last error
		for m, err := range s.Receive(ctx, "b") {
			if last = err; err == nil {
				got <- string(m.Data)
			}
		}
		ended <- last
	}()
	return got, ended
}

func expectMessage(t *testing.T, got <-chan string, want string) {
	t.Helper()
	select {
	case text := <-got:
		if text != want {
			t.Errorf("got message %q, want %q", text, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("no message, want %q", want)
	}
}

func sendTo(t *testing.T, s store.Messenger, text string) {
	t.Helper()
	if err := s.Send(t.Context(), store.Message{ID: store.NewID(), From: "a", To: "b", Data: []byte(text)}); err != nil {
		t.Fatal(err)
	}
}

// TestOneProcessOfAMachineReceives tests an upgrade: the process that is replaced takes no message that is sent
// after it was suspended, the new one takes none before, and after a failed upgrade the old one goes on.
func TestOneProcessOfAMachineReceives(t *testing.T) {
	e, dir := engine{memory.New(), &atomic.Bool{}}, t.TempDir()
	was, _ := openMember(t, dir, e, false)
	fromWas, endOfWas := received(t.Context(), was)
	sendTo(t, e, "before")
	expectMessage(t, fromWas, "before")

	was.StopFollowing()
	sendTo(t, e, "while it still makes changes")
	expectMessage(t, fromWas, "while it still makes changes")
	if err := was.Suspend(); err != nil {
		t.Fatal(err)
	}
	sendTo(t, e, "while no machine receives")
	was.Resume() // the upgrade has failed
	expectMessage(t, fromWas, "while no machine receives")

	was.StopFollowing()
	if err := was.Suspend(); err != nil {
		t.Fatal(err)
	}
	if err := was.End(); err != nil {
		t.Fatal(err)
	}
	if err := <-endOfWas; !errors.Is(err, store.ErrClosed) {
		t.Errorf("receiving ended with %v in the process that was replaced, want ErrClosed", err)
	}
	was.Close()

	next, _ := openMember(t, dir, e, true)
	defer next.Close()
	fromNext, _ := received(t.Context(), next)
	sendTo(t, e, "for the new process")
	select {
	case text := <-fromNext:
		t.Errorf("a process that waits received %q", text)
	case <-time.After(50 * time.Millisecond):
	}
	next.Resume()
	expectMessage(t, fromNext, "for the new process")
	if len(fromWas) > 0 {
		t.Errorf("the process that was replaced received %q", <-fromWas)
	}
}

// TestAnEngineWithoutMessagesSaysSo tests a store whose engine sends none.
func TestAnEngineWithoutMessagesSaysSo(t *testing.T) {
	s := open(t, t.TempDir(), struct{ store.Store }{memory.New()})
	if err := s.Send(t.Context(), store.Message{ID: store.NewID(), From: "a", To: "b"}); !errors.Is(err, store.ErrNoMessages) {
		t.Errorf("send: %v, want ErrNoMessages", err)
	}
	if _, ended := received(t.Context(), s); !errors.Is(<-ended, store.ErrNoMessages) {
		t.Error("receive: want ErrNoMessages")
	}
}
