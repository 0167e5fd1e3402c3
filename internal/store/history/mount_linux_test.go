package history_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"headgate/internal/store/history"
)

// mountDir tells a child process of this test where to mount and save.
const mountDir = "HEADGATE_TEST_MOUNT"

// saveUnderMounts saves a document that was mounted by itself, as containers do, and
// one in a read-only mount. It returns the exit code.
func saveUnderMounts(dir string) int {
	mounted, target := filepath.Join(dir, "mounted.yaml"), filepath.Join(dir, "elsewhere")
	locked := filepath.Join(dir, "locked")
	for _, err := range []error{
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount(target, mounted, "", unix.MS_BIND, ""),
		unix.Mount(locked, locked, "", unix.MS_BIND, ""),
		unix.Mount("", locked, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, ""),
	} {
		if err != nil {
			fmt.Println("skip", err)
			return 0
		}
	}
	if err := saveMounted(dir, mounted, locked); err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func saveMounted(dir, mounted, locked string) error {
	s, h, err := openBoth(dir, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	save := func(docs ...history.Document) error {
		_, err := h.Save(context.Background(), history.Request{Documents: docs, When: time.Now(), Via: "api"})
		return err
	}
	one := history.Document{Name: mounted, Was: history.DigestOf([]byte("one\n")), Data: []byte("one, and longer\n")}
	if err := save(one); err != nil {
		return fmt.Errorf("a mounted file: %w", err)
	}
	two := history.Document{Name: mounted, Was: one.Was, Data: []byte("2\n")}
	var conflict *history.Conflict
	if err := save(two); !errors.As(err, &conflict) {
		return fmt.Errorf("a mounted file that was changed: %v, want a conflict", err)
	}
	name := filepath.Join(locked, "a.yaml")
	var readOnly *history.ReadOnly
	if err := history.Writable(name); !errors.As(err, &readOnly) {
		return fmt.Errorf("Writable on a read-only mount: %v", err)
	}
	two.Was = history.DigestOf(one.Data)
	if err := save(two, history.Document{Name: name, Was: history.DigestOf([]byte("a\n")), Data: []byte("b\n")}); !errors.As(err, &readOnly) {
		return fmt.Errorf("a save on a read-only mount: %v", err)
	}
	if data, err := os.ReadFile(mounted); err != nil || string(data) != string(one.Data) {
		return fmt.Errorf("after a refused save: %q, %v", data, err)
	}
	return nil
}

func TestAMountedFileIsWrittenInPlace(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "locked"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"elsewhere": "one\n", "mounted.yaml": "", "locked/a.yaml": "a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), mountDir+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if len(out) > 0 {
		t.Skip(string(out))
	}
	if data, err := os.ReadFile(filepath.Join(dir, "elsewhere")); err != nil || string(data) != "one, and longer\n" {
		t.Errorf("the file that was mounted holds %q, %v", data, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".headgate*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
