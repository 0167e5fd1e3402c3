package h2

import (
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/http2"
)

// Flood is a way to make us work for nothing.
type Flood uint8

// The floods. Each is limited for every connection, and a client that exceeds the limit
// gets ENHANCE_YOUR_CALM and loses the connection.
const (
	NoFlood Flood = iota
	// ResetFlood is requests that are cancelled before the response: reset by the client
	// (CVE-2023-44487), or such that must be reset because they break a rule
	// (CVE-2025-8671) or exceed the maximum.
	ResetFlood
	// ContinuationFlood is a field block that does not end, or comes in tiny
	// pieces (CVE-2024-27316).
	ContinuationFlood
	// HeaderFlood is fields that are much larger than the bound on a head.
	HeaderFlood
	// SettingsFlood is SETTINGS frames, each of which has to be acknowledged
	// (CVE-2019-9515).
	SettingsFlood
	// PingFlood is PING frames, each of which has to be answered
	// (CVE-2019-9512).
	PingFlood
	// PriorityFlood is frames that are of no use: PRIORITY, PRIORITY_UPDATE,
	// frames of unknown types, frames on streams that have ended
	// (CVE-2019-9513).
	PriorityFlood
	// WindowFlood is windows opened by so little that each response byte needs
	// a frame (CVE-2019-9511).
	WindowFlood
	// EmptyFlood is DATA frames without data (CVE-2019-9518).
	EmptyFlood
	// QueueFlood is answers to frames that the client does not read
	// (CVE-2019-9517).
	QueueFlood
	floodCount
)

// floodTable has the names of the floods and how much of each a connection may do: a burst,
// and a rate per second. Useful work adds to that; see budget.
var floodTable = [floodCount]struct {
	word string
	most int32
	rate int64 // a second
	text string
}{
	ResetFlood:        {"reset_flood", usualStreams, 10, "too many requests were cancelled before the response"},
	ContinuationFlood: {word: "continuation_flood", text: "a field block has too many pieces or too many bytes"},
	HeaderFlood:       {"header_flood", 8, 1, "fields are far larger than the bound on a request head, or heads are again and again"},
	SettingsFlood:     {"settings_flood", 32, 1, "too many SETTINGS"},
	PingFlood:         {"ping_flood", 64, 10, "too many PING"},
	PriorityFlood:     {"priority_flood", 512, 50, "too many frames that are of no use"},
	WindowFlood:       {"window_flood", 1024, 100, "too many WINDOW_UPDATE for what was sent"},
	EmptyFlood:        {"empty_flood", 64, 2, "too many DATA without data"},
	QueueFlood:        {word: "queue_flood", text: "the client does not read what it is answered"},
}

// Short names for the kinds that are charged.
const (
	floodReset    = ResetFlood
	floodSettings = SettingsFlood
	floodPing     = PingFlood
	floodPriority = PriorityFlood
	floodWindow   = WindowFlood
	floodEmpty    = EmptyFlood
)

// String returns the name for the log, such as "reset_flood".
func (f Flood) String() string { return floodTable[f].word }

// budget counts what a client made us do for nothing. What it did is forgiven as
// time passes, and as useful work is done.
type budget struct {
	spent [floodCount]int32
	since int64 // when time last forgave
}

// spend counts one action and reports whether it was one too many.
func (b *budget) spend(f Flood) bool {
	b.spent[f]++
	if b.spent[f] <= floodTable[f].most {
		return false
	}
	now := exchange.Now()
	passed := now - b.since
	b.since = now
	for i := range b.spent {
		b.refund(Flood(i), passed*floodTable[i].rate/int64(time.Second))
	}
	return b.spent[f] > floodTable[f].most
}

// refund forgives n actions.
func (b *budget) refund(f Flood, n int64) {
	b.spent[f] = int32(max(0, int64(b.spent[f])-n))
}

// offenderResets is what is left of the resets that a connection may cause where its
// client broke too many rules on other connections.
const offenderResets = 8

// offend counts a request that had to be reset because it broke a rule, for the
// connection and for the client's address: a new connection of a client does
// not reset the count (CVE-2025-8671). c.mu is held.
func (c *Conn) offend() error {
	if c.member.Offend() {
		return flooded(ResetFlood)
	}
	return c.chargeLocked(floodReset)
}

// freeResets is how many cancelled requests a connection may have, not compensated by
// others, before they count for the client's address, too: as many as leaving a page can
// cause.
const freeResets = 32

// takenBack counts a request that the client canceled (CVE-2023-44487), also for its
// address if that happens repeatedly. c.mu is held.
func (c *Conn) takenBack() error {
	if c.mu.budget.spent[ResetFlood] >= freeResets {
		return c.offend()
	}
	return c.chargeLocked(floodReset)
}

// useful notes that a response was sent whole. c.mu is held.
func (c *Conn) useful() {
	b := &c.mu.budget
	b.refund(ResetFlood, 1)
	b.refund(PriorityFlood, 4)
	b.refund(WindowFlood, 4)
	b.refund(PingFlood, 1)
}

// charge counts an action of the client. The error ends the connection.
func (c *Conn) charge(f Flood) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.chargeLocked(f)
}

// chargeLocked is charge for a caller that holds c.mu. It also bounds what is
// collected for a client that does not read.
func (c *Conn) chargeLocked(f Flood) error {
	if c.mu.budget.spend(f) {
		return flooded(f)
	}
	return c.queuedLocked()
}

// queuedLocked bounds what is collected for a client that does not read.
func (c *Conn) queuedLocked() error {
	if len(c.mu.Out) > maxQueue {
		return flooded(QueueFlood)
	}
	return nil
}

func flooded(f Flood) error {
	return &connError{code: http2.EnhanceYourCalm, flood: f, text: floodTable[f].text}
}
