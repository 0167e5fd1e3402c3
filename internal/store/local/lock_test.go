package local

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// childDir tells a child process of this test which state directory to open.
const childDir = "HEADGATE_TEST_STATE"

func TestMain(m *testing.M) {
	if task := os.Getenv("HEADGATE_TEST_TASK"); task != "" {
		if err := doTask(task, os.Getenv(childDir)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if dir := os.Getenv(childDir); dir != "" {
		if s, err := Open(Options{Dir: dir}); err != nil {
			fmt.Println(err)
		} else {
			s.Close()
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func TestOneProcessHasTheStateDirectory(t *testing.T) {
	dir := t.TempDir()
	s := openDir(t, Options{Dir: dir})
	want := "state directory " + dir + " is in use by another headgate"
	var inUse *InUse
	if again, err := Open(Options{Dir: dir}); err == nil {
		again.Close()
		t.Error("it was opened twice by one process")
	} else if !errors.As(err, &inUse) || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
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
	if got := child(); !strings.HasPrefix(got, want) {
		t.Errorf("another process got %q, want %s", got, want)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if got := child(); got != "" {
		t.Errorf("after Close another process got %q", got)
	}
}

func TestStateIsForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "state")
	s := openDir(t, Options{Dir: dir})
	commitOne(t, s, "user/a", "x")
	commitOne(t, s, "certificate/a", "x")
	if err := s.copy(); err != nil {
		t.Fatal(err)
	}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		want := os.FileMode(0o600)
		if info.IsDir() {
			want = 0o700
		}
		if os.PathSeparator == '/' && info.Mode().Perm() != want {
			t.Errorf("%s has mode %o, want %o", path, info.Mode().Perm(), want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
