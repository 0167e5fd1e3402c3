//go:build unix

package postgres

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
)

func note(to, text string) store.Message {
	return store.Message{ID: store.NewID(), From: "a", To: to, Data: []byte(text)}
}

func mustSend(t *testing.T, s *Store, m store.Message) {
	t.Helper()
	if err := s.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// receiveOne returns the next message for b.
func receiveOne(t *testing.T, s *Store) store.Message {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	for m, err := range s.Receive(ctx, "b") {
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	return store.Message{}
}

// TestMessagesAreSealed tests that the database does not see what is in a message, and that a row which is changed,
// or put back after it was received or has become old, is not received.
func TestMessagesAreSealed(t *testing.T) {
	database := newDatabase(t)
	a, b := openAt(t, urlOf(database), "a"), openAt(t, urlOf(database), "b")
	const secret = "0f-a-private-key"
	put := func(m store.Message) {
		t.Helper()
		mustSend(t, a, m)
		if err := statement(database, "DROP TABLE IF EXISTS kept; CREATE TABLE kept AS SELECT * FROM headgate.message"); err != nil {
			t.Fatal(err)
		}
	}
	putBack := func(what, change string) {
		t.Helper()
		last := note("b", "the last one")
		if err := statement(database, "DELETE FROM headgate.message; "+change+"; INSERT INTO headgate.message SELECT * FROM kept"); err != nil {
			t.Fatal(what, err)
		}
		mustSend(t, a, last)
		if got := receiveOne(t, b); got.ID != last.ID {
			t.Errorf("%s: received %+v from %s, want %q only", what, got, got.From, last.Data)
		}
	}
	put(note("b", secret))
	conn, err := a.connection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end(conn)
	rows, err := run(t.Context(), conn, "SELECT * FROM headgate.message")
	if err != nil || len(rows) != 1 || bytes.Contains(bytes.Join(rows[0], nil), []byte(secret)) {
		t.Errorf("the table of messages has %q, %v, want one row without the secret", rows, err)
	}
	if got := receiveOne(t, b); string(got.Data) != secret || got.From != "a" {
		t.Errorf("received %+v", got)
	}
	putBack("received before", "UPDATE kept SET made = now()")
	for what, change := range map[string]string{
		"of another sender":   "UPDATE kept SET sender = 'c'",
		"of another time":     "UPDATE kept SET sent = sent + 1",
		"with another name":   `UPDATE kept SET id = '\x000102030405060708090a0b0c0d0e0f'`,
		"with other contents": `UPDATE kept SET sealed = '\x00'`,
		"with no contents":    `UPDATE kept SET sealed = ''`,
		"without a name":      `UPDATE kept SET id = ''`,
	} {
		put(note("b", secret))
		putBack(what, change)
	}
	put(note("c", secret))
	putBack("for another receiver", "UPDATE kept SET receiver = 'b'")
	put(note("b", secret))
	advance(t, database, store.MessageLife+time.Second)
	putBack("too old", "UPDATE kept SET made = headgate.now()")
}

// TestTheTableOfMessagesIsMade tests a database without it, which two nodes use at once.
func TestTheTableOfMessagesIsMade(t *testing.T) {
	database := newDatabase(t)
	a, b := openAt(t, urlOf(database), "a"), openAt(t, urlOf(database), "b")
	if _, err := putOne(t, a, "user/a", "1"); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		if err := statement(database, "DROP TABLE headgate.message"); err != nil {
			t.Fatal(err)
		}
		m, sent := note("b", "hello"), make(chan error, 1)
		go func() { sent <- a.Send(t.Context(), m) }()
		if got := receiveOne(t, b); got.ID != m.ID {
			t.Errorf("received %+v, want %+v", got, m)
		}
		if err := <-sent; err != nil {
			t.Error(err)
		}
	}
}

// TestARoleThatMakesNoTableUsesTheStore tests that a role without the right to create tables uses the store as before, and that
// the error of messages says what to do.
func TestARoleThatMakesNoTableUsesTheStore(t *testing.T) {
	database := newDatabase(t)
	owner := openAt(t, urlOf(database), "a")
	if _, err := putOne(t, owner, "user/a", "1"); err != nil {
		t.Fatal(err)
	}
	grants := `DROP TABLE headgate.message; DO $$ BEGIN CREATE ROLE limited LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; GRANT USAGE ON SCHEMA headgate TO limited;
		GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA headgate TO limited; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA headgate TO limited`
	if err := statement(database, grants); err != nil {
		t.Fatal(err)
	}
	s := openAt(t, strings.Replace(urlOf(database), server.user+"@", "limited@", 1), "b")
	check := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, store.ErrNoMessages) || !strings.Contains(err.Error(), "grant this role SELECT, INSERT, UPDATE and DELETE") {
			t.Errorf("%s: %v, want ErrNoMessages and what to do", what, err)
		}
	}
	refused := func() {
		t.Helper()
		check("send", s.Send(t.Context(), note("a", "x")))
		for _, err := range s.Receive(t.Context(), "b") {
			check("receive", err)
		}
	}
	refused() // it may not create the table
	mustSend(t, owner, note("b", "x"))
	refused() // it may not use it
	if _, err := putOne(t, s, "user/b", "1"); err != nil {
		t.Errorf("a commit of that role: %v", err)
	}
	if err := statement(database, "GRANT SELECT, INSERT, UPDATE, DELETE ON headgate.message TO limited"); err != nil {
		t.Fatal(err)
	}
	if got := receiveOne(t, s); string(got.Data) != "x" {
		t.Errorf("received %+v after the grant", got)
	}
}

// TestMessagesArriveWithoutNotifications tests nodes behind a pool of connections: a message arrives by polling, and the answer
// to it sooner than the next poll of an idle node.
func TestMessagesArriveWithoutNotifications(t *testing.T) {
	database := newDatabase(t)
	p := newProxy(t)
	p.hidesNotifications()
	a, b := openAt(t, p.url(database), "a"), openAt(t, p.url(database), "b")
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		of, _ := a.State()
		if other, _ := b.State(); of == Polling && other == Polling {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the nodes do not poll")
		}
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go func() {
		for m, err := range b.Receive(ctx, "b") {
			if err == nil {
				_ = b.Send(ctx, store.Message{ID: store.NewID(), From: "b", To: m.From, Data: m.Data}) // the answer is missing then
			}
		}
	}()
	answered := make(chan string, 1)
	go func() {
		for m, err := range a.Receive(ctx, "a") {
			if err == nil {
				answered <- string(m.Data)
			}
		}
	}()
	mustSend(t, a, note("b", "hello"))
	select {
	case text := <-answered:
		if text != "hello" {
			t.Errorf("answer %q", text)
		}
	case <-ctx.Done():
		t.Fatal("no answer without notifications")
	}
	if got, want := a.pollMessages(), quickPoll; got != want {
		t.Errorf("the asker polls every %v, want %v", got, want)
	}
}
