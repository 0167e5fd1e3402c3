package people

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"headgate/internal/clock"
	"headgate/internal/store"
)

// directory is what every node has in memory of people: what requests of running sessions
// need, without the store.
type directory struct {
	mu  sync.RWMutex
	all map[string]*Listed // by name; guarded by mu
}

// Listed is what the directory has of a person. It is immutable.
type Listed struct {
	// Name, FullName, Email and Groups are those of the person.
	Name, FullName, Email string
	Groups                []string
	// Disabled is whether the person cannot sign in.
	Disabled bool
	// Generation changes with everything that ends the sessions of the person.
	Generation int
	// Hosts are the sign-in hosts of the person's passkeys, one for each.
	Hosts []string

	revision store.Revision
}

func (l *Listed) same(o *Listed) bool {
	return l.Name == o.Name && l.FullName == o.FullName && l.Email == o.Email && slices.Equal(l.Groups, o.Groups) &&
		l.Disabled == o.Disabled && l.Generation == o.Generation
}

func (d *directory) count() int {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return len(d.all)
}

// Listed returns what the directory has of a person, nil if there is none.
func (p *People) Listed(name string) *Listed {
	p.directory.mu.RLock()
	defer p.directory.mu.RUnlock()
	return p.directory.all[name]
}

// PasskeyHosts returns how many passkeys people have, by the sign-in host of the passkeys.
func (p *People) PasskeyHosts() map[string]int {
	p.directory.mu.RLock()
	defer p.directory.mu.RUnlock()
	all := map[string]int{}
	for _, l := range p.directory.all {
		for _, host := range l.Hosts {
			all[host]++
		}
	}
	return all
}

// Count returns how many people there are.
func (p *People) Count() int { return p.directory.count() }

// learn notes an account as it is in the store now.
func (p *People) learn(a *account, r store.Revision) {
	next := &Listed{
		Name: a.Name, FullName: a.FullName, Email: a.Email, Groups: a.Groups, Disabled: a.Disabled, Generation: a.Generation, revision: r,
	}
	for i := range a.Keys {
		next.Hosts = append(next.Hosts, a.Keys[i].Host)
	}
	p.directory.mu.Lock()
	was := p.directory.all[a.Name]
	if was != nil && was.revision >= r {
		p.directory.mu.Unlock()
		return // what this node has written comes from the store, too
	}
	p.directory.all[a.Name] = next
	p.directory.mu.Unlock()
	if p.changed != nil && (was == nil || !was.same(next)) {
		p.changed(a.Name)
	}
}

// unlearn notes that there is no such person.
func (p *People) unlearn(name string) {
	p.directory.mu.Lock()
	_, was := p.directory.all[name]
	delete(p.directory.all, name)
	p.directory.mu.Unlock()
	if was && p.changed != nil {
		p.changed(name)
	}
}

// The times of following the store.
const (
	storeTimeout = 10 * time.Second
	followAgain  = 2 * time.Second
)

// restore reads all accounts. It returns the position from which on changes are followed.
func (p *People) restore(ctx context.Context) store.Position {
	ctx, stop := context.WithTimeout(ctx, storeTimeout)
	defer stop()
	entries, at, err := p.o.Store.Snapshot(ctx, keyAccount)
	if err != nil {
		p.o.Log.Error("people cannot be read", "error", err)
		return store.Position{}
	}
	there := map[string]bool{}
	for i := range entries {
		p.accept(&entries[i])
		there[strings.TrimPrefix(entries[i].Key, keyAccount)] = true
	}
	p.directory.mu.RLock()
	var gone []string
	for name := range p.directory.all {
		if !there[name] {
			gone = append(gone, name)
		}
	}
	p.directory.mu.RUnlock()
	for _, name := range gone {
		p.unlearn(name)
	}
	return at
}

func (p *People) accept(e *store.Entry) {
	a := &account{}
	if err := json.Unmarshal(e.Value, a); err != nil || a.Name != strings.TrimPrefix(e.Key, keyAccount) {
		p.o.Log.Error("a person cannot be read", "person", strings.TrimPrefix(e.Key, keyAccount), "error", err)
		return
	}
	p.learn(a, e.Revision)
}

// follow takes what other nodes write.
func (p *People) follow(ctx context.Context, after store.Position) {
	for ctx.Err() == nil {
		for batch, err := range p.o.Store.Watch(ctx, keyAccount, after) {
			if err != nil {
				if errors.Is(err, store.ErrTooOld) || errors.Is(err, store.ErrRewound) {
					after = p.restore(ctx)
				}
				break
			}
			after = batch.Position
			for i := range batch.Put {
				p.accept(&batch.Put[i])
			}
			for _, key := range batch.Delete {
				p.unlearn(strings.TrimPrefix(key, keyAccount))
			}
		}
		clock.Sleep(ctx, followAgain)
	}
}
