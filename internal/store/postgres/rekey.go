package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"headgate/internal/store"
)

// The bounds of a change of the key.
const (
	rekeyTimeout = 10 * time.Minute
	rekeyPage    = 200 // rows, or fewer by their size
)

// rekeyStart locks all tables: nothing is read or written until the rows have the new seal.
// Statements may take longer than those of a node.
const rekeyStart = `BEGIN; SET LOCAL statement_timeout = '60s'; SET LOCAL lock_timeout = '10s'; SET LOCAL idle_in_transaction_session_timeout = '60s';
	LOCK TABLE headgate.head, headgate.entry, headgate.record, headgate.log, headgate.stream, headgate.lease IN ACCESS EXCLUSIVE MODE`

// rekeyEnd ends the connections of nodes, which would write with the key before. Those that
// connect meanwhile wait until the new seal is there, and check it.
const rekeyEnd = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
	WHERE application_name = 'headgate' AND datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()`

// Rekey seals everything with another key, in one transaction. It returns how many entries
// and records there are. Nodes go on when they have the new key. The log is emptied: nodes
// that have not read all of it compare what they have. The error wraps ErrKey if the store
// does not have the key of the database.
func (s *Store) Rekey(ctx context.Context, key []byte) (n int, err error) {
	ctx, stop := context.WithTimeout(context.WithValue(ctx, probing{}, true), rekeyTimeout)
	defer stop()
	c, err := s.connect(ctx)
	if err != nil {
		return 0, s.explain(ctx, err)
	}
	defer end(c) // a transaction that is open is rolled back
	from := s.sealer()
	to, err := newSealer(key, from.group)
	if err != nil {
		return 0, err
	}
	if err := c.Exec(ctx, rekeyStart).Close(); err != nil {
		return 0, s.explain(ctx, err)
	}
	rows, err := run(ctx, c, "SELECT seal FROM headgate.head")
	if err != nil {
		return 0, s.explain(ctx, err)
	}
	if len(rows) != 1 || !from.opens(rows[0][0]) {
		return 0, ErrKey
	}
	r := &rekeying{c: c, from: from, to: to}
	if err := r.entries(ctx); err != nil {
		return 0, s.explain(ctx, err)
	}
	if err := r.records(ctx); err != nil {
		return 0, s.explain(ctx, err)
	}
	if _, err := run(ctx, c, "WITH l AS (DELETE FROM headgate.log) UPDATE headgate.head SET seal = $1, log_size = 0", raw(to.seal(kindTest, "", 0, []byte("headgate")))); err != nil {
		return 0, s.explain(ctx, err)
	}
	if _, err := run(ctx, c, rekeyEnd); err != nil {
		return 0, s.explain(ctx, err)
	}
	if err := c.Exec(ctx, "COMMIT").Close(); err != nil {
		return 0, s.explain(ctx, err)
	}
	return r.n, nil
}

// TryKey returns nil if the database is sealed with a key. The error wraps ErrKey if it is
// sealed with another one.
func (s *Store) TryKey(ctx context.Context, key []byte) error {
	ctx, stop := context.WithTimeout(ctx, s.timeout)
	defer stop()
	c, err := s.open(ctx, s.config)
	if err != nil {
		return s.explain(ctx, withoutAddress(err))
	}
	defer end(c)
	rows, err := run(ctx, c, "SELECT group_id, seal FROM headgate.head")
	if err != nil {
		return s.explain(ctx, err)
	}
	if len(rows) != 1 {
		return ErrKey
	}
	sealer, err := newSealer(key, rows[0][0])
	if err == nil && !sealer.opens(rows[0][1]) {
		err = ErrKey
	}
	return err
}

// rekeying seals rows again on a connection with a transaction.
type rekeying struct {
	c        *pgconn.PgConn
	from, to *sealer
	n        int
}

// again returns a sealed value with the other seal.
func (r *rekeying) again(kind, name string, number uint64, sealed []byte) ([]byte, error) {
	value, err := r.from.open(kind, name, number, sealed)
	if err != nil {
		return nil, err
	}
	r.n++
	return r.to.seal(kind, name, number, value), nil
}

func (r *rekeying) entries(ctx context.Context) error {
	for after := ""; ; {
		rows, err := run(ctx, r.c, "SELECT key, revision, sealed FROM headgate.entry WHERE key > $1 ORDER BY key LIMIT $2", text(after), integer(rekeyPage))
		if err != nil || len(rows) == 0 {
			return err
		}
		var keys []string
		var values [][]byte
		for _, row := range rows {
			after = string(row[0])
			value, err := r.again(kindEntry, after, number(row[1]), row[2])
			if err != nil {
				return err
			}
			keys, values = append(keys, after), append(values, value)
		}
		if _, err := run(ctx, r.c, "UPDATE headgate.entry e SET sealed = p.c FROM unnest($1::text[], $2::bytea[]) AS p(k, c) WHERE e.key = p.k", texts(keys), raws(values)); err != nil {
			return fmt.Errorf("seal entries: %w", err)
		}
	}
}

func (r *rekeying) records(ctx context.Context) error {
	for stream, after := "", uint64(0); ; {
		rows, err := run(ctx, r.c, "SELECT stream, sequence, sealed FROM headgate.record WHERE (stream, sequence) > ($1, $2) ORDER BY stream, sequence LIMIT $3",
			text(stream), integer(after), integer(rekeyPage))
		if err != nil || len(rows) == 0 {
			return err
		}
		var streams []string
		var sequences []store.Sequence
		var contents [][]byte
		for _, row := range rows {
			stream, after = string(row[0]), number(row[1])
			content, err := r.again(kindRecord, stream, after, row[2])
			if err != nil {
				return err
			}
			streams, sequences, contents = append(streams, stream), append(sequences, store.Sequence(after)), append(contents, content)
		}
		if _, err := run(ctx, r.c, "UPDATE headgate.record r SET sealed = p.c FROM unnest($1::text[], $2::bigint[], $3::bytea[]) AS p(s, n, c) WHERE r.stream = p.s AND r.sequence = p.n",
			texts(streams), integers(sequences), raws(contents)); err != nil {
			return fmt.Errorf("seal records: %w", err)
		}
	}
}
