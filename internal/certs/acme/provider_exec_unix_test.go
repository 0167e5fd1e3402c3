//go:build unix

package acme

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// hook returns a command with a script.
func hook(t *testing.T, script string) command {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hook")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	return command{path}
}

// What a command prints is kept up to a bound, however much it is.
func TestOutputOfACommandIsBounded(t *testing.T) {
	err := hook(t, "head -c 3000000 /dev/zero | tr '\\0' x\nexit 3\n").run(t.Context(), "present", "name", "value")
	if err == nil || !strings.Contains(err.Error(), "exit status 3: xxx") || len(err.Error()) > maxDetail+200 {
		t.Errorf("got %d bytes: %.300v", len(err.Error()), err)
	}
	if n, err := io.Copy(&head{max: 3}, strings.NewReader("12345")); n != 5 || err != nil {
		t.Errorf("copied %d, %v", n, err)
	}
}

// A command that leaves a process behind, which holds its output open, has done its work.
func TestACommandMayLeaveAProcessBehind(t *testing.T) {
	dir := t.TempDir()
	pid := filepath.Join(dir, "pid")
	err := hook(t, "sleep 600 &\necho $! > "+pid+"\n").run(t.Context(), "present", "name", "value")
	if err != nil {
		t.Errorf("got %v", err)
	}
	if err := syscall.Kill(written(t, pid), syscall.SIGKILL); err != nil {
		t.Errorf("the process that was left: %v", err)
	}
}

// A command that takes too long is killed with what it has started.
func TestACommandIsKilledWithItsProcesses(t *testing.T) {
	pid := filepath.Join(t.TempDir(), "pid")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		ended <- hook(t, "sleep 600 &\necho $! > "+pid+"\nsleep 600\n").run(ctx, "present", "name", "value")
	}()
	testhouse.Eventually(t, "the command has started a process", func() bool {
		data, err := os.ReadFile(pid)
		return err == nil && strings.HasSuffix(string(data), "\n")
	})
	cancel()
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("got %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it goes on")
	}
	testhouse.Eventually(t, "the process is gone", func() bool { return hasEnded(written(t, pid)) })
}

// written returns the number of a process that stands in a file.
func written(t *testing.T, name string) int {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// hasEnded reports whether a process has ended, and is at most waited for by its parent.
func hasEnded(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return true
	}
	state, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(state), ") Z ")
}

func TestACommandInheritsNoSecretsOfOurs(t *testing.T) {
	t.Setenv("HEADGATE_STATE_KEY", "s3cret-key")
	t.Setenv("HEADGATE_TOKEN", "s3cret-token")
	t.Setenv("HOOK_SETTING", "its own")
	err := hook(t, "env\nexit 1\n").run(t.Context(), "present", "name", "value")
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "HOOK_SETTING=its own") {
		t.Errorf("got %v", err)
	}
}
