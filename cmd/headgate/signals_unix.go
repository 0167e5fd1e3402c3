//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// The signals that are handled besides the interrupt.
var (
	stopSignals    = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGQUIT}
	reloadSignals  = []os.Signal{syscall.SIGHUP}
	reopenSignals  = []os.Signal{syscall.SIGUSR1}
	upgradeSignals = []os.Signal{syscall.SIGUSR2}
	stackSignals   = []os.Signal{syscall.SIGIO}
)

// keepOnBrokenPipe keeps the process running when the reader of its standard output or
// error goes away: writing the log fails then, serving continues.
func keepOnBrokenPipe() { signal.Ignore(syscall.SIGPIPE) }
