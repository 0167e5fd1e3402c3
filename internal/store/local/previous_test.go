package local

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// contentOf returns the files of a state directory that are state, by their paths.
func contentOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		top, _, _ := strings.Cut(inside, string(filepath.Separator))
		if top == lockName || strings.HasPrefix(top, asideName+"-") || d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		all[inside] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sameContent compares two directories.
func sameContent(t *testing.T, when string, got, want map[string]string) {
	t.Helper()
	for name, text := range want {
		if got[name] != text {
			t.Errorf("%s: %s is %.20q, was %.20q", when, name, got[name], text)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s: %s is new", when, name)
		}
	}
}

// firstVersion makes a directory as version 1 had it.
func firstVersion(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{"affinity.key": "sticky\n", "cdn/fastly.txt": "192.0.2.0/24\n", "headgate.yaml": "version: 1\n", "version": "1\n"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// A directory of an earlier version is copied before it is converted, and comes back
// byte for byte; the converted one is kept, and a later start converts again.
func TestStateBeforeAConversionComesBack(t *testing.T) {
	dir := firstVersion(t)
	before := contentOf(t, dir)
	for range 2 {
		s := openDir(t, Options{Dir: dir})
		commitOne(t, s, "user/ann", "made after the conversion")
		s.Close()
		if v, _ := versionOf(dir); v != Version {
			t.Errorf("after the start the version is %d", v)
		}
		sameContent(t, "the copy", contentOf(t, filepath.Join(dir, previousName)), before)
		aside, err := RestorePrevious(dir, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		sameContent(t, "restored", contentOf(t, dir), before)
		if v, held := versionOf(aside); !held || v != Version {
			t.Errorf("the newer state in %s has version %d", aside, v)
		}
		var none *NoPrevious
		if _, err := RestorePrevious(dir, time.Now()); !errors.As(err, &none) {
			t.Errorf("restored twice: %v", err)
		}
		if err := os.RemoveAll(aside); err != nil {
			t.Fatal(err)
		}
	}
}

// A way back that a crash has interrupted goes on where it was.
func TestInterruptedRestoreIsFinished(t *testing.T) {
	for name, interrupt := range map[string]func(t *testing.T, dir string){
		"while the newer state is moved": func(t *testing.T, dir string) {
			move(t, filepath.Join(dir, dbName), filepath.Join(dir, movingName, dbName))
		},
		"while the copy is moved": func(t *testing.T, dir string) {
			if err := moveEntries(dir, filepath.Join(dir, asideName+"-x"), func(name string) bool {
				return name != lockName && name != previousName && name != asideName+"-x"
			}); err != nil {
				t.Fatal(err)
			}
			move(t, filepath.Join(dir, previousName), filepath.Join(dir, comingName))
			move(t, filepath.Join(dir, comingName, "affinity.key"), filepath.Join(dir, "affinity.key"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := firstVersion(t)
			before := contentOf(t, dir)
			openDir(t, Options{Dir: dir}).Close()
			interrupt(t, dir)
			if _, err := RestorePrevious(dir, time.Now()); err != nil {
				t.Fatal(err)
			}
			sameContent(t, "restored", contentOf(t, dir), before)
		})
	}
}

func move(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(from, to); err != nil {
		t.Fatal(err)
	}
}

// Nothing is copied where nothing is converted, and nothing is restored under a headgate
// that runs.
func TestCopyIsMadeOnlyForAConversion(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	var inUse *InUse
	if _, err := RestorePrevious(dir, time.Now()); !errors.As(err, &inUse) {
		t.Errorf("restored while it is open: %v", err)
	}
	s.Close()
	openDir(t, Options{Dir: dir}).Close()
	if _, err := os.Stat(filepath.Join(dir, previousName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a copy was made of a new directory: %v", err)
	}
}
