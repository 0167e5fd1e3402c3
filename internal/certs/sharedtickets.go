package certs

import (
	"crypto/hmac"
	"crypto/sha256"
	"sync"
)

// SharedTickets are seeds for the keys of session tickets on several machines, so that each
// can resume the sessions of the others. The caller rotates the seeds. It is safe for
// concurrent use.
type SharedTickets struct {
	mu struct {
		sync.Mutex
		seeds [][32]byte // the newest first
		all   map[*Tickets]string
	}
}

// NewSharedTickets returns seeds that are random until Set.
func NewSharedTickets() *SharedTickets {
	s := &SharedTickets{}
	s.mu.seeds, s.mu.all = NewTickets().mu.keys, map[*Tickets]string{}
	return s
}

// Set replaces the seeds, the newest first.
func (s *SharedTickets) Set(seeds [][32]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.seeds = seeds[:min(len(seeds), ticketKeys)]
	for t, class := range s.mu.all {
		t.set(s.keysLocked(class))
	}
}

// Tickets returns tickets for ports of a class, whose keys are different from those of other
// classes. They follow the seeds until Retire.
func (s *SharedTickets) Tickets(class string) *Tickets {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := NewTicketsOf(s.keysLocked(class))
	t.shared = s
	s.mu.all[t] = class
	return t
}

func (s *SharedTickets) keysLocked(class string) [][32]byte {
	keys := make([][32]byte, len(s.mu.seeds))
	for i := range s.mu.seeds {
		h := hmac.New(sha256.New, s.mu.seeds[i][:])
		h.Write([]byte("session tickets\x00" + class))
		h.Sum(keys[i][:0])
	}
	return keys
}

func (s *SharedTickets) forget(t *Tickets) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.mu.all, t)
}

// set replaces the keys in all configurations.
func (t *Tickets) set(keys [][32]byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.mu.keys = keys
	for cfg := range t.mu.configs {
		cfg.SetSessionTicketKeys(keys)
	}
}
