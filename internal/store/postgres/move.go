package postgres

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"headgate/internal/store"
)

// Export yields everything: see store.Store. Records that are added meanwhile are left out.
func (s *Store) Export(ctx context.Context) iter.Seq2[store.Item, error] {
	return store.ExportFrom(ctx, source{s})
}

// source is what an export reads.
type source struct{ *Store }

// Mark reads what an export has besides entries and records.
func (s source) Mark(ctx context.Context, mark *store.Mark) error {
	rows, _, err := s.call(ctx, "SELECT headgate.now(), h.tokens, s.name, s.last FROM headgate.head h LEFT JOIN headgate.stream s ON true")
	if err != nil {
		return err
	}
	for _, r := range rows {
		mark.Time, mark.Token = moment(r[0]), number(r[1])
		if r[2] != nil {
			mark.Last[string(r[2])] = store.Sequence(number(r[3]))
		}
	}
	return nil
}

// Records returns records after a sequence and up to another, the oldest first.
func (s source) Records(ctx context.Context, name string, after, last store.Sequence) ([]store.Record, error) {
	rows, _, err := s.call(ctx, "SELECT sequence, made, sealed FROM headgate.record WHERE stream = $1 AND sequence > $2 AND sequence <= $3 ORDER BY sequence LIMIT $4",
		text(name), integer(after), integer(last), integer(store.MaxPage))
	if err != nil {
		return nil, err
	}
	return s.recordsOf(name, rows)
}

// Import fills the store: see store.Store.
func (s *Store) Import(ctx context.Context, items iter.Seq2[store.Item, error]) error {
	err := s.beginImport(ctx)
	var mark *store.Mark
	if err == nil {
		mark, err = store.ImportPortions(ctx, items, func(p *store.Portion) error { return s.writePortion(ctx, p) })
	}
	if err == nil {
		err = s.endImport(ctx, mark)
	}
	if err != nil {
		return fmt.Errorf("import: %w", err)
	}
	return nil
}

// beginImport marks the store as one that is being filled, and removes what an import that
// was cut off has left.
func (s *Store) beginImport(ctx context.Context) error {
	rows, _, err := s.call(ctx, "UPDATE headgate.head SET importing = true WHERE importing OR revision = 0 RETURNING moved")
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return store.ErrNotEmpty
	}
	for _, table := range []string{"entry", "record", "stream", "log", "lease"} {
		if _, _, err := s.call(ctx, "DELETE FROM headgate."+table); err != nil {
			return err
		}
	}
	return nil
}

// micros returns a moment as the functions of the server read it; 0 is never.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// fromMicros is the moment of a number of microseconds.
const fromMicros = "(timestamptz 'epoch' + %s * interval '1 microsecond')"

// writePortion writes a part of an import.
func (s *Store) writePortion(ctx context.Context, p *store.Portion) error {
	sealer := s.sealer()
	var keys, streams []string
	var values, contents [][]byte
	var revisions, modified, expires, sizes, sequences, made []int64
	for _, e := range p.Entries {
		keys, values = append(keys, e.Key), append(values, sealer.seal(kindEntry, e.Key, uint64(e.Revision), e.Value))
		revisions, modified, expires, sizes = append(revisions, int64(e.Revision)), append(modified, micros(e.Modified)), append(expires, micros(e.Expires)), append(sizes, int64(len(e.Value)))
	}
	for _, r := range p.Records {
		streams, contents = append(streams, r.Stream), append(contents, sealer.seal(kindRecord, r.Stream, uint64(r.Sequence), r.Data))
		sequences, made = append(sequences, int64(r.Sequence)), append(made, micros(r.Time))
	}
	at := func(column string) string { return fmt.Sprintf(fromMicros, column) }
	_, _, err := s.callSealed(ctx, sealer, `WITH e AS (
			INSERT INTO headgate.entry (key, revision, modified, expires, size, sealed)
			SELECT k, r, `+at("m")+`, CASE WHEN x <> 0 THEN `+at("x")+` END, n, c FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[]) AS p(k, r, m, x, n, c))
		INSERT INTO headgate.record (stream, sequence, made, sealed)
		SELECT s, q, `+at("m")+`, c FROM unnest($7::text[], $8::bigint[], $9::bigint[], $10::bytea[]) AS p(s, q, m, c)`,
		texts(keys), integers(revisions), integers(modified), integers(expires), integers(sizes), raws(values),
		texts(streams), integers(sequences), integers(made), raws(contents))
	return err
}

// endImport notes that an import is whole.
func (s *Store) endImport(ctx context.Context, mark *store.Mark) error {
	var names []string
	var lasts []store.Sequence
	for name, last := range mark.Last {
		names, lasts = append(names, name), append(lasts, last)
	}
	id, err := mark.Position.ID.Bytes()
	if err != nil {
		return err
	}
	_, _, err = s.call(ctx, `WITH s AS (INSERT INTO headgate.stream (name, last) SELECT n, l FROM unnest($1::text[], $2::bigint[]) AS p(n, l))
		UPDATE headgate.head SET importing = false, revision = $3, id = $4, tokens = $5, log_size = 0`,
		texts(names), integers(lasts), integer(mark.Position.Revision), raw(id), integer(mark.Token))
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.mu.lasts, s.mu.head = map[string]store.Sequence{}, mark.Position
	s.mu.Unlock()
	s.feed.Restart(mark.Position)
	return nil
}

// Freeze refuses changes: see store.Store.
func (s *Store) Freeze(ctx context.Context, place string) error {
	_, _, err := s.call(ctx, "UPDATE headgate.head SET moved = $1", text(place))
	return err
}

// Check is what an operator has to know of a server besides its state.
type Check struct {
	Version string   // of PostgreSQL
	Schema  int      // the version of the tables
	Primary bool     // it accepts changes
	Notes   []string // what is a bad idea
}

// maxLimit is the maximum time for which a statement, a lock or a transaction may block other nodes.
const maxLimit = 10 * time.Second

// Inspect reads the settings of the server, and those of a connection to it.
func (s *Store) Inspect(ctx context.Context) (Check, error) {
	rows, _, err := s.call(ctx, `SELECT current_setting('server_version'), pg_is_in_recovery()::text, current_setting('synchronous_commit'),
		current_setting('synchronous_standby_names'), current_setting('fsync'), current_setting('server_version_num'), (SELECT count(*) FROM pg_stat_replication),
		(SELECT version FROM headgate.head), (SELECT string_agg(name, ', ' ORDER BY name) FROM pg_settings
			WHERE CASE WHEN name IN ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout') THEN setting::bigint NOT BETWEEN 1 AND $1 ELSE false END)`, integer(maxLimit.Milliseconds()))
	if err != nil {
		return Check{}, err
	}
	r := rows[0]
	c := Check{Version: string(r[0]), Primary: string(r[1]) == "false", Schema: int(number(r[7]))}
	if note := s.schemaNote(c.Schema); note != "" {
		c.Notes = append(c.Notes, note)
	}
	if strings.Compare(string(r[5]), "120000") < 0 {
		c.Notes = append(c.Notes, "PostgreSQL "+c.Version+" is older than 12")
	}
	if string(r[4]) != "on" {
		c.Notes = append(c.Notes, "fsync is off: a loss of power loses changes that were acknowledged")
	}
	if at := string(r[2]); at == "off" || at == "local" {
		c.Notes = append(c.Notes, "synchronous_commit is "+at+" for connections of headgate: a failover can lose changes that were acknowledged; set it to on in the connection pool")
	}
	if len(r[8]) > 0 {
		c.Notes = append(c.Notes, "connections of headgate do not have its limits for "+string(r[8])+": a machine that hangs can block the changes of all machines; remove these parameters from the address of the database, and configure a connection pool to pass them on")
	}
	if number(r[6]) > 0 && string(r[3]) == "" {
		c.Notes = append(c.Notes, "the server has replicas and none is synchronous: a failover can lose changes that were acknowledged; set synchronous_standby_names")
	}
	return c, nil
}
