package control

import (
	"sync/atomic"

	"headgate/internal/accesslog/recent"
	"headgate/internal/config"
)

// rings is the memory of recent requests as a participant. What it holds outlives
// every change that leaves its settings alone.
type rings struct{ current atomic.Pointer[ring] }

// ring is a memory with the settings that it has.
type ring struct {
	settings config.Recent
	*recent.Ring
}

// Recent returns what holds the last requests, nil if they are not kept.
func (c *Control) Recent() *recent.Ring { return c.rings.current.Load().held() }

// held returns the ring of r, which may be nil.
func (r *ring) held() *recent.Ring {
	if r == nil {
		return nil
	}
	return r.Ring
}

// next returns the ring of a configuration: nil for none, and the one in use if its
// settings are the same.
func (r *rings) next(cfg *config.Config) *ring {
	now, settings := r.current.Load(), cfg.AccessLog.Recent
	switch {
	case !settings.Enabled:
		return nil
	case now != nil && now.settings == settings:
		return now
	}
	return &ring{settings, recent.New(recent.Config{Size: int64(settings.MemoryLimit)})}
}

// Prepare opens nothing: memory is taken as it is used.
func (r *rings) Prepare(next *Next) (Change, error) { return ringChange{r, next.ring}, nil }

type ringChange struct {
	rings *rings
	next  *ring
}

// Commit ends those who follow a ring that is not in use any more. Exchanges that
// began before may still be put into it.
func (ch ringChange) Commit() {
	if old := ch.rings.current.Swap(ch.next); old != nil && old != ch.next {
		old.Retire()
	}
}

// Cancel does nothing: the new ring was not used yet.
func (ringChange) Cancel() {}
