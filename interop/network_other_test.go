//go:build !linux

package interop

const networkJob = "HEADGATE_INTEROP_NETWORK"

func runNetworkJob() int { return 1 }

// betweenProcesses reports that this program is no part of an upgrade.
func betweenProcesses() (part bool, code int) { return false, 0 }
