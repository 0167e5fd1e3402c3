package health

import (
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

// Holds knows what operators have decided about servers, and the servers, so that a
// decision acts at once, and on those too that begin later. Its methods may be called by
// several goroutines at once.
type Holds struct {
	mu struct {
		sync.Mutex
		held    map[HoldKey]exchange.Held
		servers map[HoldKey][]exchange.Holdable
	}
}

// NewHolds returns holds without any.
func NewHolds() *Holds {
	h := &Holds{}
	h.mu.held, h.mu.servers = map[HoldKey]exchange.Held{}, map[HoldKey][]exchange.Holdable{}
	return h
}

// Join makes a server one that can be held, and holds it if that is so decided. It fits
// exchange.Env.Join. The server leaves by the func that is returned.
func (h *Holds) Join(proxy, route, server string, s exchange.Holdable) (leave func()) {
	key := HoldKey{"http", proxy, server}
	if route == "tcp" || route == "udp" { // the paths of routes begin with a slash
		key.Protocol = route
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.servers[key] = append(h.mu.servers[key], s)
	if held, ok := h.mu.held[key]; ok {
		s.Hold(held)
	}
	return func() { h.leave(key, s) }
}

func (h *Holds) leave(key HoldKey, s exchange.Holdable) {
	h.mu.Lock()
	defer h.mu.Unlock()
	all := h.mu.servers[key]
	for i, other := range all {
		if other == s {
			all[i] = all[len(all)-1]
			all[len(all)-1] = nil
			all = all[:len(all)-1]
			break
		}
	}
	if h.mu.servers[key] = all; len(all) == 0 {
		delete(h.mu.servers, key)
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
	for _, s := range h.mu.servers[key] {
		s.Hold(held)
	}
	return len(h.mu.servers[key])
}

// Active returns how many requests, connections or sessions run on the servers of a key.
func (h *Holds) Active(key HoldKey) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, s := range h.mu.servers[key] {
		if a, ok := s.(interface{ Active() int }); ok {
			n += a.Active()
		}
	}
	return n
}
