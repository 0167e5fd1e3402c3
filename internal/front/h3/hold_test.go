package h3

import (
	"testing"
	"time"

	"headgate/internal/exchange"
)

// The connection of a client that floods again and again is ended by hold, which tells why.
// The timer, which may look at it at any moment, does not end it before.
func TestTheTimerLeavesAHeldConnectionAlone(t *testing.T) {
	c := &Conn{}
	c.mu.last, c.mu.held = true, true
	if wait, end := c.stepLocked(&exchange.Port{}); end || wait < time.Minute {
		t.Errorf("looked at again after %v, ended %v", wait, end)
	}
}
