//go:build !unix

package main

import "os"

// The signals that mean something: there are none for reloading and reopening.
var (
	stopSignals   = []os.Signal{os.Interrupt}
	reloadSignals []os.Signal
	reopenSignals []os.Signal
)

// keepOnBrokenPipe is for systems that have the signal.
func keepOnBrokenPipe() {}
