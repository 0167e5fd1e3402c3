package h3

import (
	"sync"
	"time"

	"headgate/internal/exchange"
)

// flood is a way to make us work for nothing.
type flood uint8

// The floods. Each is limited for every connection, and a client that exceeds the limit
// gets H3_EXCESSIVE_LOAD and loses the connection.
const (
	// resetFlood is requests that are cancelled before the response, or such that must be
	// reset because they break a rule.
	resetFlood flood = iota
	// frameFlood is frames that have no effect: of unknown types, without data, or
	// on the control stream.
	frameFlood
	// tinyFlood is bodies in pieces of a few bytes.
	tinyFlood
	// headerFlood is fields that are much larger than the bound on a head.
	headerFlood
	floodCount
)

// floods has their names and how much of each a connection may do: a burst, and a rate per
// second. Useful work adds to that.
var floods = [floodCount]struct {
	word string
	most int32
	rate int64 // a second
	text string
}{
	resetFlood:  {"reset_flood", 256, 10, "too many requests were cancelled before the response"},
	frameFlood:  {"frame_flood", 512, 50, "too many frames that have no effect"},
	tinyFlood:   {"tiny_data_flood", 8192, 1000, "too much of a body came in pieces of a few bytes"},
	headerFlood: {word: "header_flood", text: "the fields are far larger than the bound on a request head"},
}

// budget counts what a client made us do for nothing. What it did is forgiven as
// time passes, and as useful work is done.
type budget struct {
	sync.Mutex
	spent [floodCount]int32
	since int64 // when time last forgave
}

// charge counts one action. The error ends the connection.
func (b *budget) charge(f flood) error {
	b.Lock()
	defer b.Unlock()
	b.spent[f]++
	if b.spent[f] <= floods[f].most {
		return nil
	}
	now := exchange.Now()
	passed := now - b.since
	b.since = now
	for i := range b.spent {
		b.refund(flood(i), passed*floods[i].rate/int64(time.Second))
	}
	if b.spent[f] <= floods[f].most {
		return nil
	}
	return excessive(f)
}

// over reports whether n actions or more were not forgiven.
func (b *budget) over(f flood, n int32) bool {
	b.Lock()
	defer b.Unlock()
	return b.spent[f] >= n
}

// excessive is the end of a connection for a flood.
func excessive(f flood) error {
	return &connError{code: excessiveLoad, flood: floods[f].word, text: floods[f].text}
}

// offenderResets is what is left of the resets that a connection may cause where its
// client broke too many rules on other connections.
const offenderResets = 8

// refund forgives n actions.
func (b *budget) refund(f flood, n int64) {
	b.spent[f] = int32(max(0, int64(b.spent[f])-n))
}

// useful notes that a response was sent whole.
func (b *budget) useful() {
	b.Lock()
	defer b.Unlock()
	b.refund(resetFlood, 1)
	b.refund(frameFlood, 4)
}
