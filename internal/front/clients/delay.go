package clients

import "time"

// delayTime is how long a client that floods us on connection after connection waits for
// the end of one. Nothing of it is read meanwhile: what it sends fills the buffers of
// the system and then stops it, which is cheaper than to have it come again at once.
const delayTime = time.Second

// maxDelayed is how many connections of one socket wait like that at once.
const maxDelayed = 128

// Delay waits for a second, or until over is closed. It does not wait when there are
// many that do.
func (c *Clients) Delay(over <-chan struct{}) {
	if c == nil {
		return
	}
	defer c.delayed.Add(-1)
	if c.delayed.Add(1) > maxDelayed {
		return
	}
	late := time.NewTimer(delayTime)
	defer late.Stop()
	select {
	case <-over:
	case <-late.C:
	}
}

// Delayed returns how many connections wait in Delay.
func (c *Clients) Delayed() int { return int(c.delayed.Load()) }
