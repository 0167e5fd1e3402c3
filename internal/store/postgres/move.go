package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"headgate/internal/store"
)

// Export yields everything: see store.Store. Records that are added meanwhile are left out.
func (s *Store) Export(ctx context.Context) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		entries, at, err := s.Snapshot(ctx, "")
		mark := store.Mark{Position: at, Last: map[string]store.Sequence{}}
		if err == nil {
			err = s.fillMark(ctx, &mark)
		}
		if err != nil {
			yield(store.Item{}, err)
			return
		}
		if !yield(store.Item{Mark: &mark}, nil) {
			return
		}
		for i := range entries {
			if !yield(store.Item{Entry: &entries[i]}, nil) {
				return
			}
		}
		for name, last := range mark.Last {
			if !s.exportStream(ctx, name, last, yield) {
				return
			}
		}
	}
}

// fillMark reads what an export tells besides entries and records.
func (s *Store) fillMark(ctx context.Context, mark *store.Mark) error {
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

// exportStream yields the records of a stream, the oldest first. It reports whether more
// is wanted.
func (s *Store) exportStream(ctx context.Context, name string, last store.Sequence, yield func(store.Item, error) bool) bool {
	for after := store.Sequence(0); after < last; {
		rows, _, err := s.call(ctx, "SELECT sequence, made, sealed FROM headgate.record WHERE stream = $1 AND sequence > $2 AND sequence <= $3 ORDER BY sequence LIMIT $4",
			text(name), integer(after), integer(last), integer(store.MaxPage))
		var page []store.Record
		if err == nil {
			page, err = s.recordsOf(name, rows)
		}
		if err != nil {
			yield(store.Item{}, err)
			return false
		}
		if len(page) == 0 {
			return true
		}
		for i := range page {
			if !yield(store.Item{Record: &page[i]}, nil) {
				return false
			}
		}
		after = page[len(page)-1].Sequence
	}
	return true
}

// Import fills the store: see store.Store.
func (s *Store) Import(ctx context.Context, items iter.Seq2[store.Item, error]) error {
	if err := s.beginImport(ctx); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	i := &importer{s: s}
	for item, err := range items {
		if err == nil {
			err = i.add(ctx, item)
		}
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	if err := i.end(ctx); err != nil {
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

// importer writes what another engine has exported, in portions.
type importer struct {
	s       *Store
	mark    *store.Mark
	entries []store.Entry
	records []store.Record
	size    int
}

func (i *importer) add(ctx context.Context, item store.Item) error {
	switch {
	case item.Mark != nil:
		i.mark = item.Mark
		return nil
	case i.mark == nil:
		return errors.New("it does not begin with a mark")
	case item.Entry != nil:
		if err := store.CheckKey(item.Entry.Key); err != nil {
			return err
		}
		i.entries = append(i.entries, *item.Entry)
		i.size += len(item.Entry.Value)
	case item.Record != nil:
		i.records = append(i.records, *item.Record)
		i.size += len(item.Record.Data)
	}
	if len(i.entries)+len(i.records) >= store.MaxPage || i.size >= store.MaxChange {
		return i.write(ctx)
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

// write writes a portion.
func (i *importer) write(ctx context.Context) error {
	sealer := i.s.sealer()
	var keys, streams []string
	var values, contents [][]byte
	var revisions, modified, expires, sizes, sequences, made []int64
	for _, e := range i.entries {
		keys, values = append(keys, e.Key), append(values, sealer.seal(kindEntry, e.Key, uint64(e.Revision), e.Value))
		revisions, modified, expires, sizes = append(revisions, int64(e.Revision)), append(modified, micros(e.Modified)), append(expires, micros(e.Expires)), append(sizes, int64(len(e.Value)))
	}
	for _, r := range i.records {
		streams, contents = append(streams, r.Stream), append(contents, sealer.seal(kindRecord, r.Stream, uint64(r.Sequence), r.Data))
		sequences, made = append(sequences, int64(r.Sequence)), append(made, micros(r.Time))
	}
	i.entries, i.records, i.size = nil, nil, 0
	at := func(column string) string { return fmt.Sprintf(fromMicros, column) }
	_, _, err := i.s.callSealed(ctx, sealer, `WITH e AS (
			INSERT INTO headgate.entry (key, revision, modified, expires, size, sealed)
			SELECT k, r, `+at("m")+`, CASE WHEN x <> 0 THEN `+at("x")+` END, n, c FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bytea[]) AS p(k, r, m, x, n, c))
		INSERT INTO headgate.record (stream, sequence, made, sealed)
		SELECT s, q, `+at("m")+`, c FROM unnest($7::text[], $8::bigint[], $9::bigint[], $10::bytea[]) AS p(s, q, m, c)`,
		texts(keys), integers(revisions), integers(modified), integers(expires), integers(sizes), raws(values),
		texts(streams), integers(sequences), integers(made), raws(contents))
	return err
}

// end writes the rest, and that it is whole.
func (i *importer) end(ctx context.Context) error {
	if i.mark == nil {
		return errors.New("it is empty")
	}
	if err := i.write(ctx); err != nil {
		return err
	}
	var names []string
	var lasts []store.Sequence
	for name, last := range i.mark.Last {
		names, lasts = append(names, name), append(lasts, last)
	}
	id, err := i.mark.Position.ID.Bytes()
	if err != nil {
		return err
	}
	_, _, err = i.s.call(ctx, `WITH s AS (INSERT INTO headgate.stream (name, last) SELECT n, l FROM unnest($1::text[], $2::bigint[]) AS p(n, l))
		UPDATE headgate.head SET importing = false, revision = $3, id = $4, tokens = $5, log_size = 0`,
		texts(names), integers(lasts), integer(i.mark.Position.Revision), raw(id), integer(i.mark.Token))
	if err != nil {
		return err
	}
	i.s.mu.Lock()
	i.s.mu.lasts, i.s.mu.head = map[string]store.Sequence{}, i.mark.Position
	i.s.mu.Unlock()
	i.s.feed.restart(i.mark.Position)
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

// Inspect looks at the settings of the server.
func (s *Store) Inspect(ctx context.Context) (Check, error) {
	rows, _, err := s.call(ctx, `SELECT current_setting('server_version'), pg_is_in_recovery()::text, current_setting('synchronous_commit'),
		current_setting('synchronous_standby_names'), current_setting('fsync'), current_setting('server_version_num'), (SELECT count(*) FROM pg_stat_replication),
		(SELECT version FROM headgate.head)`)
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
	if number(r[6]) > 0 && string(r[3]) == "" {
		c.Notes = append(c.Notes, "the server has replicas and none is synchronous: a failover can lose changes that were acknowledged; set synchronous_standby_names")
	}
	return c, nil
}
