package download

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"headgate/internal/clock"
)

const (
	// spread is over how long the first downloads after a start are spread.
	spread = 30 * time.Second
	// again is after how long a download that failed is tried again; the pause doubles.
	again = time.Minute
)

// First returns the pause before the first download of a file that has an interval: none
// if no copy is in use, else what is left of the interval, and a little more at random.
func First(interval time.Duration, loaded, now time.Time) time.Duration {
	if loaded.IsZero() {
		return 0
	}
	return max(interval-now.Sub(loaded), 0) + rand.N(spread)
}

// Follower keeps a file up to date.
type Follower struct {
	// URL is where the file is, and Max its largest size in bytes.
	URL string
	Max int64
	// Interval is the time between two downloads. After one that failed the next follows in
	// a minute; that pause doubles up to the interval. All pauses vary by a twentieth.
	Interval time.Duration
	// Planned is called with the pause before each download.
	Planned func(pause time.Duration)
	// Take is called with the result of a download. Its error is ErrUnchanged if the server
	// still has the version that was last accepted. Take returns why the file is not used,
	// nil if it is; a file that is not used is downloaded again in full.
	Take func(data []byte, err error) error
}

// Follow downloads the file after the first pause, and again and again until ctx ends.
func (c *Client) Follow(ctx context.Context, first time.Duration, f Follower) {
	var version Version
	for pause, failed := first, 0; ; {
		f.Planned(pause)
		if !clock.Sleep(ctx, pause) {
			return
		}
		data, now, err := c.Get(ctx, f.URL, version, f.Max)
		if ctx.Err() != nil {
			return
		}
		if err = f.Take(data, err); err == nil || errors.Is(err, ErrUnchanged) {
			version, failed = now, 0
			pause = vary(f.Interval)
		} else {
			pause = vary(min(again<<min(failed, 10), f.Interval))
			failed++
		}
	}
}

// vary returns a pause a twentieth shorter to a twentieth longer.
func vary(d time.Duration) time.Duration { return d - d/20 + rand.N(d/10+1) }
