package times

import (
	"testing"
	"time"
)

func TestBucketsCoverAllTimesInOrder(t *testing.T) {
	last := 0
	for us := range 200_000 {
		took := time.Duration(us) * time.Microsecond
		b := Bucket(took)
		if b < last || Bound(b) > took || Bound(b+1) <= took {
			t.Fatalf("%v is in bucket %d, from %v to %v; the one before is %d", took, b, Bound(b), Bound(b+1), last)
		}
		last = b
	}
	if b := Bucket(time.Hour); b != Buckets-1 {
		t.Errorf("an hour is in bucket %d of %d", b, Buckets)
	}
	if b := Bucket(-time.Second); b != 0 {
		t.Errorf("a negative time is in bucket %d", b)
	}
}

func TestQuantilesAreWithinAnEighth(t *testing.T) {
	var c Counts
	if got := c.Quantile(0.5); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
	for ms := 1; ms <= 1000; ms++ {
		c[Bucket(time.Duration(ms)*time.Millisecond)]++
	}
	for part, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.95: 950 * time.Millisecond, 1: time.Second} {
		if got := c.Quantile(part); got < want*8/9 || got > want*9/8 {
			t.Errorf("quantile %v is %v, want about %v", part, got, want)
		}
	}
}
