package tcp

import "testing"

// The roster knows who is open, in whatever order they leave.
func TestTheRosterLosesNobody(t *testing.T) {
	for _, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}, {0, 2, 1}} {
		r := NewRoster()
		var all [3]*Conn
		for i := range all {
			all[i] = &Conn{}
			r.add(all[i])
		}
		for gone, i := range order {
			r.remove(all[i])
			n := 0
			for c := r.mu.first; c != nil; c = c.next {
				n++
			}
			if want := len(all) - gone - 1; n != want || r.Counts().Open != want {
				t.Errorf("%v: %d in the list and %d counted after %d have left", order, n, r.Counts().Open, gone+1)
			}
		}
	}
}
