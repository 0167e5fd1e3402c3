package gate

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"headgate/internal/store"
)

// Opening is a gate that is open for everyone for a while, because an operator said so.
type Opening struct {
	// Host is the host of the application.
	Host string `json:"host"`
	// Until is when the gate closes by itself.
	Until time.Time `json:"until"`
	// Who opened the gate.
	Who string `json:"who"`
	// Why is the reason that was given.
	Why string `json:"why,omitempty"`
}

// MaxOpening is how long a gate can be open at most.
const MaxOpening = 24 * time.Hour

// openings are the gates that are open. Requests without a session read all.
type openings struct {
	mu  sync.Mutex // of changes
	all atomic.Pointer[map[string]Opening]
}

func (o *openings) set(host string, one *Opening, at time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	next := map[string]Opening{}
	if now := o.all.Load(); now != nil {
		for h, other := range *now {
			if at.Before(other.Until) {
				next[h] = other
			}
		}
	}
	delete(next, host)
	if one != nil {
		next[host] = *one
	}
	if len(next) == 0 {
		o.all.Store(nil)
		return
	}
	o.all.Store(&next)
}

// IsOpen reports whether an operator has opened the gate of a host.
func (e *Engine) IsOpen(host string) bool {
	all := e.openings.all.Load()
	if all == nil {
		return false
	}
	o, ok := (*all)[host]
	return ok && e.time().Before(o.Until)
}

// Openings returns the gates that are open, by host.
func (e *Engine) Openings() (out []Opening) {
	if all := e.openings.all.Load(); all != nil {
		for _, o := range *all {
			if e.time().Before(o.Until) {
				out = append(out, o)
			}
		}
	}
	slices.SortFunc(out, func(a, b Opening) int { return cmp.Compare(a.Host, b.Host) })
	return out
}

// audit makes the record of a change; nil for none.
type audit = func(action, object, why string, before, after any) store.Record

func recordOf(a audit, action, host, why string, before, after any) []store.Record {
	if a == nil {
		return nil
	}
	return []store.Record{a(action, "host "+host, why, before, after)}
}

// Open opens the gate of a host for everyone for a while, on all nodes. With dry it only
// returns what it would be.
func (e *Engine) Open(host string, d time.Duration, who, why string, a audit, dry bool) (Opening, error) {
	o := Opening{Host: host, Until: e.time().UTC().Add(d).Truncate(time.Second), Who: who, Why: why}
	if dry {
		return o, nil
	}
	value, err := json.Marshal(o)
	if err != nil {
		return o, err
	}
	_, err = e.commit(store.Change{
		Put: []store.Entry{{Key: store.PrefixGateOpen + host, Value: value, TTL: d}}, Append: recordOf(a, "gate.open", host, why, nil, o), Who: who, Why: why,
	})
	if err == nil {
		e.openings.set(host, &o, e.time())
	}
	return o, err
}

// CloseOpening closes the gate of a host again, and reports whether it was open.
func (e *Engine) CloseOpening(host, who string, a audit, dry bool) (bool, error) {
	if !e.IsOpen(host) || dry {
		return e.IsOpen(host), nil
	}
	_, err := e.commit(store.Change{Delete: []string{store.PrefixGateOpen + host}, Append: recordOf(a, "gate.close", host, "", nil, nil), Who: who})
	if err == nil {
		e.openings.set(host, nil, e.time())
	}
	return true, err
}

// acceptOpening reads an entry of the store: what this node wrote itself, or another.
func (e *Engine) acceptOpening(entry *store.Entry) {
	var o Opening
	if json.Unmarshal(entry.Value, &o) == nil && o.Host == strings.TrimPrefix(entry.Key, store.PrefixGateOpen) {
		e.openings.set(o.Host, &o, e.time())
	}
}
