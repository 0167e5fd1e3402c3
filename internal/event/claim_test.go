package event

import (
	"context"
	"encoding/json"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"

	"headgate/internal/store"
	"headgate/internal/store/memory"
	"headgate/internal/testhouse"
)

// claim waits for an event that a queue can claim, and returns its port.
func claim(t *testing.T, l *Log, queue string) string {
	t.Helper()
	var p Port
	testhouse.Eventually(t, "an event can be claimed", func() bool {
		e := l.Claim(Filter{Types: []string{"port.*"}}, queue)
		return e != nil && json.Unmarshal(e.Data, &p) == nil
	})
	return p.Port
}

func TestEventsThatCannotBeWrittenAreClaimedOnce(t *testing.T) {
	st := &failing{Store: memory.New()}
	st.away.Store(true)
	l := open(t, st)
	l.Share("one")
	l.Send(port("a"))
	l.Send(port("b"))
	if one, two := claim(t, l, "webhook/x"), claim(t, l, "webhook/x"); one != "a" || two != "b" {
		t.Errorf("got %q, %q", one, two)
	}
	if e := l.Claim(Filter{Types: []string{"port.*"}}, "webhook/x"); e != nil {
		t.Errorf("claimed twice: %+v", e)
	}
	if got := claim(t, l, "webhook/y"); got != "a" {
		t.Errorf("another queue: got %q", got)
	}
	st.away.Store(false)
	l.Close()
	page, err := st.Page(t.Context(), store.StreamEvents, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string][]string{"a": {"webhook/x", "webhook/y"}, "b": {"webhook/x"}}
	for _, r := range page {
		e, _ := Decode(r.Data)
		var p Port
		if e.Type == "port.listening" && json.Unmarshal(e.Data, &p) == nil {
			if !slices.Equal(e.Claimed, want[p.Port]) || e.Node != "one" {
				t.Errorf("%s is kept with %q of %q, want %q of one", p.Port, e.Claimed, e.Node, want[p.Port])
			}
			delete(want, p.Port)
		}
	}
	if len(want) > 0 {
		t.Errorf("not kept: %v", want)
	}

	l = open(t, st)
	l.Send(port("c"))
	if e := l.Claim(Filter{}, "webhook/x"); e != nil {
		t.Errorf("claimed while the store is there: %+v", e)
	}
}

// slow is a store that is away, and answers when the test wants.
type slow struct {
	*memory.Store
	calls  atomic.Int64
	answer chan struct{}
}

func (s *slow) Append(context.Context, string, [][]byte) (store.Sequence, error) {
	if s.calls.Add(1) > 1 {
		<-s.answer
	}
	return 0, store.ErrUnavailable
}

func TestAnEventThatIsBeingWrittenIsNotClaimed(t *testing.T) {
	st := &slow{Store: memory.New(), answer: make(chan struct{})}
	l := open(t, st)
	l.Send(port("a"))
	testhouse.Eventually(t, "the event is being written again", func() bool { return st.calls.Load() == 2 })
	if e := l.Claim(Filter{}, "webhook/x"); e != nil {
		t.Errorf("claimed, although its record may be written: %+v", e)
	}
	close(st.answer)
	if got := claim(t, l, "webhook/x"); got != "a" {
		t.Errorf("got %q", got)
	}
}

func TestOnlyAppliedChangesOfOthersAreAdopted(t *testing.T) {
	for _, c := range []struct {
		p    Payload
		want bool
	}{
		{ConfigApplied{Config: Config{Adopted: true}}, true},
		{ConfigApplied{}, false},
		{ConfigRefused{Config: Config{Adopted: true}}, false},
		{PortListening{Port{Port: "adopted"}}, false},
	} {
		e, err := Draft(c.p)
		if err != nil || e.Adopted() != c.want {
			t.Errorf("%+v: got %v, %v, want %v", c.p, e.Adopted(), err, c.want)
		}
	}
	if appliedType != kinds[reflect.TypeFor[ConfigApplied]()].Type || StoreRestoredType != kinds[reflect.TypeFor[StoreRestored]()].Type {
		t.Error("a type has another name in the table")
	}
}
