package http1

import (
	"sync/atomic"
	"time"
)

// dateFormat is IMF-fixdate (RFC 9110, section 5.6.7).
const dateFormat = "Mon, 02 Jan 2006 15:04:05 GMT"

// Date makes the value of the Date field, formatted once a second. The zero
// value is ready. Concurrent calls are allowed; it acquires no lock.
type Date struct {
	last atomic.Pointer[dateText]
}

type dateText struct {
	second int64
	text   string
}

// At returns the Date value for a time. The string is not changed later.
func (d *Date) At(now time.Time) string {
	second := now.Unix()
	if last := d.last.Load(); last != nil && last.second == second {
		return last.text
	}
	next := &dateText{second, now.UTC().Format(dateFormat)}
	d.last.Store(next)
	return next.text
}
