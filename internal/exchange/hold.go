package exchange

import "time"

// Hold is what an operator has decided about a server while it runs.
type Hold uint8

// The holds.
const (
	// NotHeld is a server about which nothing was decided.
	NotHeld Hold = iota
	// HeldDraining takes no new clients. Those whose sticky cookie names it go on.
	HeldDraining
	// HeldDisabled gets no requests. Active ones finish.
	HeldDisabled
)

var holds = [...]string{"", "draining", "disabled"}

// String returns the word of the status, "" for NotHeld.
func (h Hold) String() string { return holds[h] }

// ParseHold reads the word of the status.
func ParseHold(word string) (h Hold, ok bool) {
	for i, w := range holds {
		if w == word {
			return Hold(i), true
		}
	}
	return NotHeld, false
}

// Held is a hold with the information about it for people.
type Held struct {
	Hold Hold
	// Until is when it ends by itself, the zero time if it does not.
	Until time.Time
	// Who decided it, and Why.
	Who, Why string
}

// Holdable is the run-time side of a server that an operator can hold.
type Holdable interface {
	// Hold begins a hold, or ends it. It may be called by several goroutines at once.
	Hold(Held)
	// Place returns whose server it is, and which. It is always the same.
	Place() (proxy, route, server string)
}

// Holds knows the servers that operators can hold. Its functions are safe for concurrent
// use; nil ones are for plans that serve no clients.
type Holds struct {
	// Join makes a server one that operators can hold, and holds it if that is decided
	// already. Leave ends that.
	Join, Leave func(Holdable)
}
