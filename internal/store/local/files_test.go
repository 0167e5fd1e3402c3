package local

import (
	"strings"
	"testing"

	"headgate/internal/store"
)

// TestFilesOpenWhatWasSealedFromOutside looks at a key that a running headgate has
// sealed, as explain --state does.
func TestFilesOpenWhatWasSealedFromOutside(t *testing.T) {
	dir, key := t.TempDir(), strings.Repeat("5a", keyBytes)
	s, err := Open(Options{Dir: dir, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Commit(t.Context(), store.Change{Put: []store.Entry{{Key: store.KeySticky, Value: []byte("s3cret")}}}); err != nil {
		t.Fatal(err)
	}
	if got, err := (Files{Dir: dir, Key: key}).Load(store.KeySticky); err != nil || string(got) != "s3cret" {
		t.Errorf("with the key: %q, %v", got, err)
	}
	for name, other := range map[string]string{"without a key": "", "with another one": strings.Repeat("a5", keyBytes)} {
		if got, err := (Files{Dir: dir, Key: other}).Load(store.KeySticky); err == nil || !strings.Contains(err.Error(), "HEADGATE_STATE_KEY") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
