package notice

import (
	"time"

	"headgate/internal/event"
)

// spacing is the shortest time between two messages of a notice. Events in between are
// collected into one message, so that a failure of many servers is not a message each.
const spacing = 10 * time.Second

// rank orders levels.
func rank(l event.Level) int {
	switch l {
	case event.Error:
		return 2
	case event.Warning:
		return 1
	}
	return 0
}

// accepts reports whether events of a level are sent.
func (c *Config) accepts(l event.Level) bool { return rank(l) >= rank(c.Level) }

// urgent reports whether events of a level wait for nothing.
func (c *Config) urgent(l event.Level) bool {
	return c.Urgent != noneUrgent && rank(l) >= rank(event.Level(c.Urgent))
}

// sendAt returns when an event of a level that arrives at now is to be sent. last is when a
// message was last sent, the zero time if none was.
func (c *Config) sendAt(now, last time.Time, spacing time.Duration, l event.Level) time.Time {
	at := now
	if next := last.Add(spacing); next.After(at) {
		at = next
	}
	if c.urgent(l) {
		return at
	}
	if d := c.Digest.D(); d > 0 {
		at = now.Add(d)
	}
	return c.Quiet.end(at)
}

// end returns the end of the quiet hours that t is in, or t if it is in none.
func (q *Quiet) end(t time.Time) time.Time {
	if q == nil {
		return t
	}
	from, wrongFrom := clockTime(q.From)
	until, wrongUntil := clockTime(q.Until)
	zone, wrongZone := q.location()
	if wrongFrom != nil || wrongUntil != nil || wrongZone != nil {
		return t // the configuration was checked; the tz database may have changed
	}
	local := t.In(zone)
	year, month, day := local.Date()
	at := func(day int, d time.Duration) time.Time {
		return time.Date(year, month, day, int(d/time.Hour), int(d%time.Hour/time.Minute), 0, 0, zone)
	}
	// The hours that started yesterday, and those that start today.
	for _, start := range []int{day - 1, day} {
		last := start
		if until <= from {
			last++
		}
		if begin, end := at(start, from), at(last, until); !local.Before(begin) && local.Before(end) {
			return end
		}
	}
	return t
}
