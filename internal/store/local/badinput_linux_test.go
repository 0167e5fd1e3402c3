package local

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"headgate/internal/store"
)

// childTask tells a child process of this test what to do with a state directory.
const childTask = "HEADGATE_TEST_TASK"

// inChild runs a task in a process of its own, with a view of its own on what is
// mounted, or as another user. It returns what the task says.
func inChild(t *testing.T, task, dir string, attributes *syscall.SysProcAttr) map[string]string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root may mount and become another user")
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childTask+"="+task, childDir+"="+dir)
	cmd.SysProcAttr = attributes
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("%s: %v: %s%s", task, err, out, exit.Stderr)
		}
		t.Skip(err)
	}
	said := map[string]string{}
	for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		said[name] = value
	}
	if reason := said["skip"]; reason != "" {
		t.Skip(reason)
	}
	return said
}

func printValue(name string, value any) { fmt.Printf("%s: %v\n", name, value) }

// doTask is what a child does.
func doTask(task, dir string) error {
	switch task {
	case "read-only":
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			printValue("skip", err)
			return nil
		}
		if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
			printValue("skip", err)
			return nil
		}
		if err := unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""); err != nil {
			return err
		}
		return openReadOnly(dir, func() error { return unix.Mount("", dir, "", unix.MS_REMOUNT|unix.MS_BIND, "") })
	case "full":
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			printValue("skip", err)
			return nil
		}
		return fillDisk(dir)
	case "other user":
		return openReadOnly(dir, nil)
	}
	return fmt.Errorf("no task %q", task)
}

// openReadOnly opens a directory that cannot be written to, reads, writes, and writes again
// when that has been mended.
func openReadOnly(dir string, mend func() error) error {
	clock := newClock()
	s, err := Open(Options{Dir: dir, Clock: clock.now})
	if err != nil {
		printValue("open", err)
		return nil
	}
	defer s.Close()
	printValue("trouble", s.Trouble())
	ctx := testContext()
	for _, key := range []string{"certificate/a", "user/a"} {
		e, err := s.Get(ctx, key)
		printValue(key, fmt.Sprint(string(e.Value), " ", err))
	}
	change := store.Change{Put: []store.Entry{{Key: "user/b", Value: []byte("x")}, {Key: "certificate/b", Value: []byte("x")}}}
	_, err = s.Commit(ctx, change)
	printValue("commit", fmt.Sprint(errors.Is(err, store.ErrUnavailable), " ", err))
	if mend == nil {
		return nil
	}
	if err := mend(); err != nil {
		return err
	}
	clock.advance(2 * pause)
	_, err = s.Commit(ctx, change)
	printValue("commit after it was mended", err)
	e, err := s.Get(ctx, "user/a")
	printValue("user/a after it was mended", fmt.Sprint(string(e.Value), " ", err))
	return nil
}

// fillDisk commits until the disk is full, then makes room and goes on.
func fillDisk(dir string) error {
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		printValue("skip", err)
		return nil
	}
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 200<<10), 0o600); err != nil {
		return err
	}
	ctx := testContext()
	s, err := Open(Options{Dir: dir})
	if err != nil {
		return err
	}
	good := 0
	for i := range 1000 {
		value := []byte(strings.Repeat("x", 8<<10))
		_, err = s.Commit(ctx, store.Change{Put: []store.Entry{{Key: fmt.Sprintf("user/%d", i), Value: value}, {Key: fmt.Sprintf("certificate/%d", i), Value: value}}})
		if err != nil {
			break
		}
		good++
	}
	printValue("full", fmt.Sprint(errors.Is(err, store.ErrUnavailable), " ", err))
	lost := 0
	count := func() {
		for i := range good {
			for _, kind := range []string{"user", "certificate"} {
				if e, err := s.Get(ctx, fmt.Sprintf("%s/%d", kind, i)); err != nil || len(e.Value) != 8<<10 {
					lost++
				}
			}
		}
	}
	count()
	if e, err := s.Get(ctx, fmt.Sprintf("certificate/%d", good)); !errors.Is(err, store.ErrNotFound) {
		printValue("refused and there", fmt.Sprint(len(e.Value), " ", err))
	}
	if err := s.Close(); err != nil {
		return err
	}
	if s, err = Open(Options{Dir: dir}); err != nil {
		printValue("open on a full disk", err)
		return nil
	}
	defer s.Close()
	count()
	printValue("good", good > 5)
	printValue("lost", lost)
	if err := os.Remove(ballast); err != nil {
		return err
	}
	_, err = s.Commit(ctx, store.Change{Put: []store.Entry{{Key: "user/after", Value: []byte("x")}, {Key: "certificate/after", Value: []byte("x")}}})
	printValue("after", err)
	return nil
}

func prepared(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s := openDir(t, Options{Dir: dir})
	commitOne(t, s, "certificate/a", "pem")
	commitOne(t, s, "user/a", "anna")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func expect(t *testing.T, said map[string]string, name, want string) {
	t.Helper()
	if got := said[name]; !strings.Contains(got, want) {
		t.Errorf("%s is %q, want %q", name, got, want)
	}
}

func TestAReadOnlyDirectoryIsRead(t *testing.T) {
	said := inChild(t, "read-only", prepared(t), &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS})
	expect(t, said, "trouble", "read-only")
	expect(t, said, "certificate/a", "pem <nil>")
	expect(t, said, "user/a", "anna <nil>")
	expect(t, said, "commit", "true ")
	expect(t, said, "commit after it was mended", "<nil>")
	expect(t, said, "user/a after it was mended", "anna <nil>")
}

func TestAFullDiskRefusesChangesAndLosesNothing(t *testing.T) {
	said := inChild(t, "full", t.TempDir(), &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS})
	expect(t, said, "full", "true ")
	expect(t, said, "full", "free some space")
	expect(t, said, "good", "true")
	expect(t, said, "lost", "0")
	expect(t, said, "after", "<nil>")
	for _, never := range []string{"refused and there", "open on a full disk"} {
		if said[never] != "" {
			t.Errorf("%s: %s", never, said[never])
		}
	}
}

func TestADirectoryOfAnotherUserSaysSo(t *testing.T) {
	dir := prepared(t)
	for at := dir; at != os.TempDir() && at != "/"; at = filepath.Dir(at) {
		if err := os.Chmod(at, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(exe), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(exe)), 0o755); err != nil {
		t.Fatal(err)
	}
	said := inChild(t, "other user", dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	expect(t, said, "trouble", "it belongs to user 0 and headgate runs as user 65534")
	expect(t, said, "commit", "true ")
}

// TestAStateDirectoryForEverybodyIsTold opens one that everybody can write to, and one
// that they cannot.
func TestAStateDirectoryForEverybodyIsTold(t *testing.T) {
	for mode, told := range map[os.FileMode]bool{0o777: true, 0o702: true, 0o755: false, 0o700: false} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		s, err := Open(Options{Dir: dir, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		if strings.Contains(log.String(), "all users of this machine can write") != told {
			t.Errorf("%04o: the log is %q, want it told: %v", mode, log.String(), told)
		}
	}
}
