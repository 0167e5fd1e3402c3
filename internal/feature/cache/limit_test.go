package cache

import (
	"strings"
	"testing"

	"headgate/internal/setting/unit"
)

// TestLimitOfABodyWithoutLength is that of one with a length.
func TestLimitOfABodyWithoutLength(t *testing.T) {
	for _, n := range []int{kib, kib + 1} {
		s := newStage(t, settings(ofSize(unit.KiB)))
		s.origin.reply = answer("200|Cache-Control: max-age=60|chunked||"+strings.Repeat("x", n), s.clock)
		for range 2 {
			if f := s.request("GET /"); len(f.Body) != n || f.Err != nil {
				t.Errorf("got %d bytes of %d, %v", len(f.Body), n, f.Err)
			}
		}
		if stored := s.origin.count() == 1; stored != (n == kib) {
			t.Errorf("%d bytes: stored %v", n, stored)
		}
	}
}

const kib = 1 << 10
