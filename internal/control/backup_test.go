package control

import (
	"bytes"
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	"headgate/internal/geo"
	"headgate/internal/testhouse"
)

// TestBackupsHaveNoDatabasesOfAddresses checks that databases that were downloaded are not
// part of a backup: they are large, and their licences may not allow to pass them on.
func TestBackupsHaveNoDatabasesOfAddresses(t *testing.T) {
	h := start(t, document(201, "a "+testhouse.Addresses(t, 1)[0]))
	database := make([]byte, 2<<20)
	rand.Read(database) // so that it cannot be compressed
	dir := geo.DirOf(h.state)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "country-0123456789abcdef.mmdb"), string(database))

	var archive bytes.Buffer
	if err := h.c.Backup(t.Context(), &archive, ""); err != nil {
		t.Fatal(err)
	}
	if size := archive.Len(); size == 0 || size >= len(database) {
		t.Errorf("the backup has %d bytes; a database has %d", size, len(database))
	}
}
