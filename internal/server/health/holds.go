package health

import (
	"hash/maphash"
	"iter"
	"slices"
	"sync"

	"headgate/internal/exchange"
)

// HoldKey names the servers that a hold is about: those of a proxy with an address, on
// whichever routes.
type HoldKey struct {
	// Protocol is http, tcp or udp.
	Protocol string
	// Proxy is the name of the proxy.
	Proxy string
	// Server is the URL of the server; of a TCP or UDP proxy it has the form
	// tcp://127.0.0.1:5432.
	Server string
}

// keyOf returns by which key a server is held.
func keyOf(s exchange.Holdable) HoldKey {
	proxy, route, server := s.Place()
	if route == "tcp" || route == "udp" { // the paths of routes start with a slash
		return HoldKey{route, proxy, server}
	}
	return HoldKey{"http", proxy, server}
}

// Holds contains the decisions of operators about servers, and the servers, so that a
// decision applies at once, and also to servers added later. Concurrent calls are
// allowed.
type Holds struct {
	seed maphash.Seed
	mu   struct {
		sync.Mutex
		held map[HoldKey]exchange.Held
		// servers are by the hashes of their keys: there may be very many.
		servers map[uint64][]exchange.Holdable
	}
}

// NewHolds returns holds without any.
func NewHolds() *Holds {
	h := &Holds{seed: maphash.MakeSeed()}
	h.mu.held, h.mu.servers = map[HoldKey]exchange.Held{}, map[uint64][]exchange.Holdable{}
	return h
}

// Join makes a server one that can be held, and holds it if that is so decided.
func (h *Holds) Join(s exchange.Holdable) {
	key := keyOf(s)
	hash := maphash.Comparable(h.seed, key)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.servers[hash] = append(h.mu.servers[hash], s)
	if held, ok := h.mu.held[key]; ok {
		s.Hold(held)
	}
}

// Leave ends what Join started.
func (h *Holds) Leave(s exchange.Holdable) {
	hash := maphash.Comparable(h.seed, keyOf(s))
	h.mu.Lock()
	defer h.mu.Unlock()
	all := slices.DeleteFunc(h.mu.servers[hash], func(other exchange.Holdable) bool { return other == s })
	if h.mu.servers[hash] = all; len(all) == 0 {
		delete(h.mu.servers, hash)
	}
}

// Set decides about servers; NotHeld ends what was decided. It returns how many there
// are now.
func (h *Holds) Set(key HoldKey, held exchange.Held) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held.Hold == exchange.NotHeld {
		delete(h.mu.held, key)
	} else {
		h.mu.held[key] = held
	}
	n := 0
	for s := range h.serversLocked(key) {
		s.Hold(held)
		n++
	}
	return n
}

// Active returns how many requests, connections or sessions run on the servers of a key.
func (h *Holds) Active(key HoldKey) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for s := range h.serversLocked(key) {
		if a, ok := s.(interface{ Active() int }); ok {
			n += a.Active()
		}
	}
	return n
}

// serversLocked are the servers of a key.
func (h *Holds) serversLocked(key HoldKey) iter.Seq[exchange.Holdable] {
	return func(yield func(exchange.Holdable) bool) {
		for _, s := range h.mu.servers[maphash.Comparable(h.seed, key)] {
			if keyOf(s) == key && !yield(s) {
				return
			}
		}
	}
}
