package exchange

// Slot is a feature's own field on every exchange. A feature makes one for all of its
// filters and keeps it in a package variable; it is immutable, and its methods are called
// by the owner of the exchange.
//
// An exchange keeps the memory of its slots for the next request of its connection, so that
// a feature that uses its slot for each request allocates nothing.
type Slot[T any] struct{ travels bool }

// NewSlot returns a slot. Travels says that what is in it goes along when another
// exchange asks the server for this one: see CarrySlots.
func NewSlot[T any](travels bool) *Slot[T] { return &Slot[T]{travels} }

// slots are the values of features on an exchange. They are few, so that a linear search is
// used.
type slots []slot

type slot struct {
	of   owner
	held any // *T
	used bool
}

// owner is a *Slot.
type owner interface{ carry(from, to *Exchange) }

// Get returns what the room has put on the exchange, nil if it has put nothing there.
func (s *Slot[T]) Get(ex *Exchange) *T {
	for i := range ex.slots {
		if at := &ex.slots[i]; at.of == owner(s) {
			if !at.used {
				return nil
			}
			return at.held.(*T)
		}
	}
	return nil
}

// Put puts something on the exchange.
func (s *Slot[T]) Put(ex *Exchange, value T) { *s.Reuse(ex) = value }

// Reuse is Put of what is there already: what an earlier exchange with the same memory
// left, or the zero value. The room makes it ready for this exchange, and may use
// memory that it has.
func (s *Slot[T]) Reuse(ex *Exchange) *T {
	for i := range ex.slots {
		if at := &ex.slots[i]; at.of == owner(s) {
			at.used = true
			return at.held.(*T)
		}
	}
	held := new(T)
	ex.slots = append(ex.slots, slot{s, held, true})
	return held
}

// Drop takes what the room has put there off the exchange.
func (s *Slot[T]) Drop(ex *Exchange) {
	for i := range ex.slots {
		if at := &ex.slots[i]; at.of == owner(s) {
			at.used = false
		}
	}
}

// CarrySlots puts what travels with ex to the server on another exchange. What
// travels and is not on ex is removed from the other.
func (ex *Exchange) CarrySlots(to *Exchange) {
	for i := range to.slots {
		to.slots[i].of.carry(ex, to)
	}
	for i := range ex.slots {
		ex.slots[i].of.carry(ex, to)
	}
}

func (s *Slot[T]) carry(from, to *Exchange) {
	if !s.travels {
		return
	}
	if value := s.Get(from); value != nil {
		s.Put(to, *value)
	} else {
		s.Drop(to)
	}
}

// reset empties the slots for the next exchange and keeps their memory.
func (s slots) reset() {
	for i := range s {
		s[i].used = false
	}
}
