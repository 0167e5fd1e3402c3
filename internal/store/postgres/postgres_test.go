//go:build unix

package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/store/storetest"
	"headgate/internal/testhouse"
)

func background() context.Context { return context.Background() }

func groupKey() []byte { return bytes.Repeat([]byte{7}, 32) }

func openAt(t *testing.T, url, node string) *Store {
	t.Helper()
	s, err := Open(Options{URL: url, Key: groupKey(), Node: node, Timeout: time.Minute, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), LogSize: 24 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// advance moves the clock of a database on.
func advance(t *testing.T, database string, d time.Duration) {
	t.Helper()
	err := statement(database, fmt.Sprintf("CREATE OR REPLACE FUNCTION headgate.now() RETURNS timestamptz LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp() + interval ''%d microseconds'''", d.Microseconds()))
	if err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) { storetest.Run(t, openEngine) }

func TestMessages(t *testing.T) { storetest.RunMessages(t, openEngine) }

// TestRandomLives leads lives of the engine against a model; -lives leads more of them.
func TestRandomLives(t *testing.T) {
	testhouse.Lives(t, 1, 2, func(t *testing.T, seed uint64) { storetest.Life(t, seed, openEngine) })
}

func openEngine(t *testing.T) storetest.Engine {
	database := newDatabase(t)
	p := newProxy(t)
	s := openAt(t, p.url(database), "a")
	passed := time.Duration(0)
	return storetest.Engine{
		Store: s,
		Again: func(t *testing.T) store.Store {
			t.Helper()
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = openAt(t, p.url(database), "a")
			return s
		},
		Advance: func(d time.Duration) {
			passed += d
			advance(t, database, passed)
			if err := s.sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
		},
		Other:      openEngine,
		LoseAnswer: func(*testing.T) func() { return p.loseAnswer() },
	}
}

func putOne(t *testing.T, s store.Store, key, value string) (store.Revision, error) {
	t.Helper()
	return s.Commit(t.Context(), store.Change{ID: store.NewID(), Put: []store.Entry{{Key: key, Value: []byte(value)}}})
}

// A node is stopped at any byte of a commit: the others go on. With a commit of several
// messages, one that is stopped between them would hold the lock of the head for ever.
func TestANodeThatStopsInACommitHoldsUpNoOther(t *testing.T) {
	database := newDatabase(t)
	p := newProxy(t)
	b := openAt(t, urlOf(database), "b")
	if _, err := putOne(t, b, "user/a", "first"); err != nil {
		t.Fatal(err)
	}
	for i, n := range []int64{0, 1, 200, 900, 1200, 1 << 20} {
		ctx, stop := context.WithCancel(t.Context())
		a := openAt(t, p.url(database), "a")
		if _, err := a.Get(ctx, "user/a"); err != nil {
			t.Fatal(err)
		}
		p.stallAfter(n)
		done := make(chan error, 1)
		go func() {
			_, err := a.Commit(ctx, store.Change{Put: []store.Entry{{Key: "user/a", Value: []byte("from a")}}})
			done <- err
		}()
		<-p.stuck
		for j := range 3 {
			if _, err := putOne(t, b, "user/b", fmt.Sprint(i, j)); err != nil {
				t.Errorf("a node is stopped after %d bytes of its commit, and another cannot commit: %v", n, err)
			}
		}
		stop()
		if err := <-done; err == nil {
			t.Error("a commit without an answer was acknowledged")
		}
		a.Close()
		p.stallAfter(-1)
		p.cut()
	}
}

// Two nodes see each other's changes in the order of commits.
func TestNodesSeeTheChangesOfEachOther(t *testing.T) {
	database := newDatabase(t)
	a, b := openAt(t, urlOf(database), "a"), openAt(t, urlOf(database), "b")
	if _, err := putOne(t, a, "user/x", "0"); err != nil {
		t.Fatal(err)
	}
	_, at, err := b.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	const each = 40
	errs := make(chan error, 2)
	for _, s := range []*Store{a, b} {
		go func() {
			for i := range each {
				if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "node/" + s.node, Value: fmt.Append(nil, i)}}}); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		}()
	}
	for _, s := range []*Store{a, b} {
		last, seen := at, 0
		for batch, err := range s.Watch(t.Context(), "node/", at) {
			if err != nil {
				t.Fatal(err)
			}
			if batch.Revision != last.Revision+1 || batch.Before != last.ID {
				t.Fatalf("%s: revision %d after %d", s.node, batch.Revision, last.Revision)
			}
			last = batch.Position
			if seen++; seen == 2*each {
				break
			}
		}
	}
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if lease, err := a.Acquire(t.Context(), "acme/x", time.Minute); err != nil {
		t.Error(err)
	} else if _, err := b.Acquire(t.Context(), "acme/x", time.Minute); !isHeldBy(err, "a") {
		t.Errorf("a lease that a holds: %v", err)
	} else {
		lease.Release(t.Context())
	}
}

func isHeldBy(err error, node string) bool {
	var held *store.Held
	return errors.As(err, &held) && held.By == node
}

// TestChangesArriveWithoutNotifications holds that a node that no notification reaches, as behind
// a pool of connections, reports that, and sees the changes of others because it polls.
func TestChangesArriveWithoutNotifications(t *testing.T) {
	database := newDatabase(t)
	a := openAt(t, urlOf(database), "a")
	if _, err := putOne(t, a, "user/a", "0"); err != nil {
		t.Fatal(err)
	}
	p := newProxy(t)
	p.hidesNotifications()
	states := make(chan State, 8)
	b, err := Open(Options{URL: p.url(database), Key: groupKey(), Node: "b", Timeout: time.Minute, Change: func(s State) { states <- s }})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	_, at, err := b.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	go putOne(t, a, "user/a", "1")
	for batch, err := range b.Watch(ctx, "", at) {
		if err != nil || len(batch.Put) != 1 || string(batch.Put[0].Value) != "1" {
			t.Errorf("the change of another node: %+v, %v", batch, err)
		}
		break
	}
	for {
		select {
		case s := <-states:
			if s == Polling {
				return
			}
		case <-ctx.Done():
			t.Fatal("the node does not report that no notification arrives")
		}
	}
}

// A database that is restored from an older dump is noticed, also when it has more commits
// than the node had seen.
func TestADatabaseThatWasSetBackIsNoticed(t *testing.T) {
	database := newDatabase(t)
	a := openAt(t, urlOf(database), "a")
	if _, err := putOne(t, a, "user/x", "0"); err != nil {
		t.Fatal(err)
	}
	copied := database + "_old"
	for range 5 {
		if _, err := putOne(t, a, "user/x", "lost"); err != nil {
			t.Fatal(err)
		}
	}
	_, at, err := a.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	// The dump is made of what was there before: the five commits are taken out of it.
	a.Close()
	if err := admin("CREATE DATABASE " + copied + " TEMPLATE " + database); err != nil {
		t.Fatal(err)
	}
	if err := statement(copied, "DELETE FROM headgate.log WHERE revision > 1; UPDATE headgate.head h SET revision = 1, id = (SELECT id FROM headgate.log WHERE revision = 1); UPDATE headgate.entry SET revision = 1"); err != nil {
		t.Fatal(err)
	}
	b := openAt(t, urlOf(copied), "b")
	for range 20 { // the number is higher again than what the node had seen
		if _, err := putOne(t, b, "user/y", "since"); err != nil {
			t.Fatal(err)
		}
	}
	for _, err := range b.Watch(t.Context(), "", at) {
		if !errors.Is(err, store.ErrRewound) {
			t.Errorf("a watch from revision %d of the lost history: %v, want ErrRewound", at.Revision, err)
		}
		break
	}
}

// What lies in the database cannot be read, and a row that is put in the place of another
// is refused.
func TestTheDatabaseSeesNothingAndCannotSwap(t *testing.T) {
	database := newDatabase(t)
	a := openAt(t, urlOf(database), "a")
	const secret = "0f-a-private-key"
	c := store.Change{Put: []store.Entry{{Key: "certificate/a", Value: []byte(secret)}, {Key: "head", Value: []byte(secret)}}, Append: []store.Record{{Stream: "audit", Data: []byte(secret)}, {Stream: "audit", Data: []byte("second")}}, Who: secret, Why: secret}
	if _, err := a.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	conn, err := a.connection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer end(conn)
	for _, table := range []string{"entry", "log", "record", "head"} {
		rows, err := run(t.Context(), conn, "SELECT * FROM headgate."+table)
		if err != nil || len(rows) == 0 {
			t.Fatal(table, rows, err)
		}
		for _, r := range rows {
			if bytes.Contains(bytes.Join(r, nil), []byte(secret)) {
				t.Errorf("the table %s tells the secret", table)
			}
		}
	}
	for _, swap := range []string{
		"UPDATE headgate.entry SET sealed = (SELECT sealed FROM headgate.entry WHERE key = 'head') WHERE key = 'certificate/a'",
		"UPDATE headgate.record r SET sealed = (SELECT sealed FROM headgate.record s WHERE s.sequence = 3 - r.sequence)",
	} {
		if err := statement(database, swap); err != nil {
			t.Fatal(err)
		}
	}
	if e, err := a.Get(t.Context(), "certificate/a"); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a value of another key: %q, %v", e.Value, err)
	}
	if page, err := a.Page(t.Context(), "audit", 0, 10); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("records that changed places: %v, %v", page, err)
	}
	other, err := Open(Options{URL: urlOf(database), Key: bytes.Repeat([]byte{8}, 32), Node: "b", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Get(t.Context(), "head"); !errors.Is(err, ErrKey) {
		t.Errorf("with another key: %v, want ErrKey", err)
	}
}

// Without the server nothing waits: reads and changes fail, and go on by themselves after.
func TestAServerThatIsAwayRefusesAndComesBack(t *testing.T) {
	database := newDatabase(t)
	p := newProxy(t)
	s := openAt(t, p.url(database), "a")
	if _, err := putOne(t, s, "user/a", "x"); err != nil {
		t.Fatal(err)
	}
	_, at, err := s.Snapshot(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		for _, err := range s.Watch(context.Background(), "", at) {
			if err != nil {
				ended <- err
			}
		}
	}()
	p.away(true)
	for range 3 {
		if _, err := putOne(t, s, "user/a", "y"); !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
			t.Errorf("a change without the server: %v", err)
		}
	}
	select {
	case err := <-ended:
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("a watch without the server: %v", err)
		}
	case <-time.After(time.Minute):
		t.Error("a watch does not end without the server")
	}
	p.away(false)
	for {
		if _, err := putOne(t, s, "user/a", "z"); err == nil {
			break
		} else if !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrUnknownOutcome) {
			t.Fatal(err)
		}
	}
	for again := true; again; { // without a gap
		for b, err := range s.Watch(t.Context(), "", at) {
			if again = errors.Is(err, store.ErrUnavailable); again {
				time.Sleep(10 * time.Millisecond)
			} else if err != nil || b.Revision != at.Revision+1 {
				t.Errorf("after the server came back a watch has %d, %v", b.Revision, err)
			}
			break
		}
	}
}

func TestAddressesOfOtherMachinesNeedAVerifiedCertificate(t *testing.T) {
	for url, safe := range map[string]bool{
		"postgres://u@db.example.com/headgate":                     false,
		"postgres://u@db.example.com/headgate?sslmode=disable":     false,
		"postgres://u@db.example.com/headgate?sslmode=require":     false,
		"postgres://u@db.example.com/headgate?sslmode=verify-full": true,
		"postgres://u@127.0.0.1/headgate":                          true,
		"postgres://u@/headgate?host=/run/postgresql":              true,
	} {
		_, err := configOf(url, callTimeout)
		if (err == nil) != safe {
			t.Errorf("%s: %v, want accepted %v", url, err, safe)
		}
	}
	if _, err := configOf("postgres://u:secret@:x/", callTimeout); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("an address that cannot be read: %v", err)
	}
}

func TestALaterSchemaIsRefused(t *testing.T) {
	database := newDatabase(t)
	s := openAt(t, urlOf(database), "a")
	if _, err := putOne(t, s, "user/a", "x"); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := statement(database, "UPDATE headgate.head SET version = 2"); err != nil {
		t.Fatal(err)
	}
	if _, err := openAt(t, urlOf(database), "a").Get(t.Context(), "user/a"); err != nil {
		t.Errorf("a later schema that this release can read: %v", err)
	}
	if err := statement(database, "UPDATE headgate.head SET version = 3, readable_from = 2"); err != nil {
		t.Fatal(err)
	}
	var newer *Newer
	if _, err := openAt(t, urlOf(database), "a").Get(t.Context(), "user/a"); !errors.As(err, &newer) {
		t.Errorf("a later schema that it cannot read: %v", err)
	}
}

// The limits are those of each connection. An address, or a pool of connections, can take them away.
func TestAConnectionWithoutLimitsIsReported(t *testing.T) {
	database := newDatabase(t)
	for more, want := range map[string]string{
		"":                      "",
		"&statement_timeout=0":  "its limits for statement_timeout:",
		"&lock_timeout=1h":      "its limits for lock_timeout:",
		"&statement_timeout=1s": "",
	} {
		s, err := Open(Options{URL: urlOf(database) + more, Key: groupKey(), Node: "a"})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		var c Check
		testhouse.Eventually(t, "the server answers", func() bool {
			c, err = s.Inspect(t.Context())
			return err == nil
		})
		if notes := strings.Join(c.Notes, "\n"); strings.Contains(notes, "its limits for") != (want != "") || !strings.Contains(notes, want) {
			t.Errorf("with %q: %q, want %q", more, notes, want)
		}
		if notes := strings.Join(c.Notes, "\n"); strings.Contains(notes, "synchronous_commit") {
			t.Errorf("with %q: %q", more, notes)
		}
	}
}
