package lists

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"headgate/internal/setting/unit"
	"headgate/internal/testhouse"
)

// heard collects events.
type heard struct {
	mu  sync.Mutex
	all []Event
}

func (h *heard) add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, e)
}

func (h *heard) kinds() (out []EventKind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.all {
		out = append(out, e.Kind)
	}
	return out
}

// TestEventsSayWhatHappensToAList holds that each event is published once, however often the
// source is asked: loaded, failed, shrunk, stale, and loaded again.
func TestEventsSayWhatHappensToAList(t *testing.T) {
	s := newSite(t)
	s.set(text(lines(100)))
	var h heard
	var mu sync.Mutex
	later := time.Duration(0)
	wait := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		later += d
	}
	m := manager(t, Options{Roots: s.roots, Notify: h.add, Clock: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return time.Now().Add(later)
	}})
	commit(m, "drop", &Config{URL: s.URL + "/drop.txt", Interval: unit.Duration(time.Millisecond)})
	want := []EventKind{EventLoaded}
	until := func(kind EventKind) {
		t.Helper()
		want = append(want, kind)
		testhouse.Eventually(t, fmt.Sprint("events ", want), func() bool { return len(h.kinds()) >= len(want) })
	}
	testhouse.Eventually(t, "the list is loaded", func() bool { return len(h.kinds()) == 1 })
	s.set(text(lines(120)))
	until(EventLoaded)
	s.set(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "gone", http.StatusGone) })
	until(EventFailed)
	wait(minStale)
	until(EventStale)
	s.set(text(lines(3)))
	until(EventShrunk)
	s.set(text(lines(120)))
	until(EventLoaded)
	if got := h.kinds(); !slices.Equal(got, want) {
		t.Errorf("events %v, want %v", got, want)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if e := h.all[1]; e.List != "drop" || e.Source != "url" || e.Entries != 120 || e.Before != 100 {
		t.Errorf("%+v", e)
	}
	if e := h.all[2]; e.Entries != 120 || !strings.Contains(e.Cause, "410") {
		t.Errorf("%+v", e)
	}
}
