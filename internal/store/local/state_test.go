package local

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"headgate/internal/file"
)

// childDir tells a child process of this test which state directory to open.
const childDir = "HEADGATE_TEST_STATE"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if _, err := Open(dir); err != nil {
			fmt.Println(err)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func open(t *testing.T, dir string) *State {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestStateDirectoryIsForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "state")
	s := open(t, dir)
	name, err := s.Save([]byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "revisions", name): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want && os.PathSeparator == '/' {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestOneProcessHasTheStateDirectory(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	inUse := "state directory " + dir + " is in use by another headgate"
	if again, err := Open(dir); err == nil {
		again.Close()
		t.Error("it was opened twice by one process")
	} else if !strings.HasPrefix(err.Error(), inUse) {
		t.Errorf("got %v, want %s", err, inUse)
	}
	child := func() string {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+dir, "GORACE=atexit_sleep_ms=0")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	if got := child(); !strings.HasPrefix(got, inUse) {
		t.Errorf("another process got %q, want %s", got, inUse)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := child(); got != "" {
		t.Errorf("after Close another process got %q", got)
	}
}

func TestSaveKeepsTheNewestRevisions(t *testing.T) {
	s := open(t, t.TempDir())
	for i := 1; i <= maxRevisions+5; i++ {
		name, err := s.Save(fmt.Appendf(nil, "revision %d", i))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("%08d.yaml", i); name != want {
			t.Fatalf("got name %s, want %s", name, want)
		}
	}
	names, err := s.Revisions()
	if err != nil {
		t.Fatal(err)
	}
	if len(names) != maxRevisions || names[0] != "00000006.yaml" {
		t.Errorf("got %d revisions from %s, want %d from 00000006.yaml", len(names), names[0], maxRevisions)
	}
	if got, err := s.Revision("00000007.yaml"); err != nil || string(got) != "revision 7" {
		t.Errorf("got %q and %v", got, err)
	}
}

func TestSaveKeepsWhatIsNewestOnce(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, c := range []struct{ data, name string }{
		{"a", "00000001.yaml"}, {"a", "00000001.yaml"}, {"b", "00000002.yaml"}, {"a", "00000003.yaml"},
	} {
		if name, err := s.Save([]byte(c.data)); err != nil || name != c.name {
			t.Errorf("Save(%s) = %s, %v; want %s", c.data, name, err, c.name)
		}
	}
	s.Close()
	if name, err := open(t, dir).Save([]byte("a")); err != nil || name != "00000003.yaml" {
		t.Errorf("after a restart: got %s and %v, want 00000003.yaml", name, err)
	}
}

func TestFilesOfOthersAreNoRevisions(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	for _, name := range []string{"zz.yaml", "99.yaml", "00000009.yml", "-0000001.yaml", "00000000.yaml", ".new-7"} {
		if err := os.WriteFile(filepath.Join(dir, "revisions", name), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"00000001.yaml", "00000002.yaml"} {
		if name, err := s.Save([]byte(want)); err != nil || name != want {
			t.Errorf("got %s and %v, want %s", name, err, want)
		}
	}
	for _, name := range []string{"zz.yaml", "../lock", "", ".", "../revisions/00000001.yaml"} {
		if data, err := s.Revision(name); err == nil {
			t.Errorf("Revision(%q) = %q, want an error", name, data)
		}
	}
}

func TestWhatACrashLeftIsSwept(t *testing.T) {
	dir := t.TempDir()
	open(t, dir).Close()
	left := filepath.Join(dir, "revisions", ".new-123")
	if err := os.WriteFile(left, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if _, err := os.Stat(left); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", left, err)
	}
}

func TestAFailedSaveLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	// Whoever is root may write everywhere: a name that is taken by a folder
	// refuses everybody.
	if err := os.MkdirAll(filepath.Join(dir, "revisions", "00000001.yaml", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Save([]byte("a")); err != nil {
		t.Fatal(err) // number 2
	}
	if err := os.MkdirAll(filepath.Join(dir, "revisions", "00000003.yaml", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(filepath.Join(dir, "revisions"))
	err := file.Replace(filepath.Join(dir, "revisions", "00000003.yaml"), []byte("b"))
	if err == nil {
		t.Error("a file was put in the place of a folder")
	}
	if after, _ := os.ReadDir(filepath.Join(dir, "revisions")); len(after) != len(entries) {
		t.Errorf("there are %d entries after a failed save, %d before", len(after), len(entries))
	}
}
