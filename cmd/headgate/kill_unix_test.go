//go:build unix

package main

import (
	"fmt"
	"os"
	"syscall"
)

// kill sends a signal by its name.
func kill(p *os.Process, name string) error {
	sig, ok := map[string]syscall.Signal{
		"HUP": syscall.SIGHUP, "TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "USR1": syscall.SIGUSR1, "KILL": syscall.SIGKILL,
	}[name]
	if !ok {
		return fmt.Errorf("unknown signal %q", name)
	}
	return p.Signal(sig)
}
