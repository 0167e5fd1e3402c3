package greeting

import (
	"os"
	"path/filepath"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/file"
)

func TestGreets(t *testing.T) {
	name := filepath.Join(t.TempDir(), "greeting.txt")
	if err := os.WriteFile(name, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := func(name string) (*file.Followed, error) { return file.Follow(name, 1<<10, "too large") }
	f, err := Compile(&Config{Enabled: true, File: name}, exchange.Env{File: open})
	if err != nil {
		t.Fatal(err)
	}
	ex := &exchange.Exchange{}
	if answer := f.Request(ex); answer != nil {
		t.Fatalf("answered %v", answer)
	}
	if got, _ := ex.Request.Header.Lookup("Greeting"); got != "hello" {
		t.Errorf("the server is told %q, want hello", got)
	}
}
