package main

import (
	"testing"
	"time"
)

// The days that a certificate has left are whole ones, and hours at its end.
func TestStatusTellsWhatACertificateHasLeft(t *testing.T) {
	for want, in := range map[string]time.Duration{
		"89 days": 90*24*time.Hour - time.Minute, "2 days": 49 * time.Hour, "47h": 48*time.Hour - time.Minute,
		"0h": 30 * time.Minute, "none": -time.Hour,
	} {
		if got := left(time.Now().Add(in)); got != want {
			t.Errorf("%v: got %q, want %q", in, got, want)
		}
	}
	if got := left(time.Time{}); got != "-" {
		t.Errorf("without a certificate: got %q", got)
	}
}
