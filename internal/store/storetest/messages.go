package storetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"headgate/internal/store"
)

// patience is how long a test waits for a message.
const patience = 10 * time.Second

// RunMessages runs the tests of messages between machines on engines that open makes, one for each
// test. Their stores implement store.Messenger.
func RunMessages(t *testing.T, open func(t *testing.T) Engine) {
	for _, c := range []struct {
		name string
		test func(*testing.T, Engine, store.Messenger)
	}{
		{"messages arrive once and whole", testMessages},
		{"messages wake their receiver", testMessageWakes},
		{"messages go to their receiver only", testMessageReceivers},
		{"messages are short-lived", testMessageAge},
		{"messages are bounded", testMessageBounds},
		{"messages are no commits", testMessagesAreNoCommits},
		{"receiving ends with its context and with the store", testReceiveEnds},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := open(t)
			t.Cleanup(func() { e.Store.Close() })
			c.test(t, e, e.Store.(store.Messenger))
		})
	}
}

func message(to string, data []byte) store.Message {
	return store.Message{ID: store.NewID(), From: "a", To: to, Data: data}
}

func mustSend(t *testing.T, by store.Messenger, m store.Message) {
	t.Helper()
	if err := by.Send(t.Context(), m); err != nil {
		t.Fatalf("send to %s: %v", m.To, err)
	}
}

// receive returns the next n messages for a machine.
func receive(t *testing.T, by store.Messenger, to string, n int) (all []store.Message) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	for m, err := range by.Receive(ctx, to) {
		if err != nil {
			t.Fatalf("receive for %s after %d of %d messages: %v", to, len(all), n, err)
		}
		if all = append(all, m); len(all) == n {
			return all
		}
	}
	t.Fatalf("receiving for %s ended after %d of %d messages", to, len(all), n)
	return nil
}

// none fails the test if there is a message for a machine.
func none(t *testing.T, by store.Messenger, to string) {
	t.Helper()
	last := message(to, []byte("the last one"))
	mustSend(t, by, last)
	if got := receive(t, by, to, 1)[0]; got.ID != last.ID {
		t.Errorf("%s received %+v, want nothing but %q", to, got, last.Data)
	}
}

func testMessages(t *testing.T, _ Engine, by store.Messenger) {
	sent := map[store.ID]store.Message{}
	for i, size := range []int{0, 1, 1000, store.MaxMessage} {
		data := make([]byte, size)
		for j := range data {
			data[j] = byte(i + j)
		}
		m := message("b", data)
		sent[m.ID] = m
		mustSend(t, by, m)
	}
	for _, got := range receive(t, by, "b", len(sent)) {
		want, ok := sent[got.ID]
		if !ok || got.From != "a" || got.To != "b" || string(got.Data) != string(want.Data) || got.Age < 0 || got.Age > patience {
			t.Errorf("got message %s from %q to %q with %d bytes after %v, want one that was sent, and once", got.ID, got.From, got.To, len(got.Data), got.Age)
		}
		delete(sent, got.ID)
	}
	none(t, by, "b")
}

func testMessageWakes(t *testing.T, _ Engine, by store.Messenger) {
	got := make(chan store.Message, 1)
	ready := message("b", []byte("ready"))
	mustSend(t, by, ready)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	waits := make(chan struct{})
	go func() {
		for m := range by.Receive(ctx, "b") {
			if m.ID == ready.ID {
				close(waits)
				continue
			}
			got <- m
			return
		}
	}()
	<-waits
	m := message("b", []byte("now"))
	mustSend(t, by, m)
	select {
	case g := <-got:
		if g.ID != m.ID {
			t.Errorf("got %+v, want %+v", g, m)
		}
	case <-ctx.Done():
		t.Fatal("a receiver that waits was not woken")
	}
}

func testMessageReceivers(t *testing.T, _ Engine, by store.Messenger) {
	forB, forC := message("b", []byte("for b")), message("c", []byte("for c"))
	mustSend(t, by, forB)
	mustSend(t, by, forC)
	if got := receive(t, by, "c", 1)[0]; got.ID != forC.ID {
		t.Errorf("c received %+v, want %+v", got, forC)
	}
	if got := receive(t, by, "b", 1)[0]; got.ID != forB.ID {
		t.Errorf("b received %+v, want %+v", got, forB)
	}
}

func testMessageAge(t *testing.T, e Engine, by store.Messenger) {
	if e.Advance == nil {
		t.Skip("this engine's clock cannot be moved")
	}
	mustSend(t, by, message("b", []byte("too late")))
	e.Advance(store.MessageLife + time.Second)
	none(t, by, "b")
}

func testMessageBounds(t *testing.T, _ Engine, by store.Messenger) {
	if err := by.Send(t.Context(), message("b", make([]byte, store.MaxMessage+1))); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a message of more than 1 MiB: got error %v, want one that wraps ErrTooLarge", err)
	}
	for _, m := range []store.Message{{ID: store.NewID(), From: "a"}, {ID: store.NewID(), To: "b"}, {From: "a", To: "b"}, {ID: store.NewID(), From: "a\x00b", To: "c"}} {
		if err := by.Send(t.Context(), m); err == nil {
			t.Errorf("message %+v was sent", m)
		}
	}
	for _, c := range []struct{ n, size int }{{store.MaxMessages, 10}, {store.MaxMessageBytes / store.MaxMessage, store.MaxMessage}} {
		to := fmt.Sprint("n", c.n)
		for range c.n {
			mustSend(t, by, message(to, make([]byte, c.size)))
		}
		if err := by.Send(t.Context(), message(to, make([]byte, c.size))); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%d messages of %d bytes wait, and one more: got error %v, want one that wraps ErrUnavailable", c.n, c.size, err)
		}
		receive(t, by, to, c.n)
		none(t, by, to)
	}
}

func testMessagesAreNoCommits(t *testing.T, e Engine, by store.Messenger) {
	at := func() store.Position {
		_, at, err := e.Store.Snapshot(t.Context(), store.PrefixNode)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	before := at()
	mustSend(t, by, message("b", []byte("no commit")))
	for item, err := range e.Store.Export(t.Context()) {
		if err != nil || item.Entry != nil || item.Record != nil {
			t.Errorf("export: %+v, %v, want a mark only", item, err)
		}
	}
	receive(t, by, "b", 1)
	if now := at(); now != before {
		t.Errorf("position %+v became %+v by a message", before, now)
	}
}

func testReceiveEnds(t *testing.T, e Engine, by store.Messenger) {
	ended := func(ctx context.Context) <-chan error {
		last := make(chan error, 1)
		go func() {
			var err error
			for _, err = range by.Receive(ctx, "b") {
			}
			last <- err
		}()
		return last
	}
	expect := func(what string, last <-chan error, want error) {
		t.Helper()
		select {
		case err := <-last:
			if !errors.Is(err, want) {
				t.Errorf("receiving ended with %v after %s, want %v", err, what, want)
			}
		case <-time.After(patience):
			t.Fatalf("receiving goes on after %s", what)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	last := ended(ctx)
	stop()
	expect("its context", last, context.Canceled)
	last = ended(t.Context())
	e.Store.Close()
	expect("the store was closed", last, store.ErrClosed)
	if err := by.Send(t.Context(), message("b", nil)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("send after the store was closed: %v, want ErrClosed", err)
	}
}
