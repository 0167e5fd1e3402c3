package history

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// A document is placed only where it is known what is there, also when that changes in the
// last moment.
func TestPlace(t *testing.T) {
	one, two, hand := []byte("1"), []byte("2"), []byte("by hand")
	for _, c := range []struct {
		what            string
		before, edit    []byte // what is there, and what a person makes of it in between
		was, data, want []byte // nil is nothing
		conflict        bool
	}{
		{"made", nil, nil, nil, one, one, false},
		{"replaced", one, nil, one, two, two, false},
		{"removed", one, nil, one, nil, nil, false},
		{"nothing to do", one, nil, one, one, one, false},
		{"made where something is", hand, nil, nil, one, hand, true},
		{"replaced where something else is", hand, nil, one, two, hand, true},
		{"replaced where nothing is", nil, nil, one, two, nil, true},
		{"removed where something else is", hand, nil, one, nil, hand, true},
		{"removed where nothing is", nil, nil, one, nil, nil, true},
		{"replaced while it is edited", one, hand, one, two, hand, true},
	} {
		t.Run(c.what, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, "a.yaml")
			write := func(data []byte) {
				if data == nil {
					return
				}
				if err := os.WriteFile(name+"~", data, 0o640); err != nil {
					t.Fatal(err)
				}
				if err := os.Rename(name+"~", name); err != nil {
					t.Fatal(err)
				}
			}
			write(c.before)
			was := Absent
			if c.was != nil {
				was = DigestOf(c.was)
			}
			err := place(name, c.data, was, func(at string) {
				if at == "before exchange" {
					write(c.edit)
				}
			})
			if errors.As(err, new(*Conflict)) != c.conflict || err != nil && !c.conflict {
				t.Errorf("got %v, conflict should be %t", err, c.conflict)
			}
			got, err := os.ReadFile(name)
			if errors.Is(err, fs.ErrNotExist) != (c.want == nil) || string(got) != string(c.want) {
				t.Errorf("there is %q, %v; want %q", got, err, c.want)
			}
			left, err := os.ReadDir(dir)
			if want := len(c.want) > 0; err != nil || len(left) > 1 || len(left) == 1 != want {
				t.Errorf("the folder has %v, %v", left, err)
			}
		})
	}
}
