package file

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestReadLikeGivesWhatIsKnownOnlyIfTheFileHoldsIt(t *testing.T) {
	const limit = 3 * blockSize
	known := bytes.Repeat([]byte("0123456789abcdef"), blockSize/8) // two blocks
	another := func(at int) []byte {
		b := bytes.Clone(known)
		b[at] = 'x'
		return b
	}
	for _, v := range []struct {
		name        string
		known, file []byte
	}{
		{"the same", known, known},
		{"the first byte is another", known, another(0)},
		{"the last byte is another", known, another(len(known) - 1)},
		{"one byte more", known, append(bytes.Clone(known), 'x')},
		{"one byte less", known, known[:len(known)-1]},
		{"empty", known, nil},
		{"both are empty", []byte{}, nil},
		{"nothing is known", nil, known},
	} {
		t.Run(v.name, func(t *testing.T) {
			name := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(name, v.file, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadLike(name, v.known, limit, "too large")
			if err != nil || !bytes.Equal(got, v.file) {
				t.Fatalf("got %d bytes, %v; want %d", len(got), err, len(v.file))
			}
			if len(got) > 0 && (&got[0] == &known[0]) != (v.known != nil && bytes.Equal(v.known, v.file)) {
				t.Errorf("the answer is what was known: %v", &got[0] == &known[0])
			}
		})
	}
	name := filepath.Join(t.TempDir(), "absent")
	if _, err := ReadLike(name, known, limit, "too large"); err == nil {
		t.Error("a file that is not there is what was known")
	}
}
