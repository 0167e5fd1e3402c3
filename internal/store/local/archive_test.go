package local

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/store"
)

func TestAnArchiveIsReadBesideTheStoreInUse(t *testing.T) {
	archive := backed(t, "correct horse")
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	defer s.Close()
	commitOne(t, s, "user/0", "here")
	a, err := s.OpenArchive(t.Context(), bytes.NewReader(archive), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	if got := valueOf(t, a.Store, "user/3"); got != strings.Repeat("u", 3000) {
		t.Errorf("a user of the archive has %d bytes", len(got))
	}
	if got := valueOf(t, a.Store, "certificate/3.example"); got != "pem 3" {
		t.Errorf("a certificate of the archive is %q", got)
	}
	if _, err := s.OpenArchive(t.Context(), bytes.NewReader(archive), "correct horse"); !errors.Is(err, ErrArchiveOpen) {
		t.Errorf("a second archive at the same time: %v", err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if got := valueOf(t, s, "user/0"); got != "here" {
		t.Errorf("the store has %q now", got)
	}
	if _, err := os.Stat(filepath.Join(dir, restoringName)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something is left of the archive: %v", err)
	}
}

func TestArchivesThatDoNotFitAreRefused(t *testing.T) {
	plain := backed(t, "")
	sealed := backed(t, "correct horse")
	flipped := bytes.Clone(plain)
	flipped[len(flipped)/2] ^= 1
	newer := func(version int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := &archive{tar: tar.NewWriter(z), manifest: manifest{Version: version, Files: map[string]content{}}}
		if err := errors.Join(w.add(versionName, fmt.Appendln(nil, version)), w.end(), w.tar.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	twice := func() []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := &archive{tar: tar.NewWriter(z), manifest: manifest{Version: Version, Files: map[string]content{}}}
		if err := errors.Join(w.add(versionName, fmt.Appendln(nil, Version)), w.add(versionName, fmt.Appendln(nil, Version)), w.end(), w.tar.Close(), z.Close()); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for what, c := range map[string]struct {
		archive          []byte
		passphrase, want string
	}{
		"a looping database": {holding(t, looping(t)), "", "used twice"},
		"a file twice":       {twice(), "", `the archive holds "version" twice`},
		"no archive":         {[]byte("version: 1\n"), "", "it is no backup of headgate"},
		"nothing":            {nil, "", "it is no backup of headgate"},
		"another passphrase": {sealed, "battery staple", "the passphrase is wrong"},
		"no passphrase":      {sealed, "", "give its passphrase"},
		"cut off":            {plain[:len(plain)/2], "", "cut off or damaged"},
		"sealed and cut off": {sealed[:len(sealed)/2], "correct horse", "the passphrase is wrong, or the archive is damaged"},
		"a bit is flipped":   {flipped, "", "damaged"},
		"a newer version":    {newer(Version + 1), "", "restore it with a newer one"},
		"no database":        {newer(Version), "", "it is no whole backup"},
	} {
		dir := t.TempDir()
		s := openDir(t, Options{Dir: dir})
		commitOne(t, s, "user/0", "here")
		_, err := s.OpenArchive(t.Context(), bytes.NewReader(c.archive), c.passphrase)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "nothing was changed") {
			t.Errorf("%s: %v", what, err)
		}
		if errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: the disk is blamed: %v", what, err)
		}
		if got := valueOf(t, s, "user/0"); got != "here" {
			t.Errorf("%s: the store has %q now", what, got)
		}
		if _, err := os.Stat(filepath.Join(dir, restoringName)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: something is left of the archive: %v", what, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// holding returns an archive whose manifest is right, with a database that may be anything.
func holding(t *testing.T, db []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := &archive{tar: tar.NewWriter(z), manifest: manifest{Version: Version, Files: map[string]content{}}}
	if err := errors.Join(w.add(versionName, fmt.Appendln(nil, Version)), w.add(dbName, db), w.end(), w.tar.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// looping returns a database in which each page with children, in use or not, is its own
// child.
func looping(t *testing.T) []byte {
	t.Helper()
	data, found := aDatabase(t), false
	for at := 2 * 1024; at < len(data); at += 1024 {
		number, kind := binary.NativeEndian.Uint64(data[at:]), binary.NativeEndian.Uint16(data[at+8:])
		if number == uint64(at/1024) && kind == kindBranch {
			copy(data[at+pageHeader+8:][:8], data[at:]) // the number of its first child
			found = true
		}
	}
	if !found {
		t.Fatal("there is no branch page")
	}
	return data
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
	archive := backed(t, "")
	s := openDir(t, Options{Dir: t.TempDir()})
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
		a, err := s.OpenArchive(t.Context(), bytes.NewReader(c.archive), "")
		if err == nil {
			err = a.Close()
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", what, err, c.want)
		}
	}
}
