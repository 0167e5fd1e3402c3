package h3

import (
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"
)

// credit is the streams of requests that have ended and that the client was not granted
// anew. quic-go grants a stream, in a frame that needs a packet, when its credit was
// released and the client has acknowledged its end. Released at once, that is when an
// acknowledgement comes: a packet for it alone, which the client acknowledges in turn.
// Released some requests later, the frame goes along with a response.
type credit struct {
	sync.Mutex
	ended []*quic.Stream // the oldest first
}

// maxCredit is the maximum number of streams that are held back. The state of quic-go for
// each of them is about a KiB.
const maxCredit = 16

// release grants the client another stream for qs, soon.
func (c *Conn) release(qs *quic.Stream) {
	held := c.front.heldCredit()
	if held == 0 {
		qs.ReleaseStreamCredit()
		return
	}
	cr := &c.credit
	cr.Lock()
	defer cr.Unlock()
	cr.ended = append(cr.ended, qs)
	if len(cr.ended) > 2*held {
		cr.releaseLocked(held)
	}
}

// releaseOld grants streams for those that ended before others. It is called when a
// packet is about to be sent.
func (c *Conn) releaseOld() {
	held := c.front.heldCredit()
	cr := &c.credit
	cr.Lock()
	defer cr.Unlock()
	if len(cr.ended) > held {
		cr.releaseLocked(held)
	}
}

// releaseLocked holds back only the last streams that ended.
func (cr *credit) releaseLocked(held int) {
	n := len(cr.ended) - held
	for _, old := range cr.ended[:n] {
		old.ReleaseStreamCredit()
	}
	left := copy(cr.ended, cr.ended[n:])
	clear(cr.ended[left:])
	cr.ended = cr.ended[:left]
}

// streamBound is the fewest streams that a connection of the front was allowed: the
// bound of a port may change while connections are open.
type streamBound struct{ least atomic.Int64 }

// note notes how many streams the next connection is allowed.
func (b *streamBound) note(n int64) {
	for {
		least := b.least.Load()
		if least != 0 && least <= n || b.least.CompareAndSwap(least, n) {
			return
		}
	}
}

// heldCredit returns how many streams a connection holds back when it sends; twice as many
// if it does not, never more than a quarter of those that its client may have open.
func (f *Front) heldCredit() int { return min(maxCredit, int(f.bound.least.Load()/8)) }
