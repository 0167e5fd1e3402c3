package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"headgate/internal/store"
)

// step brings the tables from the version before to a version.
type step struct {
	version  int
	readable int    // the oldest release that can use them, by the version that it knows
	sql      string // statements; the transaction is the caller's
}

// form is what a release knows of the tables: schema.sql is version 1, and the steps follow.
type form struct{ steps []step }

// thisForm returns the form of this release.
func thisForm() form { return form{} }

// SchemaVersion returns the newest version of the tables that this release reads and writes. It
// writes those of the version that the database has: a release that knows a version is installed
// on all nodes before Migrate brings the database to it.
func SchemaVersion() int {
	version, _ := thisForm().newest()
	return version
}

// newest returns the version that a release knows, and the oldest that can use its tables.
func (f form) newest() (version, readable int) {
	if n := len(f.steps); n > 0 {
		return f.steps[n-1].version, f.steps[n-1].readable
	}
	return 1, 1
}

// knows returns the newest version that the release of this store knows.
func (s *Store) knows() int {
	version, _ := s.form.newest()
	return version
}

// sql returns the statements that make a database of a version one of the newest; 0 is an empty
// database.
func (f form) sql(from int) string {
	var b strings.Builder
	if from == 0 {
		b.WriteString(schema + messageTable)
	}
	for _, s := range f.steps {
		if s.version > from {
			b.WriteString(s.sql + ";\n")
		}
	}
	return b.String()
}

// Migration is the version of the tables of a database before and after.
type Migration struct {
	// From and To are the versions. They are equal if there was nothing to do.
	From, To int
	// Readable is the oldest version that a release has to know to use the database.
	Readable int
}

// Migrate brings the tables to the newest version that this release knows, in one transaction. The
// error is a *store.Outdated if a node runs that cannot use them then. One that is started later refuses
// the database: see Newer. Dry only reports what would be done.
func (s *Store) Migrate(ctx context.Context, dry bool) (Migration, error) {
	ctx, stop := context.WithTimeout(context.WithValue(ctx, probing{}, true), rekeyTimeout)
	defer stop()
	c, err := s.connect(ctx)
	if err != nil {
		return Migration{}, s.explain(ctx, err)
	}
	defer end(c) // a transaction that is open is rolled back
	if !dry {
		if err := c.Exec(ctx, rekeyStart).Close(); err != nil {
			return Migration{}, s.explain(ctx, err)
		}
	}
	m, err := s.migrate(ctx, c, dry)
	if err == nil && !dry && m.From != m.To {
		if _, err = run(ctx, c, rekeyEnd); err == nil {
			err = c.Exec(ctx, "COMMIT").Close()
		}
		s.closeIdle() // the server has ended them
	}
	if outdated := (*store.Outdated)(nil); err != nil && !errors.As(err, &outdated) {
		err = s.explain(ctx, err)
	}
	return m, err
}

// migrate does, or checks, what Migrate does.
func (s *Store) migrate(ctx context.Context, c *pgconn.PgConn, dry bool) (m Migration, err error) {
	rows, err := run(ctx, c, "SELECT version, readable_from FROM headgate.head")
	if err != nil {
		return m, err
	}
	m.From, m.Readable = int(number(rows[0][0])), int(number(rows[0][1]))
	to, readable := s.form.newest()
	if m.To = max(m.From, to); m.To == m.From {
		return m, nil
	}
	m.Readable = max(m.Readable, readable)
	if err := s.nodesKnow(ctx, c, m.Readable); err != nil || dry {
		return m, err
	}
	if err := c.Exec(ctx, s.form.sql(m.From)).Close(); err != nil {
		return m, fmt.Errorf("change the tables from version %d to %d: %w", m.From, m.To, err)
	}
	_, err = run(ctx, c, "UPDATE headgate.head SET version = $1::bigint, readable_from = $2::bigint", integer(m.To), integer(m.Readable))
	return m, err
}

// nodesKnow returns a *store.Outdated if a node runs that does not know a version.
func (s *Store) nodesKnow(ctx context.Context, c *pgconn.PgConn, version int) error {
	rows, err := run(ctx, c, "SELECT key, revision, modified, expires, sealed, headgate.now() FROM headgate.entry WHERE key >= $1 AND key < $2 ORDER BY key",
		text(store.PrefixNode), text(endOf(store.PrefixNode)))
	if err != nil {
		return err
	}
	for _, r := range rows {
		e, err := s.entryOf(r)
		if err != nil {
			return err
		}
		n := store.Node{}
		if err := json.Unmarshal(e.Value, &n); err != nil {
			return fmt.Errorf("read what %s has published: %w", e.Key, err)
		}
		n.Seen = e.Modified
		if knows := max(n.Schema, 1); n.Running(moment(r[5])) && knows < version {
			return &store.Outdated{Node: strings.TrimPrefix(e.Key, store.PrefixNode), Release: n.Version, Knows: knows, Needs: version}
		}
	}
	return nil
}

// schemaNote returns what to do about the version of a database, "" for nothing.
func (s *Store) schemaNote(version int) string {
	if to, _ := s.form.newest(); version < to {
		return fmt.Sprintf("the database has version %d and this release knows %d: run \"headgate store migrate\" when all nodes have this release", version, to)
	}
	return ""
}
