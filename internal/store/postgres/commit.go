package postgres

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"headgate/internal/store"
)

// maxTurns is how often a commit is sealed again because another node was faster.
const maxTurns = 100

// Commit makes a change: see store.Store.
func (s *Store) Commit(ctx context.Context, c store.Change) (store.Revision, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	if c.ID == "" {
		c.ID = store.NewID()
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	gone, err := s.overdueSessions(ctx, &c)
	if err != nil {
		return 0, err
	}
	c.Delete = slices.Concat(c.Delete, gone)
	return s.commit(ctx, &c, nil)
}

// expired is an entry that the engine removes.
type expired struct {
	key      string
	revision store.Revision
}

// commit calls the server until the change has its place. The writer's lock is held.
func (s *Store) commit(ctx context.Context, c *store.Change, over []expired) (store.Revision, error) {
	asked := false // the answer of a call was lost
	for range maxTurns {
		o, lost, err := s.try(ctx, c, over)
		switch {
		case lost && !asked && ctx.Err() == nil:
			asked = true // once more: if it was made, the log has its identifier
			continue
		case lost || err != nil && asked:
			return 0, fmt.Errorf("%w: %v", store.ErrUnknownOutcome, err)
		case err != nil:
			return 0, err
		}
		switch o.what {
		case "made":
			s.noteHead(store.Position{Revision: o.revision, ID: c.ID})
			s.wakeUp()
			return o.revision, nil
		case "head":
			if before, _ := s.known(); o.revision < before.Revision {
				s.closeIdle() // the database was set back, or emptied
			}
			s.noteHead(store.Position{Revision: o.revision, ID: store.IDOf(o.id)})
		case "stream":
			s.noteLast(o.name, store.Sequence(o.have))
		case "conflict":
			return 0, &store.Conflict{Key: o.name, Have: store.Revision(o.have)}
		case "fenced":
			return 0, fmt.Errorf("commit under lease %s: %w", o.name, store.ErrFenced)
		default:
			return 0, o.closed()
		}
	}
	return 0, fmt.Errorf("%w: other nodes were faster %d times", store.ErrUnavailable, maxTurns)
}

// outcome is the server's answer to a change.
type outcome struct {
	what     string
	revision store.Revision
	id       []byte
	name     string
	have     uint64
}

// closed returns the error of a store that takes no changes.
func (o *outcome) closed() error {
	switch o.what {
	case "importing":
		return fmt.Errorf("%w: an import is not finished; repeat it", store.ErrUnavailable)
	case "frozen":
		return fmt.Errorf("%w to %s", store.ErrMoved, o.name)
	}
	return fmt.Errorf("%w: the database answers %q", store.ErrUnavailable, o.what)
}

func outcomeOf(rows []row) (outcome, error) {
	if len(rows) != 1 || len(rows[0]) != 5 {
		return outcome{}, fmt.Errorf("%w: the database gave no answer", store.ErrUnavailable)
	}
	r := rows[0]
	return outcome{string(r[0]), store.Revision(number(r[1])), r[2], string(r[3]), number(r[4])}, nil
}

// try seals a change for its place after the newest commit that is known here, and sends
// it. Lost says that it may have been made although an error came back.
func (s *Store) try(ctx context.Context, c *store.Change, over []expired) (o outcome, lost bool, err error) {
	if s.sealer() == nil { // there was no connection yet
		if _, err := s.Now(ctx); err != nil {
			return o, false, err
		}
	}
	head, lasts := s.known()
	sealer := s.sealer()
	params, err := s.params(c, over, head, lasts, sealer)
	if err != nil {
		return o, false, err
	}
	rows, lost, err := s.callSealed(ctx, sealer, "SELECT * FROM headgate.change("+placeholders(len(params))+")", params...)
	if err == nil {
		o, err = outcomeOf(rows)
	}
	return o, lost, err
}

// placeholders returns $1, $2 and so on.
func placeholders(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "$%d", i+1)
	}
	return b.String()
}

// params returns the parameters of the function change.
func (s *Store) params(c *store.Change, over []expired, head store.Position, lasts map[string]store.Sequence, sealer *sealer) ([]param, error) {
	id, err := c.ID.Bytes()
	if err != nil {
		return nil, err
	}
	before, err := head.ID.Bytes()
	if err != nil {
		return nil, err
	}
	next := uint64(head.Revision) + 1
	var overKeys []string
	var overRevisions []store.Revision
	for _, e := range over {
		overKeys, overRevisions = append(overKeys, e.key), append(overRevisions, e.revision)
	}
	log, err := sealer.sealLog(c, slices.Concat(c.Delete, overKeys), head)
	if err != nil {
		return nil, err
	}
	var ifKeys, putKeys []string
	var ifRevisions []store.Revision
	var values [][]byte
	var sizes, ttls []int64
	for _, cond := range c.If {
		ifKeys, ifRevisions = append(ifKeys, cond.Key), append(ifRevisions, cond.Revision)
	}
	for _, e := range c.Put {
		putKeys, sizes, ttls = append(putKeys, e.Key), append(sizes, int64(len(e.Value))), append(ttls, e.TTL.Microseconds())
		values = append(values, sealer.seal(kindEntry, e.Key, next, e.Value))
	}
	leaseName, leaseToken := "", uint64(0)
	if c.Under != nil {
		leaseName, leaseToken = c.Under.Name, c.Under.Token
	}
	r := recordsFor(c.Append, lasts, sealer)
	return []param{
		raw(id), integer(head.Revision), raw(before), raw(log), texts(ifKeys), integers(ifRevisions),
		texts(putKeys), raws(values), integers(sizes), integers(ttls), texts(c.Delete), texts(overKeys), integers(overRevisions),
		text(leaseName), integer(leaseToken),
		texts(r.names), integers(r.lasts), integers(r.ages), integers(r.counts), texts(r.streams), integers(r.sequences), raws(r.sealed),
		integer(store.LogAge.Microseconds()), integer(s.logSize),
	}, nil
}

// appended are records in their places, as the function add takes them.
type appended struct {
	names     []string
	lasts     []store.Sequence
	ages      []int64
	counts    []int64
	streams   []string
	sequences []store.Sequence
	sealed    [][]byte
}

// recordsFor gives records their places after the last ones that are known. Streams are in
// order of their names, so that no two commits wait for each other.
func recordsFor(records []store.Record, lasts map[string]store.Sequence, sealer *sealer) (a appended) {
	next := map[string]store.Sequence{}
	for _, r := range records {
		if _, ok := next[r.Stream]; !ok {
			next[r.Stream] = lasts[r.Stream]
			a.names = append(a.names, r.Stream)
		}
		next[r.Stream]++
		a.streams, a.sequences = append(a.streams, r.Stream), append(a.sequences, next[r.Stream])
		a.sealed = append(a.sealed, sealer.seal(kindRecord, r.Stream, uint64(next[r.Stream]), r.Data))
	}
	slices.Sort(a.names)
	for _, name := range a.names {
		age, count := store.Retention(name)
		a.lasts, a.ages, a.counts = append(a.lasts, lasts[name]), append(a.ages, age.Microseconds()), append(a.counts, int64(count))
	}
	return a
}

// known returns the newest commit and the last records that are known here.
func (s *Store) known() (store.Position, map[string]store.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lasts := make(map[string]store.Sequence, len(s.mu.lasts))
	for name, last := range s.mu.lasts {
		lasts[name] = last
	}
	return s.mu.head, lasts
}

func (s *Store) noteHead(at store.Position) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.head = at
}

func (s *Store) noteLast(stream string, last store.Sequence) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.lasts[stream] = last
}

// Append adds records to a stream: see store.Store. When the answer is lost the error wraps
// store.ErrUnknownOutcome: to append once more could append twice.
func (s *Store) Append(ctx context.Context, stream string, records [][]byte) (store.Sequence, error) {
	c := store.Change{Append: make([]store.Record, len(records))}
	for i, data := range records {
		c.Append[i] = store.Record{Stream: stream, Data: data}
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	if s.sealer() == nil {
		if _, err := s.Now(ctx); err != nil {
			return 0, err
		}
	}
	s.writer.Lock()
	defer s.writer.Unlock()
	for range maxTurns {
		_, lasts := s.known()
		sealer := s.sealer()
		a := recordsFor(c.Append, lasts, sealer)
		if len(a.names) == 0 {
			return lasts[stream], nil
		}
		rows, lost, err := s.callSealed(ctx, sealer, "SELECT * FROM headgate.append($1, $2, $3, $4, $5, $6)",
			text(stream), integer(a.lasts[0]), integer(a.ages[0]), integer(a.counts[0]), integers(a.sequences), raws(a.sealed))
		if lost {
			return 0, fmt.Errorf("%w: %v", store.ErrUnknownOutcome, err)
		}
		if err != nil {
			return 0, err
		}
		o, err := outcomeOf(rows)
		switch {
		case err != nil:
			return 0, err
		case o.what == "made":
			last := a.sequences[len(a.sequences)-1]
			s.noteLast(stream, last)
			return last, nil
		case o.what == "stream":
			s.noteLast(o.name, store.Sequence(o.have))
		default:
			return 0, o.closed()
		}
	}
	return 0, fmt.Errorf("%w: other nodes were faster %d times", store.ErrUnavailable, maxTurns)
}

// overdueSessions returns the sessions that make room for those of a change: the ones that
// were written longest ago.
func (s *Store) overdueSessions(ctx context.Context, c *store.Change) ([]string, error) {
	added := map[string]bool{}
	for _, e := range c.Put {
		if strings.HasPrefix(e.Key, store.PrefixSession) {
			added[e.Key] = true
		}
	}
	if len(added) == 0 {
		return nil, nil
	}
	rows, _, err := s.call(ctx, "SELECT key, revision FROM headgate.entry WHERE key >= $1 AND key < $2", text(store.PrefixSession), text(endOf(store.PrefixSession)))
	if err != nil {
		return nil, err
	}
	var have []expired
	for _, r := range rows {
		key := string(r[0])
		if !added[key] && !slices.Contains(c.Delete, key) {
			have = append(have, expired{key, store.Revision(number(r[1]))})
		}
	}
	slices.SortFunc(have, func(a, b expired) int { return cmp.Compare(a.revision, b.revision) })
	var gone []string
	for _, e := range have[:max(min(len(have)+len(added)-store.MaxSessions, len(have)), 0)] {
		gone = append(gone, e.key)
	}
	return gone, nil
}

// sweep removes the entries that have expired, as commits of the engine. Another node may
// do it at the same time.
func (s *Store) sweep(ctx context.Context) error {
	for {
		rows, _, err := s.call(ctx, "SELECT key, revision FROM headgate.entry WHERE expires <= headgate.now() ORDER BY expires LIMIT $1", integer(store.MaxOperations))
		if err != nil || len(rows) == 0 {
			return err
		}
		var over []expired
		for _, r := range rows {
			over = append(over, expired{string(r[0]), store.Revision(number(r[1]))})
		}
		s.writer.Lock()
		_, err = s.commit(ctx, &store.Change{ID: store.NewID(), Who: "store", Why: "expired"}, over)
		s.writer.Unlock()
		if err != nil {
			return err
		}
	}
}

// sweepEvery is how often expired entries are removed. They are not read any more before.
const sweepEvery = 30 * time.Second
