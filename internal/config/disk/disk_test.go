package disk

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/config"
)

func TestReadRefuses(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, int64(config.MaxFileSize)+1); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		filepath.Join(dir, "absent"): "no such file",
		dir:                          "it is not a regular file",
		os.DevNull:                   "it is not a regular file",
		large:                        "bytes, a configuration has at most",
	} {
		data, err := read(name, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "read "+name+": ") {
			t.Errorf("read(%s) = %d bytes, %v; want an error with %q", name, len(data), err, want)
		}
	}
}

func TestReadTakesTheLargest(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	want := bytes.Repeat([]byte("# 4567\n"), int(config.MaxFileSize)/7)
	if err := os.WriteFile(name, want, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := read(name, nil); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %d bytes and %v, want %d", len(got), err, len(want))
	}
}
