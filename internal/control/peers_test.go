package control

import (
	"context"
	"testing"
	"time"
)

// TestMachinesQueryEachOther tests the questions of machines that share a store.
func TestMachinesQueryEachOther(t *testing.T) {
	e := newEngine()
	a, b := newFolder(t, "a", e, map[string]string{"a.yaml": policy("a", 1)}), newFolder(t, "b", e, nil)
	b.c.Peers().Handle("test", func(_ context.Context, from string, data []byte) ([]byte, error) {
		return append(data, " of "+from...), nil
	})
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	defer stop()
	if got := a.c.Peers().QueryNodes(ctx, []string{"b"}, "test", []byte("a question"))["b"]; got.Err != nil || string(got.Data) != "a question of a" {
		t.Errorf("got %q, %v", got.Data, got.Err)
	}
}
