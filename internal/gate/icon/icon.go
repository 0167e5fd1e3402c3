// Package icon finds the icons of applications for the page that lists them: it requests the
// first page of an application from its servers, reads which icons the page names, and keeps
// the best one that can be had. Nothing is requested from another host.
package icon

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/exchange"
)

// The bounds of what is kept and of what runs.
const (
	// keepFound is how long an icon is used before it is searched for again, keepNone how long
	// an application counts as one without an icon.
	keepFound = 24 * time.Hour
	keepNone  = 10 * time.Minute
	// maxKept is how many applications are remembered, the most recently searched.
	maxKept = 256
	// atOnce is how many searches run at a time.
	atOnce = 4
	// patience is how long a request waits for a search. The search goes on.
	patience = 5 * time.Second
)

// Icon is an image. It is immutable.
type Icon struct {
	// Data has at most 64 KiB.
	Data []byte
	// Type is its media type: PNG, JPEG, WebP, GIF, SVG or ICO.
	Type string
}

// Finder finds icons and keeps them. Its methods may be called by several goroutines at once.
type Finder struct {
	places  chan struct{}
	stop    context.CancelFunc
	ctx     context.Context
	running sync.WaitGroup

	mu    sync.Mutex
	known map[string]*entry // by host
}

// entry is what is known of an application.
type entry struct {
	begun int64         // the moment of the search
	done  chan struct{} // closed when it ended; icon and until are constant from then on
	icon  *Icon         // nil for none
	until int64
}

// New returns a Finder. Close ends its searches.
func New() *Finder {
	f := &Finder{places: make(chan struct{}, atOnce), known: map[string]*entry{}}
	f.ctx, f.stop = context.WithCancel(context.Background())
	return f
}

// Close ends all searches. Of finds nothing from then on.
func (f *Finder) Close() {
	f.stop()
	f.running.Wait()
}

// Of returns the icon of the application that has a host and is answered by source, nil for
// none. It waits for a search for at most 5 s; a later call gets what that finds.
func (f *Finder) Of(host string, source exchange.Source) *Icon {
	e := f.entry(host, source)
	if e == nil {
		return nil
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-e.done:
		return e.icon
	case <-timer.C:
	case <-f.ctx.Done():
	}
	return nil
}

// entry returns what is known of an application, and starts a search if that is nothing or old.
func (f *Finder) entry(host string, source exchange.Source) *entry {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return nil
	}
	now := clock.Now()
	if e := f.known[host]; e != nil && !e.outdated(now) {
		return e
	}
	if len(f.known) >= maxKept {
		f.dropOldest()
	}
	e := &entry{begun: now, done: make(chan struct{})}
	f.known[host] = e
	f.running.Go(func() {
		defer close(e.done)
		select {
		case f.places <- struct{}{}:
			defer func() { <-f.places }()
		case <-f.ctx.Done():
			return
		}
		keep := keepNone
		if e.icon = search(f.ctx, host, source); e.icon != nil {
			keep = keepFound
		}
		e.until = clock.Now() + int64(keep)
	})
	return e
}

// outdated reports whether a search has ended and its result is too old.
func (e *entry) outdated(now int64) bool {
	select {
	case <-e.done:
		return now >= e.until
	default:
		return false
	}
}

func (f *Finder) dropOldest() {
	oldest := slices.MinFunc(slices.Collect(maps.Keys(f.known)), func(a, b string) int { return cmp.Compare(f.known[a].begun, f.known[b].begun) })
	delete(f.known, oldest)
}
