package store

import (
	"context"
	"errors"
	"iter"
)

// Source reads the state of an engine for an export.
type Source interface {
	// Snapshot is Store.Snapshot.
	Snapshot(ctx context.Context, prefix string) ([]Entry, Position, error)
	// Mark sets the fields of an export's mark, except the position.
	Mark(ctx context.Context, m *Mark) error
	// Records returns at most MaxPage records of a stream after a sequence and up to another, the
	// oldest first.
	Records(ctx context.Context, stream string, after, last Sequence) ([]Record, error)
}

// ExportFrom yields the whole content of a source: see Store.Export. The entries are a snapshot;
// records that are added during the export are left out.
func ExportFrom(ctx context.Context, s Source) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		entries, at, err := s.Snapshot(ctx, "")
		mark := Mark{Position: at, Last: map[string]Sequence{}}
		if err == nil {
			err = s.Mark(ctx, &mark)
		}
		if err != nil {
			yield(Item{}, err)
			return
		}
		if !yield(Item{Mark: &mark}, nil) {
			return
		}
		for i := range entries {
			if !yield(Item{Entry: &entries[i]}, nil) {
				return
			}
		}
		for name, last := range mark.Last {
			if !exportStream(ctx, s, name, last, yield) {
				return
			}
		}
	}
}

// exportStream yields the records of a stream, the oldest first. It reports whether the caller
// continues.
func exportStream(ctx context.Context, s Source, name string, last Sequence, yield func(Item, error) bool) bool {
	for after := Sequence(0); after < last; {
		page, err := s.Records(ctx, name, after, last)
		if err != nil {
			yield(Item{}, err)
			return false
		}
		if len(page) == 0 {
			return true
		}
		for i := range page {
			if !yield(Item{Record: &page[i]}, nil) {
				return false
			}
		}
		after = page[len(page)-1].Sequence
	}
	return true
}

// Portion is a part of an import that an engine writes in one commit.
type Portion struct {
	Entries []Entry
	Records []Record

	size int
}

func (p *Portion) add(item Item) error {
	if item.Entry != nil {
		if err := CheckKey(item.Entry.Key); err != nil {
			return err
		}
		p.Entries = append(p.Entries, *item.Entry)
		p.size += len(item.Entry.Value)
	} else if item.Record != nil {
		p.Records = append(p.Records, *item.Record)
		p.size += len(item.Record.Data)
	}
	return nil
}

func (p *Portion) full() bool {
	return len(p.Entries)+len(p.Records) >= MaxPage || p.size >= MaxChange
}

// ImportPortions reads an export and writes it in portions. A portion ends at MaxPage entries and
// records, or when it exceeds MaxChange bytes. The caller writes the returned mark after all portions.
func ImportPortions(ctx context.Context, items iter.Seq2[Item, error], write func(*Portion) error) (*Mark, error) {
	var mark *Mark
	part := &Portion{}
	for item, err := range items {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return nil, err
		}
		if mark == nil && item.Mark == nil {
			return nil, errors.New("it does not begin with a mark")
		}
		if item.Mark != nil {
			mark = item.Mark
		} else if err := part.add(item); err != nil {
			return nil, err
		}
		if part.full() {
			if err := write(part); err != nil {
				return nil, err
			}
			part = &Portion{}
		}
	}
	if mark == nil {
		return nil, errors.New("it is empty")
	}
	return mark, write(part)
}
