package history_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"headgate/internal/store/history"
	"headgate/internal/store/local"
)

// BenchmarkSave saves one document of 100 KiB that is another each time.
func BenchmarkSave(b *testing.B) {
	dir := b.TempDir()
	s, err := local.Open(local.Options{Dir: filepath.Join(dir, "state")})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	h, err := history.Open(b.Context(), history.Options{Store: s, Dir: s.Dir()})
	if err != nil {
		b.Fatal(err)
	}
	name := filepath.Join(dir, "a.yaml")
	text := func(i int) []byte {
		return append(bytes.Repeat([]byte("    - url: http://10.0.0.1:3000\n"), 3200), fmt.Sprintln("#", i)...)
	}
	if err := os.WriteFile(name, text(0), 0o600); err != nil {
		b.Fatal(err)
	}
	i := 0
	for b.Loop() {
		i++
		_, err := h.Save(b.Context(), history.Request{Documents: []history.Document{{Name: name, Was: history.DigestOf(text(i - 1)), Data: text(i)}}, When: time.Now(), Via: "api"})
		if err != nil {
			b.Fatal(err)
		}
	}
}
