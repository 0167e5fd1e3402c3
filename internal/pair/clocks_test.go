package pair

import (
	"errors"
	"testing"
	"time"

	"headgate/internal/store"
)

// TestClocksThatDiffer holds that the leader's clock counts on both machines of a pair, also when
// they differ by six hours, and that of the new leader after a promotion.
func TestClocksThatDiffer(t *testing.T) {
	a, b := newLeader(t), listen(t)
	a.passed.Store(int64(3 * time.Hour))
	b.passed.Store(int64(-3 * time.Hour))
	if _, err := Join(t.Context(), b.dir, a.invite(t, "b"), "b", b.address); err != nil {
		t.Fatal(err)
	}
	b.open(t)
	b.await(t, "it follows", func(st State) bool { return st.Role == Follower && st.Connected })
	agree := func() {
		t.Helper()
		if off := a.Time().Sub(b.Time()); off.Abs() > time.Second {
			t.Errorf("the times of the machines differ by %v", off)
		}
	}
	agree()
	if _, err := a.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: "kept", Value: []byte("1"), TTL: time.Hour}}}); err != nil {
		t.Fatal(err)
	}
	b.has(t, "kept", "1")

	a.passed.Add(int64(time.Hour + time.Second))
	b.passed.Add(int64(time.Hour + time.Second))
	for name, m := range map[string]*machine{"a": a, "b": b} {
		if _, err := m.Get(t.Context(), "kept"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("after an hour %s still has it: %v", name, err)
		}
	}

	if err := b.Promote(t.Context(), false, "ann", nil); err != nil {
		t.Fatal(err)
	}
	a.await(t, "it follows", func(st State) bool { return st.Role == Follower && st.Connected })
	if off := b.Time().Sub(time.Now().Add(time.Duration(b.passed.Load()))); off.Abs() > time.Second {
		t.Errorf("the time of the new leader differs from its clock by %v", off)
	}
	agree()
}
