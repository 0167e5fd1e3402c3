package store

import (
	"bytes"
	"slices"
	"strings"
	"sync"
)

// The limits of a feed, in addition to LogAge.
const (
	maxFeed      = 4096    // commits
	maxFeedBytes = 8 << 20 // of keys and values, with their overhead
)

// Feed keeps the newest commits of an engine in memory, for its watches: at most 4096 with 8 MiB,
// none older than LogAge. Init must be called first; then its methods may be called by several
// goroutines at once.
type Feed struct {
	mu struct {
		sync.Mutex
		batches []Batch  // in order
		bytes   int      // as sizeOf counts them
		base    Revision // commits up to it are not in the feed
		at      Position // the newest commit
		chain   int      // how often Restart was called
		wake    chan struct{}
		away    error
		closed  bool
	}
}

// Init prepares an empty feed.
func (f *Feed) Init() { f.mu.wake = make(chan struct{}) }

func (f *Feed) wakeLocked() {
	close(f.mu.wake)
	f.mu.wake = make(chan struct{})
}

// Restart removes all commits; the next commit follows the given position.
func (f *Feed) Restart(at Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.batches, f.mu.bytes, f.mu.base, f.mu.at = nil, 0, at.Revision, at
	f.mu.chain++
	f.wakeLocked()
}

// Position returns the position of the newest commit.
func (f *Feed) Position() Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.mu.at
}

// Add adds the commit that follows the newest one. The feed keeps its argument.
func (f *Feed) Add(b Batch) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.batches, f.mu.at = append(f.mu.batches, b), b.Position
	f.mu.bytes += sizeOf(&b)
	for len(f.mu.batches) > 0 && f.tooLargeLocked(&b) {
		f.mu.bytes -= sizeOf(&f.mu.batches[0])
		f.mu.base = f.mu.batches[0].Revision
		f.mu.batches[0] = Batch{}
		f.mu.batches = f.mu.batches[1:]
	}
	f.wakeLocked()
}

// tooLargeLocked reports whether the oldest commit must be removed.
func (f *Feed) tooLargeLocked(newest *Batch) bool {
	return len(f.mu.batches) > maxFeed || f.mu.bytes > maxFeedBytes || newest.Time.Sub(f.mu.batches[0].Time) > LogAge
}

func sizeOf(b *Batch) int {
	n := 128
	for _, e := range b.Put {
		n += 128 + len(e.Key) + len(e.Value)
	}
	for _, key := range b.Delete {
		n += 32 + len(key)
	}
	return n
}

// SetAway makes watches end with an error while the engine cannot be read; nil means that it can be
// read again.
func (f *Feed) SetAway(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.away = err
	if err != nil {
		f.wakeLocked()
	}
}

// Close ends the watches with ErrClosed.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.mu.closed = true
	f.wakeLocked()
}

// Since is the content of a feed after a revision.
type Since struct {
	// Batches are the commits, for reading only.
	Batches []Batch
	// Whole is false if the feed lacks some of them: the revision is older than the feed, or is not
	// reached yet.
	Whole bool
	// Chain changes with each Restart: a watch must then compare its position with the log again.
	Chain int
	// Wake is closed when there are more commits, or the state of the feed has changed.
	Wake <-chan struct{}
}

// After returns the commits after a revision. The error is that of SetAway, or ErrClosed.
func (f *Feed) After(at Revision) (Since, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.mu.closed {
		return Since{}, ErrClosed
	}
	if f.mu.away != nil {
		return Since{}, f.mu.away
	}
	i, _ := slices.BinarySearchFunc(f.mu.batches, at, func(b Batch, at Revision) int {
		if b.Revision > at {
			return 1
		}
		return -1
	})
	return Since{slices.Clone(f.mu.batches[i:]), at >= f.mu.base && at <= f.mu.at.Revision, f.mu.chain, f.mu.wake}, nil
}

// Under returns a copy of the part of a commit that concerns keys with a prefix. It reports false if
// there is none; without a prefix, it always reports true.
func (b *Batch) Under(prefix string) (part Batch, ok bool) {
	part = Batch{Position: b.Position, Before: b.Before, Time: b.Time, Who: b.Who, Why: b.Why}
	for _, e := range b.Put {
		if strings.HasPrefix(e.Key, prefix) {
			e.Value = bytes.Clone(e.Value)
			part.Put = append(part.Put, e)
		}
	}
	for _, key := range b.Delete {
		if strings.HasPrefix(key, prefix) {
			part.Delete = append(part.Delete, key)
		}
	}
	return part, prefix == "" || len(part.Put)+len(part.Delete) > 0
}
