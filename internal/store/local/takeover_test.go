package local

import (
	"os"
	"path/filepath"
	"testing"

	"headgate/internal/store"
)

// What version 1 has kept is found under its key, before and after the directory is
// opened, and stays what it was.
func TestStateOfVersion1IsTakenOver(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "cdn"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"affinity.key": "sticky\n", "self-signed.pem": "pem\n", filepath.Join("cdn", "fastly.txt"): "# list\n192.0.2.0/24\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{store.KeySticky: "sticky\n", store.KeySelfSigned: "pem\n", store.PrefixCDN + "fastly": "# list\n192.0.2.0/24\n"}
	check := func(when string, load func(key string) ([]byte, error)) {
		t.Helper()
		for key, text := range want {
			if got, err := load(key); err != nil || string(got) != text {
				t.Errorf("%s: %s is %q, %v; want %q", when, key, got, err, text)
			}
		}
	}
	check("before", Files{Dir: dir}.Load)
	s := openDir(t, Options{Dir: dir})
	check("taken over", store.ValuesOf(s).Load)
	check("looked at", Files{Dir: dir}.Load)
	for _, name := range []string{"affinity.key", "self-signed.pem"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s is left behind", name)
		}
	}
	s.Close()
	s = openDir(t, Options{Dir: dir})
	check("opened again", store.ValuesOf(s).Load)
	if err := (Files{Dir: dir}).Keep(store.KeySticky, nil); err == nil {
		t.Error("a directory that is only looked at is written to")
	}
}

// A person edits, adds and removes files while headgate runs and while it does not.
func TestFilesAreFollowed(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	for _, key := range []string{"certificate/a", "certificate/b", "certificate/*.Example.com"} {
		commitOne(t, s, key, "first")
	}
	_, before, err := s.Snapshot(t.Context(), "node/")
	if err != nil {
		t.Fatal(err)
	}
	edit := func() {
		t.Helper()
		certificates := filepath.Join(dir, "certificates")
		for name, text := range map[string]string{"a.pem": "by hand", "new.pem": "added", "not mine.txt": "x", ".hidden.pem": "x"} {
			if err := os.WriteFile(filepath.Join(certificates, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Remove(filepath.Join(certificates, "b.pem")); err != nil {
			t.Fatal(err)
		}
	}
	edit()
	s.care(t.Context())
	check := func(when string) {
		t.Helper()
		for key, want := range map[string]string{"certificate/a": "by hand", "certificate/new": "added", "certificate/b": "absent", "certificate/*.Example.com": "first"} {
			if got := valueOf(t, s, key); got != want {
				t.Errorf("%s: %s is %q, want %q", when, key, got, want)
			}
		}
		if list, err := s.List(t.Context(), "certificate/", "", 10); err != nil || len(list) != 3 {
			t.Errorf("%s: List = %v, %v", when, list, err)
		}
	}
	check("while it runs")
	for b, err := range s.Watch(t.Context(), "certificate/", before) {
		if err != nil || len(b.Put) != 2 || len(b.Delete) != 1 || b.Who != "file" {
			t.Errorf("a watcher sees %+v, %v", b, err)
		}
		break
	}
	commitOne(t, s, "certificate/b", "again")
	commitOne(t, s, "certificate/a", "again")
	s.Close()
	edit()
	s = openDir(t, Options{Dir: dir})
	check("while it does not")
	// A read finds an edit before anybody looked.
	if err := os.WriteFile(filepath.Join(dir, "certificates", "a.pem"), []byte("just now"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := valueOf(t, s, "certificate/a"); got != "just now" {
		t.Errorf("a read right after an edit finds %q", got)
	}
}
