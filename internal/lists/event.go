package lists

import "time"

// Event is something that happened to a list which an operator may want to hear of.
type Event struct {
	// Kind says what.
	Kind EventKind
	// List is the name of the list, Source where its entries come from.
	List, Source string
	// Entries is how many it has, Before how many it had.
	Entries, Before int
	// Loaded is when its entries were loaded last; zero if they never were.
	Loaded time.Time
	// Cause says why its source could not be used.
	Cause string
}

// EventKind is what happened to a list.
type EventKind int

// The kinds of events.
const (
	EventLoaded EventKind = iota // it has other entries, or its source can be used again
	EventFailed                  // its source cannot be used
	EventShrunk                  // its source has lost most of its entries, and is not used
	EventStale                   // it could not be loaded for long; the entries before are used
)

// minStale is for how long a list has not been loaded at least that is stale; for one that
// is loaded seldom it is three times its interval.
const minStale = 24 * time.Hour

// staleAfter returns for how long the list must not have been loaded to be stale.
func (l *List) staleAfter() time.Duration {
	switch c := l.settings; {
	case c.URL != "":
		return max(minStale, 3*c.Interval.D())
	case c.CrowdSec != nil:
		return max(minStale, 3*c.CrowdSec.Interval.D())
	}
	return 0 // files and names say when they fail
}

// becameStaleLocked reports whether the list is stale now and was not before.
func (l *List) becameStaleLocked(now time.Time) bool {
	s, after := &l.mu.state, l.staleAfter()
	if after == 0 || s.Loaded.IsZero() || l.mu.stale || now.Sub(s.Loaded) < after {
		return false
	}
	l.mu.stale = true
	return true
}

// notify publishes an event.
func (l *List) notify(kind EventKind, entries, before int, loaded time.Time, cause string) {
	if l.o.Notify != nil {
		l.o.Notify(Event{kind, l.name, l.settings.Source(), entries, before, loaded, cause})
	}
}
