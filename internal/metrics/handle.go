package metrics

import (
	"hash/maphash"
	"iter"
	"slices"

	"headgate/internal/exchange"
)

// handles are the handles of one kind, by their keys. A configuration may have very
// many of them, whose keys are long: what the map holds is their hashes.
type handles[K comparable, H any] struct {
	owner  *Registry
	values func(K) []string
	self   func(*H) *shared[K, H]
	hash   func(K) uint64
	byHash map[uint64]*H // guarded by owner.mu; those with one hash are linked
}

func newHandles[K comparable, H any](r *Registry, values func(K) []string, self func(*H) *shared[K, H]) *handles[K, H] {
	seed := maphash.MakeSeed()
	hash := func(key K) uint64 { return maphash.Comparable(seed, key) }
	return &handles[K, H]{owner: r, values: values, self: self, hash: hash, byHash: map[uint64]*H{}}
}

// shareLocked returns the handle of a key for one user more, and makes it for the first.
func (t *handles[K, H]) shareLocked(key K) *H {
	hash := t.hash(key)
	first := t.byHash[hash]
	h := first
	for h != nil && t.self(h).key != key {
		h = t.self(h).next
	}
	if h == nil {
		h = new(H)
		*t.self(h) = shared[K, H]{of: t, key: key, next: first}
		t.byHash[hash] = h
	}
	t.self(h).users++
	return h
}

// dropLocked removes the handle whose shared part is s.
func (t *handles[K, H]) dropLocked(s *shared[K, H]) {
	hash := t.hash(s.key)
	before := t.self(t.byHash[hash])
	switch {
	case before != s:
		for t.self(before.next) != s {
			before = t.self(before.next)
		}
		before.next = s.next
	case s.next != nil:
		t.byHash[hash] = s.next
	default:
		delete(t.byHash, hash)
	}
}

// allLocked are the handles, in no order.
func (t *handles[K, H]) allLocked() iter.Seq[*H] {
	return func(yield func(*H) bool) {
		for _, h := range t.byHash {
			for ; h != nil; h = t.self(h).next {
				if !yield(h) {
					return
				}
			}
		}
	}
}

// listLocked returns the handles, in no order. There may be very many, and it is called
// often, so it allocates the slice once.
func (t *handles[K, H]) listLocked() []*H {
	return slices.AppendSeq(make([]*H, 0, len(t.byHash)), t.allLocked())
}

// shared is the common part of all handles: several callers may acquire one, and
// it stays on the page until each has retired it.
type shared[K comparable, H any] struct {
	of    *handles[K, H]
	key   K
	next  *H  // with the same hash; guarded by owner.mu
	users int // guarded by owner.mu
}

// owner returns the registry that the handle is of.
func (s *shared[K, H]) owner() *Registry { return s.of.owner }

// labels returns the label values of a handle. They are made on demand: a
// configuration may have very many handles, and a page is seldom read.
func (s *shared[K, H]) labels() []string { return labels(s.of.values(s.key)...) }

// self returns the shared part of a handle.
func (s *shared[K, H]) self() *shared[K, H] { return s }

// Retire removes the handle from the page when it was retired as often as it was acquired.
// Counting with it remains safe, without an effect.
func (s *shared[K, H]) Retire() {
	r := s.owner()
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.users--; s.users == 0 {
		s.of.dropLocked(s)
	}
}

// routeKey identifies a route of a proxy; route "" means the proxy itself.
type routeKey struct{ proxy, route string }

func (k routeKey) values() []string  { return []string{k.proxy, k.route} }
func (k serverKey) values() []string { return []string{k.proxy, k.route, k.url} }
func (k streamKey) values() []string { return []string{k.protocol, k.proxy} }

func placeValues(p exchange.Place) []string { return []string{p.Port, p.Proxy, p.Route} }
func nameValues(name string) []string       { return []string{name} }
