package event_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/event"
)

// TestEveryEventHasASender looks for who makes each payload of the table, outside of tests.
func TestEveryEventHasASender(t *testing.T) {
	var text strings.Builder
	for _, root := range []string{"../../internal", "../../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "table.go" {
				return err
			}
			data, err := os.ReadFile(path)
			text.Write(data)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	all := text.String()
	for _, k := range event.Kinds() {
		name := k.Payload.Name()
		if !strings.Contains(all, "event."+name+"{") && !strings.Contains(all, "Send("+name+"{") {
			t.Errorf("nobody sends %s: no code makes an event.%s", k.Type, name)
		}
	}
}
