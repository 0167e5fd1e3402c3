package http2

import (
	"testing"
	"time"
)

func TestStreamsAreFoundByNumber(t *testing.T) {
	var all Streams[*int]
	numbers := make([]int, 50)
	for i := range numbers {
		numbers[i] = 2*i + 1
		all.Add(uint32(2*i+1), &numbers[i])
	}
	for id := uint32(0); id < 102; id++ {
		got := all.Get(id)
		if open := id%2 == 1 && id < 100; open != (got != nil) || open && *got != int(id) {
			t.Errorf("stream %d: got %v", id, got)
		}
	}
	if all.Remove(2) || !all.Remove(3) || all.Remove(3) || all.Get(3) != nil || all.Len() != 49 {
		t.Error("a stream that was removed is there, or another is not")
	}
	last := uint32(0)
	for _, o := range all.All() {
		if o.ID <= last || *o.Stream != int(o.ID) {
			t.Errorf("stream %d behind %d", o.ID, last)
		}
		last = o.ID
	}
	for all.Len() > 0 {
		all.Remove(all.All()[0].ID)
	}
	if cap(all.list) > keepStreams {
		t.Error("the memory of many streams is kept for none")
	}
}

func TestASignalKeepsNewsForWhoWaitsNext(t *testing.T) {
	s := NewSignal()
	s.Raise()
	s.Raise()
	if !s.Wait(time.Hour) || s.Lower() || s.Wait(time.Millisecond) {
		t.Error("two news that nobody waited for are not one")
	}
	s.Raise()
	if !s.Lower() || s.Wait(time.Millisecond) {
		t.Error("news that were forgotten are there")
	}
	go s.Raise()
	if !s.Wait(0) {
		t.Error("a wait without a limit has ended without news")
	}
}
