package metrics

import (
	"slices"
	"testing"
)

// Handles whose keys have the same hash are found, and leave, each by itself.
func TestHandlesWithOneHash(t *testing.T) {
	for _, order := range [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b", "a", "c"}, {"b", "c", "a"}} {
		r := New(Build{})
		r.mu.ports.hash = func(string) uint64 { return 7 }
		all := map[string]*Port{}
		for _, name := range []string{"a", "b", "c"} {
			all[name] = r.Port(name)
			if again := r.Port(name); again != all[name] {
				t.Errorf("%s has two handles", name)
			}
			all[name].Retire()
		}
		left := []string{"a", "b", "c"}
		for _, name := range order {
			all[name].Retire()
			left = slices.DeleteFunc(left, func(other string) bool { return other == name })
			var found []string
			for h := range r.mu.ports.allLocked() {
				found = append(found, h.key)
			}
			slices.Sort(found)
			if !slices.Equal(found, left) {
				t.Errorf("after %s of %v there are %v, want %v", name, order, found, left)
			}
		}
	}
}
