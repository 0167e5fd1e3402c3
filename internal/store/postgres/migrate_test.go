//go:build unix

package postgres

import (
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"headgate/internal/store"
)

// nextForm is a later release, which keeps who has written an entry, in a column of its own.
// Releases that know version 1 only can use the tables if readable is 1.
func nextForm(readable int) form {
	return form{steps: []step{{version: 2, readable: readable, sql: "ALTER TABLE headgate.entry ADD COLUMN writer text NOT NULL DEFAULT ''"}}}
}

// openForm opens the store of a release.
func openForm(t *testing.T, database string, f form) *Store {
	t.Helper()
	s, err := Open(Options{URL: urlOf(database), Key: groupKey(), Node: "a", Timeout: time.Minute, Log: slog.New(slog.DiscardHandler), form: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// publish writes what a node publishes of itself.
func publish(t *testing.T, s *Store, n store.Node) {
	t.Helper()
	value, err := json.Marshal(n)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := putOne(t, s, store.PrefixNode+n.Name, string(value)); err != nil {
		t.Fatal(err)
	}
}

// versionOf returns the version of a database as its head has it, and whether the tables have the
// column of version 2.
func versionOf(t *testing.T, s *Store) (version, readable int, column bool) {
	t.Helper()
	rows, _, err := s.call(t.Context(), "SELECT version, readable_from, (SELECT count(*) FROM pg_catalog.pg_attribute WHERE attrelid = 'headgate.entry'::regclass AND attname = 'writer') FROM headgate.head")
	if err != nil {
		t.Fatal(err)
	}
	return int(number(rows[0][0])), int(number(rows[0][1])), number(rows[0][2]) == 1
}

// TestMigrationWaitsForAllNodes holds that a database is not migrated while a node runs that could
// not use it, that the error names the node, and that nothing is changed by then. Nodes that have
// stopped or are gone do not count.
func TestMigrationWaitsForAllNodes(t *testing.T) {
	database := newDatabase(t)
	old := openForm(t, database, form{})
	if _, err := putOne(t, old, "user/a", "x"); err != nil { // the tables are there then
		t.Fatal(err)
	}
	next := openForm(t, database, nextForm(2))
	publish(t, old, store.Node{Name: "web1", Version: "1.0.0"})
	publish(t, old, store.Node{Name: "web2", Version: "1.0.0", Stopped: true})
	publish(t, next, store.Node{Name: "web3", Version: "1.1.0", Schema: 2})
	for _, dry := range []bool{true, false} {
		var outdated *store.Outdated
		if _, err := next.Migrate(t.Context(), dry); !errors.As(err, &outdated) || outdated.Node != "web1" || !strings.Contains(err.Error(), "node web1 (headgate 1.0.0)") || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("dry %t: got %v, want an error about web1", dry, err)
		}
	}
	if version, _, column := versionOf(t, old); version != 1 || column {
		t.Errorf("a migration that was refused has changed the database: version %d, column %t", version, column)
	}
	if _, err := putOne(t, old, "user/a", "y"); err != nil {
		t.Errorf("a node goes on after a migration was refused: %v", err)
	}
	if c, err := next.Inspect(t.Context()); err != nil || c.Schema != 1 || !strings.Contains(strings.Join(c.Notes, " "), "headgate store migrate") {
		t.Errorf("the check of a database that can be migrated: %+v, %v", c, err)
	}

	publish(t, old, store.Node{Name: "web1", Version: "1.1.0", Schema: 2})
	if m, err := next.Migrate(t.Context(), true); err != nil || m != (Migration{From: 1, To: 2, Readable: 2}) {
		t.Errorf("what would be done: %+v, %v", m, err)
	}
	if m, err := next.Migrate(t.Context(), false); err != nil || m != (Migration{From: 1, To: 2, Readable: 2}) {
		t.Fatalf("got %+v, %v", m, err)
	}
	if m, err := next.Migrate(t.Context(), false); err != nil || m != (Migration{From: 2, To: 2, Readable: 2}) {
		t.Errorf("once more: got %+v, %v", m, err)
	}
	if version, readable, column := versionOf(t, next); version != 2 || readable != 2 || !column {
		t.Errorf("the database has version %d, readable from %d, column %t", version, readable, column)
	}
	if e, err := next.Get(t.Context(), "user/a"); err != nil || string(e.Value) != "y" {
		t.Errorf("an entry after the migration: %q, %v", e.Value, err)
	}
	if _, err := putOne(t, next, "user/a", "z"); err != nil {
		t.Errorf("a change after the migration: %v", err)
	}

	// The connection of the older release was ended, and it is not let in again.
	var newer *Newer
	if _, err := old.Get(t.Context(), "user/a"); err == nil {
		t.Error("a node of an older release reads from the migrated database")
	}
	becomes(t, "the older release says why it refuses the database", func() bool {
		_, err := old.Get(t.Context(), "user/a")
		return errors.As(err, &newer)
	})
}

// TestMigrationThatOthersCanRead holds that a step that older releases can use waits for none of
// them, and that they go on.
func TestMigrationThatOthersCanRead(t *testing.T) {
	database := newDatabase(t)
	old := openForm(t, database, form{})
	publish(t, old, store.Node{Name: "web1", Version: "1.0.0"}) // the tables are there then
	next := openForm(t, database, nextForm(1))
	if m, err := next.Migrate(t.Context(), false); err != nil || m != (Migration{From: 1, To: 2, Readable: 1}) {
		t.Fatalf("got %+v, %v", m, err)
	}
	becomes(t, "the older release uses the database", func() bool {
		_, err := old.Get(t.Context(), store.PrefixNode+"web1")
		return err == nil
	})
	if _, err := putOne(t, old, "user/a", "x"); err != nil {
		t.Errorf("a change of the older release: %v", err)
	}
	if e, err := next.Get(t.Context(), "user/a"); err != nil || string(e.Value) != "x" {
		t.Errorf("the later release reads it: %q, %v", e.Value, err)
	}
	if m, err := old.Migrate(t.Context(), false); err != nil || m != (Migration{From: 2, To: 2, Readable: 1}) {
		t.Errorf("the older release has nothing to migrate: %+v, %v", m, err)
	}
}

// TestNewDatabaseHasTheNewestForm holds that all steps are part of a new database, and that a step
// that fails changes nothing.
func TestNewDatabaseHasTheNewestForm(t *testing.T) {
	s := openForm(t, newDatabase(t), nextForm(2))
	if version, readable, column := versionOf(t, s); version != 2 || readable != 2 || !column {
		t.Errorf("a new database has version %d, readable from %d, column %t", version, readable, column)
	}

	database := newDatabase(t)
	if _, err := putOne(t, openForm(t, database, form{}), "user/a", "x"); err != nil {
		t.Fatal(err)
	}
	broken := nextForm(2)
	broken.steps[0].sql += "; SELECT 1/0"
	s = openForm(t, database, broken)
	if _, err := s.Migrate(t.Context(), false); err == nil {
		t.Fatal("a step that fails was made")
	}
	if version, _, column := versionOf(t, s); version != 1 || column {
		t.Errorf("a step that failed has left version %d, column %t", version, column)
	}
}
