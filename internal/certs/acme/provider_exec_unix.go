//go:build unix

package acme

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// killTogether has a command that takes too long be killed with the processes that it has
// started. Those of a command that has ended in time go on.
func killTogether(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		if errors.Is(err, syscall.ESRCH) {
			return os.ErrProcessDone
		}
		return err
	}
}
