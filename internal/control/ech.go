package control

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/certs/ech"
	"headgate/internal/config"
	"headgate/internal/store"
)

const (
	// echLook is how often the age of the keys is looked at.
	echLook = 10 * time.Minute
	// echTime bounds one look.
	echTime = 30 * time.Second
)

// echKeys are the keys of Encrypted Client Hello by their public names. They are in the store,
// so that all machines that share it, and this one after a restart, have the same. Without a
// public name in the configuration, nothing is done.
type echKeys struct {
	// constant
	store   store.Store
	log     *slog.Logger
	wake    chan struct{} // the configuration or the store has changed
	renewed func()        // is called after the keys may have changed

	mu struct {
		sync.Mutex
		rings map[string]*ech.Ring // by public name
		used  map[string]bool      // public names of the configuration
	}
}

// newECHKeys reads the keys that are kept, so that the first handshakes find them.
func newECHKeys(state store.Store, log *slog.Logger) *echKeys {
	k := &echKeys{store: state, log: log, wake: make(chan struct{}, 1), renewed: func() {}}
	k.mu.rings, k.mu.used = map[string]*ech.Ring{}, map[string]bool{}
	ctx, stop := context.WithTimeout(context.Background(), keyWait)
	defer stop()
	entries, now, err := k.read(ctx, 0)
	if err != nil {
		log.Warn("the keys of Encrypted Client Hello cannot be read: names of hosts are not hidden", "error", err)
		return k
	}
	for _, e := range entries {
		name := strings.TrimPrefix(e.Key, store.PrefixECH)
		k.ring(name).Set(k.parse(e, name), now)
	}
	return k
}

// read returns what the store has, and its time, which is not asked for without a key and
// without a public name in use: then nothing is due.
func (k *echKeys) read(ctx context.Context, used int) (entries []store.Entry, now time.Time, err error) {
	entries, _, err = k.store.Snapshot(ctx, store.PrefixECH)
	if err != nil || len(entries)+used == 0 {
		return entries, now, err
	}
	now, err = k.store.Now(ctx)
	return entries, now, err
}

// ring returns the keys of a public name. It has none until the name is used.
func (k *echKeys) ring(name string) *ech.Ring {
	k.mu.Lock()
	defer k.mu.Unlock()
	r := k.mu.rings[name]
	if r == nil {
		r = ech.NewRing(name)
		k.mu.rings[name] = r
	}
	return r
}

// parse returns the keys of an entry of the store.
func (k *echKeys) parse(e store.Entry, name string) ech.Keys {
	if e.Value == nil {
		return nil
	}
	keys, err := ech.Parse(e.Value, name)
	if err != nil {
		k.log.Error("keys of Encrypted Client Hello cannot be read, and are not accepted", "public_name", name, "error", err)
	}
	return keys
}

// Prepare opens nothing. It makes the keys a participant.
func (k *echKeys) Prepare(next *Next) (Change, error) { return echChange{k, next.Config}, nil }

type echChange struct {
	*echKeys
	config *config.Config
}

// Commit has keys made for new public names. A change does not wait for the store.
func (ch echChange) Commit() {
	k := ch.echKeys
	used := map[string]bool{}
	for _, port := range ch.config.Ports {
		if port.Active && port.TLS.ECH != nil {
			used[port.TLS.ECH.Name()] = true
		}
	}
	k.mu.Lock()
	changed := !maps.Equal(used, k.mu.used)
	k.mu.used = used
	maps.DeleteFunc(k.mu.rings, func(name string, _ *ech.Ring) bool { return !used[name] }) // also those of changes that were not made
	k.mu.Unlock()
	if changed {
		k.notify()
	}
}

// Cancel does nothing.
func (echChange) Cancel() {}

// notify has the store looked at.
func (k *echKeys) notify() {
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

// run makes, publishes and removes keys in time, until ctx ends.
func (k *echKeys) run(ctx context.Context) {
	look := time.NewTimer(echLook)
	defer look.Stop()
	for {
		more := k.update(ctx)
		k.renewed()
		if more {
			look.Reset(echLook)
		} else {
			look.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-k.wake:
		case <-look.C:
		}
	}
}

// update uses the keys of the store, after it has renewed those that are due. It reports
// whether there is anything to look at later.
func (k *echKeys) update(ctx context.Context) (more bool) {
	ctx, stop := context.WithTimeout(ctx, echTime)
	defer stop()
	k.mu.Lock()
	used := maps.Clone(k.mu.used)
	k.mu.Unlock()
	entries, now, err := k.read(ctx, len(used))
	if err != nil {
		if ctx.Err() == nil && len(used) > 0 {
			k.log.Warn("the keys of Encrypted Client Hello are not looked at now", "error", err)
		}
		return len(used) > 0
	}
	kept := map[string]store.Entry{}
	for _, e := range entries {
		kept[strings.TrimPrefix(e.Key, store.PrefixECH)] = e
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		k.updateName(ctx, name, kept[name], now)
		delete(kept, name)
	}
	k.removeOld(ctx, kept, now)
	return len(used)+len(kept) > 0
}

// updateName uses the keys of a public name, whose entry may be the zero one.
func (k *echKeys) updateName(ctx context.Context, name string, e store.Entry, now time.Time) {
	keys := k.parse(e, name)
	renewed, changed := keys.Renew(name, now)
	if changed {
		key := store.PrefixECH + name
		_, err := k.store.Commit(ctx, store.Change{
			If: []store.Condition{{Key: key, Revision: e.Revision}}, Put: []store.Entry{{Key: key, Value: renewed.JSON()}}, Why: "keys of Encrypted Client Hello",
		})
		switch {
		case err == nil:
			keys = renewed
			k.log.Info("the keys of Encrypted Client Hello have changed", "public_name", name, "keys", len(keys))
		case errors.As(err, new(*store.Conflict)):
			k.notify() // another machine was first
		case ctx.Err() == nil && len(keys) == 0:
			k.log.Warn("there is no key of Encrypted Client Hello, and none can be kept now: names of hosts are not hidden", "public_name", name, "error", err)
		case ctx.Err() == nil:
			k.log.Info("the keys of Encrypted Client Hello are not renewed now", "public_name", name, "error", err)
		}
	}
	k.ring(name).Set(keys, now)
}

// removeOld removes the keys of public names that the configuration has no longer, when no
// client can have them in a cache.
func (k *echKeys) removeOld(ctx context.Context, kept map[string]store.Entry, now time.Time) {
	for name, e := range kept {
		if now.Sub(e.Modified) < ech.Retention {
			continue
		}
		_, err := k.store.Commit(ctx, store.Change{If: []store.Condition{{Key: e.Key, Revision: e.Revision}}, Delete: []string{e.Key}, Why: "the public name is not used"})
		if err != nil && ctx.Err() == nil {
			k.log.Info("old keys of Encrypted Client Hello are not removed now", "public_name", name, "error", err)
		}
	}
}
