package control

import (
	"errors"
	"testing"
	"time"

	"headgate/internal/store"
	"headgate/internal/testhouse"
)

// node returns what one machine shows of another.
func (m *member) node(name string) NodeState {
	m.t.Helper()
	n, err := m.c.Node(m.t.Context(), name)
	if err != nil && !errors.Is(err, ErrNoNode) {
		m.t.Fatal(err)
	}
	return n
}

func TestAMachineIsDrainedOnAnother(t *testing.T) {
	e := newEngine()
	a, b := newMember(t, "a", limitOf(1), e), newMember(t, "b", "", e)
	b.serves(limitOf(1))
	testhouse.Eventually(t, "a sees b", func() bool { return a.node("b").State == NodeReady })

	if err := a.c.DrainNode(t.Context(), "b", &store.NodeDrain{Since: time.Now(), Who: "anna", Why: "new kernel"}); err != nil {
		t.Fatal(err)
	}
	testhouse.Eventually(t, "b is not ready", func() bool { return b.c.NotReady() == "drained by an operator" })
	if got := a.c.NotReady(); got != "" {
		t.Errorf("a is not ready: %s", got)
	}
	b.stop()
	testhouse.Eventually(t, "a sees that b has stopped", func() bool { return a.node("b").State == NodeStopped })
	b.start()
	if got := b.c.NotReady(); got != "drained by an operator" {
		t.Errorf("after a restart, b is not ready for the reason %q", got)
	}
	testhouse.Eventually(t, "a sees that b is drained", func() bool {
		n := a.node("b")
		return n.State == NodeDrained && n.Drained.Who == "anna" && n.Drained.Why == "new kernel"
	})
	if err := b.c.DrainNode(t.Context(), "b", nil); err != nil {
		t.Fatal(err)
	}
	if got := b.c.NotReady(); got != "" {
		t.Errorf("b is not ready after it was returned to service: %s", got)
	}
	testhouse.Eventually(t, "a sees that b is ready", func() bool { return a.node("b").State == NodeReady })
	if err := a.c.DrainNode(t.Context(), "c", &store.NodeDrain{}); !errors.Is(err, ErrNoNode) {
		t.Errorf("a machine that does not exist is drained: %v", err)
	}
}

func TestAMachineIsRemovedWhenItHasStopped(t *testing.T) {
	e := newEngine()
	a, b := newMember(t, "a", limitOf(1), e), newMember(t, "b", "", e)
	testhouse.Eventually(t, "a sees b", func() bool { return a.node("b").State == NodeReady })
	for _, name := range []string{"a", "b"} {
		if err := a.c.RemoveNode(t.Context(), name); !errors.Is(err, ErrNodeRunning) {
			t.Errorf("%s runs and is removed: %v", name, err)
		}
	}
	b.stop()
	testhouse.Eventually(t, "b is removed", func() bool { return a.c.RemoveNode(t.Context(), "b") == nil })
	if n := a.node("b"); n.Name != "" {
		t.Errorf("b is still shown: %+v", n)
	}
}
