package local

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/store"
)

// backed returns an archive of a state directory.
func backed(t *testing.T, passphrase string) (archive []byte) {
	t.Helper()
	s := openDir(t, Options{Dir: t.TempDir()})
	for i := range 8 {
		commitOne(t, s, fmt.Sprintf("user/%d", i), strings.Repeat("u", 1000*i))
		commitOne(t, s, fmt.Sprintf("certificate/%d.example", i), "pem "+fmt.Sprint(i))
	}
	commitOne(t, s, store.KeySticky, "sticky")
	commitOne(t, s, store.KeyHead, "{}")
	if _, err := s.Append(t.Context(), "audit", [][]byte{[]byte("made")}); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := s.Backup(t.Context(), &b, passphrase); err != nil {
		t.Fatal(err)
	}
	commitOne(t, s, "user/0", "after the backup")
	commitOne(t, s, "certificate/late", "after the backup")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnArchiveHoldsWhatWasBackedUp(t *testing.T) {
	for _, passphrase := range []string{"", "correct horse"} {
		archive := backed(t, passphrase)
		if passphrase != "" && bytes.Contains(archive, []byte("pem")) {
			t.Error("a sealed archive can be read")
		}
		s := openDir(t, Options{Dir: t.TempDir()})
		a, err := s.OpenArchive(t.Context(), bytes.NewReader(archive), passphrase)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 8 {
			if got := valueOf(t, a.Store, fmt.Sprintf("user/%d", i)); got != strings.Repeat("u", 1000*i) {
				t.Errorf("user/%d has %d bytes", i, len(got))
			}
			if got := valueOf(t, a.Store, fmt.Sprintf("certificate/%d.example", i)); got != "pem "+fmt.Sprint(i) {
				t.Errorf("certificate %d is %q", i, got)
			}
		}
		if got := valueOf(t, a.Store, "certificate/late"); got != "absent" {
			t.Errorf("a later certificate is %q", got)
		}
		if page, err := a.Page(t.Context(), "audit", 0, 5); err != nil || len(page) != 1 {
			t.Errorf("the audit is %v, %v", page, err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

// An archive that is not whole is refused, wherever it is cut off or damaged.
func TestABadArchiveIsRefusedWhole(t *testing.T) {
	for _, passphrase := range []string{"", "correct horse"} {
		archive := backed(t, passphrase)
		s := openDir(t, Options{Dir: t.TempDir()})
		refused := func(what string, archive []byte, passphrase string) {
			t.Helper()
			if a, err := s.OpenArchive(t.Context(), bytes.NewReader(archive), passphrase); err == nil {
				a.Close()
				t.Errorf("%s: restored", what)
			} else if !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: %v", what, err)
			}
		}
		for i := range 4 {
			cut := len(archive) * i / 4
			refused(fmt.Sprintf("cut off at %d", cut), archive[:cut], passphrase)
			hurt := bytes.Clone(archive)
			hurt[cut+len(archive)/8] ^= 0x20
			refused(fmt.Sprintf("damaged at %d", cut), hurt, passphrase)
		}
		refused("cut by a byte", archive[:len(archive)-1], passphrase)
	}
}

func TestWhatACrashLeftOfAnArchiveIsRemoved(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, restoringName, "certificates")
	if err := os.MkdirAll(left, 0o700); err != nil {
		t.Fatal(err)
	}
	openDir(t, Options{Dir: dir})
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("it is there still: %v", err)
	}
}
