package bans

import (
	"encoding/json"
	"maps"
	"strings"
	"time"

	"headgate/internal/store"
)

// Unsaved is a change that is not in the store yet, for a process that replaces this one.
type Unsaved struct {
	Key   string          `json:"key"`
	Value json.RawMessage `json:"value,omitempty"` // absent for one that is deleted
	TTL   time.Duration   `json:"ttl,omitempty"`
}

// Unsaved returns what is not in the store yet.
func (e *Engine) Unsaved() (all []Unsaved) {
	e.mu.Lock()
	defer e.mu.Unlock()
	merged := maps.Clone(e.mu.writing)
	if merged == nil {
		merged = map[string]store.Entry{}
	}
	maps.Copy(merged, e.mu.dirty)
	for key, entry := range merged {
		all = append(all, Unsaved{key, entry.Value, entry.TTL})
	}
	return all
}

// Restore accepts what the process before had not saved, and saves it. published says that
// the process before has published the events of it.
func (e *Engine) Restore(all []Unsaved, published bool) {
	for _, u := range all {
		if !strings.HasPrefix(u.Key, store.PrefixBan) {
			continue
		}
		b, fresh := e.restoreOne(u)
		if fresh && !published {
			e.began(b)
		}
	}
}

// restoreOne accepts one change. It returns the ban if that is in force from now on.
func (e *Engine) restoreOne(u Unsaved) (b *Ban, fresh bool) {
	id, isBan := banIDOf(u.Key)
	before := e.banAt(id)
	e.accept(u.Key, u.Value)
	b = e.banAt(id)
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, newer := e.mu.dirty[u.Key]; !newer {
		e.mu.dirty[u.Key] = store.Entry{Key: u.Key, Value: u.Value, TTL: u.TTL}
	}
	return b, isBan && b != nil && b != before
}

// banAt returns the ban of a client, nil for none.
func (e *Engine) banAt(id banID) *Ban {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.mu.all[id]
}
