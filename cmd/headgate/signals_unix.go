//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// The signals that mean something beside the interrupt.
var (
	stopSignals    = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	reloadSignals  = []os.Signal{syscall.SIGHUP}
	reopenSignals  = []os.Signal{syscall.SIGUSR1}
	upgradeSignals = []os.Signal{syscall.SIGUSR2}
	stackSignals   = []os.Signal{syscall.SIGIO}
)

// keepOnBrokenPipe lets the process live when nobody reads its standard output
// or error any more: writing the log fails then, serving goes on.
func keepOnBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }
