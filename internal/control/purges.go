package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"headgate/internal/feature/cache"
	"headgate/internal/store"
)

// purgeRecord is the value of store.KeyPurge: the purge that was requested last.
type purgeRecord struct {
	// Sequence grows by one with each.
	Sequence uint64      `json:"sequence"`
	Node     string      `json:"node"`
	Purge    cache.Purge `json:"purge"`
}

// purges follows the purges that other machines request. One that missed some empties its
// caches: what they were about is not known any more.
type purges struct {
	mu   sync.Mutex
	seen uint64 // the sequence of the last that was carried out here
}

// Purge takes responses out of the caches of the running configuration. It returns how many
// there were on this machine, and of how many caches. Machines that share a store all purge;
// the error says that the store could not be reached, and nothing was purged then.
func (c *Control) Purge(ctx context.Context, q cache.Purge) (purged, caches int, err error) {
	p := c.Plan()
	if p == nil {
		return 0, 0, nil
	}
	if c.shared && !q.Count {
		c.purges.mu.Lock()
		defer c.purges.mu.Unlock()
		if err := c.recordPurgeLocked(ctx, q); err != nil {
			return 0, 0, fmt.Errorf("purge on all machines: %w", err)
		}
	}
	purged, caches = c.purgeHere(q)
	return purged, caches, nil
}

// purgeHere purges on this machine.
func (c *Control) purgeHere(q cache.Purge) (purged, caches int) {
	p := c.Plan()
	if p == nil {
		return 0, 0
	}
	if purged, caches = p.Purge(q); q.Count {
		return purged, caches
	}
	c.log.Info("purged", "responses", purged, "proxy", q.Proxy, "url", q.URL, "prefix", q.Prefix, "tag", q.Tag, "all", q.All, "soft", q.Soft)
	return purged, caches
}

// recordPurgeLocked has the other machines purge.
func (c *Control) recordPurgeLocked(ctx context.Context, q cache.Purge) error {
	for {
		last, at, err := c.lastPurge(ctx)
		if err != nil {
			return err
		}
		r := purgeRecord{Sequence: last.Sequence + 1, Node: c.options.Node, Purge: q}
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = c.state.Commit(ctx, store.Change{
			If: []store.Condition{{Key: store.KeyPurge, Revision: at}}, Put: []store.Entry{{Key: store.KeyPurge, Value: data}}, Why: "purge",
		})
		if errors.As(err, new(*store.Conflict)) && ctx.Err() == nil {
			continue // another machine has purged
		}
		return err
	}
}

// lastPurge returns the purge that was requested last, and the revision of its entry.
func (c *Control) lastPurge(ctx context.Context) (r purgeRecord, at store.Revision, err error) {
	e, err := c.state.Get(ctx, store.KeyPurge)
	if errors.Is(err, store.ErrNotFound) {
		return r, 0, nil
	}
	if err == nil {
		err = json.Unmarshal(e.Value, &r)
	}
	return r, e.Revision, err
}

// followPurge carries out the purge of a commit, or that requested last for a value of nil.
func (c *Control) followPurge(ctx context.Context, value []byte) {
	r := purgeRecord{}
	var err error
	if value == nil {
		r, _, err = c.lastPurge(ctx)
	} else {
		err = json.Unmarshal(value, &r)
	}
	if err != nil {
		c.log.Warn("the purge of another machine cannot be read", "error", err)
		return
	}
	c.purges.mu.Lock()
	defer c.purges.mu.Unlock()
	missed := r.Sequence > c.purges.seen+1
	known := r.Sequence <= c.purges.seen
	c.purges.seen = max(c.purges.seen, r.Sequence)
	switch {
	case known:
	case missed:
		c.log.Info("purges of other machines were missed: all caches are emptied", "last", r.Sequence)
		c.purgeHere(cache.Purge{All: true})
	case r.Node != c.options.Node:
		c.purgeHere(r.Purge)
	}
}

// startPurges takes the purges until now as carried out: the caches are empty at a start.
func (c *Control) startPurges(ctx context.Context) {
	if r, _, err := c.lastPurge(ctx); err == nil {
		c.purges.seen = r.Sequence
	}
}
