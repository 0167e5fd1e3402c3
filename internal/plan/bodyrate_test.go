package plan

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"headgate/internal/exchange"
)

// trickle is a body of pieces, before each of which its client pauses.
type trickle struct {
	pieces int
	size   int
	pause  time.Duration
}

func (b *trickle) Ready() bool  { return b.pause == 0 }
func (b *trickle) Close() error { return nil }

func (b *trickle) Read(p []byte) (int, error) {
	time.Sleep(b.pause) // of the bubble
	if b.pieces--; b.pieces < 0 {
		return 0, io.EOF
	}
	return min(len(p), b.size), nil
}

// A client may pause for the grace in all, and for what it sent as long again as that
// takes at the rate. What a server makes it wait for does not count.
func TestTheRateOfABodyIsThatOfItsClient(t *testing.T) {
	for name, test := range map[string]struct {
		body   trickle
		server time.Duration // before each read
		passes bool
	}{
		"fast":              {trickle{100, 1000, time.Second}, 0, true},
		"slow but short":    {trickle{10, 1, time.Second}, 0, true},
		"slow":              {trickle{100, 1, time.Second}, 0, false},
		"just in time":      {trickle{100, 91, time.Second}, 0, true},
		"a little too slow": {trickle{100, 89, time.Second}, 0, false},
		"at hand":           {trickle{100, 1, 0}, time.Minute, true},
		"a slow server":     {trickle{100, 1000, time.Second}, time.Minute, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := &pacedBody{Body: &test.body, rate: 100, grace: 10 * time.Second}
			var err error
			for p := make([]byte, 4096); err == nil; {
				time.Sleep(test.server)
				_, err = b.Read(p)
			}
			var reason *exchange.Error
			if passed := err == io.EOF; passed != test.passes || !passed && (!errors.As(err, &reason) || reason.Reason != exchange.RequestTimeout) {
				t.Errorf("%s: got %v after %d bytes, want it to pass: %v", name, err, b.taken, test.passes)
			}
		})
	}
}
