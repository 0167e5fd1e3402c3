package local

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/store"
)

// backed returns a state directory and an archive of it.
func backed(t *testing.T, passphrase string) (dir string, archive []byte) {
	t.Helper()
	dir = t.TempDir()
	s := openDir(t, Options{Dir: dir})
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
	return dir, b.Bytes()
}

// isBacked checks that a directory holds what was backed up, and only that.
func isBacked(t *testing.T, dir string) {
	t.Helper()
	s := openDir(t, Options{Dir: dir})
	defer s.Close()
	for i := range 8 {
		if got := valueOf(t, s, fmt.Sprintf("user/%d", i)); got != strings.Repeat("u", 1000*i) {
			t.Errorf("user/%d has %d bytes", i, len(got))
		}
		if got := valueOf(t, s, fmt.Sprintf("certificate/%d.example", i)); got != "pem "+fmt.Sprint(i) {
			t.Errorf("certificate %d is %q", i, got)
		}
	}
	if got := valueOf(t, s, "certificate/late"); got != "absent" {
		t.Errorf("a later certificate is %q", got)
	}
	if page, err := s.Page(t.Context(), "audit", 0, 5); err != nil || len(page) != 1 {
		t.Errorf("the audit is %v, %v", page, err)
	}
	commitOne(t, s, "user/new", "x")
	if left, _ := filepath.Glob(filepath.Join(dir, restoringName)); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestABackupIsRestored(t *testing.T) {
	for _, passphrase := range []string{"", "correct horse"} {
		dir, archive := backed(t, passphrase)
		if passphrase != "" && bytes.Contains(archive, []byte("pem")) {
			t.Error("a sealed archive can be read")
		}
		if err := Restore(t.Context(), Options{Dir: dir}, bytes.NewReader(archive), passphrase); err != nil {
			t.Fatal(err)
		}
		isBacked(t, dir)
		if aside, err := filepath.Glob(filepath.Join(dir, beforeName+"*", "certificates", "late.pem")); err != nil || len(aside) != 1 {
			t.Errorf("the former state is not kept: %v", err)
		}
		empty := filepath.Join(t.TempDir(), "new")
		if err := Restore(t.Context(), Options{Dir: empty}, bytes.NewReader(archive), passphrase); err != nil {
			t.Fatal(err)
		}
		isBacked(t, empty)
	}
}

// An archive that is not whole changes nothing.
func TestABadArchiveIsRefusedWhole(t *testing.T) {
	for _, passphrase := range []string{"", "correct horse"} {
		dir, archive := backed(t, passphrase)
		refused := func(what string, archive []byte, passphrase string) {
			t.Helper()
			if err := Restore(t.Context(), Options{Dir: dir}, bytes.NewReader(archive), passphrase); err == nil {
				t.Fatalf("%s: restored", what)
			} else if !strings.Contains(err.Error(), "nothing was changed") {
				t.Errorf("%s: %v", what, err)
			}
			if got, err := os.ReadFile(filepath.Join(dir, "certificates", "late.pem")); err != nil || string(got) != "after the backup" {
				t.Errorf("%s: the state was touched: %q, %v", what, got, err)
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
		refused("no archive", []byte("hello"), passphrase)
		if passphrase != "" {
			refused("wrong passphrase", archive, "wrong")
			refused("no passphrase", archive, "")
		}
	}
}

// A few bytes of an archive that become many are refused before they are in memory or on
// the disk.
func TestAnArchiveThatCompressesTooWellIsRefused(t *testing.T) {
	pressed := func(name string, size int) []byte {
		t.Helper()
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		w := tar.NewWriter(z)
		if name != "" {
			if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(size)}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.Write(make([]byte, size)); err != nil {
				t.Fatal(err)
			}
		} else if _, err := z.Write(make([]byte, size)); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Flush(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return out.Bytes()
	}
	dir, archive := backed(t, "")
	for what, c := range map[string]struct {
		archive []byte
		want    string
	}{
		"a manifest":        {pressed(manifestName, 4*maxManifestLine), manifestName + `" has 4096 bytes, more than`},
		"a file":            {pressed(versionName, maxOnDisk+1), versionName + `" has`},
		"after its end":     {append(bytes.Clone(archive), pressed("", maxArchiveEnd+1)...), "goes on after its manifest"},
		"zeros at the end":  {append(bytes.Clone(archive), pressed("", 1<<10)...), ""},
		"a file of a store": {archive, ""},
	} {
		err := Restore(t.Context(), Options{Dir: dir}, bytes.NewReader(c.archive), "")
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}

func TestADirectoryInUseIsNotRestored(t *testing.T) {
	dir, archive := backed(t, "")
	openDir(t, Options{Dir: dir})
	var inUse *InUse
	if err := Restore(t.Context(), Options{Dir: dir}, bytes.NewReader(archive), ""); !errors.As(err, &inUse) {
		t.Errorf("got %v, want *InUse", err)
	}
}

// stopped ends a restore in its middle, as a crash does.
type stopped struct{}

func TestACrashInARestoreLeavesOneOrTheOther(t *testing.T) {
	master, archive := backed(t, "")
	for at := 1; ; at++ {
		dir := filepath.Join(t.TempDir(), "state")
		if err := os.CopyFS(dir, os.DirFS(master)); err != nil {
			t.Fatal(err)
		}
		points := 0
		crashed := func() (crashed bool) {
			defer func() {
				if v := recover(); v != nil {
					if _, ok := v.(stopped); !ok {
						panic(v)
					}
					crashed = true
				}
			}()
			err := Restore(t.Context(), Options{Dir: dir, Point: func(string) {
				if points++; points == at {
					panic(stopped{})
				}
			}}, bytes.NewReader(archive), "")
			if err != nil {
				t.Fatal(err)
			}
			return false
		}()
		isBacked(t, dir)
		if !crashed {
			if at < 10 {
				t.Errorf("a restore has %d points only", at)
			}
			return
		}
	}
}
