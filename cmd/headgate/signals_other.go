//go:build !unix

package main

import "os"

// The signals that mean something: there are none for reloading, reopening and stacks.
var (
	stopSignals    = []os.Signal{os.Interrupt}
	reloadSignals  []os.Signal
	reopenSignals  []os.Signal
	upgradeSignals []os.Signal
	stackSignals   []os.Signal
)

// keepOnBrokenPipe is for systems that have the signal.
func keepOnBrokenPipe() {}
