package memory

import (
	"context"
	"slices"

	"headgate/internal/store"
)

func (s *Store) appendLocked(name string, data []byte) store.Sequence {
	st := s.mu.streams[name]
	if st == nil {
		st = &stream{}
		s.mu.streams[name] = st
	}
	st.last++
	st.records = append(st.records, store.Record{Stream: name, Sequence: st.last, Time: s.clock(), Data: slices.Clone(data)})
	age, limit := store.Retention(name)
	old := max(len(st.records)-limit, 0)
	for old < len(st.records) && s.clock().Sub(st.records[old].Time) > age {
		old++
	}
	st.records = slices.Delete(st.records, 0, old)
	return st.last
}

// Append adds records to a stream.
func (s *Store) Append(ctx context.Context, name string, records [][]byte) (store.Sequence, error) {
	c := store.Change{Append: make([]store.Record, len(records))}
	for i, data := range records {
		c.Append[i] = store.Record{Stream: name, Data: data}
	}
	if err := c.Check(); err != nil {
		return 0, err
	}
	if err := s.lock(ctx); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	if err := s.writableLocked(); err != nil {
		return 0, err
	}
	var last store.Sequence
	for _, data := range records {
		last = s.appendLocked(name, data)
	}
	return last, nil
}

// Page returns records, the newest first.
func (s *Store) Page(ctx context.Context, name string, before store.Sequence, n int) ([]store.Record, error) {
	if err := store.CheckName(name); err != nil {
		return nil, err
	}
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	st := s.mu.streams[name]
	if st == nil {
		return nil, nil
	}
	n = min(max(n, 1), store.MaxPage)
	var all []store.Record
	for _, r := range slices.Backward(st.records) {
		if (before == 0 || r.Sequence < before) && len(all) < n {
			r.Data = slices.Clone(r.Data)
			all = append(all, r)
		}
	}
	return all, nil
}
