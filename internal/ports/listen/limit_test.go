package listen

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// A crowd at one socket takes what is left beside the reserves of the others, and no
// more.
func TestAShareCannotTakeTheReserveOfAnother(t *testing.T) {
	l := &Limit{}
	a, b, c := l.NewShare(nil), l.NewShare(nil), l.NewShare(nil)
	l.Divide(100, map[*Share]int{a: 0, b: 0, c: 4})
	// Half of 100 is reserved: 16 each, and 4 where no more are allowed.
	fill := func(s *Share) (n int) {
		for ; ; n++ {
			if _, ok := s.room(); !ok {
				return n
			}
			s.add()
		}
	}
	for i, want := range []int{100 - 16 - 4, 16, 4} {
		if got := fill([]*Share{a, b, c}[i]); got != want {
			t.Errorf("share %d: got room for %d, want %d", i, got, want)
		}
	}
	a.remove()
	if got := fill(b); got != 1 {
		t.Errorf("what one gave back: got room for %d, want 1", got)
	}
	l.Divide(120, map[*Share]int{a: 0, b: 0, c: 4})
	if got := fill(b); got != 20 {
		t.Errorf("a larger limit: got room for %d, want 20", got)
	}
	b.Leave()
	l.Divide(120, map[*Share]int{a: 0, c: 4})
	if got := fill(a); got != 120-4-(100-16-4-1) {
		t.Errorf("after a share has left: got room for %d", got)
	}
}

func TestAShareTellsWhenItIsFull(t *testing.T) {
	l := &Limit{}
	var told []bool
	s := l.NewShare(func(full bool) { told = append(told, full) })
	l.Divide(0, map[*Share]int{s: 1})
	s.add()
	for range 3 {
		if _, ok := s.room(); ok || !s.Full() {
			t.Fatal("there is room for a second connection, want one")
		}
	}
	s.remove()
	if _, ok := s.room(); !ok || s.Full() {
		t.Fatal("there is no room for the first connection")
	}
	if fmt.Sprint(told) != "[true false]" {
		t.Errorf("it told %v, want true and false once", told)
	}
}

// Whatever comes and goes, the limit counts what is open, and nobody is over it.
func TestALimitKeepsItsCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := &Limit{}
		open := map[*Share]int{}
		max := map[*Share]int{}
		var shares []*Share
		for range rapid.IntRange(1, 4).Draw(t, "shares") {
			s := l.NewShare(nil)
			shares, max[s] = append(shares, s), rapid.IntRange(0, 8).Draw(t, "max")
		}
		total := rapid.IntRange(0, 30).Draw(t, "total")
		l.Divide(total, max)
		for range rapid.IntRange(0, 100).Draw(t, "steps") {
			s := rapid.SampledFrom(shares).Draw(t, "share")
			if rapid.Bool().Draw(t, "comes") {
				if _, ok := s.room(); ok {
					s.add()
					open[s]++
				}
			} else if open[s] > 0 {
				s.remove()
				open[s]--
			}
			all, common := 0, 0
			for _, s := range shares {
				all += open[s]
				common += beyond(s)
				if s.open != open[s] {
					t.Fatalf("a share counts %d, %d are open", s.open, open[s])
				}
				if max[s] > 0 && open[s] > max[s] {
					t.Fatalf("%d are open of at most %d", open[s], max[s])
				}
			}
			if common != l.mu.common || total > 0 && all > total {
				t.Fatalf("%d are open of %d, %d beyond reserves counted as %d", all, total, common, l.mu.common)
			}
		}
	})
}
