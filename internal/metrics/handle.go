package metrics

import "headgate/internal/exchange"

// shared is what all handles have in common: several may ask for one, and it stays
// on the page until as many have retired it.
type shared[K comparable, H any] struct {
	owner  *Registry
	on     map[K]*H // the handles of its kind; guarded by owner.mu
	key    K
	values func(K) []string
	users  int // guarded by owner.mu
}

// labels returns the label values of a handle. They are made when they are asked for:
// a configuration may have very many handles, and a page is seldom read.
func (s *shared[K, H]) labels() []string { return labels(s.values(s.key)...) }

// self returns the shared part of a handle.
func (s *shared[K, H]) self() *shared[K, H] { return s }

// Retire removes the handle from the page when as many have retired it as asked for
// it. It may still be counted by; nobody sees that.
func (s *shared[K, H]) Retire() {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(s.on, s.key)
	}
}

// shareLocked returns the handle of a key for one user more, and makes it for the
// first. r.mu is held.
func shareLocked[K comparable, H any](r *Registry, on map[K]*H, key K, values func(K) []string, self func(*H) *shared[K, H]) *H {
	h := on[key]
	if h == nil {
		h = new(H)
		*self(h) = shared[K, H]{owner: r, on: on, key: key, values: values}
		on[key] = h
	}
	self(h).users++
	return h
}

// routeKey names a route of a proxy; route "" stands for the proxy itself.
type routeKey struct{ proxy, route string }

func (k routeKey) values() []string  { return []string{k.proxy, k.route} }
func (k serverKey) values() []string { return []string{k.proxy, k.route, k.url} }
func (k streamKey) values() []string { return []string{k.protocol, k.proxy} }

func placeValues(p exchange.Place) []string { return []string{p.Port, p.Proxy, p.Route} }
func nameValues(name string) []string       { return []string{name} }
