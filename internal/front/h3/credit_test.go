package h3_test

import (
	"testing"
	"time"

	"headgate/internal/exchange"
)

// Streams are granted anew late, but a client never has fewer than three quarters of what
// it was told.
func TestStreamsAreGrantedAnew(t *testing.T) {
	for _, tt := range []struct{ bound, least int }{{1, 1}, {2, 2}, {7, 7}, {16, 12}, {100, 75}} {
		f := newFront(t, text("x"), func(p *exchange.Port) { p.Streams = tt.bound })
		c := f.dial()
		head := frame(1, section(get...))
		for range 3*tt.bound + 10 {
			s, err := c.conn.OpenStreamSync(t.Context())
			if err != nil {
				t.Fatalf("of %d streams: %v", tt.bound, err)
			}
			s.Write(head)
			s.Close()
			if rs := c.await(s); rs.status != "200" {
				t.Fatalf("of %d streams: got %+v", tt.bound, rs)
			}
		}
		// What was granted comes a little later than the response.
		open, until := 0, time.Now().Add(patience)
		for open < tt.least && time.Now().Before(until) {
			if _, err := c.conn.OpenStream(); err != nil {
				time.Sleep(time.Millisecond)
				continue
			}
			open++
		}
		if open < tt.least {
			t.Errorf("of %d streams a client could open %d, want %d", tt.bound, open, tt.least)
		}
	}
}

// A connection whose first look came during a request is looked at again.
func TestAConnectionIsClosedAfterALongRequest(t *testing.T) {
	const keep = 100 * time.Millisecond
	f := newFront(t, func(ex *exchange.Exchange) *exchange.Answer {
		time.Sleep(3 * keep)
		return text("x")(ex)
	}, func(p *exchange.Port) { p.KeepAlive, p.HeadTimeout = keep, keep })
	c := f.dial()
	if rs := c.await(c.stream(frame(1, section(get...)), true)); rs.status != "200" {
		t.Errorf("got %+v", rs)
	}
	if got := c.ended(); got != codeNone {
		t.Errorf("got %#x, want H3_NO_ERROR", got)
	}
}
